"""Intervals that resample prompts, the clusters, and never rounds.

Rounds of one prompt resemble each other, so an interval that treats them as independent is too narrow, often
by half. Every metric is a function of sums over prompts; a resample is a vector of weights over prompts, and
all arms of a comparison get the same vectors, which is what pairs them.

Data sets are fixed, prompts are drawn from them: each data set of n prompts is resampled on its own, n - 1
prompts with replacement, weighted by n / (n - 1) (Rao and Wu 1988), so that the variance is right and not
short by (n - 1) / n. The ends of a percentile interval are taken where a t distribution with the prompts'
degrees of freedom would have them. The seed is fixed: the same data give the same interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from harness.metrics.counts import Floats

RESAMPLES = 2000
LEVEL = 0.95
ROUNDING = 1e-12  # relative; a smaller spread is that of floating-point sums, not of the data


class Interval(NamedTuple):
    """Ends of a 95 % interval; both NaN where the data cannot carry one."""

    low: float
    high: float


NONE = Interval(math.nan, math.nan)


class Resamples(NamedTuple):
    """Weights of prompts and of repeats."""

    prompts: Floats | None  # [B, P]; None when a data set has one prompt only, so that its spread is unknown
    repeats: Floats  # [B, R]; all 1 with one repeat
    prompt_df: float


@lru_cache(maxsize=4)
def resamples(strata: tuple[int, ...], repeats: int = 1, seed: int = 0, draws: int = RESAMPLES) -> Resamples:
    """Weights for prompts whose data set is `strata` [P], crossed with `repeats` interleaved repeats."""
    rng = np.random.default_rng(seed)
    codes = np.asarray(strata, dtype=np.int64)
    crossed = _weights(rng, repeats, draws) if repeats > 1 else np.ones((draws, 1))
    weights = np.empty((draws, len(codes)))
    for code in np.unique(codes):
        columns = np.flatnonzero(codes == code)
        if len(columns) < 2:
            return Resamples(None, crossed, 0)
        weights[:, columns] = _weights(rng, len(columns), draws)
    if not len(codes):
        return Resamples(None, crossed, 0)
    return Resamples(weights, crossed, float(len(codes) - len(np.unique(codes))))


def _weights(rng: np.random.Generator, n: int, draws: int) -> Floats:
    """[draws, n]: how often each of n is drawn in n - 1 draws with replacement, times n / (n - 1)."""
    drawn = rng.integers(0, n, size=(draws, n - 1)) + n * np.arange(draws)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=draws * n).reshape(draws, n)
    return np.asarray(counts * (n / (n - 1)), dtype=np.float64)


def over_prompts(values: Floats, weights: Resamples) -> Floats | None:
    """[B, K]: sums of `values` [R, P, K] with the prompts resampled, repeats kept together."""
    return None if weights.prompts is None else np.asarray(weights.prompts @ values.sum(axis=0))


def over_repeats(values: Floats, weights: Resamples) -> Floats:
    """[B, K]: sums of `values` [R, P, K] with the repeats resampled."""
    return np.asarray(weights.repeats @ values.sum(axis=1))


def over_both(values: Floats, weights: Resamples) -> Floats | None:
    """[B, K]: sums of `values` [R, P, K] with prompts and repeats, which are crossed, resampled."""
    if weights.prompts is None:
        return None
    total = np.zeros((len(weights.prompts), values.shape[2]))
    for r, of in enumerate(values):
        total += weights.repeats[:, r, None] * (weights.prompts @ of)
    return total


def percentile_interval(samples: Floats | None, df: float) -> Interval:
    """The interval from resampled estimates [B]: one source of noise, with `df` degrees of freedom.

    Null without samples, when more than one in twenty could not be computed, or when they do not vary at all.
    """
    finite = _finite(samples)
    if finite is None or _constant(finite):
        return NONE
    tail = NormalDist().cdf(-t_quantile((1 + LEVEL) / 2, df))
    low, high = np.quantile(finite, [tail, 1 - tail])
    return Interval(float(low), float(high))


def crossed_ratio_interval(estimate: float, both: Floats, parts: Sequence[tuple[Floats, float]]) -> Interval:
    """The interval of a positive ratio with two crossed sources of noise, prompts and repeats.

    both: ratios [B] with both resampled. parts: ratios [B] with one of them resampled, and its degrees of
    freedom. A handful of repeats has too few distinct resamples for percentiles, so the ends are the estimate
    times exp(± t · s): s the standard deviation of the resampled log ratio, t with Satterthwaite's degrees of
    freedom. With two repeats that differ the interval is very wide, which is what two repeats can say.
    """
    finite = _finite(both)
    if finite is None or not estimate > 0:
        return NONE
    spread = float(np.std(np.log(finite)))
    variances = [
        (float(np.var(np.log(of))), df) for samples, df in parts if (of := _finite(samples)) is not None
    ]
    weight = sum(variance**2 / df for variance, df in variances)
    if spread < ROUNDING or weight == 0:
        return NONE
    df = sum(variance for variance, _ in variances) ** 2 / weight
    reach = math.exp(t_quantile((1 + LEVEL) / 2, df) * spread)
    return Interval(estimate / reach, estimate * reach)


def repeats_interval(log_ratios: Floats) -> Interval:
    """The t interval of a geometric mean over three paired repeats or more; null if they do not vary."""
    n = len(log_ratios)
    if n < 3 or np.ptp(log_ratios) < ROUNDING:
        return NONE
    centre = float(np.mean(log_ratios))
    half = t_quantile((1 + LEVEL) / 2, n - 1) * float(np.std(log_ratios, ddof=1)) / math.sqrt(n)
    return Interval(math.exp(centre - half), math.exp(centre + half))


def _constant(samples: Floats) -> bool:
    return bool(np.ptp(samples) <= ROUNDING * np.abs(samples).max())


def _finite(samples: Floats | None) -> Floats | None:
    if samples is None:
        return None
    finite = samples[np.isfinite(samples)]
    return finite if len(finite) >= 0.95 * len(samples) and len(finite) else None


@lru_cache
def t_quantile(p: float, df: float) -> float:
    """Quantile p > 1/2 of Student's t with df >= 1 degrees of freedom.

    With t = sqrt(df) tan φ the density of φ is proportional to cos(φ)^(df - 1), which is summed numerically.
    """
    angle = np.linspace(0, math.pi / 2, 10_001)
    density = np.cos(angle) ** (df - 1)
    mass = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return math.sqrt(df) * math.tan(float(np.interp(2 * p - 1, mass / mass[-1], angle)))
