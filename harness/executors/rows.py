"""The row of the `cells` table for a cell that was measured, or that could not be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from harness.backends.contract import Measurement, ResolvedCell
from harness.metrics.cell import cell_metrics


def cell_row(
    resolved: ResolvedCell,
    *,
    environment_id: str,
    started_at: datetime,
    configuration: Mapping[str, Any],
    measurement: Measurement | None,
    status: str = "ok",
    reason: str | None = None,
) -> dict[str, Any]:
    """Columns of `harness.store.schema.CELLS`; without a measurement the measured ones are absent."""
    cell, generation = resolved.cell, resolved.cell.generation
    drafter, scheduler = cell.arm.drafter, cell.arm.scheduler
    row: dict[str, Any] = {
        "cell_id": resolved.cell_id,
        "suite": cell.suite,
        "target": cell.target_name,
        "target_source": cell.target.source,
        "target_sha256": resolved.target.sha256 if resolved.target else None,
        "arm": cell.arm_name,
        "drafter": drafter.name if drafter else "none",
        "drafter_options": json.dumps(drafter.options if drafter else {}, sort_keys=True),
        "drafter_sha256": resolved.drafter_sha256,
        "scheduler": scheduler.name,
        "scheduler_options": json.dumps(scheduler.options, sort_keys=True),
        "block_size": drafter.options["block_size"] if drafter else 0,
        "dataset": cell.dataset_name,
        "dataset_source": cell.dataset.source,
        "domain": resolved.domain,
        "concurrency": cell.concurrency,
        "arrival_rate": generation.arrivals.rate if generation.arrivals else None,
        "temperature": cell.temperature,
        "top_k": generation.top_k,
        "top_p": generation.top_p,
        "repeat": cell.repeat,
        "seed": generation.seed,
        "max_new_tokens": generation.max_new_tokens,
        "ignore_eos": generation.ignore_eos,
        "backend": cell.arm.backend,
        "device": configuration.get("device"),
        "dtype": configuration.get("dtype"),
        "prompt_ids_sha256": resolved.prompt_ids_sha256,
        "environment_id": environment_id,
        "status": status,
        "reason": reason,
        "started_at": started_at,
    }
    if measurement is not None:
        row |= _measured(measurement)
    return row


def _measured(measurement: Measurement) -> dict[str, Any]:
    requests = measurement.requests

    def total(column: str) -> int:
        return sum(request[column] for request in requests)

    return {
        "warmup_s": measurement.warmup_s,
        "wall_s": measurement.wall_s,
        "requests": len(requests),
        "steps": measurement.steps,
        **{name: total(name) for name in ("prompt_tokens", "output_tokens", "rounds", "drafted")},
        **{name: total(name) for name in ("verified", "accepted")},
        **cell_metrics(requests, measurement.rounds, measurement.wall_s),
    }
