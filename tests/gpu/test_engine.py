"""The engine decodes on a GPU what it decodes on the CPU."""

from __future__ import annotations

import copy

import pytest
import torch

from baselines.autoregressive.draft_model import DraftModelDrafter
from baselines.lookup.ngram import NgramDrafter
from harness.engine.attention import PackedBatch
from harness.engine.contracts import DrafterContext
from harness.engine.decoder import PackedDecoder
from harness.engine.rng import Stream, uniforms
from harness.engine.sampling import Sampling
from tests.engine.conftest import CONFIGS, DrafterMaker, decode, make_model

pytestmark = pytest.mark.gpu


def _ngram(context: DrafterContext) -> NgramDrafter:
    return NgramDrafter(5, 3, 1, context.target.device)


def _self_draft(context: DrafterContext) -> DraftModelDrafter:
    return DraftModelDrafter(context.target, 4, context)


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.8)], ids=["greedy", "sampled"])
@pytest.mark.parametrize("drafter", [None, _ngram, _self_draft], ids=["target", "ngram", "self"])
@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma3"])
def test_float32_tokens_equal_the_cpus(family: str, drafter: DrafterMaker | None, sampling: Sampling) -> None:
    model = make_model(CONFIGS[family](), seed=4)
    prompts = [[(5 * i + k) % 58 + 3 for k in range(2 + i)] for i in range(12)]
    outputs = []
    for device in ("cpu", "cuda"):
        states = decode(
            copy.deepcopy(model).to(device),
            prompts,
            concurrency=5,
            max_new_tokens=24,
            drafter=drafter,
            sampling=sampling,
        )
        outputs.append([s.output for s in states])
    assert outputs[0] == outputs[1]


@torch.inference_mode()
def test_bfloat16_logits_are_near_float32s() -> None:
    model = make_model(CONFIGS["qwen3"](), seed=1)
    text = torch.randint(3, 61, (40,), generator=torch.Generator().manual_seed(0))
    expected = model(text[None]).logits[0]
    decoder = PackedDecoder(copy.deepcopy(model).to("cuda", torch.bfloat16), 64)
    batch = PackedBatch(decoder.new_cache(1, 64), 0, [0], [40])
    logits = decoder.logits(decoder.forward(text.cuda(), batch).last).float().cpu()
    assert torch.nn.functional.cosine_similarity(logits, expected, dim=-1).min() > 0.995


def test_random_numbers_equal_the_cpus() -> None:
    seeds, rounds = torch.arange(100), torch.arange(100) - 1
    here = uniforms(seeds, rounds, 8, Stream.DRAFT)
    assert torch.equal(here, uniforms(seeds.cuda(), rounds.cuda(), 8, Stream.DRAFT).cpu())
