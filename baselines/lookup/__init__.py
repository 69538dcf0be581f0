"""Drafters that look the continuation up instead of computing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from harness.engine.contracts import DrafterContext, DrafterPlugin

if TYPE_CHECKING:
    from baselines.lookup.ngram import NgramDrafter


class NgramOptions(BaseModel):
    """Options of the `ngram` drafter."""

    model_config = ConfigDict(extra="forbid", strict=True)

    block_size: int = Field(default=7, ge=1, le=64)  # γ
    max_ngram: int = Field(default=4, ge=1, le=16)  # longest suffix that is looked up first
    min_ngram: int = Field(default=2, ge=1, le=16)  # below this nothing is drafted

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min_ngram > self.max_ngram:
            raise ValueError(f"min_ngram = {self.min_ngram} is above max_ngram = {self.max_ngram}")
        return self


def _build(options: NgramOptions, context: DrafterContext) -> NgramDrafter:
    from baselines.lookup.ngram import NgramDrafter

    return NgramDrafter(options.block_size, options.max_ngram, options.min_ngram, context.target.device)


NGRAM = DrafterPlugin(name="ngram", options=NgramOptions, build=_build)
