"""A request, its state while it is in flight, and the record of its rounds."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Request:
    """What is asked of the engine."""

    index: int
    prompt: tuple[int, ...]
    seed: int
    max_new_tokens: int


@dataclass
class Round:
    """One row of the `rounds` table; see `harness.store.schema` for the columns."""

    round: int
    step: int
    context_length: int
    drafted: int
    verified: int
    accepted: int
    ended_by_stop: bool
    confidences: list[float] | None
    draft_ids: list[int]
    emitted_ids: list[int]
    step_requests: int
    step_tokens: int
    draft_s: float
    schedule_s: float
    verify_s: float
    sample_s: float
    end_s: float


@dataclass
class RequestState:
    """A request in flight. Instants are seconds since the run began."""

    request: Request
    arrival_s: float
    row: int = -1  # of the KV caches
    admitted_s: float = 0.0
    first_token_s: float = 0.0
    last_token_s: float = 0.0
    prefilled: int = 0  # prompt tokens the target has read
    output: list[int] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    finish_reason: str | None = None

    @property
    def context_length(self) -> int:
        """Tokens of prompt and output, the anchor included."""
        return len(self.request.prompt) + len(self.output)

    @property
    def tokens(self) -> list[int]:
        """Prompt and output."""
        return [*self.request.prompt, *self.output]
