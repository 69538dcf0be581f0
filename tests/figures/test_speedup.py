"""The speed-up figure: what it plots, that no text overlaps or is cut off, and that it is never empty."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from harness.errors import BenchError
from harness.figures.files import write_speedup
from harness.figures.speedup import speedup_figure
from harness.figures.speedup_data import COLUMNS, speedup_data
from harness.figures.style import COLOURS, MARKERS, markers, palette
from harness.metrics.summary import summarise
from tests.synthetic import ArmSpec, CellRows, Scenario, frames, not_ok, simulate

NAMES = (
    "ngram",
    "draft model",
    "eagle3",
    "dspark",
    "dspark, scheduled",
    "dflash",
    "medusa",
    "one with a long name",
)
DOMAINS = (
    "math",
    "code",
    "chat",
    "translation",
    "summarisation",
    "retrieval",
    "dialogue",
    "context",
    "reasoning",
)


def made_up(arms: int, domains: int, concurrency: tuple[int, ...], prompts: int = 5) -> list[CellRows]:
    drafting = {name: ArmSpec([0.8, 0.7, 0.6], 0.05 + 0.01 * i) for i, name in enumerate(NAMES[:arms])}
    return simulate(
        Scenario(
            {"target only": ArmSpec(), **drafting},
            datasets={f"{name} set": name for name in DOMAINS[:domains]},
            concurrency=concurrency,
            prompts=prompts,
        )
    )


def boxes(figure: Figure) -> dict[Text, Bbox]:
    """Where every piece of text that shows is drawn, in pixels."""
    FigureCanvasAgg(figure).draw()  # type: ignore[no-untyped-call]
    texts = [t for t in figure.findobj(Text) if isinstance(t, Text) and t.get_text() and t.get_visible()]
    return {t: t.get_window_extent() for t in texts}


@pytest.mark.parametrize(
    ("arms", "domains", "concurrency"), [(1, 1, (1,)), (3, 3, (1, 8, 32)), (8, 9, (1,)), (8, 1, (1,))]
)
def test_no_text_overlaps_another_or_leaves_the_figure(
    arms: int, domains: int, concurrency: tuple[int, ...]
) -> None:
    figure = speedup_figure(speedup_data(frames(made_up(arms, domains, concurrency))))
    found = boxes(figure)
    assert len(found) > 2 * arms * domains * len(concurrency)
    whole = figure.bbox
    for text, box in found.items():
        assert whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1, text
    for (a, one), (b, other) in itertools.combinations(found.items(), 2):
        shared = Bbox.intersection(one, other)
        assert shared is None or min(shared.width, shared.height) < 1.0, (a.get_text(), b.get_text())


def test_it_plots_the_summary_without_target_only() -> None:
    run = frames(made_up(2, 3, (1, 8)))
    data, summary = speedup_data(run), summarise(run, ("all", "domain"))
    assert tuple(data.columns) == COLUMNS and set(data["arm"]) == set(NAMES[:2])
    assert list(data["domain"].unique()) == ["all domains", *DOMAINS[:3]]
    pooled = summary[(summary["level"] == "all") & (summary["drafter"] != "none")]
    plotted = data[data["domain"] == "all domains"]
    for name in ("speedup", "speedup_low", "speedup_high", "tau", "tau_low", "tau_high"):
        np.testing.assert_array_equal(plotted[name], pooled[name])


def test_the_marks_stand_at_the_values() -> None:
    data = speedup_data(frames(made_up(2, 2, (1, 8))))
    figure = speedup_figure(data)
    assert [axes.get_title() for axes in figure.axes[:2]] == ["concurrency 1", "concurrency 8"]
    for axes, (measure, concurrency) in zip(
        figure.axes, itertools.product(("speedup", "tau"), (1, 8)), strict=True
    ):
        offsets = np.concatenate([np.asarray(c.get_offsets()) for c in axes.collections])
        rows = data[data["concurrency"] == concurrency]
        assert sorted(offsets[:, 0]) == pytest.approx(sorted(rows[measure]))
        bars = [line for line in axes.lines if len(set(np.asarray(line.get_xdata()))) == 2]
        ends = sorted(float(np.asarray(bar.get_xdata())[1]) for bar in bars)
        assert ends == pytest.approx(sorted(rows[f"{measure}_high"]))
        assert any(set(np.asarray(line.get_xdata())) == {1.0} for line in axes.lines)  # target-only


def test_one_domain_is_not_shown_twice() -> None:
    assert list(speedup_data(frames(made_up(1, 1, (1,))))["domain"].unique()) == ["math"]


def test_a_missing_result_is_written_out() -> None:
    cells = made_up(2, 2, (1,))
    gone = [
        not_ok(c, "failed", "x") if (c.row["arm"], c.row["domain"]) == ("ngram", "code") else c for c in cells
    ]
    figure = speedup_figure(speedup_data(frames(gone)))
    assert [t.get_text() for t in boxes(figure)].count("no result") == 2  # in both rows of panels


def test_one_prompt_has_marks_without_bars() -> None:
    data = speedup_data(frames(made_up(1, 1, (1,), prompts=1)))
    assert data["speedup_low"].isna().all() and data["speedup"].notna().all()
    assert boxes(speedup_figure(data))


def test_files_are_written_whole_and_the_table_is_what_is_plotted(tmp_path: Path) -> None:
    run = frames(made_up(2, 2, (1,)))
    files = write_speedup(run, tmp_path / "figures")
    assert [file.name for file in files] == [
        f"speedup-toy-temperature-0.{kind}" for kind in ("png", "svg", "csv")
    ]
    assert imread(files[0]).std() > 0.05 and "concurrency 1" in files[1].read_text()
    pd.testing.assert_frame_equal(pd.read_csv(files[2]), speedup_data(run), check_dtype=False)
    before = [file.read_bytes() for file in files]
    assert [file.read_bytes() for file in write_speedup(run, tmp_path / "figures")] == before
    with pytest.raises(BenchError, match="cannot write"):
        write_speedup(run, files[0] / "x")


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        (lambda arm: False, r"No cell of this run is ok \(3 failed\)"),
        (lambda arm: arm != "target only", "no ok cell of a target-only arm"),
        (lambda arm: arm == "target only", "no ok cell of an arm with a drafter"),
    ],
)
def test_it_is_never_empty(keep: object, message: str) -> None:
    assert callable(keep)
    cells = [c if keep(c.row["arm"]) else not_ok(c, "failed", "x") for c in made_up(2, 1, (1,))]
    with pytest.raises(BenchError, match=message):
        speedup_data(frames(cells))


def test_up_to_seven_arms_differ_in_colour_and_eight_in_marker() -> None:
    assert len(set(palette(NAMES[:7]).values())) == 7 == len(COLOURS)
    assert len(set(markers(NAMES).values())) == 8 == len(MARKERS)
