"""What is wrong outside the program: a sentence with the mend, and the other cells are measured all the same."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from harness.engine.contracts import DrafterContext, DrafterPlugin, TargetFeatures
from harness.registry import drafters
from tests.executors.workbench import COMMAND, PROMPTS, Workbench

GOOD = {"math": {"source": "jsonl:math.jsonl"}}


def unknown_data_set(bench: Workbench) -> dict[str, Any]:
    return {"datasets": {"odd": {"source": "builtin:riddles"}, **GOOD}}


def missing_file(bench: Workbench) -> dict[str, Any]:
    return {"datasets": {"odd": {"source": "jsonl:nowhere.jsonl"}, **GOOD}}


def empty_data_set(bench: Workbench) -> dict[str, Any]:
    return {"datasets": {"odd": {"source": bench.prompts("none", [])}, **GOOD}}


def rendered_prompt(bench: Workbench) -> dict[str, Any]:
    source = bench.prompts("rendered", ["<|im_start|>user\nHello<|im_end|>\n"])
    return {"datasets": {"odd": {"source": source}, **GOOD}}


def long_prompt(bench: Workbench) -> dict[str, Any]:
    source = bench.prompts("long", ["Short.", "word " * 200])
    return {"datasets": {"odd": {"source": source}, **GOOD}}


def small_context(bench: Workbench) -> dict[str, Any]:
    return {"datasets": GOOD, "targets": {"odd": bench.target(context_length=30), "llama": bench.target()}}


def missing_model(bench: Workbench) -> dict[str, Any]:
    return {"datasets": GOOD, "targets": {"odd": {"source": "path:nowhere"}, "llama": bench.target()}}


def other_hash(bench: Workbench) -> dict[str, Any]:
    return {"datasets": GOOD, "targets": {"odd": bench.target(sha256="0" * 64), "llama": bench.target()}}


def malformed_source(bench: Workbench) -> dict[str, Any]:
    return {"datasets": GOOD, "targets": {"odd": {"source": "gpt"}, "llama": bench.target()}}


def no_such_device(bench: Workbench) -> dict[str, Any]:
    return {
        "datasets": GOOD,
        "targets": {"odd": bench.target() | {"device": "warp:9"}, "llama": bench.target()},
    }


def foreign_draft_model(bench: Workbench) -> dict[str, Any]:
    drafter = {"name": "draft_model", "source": f"path:{bench.models.foreign}"}
    return {"datasets": GOOD, "arms": {**bench.arms("target-only"), "odd": {"drafter": drafter}}}


def missing_draft_model(bench: Workbench) -> dict[str, Any]:
    drafter = {"name": "draft_model", "source": "path:nowhere"}
    return {"datasets": GOOD, "arms": {**bench.arms("target-only"), "odd": {"drafter": drafter}}}


def draft_model_of_another_hash(bench: Workbench) -> dict[str, Any]:
    drafter = {"name": "draft_model", "source": f"path:{bench.models.draft}", "sha256": "0" * 64}
    return {"datasets": GOOD, "arms": {**bench.arms("target-only"), "odd": {"drafter": drafter}}}


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (unknown_data_set, ["Unknown data set 'builtin:riddles'", "builtin:math", "jsonl:file"]),
        (missing_file, ["nowhere.jsonl", "Correct the path"]),
        (empty_data_set, ["'jsonl:none.jsonl' is empty", "at least one prompt"]),
        (rendered_prompt, ["Prompt 1", "'<|im_start|>'", "applied twice", "plain text"]),
        (long_prompt, ["'odd'", "prompt 2 has ", " tokens", "context of 512 tokens", "lower max_new_tokens"]),
        (small_context, ["'math'", "max_new_tokens = 24", "context of 30 tokens", "context_length"]),
        (missing_model, ["path:nowhere", "no folder", "Correct the path"]),
        (other_hash, ["hashes to", "0" * 64, "Correct `sha256`"]),
        (malformed_source, ["'gpt' is malformed", "hf:org/name"]),
        (no_such_device, ["device: 'warp:9'", "use auto or cpu"]),
        (
            foreign_draft_model,
            ["arm 'odd'", "another tokenizer", "290 and 320 entries", "target's own family"],
        ),
        (missing_draft_model, ["path:nowhere", "no folder", "Correct the path"]),
        (draft_model_of_another_hash, ["hashes to", "Correct `sha256`"]),
    ],
)
def test_a_cell_fails_with_its_reason_and_the_others_go_on(
    workbench: Workbench, case: Callable[[Workbench], dict[str, Any]], words: list[str]
) -> None:
    suite = workbench.suite(**{"arms": workbench.arms("target-only"), **case(workbench)})
    answer = workbench.invoke("run", suite)
    assert answer.exit_code == 3
    cells = workbench.frames.cells
    odd = (cells[["target", "dataset", "arm"]] == "odd").any(axis=1)
    assert odd.any() and set(cells.loc[odd, "status"]) == {"failed"}
    assert (
        (~odd).any() and set(cells.loc[~odd, "status"]) == {"ok"} and cells.loc[~odd, "reason"].isna().all()
    )
    for reason in cells.loc[odd, "reason"]:
        for word in words:
            assert word in reason
    last = f"incomplete: {odd.sum()} of {len(cells)} cells failed; the same command measures them again"
    assert answer.stderr.splitlines()[-1] == last
    assert "Traceback" not in answer.stderr
    assert " cells are not ok and count in nothing above" in answer.stderr


def test_a_run_in_which_every_cell_fails_still_ends_in_order(workbench: Workbench) -> None:
    suite = workbench.suite(targets={"gone": {"source": "path:nowhere"}})
    document = workbench.measure(suite, "--new", code=3)
    assert (document["failed"], document["planned"], document["rows"]) == (6, 6, [])
    assert len(document["not_ok"]) == 6
    assert (workbench.run / "environments").is_dir() and len(
        list((workbench.run / "environments").iterdir())
    ) == 1
    again = workbench.invoke("run", suite, "--new").stderr.splitlines()[-1]
    assert again.endswith("the same command without --new measures them again")


def test_an_unreachable_hub_in_a_process_of_its_own(workbench: Workbench) -> None:
    targets = {
        "far": {"source": "hf:org/far-away"},
        "gone": {"source": "path:gone"},
        "llama": workbench.target(),
    }
    suite = workbench.suite(targets=targets, datasets=GOOD, arms=workbench.arms("target-only"))
    offline = {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(workbench.folder / "hub"), "OMP_NUM_THREADS": "1"}
    answer = subprocess.run(
        [*COMMAND, "run", suite, "--json", "--results", workbench.results],
        capture_output=True,
        text=True,
        env=os.environ | offline,
        check=False,
    )
    assert answer.returncode == 3, answer.stderr
    document = json.loads(answer.stdout)  # nothing else is on standard output
    assert (document["planned"], document["failed"]) == (3, 2)
    reasons = {cell["target"]: cell["reason"] for cell in document["not_ok"]}
    assert "cannot be reached" in reasons["far"] and "hf download org/far-away" in reasons["far"]
    assert "there is no folder" in reasons["gone"]
    assert {row["target"] for row in document["rows"]} == {"llama"}
    assert answer.stderr.endswith("2 of 3 cells failed; the same command measures them again\n")
    assert "Traceback" not in answer.stderr and "Loading weights" not in answer.stderr


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    block_size: int = 2


class Kaboom:
    """Breaks when it is asked for its first draft."""

    block_size, needs = 2, TargetFeatures()

    def begin(self, requests: object, features: object) -> None:
        pass

    def propose(self, batch: object) -> None:
        raise KeyError("a fault in the drafter")


def build_nothing(options: Options, context: DrafterContext) -> Any:
    raise ZeroDivisionError("a fault in the building")


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda options, context: Kaboom(), "KeyError: 'a fault in the drafter'"),
        (build_nothing, "ZeroDivisionError: a fault in the building"),
    ],
)
def test_a_faulty_drafter_fails_its_own_cells_only(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch, build: Any, reason: str
) -> None:
    plugin = DrafterPlugin(name="faulty", options=Options, build=build)
    monkeypatch.setitem(drafters()._load, "faulty", lambda: plugin)
    arms = {"faulty": {"drafter": {"name": "faulty"}}, **workbench.arms("target-only", "n-gram")}
    answer = workbench.invoke("run", workbench.suite(arms=arms))
    assert answer.exit_code == 3
    cells = workbench.frames.cells
    assert dict(zip(cells["arm"], cells["status"], strict=True)) == {
        "faulty": "failed",
        "target-only": "ok",
        "n-gram": "ok",
    }
    assert set(cells.loc[cells["arm"] == "faulty", "reason"]) == {reason}
    assert answer.stderr.count("Traceback (most recent call last)") == 2  # one a cell, to find the fault with
    assert reason in answer.stderr


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"matrix": {"arms": ["target-only", "medusa"]}}, ["tiny.yaml", "unknown arm", '"medusa"', "n-gram"]),
        ({"arms": {"a": {"drafter": {"name": "eagle9"}}}}, ["unknown drafter", '"eagle9"', "ngram"]),
        ({"matrix": {"concurency": [1]}}, ["concurency", "concurrency"]),
        ({"defaults": {"max_new_tokens": "many"}}, ["max_new_tokens", '"many"']),
        ({"matrix": {"arms": ["n-gram"]}}, ["target-only"]),
    ],
)
@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_wrong_suite(
    workbench: Workbench, command: str, sections: dict[str, Any], words: list[str]
) -> None:
    answer = workbench.invoke(command, workbench.suite(**sections))
    assert answer.exit_code == 2 and answer.stdout == ""
    assert answer.stderr.startswith("error: ") and "Traceback" not in answer.stderr
    for word in words:
        assert word in answer.stderr
    assert not workbench.results.exists()


def test_a_suite_that_is_no_yaml(workbench: Workbench) -> None:
    suite = workbench.folder / "tiny.yaml"
    suite.write_text("name: [tiny\ntargets: }")
    answer = workbench.invoke("run", suite)
    assert answer.exit_code == 2 and "tiny.yaml" in answer.stderr and "Traceback" not in answer.stderr


@pytest.mark.parametrize("at", ["results", "results/tiny", "results/tiny/one"])
def test_a_results_folder_that_cannot_be_written(workbench: Workbench, at: str) -> None:
    file = workbench.folder / at
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("in the way")
    suite = workbench.suite(arms=workbench.arms("target-only"))
    for options in [["--run", "one"]] if at.endswith("one") else [[], ["--run", "one"]]:
        answer = workbench.invoke("run", suite, *options)
        assert answer.exit_code == 2 and answer.stderr.splitlines()[-1].startswith(f"error: {file}")
        assert "cannot write" in answer.stderr and "choose another results folder" in answer.stderr
    assert file.read_text() == "in the way"


@pytest.mark.parametrize("table", ["cells", "requests", "rounds"])
def test_a_truncated_table_is_named_with_a_mend_that_works(workbench: Workbench, table: str) -> None:
    suite = workbench.suite(arms=workbench.arms("target-only"))
    workbench.measure(suite)
    run = workbench.run
    files = sorted((run / table).iterdir())
    before = {file: file.read_bytes() for file in files}
    files[0].write_bytes(before[files[0]][: len(before[files[0]]) // 2])
    for command, what in (("show", run), ("run", suite), ("plan", suite), ("figures", run)):
        answer = workbench.invoke(command, what)
        assert answer.exit_code == 2, command
        assert answer.stderr.splitlines()[-1].startswith(f"error: {files[0]}: damaged or cut short")
        assert f"{table}/{files[0].name}" in answer.stderr and "run again" in answer.stderr
    for name in ("cells", "requests", "rounds"):  # the mend
        (run / name / files[0].name).unlink()
    answer = workbench.invoke("run", suite)
    assert answer.exit_code == 0 and "1 of 2 cells are measured already, 1 to do" in answer.stderr
    assert all(file.read_bytes() == before[file] for file in files[1:])
    assert len(workbench.frames.cells) == 2


def test_a_run_directory_that_is_damaged(workbench: Workbench) -> None:
    suite = workbench.suite(
        arms=workbench.arms("target-only"), datasets={"math": {"source": "jsonl:math.jsonl"}}
    )
    workbench.measure(suite, "--run", "one")
    (workbench.results / "tiny/one/run.json").write_text('{"schema_version": "1"')
    for options in ([], ["--run", "one"]):
        answer = workbench.invoke("run", suite, *options)
        assert answer.exit_code == 2 and "run.json: damaged" in answer.stderr


def test_a_limit_beyond_the_data_set_takes_all_there_are(workbench: Workbench) -> None:
    datasets = {"math": {"source": "jsonl:math.jsonl", "limit": 1000}}
    workbench.measure(workbench.suite(datasets=datasets, arms=workbench.arms("target-only")))
    assert workbench.frames.cells["requests"].tolist() == [len(PROMPTS["math"])]
