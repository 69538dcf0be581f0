"""Drafting with DSpark: one parallel pass over the block, then a light walk through its words (section 3.1)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn.functional import embedding

from dspark_impl.model import DSparkModel
from harness.engine.attention import PackedBatch
from harness.engine.contracts import DraftBatch, DrafterContext, Outcome, Proposal, TargetFeatures
from harness.engine.layers import PackedLayers
from harness.engine.linear import packed_linear
from harness.engine.request import RequestState
from harness.engine.rng import Stream, uniforms
from harness.engine.sampling import draw, probabilities
from harness.errors import BenchError


class DSparkDrafter:
    """Batched over requests of different lengths, with a KV cache that only accepted tokens' features enter.

    The anchor and γ - 1 mask tokens are the inputs, the slot of the anchor predicts the first word. Positions of
    the block attend to all of the context's features before the anchor and to the whole block.
    """

    def __init__(self, model: DSparkModel, block_size: int, context: DrafterContext) -> None:
        """model: as on disk. block_size: words to draft, at most what the model was trained for.

        Raises BenchError when model and target do not belong together.
        """
        config, target = model.config, context.target
        _check_fit(model, block_size, context)
        model = model.to(target.device, target.dtype)
        self.block_size = block_size
        self.needs = TargetFeatures(config.target_layer_ids)
        self._target, self._mask_token = target, config.mask_token_id
        self._head, self._confidence = model.markov_head, model.confidence_head
        self._confidence_reads_words = config.confidence_head_with_markov
        self._layers = PackedLayers(model, model.transformer_config, context.capacity)
        self._project = packed_linear(model.fc.weight.detach())
        self._feature_norm = self._layers.norm(model.hidden_norm, model.transformer_config)
        self._context_kv = [
            packed_linear(torch.cat((layer.self_attn.k_proj.weight, layer.self_attn.v_proj.weight)).detach())
            for layer in model.layers
        ]
        self._embedding = target.embedding
        if model.embed_tokens is not None:
            self._embedding = model.embed_tokens.weight.detach()
        self._own_logits = None
        if model.lm_head is not None:
            self._own_logits = packed_linear(model.lm_head.weight.detach())
        self._cache = self._layers.new_cache(context.rows, context.capacity)
        context.slots.attach(self._cache)

    def begin(self, requests: Sequence[RequestState], features: Sequence[torch.Tensor] | None) -> None:
        assert features is not None
        lengths = [len(part) for part in features]
        batch = PackedBatch(self._cache, requests[0].row, [0] * len(lengths), lengths)
        self._write_context(torch.cat(list(features)), batch)

    def observe(self, batch: DraftBatch, proposal: Proposal, outcome: Outcome) -> None:
        """The features of the anchor and the accepted words join the context; those of rejected words do not."""
        assert outcome.features is not None
        rows = outcome.verified + 1
        request_of = torch.repeat_interleave(torch.arange(len(rows), device=rows.device), rows)
        offset = torch.arange(len(request_of), device=rows.device) - (rows.cumsum(0) - rows)[request_of]
        kept = offset <= outcome.accepted[request_of]
        packed = PackedBatch(self._cache, 0, batch.lengths.tolist(), (outcome.accepted + 1).tolist())
        self._write_context(outcome.features[kept], packed)

    def _write_context(self, features: torch.Tensor, batch: PackedBatch) -> None:
        """Equations 2 and 3: features [T, m * d] of the target become keys and values of every draft layer."""
        context = self._feature_norm(self._project(features))
        shape = (len(context), 2, self._layers.kv_heads, self._layers.head_dim)
        projected = (project(context).view(shape) for project in self._context_kv)
        self._layers.write_projected(projected, batch)

    def propose(self, batch: DraftBatch) -> Proposal:
        requests, block = len(batch.requests), self.block_size
        inputs = torch.full((requests, block), self._mask_token, device=batch.anchors.device)
        inputs[:, 0] = batch.anchors
        packed = PackedBatch(self._cache, 0, batch.lengths.tolist(), [block] * requests, causal=False)
        hidden = self._layers.run(embedding(inputs.flatten(), self._embedding), packed).last  # [R * γ, d]
        base = self._target.logits(hidden) if self._own_logits is None else self._own_logits(hidden)
        return self._walk(batch, hidden.view(requests, block, -1), base.view(requests, block, -1))

    def _walk(self, batch: DraftBatch, hidden: torch.Tensor, base: torch.Tensor) -> Proposal:
        """Equation 4, left to right. hidden [R, γ, d], base logits [R, γ, V]."""
        u = None
        if not batch.sampling.greedy:
            u = uniforms(batch.seeds, batch.rounds, self.block_size, Stream.DRAFT)
        previous, tokens, drawn_from, confidences = batch.anchors, [], [], []
        state = None if self._head is None else self._head.start(previous)
        for k in range(self.block_size):
            logits = base[:, k]
            if self._head is not None and state is not None:
                state, latent = self._head.step(state, previous, hidden[:, k])
                logits = logits + self._head.bias(latent)
            if self._confidence is not None:
                words = (
                    self._head.markov_w1(previous) if self._head and self._confidence_reads_words else None
                )
                confidences.append(self._confidence(hidden[:, k], words))
            if u is None:
                previous = logits.argmax(-1)
            else:
                drawn_from.append(probabilities(logits, batch.sampling))
                previous = draw(drawn_from[-1], u[:, k])
            tokens.append(previous)
        return Proposal(
            tokens=torch.stack(tokens, 1),
            probabilities=torch.stack(drawn_from, 1) if drawn_from else None,
            drafted=torch.full_like(batch.anchors, self.block_size),
            confidences=torch.stack(confidences, 1) if confidences else None,
        )

    def end(self, requests: Sequence[RequestState]) -> None:
        """Nothing to forget: rows are overwritten by whoever takes them next."""


def _check_fit(model: DSparkModel, block_size: int, context: DrafterContext) -> None:
    config, target = model.config, context.target
    pairs = {
        "hidden_size": (config.hidden_size, target.hidden_size),
        "vocab_size": (config.vocab_size, target.vocab_size),
        "num_target_layers": (config.num_target_layers, len(target.layers)),
    }
    for name, (ours, theirs) in pairs.items():
        if ours != theirs:
            raise BenchError(
                f"dspark: the drafter's {name} = {ours}, but the target has {theirs}: it was trained for another target"
            )
    if block_size > config.block_size:
        raise BenchError(
            f"dspark: block_size = {block_size} is more than the {config.block_size} the drafter was trained for"
        )
