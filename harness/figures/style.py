"""One look for every figure: the Okabe-Ito palette, a marker for each arm as well, one set of fonts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import seaborn as sns

INK = "#202124"
GREY = "#5f6368"  # target-only, and lines that are no data
BAND = "#f3f4f6"  # behind every other group of rows
# Okabe and Ito's colours that carry on white (their yellow does not), neighbours differing in lightness too.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#000000")
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "p")

_RC: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib, so that a figure is the same everywhere
    "font.size": 9,
    "text.color": INK,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.labelsize": 9,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "grid.color": "#dadce0",
    "grid.linewidth": 0.6,
    "xtick.color": GREY,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 8,
    "xtick.bottom": True,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 9,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "savefig.dpi": 200,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "dspark-bench",  # the same data give the same bytes
}


def palette(arms: Sequence[str]) -> dict[str, str]:
    """The colour of each arm, in order; after the seventh they come round."""
    return {arm: COLOURS[i % len(COLOURS)] for i, arm in enumerate(arms)}


def markers(arms: Sequence[str]) -> dict[str, str]:
    """The marker of each arm, in order, which alone tells up to eight apart in grey."""
    return {arm: MARKERS[i % len(MARKERS)] for i, arm in enumerate(arms)}


@contextmanager
def style() -> Iterator[None]:
    """Draw and save in this look, whatever the caller's matplotlib settings are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        with sns.axes_style("whitegrid", rc=_RC), mpl.rc_context(_RC):
            yield
