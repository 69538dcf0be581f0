"""`bench plan` on the screen: a row for each point of the matrix, its repeats counted."""

from __future__ import annotations

from collections import Counter

from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from harness.suites.plan import GUESS, PlanRow, time_left


def plan_table(rows: list[PlanRow], *, retry_failed: bool = False) -> Table:
    """One row for each arm of each comparison: repeats by state, and the time they still take.

    A target has a column only where there are several: the table fits into 80 columns.
    """
    points: dict[tuple[str, ...], list[PlanRow]] = {}
    for row in rows:
        points.setdefault(_where(row), []).append(row)
    targets = sorted({row.cell.target_name for row in rows})
    first = 0 if len(targets) > 1 else 1  # column to begin with
    table = Table(box=SIMPLE, title=f"target {targets[0]}" if len(targets) == 1 else None)
    for title in ("target", "dataset", "concurrency", "temperature", "arm")[first:]:
        number = title in ("concurrency", "temperature")
        table.add_column(title, justify="right" if number else "left", overflow="fold")
    table.add_column("repeats")
    table.add_column("time left", justify="right")
    for where, group in points.items():
        left = time_left(group, retry_failed=retry_failed)
        table.add_row(*map(escape, where[first:]), _states(group), duration(left) if left else "")
    table.caption, table.caption_justify = summary(rows, retry_failed=retry_failed), "left"
    return table


def summary(rows: list[PlanRow], *, retry_failed: bool = False) -> str:
    """`24 cells: 10 measured, 14 to do; about 2 min left (from cells measured before)`."""
    left = time_left(rows, retry_failed=retry_failed)
    head = f"{len(rows)} cells: {_states(rows)}"
    if not left:
        return f"{head}; nothing left to measure"
    guessed = time_left((row for row in rows if row.basis == "guess"), retry_failed=retry_failed)
    source = "from cells measured before" if not guessed else GUESS
    if 0 < guessed < left:
        source = f"partly from cells measured before, partly {GUESS}"
    return f"{head}; about {duration(left)} left, loading and warm-up aside ({source})"


def duration(seconds: float) -> str:
    """`45 s`, `3 min`, `2 h 05 min`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def _where(row: PlanRow) -> tuple[str, ...]:
    cell = row.cell
    numbers = (str(cell.concurrency), f"{cell.temperature:g}")
    return (cell.target_name, cell.dataset_name, *numbers, cell.arm_name)


def _states(rows: list[PlanRow]) -> str:
    counts = Counter(row.state for row in rows)
    return ", ".join(
        f"{counts[state]} {state}"
        for state in ("measured", "to do", "failed", "unsupported")
        if counts[state]
    )
