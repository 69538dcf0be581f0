"""A RUN argument finds the run that a person means, or says what there is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.cli.locate import locate_run
from harness.errors import BenchError

SUITE = """\
name: quick
targets: {t: {source: "path:model"}}
arms: {target-only: {}}
datasets: {d: {source: "builtin:math"}}
"""


def make_run(results: Path, suite: str, run: str, written: int) -> Path:
    folder = results / suite / run
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{}")
    os.utime(folder / "run.json", (written, written))
    return folder


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    make_run(folder, "quick", "c", 1000)
    make_run(folder, "quick", "a", 3000)
    make_run(folder, "quick", "b", 2000)
    make_run(folder, "other", "z", 9000)
    return folder


def test_a_run_directory_is_itself(results: Path) -> None:
    assert locate_run(str(results / "quick/c"), results) == results / "quick/c"


def test_a_suite_is_its_latest_run(results: Path) -> None:
    assert locate_run("quick", results) == results / "quick/a"


def test_going_on_with_a_run_makes_it_the_latest(results: Path) -> None:
    os.utime(results / "quick/c/run.json", (5000, 5000))
    assert locate_run("quick", results) == results / "quick/c"


def test_a_suite_file_is_its_suite(results: Path, tmp_path: Path) -> None:
    (tmp_path / "any name.yaml").write_text(SUITE)
    assert locate_run(str(tmp_path / "any name.yaml"), results) == results / "quick/a"


def test_a_suite_file_without_a_run(results: Path, tmp_path: Path) -> None:
    file = tmp_path / "new.yaml"
    file.write_text(SUITE.replace("quick", "new"))
    with pytest.raises(BenchError, match=r"holds no run of the suite .*new\.yaml. Measure it: bench run "):
        locate_run(str(file), results)


def test_a_folder_of_the_same_name_is_in_nobodys_way(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "quick").mkdir()
    monkeypatch.chdir(tmp_path)
    assert locate_run("quick", results) == results / "quick/a"


@pytest.mark.parametrize("run", ["quack", "", ".", "..", "quick/none", "/nowhere/at/all"])
def test_no_such_run(results: Path, run: str) -> None:
    with pytest.raises(BenchError, match=r"neither a run directory .* suites with runs there: other, quick"):
        locate_run(run, results)


def test_no_run_at_all(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="no suite has a run there"):
        locate_run("quick", tmp_path / "results")
