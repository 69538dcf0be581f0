"""`bench doctor`."""

from __future__ import annotations

import click

from harness.cli.output import page_console, write_document


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of the screen.")
def doctor(as_json: bool) -> None:
    """Say what this machine is and what works on it.

    Everything that is not usable comes with the reason and the mend. The exit code is 0 all the same.
    """
    from harness.doctor import examine, render

    report = examine()
    if as_json:
        write_document(report.as_document())
    else:
        render(report, page_console())
