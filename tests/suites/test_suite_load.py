"""Loading: what a suite file means, `extends`, portable sources, and the fingerprint."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import BenchError
from harness.registry import Components
from harness.suites.expand import expand
from harness.suites.load import LoadedSuite, load_suite
from harness.suites.plan import plan, time_left
from harness.suites.schema import Component

Write = Callable[[str, str], Path]
Load = Callable[[str], LoadedSuite]


@pytest.fixture
def load(components: Components) -> Load:
    return lambda name: load_suite(Path(name), components)


def drafter(loaded: LoadedSuite, arm: str) -> Component:
    found = loaded.suite.arms[arm].drafter
    assert found is not None
    return found


def test_short_forms_mean_the_long_form(write: Write, load: Load, valid: str) -> None:
    forms = {
        "a": "drafter: ngram",
        "b": "drafter: {name: ngram}",
        "c": "drafter: {name: ngram, options: null}",
        "d": "drafter: {name: ngram, block_size: 5}",
        "e": "drafter: {name: ngram, options: {block_size: 5}, max_ngram: 3}",
        "f": "drafter: ngram\n    scheduler: fixed",
        "g": "drafter: ngram\n    scheduler: {name: fixed}\n    backend: engine",
    }
    for form in forms.values():
        write("x.yaml", valid.replace("lookup: {drafter: ngram}", f"lookup:\n    {form}"))
        arm = load("x.yaml").suite.arms["lookup"]
        assert arm.model_dump() == {
            "drafter": {"name": "ngram", "options": {"block_size": 5, "max_ngram": 3, "min_ngram": 1}},
            "scheduler": {"name": "fixed", "options": {"length": None}},
            "backend": "engine",
        }


def test_target_only_arms_have_no_drafter(write: Write, load: Load, valid: str) -> None:
    for form in ("{}", "{drafter: }", "{drafter: null}", "{drafter: ~, backend: engine}"):
        write("x.yaml", valid.replace("target-only: {}", f"target-only: {form}"))
        assert load("x.yaml").suite.arms["target-only"].drafter is None


def test_scalars_mean_what_they_look_like(write: Write, load: Load, valid: str) -> None:
    write(
        "x.yaml",
        valid.replace("math:", "on:").replace("code:", "2024-01-01:")
        + "description: no\nmatrix: {temperature: [0, 1e-1], repeats: 010}\ndefaults: {ignore_eos: true}\n",
    )
    suite = load("x.yaml").suite
    assert list(suite.datasets) == ["on", "2024-01-01"]
    assert suite.description == "no"
    assert suite.matrix.temperature == [0.0, 0.1]
    assert all(type(value) is float for value in suite.matrix.temperature)
    assert suite.matrix.repeats == 10
    assert suite.defaults.ignore_eos is True


def test_anchors_within_a_file(write: Write, load: Load, valid: str) -> None:
    write("x.yaml", valid + "  chat: &set {source: 'builtin:chat'}\n  again: *set\n")
    suite = load("x.yaml").suite
    assert suite.datasets["again"] == suite.datasets["chat"]


def test_later_files_win_and_the_extending_file_last(write: Write, load: Load, valid: str) -> None:
    write("a.yaml", valid + "defaults: {seed: 1, max_new_tokens: 1, system: a}\n")
    write("b.yaml", "defaults: {seed: 2, max_new_tokens: 2}\nmatrix: {concurrency: [1, 2, 3]}\n")
    write("x.yaml", "name: x\nextends: [a.yaml, b.yaml]\ndefaults: {seed: 3}\nmatrix: {concurrency: [8]}\n")
    suite = load("x.yaml").suite
    defaults = suite.defaults
    assert (defaults.seed, defaults.max_new_tokens, defaults.system) == (3, 2, "a")
    assert suite.matrix.concurrency == [8]
    assert list(suite.arms) == ["target-only", "lookup"]


def test_null_takes_out_what_an_extended_file_gave(write: Write, load: Load, valid: str) -> None:
    write("a.yaml", valid + "  chat: {source: 'builtin:chat', limit: 3}\ndefaults: {system: a}\n")
    write(
        "x.yaml",
        "name: x\nextends: [a.yaml]\ndatasets: {math: null, chat: {limit: null}}\ndefaults: null\n",
    )
    suite = load("x.yaml").suite
    assert list(suite.datasets) == ["code", "chat"]
    assert suite.datasets["chat"].limit is None
    assert suite.defaults.system is None


def test_name_and_description_are_not_inherited(write: Write, load: Load, valid: str) -> None:
    write("a.yaml", valid + "description: of a\n")
    write("x.yaml", "name: x\nextends: [a.yaml]\n")
    assert load("x.yaml").suite.description == ""
    write("x.yaml", "extends: [a.yaml]\n")
    with pytest.raises(BenchError, match=r"^x\.yaml:1: name: missing; "):
        load("x.yaml")


def test_extended_component_options_merge_and_another_name_replaces(
    write: Write, load: Load, valid: str
) -> None:
    write("a.yaml", valid.replace("drafter: ngram", "drafter: {name: ngram, block_size: 9, max_ngram: 6}"))
    write("x.yaml", "name: x\nextends: a.yaml\narms: {lookup: {drafter: {max_ngram: 8}}}\n")
    assert drafter(load("x.yaml"), "lookup").options == {"block_size": 9, "max_ngram": 8, "min_ngram": 1}
    write("x.yaml", "name: x\nextends: a.yaml\narms: {lookup: {drafter: {name: draft_model, model: m}}}\n")
    assert drafter(load("x.yaml"), "lookup").model_dump() == {
        "name": "draft_model",
        "options": {"model": "m", "block_size": 4},
    }
    write("x.yaml", "name: x\nextends: a.yaml\narms: {lookup: {drafter: null}}\n")
    assert load("x.yaml").suite.arms["lookup"].drafter is None


def test_a_problem_is_shown_in_the_file_it_stands_in(write: Write, load: Load, valid: str) -> None:
    write("shared/a.yaml", valid + "defaults:\n  sed: 1\n")
    write("shared/b.yaml", "extends: [a.yaml]\n")
    write("x.yaml", "name: x\nextends: [shared/a.yaml, shared/b.yaml]\nmatrix: {repeats: no}\n")
    with pytest.raises(BenchError) as caught:
        load("x.yaml")
    first, second = str(caught.value).splitlines()
    assert first.startswith("shared/a.yaml:11: defaults.sed = 1: unknown key; did you mean seed? ")
    assert second == 'x.yaml:3: matrix.repeats = "no": must be a whole number'


def test_cycle_through_several_files(write: Write, load: Load, valid: str) -> None:
    write("x.yaml", "name: x\nextends: [sub/a.yaml]\n")
    write("sub/a.yaml", valid + "extends:\n- b.yaml\n")
    write("sub/b.yaml", "extends: [../x.yaml]\ndefaults: {seed: 1}\n")
    with pytest.raises(BenchError) as caught:
        load("x.yaml")
    assert str(caught.value) == (
        'sub/b.yaml:1: extends[0] = "../x.yaml": files extend each other in a circle '
        "(x.yaml -> a.yaml -> b.yaml -> x.yaml); take one out"
    )


def test_two_ways_to_the_same_file_are_no_cycle(write: Write, load: Load, valid: str) -> None:
    write("base.yaml", valid)
    write("a.yaml", "extends: [base.yaml]\ndefaults: {seed: 1}\n")
    write("b.yaml", "extends: [base.yaml]\nmatrix: {repeats: 2}\n")
    write("x.yaml", "name: x\nextends: [a.yaml, b.yaml]\n")
    suite = load("x.yaml").suite
    assert (suite.defaults.seed, suite.matrix.repeats) == (1, 2)


SHARED = """\
targets: {small: {source: "path:./models/small"}, other: {source: "path:/data/other"}}
arms:
  target-only: {}
  net: {drafter: {name: draft_model, model: "path:../nets/tiny"}}
