"""Decoder layers over a flat batch, laid out for the machine: what a target and a drafter's backbone share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch.nn.functional import rms_norm

from harness.engine.attention import PackedBatch
from harness.engine.kvcache import KVCache
from harness.engine.linear import packed_linear
from harness.errors import BenchError

FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "gemma3_text")

Linear = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Norm:
    """RMSNorm with its weight; Gemma's `1 + weight` is folded in when the model is read."""

    weight: torch.Tensor
    eps: float

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return rms_norm(x, self.weight.shape, self.weight, self.eps)


@dataclass(frozen=True)
class Layer:
    """One decoder layer: fused projections and what differs between families."""

    input_norm: Norm
    qkv: Linear
    q_norm: Norm | None
    k_norm: Norm | None
    output: Linear
    attention_norm: Norm | None  # Gemma: on the attention's output, before the residual
    mlp_input_norm: Norm
    gate_up: Linear
    down: Linear
    mlp_norm: Norm | None  # Gemma: on the MLP's output, before the residual
    rope: str
    window: int | None


class Hidden(NamedTuple):
    """What a forward pass leaves behind."""

    last: torch.Tensor  # [T, d] after the final norm: what the LM head reads
    features: torch.Tensor | None  # [T, len(capture) * d]


class PackedLayers:
    """The layers and final norm of a Hugging Face decoder, read once; the model may be dropped afterwards."""

    def __init__(self, body: Any, config: Any, max_positions: int) -> None:
        """body: the model's inner module with `layers`, `norm` and `rotary_emb`. Rotary tables reach `max_positions`.

        Raises BenchError for a family whose forward pass is not known to be equal to Hugging Face's.
        """
        if config.model_type not in FAMILIES:
            raise BenchError(
                f"the model's family `model_type` = {config.model_type!r} is not one the engine runs: "
                f"use one of {', '.join(FAMILIES)}, or measure this model through a server backend"
            )
        self.model_type: str = config.model_type
        self.hidden_size: int = config.hidden_size
        self.heads: int = config.num_attention_heads
        self.kv_heads: int = config.num_key_value_heads
        self.head_dim: int = getattr(config, "head_dim", None) or self.hidden_size // self.heads
        self.max_positions = max_positions
        self.dtype, self.device = body.norm.weight.dtype, body.norm.weight.device
        gemma = self.model_type == "gemma3_text"
        self.scale = (config.query_pre_attn_scalar if gemma else self.head_dim) ** -0.5
        self._gelu = getattr(config, "hidden_act", getattr(config, "hidden_activation", "")).startswith(
            "gelu"
        )
        self._norm_offset = 1.0 if gemma else 0.0
        self._rope = self._rotary_tables(body.rotary_emb, config)
        self.layers = [self._read_layer(layer, config) for layer in body.layers]
        self.final_norm = self.norm(body.norm, config)

    def norm(self, module: Any, config: Any) -> Norm:
        """An RMSNorm module of this family."""
        weight = module.weight.detach()
        return Norm(weight + self._norm_offset if self._norm_offset else weight, config.rms_norm_eps)

    def _rotary_tables(self, rotary: Any, config: Any) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        """cos and sin [max_positions, 1, D] from the model's own module, for each kind of layer."""
        positions = torch.arange(self.max_positions, device=self.device)[None]
        like = torch.empty(1, dtype=torch.float32, device=self.device)
        kinds: Sequence[str | None] = (
            sorted(set(config.layer_types)) if self.model_type == "gemma3_text" else [None]
        )
        tables = {}
        for kind in kinds:
            cos, sin = rotary(like, positions) if kind is None else rotary(like, positions, kind)
            half = cos.shape[-1] // 2
            # rotate_half's sign is folded into the table: rotated = x * cos + swap_halves(x) * sin.
            sin = torch.cat((-sin[..., :half], sin[..., half:]), -1)
            tables[kind or ""] = (cos[0, :, None].to(self.dtype), sin[0, :, None].to(self.dtype))
        return tables

    def _read_layer(self, layer: Any, config: Any) -> Layer:
        attention, mlp = layer.self_attn, layer.mlp
        gemma = self.model_type == "gemma3_text"
        kinds = getattr(config, "layer_types", None)
        kind = kinds[attention.layer_idx] if kinds else None
        window = getattr(config, "sliding_window", None)
        if kind == "full_attention" or (self.model_type == "qwen2" and not config.use_sliding_window):
            window = None
        return Layer(
            input_norm=self.norm(layer.input_layernorm, config),
            qkv=_fused(attention.q_proj, attention.k_proj, attention.v_proj),
            q_norm=self.norm(attention.q_norm, config) if hasattr(attention, "q_norm") else None,
            k_norm=self.norm(attention.k_norm, config) if hasattr(attention, "k_norm") else None,
            output=_fused(attention.o_proj),
            attention_norm=self.norm(layer.post_attention_layernorm, config) if gemma else None,
            mlp_input_norm=self.norm(
                layer.pre_feedforward_layernorm if gemma else layer.post_attention_layernorm, config
            ),
            gate_up=_fused(mlp.gate_proj, mlp.up_proj),
            down=_fused(mlp.down_proj),
            mlp_norm=self.norm(layer.post_feedforward_layernorm, config) if gemma else None,
            rope=str(kind) if gemma else "",
            window=window,
        )

    def new_cache(self, rows: int, capacity: int) -> KVCache:
        """A KV cache of this model for `rows` requests of up to `capacity` tokens each."""
        return KVCache(
            len(self.layers), rows, capacity, self.kv_heads, self.head_dim, self.dtype, self.device
        )

    def run(self, x: torch.Tensor, batch: PackedBatch, capture: Sequence[int] = ()) -> Hidden:
        """Run inputs [T, d] through all layers, writing their keys and values to the batch's cache.

        capture: layers whose output is kept as features, in this order; i is the output of decoder layer i
        (Hugging Face's `hidden_states[i + 1]`), -1 the input.
        """
        kept = {-1: x} if -1 in capture else {}
        rope = self._rope_at(batch.positions)
        for index, layer in enumerate(self.layers):
            x = x + self._attention(index, layer, layer.input_norm(x), batch, *rope[layer.rope])
            x = x + self._mlp(layer, layer.mlp_input_norm(x))
            if index in capture:
                kept[index] = x
        features = torch.cat([kept[index] for index in capture], -1) if capture else None
        return Hidden(self.final_norm(x), features)

    def write_projected(self, projected: Iterable[torch.Tensor], batch: PackedBatch) -> None:
        """Norm, rotate and store keys and values that were projected elsewhere: [T, 2, KVH, D] for each layer."""
        rope = self._rope_at(batch.positions)
        for index, (layer, both) in enumerate(zip(self.layers, projected, strict=True)):
            keys, values = both.unbind(1)
            if layer.k_norm is not None:
                keys = layer.k_norm(keys)
            batch.cache.write(index, batch.cache_index, _rotated(keys, *rope[layer.rope]), values)

    def _rope_at(self, positions: torch.Tensor) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        """cos and sin [T, 1, D] at positions [T], for each kind of layer."""
        return {kind: (cos[positions], sin[positions]) for kind, (cos, sin) in self._rope.items()}

    def _attention(
        self,
        index: int,
        layer: Layer,
        x: torch.Tensor,
        batch: PackedBatch,
        cos: torch.Tensor,
        sin: torch.Tensor,
    ) -> torch.Tensor:
        rotated = self.heads + self.kv_heads
        qkv = layer.qkv(x).view(-1, rotated + self.kv_heads, self.head_dim)
        qk, value = qkv[:, :rotated], qkv[:, rotated:]
        if layer.q_norm is not None and layer.k_norm is not None:
            qk = torch.cat((layer.q_norm(qk[:, : self.heads]), layer.k_norm(qk[:, self.heads :])), 1)
        qk = _rotated(qk, cos, sin)
        batch.cache.write(index, batch.cache_index, qk[:, self.heads :], value)
        out = layer.output(batch.attend(index, qk[:, : self.heads], self.scale, layer.window))
        return out if layer.attention_norm is None else layer.attention_norm(out)

    def _mlp(self, layer: Layer, x: torch.Tensor) -> torch.Tensor:
        gate, up = layer.gate_up(x).chunk(2, -1)
        if self._gelu:
            gate = torch.nn.functional.gelu(gate, approximate="tanh")
        else:
            gate = torch.nn.functional.silu(gate)
        out = layer.down(gate * up)
        return out if layer.mlp_norm is None else layer.mlp_norm(out)


def _rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """RoPE on [T, H, D]; cos and sin [T, 1, D], the sign of rotate_half folded into sin."""
    half = x.shape[-1] // 2
    swapped = torch.cat((x[..., half:], x[..., :half]), -1)
    return torch.addcmul(x * cos, swapped, sin)


def _fused(*projections: torch.nn.Linear) -> Linear:
    """Several projections of the same input as one, outputs side by side."""
    weight = torch.cat([p.weight.detach() for p in projections])
    biases = [p.bias.detach() for p in projections if p.bias is not None]
    return packed_linear(weight, torch.cat(biases) if biases else None)
