"""Which run the same command goes on with, and when it begins another."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.store.rundir import RunDirectory
from tests.executors.workbench import PROMPTS, Workbench


@pytest.fixture
def small(workbench: Workbench) -> Workbench:
    """Two cells: one arm on two data sets."""
    workbench.suite(arms=workbench.arms("target-only"))
    return workbench


def run(workbench: Workbench, *options: object, code: int = 0) -> tuple[Path, int]:
    """Where the run is, and how many cells were measured by this call."""
    before = {file: file.stat().st_mtime_ns for file in workbench.results.glob("*/*/cells/*.parquet")}
    path = Path(workbench.measure(workbench.folder / "tiny.yaml", *options, code=code)["run"])
    after = {file: file.stat().st_mtime_ns for file in workbench.results.glob("*/*/cells/*.parquet")}
    return path, len(after.items() - before.items())


def states(path: Path) -> list[str]:
    return list(RunDirectory.open(path).committed().values())


def test_a_complete_run_is_measured_once(small: Workbench) -> None:
    first = run(small)
    assert first[1] == 2
    assert run(small) == (first[0], 0)


def test_new_starts_another_run_and_is_then_the_latest(small: Workbench) -> None:
    first, second = run(small), run(small, "--new")
    assert second[1] == 2 and second[0] != first[0]
    assert run(small) == (second[0], 0)
    assert small.runs() == sorted([first[0], second[0]])


def test_a_named_run_is_made_and_then_goes_on(small: Workbench) -> None:
    first = run(small, "--run", "one")
    assert run(small, "--run", "two") == (small.results / "tiny/two", 2)
    assert run(small, "--run", "one") == (first[0], 0)
    answer = small.invoke("run", small.folder / "tiny.yaml", "--run", "one", "--new")
    assert answer.exit_code == 2 and "--new: the run" in answer.stderr and "exists already" in answer.stderr


@pytest.mark.parametrize("name", ["a/b", "..", "", "/tmp/elsewhere"])
def test_the_name_of_a_run_is_a_folder_name(small: Workbench, name: str) -> None:
    answer = small.invoke("run", small.folder / "tiny.yaml", "--run", name)
    assert answer.exit_code == 2 and f"error: --run {name!r}: not a folder's name" in answer.stderr
    assert not small.results.exists()


def test_another_environment_starts_another_run(small: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(small)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    second = run(small)
    assert second[1] == 2 and second[0] != first[0]
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert run(small) == (first[0], 0)


def test_a_named_run_goes_on_in_another_environment_and_says_so(
    small: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = run(small, "--run", "one")
    for name in ("cells", "requests", "rounds"):
        sorted((path / name).iterdir())[0].unlink()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    answer = small.invoke("run", small.folder / "tiny.yaml", "--run", "one")
    assert answer.exit_code == 0
    assert f"{path}: was last measured with other code or on another machine" in answer.stderr
    known = {file.stem for file in (path / "environments").iterdir()}
    assert len(known) == 2 and set(RunDirectory.open(path).frames().cells["environment_id"]) == known


def test_another_suite_of_the_same_name_starts_another_run(small: Workbench) -> None:
    first = run(small)
    small.suite(arms=small.arms("target-only"), defaults={"max_new_tokens": 5})
    second = run(small)
    assert second[1] == 2 and second[0] != first[0]


def test_what_a_suite_says_of_itself_and_where_it_lies_does_not_count(small: Workbench) -> None:
    first = run(small)
    moved = small.folder / "moved"
    shutil.copytree(small.models.target, moved)
    small.suite(
        arms=small.arms("target-only"), description="new words", targets={"llama": small.target(moved)}
    )
    assert run(small) == (first[0], 0)


def test_changed_prompts_start_another_run(small: Workbench) -> None:
    first = run(small)
    small.prompts("math", ["What is 18 + 25?", *PROMPTS["math"][1:]])
    second = run(small)
    assert second[1] == 2 and second[0] != first[0]


def test_failed_cells_are_measured_again_in_the_same_run(small: Workbench) -> None:
    file = small.folder / "chat.jsonl"
    content = file.read_text()
    file.unlink()
    path, count = run(small, code=3)
    assert count == 2 and states(path) == ["ok", "failed"]
    assert run(small, code=3) == (path, 1)
    file.write_text(content)  # the cell's id is another one now: it counts by its content
    assert run(small) == (path, 1)
    assert states(path) == ["ok", "ok"]
    assert run(small) == (path, 0)


def test_an_unfinished_run_goes_on_where_it_stopped(small: Workbench) -> None:
    path, _ = run(small)
    last = json.loads((path / "run.json").read_text())["cells"][-1]["cell_id"]
    (path / "cells" / f"{last}.parquet").unlink()  # as if killed before the last rename
    (path / "rounds" / ".tmp-1-x.parquet").write_bytes(b"half")
    assert run(small) == (path, 1)
    assert states(path) == ["ok", "ok"] and not list(path.rglob(".tmp-*"))


def break_run(path: Path, **fields: Any) -> None:
    content = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**content, **fields}))


def test_a_latest_run_that_cannot_be_read_is_an_error_and_an_old_one_is_not(small: Workbench) -> None:
    path, _ = run(small)
    break_run(path, schema_version="0")
    answer = small.invoke("run", small.folder / "tiny.yaml")
    assert answer.exit_code == 2
    assert f"{path / 'run.json'}: schema version '0', but this program reads version '1'" in answer.stderr
    assert "--new starts a run beside it" in answer.stderr
    for command in ("plan", "show"):
        assert small.invoke(command, small.folder / "tiny.yaml").exit_code == 2
    assert small.invoke("run", small.folder / "tiny.yaml", "--run", path.name).exit_code == 2
    second = run(small, "--new")
    os.utime(path / "run.json", (0, 0))
    small.suite(arms=small.arms("target-only"), defaults={"max_new_tokens": 5})  # neither run fits
    assert run(small)[0] not in (path, second[0])
