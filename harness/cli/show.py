"""`bench show`."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.locate import RUN_HELP, locate_run, results_option
from harness.cli.output import page_console, write_document


@click.command(epilog=RUN_HELP)
@click.argument("run")
@results_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
def show(run: str, results: Path, as_json: bool) -> None:
    """Print the comparison of the arms of a run."""
    path = locate_run(run, results)

    from harness.store.rundir import RunDirectory
    from harness.tables.comparison import render
    from harness.tables.document import to_json

    directory = RunDirectory.open(path)
    frames = directory.frames(lists=False)
    if as_json:
        write_document(to_json(frames))
    else:
        render(frames, page_console(), directory.plan.cells)
