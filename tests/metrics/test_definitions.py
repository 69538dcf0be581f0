"""Each metric on rows worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.metrics.cell import cell_metrics
from harness.metrics.counts import Sums, request_sums
from harness.metrics.definitions import (
    ACCEPTED_LENGTHS,
    conditional_acceptance,
    prefix_survival,
    tok_s_user,
    verified_share,
)
from harness.metrics.latency import latency_percentiles

# request, drafted, verified, accepted, ended by stop: what it emits in the last column
ROUNDS = [
    (0, 4, 4, 4, False),  # full block and the bonus token: 5
    (0, 4, 4, 0, False),  # all rejected: 1
    (0, 4, 2, 2, False),  # trimmed to 2, both accepted: 3
    (0, 4, 0, 0, False),  # trimmed to nothing: 1
    (1, 0, 0, 0, False),  # nothing drafted (no match in the prompt): 1
    (1, 4, 4, 1, False),  # 2
    (1, 4, 4, 3, True),  # the third draft token is a stop token: 3, no bonus token
]
REQUESTS: dict[str, list[Any]] = {
    "request": [0, 1],
    "prompt_sha256": ["p", "q"],
    "output_tokens": [11, 7],
    "finish_reason": ["length", "stop"],
    "arrival_s": [0.0, 1.0],
    "admitted_s": [0.5, 1.0],
    "first_token_s": [1.0, 2.0],
    "last_token_s": [3.0, 4.0],
}


def rounds(rows: list[tuple[int, int, int, int, bool]] = ROUNDS) -> pd.DataFrame:
    names = ["request", "drafted", "verified", "accepted", "ended_by_stop"]
    return pd.DataFrame(rows, columns=names).assign(cell_id="c")


def requests(**changes: Any) -> pd.DataFrame:
    return pd.DataFrame({**REQUESTS, **changes}).assign(cell_id="c")


def total(of: pd.DataFrame, at: pd.DataFrame) -> Sums:
    sums = request_sums(at, of)
    return Sums(sums.values.sum(axis=0), sums.names)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tau", (5 + 1 + 3 + 1 + 1 + 2 + 3) / 7),
        ("tau_request_mean", ((5 + 1 + 3 + 1) / 4 + (1 + 2 + 3) / 3) / 2),
        ("tau_vllm", 1 + (4 + 0 + 2 + 0 + 1 + 3) / 6),  # the round that drafted nothing is no draft
        ("tau_sglang", (11 + 7) / 7),
    ],
)
def test_the_four_accepted_lengths(name: str, value: float) -> None:
    assert ACCEPTED_LENGTHS[name](total(rounds(), requests())) == pytest.approx(value)


def test_position_rates_count_only_rounds_that_verified_the_position() -> None:
    sums = total(rounds(), requests())
    # k:                     1    2    3    4
    # verified               5    5    4    3    trimmed rounds drop out; the stopped round judged 1..3 only
    # and accepted 1..k-1    5    4    2    1    the first round, and the stopped one up to its stop token
    # and accepted k         4    3    2    1
    assert conditional_acceptance(sums) == pytest.approx([4 / 5, 3 / 4, 2 / 2, 1 / 1])
    assert prefix_survival(sums) == pytest.approx([4 / 5, 3 / 5, 2 / 4, 1 / 3])


def test_a_stop_token_is_not_a_rejection_of_what_stands_behind_it() -> None:
    stopped = rounds([(0, 4, 4, 2, True)] * 3 + [(0, 4, 4, 2, False)])
    sums = total(stopped, requests())
    assert conditional_acceptance(sums)[:3] == pytest.approx([1.0, 1.0, 0.0])
    assert sums["reached_3"] == sums["verified_3"] == 1 and sums["reached_4"] == 0
    assert math.isnan(conditional_acceptance(sums)[3])


def test_position_rates_agree_with_a_loop_over_random_rounds() -> None:
    rng = np.random.default_rng(0)
    verified = rng.integers(0, 8, 500)
    accepted = (rng.random(500) * (verified + 1)).astype(int)
    stop = (rng.random(500) < 0.2) & (accepted > 0)
    rows = [
        (int(i % 2), 7, int(v), int(a), bool(s))
        for i, (v, a, s) in enumerate(zip(verified, accepted, stop, strict=True))
    ]
    sums = total(rounds(rows), requests())
    for k in range(1, 8):
        judged = [(a, s) for _, _, v, a, s in rows if (a if s else v) >= k]
        kept = sum(a >= k for a, _ in judged)
        assert prefix_survival(sums)[k - 1] == pytest.approx(kept / len(judged))
        assert conditional_acceptance(sums)[k - 1] == pytest.approx(kept / sum(a >= k - 1 for a, _ in judged))


def test_verified_share() -> None:
    assert verified_share(total(rounds(), requests())) == pytest.approx((4 + 4 + 2 + 0 + 0 + 4 + 4) / 24)


def test_speed_leaves_out_the_prefill_and_its_token() -> None:
    assert tok_s_user(total(rounds(), requests())) == pytest.approx((10 + 6) / (2 + 2))
    single = requests(output_tokens=[11, 1])  # one token only: nothing was decoded
    assert tok_s_user(total(rounds(), single)) == pytest.approx(10 / 2)


def test_latency_percentiles() -> None:
    found = latency_percentiles(requests())
    assert found["ttft_p50_s"] == pytest.approx(1.0)
    assert found["tpot_p50_s"] == pytest.approx((2 / 10 + 2 / 6) / 2)
    assert found["tpot_p90_s"] == pytest.approx(2 / 10 + 0.9 * (2 / 6 - 2 / 10))
    assert found["e2el_p99_s"] == pytest.approx(3.0)
    assert latency_percentiles(requests(output_tokens=[11, 1]))["tpot_p99_s"] == pytest.approx(0.2)


def test_requests_that_ended_in_an_error_have_no_speed_but_keep_their_rounds() -> None:
    failed = requests(finish_reason=["length", "error"])
    sums = total(rounds(), failed)
    assert tok_s_user(sums) == pytest.approx(10 / 2) and sums["requests"] == 1
    assert ACCEPTED_LENGTHS["tau"](sums) == pytest.approx(16 / 7)
    assert latency_percentiles(failed)["e2el_p99_s"] == pytest.approx(3.0)
    assert latency_percentiles(failed)["e2el_p50_s"] == pytest.approx(3.0)


def test_target_only_has_accepted_length_one_and_no_position_rates() -> None:
    sums = total(rounds([(0, 0, 0, 0, False)] * 5), requests())
    assert ACCEPTED_LENGTHS["tau"](sums) == 1.0
    assert math.isnan(ACCEPTED_LENGTHS["tau_vllm"](sums)) and math.isnan(verified_share(sums))
    assert conditional_acceptance(sums).shape == (0,)


def test_rounds_find_their_request_by_cell_and_number() -> None:
    at = pd.concat([requests(), requests().assign(cell_id="d")])
    of = pd.concat([rounds([(1, 4, 4, 2, False)]).assign(cell_id="d"), rounds([(0, 4, 4, 3, False)])])
    for kind in ("str", "category"):
        sums = request_sums(at.astype({"cell_id": kind}), of.astype({"cell_id": kind}))
        assert sums["accepted"].tolist() == [3, 0, 0, 2]
    with pytest.raises(ValueError, match="rounds of a request"):
        request_sums(requests(), rounds([(2, 4, 4, 0, False)]))


def test_cell_metrics_from_rows_and_from_columns() -> None:
    from_columns = cell_metrics(
        REQUESTS, {str(name): list(of) for name, of in rounds().drop(columns="cell_id").items()}, wall_s=4.0
    )
    by_row = [dict(zip(REQUESTS, row, strict=True)) for row in zip(*REQUESTS.values(), strict=True)]
    as_rows = [{str(k): v for k, v in row.items()} for row in rounds().to_dict("records")]
    from_rows = cell_metrics(by_row, as_rows, wall_s=4.0)
    assert from_rows == from_columns
    assert from_rows["tau"] == pytest.approx(16 / 7) and from_rows["throughput"] == pytest.approx(18 / 4)
    assert from_rows["tau_low"] is not None and from_rows["tau_low"] < 16 / 7
    assert set(from_rows) == {
        *("tau", "tau_low", "tau_high", "tok_s_user", "tok_s_user_low", "tok_s_user_high"),
        *("throughput", "ttft_p50_s", "tpot_p50_s"),
    }


def test_cell_metrics_of_one_prompt_have_no_interval_and_of_no_rounds_no_accepted_length() -> None:
    one = {name: values[:1] for name, values in REQUESTS.items()}
    found = cell_metrics(one, [], wall_s=4.0)
    assert found["tau"] is None and found["tok_s_user"] == pytest.approx(5.0)
    assert found["tok_s_user_low"] is None and found["tok_s_user_high"] is None
