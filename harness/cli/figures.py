"""`bench figures`."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.locate import RUN_HELP, locate_run, results_option


@click.command(epilog=RUN_HELP)
@click.argument("run")
@results_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write to; `figures` in the run directory when absent.",
)
def figures(run: str, results: Path, out: Path | None) -> None:
    """Draw the figures of a run and print the files written."""
    path = locate_run(run, results)

    from harness.figures.files import write_speedup
    from harness.store.rundir import RunDirectory

    for file in write_speedup(RunDirectory.open(path).frames(lists=False), out or path / "figures"):
        click.echo(file)
