"""Open loop: requests arrive by themselves, at the same instants whatever the arm."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest

from harness.engine.arrivals import poisson_arrivals
from tests.executors.workbench import PROMPTS, Models, Workbench

RATE = 400.0  # a second: faster than the model, so that requests queue
SEED = 11


@pytest.fixture(scope="module")
def requests(models: Models, tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Requests joined with their cells: three arms, two repeats, room for one request or for all."""
    workbench = Workbench(tmp_path_factory.mktemp("open-loop"), models)
    workbench.measure(
        workbench.suite(
            datasets={"math": {"source": "jsonl:math.jsonl"}},
            defaults={"max_new_tokens": 24, "arrivals": {"rate": RATE}, "seed": SEED},
            matrix={"concurrency": [1, 4], "repeats": 2},
        )
    )
    frames = workbench.frames
    assert (frames.cells["arrival_rate"] == RATE).all()
    return frames.requests.merge(frames.cells, on="cell_id", suffixes=("", "_of_cell"))


def test_arrivals_are_the_seeded_poisson_process_in_every_arm(requests: pd.DataFrame) -> None:
    count = len(PROMPTS["math"])
    for repeat in (0, 1):
        gaps = np.random.default_rng(SEED + repeat).exponential(1 / RATE, count)
        expected = np.concatenate([[0.0], np.cumsum(gaps[1:])])  # the clock starts with the first arrival
        cells = requests[requests["repeat"] == repeat].groupby("cell_id", observed=True)
        assert len(cells) == 6
        for _, rows in cells:
            np.testing.assert_allclose(rows["arrival_s"], expected, rtol=1e-12, atol=1e-12)


def test_nothing_is_admitted_before_it_arrives_and_queueing_is_part_of_ttft(requests: pd.DataFrame) -> None:
    assert (requests["admitted_s"] >= requests["arrival_s"]).all()
    for _, rows in requests.groupby("cell_id", observed=True):
        ordered = rows.sort_values("arrival_s")
        ttft = ordered["first_token_s"] - ordered["arrival_s"]
        assert ordered["ttft_p50_s"].iloc[0] == pytest.approx(ttft.median())
        if ordered["concurrency"].iloc[0] == 1:  # the next one is admitted when the last has left
            left = ordered["last_token_s"].to_numpy()[:-1]
            assert (ordered["admitted_s"].to_numpy()[1:] >= left).all()
            waits = ordered["admitted_s"] - ordered["arrival_s"]
            assert (ttft >= waits).all() and waits.iloc[-1] > 0


def test_an_idle_engine_waits_for_the_next_arrival(workbench: Workbench) -> None:
    defaults = {"max_new_tokens": 2, "arrivals": {"rate": 20.0}, "seed": SEED, "warmup_requests": 2}
    arms, datasets = workbench.arms("target-only"), {"math": {"source": "jsonl:math.jsonl"}}
    workbench.measure(workbench.suite(datasets=datasets, arms=arms, defaults=defaults))
    frames = workbench.frames
    expected = poisson_arrivals(len(PROMPTS["math"]), 20.0, SEED)
    assert frames.requests["arrival_s"].tolist() == expected  # the warm-up is over when the clock starts
    assert (frames.requests["admitted_s"] >= expected).all()
    assert frames.cells["wall_s"].item() >= expected[-1] and frames.cells["warmup_s"].item() > 0


def test_gaps_follow_the_rate() -> None:
    gaps = np.diff(poisson_arrivals(5000, RATE, seed=3))
    assert kstest(gaps, "expon", args=(0, 1 / RATE)).pvalue > 0.01


def test_a_closed_loop_has_its_requests_arrive_when_there_is_room(workbench: Workbench) -> None:
    workbench.measure(workbench.suite(datasets={"math": {"source": "jsonl:math.jsonl"}}))
    frames = workbench.frames
    assert frames.cells["arrival_rate"].isna().all()
    for _, rows in frames.requests.groupby("cell_id", observed=True):
        assert (rows["arrival_s"].to_numpy()[1:] >= rows["last_token_s"].to_numpy()[:-1]).all()
        assert (rows["admitted_s"] - rows["arrival_s"]).max() < 0.5
