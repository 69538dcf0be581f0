"""A run as one JSON document, for `bench show --json`."""

from __future__ import annotations

import math
from typing import Any

from harness.metrics.definitions import LABELS
from harness.metrics.summary import summarise
from harness.store.frames import Frames
from harness.store.schema import SCHEMA_VERSION
from harness.tables.notes import notes
from harness.tables.states import not_ok


def to_json(frames: Frames) -> dict[str, Any]:
    """`rows`: every metric by level and arm; `not_ok`: the cells without a measurement, and why.

    Holds only what JSON can: null stands for a value or an interval that the data cannot give.
    """
    summary = summarise(frames, ("all", "domain", "dataset"))
    return {
        "schema_version": SCHEMA_VERSION,
        "definitions": dict(LABELS),
        "notes": notes(summary),
        "cells": {str(status): int(n) for status, n in frames.cells["status"].value_counts().items()},
        "rows": [_plain(row) for row in summary.to_dict("records")],
        "not_ok": [_plain(row) for row in not_ok(frames).to_dict("records")],
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(of) for name, of in value.items()}
    if isinstance(value, list):
        return [_plain(of) for of in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
