"""Sufficient statistics: per request, the sums that every metric is a ratio of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

BASE = (
    "requests",
    "rounds",
    "emitted",  # accepted + 1, or accepted where the round ended on a drafted stop token
    "drafts",  # rounds with at least one draft token
    "drafted",
    "verified",
    "accepted",
    "requests_with_rounds",
    "request_tau",  # the request's own mean of emitted over its rounds
    "output_tokens",
    "decode_tokens",  # output tokens after the first, which is the prefill's
    "decode_s",  # first token to last
    "resident_s",  # admission to last token
)


@dataclass(frozen=True)
class Sums:
    """Sums with a name for each column, so that a metric reads as a ratio of two names."""

    values: Floats  # [..., K]
    names: dict[str, int]

    def __getitem__(self, name: str) -> Floats:
        return self.values[..., self.names[name]]

    @property
    def positions(self) -> int:
        """The largest block size γ that occurs."""
        return (len(self.names) - len(BASE)) // 3


def request_sums(requests: pd.DataFrame, rounds: pd.DataFrame) -> Sums:
    """One row of sums for each row of `requests`, from its own columns and from its rounds.

    Beyond `BASE` there are three columns for each position k = 1..γ: `verified_k`, rounds in which k was
    verified; `reached_k`, those of them that accepted 1..k-1; `kept_k`, those that accepted 1..k. A round
    that ends on a drafted stop token judges no position behind it: what stands there is neither accepted nor
    rejected, so it counts as not verified. Requests that ended in an error count in nothing but their rounds.
    """
    row = _request_rows(requests, rounds)
    n = len(requests)
    drafted, verified, accepted = (rounds[c].to_numpy(np.int64) for c in ("drafted", "verified", "accepted"))
    stop = rounds["ended_by_stop"].to_numpy(bool)
    gamma = int(drafted.max(initial=0))

    def total(weights: npt.NDArray[np.generic] | None = None) -> Floats:
        return np.bincount(row, weights=weights, minlength=n).astype(np.float64)

    good = (requests["finish_reason"] != "error").to_numpy(bool, na_value=True)
    output = np.where(good, requests["output_tokens"].to_numpy(np.float64), 0.0)
    first, last, admitted = (
        requests[c].to_numpy(np.float64) for c in ("first_token_s", "last_token_s", "admitted_s")
    )
    count, emitted = total(), total(accepted + 1 - stop)
    columns = {
        "requests": good.astype(np.float64),
        "rounds": count,
        "emitted": emitted,
        "drafts": total(drafted > 0),
        "drafted": total(drafted),
        "verified": total(verified),
        "accepted": total(accepted),
        "requests_with_rounds": (count > 0).astype(np.float64),
        "request_tau": np.divide(emitted, count, out=np.zeros(n), where=count > 0),
        "output_tokens": output,
        "decode_tokens": np.maximum(output - 1, 0),
        "decode_s": np.where(output > 1, last - first, 0.0),
        "resident_s": np.where(output > 0, last - admitted, 0.0),
    }
    judged = np.where(stop, accepted, verified)
    at_least = {
        "verified": _at_least(row, judged, n, gamma),
        "reached": _at_least(row, np.minimum(accepted + 1, judged), n, gamma),
        "kept": _at_least(row, accepted, n, gamma),
    }
    for k in range(1, gamma + 1):
        columns |= {f"{name}_{k}": counts[:, k] for name, counts in at_least.items()}
    return Sums(np.stack(list(columns.values()), axis=1), {name: i for i, name in enumerate(columns)})


def _at_least(row: Ints, value: Ints, n: int, gamma: int) -> Floats:
    """[n, γ + 1]: for each request the number of its rounds whose value is at least 0, 1, ..., γ."""
    histogram = np.bincount(row * (gamma + 1) + value, minlength=n * (gamma + 1)).reshape(n, gamma + 1)
    return histogram[:, ::-1].cumsum(axis=1)[:, ::-1].astype(np.float64)


def _request_rows(requests: pd.DataFrame, rounds: pd.DataFrame) -> Ints:
    """For each round the position of its request in `requests`."""
    cells = pd.Index(requests["cell_id"].unique())
    number = requests["request"].to_numpy(np.int64)
    size = int(number.max(initial=-1)) + 1
    position = np.full(len(cells) * size + 1, -1, dtype=np.int64)
    position[_codes(requests["cell_id"], cells) * size + number] = np.arange(len(requests))
    cell, request = _codes(rounds["cell_id"], cells), rounds["request"].to_numpy(np.int64)
    known = (cell >= 0) & (request < size)
    row = position[np.where(known, cell * size + request, -1)]
    if (row < 0).any():
        raise ValueError("rounds of a request that the requests table does not have")
    return row


def _codes(column: pd.Series, values: pd.Index) -> Ints:
    if isinstance(column.dtype, pd.CategoricalDtype):  # one look-up a cell, not one a round
        by_category = values.get_indexer(column.cat.categories).astype(np.int64)
        return by_category[column.cat.codes.to_numpy()]
    return values.get_indexer(pd.Index(column)).astype(np.int64)
