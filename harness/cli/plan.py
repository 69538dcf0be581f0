"""`bench plan`."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.locate import results_option
from harness.cli.output import page_console, progress_console, write_document


@click.command()
@click.argument("suite", type=click.Path(path_type=Path))
@results_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")
def plan(suite: Path, results: Path, as_json: bool) -> None:
    """Print the cells of a suite, what is measured and what is left."""
    from harness.executors import session

    console = progress_console(as_json=True) if as_json else page_console()
    document = session.plan(suite, results=results, console=console)
    if as_json:
        write_document(document)
