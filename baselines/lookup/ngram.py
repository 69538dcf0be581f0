"""Prompt lookup (Saxena 2023): what followed the last few tokens the first time they occurred."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from harness.engine.contracts import DraftBatch, Outcome, Proposal, TargetFeatures
from harness.engine.request import RequestState


class _Index:
    """Where each n-gram of a growing text first occurred."""

    def __init__(self, max_ngram: int, min_ngram: int) -> None:
        self._sizes = range(max_ngram, min_ngram - 1, -1)
        self._text: list[int] = []
        self._after: dict[tuple[int, ...], int] = {}

    def extend(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            # An n-gram is entered once something follows it, so the text's own end never matches itself.
            for size in self._sizes:
                if size <= len(self._text):
                    self._after.setdefault(tuple(self._text[-size:]), len(self._text))
            self._text.append(token)

    def continuation(self, count: int) -> list[int]:
        """Up to `count` tokens after the first occurrence of the longest known suffix; none when it is new."""
        for size in self._sizes:
            if size <= len(self._text):
                start = self._after.get(tuple(self._text[-size:]))
                if start is not None:
                    return self._text[start : start + count]
        return []


class NgramDrafter:
    """Drafts with certainty, so its draft distribution is one-hot; drafts nothing when no suffix is known.

    The longest suffix of max_ngram..min_ngram tokens that occurred before decides, its first occurrence if there
    are several (vLLM's `ngram` does the same).
    """

    needs = TargetFeatures()

    def __init__(self, block_size: int, max_ngram: int, min_ngram: int, device: torch.device) -> None:
        self.block_size = block_size
        self._max, self._min, self._device = max_ngram, min_ngram, device
        self._indexes: dict[int, _Index] = {}  # by request.index

    def begin(self, requests: Sequence[RequestState], features: Sequence[torch.Tensor] | None) -> None:
        for state in requests:
            index = self._indexes[state.request.index] = _Index(self._max, self._min)
            index.extend(state.tokens)

    def propose(self, batch: DraftBatch) -> Proposal:
        found = [self._indexes[s.request.index].continuation(self.block_size) for s in batch.requests]
        rows = [tokens + [0] * (self.block_size - len(tokens)) for tokens in found]
        return Proposal(
            tokens=torch.tensor(rows, dtype=torch.long, device=self._device),
            probabilities=None,
            drafted=torch.tensor([len(tokens) for tokens in found], device=self._device),
        )

    def observe(self, batch: DraftBatch, proposal: Proposal, outcome: Outcome) -> None:
        drafts, accepted = proposal.tokens.tolist(), outcome.accepted.tolist()
        for state, draft, count, token in zip(
            batch.requests, drafts, accepted, outcome.next_tokens.tolist(), strict=True
        ):
            self._indexes[state.request.index].extend([*draft[:count], token])

    def end(self, requests: Sequence[RequestState]) -> None:
        for state in requests:
            del self._indexes[state.request.index]
