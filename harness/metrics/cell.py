"""The scalar metrics of one cell, for the writer of the `cells` table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from harness.metrics.bootstrap import resamples
from harness.metrics.counts import Sums, request_sums
from harness.metrics.definitions import accepted_length, ratio, tok_s_user
from harness.metrics.estimate import Sample, counted, timed
from harness.metrics.latency import latency_percentiles

Rows = Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]]


def cell_metrics(requests: Rows, rounds: Rows, wall_s: float) -> dict[str, float | None]:
    """The metric columns of `cells`: `tau` and `tok_s_user` with their ends, and three more.

    requests, rounds: rows of the two tables as dictionaries, or columns by name. wall_s: the measured window,
    seconds. Intervals resample prompts. None: nothing was observed, or one prompt cannot carry an interval.
    """
    of = pd.DataFrame(requests).assign(cell_id="")
    counts = ["request", "drafted", "verified", "accepted", "ended_by_stop"]
    sums = request_sums(of, pd.DataFrame(rounds).reindex(columns=counts).assign(cell_id=""))
    prompt, prompts = pd.factorize(of["prompt_sha256"])
    values = np.zeros((1, len(prompts), sums.values.shape[1]))
    np.add.at(values[0], prompt, sums.values)
    sample = Sample([Sums(values, sums.names)], resamples((0,) * len(prompts)))
    latency = latency_percentiles(of)
    metrics = {
        **counted(sample, accepted_length).columns("tau"),
        **timed(sample, tok_s_user).columns("tok_s_user"),
        "throughput": float(ratio(sums["output_tokens"].sum(), wall_s)),
        "ttft_p50_s": latency["ttft_p50_s"],
        "tpot_p50_s": latency["tpot_p50_s"],
    }
    return {
        name: value if isinstance(value, float) and math.isfinite(value) else None
        for name, value in metrics.items()
        if not name.endswith("_resampled")
    }
