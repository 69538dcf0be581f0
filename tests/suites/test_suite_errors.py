"""Every class of mistake in a suite file: the exact line, key, value and mend.

In each case `#!` marks the line the message must point at. Cases that begin with `+` follow the valid suite.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import BenchError
from harness.registry import Components
from harness.suites.expand import expand
from harness.suites.load import load_suite

Write = Callable[[str, str], Path]
HEAD = 'name: x\ntargets: {t: {source: "hf:a/b"}}\narms:\n  target-only: {}\n'
DATA = 'datasets: {d: {source: "builtin:math"}}\n'

SUITE_KEYS = "extends, name, description, targets, arms, datasets, defaults, matrix, exclude, include"

CASES = {
    "unknown key, with a near one": (
        "+defaults:\n  max_new_token: 3  #!\n",
        "defaults.max_new_token = 3: unknown key; did you mean max_new_tokens? allowed: max_new_tokens, "
        "ignore_eos, top_k, top_p, seed, thinking, system, warmup_requests, arrivals",
    ),
    "unknown key, nothing near": (
        "+zzz: 1  #!\n",
        f"zzz = 1: unknown key; allowed: {SUITE_KEYS}",
    ),
    "unknown key of an entry": (
        HEAD + "  b: {drafter: ngram}\ndatasets:\n  d:\n    source: builtin:math\n    limits: 3  #!\n",
        "datasets.d.limits = 3: unknown key; did you mean limit? allowed: source, domain, limit",
    ),
    "an entry called like a key": (
        'name: x\ntargets:\n  source:\n    sources: "hf:a/b"  #!\n    source: "x"\narms: {a: {}}\n' + DATA,
        'targets.source.sources = "hf:a/b": unknown key; did you mean source? '
        "allowed: source, sha256, dtype, device, context_length",
    ),
    "unknown key in a selector": (
        "+exclude:\n- arm: lookup\n  concurrencies: 3  #!\n",
        "exclude[0].concurrencies = 3: unknown key; did you mean concurrency? "
        "allowed: target, arm, dataset, concurrency, temperature",
    ),
    "unknown key two models deep": (
        "+defaults:\n  arrivals:\n    rates: 3  #!\n    rate: 3.0\n",
        "defaults.arrivals.rates = 3: unknown key; did you mean rate? allowed: rate",
    ),
    "missing key": (
        HEAD + "datasets:\n  d: {limit: 3}  #!\n",
        "datasets.d.source: missing; needed here: source",
    ),
    "missing section": (
        "name: x  #!\ntargets: {t: {source: 'hf:a/b'}}\narms: {a: {}}\n",
        "datasets: missing; needed here: name, targets, arms, datasets",
    ),
    "text where a number belongs": (
        "+defaults:\n  max_new_tokens: many  #!\n",
        'defaults.max_new_tokens = "many": must be a whole number',
    ),
    "a float where a whole number belongs": (
        "+matrix:\n  repeats: 2.0  #!\n",
        "matrix.repeats = 2.0: must be a whole number",
    ),
    "true where a number belongs": (
        "+matrix:\n  concurrency: [4, true]  #!\n",
        "matrix.concurrency[1] = true: must be a whole number",
    ),
    "text where a temperature belongs": (
        "+matrix:\n  temperature:\n    - 0.5\n    - warm  #!\n",
        'matrix.temperature[1] = "warm": must be a number',
    ),
    "yes where true belongs": (
        "+defaults:\n  ignore_eos: yes  #!\n",
        'defaults.ignore_eos = "yes": must be true or false',
    ),
    "a number where text belongs": (
        HEAD + "datasets:\n  d:\n    domain: 2024  #!\n    source: builtin:math\n",
        "datasets.d.domain = 2024: must be text; put it in quotes",
    ),
    "a mapping where text belongs": (
        HEAD + "datasets: {d: {source: {hf: x}}}  #!\n",
        'datasets.d.source = {"hf": "x"}: must be text',
    ),
    "a scalar where a list belongs": (
        "+matrix: {concurrency: 8}  #!\n",
        "matrix.concurrency = 8: must be a list",
    ),
    "a list where a mapping belongs": (
        "+defaults: [1]  #!\n",
        "defaults = [1]: must be a mapping",
    ),
    "arms that are no mapping": (
        "name: x\ntargets: {t: {source: 'hf:a/b'}}\narms: [a]  #!\n" + DATA,
        'arms = ["a"]: must be a mapping',
    ),
    "below the range": (
        "+matrix: {concurrency: [0]}  #!\n",
        "matrix.concurrency[0] = 0: must be at least 1",
    ),
    "negative temperature": (
        "+matrix: {temperature: [-0.5]}  #!\n",
        "matrix.temperature[0] = -0.5: must be at least 0.0",
    ),
    "more repeats than anybody means": (
        "+matrix: {repeats: 1001}  #!\n",
        "matrix.repeats = 1001: must be at most 1000",
    ),
    "more than a column holds": (
        "+defaults: {max_new_tokens: 2147483648}  #!\n",
        "defaults.max_new_tokens = 2147483648: must be at most 2147483647",
    ),
    "infinite temperature": (
        "+matrix: {temperature: [.inf]}  #!\n",
        "matrix.temperature[0] = .inf: must be a finite number",
    ),
    "a number too large for a float": (
        "+defaults: {arrivals: {rate: 1e999}}  #!\n",
        "defaults.arrivals.rate = 1e999: must be a finite number",
    ),
    "above the range": (
        "+matrix: {temperature: [1.0]}\ndefaults: {top_p: 1.5}  #!\n",
        "defaults.top_p = 1.5: must be at most 1.0",
    ),
    "a choice that does not exist": (
        'name: x\ntargets:\n  t:\n    source: "hf:a/b"\n    dtype: fp8  #!\narms: {a: {}}\n' + DATA,
        "targets.t.dtype = \"fp8\": must be one of 'auto', 'float32', 'bfloat16' or 'float16'",
    ),
    "a name that cannot be a folder": (
        'name: "my suite"  #!\ntargets: {t: {source: "hf:a/b"}}\narms: {a: {}}\n' + DATA,
        'name = "my suite": must match ^[a-z0-9][a-z0-9._-]*$',
    ),
    "an empty axis": (
        "+matrix: {concurrency: []}  #!\n",
        "matrix.concurrency = []: must not be empty",
    ),
    "no arms": (
        "name: x\ntargets: {t: {source: 'hf:a/b'}}\narms: {}  #!\n" + DATA,
        "arms = {}: must not be empty",
    ),
    "an entry left blank": (
        "name: x\ntargets: {t: {source: 'hf:a/b'}}\narms:\n  a: {}\n  target-only:  #!\n" + DATA,
        "arms.target-only: an entry without a value; `null` takes out an entry of an extended file, "
        "`{}` makes an arm without a drafter",
    ),
    "duplicate key": (
        "+matrix:\n  repeats: 2\n  concurrency: [1]\n  repeats: 3  #!\n",
        "matrix.repeats: given twice, first on line 11; keep one",
    ),
    "duplicate value of an axis": (
        "+matrix:\n  concurrency: [1, 8,\n    1]  #!\n",
        "matrix.concurrency[2] = 1: given twice; keep one",
    ),
    "duplicate temperature, once whole": (
        "+matrix: {temperature: [1, 1.0]}  #!\n",
        "matrix.temperature[1] = 1.0: given twice; keep one",
    ),
    "duplicate name in a selector": (
        "+exclude:\n- {arm: [lookup, lookup]}  #!\n",
        'exclude[0].arm[1] = "lookup": given twice; keep one',
    ),
    "a key that is not text": (
        "+matrix:\n  8: 1  #!\n",
        "matrix: the key 8 is not text; put it in quotes",
    ),
    "a merge key": (
        "+matrix:\n  <<: {repeats: 1}  #!\n",
        "matrix: the key << is not supported; share between files with `extends`",
    ),
    "a foreign tag": (
        "+matrix: {repeats: !!python/object/apply:os.system [ls]}  #!\n",
        "matrix.repeats: the tag tag:yaml.org,2002:python/object/apply:os.system is not supported; "
        "write a plain value",
    ),
    "a tagged scalar": (
        "+description: !secret key  #!\n",
        "description: the tag !secret is not supported; write a plain value",
    ),
    "a tag the value does not fit": (
        "+matrix: {repeats: !!int many}  #!\n",
        "matrix.repeats: 'many' is not a value of type int",
    ),
    "an alias to itself": (
        "+defaults: &a\n  arrivals: *a  #!\n",
        "defaults.arrivals: an alias that contains itself; write the value out",
    ),
    "unknown drafter": (
        HEAD + "  b:\n    drafter: n-gram  #!\n" + DATA,
        'arms.b.drafter = "n-gram": unknown drafter; did you mean ngram? allowed: draft_model, ngram; '
        "leave `drafter` out for a target-only arm",
    ),
    "unknown scheduler": (
        HEAD + "  b:\n    drafter: ngram\n    scheduler:\n      name: clever  #!\n" + DATA,
        'arms.b.scheduler = "clever": unknown scheduler; allowed: confident, fixed',
    ),
    "unknown backend": (
        HEAD + "  b:\n    drafter: ngram\n    backend: vlm  #!\n" + DATA,
        'arms.b.backend = "vlm": unknown backend; did you mean vllm? allowed: engine, vllm',
    ),
    "a drafter that is neither name nor mapping": (
        HEAD + "  b: {drafter: [ngram]}  #!\n" + DATA,
        'arms.b.drafter = ["ngram"]: must be a name or a mapping with a `name`',
    ),
    "a drafter without a name": (
        HEAD + "  b: {drafter: {block_size: 3}}  #!\n" + DATA,
        "arms.b.drafter.name: missing; needed here: name",
    ),
    "unknown option": (
        HEAD + "  b:\n    drafter:\n      name: ngram\n      max_ngramm: 3  #!\n" + DATA,
        "arms.b.drafter.options.max_ngramm = 3: unknown option; did you mean max_ngram? "
        "allowed: block_size, max_ngram, min_ngram",
    ),
    "unknown option in the long form": (
        HEAD + "  b:\n    drafter:\n      name: ngram\n      options:\n        gamma: 3  #!\n" + DATA,
        "arms.b.drafter.options.gamma = 3: unknown option; allowed: block_size, max_ngram, min_ngram",
    ),
    "an option given in both forms": (
        HEAD + "  b:\n    drafter:\n      name: ngram\n      options: {block_size: 3}\n"
        "      block_size: 4  #!\n" + DATA,
        "arms.b.drafter.block_size: given twice, also on line 8; keep one",
    ),
    "options that are no mapping": (
        HEAD + "  b:\n    drafter:\n      name: ngram\n      options: 3  #!\n" + DATA,
        "arms.b.drafter.options = 3: must be a mapping",
    ),
    "block size out of range": (
        HEAD + "  b: {drafter: {name: ngram, block_size: 65}}  #!\n" + DATA,
        "arms.b.drafter.options.block_size = 65: must be at most 64",
    ),
    "an option of a wrong type": (
        HEAD + '  b: {drafter: {name: ngram, block_size: "7"}}  #!\n' + DATA,
        'arms.b.drafter.options.block_size = "7": must be a whole number',
    ),
    "a missing option": (
        HEAD + "  b:\n    drafter: draft_model  #!\n" + DATA,
        "arms.b.drafter.options.model: missing; needed here: model",
    ),
    "options that contradict each other": (
        HEAD + "  b:\n    drafter: {name: ngram, min_ngram: 5, max_ngram: 2}  #!\n" + DATA,
        'arms.b.drafter.options = {"min_ngram": 5, "max_ngram": 2}: min_ngram = 5 is above max_ngram = 2',
    ),
    "an option of the scheduler": (
        HEAD + "  b:\n    drafter: ngram\n    scheduler: {name: confident, depth: 1}  #!\n" + DATA,
        "arms.b.scheduler.options.depth = 1: unknown option; allowed: nothing",
    ),
    "a scheduler with nothing to schedule": (
        HEAD + "  b:\n    scheduler: fixed  #!\n" + DATA,
        "arms.b.scheduler: an arm without a drafter has nothing to schedule; "
        "take it out or give the arm a drafter",
    ),
    "unknown target in the matrix": (
        "+matrix:\n  targets: [smal]  #!\n",
        'matrix.targets[0] = "smal": unknown target; did you mean small? allowed: small',
    ),
    "unknown arm in the matrix": (
        "+matrix:\n  arms:\n  - target-only\n  - eagle  #!\n",
        'matrix.arms[1] = "eagle": unknown arm; allowed: target-only, lookup',
    ),
    "unknown data set in exclude": (
        "+exclude:\n- dataset: maths  #!\n",
        'exclude[0].dataset = "maths": unknown data set; did you mean math? allowed: math, code',
    ),
    "unknown arm in include": (
        "+include:\n- {target: small, dataset: math, concurrency: 1, temperature: 0,\n"
        "   arm: [lookup, hi]}  #!\n",
        'include[0].arm[1] = "hi": unknown arm; allowed: target-only, lookup',
    ),
    "an include that lacks a field": (
        "+include:\n- {target: small, arm: [target-only, lookup], dataset: math, concurrency: 32}  #!\n",
        "include[0].temperature: missing; needed here: target, arm, dataset, concurrency, temperature",
    ),
    "a wrong single value in a selector": (
        "+exclude:\n- {concurrency: many}  #!\n",
        'exclude[0].concurrency = "many": must be a whole number',
    ),
    "an exclude that matches nothing": (
        "+exclude:\n- {arm: lookup, dataset: code}\n- {arm: lookup, concurrency: 64}  #!\n",
        "exclude[1]: takes nothing out: no cell of the matrix has these values; mend or delete it",
    ),
    "an exclude that matches everything": (
        "+exclude:  #!\n- {target: small}\n",
        "exclude: takes every cell out; leave some",
    ),
    "top_k without sampling": (
        "+defaults:\n  top_k: 50  #!\n",
        "defaults.top_k = 50: has no effect, every temperature is 0; "
        "take it out or add a temperature above 0",
    ),
    "top_p without sampling": (
        "+defaults:\n  top_p: 0.9  #!\n",
        "defaults.top_p = 0.9: has no effect, every temperature is 0; "
        "take it out or add a temperature above 0",
    ),
    "no target-only arm": (
        "name: x\ntargets: {t: {source: 'hf:a/b'}}\narms:  #!\n  b: {drafter: ngram}\n" + DATA,
        "arms: no target-only arm to compare with; add an arm without a drafter, such as `target-only: {}`",
    ),
    "a group without a target-only arm": (
        "+matrix:  #!\n  concurrency: [1, 8]\n  temperature: [0.0, 0.7]\n"
        "exclude:\n- {arm: target-only, dataset: code, concurrency: 8, temperature: 0.7}\n",
        "matrix: no target-only arm in the group target small, dataset code, concurrency 8, temperature 0.7, "
        "backend engine; add an arm without a drafter to it",
    ),
    "a backend without a target-only arm": (
        HEAD + "  b: {drafter: ngram, backend: vllm}\n" + DATA + "matrix: {repeats: 2}  #!\n",
        "matrix: no target-only arm in the group target t, dataset d, concurrency 1, temperature 0, "
        "backend vllm; add an arm without a drafter to it",
    ),
    "a file to extend that is not there": (
        "+extends: [nowhere.yaml]  #!\n",
        'extends[0] = "nowhere.yaml": no such file; the name is relative to the file it stands in',
    ),
    "something to extend that is no name": (
        "+extends:\n- 3  #!\n",
        "extends[0] = 3: must be a file name",
    ),
    "a suite that extends itself": (
        "+extends: [bad.yaml]  #!\n",
        'extends[0] = "bad.yaml": files extend each other in a circle (bad.yaml -> bad.yaml); take one out',
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_names_line_key_value_and_mend(case: str, write: Write, valid: str, components: Components) -> None:
    text, message = CASES[case]
    text = valid + text[1:] if text.startswith("+") else text
    line = next(number for number, content in enumerate(text.splitlines(), 1) if "#!" in content)
    path = write("suites/bad.yaml", text)
    with pytest.raises(BenchError) as caught:
        load_suite(path, components)
    assert str(caught.value) == f"suites/bad.yaml:{line}: {message}"


def test_all_problems_of_a_file_are_shown_together(write: Write, components: Components) -> None:
    path = write(
        "bad.yaml",
        "name: x\ntargets: {t: {source: 3}}\narms:\n  a: {drafter: nope}\ndatasets: {d: {source: 'hf:x'}}\n"
        "matrix:\n  arms: [b]\n  repeats: 0\n  repeats: 1\n",
    )
    with pytest.raises(BenchError) as caught:
        load_suite(path, components)
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[0] for line in lines] == [f"bad.yaml:{number}" for number in (2, 4, 7, 8, 9)]


def test_long_list_of_groups_is_cut(write: Write, valid: str, components: Components) -> None:
    matrix = f"matrix: {{arms: [lookup], concurrency: {list(range(1, 11))}}}\n"
    with pytest.raises(BenchError) as caught:
        load_suite(write("bad.yaml", valid + matrix), components)
    lines = str(caught.value).splitlines()
    assert len(lines) == 9
    assert lines.count("bad.yaml:10: matrix: 12 more groups have no target-only arm") == 1


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "{}\n"])
def test_empty_suite(text: str, write: Write, components: Components) -> None:
    with pytest.raises(
        BenchError, match=r"^bad\.yaml:1: the suite is empty; it needs the keys name, targets,"
    ):
        load_suite(write("bad.yaml", text), components)


@pytest.mark.parametrize("text", ["just words\n", "- a\n- b\n", "3\n"])
def test_not_a_mapping(text: str, write: Write, components: Components) -> None:
    with pytest.raises(
        BenchError, match=r"^bad\.yaml:1: the suite is not a mapping; it needs the keys name,"
    ):
        load_suite(write("bad.yaml", text), components)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("name: x\narms: [a\n", r"bad\.yaml:3: not valid YAML: "),
        ("name: x\n\tarms: 1\n", r"bad\.yaml:2: not valid YAML: "),
        ("name: x\ndescription: a: b\n", r"bad\.yaml:2: not valid YAML: "),
        ("name: x\n---\nname: y\n", r"bad\.yaml:2: not valid YAML: "),
        ("name: *nobody\n", r"bad\.yaml:1: not valid YAML: "),
        ("name: \x07\n", r"bad\.yaml: not valid YAML: "),
    ],
)
def test_not_yaml(text: str, where: str, write: Write, components: Components) -> None:
    with pytest.raises(BenchError, match=f"^{where}"):
        load_suite(write("bad.yaml", text), components)


def test_not_text(write: Write, components: Components) -> None:
    path = write("bad.yaml", "")
    path.write_bytes(b"name: \xff\xfe\n")
    with pytest.raises(BenchError, match=r"^bad\.yaml: not a text file in UTF-8 \(byte 6\)"):
        load_suite(path, components)


def test_no_such_suite_lists_those_beside_it(write: Write, valid: str, components: Components) -> None:
    write("suites/quickstart.yaml", valid)
    with pytest.raises(BenchError) as caught:
        load_suite(Path("suites/quick.yaml"), components)
    assert str(caught.value) == "suites/quick.yaml: no such suite file; beside it there are: quickstart.yaml"


def test_a_suite_file_outside_the_working_directory_is_named_in_full(
    tmp_path: Path, write: Write, components: Components, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("elsewhere/bad.yaml", "zzz: 1\n").absolute()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    with pytest.raises(BenchError) as caught:
        load_suite(path, components)
    assert all(line.startswith(f"{path}:1: ") for line in str(caught.value).splitlines())


FULL: dict[str, Any] = {
    "name": "x",
    "extends": ["base.yaml"],
    "targets": {"t": {"source": "hf:a/b", "sha256": "0", "dtype": "float32", "context_length": 64}},
    "arms": {
        "a": {},
        "b": {"drafter": {"name": "ngram", "block_size": 3}, "scheduler": {"name": "fixed", "options": {}}},
        "c": {"drafter": "ngram", "scheduler": "fixed", "backend": "engine"},
    },
    "datasets": {"d": {"source": "jsonl:x", "domain": "math", "limit": 3}},
    "defaults": {"arrivals": {"rate": 1.0}, "top_k": 3, "system": "s"},
    "matrix": {"arms": ["a", "b"], "concurrency": [1, 8], "temperature": [0.0, 1.0], "repeats": 2},
    "exclude": [{"arm": "b", "concurrency": 8}],
    "include": [{"target": "t", "arm": ["a", "c"], "dataset": "d", "concurrency": 32, "temperature": 0.5}],
}
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 0, 1.5, 10**30, float("inf"), "", "zz", "path:", [], {}, [[]], [{}], {"a": 1}]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of everything in the value, itself included."""
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return [path, *(found for key, child in children for found in places(child, (*path, key)))]


