"""What `bench run` and `bench plan` do, from a suite file to a run directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

import yaml
from rich.console import Console
from rich.markup import escape

from harness.backends.contract import ResolvedCell
from harness.environment import capture, environment_id
from harness.executors.choice import goes_on, latest, new_folder
from harness.executors.local import LocalExecutor
from harness.executors.progress import Progress
from harness.executors.resolver import Resolver
from harness.store.rundir import DONE, PlannedCell, RunDirectory
from harness.suites.expand import expand
from harness.suites.load import LoadedSuite, load_suite
from harness.suites.plan import Known, time_left
from harness.suites.plan import plan as plan_rows
from harness.suites.plan_table import plan_table
from harness.tables.comparison import render
from harness.tables.document import to_json

_ELSEWHERE = (
    "{path}: was last measured with other code or on another machine (environments/ has both); cells measured then "
    "are kept, so do not compare their speed with that of cells measured now. --run with another name starts afresh."
)


class _Content(TypedDict):
    """What a run directory is told before the first cell, new or not."""

    suite_yaml: str
    environment_id: str
    environment: dict[str, Any]
    planned: list[PlannedCell]


def run(
    suite: Path, *, run: str | None, new: bool, results: Path, executor: str, console: Console
) -> dict[str, Any]:
    """Measure what is left of a suite and print the comparison; returns it as a JSON document.

    run: name of the run directory. Without one, the latest run of the same suite, code and machine goes on, and
    if there is none, or `new` is set, a new run begins. Cells that fail are committed as such, and counted in the
    document's `failed`. Raises BenchError when the suite or the folder is unusable.
    """
    loaded = load_suite(suite)
    environment = capture()
    identity = environment_id(environment)
    about = f": {escape(loaded.suite.description)}" if loaded.suite.description else ""
    console.print(f"[bold]{loaded.suite.name}[/bold]{about}", highlight=False, soft_wrap=True)
    console.print("resolving models and prompts", style="dim")
    resolver = Resolver(loaded.folder)
    cells = [resolver.resolve(cell) for cell in expand(loaded.suite)]
    planned = [PlannedCell(cell.cell_id, cell.cell.label) for cell in cells]
    text = _as_yaml(loaded)
    folder = results / loaded.suite.name
    going_on = (
        None if new or run is not None else latest(folder, identity, lambda other: goes_on(other, planned))
    )
    path = going_on or new_folder(folder, run, new=new)
    content = _Content(suite_yaml=text, environment_id=identity, environment=environment, planned=planned)
    if (path / "run.json").exists():
        with RunDirectory.open(path, write=True) as directory:
            if directory.plan.environment_id != identity:
                console.print(_ELSEWHERE.format(path=path), style="yellow", markup=False, soft_wrap=True)
            directory.replan(**content)
            return _measure(directory, cells, identity, console)
    with RunDirectory.create(path, suite=loaded.suite.name, **content) as directory:
        return _measure(directory, cells, identity, console)


def _measure(
    directory: RunDirectory, cells: Sequence[ResolvedCell], identity: str, console: Console
) -> dict[str, Any]:
    known = _known(directory)
    left = [cell for cell in cells if _status(known, cell.cell.label) not in DONE]
    console.print(
        f"{len(cells) - len(left)} of {len(cells)} cells are measured already, {len(left)} to do, in {directory.path}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    done = {label: cell for label, cell in known.items() if cell.status in DONE}
    with Progress(console, [cell.cell for cell in cells], done) as progress:
        LocalExecutor(directory, identity, progress).execute(left)
    frames = directory.frames(lists=False)
    render(frames, console, directory.plan.cells)
    failed = int((frames.cells["status"] == "failed").sum())
    return {"run": str(directory.path), "planned": len(cells), "failed": failed, **to_json(frames)}


def plan(suite: Path, *, results: Path, console: Console) -> dict[str, Any]:
    """Print the cells of a suite, what its latest run has measured of them, and the time left.

    The run is the one that `bench run` goes on with, unless the content of a model or a prompt file has changed
    since: this downloads and loads nothing.
    """
    loaded = load_suite(suite)
    text = _as_yaml(loaded)
    folder = results / loaded.suite.name
    path = latest(folder, environment_id(capture()), lambda other: _same_suite(other, text))
    known = _known(RunDirectory.open(path)) if path else {}
    rows = plan_rows(expand(loaded.suite), known)
    console.print(plan_table(rows, retry_failed=True))
    none = f"no run of this suite with this code on this machine in {results} yet"
    where = f"measured so far in {path}" if path else none
    console.print(where, style="dim", highlight=False, markup=False, soft_wrap=True)
    return {
        "suite": loaded.suite.name,
        "run": str(path) if path else None,
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


def _as_yaml(loaded: LoadedSuite) -> str:
    return yaml.safe_dump(
        loaded.suite.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=100
    )


def _same_suite(run: RunDirectory, suite_yaml: str) -> bool:
    """Whether the run measures this resolved suite; what a suite says of itself does not count."""
    try:
        kept = yaml.safe_load((run.path / "suite.yaml").read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError):
        return False
    return bool(kept | {"description": ""} == yaml.safe_load(suite_yaml) | {"description": ""})
