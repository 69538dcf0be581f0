"""The report on one screen."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.doctor.report import Check, Report

WIDTH = 80  # columns; a wider terminal gains nothing

_MARKS = {True: Text("ok", "green"), False: Text("no", "bold red"), None: Text("")}


def render(report: Report, console: Console) -> None:
    """Print every section: a mark, the name, what was found, and for what is not usable the mend."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=2)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for section in report.sections:
        grid.add_row("", Text(section.title, "bold"), "")
        plain = [check for check in section.checks if check.usable and not check.detail]
        if plain:
            grid.add_row(_MARKS[True], "", ", ".join(check.name for check in plain))
        for check in section.checks:
            if check not in plain:
                grid.add_row(_MARKS[check.usable], check.name, _text(check))
    console.print(grid, width=min(console.width, WIDTH))


def _text(check: Check) -> Text:
    text = Text(check.detail)
    if check.mend is not None:
        text.append(f". Mend: {check.mend}", "yellow")
    return text
