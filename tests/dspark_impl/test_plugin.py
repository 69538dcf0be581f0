"""The bench finds the drafter by its entry point, checks its options and builds it from a folder."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from dspark_impl import DSPARK
from harness.registry import drafters
from tests.dspark_impl.conftest import CheckpointMaker
from tests.engine.conftest import decode


def test_the_entry_point_builds_a_drafter_from_a_checkpoint(target: Any, checkpoint: CheckpointMaker) -> None:
    plugin = drafters().get("dspark")
    options = plugin.options(source=str(checkpoint()), block_size=3)
    states = decode(target, [[5, 9, 30]], drafter=lambda context: plugin.build(options, context))
    assert {r.drafted for r in states[0].rounds} == {3}
    assert all(len(r.confidences or []) == 3 for r in states[0].rounds)


def test_options_are_strict() -> None:
    with pytest.raises(ValidationError, match="gamma"):
        DSPARK.options(source="path:x", gamma=3)
    with pytest.raises(ValidationError, match="block_size"):
        DSPARK.options(source="path:x", block_size=0)
    weights = DSPARK.weights(DSPARK.options(source="path:x"))
    assert weights is not None and weights.source == "path:x"
