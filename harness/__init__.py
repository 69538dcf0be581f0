"""The bench: suites, models, prompts, engine, backends, metrics, store, figures and the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from harness.store.frames import Frames

__all__ = ["load"]


def load(run: str | Path) -> Frames:
    """Read the three tables of a run directory as pandas frames: `.cells`, `.requests`, `.rounds`.

    Raises `BenchError` when the folder is no run directory, or a file of it is damaged or of another schema
    version.
    """
    from harness.store.rundir import RunDirectory  # pandas and pyarrow cost most of a second to import

    return RunDirectory.open(run).frames()
