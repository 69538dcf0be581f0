"""The drafter equals a straight-line transcription of the paper's equations, round after round."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from dspark_impl.drafter import DSparkDrafter
from dspark_impl.model import read_model
from harness.engine.contracts import DraftBatch, DrafterContext, Proposal
from harness.engine.sampling import Sampling
from tests.dspark_impl.conftest import CheckpointMaker
from tests.engine.conftest import decode

PROMPTS = [[(11 * i + 3 * k) % 57 + 3 for k in range(3 + 4 * i)] for i in range(6)]


class _Recorded(DSparkDrafter):
    """Keeps what each request saw and what was drafted from it."""

    def __init__(self, folder: Path, block_size: int, context: DrafterContext) -> None:
        super().__init__(read_model(folder, torch.float32), block_size, context)
        self.rounds: list[tuple[list[int], torch.Tensor, torch.Tensor, torch.Tensor | None]] = []

    def _walk(self, batch: DraftBatch, hidden: torch.Tensor, base: torch.Tensor) -> Proposal:
        proposal = super()._walk(batch, hidden, base)
        for i, state in enumerate(batch.requests):
            confidences = None if proposal.confidences is None else proposal.confidences[i]
            self.rounds.append((state.tokens, base[i], proposal.tokens[i], confidences))
        return proposal


def _norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * weight


def _rope(x: torch.Tensor, position: int, theta: float) -> torch.Tensor:
    """One vector [D] at one position, pair by pair (i, i + D/2)."""
    half, out = len(x) // 2, x.clone()
    for i in range(half):
        angle = position * theta ** (-i / half)
        out[i] = x[i] * math.cos(angle) - x[i + half] * math.sin(angle)
        out[i + half] = x[i + half] * math.cos(angle) + x[i] * math.sin(angle)
    return out


def _oracle(
    target: Any, folder: Path, tokens: list[int], block: int, drafted: list[int]
) -> tuple[torch.Tensor, torch.Tensor, list[float]]:
    """Base logits U [γ, V], corrected logits [γ, V] and c [γ] for one request, with plain loops.

    `drafted` are the words to condition on. The target's states come from Hugging Face's forward pass.
    """
    c, w = json.loads((folder / "config.json").read_text()), load_file(folder / "model.safetensors")
    w = {name: value.double() for name, value in w.items()}
    eps, heads, groups = c["rms_norm_eps"], c["num_attention_heads"], c["num_key_value_heads"]
    size = c["head_dim"]
    anchor, length = tokens[-1], len(tokens) - 1
    states = target(torch.tensor([tokens[:-1]]), output_hidden_states=True).hidden_states
    features = torch.cat([states[i + 1][0] for i in c["target_layer_ids"]], -1).double()
    context = _norm(features @ w["fc.weight"].T, w["hidden_norm.weight"], eps)  # eq. 2
    embedding = w.get("embed_tokens.weight", target.model.embed_tokens.weight.double())
    head = w.get("lm_head.weight", target.lm_head.weight.double())
    x = embedding[torch.tensor([anchor] + [c["mask_token_id"]] * (block - 1))]
    for layer in range(c["num_hidden_layers"]):
        p = {k.removeprefix(f"layers.{layer}."): v for k, v in w.items() if k.startswith(f"layers.{layer}.")}
        y = _norm(x, p["input_layernorm.weight"], eps)
        both = torch.cat((context, y))  # eq. 3
        mixed = torch.zeros(block, heads * size, dtype=torch.double)
        for h in range(heads):
            g = h // (heads // groups)
            cut, kept = slice(h * size, (h + 1) * size), slice(g * size, (g + 1) * size)
            q, k = y @ p["self_attn.q_proj.weight"][cut].T, both @ p["self_attn.k_proj.weight"][kept].T
            if "self_attn.q_norm.weight" in p:
                q = _norm(q, p["self_attn.q_norm.weight"], eps)
                k = _norm(k, p["self_attn.k_norm.weight"], eps)
            q = torch.stack([_rope(row, length + i, c["rope_theta"]) for i, row in enumerate(q)])
            k = torch.stack([_rope(row, i, c["rope_theta"]) for i, row in enumerate(k)])
            v = both @ p["self_attn.v_proj.weight"][kept].T
            mixed[:, cut] = (q @ k.T / math.sqrt(size)).softmax(-1) @ v
        x = x + mixed @ p["self_attn.o_proj.weight"].T
        y = _norm(x, p["post_attention_layernorm.weight"], eps)
        gate = torch.nn.functional.silu(y @ p["mlp.gate_proj.weight"].T)
        x = x + (gate * (y @ p["mlp.up_proj.weight"].T)) @ p["mlp.down_proj.weight"].T
    hidden = _norm(x, w["norm.weight"], eps)
    base = hidden @ head.T
    corrected, confidences, state = [], [], torch.zeros(c["markov_rank"], dtype=torch.double)
    for k, previous in enumerate([anchor, *drafted[:-1]]):
        h, logits = hidden[k], base[k]
        if c["markov_rank"]:
            word = w["markov_head.markov_w1.weight"][previous]
            latent = word  # eq. 5
            if c["markov_head_type"] == "gated":
                gate = (
                    w["markov_head.gate_proj.weight"] @ torch.cat((h, word)) + w["markov_head.gate_proj.bias"]
                )
                latent = torch.sigmoid(gate) * word
            if c["markov_head_type"] == "rnn":  # eq. 6
                z = torch.cat((state, word, h))
                z = w["markov_head.joint_proj.weight"] @ z + w["markov_head.joint_proj.bias"]
                gate, candidate, output = z.split(c["markov_rank"])
                gate = torch.sigmoid(gate)
                state = gate * state + (1 - gate) * torch.tanh(candidate)
                latent = torch.tanh(output)
            logits = logits + w["markov_head.markov_w2.weight"] @ latent
        corrected.append(logits)
        if c["enable_confidence_head"]:  # eq. 7
            joined = torch.cat((h, word)) if c["confidence_head_with_markov"] else h
            score = w["confidence_head.proj.weight"][0] @ joined + w["confidence_head.proj.bias"][0]
            confidences.append(float(torch.sigmoid(score)))
    return base, torch.stack(corrected), confidences


VARIANTS: dict[str, dict[str, Any]] = {
    "markov": {},
    "gated": {"markov_head_type": "gated"},
    "rnn": {"markov_head_type": "rnn", "target_layer_ids": [1]},
    "none": {"markov_rank": 0, "confidence_head_with_markov": False},
    "dflash": {"markov_rank": 0, "enable_confidence_head": False, "own_embeddings": True},
    "llama": {"architectures": ["LlamaDSparkModel"], "model_type": "llama", "own_embeddings": True},
}


@pytest.mark.parametrize("variant", VARIANTS)
@torch.inference_mode()
def test_every_round_equals_the_equations(variant: str, target: Any, checkpoint: CheckpointMaker) -> None:
    """Six requests of different lengths, three at a time, over several rounds with rejections and acceptances."""
    folder = checkpoint(**VARIANTS[variant])
    made: list[_Recorded] = []

    def drafter(context: DrafterContext) -> _Recorded:
        made.append(_Recorded(folder, 5, context))
        return made[-1]

    decode(target, PROMPTS, concurrency=3, max_new_tokens=8, drafter=drafter)
    rounds = made[0].rounds
    assert len(rounds) >= 20
    for tokens, base, drafted, confidences in rounds[::3]:
        expected, corrected, c = _oracle(target, folder, tokens, 5, drafted.tolist())
        torch.testing.assert_close(base.double(), expected, rtol=1e-4, atol=1e-4)
        assert drafted.tolist() == corrected.argmax(-1).tolist()
        if confidences is None:
            assert not c
        else:
            torch.testing.assert_close(confidences.double(), torch.tensor(c).double(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("head", ["vanilla", "rnn"])
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.8)], ids=["greedy", "sampled"])
def test_the_output_does_not_depend_on_the_batch(
    head: str, sampling: Sampling, target: Any, checkpoint: CheckpointMaker
) -> None:
    folder = checkpoint(markov_head_type=head)
    outputs = []
    for concurrency in (1, 4):
        states = decode(
            target,
            PROMPTS,
            concurrency=concurrency,
            max_new_tokens=14,
            sampling=sampling,
            drafter=lambda context: _Recorded(folder, 5, context),
        )
        outputs.append([(s.output, [r.draft_ids for r in s.rounds]) for s in states])
    assert outputs[0] == outputs[1]


def test_greedy_output_is_the_targets(target: Any, checkpoint: CheckpointMaker) -> None:
    folder = checkpoint()
    plain = decode(target, PROMPTS, concurrency=2, max_new_tokens=20)
    drafted = decode(
        target,
        PROMPTS,
        concurrency=2,
        max_new_tokens=20,
        drafter=lambda context: _Recorded(folder, 4, context),
    )
    assert [s.output for s in drafted] == [s.output for s in plain]
