"""The cell id: a hash of everything that decides what a cell measures."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from harness.store.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from harness.suites.schema import Cell

_LOCATIONS = ("hf:", "path:", "pypi:")


def cell_id(
    cell: Cell, *, prompt_ids_sha256: str | None, target_sha256: str | None, drafter_sha256: str | None
) -> str:
    """16 hexadecimal digits of the SHA-256 of the resolved cell, content hashes and schema version.

    Names of target, data set and arm count, since they are the coordinates of a row; the suite's does not.
    Weights and prompts count by content and not by where they lie, so a moved model or a renamed prompt file
    measures nothing anew. A content that could not be had (hash None) counts by its location.
    """
    resolved = cell.model_dump(mode="json", exclude={"suite"})
    if target_sha256 is not None:
        del resolved["target"]["source"], resolved["target"]["sha256"]
    if prompt_ids_sha256 is not None:
        del resolved["dataset"]["source"], resolved["dataset"]["limit"]
    if drafter_sha256 is not None and resolved["arm"]["drafter"] is not None:
        options: dict[str, Any] = resolved["arm"]["drafter"]["options"]
        resolved["arm"]["drafter"]["options"] = {k: v for k, v in options.items() if not _is_location(v)}
    content = {
        "cell": resolved,
        "prompt_ids_sha256": prompt_ids_sha256,
        "target_sha256": target_sha256,
        "drafter_sha256": drafter_sha256,
        "schema_version": SCHEMA_VERSION,
    }
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _is_location(value: object) -> bool:
    return isinstance(value, str) and value.startswith(_LOCATIONS)
