"""Two arms over the same prompts and repeats: paired differences and ratios."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from harness.metrics.bootstrap import NONE, Interval, repeats_interval
from harness.metrics.counts import Ints, Sums
from harness.metrics.definitions import accepted_length, ratio, residency_rate, tok_s_user
from harness.metrics.design import LEVELS, ArmData, Level, Point, points
from harness.metrics.estimate import MISSING, Estimate, Sample, counted, estimate, timed
from harness.store.frames import Frames


class Pair(NamedTuple):
    """Two arms at the repeats and prompts that both have."""

    sample: Sample  # of the arm and of the other
    repeats: list[int]
    units: Ints  # prompts of the point


def pair(point: Point, level: Level, arm: ArmData, other: ArmData) -> Pair | None:
    """Pair two arms; None when they share no prompt of this level in any repeat."""
    a, b = (of.sums.values[:, level.units] for of in (arm, other))
    names = arm.sums.names
    shared = (a[..., names["requests"]] > 0) & (b[..., names["requests"]] > 0)  # [R, P]
    repeats, columns = np.flatnonzero(shared.any(axis=1)), np.flatnonzero(shared.any(axis=0))
    if not len(repeats):
        return None
    both = np.ix_(repeats, columns)
    keep = shared[both][..., None]
    units = level.units[columns]
    return Pair(
        sample=Sample([Sums(of[both] * keep, names) for of in (a, b)], point.weights(units, len(repeats))),
        repeats=[point.repeats[r] for r in repeats],
        units=units,
    )


def tau_difference(of: Pair) -> Estimate:
    """Accepted length of the arm minus that of the other, resampled over the same prompts."""
    return counted(of.sample, lambda a, b: accepted_length(a) - accepted_length(b))


def speed_ratio(of: Pair) -> Estimate:
    """Tok/s/user of the arm over that of the other, resampled over the same prompts and repeats."""
    return timed(of.sample, lambda a, b: ratio(tok_s_user(a), tok_s_user(b)))


def throughput_ratio(of: Pair, point: Point, arm: ArmData, other: ArmData) -> Estimate:
    """Throughput of the arm over that of the other: the geometric mean over interleaved repeats.

    With three repeats or more the interval is the t interval of the paired log ratios: it speaks of the
    machine's noise, the prompts being the same. With fewer it comes from the prompts: throughput is the
    output tokens a second of residence times the mean number of requests in flight, and the first factor is
    resampled with the second held fixed. Under open-loop arrivals the second factor is not fixed, and there
    is no such interval.
    """
    datasets = list(point.units["dataset"].iloc[of.units].unique())
    pairs = [throughput(arm, datasets, [r]) / throughput(other, datasets, [r]) for r in of.repeats]
    log_ratios = np.log([p for p in pairs if np.isfinite(p) and p > 0])
    if not len(log_ratios):
        return MISSING
    value = float(np.exp(log_ratios.mean()))
    if len(log_ratios) >= 3:
        return estimate(value, repeats_interval(log_ratios), "repeats")
    return _from_prompts(
        value, arm, counted(of.sample, lambda a, b: ratio(residency_rate(a), residency_rate(b)))
    )


def throughput_estimate(arm: ArmData, sample: Sample, datasets: list[str]) -> Estimate:
    """Throughput over all repeats that the arm has of these data sets; its interval from the prompts."""
    value = throughput(arm, datasets, None)
    return _from_prompts(value, arm, counted(sample, residency_rate))


def _from_prompts(value: float, arm: ArmData, rate: Estimate) -> Estimate:
    if arm.cells["arrival_rate"].notna().any():
        return Estimate(value, NONE, None)
    scale = value / rate.value
    return estimate(value, Interval(rate.interval.low * scale, rate.interval.high * scale), "prompts")


def throughput(arm: ArmData, datasets: list[str], repeats: list[int] | None) -> float:
    """Output tokens a second of wall time over these data sets and repeats (None: all that the arm has).

    NaN when a data set of a given repeat has no ok cell.
    """
    windows = [
        window
        for (dataset, repeat), window in arm.windows.items()
        if dataset in datasets and (repeats is None or repeat in repeats)
    ]
    if repeats is not None and len(windows) < len(datasets) * len(repeats):
        return float("nan")
    return float(ratio(sum(w.output_tokens for w in windows), sum(w.wall_s for w in windows)))


def compare(frames: Frames, arm: str, other: str, levels: tuple[str, ...] = LEVELS) -> pd.DataFrame:
    """Compare two arms at every point where both have ok cells.

    One row a (target, concurrency, temperature, level, dataset, domain): `tau_difference` (arm minus other),
    `tok_s_user_ratio` and `throughput_ratio` (arm over other), each with `_low`, `_high` and `_resampled`,
    and how many prompts and repeats they share. Never judge a scheduled arm by its accepted length: trimming
    lowers it.
    """
    rows = []
    for point in points(frames):
        named = {of.name: of for of in point.arms}
        if arm not in named or other not in named:
            continue
        for level in point.levels(levels):
            paired = pair(point, level, named[arm], named[other])
            if paired is None:
                continue
            rows.append(
                {
                    **point.coordinates(level),
                    "arm": arm,
                    "other": other,
                    "prompts": len(paired.units),
                    "repeats": len(paired.repeats),
                    **tau_difference(paired).columns("tau_difference"),
                    **speed_ratio(paired).columns("tok_s_user_ratio"),
                    **throughput_ratio(paired, point, named[arm], named[other]).columns("throughput_ratio"),
                }
            )
    return pd.DataFrame(rows)
