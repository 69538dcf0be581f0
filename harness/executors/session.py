"""What `bench run` and `bench plan` do, from a suite file to a run directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from harness.backends.contract import ResolvedCell
from harness.environment import capture, environment_id
from harness.errors import BenchError
from harness.executors.local import LocalExecutor
from harness.executors.progress import Progress
from harness.executors.resolver import Resolver
from harness.store.rundir import DONE, PlannedCell, RunDirectory
from harness.suites.expand import expand
from harness.suites.load import LoadedSuite, load_suite
from harness.suites.plan import Known, plan as plan_rows, time_left
from harness.suites.plan_table import duration, plan_table, summary
from harness.tables.comparison import render
from harness.tables.document import to_json


def run(
    suite: Path, *, run: str | None, new: bool, results: Path, executor: str, console: Console
) -> dict[str, Any]:
    """Measure what is left of a suite and print the comparison; returns it as a JSON document.

    run: name of the run directory. Without one, the latest run of the same suite, code and machine goes on, and
    if there is none, or `new` is set, a new run begins. Raises BenchError before anything is measured when the
    suite or the folder is unusable, and at the end when cells failed.
    """
    loaded = load_suite(suite)
    environment = capture()
    identity = environment_id(environment)
    console.print(f"[bold]{loaded.suite.name}[/bold]: {loaded.suite.description}", highlight=False)
    console.print("resolving models and prompts", style="dim")
    resolver = Resolver(loaded.folder)
    cells = [resolver.resolve(cell) for cell in expand(loaded.suite)]
    planned = [PlannedCell(cell.cell_id, cell.cell.label) for cell in cells]
    text = _as_yaml(loaded)
    path = _run_path(results / loaded.suite.name, run, new, identity, planned)
    content = {"suite_yaml": text, "environment_id": identity, "environment": environment, "planned": planned}
    if (path / "run.json").exists():
        directory = RunDirectory.open(path, write=True)
        with closing(directory):
            directory.replan(**content)
            return _measure(directory, cells, identity, console)
    directory = RunDirectory.create(path, suite=loaded.suite.name, **content)
    with closing(directory):
        return _measure(directory, cells, identity, console)


def _measure(
    directory: RunDirectory, cells: Sequence[ResolvedCell], identity: str, console: Console
) -> dict[str, Any]:
    known = _known(directory)
    left = [cell for cell in cells if _status(known, cell.cell.label) not in DONE]
    console.print(
        f"{len(cells) - len(left)} of {len(cells)} cells are measured already, {len(left)} to do, in {directory.path}",
        highlight=False,
        soft_wrap=True,
    )
    with Progress(console, [cell.cell for cell in cells], known) as progress:
        LocalExecutor(directory, identity, progress).execute(left)
    frames = directory.frames(lists=False)
    render(frames, console, directory.plan.cells)
    failed = int((frames.cells["status"] == "failed").sum())
    return {"run": str(directory.path), "failed": failed, **to_json(frames)}


def plan(suite: Path, *, results: Path, console: Console) -> dict[str, Any]:
    """Print the cells of a suite, what its latest run has measured of them, and the time left.

    Downloads and loads nothing: cells are recognised by their labels.
    """
    loaded = load_suite(suite)
    cells = expand(loaded.suite)
    latest = next(_runs(results / loaded.suite.name), None)
    known = _known(RunDirectory.open(latest)) if latest else {}
    rows = plan_rows(cells, known)
    console.print(plan_table(rows))
    console.print(summary(rows), highlight=False, soft_wrap=True)
    where = f"measured so far in {latest}" if latest else f"no run of this suite in {results} yet"
    console.print(where, style="dim", highlight=False, soft_wrap=True)
    return {
        "suite": loaded.suite.name,
        "run": str(latest) if latest else None,
        "seconds_left": time_left(rows, retry_failed=True),
        "cells": [
            {"label": row.cell.label, "state": row.state, "seconds": row.seconds, "basis": row.basis}
            for row in rows
        ],
    }


def _known(directory: RunDirectory) -> dict[str, Known]:
    """What the run holds, by label."""
    labels = {cell.cell_id: cell.label for cell in directory.plan.cells}
    committed = directory.frames(lists=False).cells
    return {
        labels[cell_id]: Known(status, wall_s)
        for cell_id, status, wall_s in zip(
            committed["cell_id"], committed["status"], committed["wall_s"], strict=True
        )
    }


def _status(known: dict[str, Known], label: str) -> str | None:
    return known[label].status if label in known else None


def _runs(folder: Path) -> Iterator[Path]:
    """Runs of a suite, the last written first."""
    files = sorted(folder.glob("*/run.json"), key=lambda file: -file.stat().st_mtime_ns)
    return (file.parent for file in files)


def _run_path(
    folder: Path, name: str | None, new: bool, identity: str, planned: Sequence[PlannedCell]
) -> Path:
    if name is not None:
        if new and (folder / name / "run.json").exists():
            raise BenchError(f"--new: the run {folder / name} exists already; choose another --run name")
        return folder / name
    if not new:
        for path in _runs(folder):
            plan = RunDirectory.open(path).plan
            if plan.environment_id == identity and plan.cells == list(planned):
                return path
    return folder / datetime.now(UTC).strftime("%Y%m%d-%H%M%S")


def _as_yaml(loaded: LoadedSuite) -> str:
    return yaml.safe_dump(
        loaded.suite.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=100
    )
