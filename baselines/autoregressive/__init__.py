"""Drafters that predict one token after another, and decoding without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from harness.engine.contracts import DrafterContext, DrafterPlugin, ModelSource

if TYPE_CHECKING:
    from baselines.autoregressive.draft_model import DraftModelDrafter


class DraftModelOptions(BaseModel):
    """Options of the `draft_model` drafter: an independent, smaller causal LM with the target's tokenizer."""

    model_config = ConfigDict(extra="forbid", strict=True)

    source: str  # of the draft model, in the grammar of a target's source
    sha256: str | None = None
    block_size: int = Field(default=4, ge=1, le=64)  # γ


def _build(options: DraftModelOptions, context: DrafterContext) -> DraftModelDrafter:
    from baselines.autoregressive.draft_model import DraftModelDrafter

    return DraftModelDrafter(context.load(_weights(options)), options.block_size, context)


def _weights(options: DraftModelOptions) -> ModelSource:
    return ModelSource(options.source, options.sha256)


DRAFT_MODEL = DrafterPlugin(name="draft_model", options=DraftModelOptions, build=_build, weights=_weights)
