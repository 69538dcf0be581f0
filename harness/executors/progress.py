"""Live progress: a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn
from rich.progress import Progress as Bars

from harness.backends.contract import Finished, ResolvedCell
from harness.suites.plan import Known, plan, time_left
from harness.suites.plan_table import duration
from harness.suites.schema import Cell


class Progress:
    """Shows the cell that runs, its requests and tokens a second, and the time the run still takes."""

    def __init__(self, console: Console, cells: Sequence[Cell], known: Mapping[str, Known]) -> None:
        """cells: all of the suite. known: by label, those that are not measured again."""
        self._console, self._cells, self._known = console, list(cells), dict(known)
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._total: TaskID | None = None
        self._requests: TaskID | None = None
        self._cell: Cell | None = None
        self._begun, self._tokens = 0.0, 0

    def __enter__(self) -> Progress:
        self._bars.start()
        done = sum(known.status == "ok" for known in self._known.values())
        self._total = self._bars.add_task("cells", total=len(self._cells), completed=done, note=self._left())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._bars.stop()

    def start(self, resolved: ResolvedCell) -> None:
        """A cell begins."""
        self._cell, self._begun, self._tokens = resolved.cell, time.perf_counter(), 0
        self._requests = self._bars.add_task(
            escape(resolved.cell.label), total=len(resolved.prompts), note="loading and warming up"
        )

    def finished(self, request: Finished) -> None:
        """A request of the measured window ended."""
        self._tokens += request.output_tokens
        rate = self._tokens / (time.perf_counter() - self._begun)
        if self._requests is not None:
            self._bars.update(self._requests, advance=1, note=f"{rate:.0f} tok/s")

    def end(self, row: Mapping[str, Any]) -> None:
        """The cell is committed; `row` is its row of the table."""
        assert self._cell is not None
        self._known[self._cell.label] = Known(row["status"], row.get("wall_s"))
        if self._requests is not None:
            self._bars.remove_task(self._requests)
        done = sum(known.status == "ok" for known in self._known.values())
        if self._total is not None:
            self._bars.update(self._total, completed=done, note=self._left())
        counter = f"[dim]{done}/{len(self._cells)}[/dim]"
        if row["status"] == "ok":
            length = "" if row["tau"] is None else f"accepted length {row['tau']:.2f}, "  # None: no rounds
            what = f"{row['throughput']:.1f} tok/s, {length}{row['wall_s']:.1f} s"
            line = f"{counter} {escape(self._cell.label)}: {what} [dim]({self._left()})[/dim]"
        else:
            line = (
                f"{counter} [red]{escape(self._cell.label)}: {row['status']}: {escape(row['reason'])}[/red]"
            )
        self.log(line, markup=True)

    def log(self, text: str, *, markup: bool = False) -> None:
        """Print above the bars."""
        self._console.print(text, markup=markup, highlight=False, soft_wrap=True)

    def _left(self) -> str:
        left = time_left(plan(self._cells, self._known))
        return f"{duration(left)} left" if left else "nothing left"
