"""Columns of the three Parquet tables: one row a cell, one row a request, one row a round.

Raw counts are stored; every metric is derived from them (`harness.metrics`). The few scalar metrics in
`cells` are copies for people who open only that table. Times are seconds; `*_s` columns of `requests` and
`rounds` that are instants count from the start of the cell's measured window.
"""

from __future__ import annotations

import pyarrow as pa

SCHEMA_VERSION = "1"

STATUSES = ("ok", "failed", "skipped", "unsupported")


def _metric(name: str) -> list[tuple[str, pa.DataType]]:
    """A scalar metric with the ends of its 95 % interval (resampling prompts)."""
    return [(name, pa.float64()), (f"{name}_low", pa.float64()), (f"{name}_high", pa.float64())]


CELLS = pa.schema(
    [
        ("cell_id", pa.string()),  # hash of everything that decides what is measured
        ("suite", pa.string()),
        ("target", pa.string()),  # the suite's name for it
        ("target_source", pa.string()),  # hf:..., path:..., pypi:...
        ("target_sha256", pa.string()),  # of the model's content
        ("arm", pa.string()),
        ("drafter", pa.string()),  # entry-point name, "none" for target-only
        ("drafter_options", pa.string()),  # JSON
        ("drafter_sha256", pa.string()),  # content hash of its weights, null when it has none
        ("scheduler", pa.string()),
        ("scheduler_options", pa.string()),  # JSON
        ("block_size", pa.int32()),  # γ, 0 for target-only
        ("dataset", pa.string()),
        ("dataset_source", pa.string()),
        ("domain", pa.string()),  # math, code, chat or what the suite says
        ("concurrency", pa.int32()),  # requests in flight at most
        ("arrival_rate", pa.float64()),  # requests/s of open-loop arrivals, null for closed loop
        ("temperature", pa.float64()),
        ("top_k", pa.int32()),  # 0: off
        ("top_p", pa.float64()),  # 1: off
        ("repeat", pa.int32()),
        ("seed", pa.int64()),
        ("max_new_tokens", pa.int32()),
        ("ignore_eos", pa.bool_()),
        ("backend", pa.string()),
        ("device", pa.string()),  # cpu or cuda:0
        ("dtype", pa.string()),  # arithmetic of the target
        ("prompt_ids_sha256", pa.string()),  # of all rendered prompts in order
        ("environment_id", pa.string()),  # names environments/<id>.json of the run
        ("status", pa.string()),
        ("reason", pa.string()),  # why the status is not ok, null when it is
        ("started_at", pa.timestamp("us", tz="UTC")),
        ("warmup_s", pa.float64()),
        ("wall_s", pa.float64()),  # measured window: first arrival to last token
        ("requests", pa.int32()),
        ("prompt_tokens", pa.int64()),
        ("output_tokens", pa.int64()),
        ("steps", pa.int64()),  # decode steps of the target
        ("rounds", pa.int64()),
        ("drafted", pa.int64()),
        ("verified", pa.int64()),
        ("accepted", pa.int64()),
        *_metric("tau"),  # accepted length pooled over rounds
        *_metric("tok_s_user"),  # decode tokens a second and user, prefill excluded
        ("throughput", pa.float64()),  # output tokens a second of wall time, all users
        ("ttft_p50_s", pa.float64()),
        ("tpot_p50_s", pa.float64()),
    ]
)

REQUESTS = pa.schema(
    [
        ("cell_id", pa.string()),
        ("request", pa.int32()),  # index within the cell
        ("prompt_sha256", pa.string()),  # of the rendered prompt ids: the cluster of every interval
        ("prompt_tokens", pa.int32()),
        ("output_tokens", pa.int32()),
        ("finish_reason", pa.string()),  # stop, length, error
        ("seed", pa.int64()),
        ("arrival_s", pa.float64()),
        ("admitted_s", pa.float64()),  # when its prefill began
        ("first_token_s", pa.float64()),
        ("last_token_s", pa.float64()),
        ("rounds", pa.int32()),
        ("drafted", pa.int32()),
        ("verified", pa.int32()),
        ("accepted", pa.int32()),
        ("output_ids", pa.list_(pa.int32())),
    ]
)

ROUNDS = pa.schema(
    [
        ("cell_id", pa.string()),
        ("request", pa.int32()),
        ("round", pa.int32()),  # 0, 1, ... within the request; the prefill's token belongs to no round
        ("step", pa.int32()),  # decode step of the cell it took part in
        ("context_length", pa.int32()),  # tokens before and with the anchor
        ("drafted", pa.int32()),  # γ of this round
        ("verified", pa.int32()),  # ℓ
        ("accepted", pa.int32()),  # n, counted up to a drafted stop token
        ("ended_by_stop", pa.bool_()),  # the last accepted draft token is a stop token: no bonus token
        ("confidences", pa.list_(pa.float32())),  # [γ] or null
        ("draft_ids", pa.list_(pa.int32())),  # [γ]
        ("emitted_ids", pa.list_(pa.int32())),  # what the request's output grew by (cut at the length limit)
        ("step_requests", pa.int32()),
        ("step_tokens", pa.int32()),
        ("draft_s", pa.float32()),  # the step's times, the same for all its requests
        ("schedule_s", pa.float32()),
        ("verify_s", pa.float32()),
        ("sample_s", pa.float32()),
        ("end_s", pa.float64()),  # when the round's tokens were out
    ]
)

TABLES: dict[str, pa.Schema] = {"cells": CELLS, "requests": REQUESTS, "rounds": ROUNDS}