def put(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    """A copy of the value with another one at the path."""
    if not path:
        return odd
    if isinstance(value, dict):
        return {key: put(child, path[1:], odd) if key == path[0] else child for key, child in value.items()}
    return [put(child, path[1:], odd) if index == path[0] else child for index, child in enumerate(value)]


@given(path=st.sampled_from(places(FULL)), odd=ODD, shared=st.booleans())
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_stands_anywhere_the_answer_is_a_suite_or_lines_with_places(
    path: tuple[Any, ...], odd: Any, shared: bool, write: Write, valid: str, components: Components
) -> None:
    assert load_suite(write("base.yaml", valid), components)
    write("x.yaml", yaml.safe_dump(FULL))
    assert load_suite(Path("x.yaml"), components)
    write("x.yaml", yaml.safe_dump(put(FULL, path, odd)))
    if shared:
        write("y.yaml", "name: y\nextends: [x.yaml]\narms: {b: {drafter: {max_ngram: 4}}}\n")
    try:
        loaded = load_suite(Path("y.yaml" if shared else "x.yaml"), components)
    except BenchError as error:
        for line in str(error).splitlines():
            assert re.match(r"(base|x|y)\.yaml:[1-9][0-9]*: \S", line), line
    else:
        assert expand(loaded.suite)
