"""DSpark: semi-autoregressive drafting with confidence-scheduled verification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from harness.engine.contracts import DrafterContext, DrafterPlugin, ModelSource

if TYPE_CHECKING:
    from dspark_impl.drafter import DSparkDrafter


class DSparkOptions(BaseModel):
    """Options of the `dspark` drafter."""

    model_config = ConfigDict(extra="forbid", strict=True)

    source: str  # of the checkpoint, in the grammar of a target's source
    sha256: str | None = None
    block_size: int = Field(default=7, ge=1, le=64)  # γ, at most what the checkpoint was trained for


def _build(options: DSparkOptions, context: DrafterContext) -> DSparkDrafter:
    from dspark_impl.drafter import DSparkDrafter
    from dspark_impl.model import read_model

    model = read_model(context.folder(_weights(options)), context.target.dtype)
    return DSparkDrafter(model, options.block_size, context)


def _weights(options: DSparkOptions) -> ModelSource:
    return ModelSource(options.source, options.sha256)


DSPARK = DrafterPlugin(name="dspark", options=DSparkOptions, build=_build, weights=_weights)
