"""Speculative sampling with an independent draft model (Leviathan et al. 2023, Chen et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from harness.engine.attention import PackedBatch
from harness.engine.contracts import DraftBatch, DrafterContext, Outcome, Proposal, TargetFeatures
from harness.engine.decoder import PackedDecoder
from harness.engine.request import RequestState
from harness.engine.rng import Stream, uniforms
from harness.engine.sampling import draw, probabilities


class DraftModelDrafter:
    """Runs the draft model γ times a round, with its own KV cache; the last draft token is not fed to it.

    A round that accepted everything leaves the draft model one token behind: its next round begins with two.
    """

    needs = TargetFeatures()

    def __init__(self, model: PackedDecoder, block_size: int, context: DrafterContext) -> None:
        self.block_size = block_size
        self._model, self._vocabulary = model, context.target.vocab_size
        self._cache = model.new_cache(context.rows, context.capacity)
        context.slots.attach(self._cache)
        self._read: dict[int, int] = {}  # by request.index: tokens whose keys and values are in the cache

    def begin(self, requests: Sequence[RequestState], features: Sequence[torch.Tensor] | None) -> None:
        prompts = [s.request.prompt for s in requests]
        batch = PackedBatch(self._cache, requests[0].row, [0] * len(prompts), [len(p) for p in prompts])
        self._model.forward(self._tensor([t for p in prompts for t in p]), batch)
        self._read.update({s.request.index: len(s.request.prompt) for s in requests})

    def propose(self, batch: DraftBatch) -> Proposal:
        behind = [s.tokens[self._read[s.request.index] :] for s in batch.requests]
        starts = [self._read[s.request.index] for s in batch.requests]
        packed = PackedBatch(self._cache, 0, starts, [len(tokens) for tokens in behind])
        hidden = self._model.forward(self._tensor([t for tokens in behind for t in tokens]), packed)
        last = hidden.last[packed.last_token]
        u = None
        if not batch.sampling.greedy:
            u = uniforms(batch.seeds, batch.rounds, self.block_size, Stream.DRAFT)
        positions = batch.lengths.tolist()
        tokens: list[torch.Tensor] = []
        drawn_from: list[torch.Tensor] = []
        for k in range(self.block_size):
            if k:
                packed = PackedBatch(self._cache, 0, [p + k for p in positions], [1] * len(positions))
                last = self._model.forward(tokens[-1], packed).last
            logits = self._fit(self._model.logits(last))
            if u is None:
                tokens.append(logits.argmax(-1))
            else:
                drawn_from.append(probabilities(logits, batch.sampling))
                tokens.append(draw(drawn_from[-1], u[:, k]))
        return Proposal(
            tokens=torch.stack(tokens, 1),
            probabilities=torch.stack(drawn_from, 1) if drawn_from else None,
            drafted=torch.full_like(batch.anchors, self.block_size),
        )

    def _fit(self, logits: torch.Tensor) -> torch.Tensor:
        """Logits over the target's vocabulary: models of a family may pad theirs to different sizes."""
        missing = self._vocabulary - logits.shape[-1]
        if missing > 0:
            return torch.nn.functional.pad(logits, (0, missing), value=float("-inf"))
        return logits[:, : self._vocabulary]

    def observe(self, batch: DraftBatch, proposal: Proposal, outcome: Outcome) -> None:
        fed = outcome.accepted.clamp(max=self.block_size - 1)
        for state, read in zip(batch.requests, (batch.lengths + 1 + fed).tolist(), strict=True):
            self._read[state.request.index] = read

    def end(self, requests: Sequence[RequestState]) -> None:
        for state in requests:
            del self._read[state.request.index]

    def _tensor(self, values: Sequence[int]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.long, device=self._model.device)
