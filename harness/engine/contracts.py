"""What a drafter and a scheduler must be. Methods outside the engine know this module and nothing else of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import torch
    from pydantic import BaseModel

    from harness.engine.decoder import PackedDecoder
    from harness.engine.request import RequestState
    from harness.engine.sampling import Sampling
    from harness.engine.slots import Slots


@dataclass(frozen=True)
class TargetFeatures:
    """Hidden states of the target that a drafter reads.

    `layers`: i is the output of decoder layer i (Hugging Face's `hidden_states[i + 1]`), -1 the embedding output.
    """

    layers: tuple[int, ...] = ()


@dataclass(frozen=True)
class DraftBatch:
    """The R requests that draft in a step, in the order of their cache rows (request i lies in row i)."""

    requests: Sequence[RequestState]
    anchors: torch.Tensor  # int64 [R]: last token of each request, not yet in the target's KV cache
    lengths: torch.Tensor  # int64 [R]: tokens before the anchor, which is the anchor's position
    seeds: torch.Tensor  # int64 [R]
    rounds: torch.Tensor  # int64 [R]: each request's own round counter
    sampling: Sampling


@dataclass(frozen=True)
class Proposal:
    """Draft tokens of one round."""

    tokens: torch.Tensor  # int64 [R, γ]
    probabilities: (
        torch.Tensor | None
    )  # float32 [R, γ, V] they were drawn from, None when drafted with certainty
    drafted: torch.Tensor  # int64 [R]: how many of the γ are drafts; what lies beyond is never verified
    confidences: torch.Tensor | None = (
        None  # float32 [R, γ]: c_k, None for drafters without a confidence head
    )


@dataclass(frozen=True)
class Outcome:
    """What the target said of a round."""

    accepted: torch.Tensor  # int64 [R]: n
    next_tokens: torch.Tensor  # int64 [R]: the next anchors
    features: (
        torch.Tensor | None
    )  # [Σ(1+ℓ), F] of the verified tokens, packed request by request, anchor first
    verified: torch.Tensor  # int64 [R]: ℓ, from which the rows of `features` follow


class Drafter(Protocol):
    """What proposes. One instance per arm, batched over requests."""

    block_size: int
    needs: TargetFeatures

    def begin(self, requests: Sequence[RequestState], features: Sequence[torch.Tensor] | None) -> None:
        """Requests whose prompts the target has read join; features [prompt, F] for each, if any are needed.

        Their cache rows are `request.row`; each already has its first output token, the first anchor.
        """

    def propose(self, batch: DraftBatch) -> Proposal:
        """Draft γ tokens for each request of the batch."""

    def observe(self, batch: DraftBatch, proposal: Proposal, outcome: Outcome) -> None:
        """Learn what was accepted, before any request leaves."""

    def end(self, requests: Sequence[RequestState]) -> None:
        """Requests leave, finished or cancelled."""


@dataclass(frozen=True)
class Load:
    """What a scheduler may know besides confidences."""

    requests: int
    drafted: torch.Tensor  # int64 [R]: draft tokens there are to verify
    context_lengths: torch.Tensor  # int64 [R]


class Scheduler(Protocol):
    """Decides how many draft tokens of each request the target verifies."""

    def plan(self, confidences: torch.Tensor | None, load: Load) -> torch.Tensor:
        """Verification lengths ℓ int64 [R], each 0..drafted. confidences float32 [R, γ] or None."""


@dataclass(frozen=True)
class DrafterContext:
    """What a drafter is built from besides its options."""

    target: PackedDecoder
    slots: Slots  # row bookkeeping: caches attached to it follow their requests
    rows: int  # requests in flight at most
    capacity: int  # tokens a request can reach, its last block included
    folder: Callable[[ModelSource], Path]  # where a checkpoint lies on this machine
    load: Callable[[ModelSource], PackedDecoder]  # a causal LM with the target's tokenizer, dtype and device


class ModelSource(NamedTuple):
    """Where weights come from, in the grammar of a suite's `source`."""

    source: str
    sha256: str | None = None  # of the content, checked when given


@dataclass(frozen=True)
class DrafterPlugin:
    """An entry point of the group `dspark_bench.drafters`."""

    name: str
    options: type[BaseModel]  # strict; its field `block_size` is γ
    build: Callable[[Any, DrafterContext], Drafter]
    weights: Callable[[Any], ModelSource | None] = field(
        default=lambda options: None
    )  # what it loads, if anything


@dataclass(frozen=True)
class SchedulerPlugin:
    """An entry point of the group `dspark_bench.schedulers`."""

    name: str
    options: type[BaseModel]
    build: Callable[[Any], Scheduler]
