"""Intervals on data whose truth is known: they cover it as often as they say, and rounds are no clusters."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from harness.metrics.bootstrap import (
    Interval,
    percentile_interval,
    repeats_interval,
    resamples,
    t_quantile,
)
from harness.metrics.counts import Floats, Sums
from harness.metrics.definitions import ratio
from harness.metrics.estimate import Estimate, Sample, counted, timed

NAMES = {"a": 0, "b": 1}
EXPERIMENTS = 300
PROMPTS = 40
SPREAD = 0.4  # of a prompt's log acceptance


def mean_ratio(sums: Sums) -> Floats:
    return ratio(sums["a"], sums["b"])


def quotient(a: Sums, b: Sums) -> Floats:
    return ratio(mean_ratio(a), mean_ratio(b))


def difference(a: Sums, b: Sums) -> Floats:
    return mean_ratio(a) - mean_ratio(b)


def sample(*arms: Floats, strata: tuple[int, ...] | None = None, seed: int = 0) -> Sample:
    """Arms as sums [R, P, 2]."""
    repeats, prompts, _ = arms[0].shape
    weights = resamples(strata or (0,) * prompts, repeats, seed, 1000)
    return Sample([Sums(arm, NAMES) for arm in arms], weights)


def clustered(rng: np.random.Generator, easy: Floats, mean: float = 2.0) -> tuple[Floats, list[Floats]]:
    """Accepted draft tokens, their mean depending on the prompt: sums [1, P, 2], and the rounds."""
    rounds = [rng.poisson(mean * e, rng.integers(10, 60)).astype(float) for e in easy]
    return np.array([[[r.sum(), len(r)] for r in rounds]]), rounds


def prompts(rng: np.random.Generator) -> Floats:
    return np.exp(rng.normal(0, SPREAD, PROMPTS) - SPREAD**2 / 2)  # mean 1


def covers(interval: Interval, truth: float) -> bool:
    return interval.low <= truth <= interval.high


def test_the_interval_covers_as_often_as_it_says_and_resampling_rounds_does_not() -> None:
    rng = np.random.default_rng(1)
    hits = naive_hits = 0
    for seed in range(EXPERIMENTS):
        sums, rounds = clustered(rng, prompts(rng))
        hits += covers(counted(sample(sums, seed=seed), mean_ratio).interval, 2.0)
        flat = np.concatenate(rounds)
        drawn = flat[np.random.default_rng(seed).integers(0, len(flat), (200, len(flat)))].mean(axis=1)
        naive_hits += covers(Interval(*np.quantile(drawn, [0.025, 0.975]).tolist()), 2.0)
    assert 0.91 <= hits / EXPERIMENTS <= 0.98
    assert naive_hits / EXPERIMENTS < 0.75


def test_a_paired_difference_covers_its_truth_and_is_narrower_than_an_unpaired_one() -> None:
    rng = np.random.default_rng(2)
    hits, paired, apart = 0, [], []
    for seed in range(EXPERIMENTS):
        easy = prompts(rng)
        a, b = clustered(rng, easy, 2.5)[0], clustered(rng, easy, 2.0)[0]
        found = counted(sample(a, b, seed=seed), difference)
        hits += covers(found.interval, 0.5)
        paired.append(found.interval.high - found.interval.low)
        alone = [counted(sample(x, seed=seed), mean_ratio).interval for x in (a, b)]
        apart.append(math.hypot(*(i.high - i.low for i in alone)))
    assert 0.91 <= hits / EXPERIMENTS <= 0.98
    assert np.median(paired) < 0.6 * np.median(apart)


@pytest.mark.parametrize(("repeats", "noise"), [(1, 0.0), (3, 0.0), (3, 0.02), (3, 0.1), (2, 0.05)])
def test_a_speed_ratio_covers_its_truth_with_noise_of_prompts_and_of_repeats(
    repeats: int, noise: float
) -> None:
    rng = np.random.default_rng(3)
    hits = 0
    for seed in range(EXPERIMENTS):
        tokens = np.full((repeats, PROMPTS), 60.0)
        machine = np.exp(rng.normal(0, noise, (2, repeats, 1)))
        jitter = np.exp(rng.normal(0, 0.1, (2, repeats, PROMPTS)))
        fast = tokens * prompts(rng) * machine[0] * jitter[0]
        slow = tokens * 1.7 * machine[1] * jitter[1]
        arms = [np.stack([tokens, seconds], axis=-1) for seconds in (fast, slow)]
        hits += covers(timed(sample(*arms, seed=seed), quotient).interval, 1.7)
    assert 0.91 <= hits / EXPERIMENTS <= 0.99


def test_without_resampling_the_repeats_the_machine_would_be_left_out() -> None:
    rng = np.random.default_rng(4)
    tokens = np.full((3, PROMPTS), 60.0)
    seconds = tokens * np.exp(rng.normal(0, 0.01, (3, PROMPTS))) * np.array([[0.9], [1.0], [1.1]])
    arms = [np.stack([tokens, s], axis=-1) for s in (seconds, tokens)]
    crossed, only_prompts = timed(sample(*arms), quotient), counted(sample(*arms), quotient)
    assert crossed.resampled == "prompts and repeats" and only_prompts.resampled == "prompts"
    width = crossed.interval.high - crossed.interval.low
    assert width > 10 * (only_prompts.interval.high - only_prompts.interval.low)


def test_data_sets_are_fixed_so_the_gap_between_them_is_no_noise() -> None:
    rng = np.random.default_rng(5)
    rounds = np.full(40, 30.0)
    accepted = rounds * np.repeat([1.0, 4.0], 20) * np.exp(rng.normal(0, 0.05, 40))
    sums = np.stack([accepted, rounds], axis=-1)[None]
    stratified = counted(sample(sums, strata=(0,) * 20 + (1,) * 20), mean_ratio).interval
    together = counted(sample(sums), mean_ratio).interval
    assert (stratified.high - stratified.low) < 0.2 * (together.high - together.low)


def missing(found: Estimate) -> bool:
    return math.isnan(found.interval.low) and math.isnan(found.interval.high) and found.resampled is None


def test_one_prompt_or_no_spread_gives_no_interval() -> None:
    one = np.array([[[30.0, 10.0]]])
    assert counted(sample(one), mean_ratio).value == 3.0 and missing(counted(sample(one), mean_ratio))
    assert missing(timed(sample(np.repeat(one, 3, axis=0)), mean_ratio))  # three repeats of one prompt
    same = np.repeat(one, 7, axis=1) / 3
    assert missing(counted(sample(same), mean_ratio))
    assert missing(counted(sample(np.repeat(one, 3, axis=1), strata=(0, 0, 1)), mean_ratio))
    assert missing(counted(sample(np.zeros((1, 0, 2)), strata=()), mean_ratio))


def test_the_same_data_give_the_same_interval() -> None:
    sums, _ = clustered(np.random.default_rng(6), prompts(np.random.default_rng(7)))
    first = counted(sample(sums), mean_ratio)
    resamples.cache_clear()
    assert counted(sample(sums), mean_ratio) == first


def test_the_resampled_variance_is_that_of_the_mean() -> None:
    values = np.random.default_rng(8).normal(10, 2, 12)
    weights = resamples((0,) * 12, draws=40_000).prompts
    assert weights is not None
    means = weights @ values / 12
    assert means.var() == pytest.approx(values.var(ddof=1) / 12, rel=0.03)


def test_t_quantiles_agree_with_scipy() -> None:
    for df in (1.0, 1.5, 2.0, 3.7, 29.0, 500.0):
        assert t_quantile(0.975, df) == pytest.approx(stats.t.ppf(0.975, df), rel=1e-4)


def test_the_interval_of_repeats_is_the_t_interval_of_the_log_ratios() -> None:
    logs = np.log([1.4, 1.5, 1.7])
    low, high = np.exp(stats.t.interval(0.95, 2, logs.mean(), stats.sem(logs)))
    assert repeats_interval(logs) == pytest.approx((low, high), rel=1e-4)
    assert math.isnan(repeats_interval(logs[:2]).low) and math.isnan(repeats_interval(np.zeros(5)).low)


def test_an_interval_is_refused_when_many_resamples_have_no_value() -> None:
    samples = np.random.default_rng(9).normal(size=1000)
    samples[:40] = np.nan
    assert percentile_interval(samples, 30).low < 0 < percentile_interval(samples, 30).high
    samples[:60] = np.nan
    assert math.isnan(percentile_interval(samples, 30).low)
