"""A metric of one arm, or of two over the same prompts, with its interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

from harness.metrics.bootstrap import (
    NONE,
    Interval,
    Resamples,
    crossed_ratio_interval,
    over_both,
    over_prompts,
    over_repeats,
    percentile_interval,
)
from harness.metrics.counts import Floats, Sums

Statistic = Callable[..., Floats]  # of the sums [..., K] of each arm


class Estimate(NamedTuple):
    """A value, its 95 % interval and what was resampled for it (None when there is no interval)."""

    value: float
    interval: Interval
    resampled: str | None

    def columns(self, name: str) -> dict[str, float | str | None]:
        """As the columns `name`, `name_low`, `name_high` and `name_resampled`."""
        ends = {f"{name}_low": self.interval.low, f"{name}_high": self.interval.high}
        return {name: self.value, **ends, f"{name}_resampled": self.resampled}


MISSING = Estimate(math.nan, NONE, None)


def estimate(value: float, interval: Interval, resampled: str) -> Estimate:
    """An estimate that says what was resampled only where there is an interval."""
    return Estimate(value, interval, resampled if math.isfinite(interval.low) else None)


class Sample:
    """Sums of arms over the same repeats and prompts, resampled for all arms alike, each way once."""

    def __init__(self, arms: Sequence[Sums], weights: Resamples) -> None:
        """arms: sums [R, P, K] each."""
        self.weights = weights
        self._arms = arms

    @cached_property
    def total(self) -> list[Sums]:
        """[K] for each arm: all the data."""
        return [Sums(arm.values.sum(axis=(0, 1)), arm.names) for arm in self._arms]

    @cached_property
    def by_prompt(self) -> list[Sums]:
        """[B, K] for each arm, or nothing where a data set has one prompt."""
        return self._drawn(over_prompts)

    @cached_property
    def by_repeat(self) -> list[Sums]:
        """[B, K] for each arm."""
        return self._drawn(over_repeats)

    @cached_property
    def by_both(self) -> list[Sums]:
        """[B, K] for each arm, or nothing where a data set has one prompt."""
        return self._drawn(over_both)

    def _drawn(self, how: Callable[[Floats, Resamples], Floats | None]) -> list[Sums]:
        drawn = ((how(arm.values, self.weights), arm.names) for arm in self._arms)
        return [Sums(values, names) for values, names in drawn if values is not None]


def counted(sample: Sample, statistic: Statistic) -> Estimate:
    """A statistic of counts: prompts resampled; a prompt's repeats stay together."""
    value = float(statistic(*sample.total))
    drawn = statistic(*sample.by_prompt) if sample.by_prompt else None
    return estimate(value, percentile_interval(drawn, sample.weights.prompt_df), "prompts")


def timed(sample: Sample, statistic: Statistic) -> Estimate:
    """A positive statistic of times: prompts resampled and, when there are several, repeats too.

    Repeats are crossed with prompts and are the second source of noise. With one repeat the interval speaks
    of the prompts only, and `resampled` says so.
    """
    repeats = sample.weights.repeats.shape[1]
    if repeats < 2 or not sample.by_prompt:
        return counted(sample, statistic)
    parts = [
        (statistic(*sample.by_prompt), sample.weights.prompt_df),
        (statistic(*sample.by_repeat), float(repeats - 1)),
    ]
    value = float(statistic(*sample.total))
    interval = crossed_ratio_interval(value, statistic(*sample.by_both), parts)
    return estimate(value, interval, "prompts and repeats")
