"""Cells that were not measured: each listed with its reason, so that none is taken for passed."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from rich import box
from rich.table import Table
from rich.text import Text

from harness.store.frames import Frames
from harness.store.rundir import PlannedCell

STYLES = {"failed": "bold red", "skipped": "yellow", "unsupported": "yellow"}


def not_ok(frames: Frames) -> pd.DataFrame:
    """The coordinates, status and reason of every cell that is not ok."""
    coordinates = ["cell_id", "target", "dataset", "concurrency", "temperature", "arm", "repeat"]
    return frames.cells.loc[frames.cells["status"] != "ok", [*coordinates, "status", "reason"]]


def not_ok_table(frames: Frames) -> Table | None:
    """A line a cell that is not ok; None when all are."""
    cells = not_ok(frames)
    if cells.empty:
        return None
    title = f"{len(cells)} of {len(frames.cells)} cells are not ok and count in nothing above"
    table = Table(
        title=title, title_style="bold red", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for header in ("cell", "status", "reason"):
        table.add_column(header, overflow="fold")
    for cell in cells.to_dict("records"):
        label = (
            f"{cell['target']} · {cell['dataset']} · concurrency {cell['concurrency']} · "
            f"temperature {cell['temperature']:g} · {cell['arm']} · repeat {cell['repeat']}"
        )
        reason = str(cell["reason"]) if pd.notna(cell["reason"]) else "no reason was recorded"
        table.add_row(Text(label), Text(cell["status"], style=STYLES[cell["status"]]), Text(reason))
    return table


def pending_line(frames: Frames, planned: Sequence[PlannedCell]) -> Text:
    """How many planned cells have a result, and which one is the first without."""
    known = set(frames.cells["cell_id"])
    pending = [cell.label for cell in planned if cell.cell_id not in known]
    if not pending:
        return Text(f"All {len(planned)} planned cells have a result.", style="dim")
    return Text(
        f"{len(pending)} of {len(planned)} planned cells have no result yet; next: {pending[0]}",
        style="yellow",
    )
