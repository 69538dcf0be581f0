"""What is left to measure in a suite, and about how long it takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from statistics import median
from typing import Literal, NamedTuple

from harness.suites.schema import Cell

State = Literal["measured", "failed", "unsupported", "to do"]
Basis = Literal["measured", "same arm", "same group", "same concurrency", "guess"]

GUESS = "a guess: target-only SmolLM2-135M on two CPU cores, 30 ms a step and 2 ms for each request in it"
_STEP_S = 0.030
_STEP_REQUEST_S = 0.002
_PREFILL_S = 0.1  # a prompt of about a hundred tokens
_PROMPTS = 30  # of a data set without a limit: what each built-in one has


class Known(NamedTuple):
    """What the store knows of a cell."""

    status: str  # ok, failed, skipped or unsupported
    wall_s: float | None  # of the measured window


class PlanRow(NamedTuple):
    """A cell, how far it is, and its measured or estimated seconds."""

    cell: Cell
    state: State
    seconds: float
    basis: Basis


def guess_seconds(prompts: int, max_new_tokens: int, concurrency: int) -> float:
    """Rough seconds of a cell for which nothing like it has been measured (`GUESS` is the assumption).

    Every request runs to the length limit; requests go through in waves of `concurrency`. Loading and warm-up
    are not in it.
    """
    in_flight = min(prompts, concurrency)
    steps = math.ceil(prompts / concurrency) * max_new_tokens
    return prompts * _PREFILL_S + steps * (_STEP_S + in_flight * _STEP_REQUEST_S)


def plan(
    cells: Iterable[Cell],
    known: Mapping[str, Known],
    key: Callable[[Cell], str] = lambda cell: cell.label,
    prompts: Mapping[str, int] | None = None,
) -> list[PlanRow]:
    """The state and the seconds of every cell, in the order given.

    `known` holds the cells already in the store by `key(cell)`: the label, or the cell id. `prompts` holds
    how many prompts each data set has, by its name in the suite, where the caller knows; else its limit,
    else 30 are assumed. A cell that is not measured takes what measured cells like it took, the likest
    first: other repeats of the same arm, other arms of the same group, other data sets at the same target,
    concurrency and temperature, scaled by prompts x tokens; else `guess_seconds`.
    """
    cells = list(cells)
    sizes = prompts or {}
    measured: dict[tuple[object, ...], list[float]] = {}  # likeness -> seconds for each token asked for
    for cell in cells:
        seen = known.get(key(cell))
        if seen and seen.status == "ok" and seen.wall_s is not None:
            for likeness in _likeness(cell).values():
                measured.setdefault(likeness, []).append(seen.wall_s / _work(cell, sizes))
    return [_row(cell, known.get(key(cell)), measured, sizes) for cell in cells]


def time_left(rows: Iterable[PlanRow], *, retry_failed: bool = False) -> float:
    """Seconds that the cells to do take, those that failed among them when they are run again."""
    again = {"to do", "failed"} if retry_failed else {"to do"}
    return sum(row.seconds for row in rows if row.state in again)


def _row(
    cell: Cell,
    seen: Known | None,
    measured: Mapping[tuple[object, ...], list[float]],
    sizes: Mapping[str, int],
) -> PlanRow:
    if seen and seen.status == "ok" and seen.wall_s is not None:
        return PlanRow(cell, "measured", seen.wall_s, "measured")
    states: dict[str, State] = {"ok": "measured", "failed": "failed", "unsupported": "unsupported"}
    state: State = states.get(seen.status, "to do") if seen else "to do"
    for basis, likeness in _likeness(cell).items():
        if likeness in measured:
            return PlanRow(cell, state, median(measured[likeness]) * _work(cell, sizes), basis)
    count = _prompts(cell, sizes)
    seconds = guess_seconds(count, cell.generation.max_new_tokens, cell.concurrency)
    if cell.generation.arrivals:
        seconds = max(seconds, count / cell.generation.arrivals.rate)
    return PlanRow(cell, state, seconds, "guess")


def _likeness(cell: Cell) -> dict[Basis, tuple[object, ...]]:
    """What makes cells alike, the closest first."""
    point = (cell.target_name, cell.concurrency, cell.temperature)
    return {
        "same arm": (*point, cell.dataset_name, cell.arm_name),
        "same group": (*point, cell.dataset_name),
        "same concurrency": point,
    }


def _prompts(cell: Cell, sizes: Mapping[str, int]) -> int:
    return sizes.get(cell.dataset_name, cell.dataset.limit or _PROMPTS)


def _work(cell: Cell, sizes: Mapping[str, int]) -> int:
    return _prompts(cell, sizes) * cell.generation.max_new_tokens
