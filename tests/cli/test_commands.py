"""What each command prints where."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli.group import bench
from harness.cli.output import page_console, progress_console, write_document
from tests.synthetic import ArmSpec, Scenario, simulate, write


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of the suite `made-up`."""
    folder = tmp_path_factory.mktemp("results")
    arms = {"target-only": ArmSpec(), "drafter-a": ArmSpec((0.8, 0.6))}
    write(folder / "made-up/one", simulate(Scenario(arms=arms, prompts=6, output_tokens=20)))
    return folder


def invoke(*arguments: str | Path) -> Any:
    return CliRunner().invoke(bench, [str(argument) for argument in arguments])


def test_show_prints_the_arms(results: Path) -> None:
    answer = invoke("show", "made-up", "--results", results)
    assert answer.exit_code == 0, answer.stderr
    assert "target-only" in answer.stdout and "drafter-a" in answer.stdout
    assert answer.stderr == ""


def test_show_json_is_one_document_and_nothing_else(results: Path) -> None:
    answer = invoke("show", results / "made-up/one", "--json")
    assert answer.exit_code == 0, answer.stderr
    assert answer.stdout.count("\n") == 1
    assert {row["arm"] for row in json.loads(answer.stdout)["rows"]} == {"target-only", "drafter-a"}


def test_figures_names_the_files_it_wrote(results: Path, tmp_path: Path) -> None:
    answer = invoke("figures", "made-up", "--results", results, "--out", tmp_path / "out")
    assert answer.exit_code == 0, answer.stderr
    files = [Path(line) for line in answer.stdout.splitlines()]
    assert sorted(file.suffix for file in files) == [".csv", ".png", ".svg"]
    assert sorted(files) == sorted((tmp_path / "out").iterdir())


def test_figures_go_into_the_run_unless_told_otherwise(results: Path) -> None:
    answer = invoke("figures", "made-up", "--results", results)
    assert {Path(line).parent for line in answer.stdout.splitlines()} == {results / "made-up/one/figures"}
    assert invoke("show", "made-up", "--results", results).exit_code == 0  # they are in nobody's way


def test_show_of_a_damaged_run(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{")
    answer = invoke("show", tmp_path)
    assert answer.exit_code == 2
    assert answer.stderr.startswith("error: ") and "run.json" in answer.stderr


@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_suite_that_is_not_there(tmp_path: Path, command: str) -> None:
    answer = invoke(command, tmp_path / "none.yaml")
    assert answer.exit_code == 2
    assert "none.yaml" in answer.stderr and answer.stdout == ""


def test_doctor_always_succeeds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    answer = invoke("doctor", "--json")
    assert answer.exit_code == 0 and answer.stderr == ""
    assert answer.stdout.count("\n") == 1
    sections = json.loads(answer.stdout)["sections"]
    assert [check["name"] for check in sections["schedulers"]] == ["fixed"]
    screen = invoke("doctor")
    assert screen.exit_code == 0
    assert "no hf:" in screen.stdout and "unset HF_HUB_OFFLINE" in screen.stdout


def test_progress_leaves_standard_output_alone_unless_it_is_a_terminal() -> None:
    assert progress_console(as_json=True).stderr
    assert progress_console(as_json=False).stderr  # pytest captures standard output: no terminal
    assert not page_console().stderr


def test_a_document_has_no_numbers_that_json_lacks() -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_document({"tau": math.nan})
