"""One row for each arm at each point, with every headline metric and its interval."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from harness.metrics.bootstrap import percentile_interval
from harness.metrics.compare import pair, speed_ratio, throughput_estimate, throughput_ratio
from harness.metrics.counts import Sums
from harness.metrics.definitions import (
    ACCEPTED_LENGTHS,
    conditional_acceptance,
    prefix_survival,
    tok_s_user,
    verified_share,
)
from harness.metrics.design import ArmData, Level, Point, points
from harness.metrics.estimate import MISSING, Sample, counted, timed
from harness.metrics.latency import latency_percentiles
from harness.store.frames import Frames

COUNTS = ("output_tokens", "rounds", "drafted", "verified", "accepted")


def summarise(frames: Frames, levels: tuple[str, ...] = ("dataset", "all")) -> pd.DataFrame:
    """Every metric by (target, concurrency, temperature, level, dataset, domain, arm), from ok cells only.

    levels: `dataset` gives a row a data set, `domain` one pooled over the data sets of a domain, `all` one
    pooled over all data sets; what is pooled over is named "all". `datasets` and `datasets_of` say on how
    many of the data sets that the point has the arm was measured: pooled rows with fewer are not comparable,
    though speed-ups always are (they use only what both arms have).

    Columns: the four accepted lengths of `harness.metrics.definitions`, `tok_s_user` and `throughput`;
    `speedup`, the ratio of tok/s/user to that of the arm `speedup_over` (the target-only arm of the same
    backend), and `throughput_ratio` to it; each with the ends of its 95 % interval, `_low` and `_high`, and
    `_resampled`, what the interval resamples. `conditional_acceptance` and `prefix_survival` are lists over
    positions 1..γ, with their ends and, in `reached_rounds` and `verified_rounds`, their denominators.
    `verified_share` is verified / drafted. TTFT, TPOT and E2EL are in seconds. NaN: not measured, or no
    interval (one prompt, or no spread).
    """
    rows = [
        _identity(point, level, arm) | _metrics(point, level, arm)
        for point in points(frames)
        for level in point.levels(levels)
        for arm in point.arms
        if arm.sums["requests"][:, level.units].any()
    ]
    return pd.DataFrame(rows)


def _identity(point: Point, level: Level, arm: ArmData) -> dict[str, Any]:
    first = arm.cells.iloc[0]
    wanted = point.units["dataset"].iloc[level.units].unique()
    cells = arm.cells[arm.cells["dataset"].isin(wanted)]
    return {
        **point.coordinates(level),
        "arm": arm.name,
        **{name: first[name] for name in ("drafter", "scheduler", "block_size", "backend")},
        "datasets": int(cells["dataset"].nunique()),
        "datasets_of": len(wanted),
        "repeats": int(cells["repeat"].nunique()),
        "wall_s": float(cells["wall_s"].sum()),
    }


def _metrics(point: Point, level: Level, arm: ArmData) -> dict[str, Any]:
    everything = arm.sums.values[:, level.units]  # [R, P, K]
    present = everything[..., arm.sums.names["requests"]] > 0
    repeats, columns = np.flatnonzero(present.any(axis=1)), np.flatnonzero(present.any(axis=0))
    sums = Sums(everything[np.ix_(repeats, columns)], arm.sums.names)
    units = level.units[columns]
    sample = Sample([sums], point.weights(units, len(repeats)))
    overall = sample.total[0]
    datasets = list(point.units["dataset"].iloc[units].unique())
    requests = arm.requests[arm.requests["dataset"].isin(datasets)]
    row: dict[str, Any] = {
        "prompts": len(units),
        "requests": len(requests),
        "errors": int((requests["finish_reason"] == "error").sum()),
        **{name: int(overall[name]) for name in COUNTS},
    }
    for name, definition in ACCEPTED_LENGTHS.items():
        row |= counted(sample, definition).columns(name)
    row |= timed(sample, tok_s_user).columns("tok_s_user")
    row |= throughput_estimate(arm, sample, datasets).columns("throughput")
    row |= _against_target_only(point, level, arm)
    row |= _positions(sample, gamma=int(arm.cells["block_size"].max()))
    return row | {"verified_share": float(verified_share(overall))} | latency_percentiles(requests)


def _against_target_only(point: Point, level: Level, arm: ArmData) -> dict[str, Any]:
    reference = point.target_only(arm)
    paired = None if reference is None or reference is arm else pair(point, level, arm, reference)
    if reference is None or paired is None:
        return {"speedup_over": None, **MISSING.columns("speedup"), **MISSING.columns("throughput_ratio")}
    return {
        "speedup_over": reference.name,
        **speed_ratio(paired).columns("speedup"),
        **throughput_ratio(paired, point, arm, reference).columns("throughput_ratio"),
    }


def _positions(sample: Sample, gamma: int) -> dict[str, Any]:
    """Rates by position as lists of length γ of this arm, though another arm's blocks may be longer."""
    overall = sample.total[0]
    gamma = min(gamma, overall.positions)
    row: dict[str, Any] = {}
    for name, rate, rounds in (
        ("conditional_acceptance", conditional_acceptance, "reached"),
        ("prefix_survival", prefix_survival, "verified"),
    ):
        row[name] = rate(overall)[:gamma].tolist()
        samples = rate(*sample.by_prompt) if sample.by_prompt else None
        ends = [
            percentile_interval(None if samples is None else samples[:, k], sample.weights.prompt_df)
            for k in range(gamma)
        ]
        row[f"{name}_low"] = [end.low for end in ends]
        row[f"{name}_high"] = [end.high for end in ends]
        row[f"{rounds}_rounds"] = [int(overall[f"{rounds}_{k}"]) for k in range(1, gamma + 1)]
    return row
