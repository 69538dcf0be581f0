"""Speed-up over target-only and accepted length, by arm and domain, a column of panels a concurrency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from harness.figures.style import BAND, GREY, markers, palette, style

MEASURES = {
    "speedup": "speed-up over target-only (tok/s/user)",
    "tau": "accepted length τ (tokens per round)",
}

# Inches.
ROW, DENSE_ROW, MANY = 0.18, 0.135, 24  # of an arm within a domain; with more than so many rows
GAP = 0.13  # above and beneath a domain
PANEL, BETWEEN = 2.9, 0.3  # width of a panel; between panels
LEFT, RIGHT = 1.25, 0.2
AXIS = 0.62  # beneath a panel: ticks and the label
TITLE, LEGEND_ROW, PANEL_TITLE, NOTE = 0.42, 0.24, 0.34, 0.42


class Layout(NamedTuple):
    """Where rows lie: a panel is a stack of domains, each a stack of arms; the first is at the top."""

    domains: list[str]
    arms: list[str]

    @property
    def row(self) -> float:
        """Height of one arm, inches."""
        return ROW if len(self.domains) * len(self.arms) <= MANY else DENSE_ROW

    @property
    def height(self) -> float:
        """Of a panel, inches."""
        return len(self.domains) * self.group

    @property
    def group(self) -> float:
        """Height of one domain, inches."""
        return len(self.arms) * self.row + 2 * GAP

    def y(self, domain: str, arm: str) -> float:
        """Inches from the top of the panel to the row of an arm."""
        return self.domains.index(domain) * self.group + GAP + (self.arms.index(arm) + 0.5) * self.row


def speedup_figure(data: pd.DataFrame) -> Figure:
    """Draw the rows of `speedup_data` of one target and one temperature.

    Upper panels: speed-up with its 95 % interval; the line at 1.0 is target-only. Lower panels: accepted
    length τ with its interval. Panels of a row share their axis. Every value is also written beside its mark.
    """
    concurrencies = sorted(data["concurrency"].unique())
    layout = Layout(list(data["domain"].unique()), list(data["arm"].unique()))
    width = LEFT + len(concurrencies) * PANEL + (len(concurrencies) - 1) * BETWEEN + RIGHT
    legend_columns = max(
        1, min(len(layout.arms), int((width - 0.3) / (0.4 + 0.078 * max(map(len, layout.arms)))))
    )
    legend = LEGEND_ROW * -(-len(layout.arms) // legend_columns)
    height = TITLE + legend + PANEL_TITLE + 2 * (layout.height + AXIS) + NOTE
    with style():
        figure = Figure(figsize=(width, height))
        for row, measure in enumerate(MEASURES):
            limits = _limits(data, measure)
            for column, concurrency in enumerate(concurrencies):
                left = LEFT + column * (PANEL + BETWEEN)
                top = TITLE + legend + PANEL_TITLE + row * (layout.height + AXIS)
                bottom = height - top - layout.height
                axes = figure.add_axes((left / width, bottom / height, PANEL / width, layout.height / height))
                _draw(axes, data[data["concurrency"] == concurrency], measure, layout, limits)
                axes.set_xlabel(MEASURES[measure])
                axes.set_yticks(*_domain_ticks(layout, data), linespacing=1.3)
                axes.tick_params(axis="y", labelleft=column == 0)
                if row == 0:
                    axes.set_title(f"concurrency {concurrency}")
        target, temperature = data["target"].iloc[0], data["temperature"].iloc[0]
        figure.text(
            0.15 / width, 1 - 0.14 / height, f"{target}, temperature {temperature:g}", va="top", size=12
        )
        figure.legend(
            handles=_legend(layout.arms),
            loc="upper left",
            bbox_to_anchor=(0.15 / width, 1 - (TITLE - 0.02) / height),
            ncols=legend_columns,
            borderaxespad=0,
            handlelength=1.6,
            handletextpad=0.4,
            columnspacing=1.2,
        )
        figure.text(0.15 / width, 0.12 / height, _note(data, width), size=7.5, color=GREY, va="bottom")
    return figure


def _draw(axes: Axes, rows: pd.DataFrame, measure: str, layout: Layout, limits: tuple[float, float]) -> None:
    for i in range(0, len(layout.domains), 2):
        axes.axhspan(i * layout.group, (i + 1) * layout.group, color=BAND, linewidth=0, zorder=0)
    axes.axvline(1.0, color=GREY, linewidth=1.2, linestyle=(0, (4, 2)), zorder=1)
    colours = palette(layout.arms)
    placed = rows.assign(y=[layout.y(d, a) for d, a in zip(rows["domain"], rows["arm"], strict=True)])
    shown = placed[placed[measure].notna()]
    for row in shown.to_dict("records"):
        low, high, value, y = (row[name] for name in (f"{measure}_low", f"{measure}_high", measure, "y"))
        end = value
        if np.isfinite(low) and np.isfinite(high):
            axes.plot(
                [low, high], [y, y], color=colours[row["arm"]], linewidth=1.8, solid_capstyle="butt", zorder=2
            )
            end = high
        _write(axes, end, y, f"{value:.2f}" + ("×" if measure == "speedup" else ""))
    sns.scatterplot(
        shown,
        x=measure,
        y="y",
        hue="arm",
        style="arm",
        palette=colours,
        markers=markers(layout.arms),
        s=34,
        edgecolor="white",
        linewidth=0.6,
        legend=False,
        zorder=3,
        ax=axes,
    )
    have = set(zip(shown["domain"], shown["arm"], strict=True))
    for domain in layout.domains:
        for arm in layout.arms:
            if (domain, arm) not in have:
                _write(axes, max(limits[0], 1.0), layout.y(domain, arm), "no result", style="italic")
    ticks = MaxNLocator(7, steps=[1, 2, 5, 10]).tick_values(*limits)  # steps of which 1.0 is a multiple
    axes.set_xticks([tick for tick in ticks if limits[0] <= tick <= limits[1]])
    axes.set_xlim(limits)
    axes.set_ylim(layout.height, 0)
    axes.set_ylabel("")
    axes.grid(axis="y", visible=False)
    sns.despine(ax=axes, left=True)


def _write(axes: Axes, x: float, y: float, text: str, style: str = "normal") -> None:
    axes.annotate(
        text, (x, y), xytext=(5, 0), textcoords="offset points", va="center", size=7, color=GREY, style=style
    )


def _limits(data: pd.DataFrame, measure: str) -> tuple[float, float]:
    """From the lowest end, or 1, to the highest, with room on the right for the written values."""
    ends = data[[measure, f"{measure}_low", f"{measure}_high"]].to_numpy(np.float64)
    low, high = min(float(np.nanmin(ends)), 1.0), max(float(np.nanmax(ends)), 1.2)
    span = high - low
    return max(low - 0.06 * span, 0.0), high + 0.2 * span


def _domain_ticks(layout: Layout, data: pd.DataFrame) -> tuple[list[float], list[str]]:
    at = [(i + 0.5) * layout.group for i in range(len(layout.domains))]
    labels = []
    for domain in layout.domains:
        prompts = data.loc[data["domain"] == domain, "prompts"]
        low, high = int(prompts.min()), int(prompts.max())
        labels.append(f"{domain}\nn = {high}" if low == high else f"{domain}\nn = {low}–{high}")
    return at, labels


def _legend(arms: Sequence[str]) -> list[Line2D]:
    colours, marks = palette(arms), markers(arms)
    return [
        Line2D([], [], color=colours[a], marker=marks[a], label=a, linewidth=1.8, markeredgecolor="white")
        for a in arms
    ]


def _note(data: pd.DataFrame, width: float) -> str:
    over = ", ".join(sorted(data["speedup_over"].dropna().unique()))
    sources = set(data["speedup_resampled"].dropna())
    apart = "; those of speed-up resample repeats too" if "prompts and repeats" in sources else ""
    fewest, most = int(data["repeats"].min()), int(data["repeats"].max())
    sentences = [
        f"n: prompts. Repeats: {fewest if fewest == most else f'{fewest} to {most}'}.",
        f"Dashed line: target-only ({over}).",
        f"Bars: 95 % intervals, which resample prompts{apart}.",
    ]
    lines = [""]
    for sentence in sentences:
        joined = f"{lines[-1]} {sentence}".strip()
        if len(joined) * 0.062 > width and lines[-1]:
            lines.append(sentence)
        else:
            lines[-1] = joined
    return "\n".join(lines)
