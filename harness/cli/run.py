"""`bench run`."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.group import INCOMPLETE, INTERRUPTED
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
    the cell being measured. A cell that fails is reported with its reason while the others go on.

    Exit codes: 0 all cells are measured; 2 the suite or the run directory cannot be used; 3 incomplete,
    some cells failed; 130 stopped by Ctrl-C. After 3 and 130 the same command measures what is missing.
    """
    again = "the same command without --new" if new else "the same command"
    try:
        from harness.executors import session  # seconds, so Ctrl-C may come here too

        console = progress_console(as_json=as_json)
        document = session.run(
            suite, run=run_name, new=new, results=results, executor=executor, console=console
        )
    except KeyboardInterrupt:
        click.echo(f"stopped: the cells measured so far are kept; {again} goes on from there", err=True)
        ctx.exit(INTERRUPTED)
    if as_json:
        write_document(document)
    if document["failed"]:
        count = f"{document['failed']} of {document['planned']} cells failed"
        click.secho(f"incomplete: {count}; {again} measures them again", fg="red", err=True)
        ctx.exit(INCOMPLETE)
