"""The comparison that `bench show` prints: arms against each other, overall and by domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.metrics.summary import summarise
from harness.store.frames import Frames
from harness.store.rundir import PlannedCell
from harness.tables.notes import notes
from harness.tables.numbers import NOTHING, interval, milliseconds, number, percents
from harness.tables.states import not_ok_table, pending_line

HEADERS = (
    "τ",
    "accepted at\nk=1,2,… %",
    "tok/s\n/user",
    "tok/s",
    "speed-up",
    "TTFT ms\np50/p90",
    "TPOT ms\np50/p90",
    "verified\n/drafted",
)


def render(frames: Frames, console: Console, planned: Sequence[PlannedCell] | None = None) -> None:
    """Print a run: a table a (target, concurrency, temperature), every cell that is not ok, then the notes.

    planned: the cells of the run, to say which have no result yet. Needs 100 columns.
    """
    summary = summarise(frames, ("all", "domain"))
    if not summary.empty:
        for key, rows in summary.groupby(["target", "concurrency", "temperature"], sort=False):
            assert isinstance(key, tuple)
            console.print(_table(f"{key[0]} · concurrency {key[1]} · temperature {key[2]:g}", rows))
    states = not_ok_table(frames)
    if states is not None:
        console.print(states)
    if planned is not None:
        console.print(pending_line(frames, planned))
    for note in notes(summary):
        console.print(Text(note, style="dim"))


def _table(title: str, rows: pd.DataFrame) -> Table:
    table = Table(
        title=title,
        title_style="bold",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column("arm", overflow="fold", max_width=24)
    for header in HEADERS:
        table.add_column(header, justify="right", no_wrap=True)
    domains = rows.loc[rows["level"] == "domain", "domain"].unique()
    if len(domains) > 1:
        _add_section(table, "all", rows[rows["level"] == "all"])
    for domain in domains:
        _add_section(table, str(domain), rows[(rows["level"] == "domain") & (rows["domain"] == domain)])
    return table


def _add_section(table: Table, name: str, rows: pd.DataFrame) -> None:
    most = int(rows["prompts"].max())
    table.add_section()
    table.add_row(
        Text(name, style="bold cyan"), Text(f"{most} prompt{'' if most == 1 else 's'}", style="cyan")
    )
    for row in rows.to_dict("records"):
        table.add_row(*_line({str(column): value for column, value in row.items()}))


def _line(row: dict[str, Any]) -> list[Text]:
    partial = row["datasets"] < row["datasets_of"]
    name = row["arm"] + (f"\n{row['datasets']} of {row['datasets_of']} data sets" if partial else "")
    return [
        Text(name),
        _two(number(row["tau"]), interval(row["tau_low"], row["tau_high"])),
        Text(percents(row["conditional_acceptance"])),
        _two(number(row["tok_s_user"]), interval(row["tok_s_user_low"], row["tok_s_user_high"])),
        _two(number(row["throughput"]), number(row["throughput_ratio"], "×")),
        _speedup(row),
        _two(milliseconds(row["ttft_p50_s"]), milliseconds(row["ttft_p90_s"])),
        _two(milliseconds(row["tpot_p50_s"]), milliseconds(row["tpot_p90_s"])),
        Text(number(row["verified_share"])),
    ]


def _speedup(row: dict[str, Any]) -> Text:
    if row["drafter"] == "none" and pd.isna(row["speedup_over"]):
        return Text("reference", style="dim")
    low, high = row["speedup_low"], row["speedup_high"]
    style = "bold green" if low > 1 else "bold red" if high < 1 else ""
    return _two(number(row["speedup"], "×"), interval(low, high), style)


def _two(first: str, second: str, style: str = "") -> Text:
    """A value with what belongs to it beneath, which is left out where there is none."""
    value = Text(first, style=style)
    return value if second == NOTHING else value + Text(f"\n{second}", style="dim")
