"""`bench plan` before, in the middle of and after a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.executors.workbench import Workbench


def plan(workbench: Workbench) -> dict[str, Any]:
    answer = workbench.invoke("plan", workbench.folder / "tiny.yaml", "--json")
    assert answer.exit_code == 0, answer.stderr
    assert answer.stdout.count("\n") == 1
    document: dict[str, Any] = json.loads(answer.stdout)
    return document


def states(document: dict[str, Any]) -> list[str]:
    return [cell["state"] for cell in document["cells"]]


def text(workbench: Workbench) -> str:
    answer = workbench.invoke("plan", workbench.folder / "tiny.yaml")
    assert answer.exit_code == 0 and answer.stderr == ""
    return " ".join(answer.stdout.split())


def test_states_and_time_left(workbench: Workbench) -> None:
    suite = workbench.suite(arms=workbench.arms("target-only", "n-gram"))
    before = plan(workbench)
    assert (before["suite"], before["run"]) == ("tiny", None)
    assert states(before) == ["to do"] * 4 and {cell["basis"] for cell in before["cells"]} == {"guess"}
    assert before["seconds_left"] == pytest.approx(sum(cell["seconds"] for cell in before["cells"]))
    assert "4 cells: 4 to do; about" in text(workbench) and "a guess" in text(workbench)
    assert "no run of this suite" in text(workbench)
    assert not workbench.results.exists()  # a plan writes nothing

    path = Path(workbench.measure(suite)["run"])
    after = plan(workbench)
    assert after["run"] == str(path)
    assert states(after) == ["measured"] * 4 and after["seconds_left"] == 0
    walls = workbench.frames.cells["wall_s"].tolist()
    assert [cell["seconds"] for cell in after["cells"]] == walls
    assert "4 cells: 4 measured; nothing left to measure" in text(workbench)
    assert f"measured so far in {path}" in workbench.invoke("plan", suite).stdout

    cells = json.loads((path / "run.json").read_text())["cells"]
    assert [cell["label"] for cell in cells] == [cell["label"] for cell in after["cells"]]
    (path / "cells" / f"{cells[3]['cell_id']}.parquet").unlink()
    during = plan(workbench)
    assert states(during) == ["measured"] * 3 + ["to do"]
    assert during["cells"][3]["basis"] == "same group"  # the other arm on the same prompts
    assert during["seconds_left"] == pytest.approx(walls[2])
    assert "4 cells: 3 measured, 1 to do; about 1 s left" in text(workbench)


def test_failed_cells_are_left_to_measure(workbench: Workbench) -> None:
    suite = workbench.suite(arms=workbench.arms("target-only"))
    (workbench.folder / "chat.jsonl").unlink()
    workbench.measure(suite, code=3)
    document = plan(workbench)
    assert states(document) == ["measured", "failed"] and document["seconds_left"] > 0
    assert "2 cells: 1 measured, 1 failed; about" in text(workbench)


def test_what_another_suite_or_environment_measured_does_not_count(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    arms = workbench.arms("target-only")
    workbench.measure(workbench.suite(arms=arms))
    workbench.suite(arms=arms, description="new words")
    assert states(plan(workbench)) == ["measured"] * 2
    workbench.suite(arms=arms, defaults={"max_new_tokens": 5})
    assert states(plan(workbench)) == ["to do"] * 2
    workbench.suite(arms=arms)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert states(plan(workbench)) == ["to do"] * 2
