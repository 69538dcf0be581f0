"""The rows that the speed-up figure shows."""

from __future__ import annotations

import pandas as pd

from harness.errors import BenchError
from harness.metrics.summary import summarise
from harness.store.frames import Frames

POOLED = "all domains"

COLUMNS = (
    *("target", "temperature", "concurrency", "domain", "arm", "prompts", "repeats"),
    *("speedup", "speedup_low", "speedup_high", "speedup_resampled", "speedup_over"),
    *("tau", "tau_low", "tau_high", "tau_resampled"),
)


def speedup_data(frames: Frames) -> pd.DataFrame:
    """One row an arm with a drafter, domain, concurrency, temperature and target, with `COLUMNS`.

    Where a target has more than one domain, rows pooled over them come first, as "all domains".
    Raises `BenchError` when no cell is ok, or no speed-up over a target-only arm can be had.
    """
    summary = summarise(frames, ("all", "domain"))
    if summary.empty:
        states = ", ".join(f"{n} {status}" for status, n in frames.cells["status"].value_counts().items())
        raise BenchError(
            f"No cell of this run is ok ({states or 'none has a result'}), so there is nothing to plot. "
            "See `bench show` for the reasons, mend them and run again."
        )
    target_only = summary["drafter"] == "none"
    if not target_only.any():
        raise BenchError(
            "This run has no ok cell of a target-only arm, so it has no speed-up to plot. "
            "Add an arm without a drafter to the suite, or mend its cells, and run again."
        )
    rows = summary[~target_only]
    if not rows["speedup"].notna().any():
        raise BenchError(
            "This run has no ok cell of an arm with a drafter on prompts that the target-only arm has too, "
            "so it has no speed-up to plot. See `bench show` for the reasons, mend them and run again."
        )
    domains = summary[summary["level"] == "domain"].groupby("target")["domain"].nunique()
    rows = rows[(rows["level"] == "domain") | (rows["target"].map(domains) > 1)]
    named = rows.assign(domain=rows["domain"].where(rows["level"] == "domain", POOLED))
    return named[list(COLUMNS)].reset_index(drop=True)
