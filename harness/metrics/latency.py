"""TTFT, TPOT and E2EL: percentiles over requests."""

from __future__ import annotations

import numpy as np
import pandas as pd

PERCENTILES = (50, 90, 99)


def latency_percentiles(requests: pd.DataFrame) -> dict[str, float]:
    """`ttft_p50_s` .. `e2el_p99_s`, in seconds; NaN where no request has the measure.

    TTFT: arrival to first token. TPOT: first token to last, over the tokens after the first, for requests of
    at least two tokens. E2EL: arrival to last token. Requests that ended in an error have none of them.
    """
    done = requests[(requests["finish_reason"] != "error") & (requests["output_tokens"] > 0)]
    arrival, first, last = (
        done[c].to_numpy(np.float64) for c in ("arrival_s", "first_token_s", "last_token_s")
    )
    after = done["output_tokens"].to_numpy(np.float64) - 1
    measures = {
        "ttft": first - arrival,
        "tpot": (last - first)[after > 0] / after[after > 0],
        "e2el": last - arrival,
    }
    return {
        f"{name}_p{p}_s": float(np.percentile(values, p)) if len(values) else float("nan")
        for name, values in measures.items()
        for p in PERCENTILES
    }
