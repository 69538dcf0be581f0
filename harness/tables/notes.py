"""What a reader must know to read the numbers: definitions, intervals, how many prompts, what is suspect."""

from __future__ import annotations

import pandas as pd

from harness.metrics.definitions import LABELS

SUSPECT_TAU = 1.1  # below it, drafter and target most likely do not belong together


def notes(summary: pd.DataFrame) -> list[str]:
    """Sentences to print beneath the tables of a summary that has the level `domain`."""
    if summary.empty:
        return ["No cell is ok, so there is nothing to compare."]
    domains = summary[summary["level"] == "domain"]
    return [
        f"τ: {LABELS['tau']}.",
        "accepted at k: among rounds that verified position k and accepted 1..k-1, the share that "
        "accepted k.",
        "speed-up: tok/s/user over target-only's on the same prompts. tok/s: throughput of all users, and "
        "beneath it the ratio to target-only's.",
        _interval_note(domains),
        _size_note(domains),
        *_warnings(summary, domains),
    ]


def _interval_note(domains: pd.DataFrame) -> str:
    note = "Beneath a value: its 95 % interval, which resamples prompts, never rounds"
    sources = set(domains["tok_s_user_resampled"].dropna())
    if "prompts and repeats" in sources:
        note += "; for speeds, repeats too"
    if "prompts" in sources:
        note += "; from one repeat, it says nothing of the machine's own noise"
    return f"{note}. None with a single prompt."


def _size_note(domains: pd.DataFrame) -> str:
    sizes = domains.groupby("domain", sort=False)["prompts"].max()
    prompts = ", ".join(f"{name} {count}" for name, count in sizes.items())
    fewest, most = int(domains["repeats"].min()), int(domains["repeats"].max())
    return f"Prompts: {prompts}. Repeats: {fewest if fewest == most else f'{fewest} to {most}'}."


def _warnings(summary: pd.DataFrame, domains: pd.DataFrame) -> list[str]:
    found = []
    errors = int(domains["errors"].sum())
    if errors:
        found.append(f"Warning: {errors} requests ended in an error and count in no metric of speed.")
    if (summary["datasets"] < summary["datasets_of"]).any():
        found.append(
            "Warning: some arms were measured on fewer data sets than others, as marked; of those, compare "
            "the speed-up only."
        )
    lonely = domains.loc[(domains["drafter"] != "none") & domains["speedup_over"].isna(), "arm"].unique()
    if len(lonely):
        found.append(
            f"Warning: no speed-up for {', '.join(lonely)}: no target-only arm of the same backend has "
            "results on the same prompts."
        )
    short = domains[domains["prompts"] < domains["concurrency"]]
    if len(short):
        names = ", ".join(short["domain"].unique())
        found.append(
            f"Warning: concurrency {short['concurrency'].max()} was never reached for {names}, which has fewer "
            "prompts than that in flight: raise the data set's limit or lower the concurrency."
        )
    weak = domains.loc[(domains["drafter"] != "none") & (domains["tau"] < SUSPECT_TAU), "arm"].unique()
    if len(weak):
        found.append(
            f"Warning: τ under {SUSPECT_TAU} for {', '.join(weak)}: nearly every draft is rejected. Check "
            "that the drafter belongs to this target (tokenizer, layer ids, chat template)."
        )
    return found
