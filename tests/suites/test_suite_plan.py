"""The plan: states, where estimates come from, and what is printed."""

from __future__ import annotations

import pytest
from rich.console import Console

from harness.suites.expand import expand
from harness.suites.plan import Known, guess_seconds, plan, time_left
from harness.suites.plan_table import duration, plan_table, summary
from harness.suites.schema import (
    Arm,
    Cell,
    Component,
    Dataset,
    Generation,
    Matrix,
    Poisson,
    Suite,
    Target,
)


def cells(
    *, repeats: int = 2, arrivals: Poisson | None = None, targets: tuple[str, ...] = ("t",)
) -> list[Cell]:
    return expand(
        Suite(
            name="s",
            targets={name: Target(source=f"hf:{name}") for name in targets},
            arms={"A": Arm(), "B": Arm(drafter=Component(name="b"))},
            datasets={"x": Dataset(source="builtin:x", limit=6), "y": Dataset(source="builtin:y", limit=12)},
            defaults=Generation(max_new_tokens=64, arrivals=arrivals),
            matrix=Matrix(concurrency=[1, 8], repeats=repeats),
        )
    )


def label(arm: str, dataset: str = "x", concurrency: int = 1, repeat: int = 0) -> str:
    return f"t · {dataset} · concurrency {concurrency} · temperature 0 · {arm} · repeat {repeat}"


@pytest.mark.parametrize(
    ("prompts", "tokens", "concurrency", "seconds"),
    [
        (6, 64, 1, 0.6 + 384 * 0.032),
        (6, 64, 8, 0.6 + 64 * 0.042),  # six in flight, one wave
        (9, 64, 8, 0.9 + 128 * 0.046),  # two waves
    ],
)
def test_guess(prompts: int, tokens: int, concurrency: int, seconds: float) -> None:
    assert guess_seconds(prompts, tokens, concurrency) == pytest.approx(seconds)


def test_nothing_measured_is_all_guessed() -> None:
    rows = plan(cells(), {})
    assert {(row.state, row.basis) for row in rows} == {("to do", "guess")}
    one = 2 * (guess_seconds(6, 64, 1) + guess_seconds(6, 64, 8))
    other = 2 * (guess_seconds(12, 64, 1) + guess_seconds(12, 64, 8))
    assert time_left(rows) == pytest.approx(2 * (one + other))


def test_the_likest_measured_cells_decide_the_estimate() -> None:
    known = {
        label("A", repeat=0): Known("ok", 10.0),
        label("A", repeat=1): Known("ok", 30.0),
        label("B", repeat=0): Known("ok", 8.0),
    }
    rows = {row.cell.label: row for row in plan(cells(repeats=3), known)}
    assert rows[label("A", repeat=0)][1:] == ("measured", 10.0, "measured")
    assert rows[label("A", repeat=2)][1:] == ("to do", 20.0, "same arm")
    assert rows[label("B", repeat=2)][1:] == ("to do", 8.0, "same arm")
    scaled = rows[label("B", dataset="y")]  # twice the prompts of the median of 10, 30 and 8 s
    assert (scaled.state, scaled.basis) == ("to do", "same concurrency")
    assert scaled.seconds == pytest.approx(20.0)
    assert rows[label("B", concurrency=8)].basis == "guess"


def test_another_arm_of_the_group_stands_in() -> None:
    rows = {row.cell.label: row for row in plan(cells(), {label("A"): Known("ok", 10.0)})}
    assert rows[label("B")][1:] == ("to do", 10.0, "same group")


def test_cells_that_did_not_end_well() -> None:
    known = {
        label("A"): Known("failed", 0.5),
        label("B"): Known("unsupported", None),
        label("A", repeat=1): Known("skipped", None),
    }
    rows = {row.cell.label: row for row in plan(cells(), known)}
    states = [
        rows[label(arm, repeat=repeat)].state for arm, repeat in (("A", 0), ("B", 0), ("A", 1), ("B", 1))
    ]
    assert states == ["failed", "unsupported", "to do", "to do"]
    assert rows[label("A")].basis == "guess"  # the half second of a failed cell says nothing
    guess = guess_seconds(6, 64, 1)
    assert rows[label("A")].seconds == pytest.approx(guess)
    all_rows = list(rows.values())
    assert time_left(all_rows, retry_failed=True) - time_left(all_rows) == pytest.approx(guess)


def test_prompt_counts_the_caller_knows_and_any_key() -> None:
    rows = plan(cells(), {"11": Known("ok", 4.0)}, key=lambda cell: "11", prompts={"x": 3, "y": 3})
    assert {row.state for row in rows} == {"measured"}
    [first, *_] = plan(cells(), {}, prompts={"x": 3})
    assert first.seconds == pytest.approx(guess_seconds(3, 64, 1))


def test_open_loop_takes_at_least_as_long_as_the_arrivals() -> None:
    rows = plan(cells(arrivals=Poisson(rate=0.1)), {})
    assert {row.seconds for row in rows} == {60.0, 120.0}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "1 s"),
        (45.4, "45 s"),
        (89.9, "90 s"),
        (150, "2 min"),
        (5399, "1 h 30 min"),
        (7500, "2 h 05 min"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_summary_labels_a_guess_as_a_guess() -> None:
    rows = plan(cells(), {})
    assert summary(rows).startswith(
        "16 cells: 16 to do; about 3 min left, loading and warm-up aside (a guess: "
    )
    known = {label(arm, concurrency=r): Known("ok", 9.0) for arm in "AB" for r in (1, 8)}
    assert summary(plan(cells(), known)) == (
        "16 cells: 4 measured, 12 to do; about 3 min left, loading and warm-up aside "
        "(from cells measured before)"
    )
    known = {label(arm): Known("ok", 9.0) for arm in "AB"}
    assert "(partly from cells measured before, partly a guess: " in summary(plan(cells(), known))
    assert summary(plan(cells(), {cell.label: Known("ok", 1.0) for cell in cells()})) == (
        "16 cells: 16 measured; nothing left to measure"
    )


def render(listed: list[Cell], known: dict[str, Known]) -> list[str]:
    console = Console(width=80, record=True)
    with console.capture() as capture:
        console.print(plan_table(plan(listed, known)))
    return capture.get().splitlines()


def test_table_counts_repeats_and_fits_a_terminal() -> None:
    known = {
        label("A"): Known("ok", 10.0),
        label("A", repeat=1): Known("failed", None),
        label("B"): Known("ok", 7.0),
    }
    lines = [line.split() for line in render(cells(), known)]
    assert ["x", "1", "0", "A", "1", "measured,", "1", "failed"] in lines
    assert ["x", "1", "0", "B", "1", "measured,", "1", "to", "do", "7", "s"] in lines
    assert ["target", "t"] in lines


def test_table_has_a_target_column_when_there_are_several() -> None:
    lines = [line.split() for line in render(cells(targets=("t", "u")), {})]
    assert ["u", "y", "8", "0", "B", "2", "to", "do", "14", "s"] in lines
