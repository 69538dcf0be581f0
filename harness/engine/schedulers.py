"""Verification without a decision: every drafted token, or the first few of each block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from harness.engine.contracts import Load, SchedulerPlugin

if TYPE_CHECKING:
    import torch


class FixedOptions(BaseModel):
    """Options of the `fixed` scheduler."""

    model_config = ConfigDict(extra="forbid", strict=True)

    length: int | None = Field(default=None, ge=0)  # draft tokens verified a round; all of them when absent


@dataclass(frozen=True)
class FixedScheduler:
    """Verifies the first `length` draft tokens of every request in every round, or all of them."""

    length: int | None = None

    def plan(self, confidences: torch.Tensor | None, load: Load) -> torch.Tensor:
        return load.drafted if self.length is None else load.drafted.clamp(max=self.length)


def _build(options: FixedOptions) -> FixedScheduler:
    return FixedScheduler(options.length)


FIXED = SchedulerPlugin(name="fixed", options=FixedOptions, build=_build)
