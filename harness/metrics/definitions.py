"""What each metric is: a ratio of two sums, named and labelled.

Published tools disagree on accepted length, so all four definitions are derived from the same rounds:

- `tau`, the headline: mean over all rounds of accepted + 1, or accepted where the round ended on a drafted
  stop token;
- `tau_request_mean`: each request's own mean, then the mean over requests, so that short requests count as
  much;
- `tau_vllm`: 1 + accepted draft tokens / drafts, as from vLLM's counters, where a draft is a round with draft
  tokens;
- `tau_sglang`: completion tokens / verify steps, which counts the prefill's token and cuts at the length
  limit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from harness.metrics.counts import Floats, Sums

Estimator = Callable[[Sums], Floats]


def ratio(numerator: npt.ArrayLike, denominator: npt.ArrayLike) -> Floats:
    """Elementwise ratio; NaN where the denominator is zero, since nothing was observed."""
    below = np.asarray(denominator, dtype=np.float64)
    above = np.broadcast_to(np.asarray(numerator, dtype=np.float64), below.shape)
    return np.asarray(np.divide(above, below, out=np.full(below.shape, np.nan), where=below > 0))


def accepted_length(sums: Sums) -> Floats:
    """τ, the headline definition."""
    return ratio(sums["emitted"], sums["rounds"])


ACCEPTED_LENGTHS: dict[str, Estimator] = {
    "tau": accepted_length,
    "tau_request_mean": lambda s: ratio(s["request_tau"], s["requests_with_rounds"]),
    "tau_vllm": lambda s: 1 + ratio(s["accepted"], s["drafts"]),
    "tau_sglang": lambda s: ratio(s["output_tokens"], s["rounds"]),
}

LABELS = {
    "tau": "accepted length, pooled over rounds; a drafted stop token earns no bonus token",
    "tau_request_mean": "accepted length, mean of the requests' own means",
    "tau_vllm": "accepted length as vLLM's counters give it: 1 + accepted / drafts",
    "tau_sglang": "accepted length as SGLang gives it: completion tokens / verify steps",
}


def conditional_acceptance(sums: Sums) -> Floats:
    """[..., γ]: among rounds that verified position k and accepted 1..k-1, the share that accepted k."""
    return ratio(_by_position(sums, "kept"), _by_position(sums, "reached"))


def prefix_survival(sums: Sums) -> Floats:
    """[..., γ]: among rounds that verified position k, the share that accepted 1..k."""
    return ratio(_by_position(sums, "kept"), _by_position(sums, "verified"))


def _by_position(sums: Sums, name: str) -> Floats:
    columns = [sums.names[f"{name}_{k}"] for k in range(1, sums.positions + 1)]
    return sums.values[..., columns]


def verified_share(sums: Sums) -> Floats:
    """Verified / drafted: 1 when every draft token is sent to the target."""
    return ratio(sums["verified"], sums["drafted"])


def tok_s_user(sums: Sums) -> Floats:
    """Decode tokens a second and user: output tokens after the first, over first token to last."""
    return ratio(sums["decode_tokens"], sums["decode_s"])


def residency_rate(sums: Sums) -> Floats:
    """Output tokens a second of residence, prefill included: throughput per request in flight."""
    return ratio(sums["output_tokens"], sums["resident_s"])
