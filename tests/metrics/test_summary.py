"""Summaries and comparisons of made-up runs whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from harness.metrics.compare import compare
from harness.metrics.summary import summarise
from harness.store.frames import Frames
from tests.synthetic import ArmSpec, Scenario, frames, not_ok, simulate

CONDITIONAL = [0.85, 0.75, 0.6, 0.5]
ARMS = {
    "target only": ArmSpec(round_s=0.040),
    "draft": ArmSpec(CONDITIONAL, round_s=0.050),
    "trimmed": ArmSpec(CONDITIONAL, round_s=0.045, verified=2),
}
SCENARIO = Scenario(
    ARMS,
    datasets={"gsm": "math", "amc": "math", "mbpp": "code"},
    prompts=25,
    concurrency=(1, 4),
    repeats=2,
    prompt_spread=0.0,
    output_tokens=100,
)


@pytest.fixture(scope="module")
def run() -> Frames:
    return frames(simulate(SCENARIO))


@pytest.fixture(scope="module")
def summary(run: Frames) -> pd.DataFrame:
    return summarise(run, ("dataset", "domain", "all"))


def row(of: pd.DataFrame, **where: object) -> pd.Series:
    found = of.loc[np.logical_and.reduce([of[name] == value for name, value in where.items()])]
    assert len(found) == 1
    return found.iloc[0]


def test_one_row_for_each_arm_at_each_level_of_each_point(summary: pd.DataFrame) -> None:
    levels = summary[summary["concurrency"] == 4].groupby("level")["arm"].count().to_dict()
    assert levels == {"dataset": 3 * 3, "domain": 2 * 3, "all": 3}
    assert set(summarise(frames(simulate(SCENARIO)))["level"]) == {"dataset", "all"}
    pooled = row(summary, level="all", concurrency=1, arm="draft")
    assert (pooled["dataset"], pooled["domain"], pooled["prompts"], pooled["repeats"]) == (
        "all",
        "all",
        75,
        2,
    )
    assert row(summary, domain="math", level="domain", concurrency=1, arm="draft")["prompts"] == 50


def test_position_rates_recover_the_probabilities(summary: pd.DataFrame) -> None:
    pooled = row(summary, level="all", concurrency=1, arm="draft")
    assert pooled["conditional_acceptance"] == pytest.approx(CONDITIONAL, abs=0.03)
    assert pooled["prefix_survival"] == pytest.approx(np.cumprod(CONDITIONAL), abs=0.03)
    for low, rate, high in zip(
        pooled["conditional_acceptance_low"],
        pooled["conditional_acceptance"],
        pooled["conditional_acceptance_high"],
        strict=True,
    ):
        assert low < rate < high < low + 0.1


def test_a_trimmed_arm_is_rated_on_the_positions_it_verified_only(summary: pd.DataFrame) -> None:
    trimmed = row(summary, level="all", concurrency=1, arm="trimmed")
    assert trimmed["conditional_acceptance"][:2] == pytest.approx(CONDITIONAL[:2], abs=0.03)
    assert all(map(math.isnan, trimmed["conditional_acceptance"][2:])) and trimmed["verified_rounds"][2:] == [
        0,
        0,
    ]
    assert trimmed["verified_share"] == 0.5
    assert trimmed["tau"] == pytest.approx(1 + 0.85 + 0.85 * 0.75, abs=0.05)


def test_speedup_is_the_ratio_of_accepted_length_and_round_time(summary: pd.DataFrame) -> None:
    tau = 1 + np.cumprod(CONDITIONAL).sum()
    for concurrency in (1, 4):
        pooled = row(summary, level="all", concurrency=concurrency, arm="draft")
        assert pooled["speedup_over"] == "target only"
        assert pooled["speedup"] == pytest.approx(tau * 40 / 50, rel=0.06)
        assert pooled["speedup_low"] < tau * 40 / 50 < pooled["speedup_high"]
        assert pooled["speedup_resampled"] == "prompts and repeats"


def test_target_only_is_the_reference_and_has_no_speedup(summary: pd.DataFrame) -> None:
    reference = row(summary, level="all", concurrency=1, arm="target only")
    assert pd.isna(reference["speedup_over"]) and math.isnan(reference["speedup"])
    assert reference["tau"] == 1.0 and math.isnan(
        reference["tau_low"]
    )  # by definition: nothing to be unsure of
    assert reference["tok_s_user"] == pytest.approx(1 / (0.040 * 1.02), rel=0.02)
    assert reference["conditional_acceptance"] == []


def test_throughput_is_pooled_over_cells(run: Frames, summary: pd.DataFrame) -> None:
    cells = run.cells[(run.cells["arm"] == "draft") & (run.cells["concurrency"] == 4)]
    pooled = row(summary, level="all", concurrency=4, arm="draft")
    assert pooled["throughput"] == pytest.approx(cells["output_tokens"].sum() / cells["wall_s"].sum())
    assert pooled["throughput_low"] < pooled["throughput"] < pooled["throughput_high"]


def test_throughput_ratio_pairs_repeats_and_says_where_its_interval_is_from(summary: pd.DataFrame) -> None:
    pooled = row(summary, level="all", concurrency=4, arm="draft")
    assert pooled["throughput_ratio_resampled"] == "prompts"  # two repeats only
    five = frames(simulate(Scenario(ARMS, repeats=5, repeat_noise=0.05)))
    found = row(summarise(five), level="all", arm="draft")
    by_repeat = five.cells.assign(tp=five.cells["output_tokens"] / five.cells["wall_s"]).pivot(
        index="repeat", columns="arm", values="tp"
    )
    ratios = by_repeat["draft"] / by_repeat["target only"]
    assert found["throughput_ratio"] == pytest.approx(np.exp(np.log(ratios).mean()))
    assert found["throughput_ratio_resampled"] == "repeats"
    assert ratios.min() < found["throughput_ratio_low"] < found["throughput_ratio_high"] < 1.5 * ratios.max()


def test_one_repeat_or_one_prompt() -> None:
    once = row(summarise(frames(simulate(Scenario(ARMS)))), level="all", arm="draft")
    assert once["speedup_resampled"] == "prompts" and once["speedup_low"] < once["speedup"]
    lonely = row(summarise(frames(simulate(Scenario(ARMS, prompts=1)))), level="all", arm="draft")
    ends = [
        name
        for name in lonely.index
        if name.endswith(("_low", "_high")) and not isinstance(lonely[name], list)
    ]
    assert len(ends) >= 16 and all(math.isnan(lonely[name]) for name in ends)
    assert lonely["speedup"] > 1 and pd.isna(lonely["speedup_resampled"])


def test_cells_that_are_not_ok_count_in_nothing() -> None:
    cells = simulate(SCENARIO)
    gone = [
        not_ok(c, "failed", "x") if c.row["arm"] == "draft" and c.row["dataset"] == "amc" else c
        for c in cells
    ]
    pooled = row(summarise(frames(gone)), level="all", concurrency=1, arm="draft")
    assert (pooled["datasets"], pooled["datasets_of"], pooled["prompts"]) == (2, 3, 50)
    kept = [c for c in cells if c.row["dataset"] != "amc"]
    alone = row(summarise(frames(kept)), level="all", concurrency=1, arm="draft")
    assert pooled["speedup"] == alone["speedup"]  # target-only's prompts of amc are left out of the pair
    every = [not_ok(c, "failed", "x") for c in cells]
    assert summarise(frames(every)).empty and compare(frames(every), "draft", "trimmed").empty


def test_a_speedup_is_over_target_only_of_the_same_backend() -> None:
    arms = {
        "ours": ArmSpec(round_s=0.04),
        "theirs": ArmSpec(round_s=0.08, backend="vllm"),
        "draft": ArmSpec(CONDITIONAL, backend="vllm"),
        "stray": ArmSpec(CONDITIONAL, backend="sglang"),
    }
    found = summarise(frames(simulate(Scenario(arms))))
    assert row(found, level="all", arm="draft")["speedup_over"] == "theirs"
    stray = row(found, level="all", arm="stray")
    assert pd.isna(stray["speedup_over"]) and math.isnan(stray["speedup"])


def test_compare_pairs_two_arms_over_the_same_prompts(run: Frames) -> None:
    found = row(compare(run, "draft", "trimmed"), level="all", concurrency=1)
    truth = 0.85 * 0.75 * (0.6 + 0.6 * 0.5)
    assert found["tau_difference"] == pytest.approx(truth, abs=0.06)
    assert found["tau_difference_low"] < truth < found["tau_difference_high"]
    there, back = (compare(run, a, b).iloc[0] for a, b in (("draft", "trimmed"), ("trimmed", "draft")))
    assert there["tok_s_user_ratio"] == pytest.approx(1 / back["tok_s_user_ratio"])
    assert compare(run, "draft", "no such arm").empty


def test_an_arm_against_itself_differs_by_nothing(run: Frames) -> None:
    same = compare(run, "draft", "draft")
    assert (same["tau_difference"] == 0).all() and (same["tok_s_user_ratio"] == 1).all()
    assert same["tau_difference_low"].isna().all() and same["tok_s_user_ratio_low"].isna().all()


def test_a_million_rounds_give_what_a_thousand_of_the_same_give() -> None:
    cells = simulate(Scenario({"draft": ArmSpec(CONDITIONAL)}, prompts=10))
    small = frames(cells)
    times = 1_000_000 // len(small.rounds)
    large = small._replace(rounds=pd.concat([small.rounds] * times, ignore_index=True))
    once, many = summarise(small).iloc[0], summarise(large).iloc[0]
    assert many["rounds"] == times * once["rounds"] and many["tau"] == pytest.approx(once["tau"])
    assert many["tau_low"] == pytest.approx(once["tau_low"])
