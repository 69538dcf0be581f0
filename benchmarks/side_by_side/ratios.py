"""What repeats that were measured in turn say: paired ratios with their interval, and agreement of the tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median, stdev
from typing import NamedTuple


class Ratio(NamedTuple):
    """Geometric mean of paired ratios and its 95 % interval; no interval for a single pair."""

    mean: float
    low: float | None
    high: float | None


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """`ours[i] / theirs[i]` over the repeats i: the t interval of the mean of the logarithms."""
    from scipy.stats import t  # of the extra `test`

    logs = [math.log(a / b) for a, b in zip(ours, theirs, strict=True)]
    mean, count = fmean(logs), len(logs)
    if count < 2:
        return Ratio(math.exp(mean), None, None)
    half = float(t.ppf(0.975, count - 1)) * stdev(logs) / math.sqrt(count)
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


class Agreement(NamedTuple):
    """How far two engines chose the same tokens."""

    requests: int
    identical: int  # requests with the same tokens from first to last
    first_divergence: float | None  # median over the other requests, counted from 1; None without any
    earliest_divergence: int | None


def agreement(ours: Sequence[Sequence[int]], theirs: Sequence[Sequence[int]]) -> Agreement:
    """Compare the outputs of the same requests."""
    diverged = [
        position
        for one, other in zip(ours, theirs, strict=True)
        if (position := _first_difference(one, other)) is not None
    ]
    return Agreement(
        requests=len(ours),
        identical=len(ours) - len(diverged),
        first_divergence=median(diverged) if diverged else None,
        earliest_divergence=min(diverged, default=None),
    )


def _first_difference(one: Sequence[int], other: Sequence[int]) -> int | None:
    pairs = enumerate(zip(one, other, strict=True), start=1)
    return next((position for position, (a, b) in pairs if a != b), None)
