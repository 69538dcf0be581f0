"""`bench run`."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.group import INTERRUPTED
from harness.cli.locate import results_option
from harness.cli.output import progress_console, write_document


@click.command()
@click.argument("suite", type=click.Path(path_type=Path))
@click.option(
    "--run", "run_name", metavar="NAME", help="Name of the run; the latest of the suite when absent."
)
@click.option("--new", is_flag=True, help="Start a new run instead of going on with the latest.")
@results_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, all else to standard error.")
@click.option(
    "--executor",
    type=click.Choice(["local"]),
    default="local",
    show_default=True,
    help="Where cells are measured.",
)
@click.pass_context
def run(
    ctx: click.Context,
    suite: Path,
    run_name: str | None,
    new: bool,
    results: Path,
    as_json: bool,
    executor: str,
) -> None:
    """Measure the cells of a suite, going on where the last run stopped.

    SUITE is a suite file. A cell is committed when it is complete: stopping at any instant loses at most
    the cell being measured.
    """
    from harness.executors import session

    console = progress_console(as_json=as_json)
    try:
        document = session.run(
            suite, run=run_name, new=new, results=results, executor=executor, console=console
        )
    except KeyboardInterrupt:
        same = "the same command without --new" if new else "the same command"
        click.echo(f"stopped: the cells measured so far are kept; {same} goes on from there", err=True)
        ctx.exit(INTERRUPTED)
    if as_json:
        write_document(document)
