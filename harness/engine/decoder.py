"""The target's forward pass over a flat batch, for Llama, Mistral, Qwen2, Qwen3 and Gemma 3 models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import embedding

from harness.engine.attention import PackedBatch
from harness.engine.layers import Hidden, PackedLayers
from harness.engine.linear import kernel_name, packed_linear

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class PackedDecoder(PackedLayers):
    """A Hugging Face causal LM: embedding, layers, LM head."""

    def __init__(self, model: PreTrainedModel, max_positions: int) -> None:
        """Read `model`; it may be dropped afterwards. Raises BenchError for an unknown family."""
        config: Any = model.config
        body: Any = getattr(model, "model", None)  # None in families that the next line refuses
        head = getattr(model, "lm_head", None)
        super().__init__(body, config, max_positions)
        table: Any = body.embed_tokens
        self.vocab_size: int = config.vocab_size
        self.embedding = table.weight.detach()  # [V, d]
        self.embedding_scale = float(table.embed_scale) if self.model_type == "gemma3_text" else None
        assert isinstance(head, torch.nn.Linear)
        self.lm_head = packed_linear(head.weight.detach(), head.bias)
        self.linear_kernel = kernel_name(self.embedding)
        self._softcap: float | None = getattr(config, "final_logit_softcapping", None)

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        """Token ids [T] to the first layer's input [T, d]."""
        x = embedding(tokens, self.embedding)
        return x if self.embedding_scale is None else x * self.embedding_scale

    def forward(self, tokens: torch.Tensor, batch: PackedBatch, capture: Sequence[int] = ()) -> Hidden:
        """Token ids int64 [T] through `run`; the captured -1 is the embedding output."""
        return self.run(self.embed(tokens), batch, capture)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """LM head of hidden states [N, d] after the final norm; returns [N, V]."""
        logits = self.lm_head(hidden)
        if self._softcap is not None:
            logits = torch.tanh(logits / self._softcap) * self._softcap
        return logits
