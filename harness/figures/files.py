"""Figures to files: PNG to look at, SVG to print, CSV with what is plotted."""

from __future__ import annotations

import io
import re
from functools import partial
from pathlib import Path
from typing import IO

import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from harness.figures.speedup import speedup_figure
from harness.figures.speedup_data import speedup_data
from harness.figures.style import style
from harness.store.atomic import make_folder, write_file, write_text
from harness.store.frames import Frames


def write_speedup(frames: Frames, folder: str | Path) -> list[Path]:
    """Write the speed-up figure of each target and temperature; returns the files written.

    Names are `speedup-<target>-temperature-<t>` with `.png`, `.svg` and `.csv`. Raises `BenchError` when
    there is nothing to plot or the folder cannot be written.
    """
    data = speedup_data(frames)
    written: list[Path] = []
    for key, rows in data.groupby(["target", "temperature"], sort=False):
        assert isinstance(key, tuple)
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"speedup-{key[0]}-temperature-{key[1]:g}")
        written += write_figure(speedup_figure(rows), rows, Path(folder), name)
    return written


def write_figure(figure: Figure, data: pd.DataFrame, folder: Path, name: str) -> list[Path]:
    """Write a figure and its data as `name` with `.png`, `.svg` and `.csv`. Raises `BenchError`."""
    make_folder(folder)
    FigureCanvasAgg(figure)
    files = []
    with style():
        for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
            image = io.BytesIO()
            figure.savefig(image, format=kind, metadata=metadata)
            files.append(folder / f"{name}.{kind}")
            write_file(files[-1], partial(_copy, image.getvalue()))
    table = folder / f"{name}.csv"
    write_text(table, data.to_csv(index=False))
    return [*files, table]


def _copy(content: bytes, file: IO[bytes]) -> None:
    file.write(content)