datasets: {code: {source: "jsonl:code.jsonl"}, math: {source: "builtin:math"}}
defaults: {system: "path:stays"}
"""


def test_relative_sources_start_at_the_file_that_names_them(write: Write, load: Load, tmp_path: Path) -> None:
    write("shared/base/all.yaml", SHARED)
    write(
        "suites/x.yaml",
        'name: x\nextends: [../shared/base/all.yaml]\ndatasets: {own: {source: "jsonl:own.jsonl"}}\n',
    )
    loaded = load("suites/x.yaml")
    sources = {name: target.source for name, target in loaded.suite.targets.items()}
    assert sources == {"small": "path:../shared/base/models/small", "other": "path:/data/other"}
    assert {name: data.source for name, data in loaded.suite.datasets.items()} == {
        "code": "jsonl:../shared/base/code.jsonl",
        "math": "builtin:math",
        "own": "jsonl:own.jsonl",
    }
    assert drafter(loaded, "net").options["model"] == "path:../shared/nets/tiny"
    assert loaded.suite.defaults.system == "path:stays"
    assert loaded.folder == tmp_path.resolve() / "suites"


def test_home_relative_and_empty_sources_are_left_alone(write: Write, load: Load, valid: str) -> None:
    write(
        "sub/x.yaml",
        valid.replace("path:models/small", "path:~/small").replace("jsonl:data/code.jsonl", "jsonl:"),
    )
    write("y.yaml", "name: y\nextends: [sub/x.yaml]\n")
    suite = load("y.yaml").suite
    assert suite.targets["small"].source == "path:~/small"
    assert suite.datasets["code"].source == "jsonl:"


def test_fingerprint_does_not_depend_on_where_the_checkout_lies(
    write: Write, load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("one/shared/all.yaml", SHARED)
    write("one/suites/x.yaml", "name: x\nextends: [../shared/all.yaml]\n")
    shutil.copytree("one", "two/deep/er")
    first = load("one/suites/x.yaml").sha256
    monkeypatch.chdir("two/deep/er/suites")
    assert load("x.yaml").sha256 == first
    assert load(str(tmp_path / "one/suites/x.yaml")).sha256 == first


def test_fingerprint_is_that_of_canonical_json(write: Write, load: Load, valid: str) -> None:
    write("x.yaml", valid)
    loaded = load("x.yaml")
    text = json.dumps(loaded.suite.model_dump(), sort_keys=True, separators=(",", ":"))
    assert loaded.sha256 == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("drafter: ngram", "drafter: {name: ngram, block_size: 5}", True),  # the default, written out
        ("lookup: {drafter: ngram}", "lookup:  # a comment\n    drafter: 'ngram'", True),
        ("name: base", "name: base\nmatrix: {temperature: [0]}", True),
        ("name: base", "name: base\nmatrix: {temperature: [1]}", False),
        ("drafter: ngram", "drafter: {name: ngram, block_size: 6}", False),
        ("path:models/small", "path:models/large", False),
        ("path:models/small", "path:./models/../models/small", True),
    ],
)
def test_fingerprint_covers_what_is_measured(
    old: str, new: str, same: bool, write: Write, load: Load, valid: str
) -> None:
    write("x.yaml", valid)
    write("y.yaml", valid.replace(old, new))
    assert (load("x.yaml").sha256 == load("y.yaml").sha256) is same


def test_a_single_value_in_a_selector_is_a_list_of_one(write: Write, load: Load, valid: str) -> None:
    write("x.yaml", valid + "exclude:\n- {dataset: code, arm: lookup}\n")
    write("y.yaml", valid + "exclude:\n- {dataset: [code], arm: [lookup]}\n")
    assert load("x.yaml").sha256 == load("y.yaml").sha256


def test_a_component_that_cannot_be_imported_is_a_problem_of_the_arm(
    write: Write, valid: str, components: Components
) -> None:
    def broken() -> None:
        raise ImportError("No module named 'vendor'")

    components.drafters.register("broken", broken)
    write("x.yaml", valid.replace("drafter: ngram", "drafter: broken"))
    with pytest.raises(BenchError) as caught:
        load_suite(Path("x.yaml"), components)
    assert str(caught.value) == (
        "x.yaml:6: arms.lookup.drafter: the drafter 'broken' cannot be imported: No module named 'vendor'"
    )


SUITES = sorted((Path(__file__).parents[2] / "suites").glob("*.yaml"))


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.name)
def test_published_suites_load_with_what_is_installed(path: Path) -> None:
    loaded = load_suite(path)
    assert loaded.suite.name == path.stem
    cells = expand(loaded.suite)
    assert any(cell.arm.drafter is None for cell in cells)


def test_quickstart_is_guessed_under_four_minutes_and_fills_its_concurrency() -> None:
    [path] = [path for path in SUITES if path.stem == "quickstart"]
    suite = load_suite(path).suite
    cells = expand(suite)
    assert len(cells) == 24  # 2 arms x 3 data sets x 2 concurrencies x 2 repeats
    assert time_left(plan(cells, {})) < 240
    assert {cell.concurrency for cell in cells} == {1, 8}
    assert all(cell.concurrency <= (cell.dataset.limit or 0) for cell in cells)
    ngram = suite.arms["n-gram"].drafter
    assert ngram is not None
    assert ngram.options["block_size"] == 7
