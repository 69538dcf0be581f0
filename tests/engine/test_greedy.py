"""Greedy decoding equals Hugging Face's `generate`, token for token, with and without speculation."""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any

import pytest
import torch

from baselines.autoregressive.draft_model import DraftModelDrafter
from baselines.lookup.ngram import NgramDrafter
from harness.engine.contracts import DrafterContext
from harness.engine.decoder import PackedDecoder
from tests.engine.conftest import CONFIGS, DrafterMaker, decode, make_model

EOS = 1


def _ngram(context: DrafterContext) -> NgramDrafter:
    return NgramDrafter(5, 3, 1, context.target.device)


def _draft_model(context: DrafterContext) -> DraftModelDrafter:
    """Another random model: it agrees with the target now and then."""
    return DraftModelDrafter(
        PackedDecoder(make_model(CONFIGS["llama"](), seed=9), context.capacity), 4, context
    )


def _self_draft(context: DrafterContext) -> DraftModelDrafter:
    """The target drafts for itself: everything is accepted."""
    return DraftModelDrafter(context.target, 4, context)


ARMS: dict[str, DrafterMaker | None] = {
    "target-only": None,
    "ngram": _ngram,
    "draft_model": _draft_model,
    "self_draft": _self_draft,
}


@lru_cache
def _reference(family: str) -> tuple[Any, list[list[int]], list[int], list[list[int]]]:
    """Model, 60 prompts of 1 to 40 tokens, output budgets of 1 to 24, and what `generate` says."""
    model = make_model(CONFIGS[family](), seed=4)
    rng = random.Random(family)
    prompts = [[rng.randrange(3, 61) for _ in range(rng.randint(1, 40))] for _ in range(60)]
    budgets = [rng.randint(1, 24) for _ in prompts]
    outputs = []
    for prompt, budget in zip(prompts, budgets, strict=True):
        ids = torch.tensor([prompt])
        out = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=budget,
            do_sample=False,
            eos_token_id=EOS,
            pad_token_id=2,
        )
        outputs.append(out[0, len(prompt) :].tolist())
    return model, prompts, budgets, outputs


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma3"])
def test_equal_to_generate(family: str, concurrency: int, arm: str) -> None:
    """At concurrency 8 the requests join and leave mid-flight, as their budgets and stop tokens differ."""
    model, prompts, budgets, expected = _reference(family)
    states = decode(
        model,
        prompts,
        concurrency=concurrency,
        max_new_tokens=budgets,
        stop_tokens=[EOS],
        drafter=ARMS[arm],
    )
    assert [s.output for s in states] == expected
    ends = [
        (s.finish_reason, s.output[-1] == EOS, len(s.output) == b)
        for s, b in zip(states, budgets, strict=True)
    ]
    assert all(stopped if reason == "stop" else full for reason, stopped, full in ends)


def test_the_references_stop_early_and_late() -> None:
    """Otherwise the test above would say nothing about stop tokens or length limits."""
    _, _, budgets, expected = _reference("llama")
    stopped = [e[-1] == EOS for e in expected]
    assert 10 <= sum(stopped) <= 50
    assert any(len(e) == b for e, b in zip(expected, budgets, strict=True))


def test_a_prompt_longer_than_a_prefill_step_is_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    model, prompts, budgets, expected = _reference("qwen3")
    monkeypatch.setattr("harness.engine.engine.PREFILL_TOKENS", 7)
    states = decode(
        model, prompts, concurrency=5, max_new_tokens=budgets, stop_tokens=[EOS], drafter=_draft_model
    )
    assert [s.output for s in states] == expected


def test_the_record_adds_up() -> None:
    """Rounds, drafts and emitted tokens of the log are those of the output."""
    model, prompts, budgets, _ = _reference("llama")
    states = decode(
        model, prompts, concurrency=8, max_new_tokens=budgets, stop_tokens=[EOS], drafter=_draft_model
    )
    assert sum(r.accepted for s in states for r in s.rounds) > 0
    for state, budget in zip(states, budgets, strict=True):
        emitted = [t for r in state.rounds for t in r.emitted_ids]
        assert state.output == state.output[:1] + emitted
        context = len(state.request.prompt) + 1
        for number, r in enumerate(state.rounds):
            assert (r.round, r.context_length) == (number, context)
            assert r.accepted <= r.verified <= r.drafted == len(r.draft_ids) == 4
            assert r.emitted_ids[: r.accepted] == r.draft_ids[: r.accepted][: len(r.emitted_ids)]
            assert r.ended_by_stop == (EOS in r.draft_ids[: r.accepted])
            full = r.accepted + (0 if r.ended_by_stop else 1)
            assert len(r.emitted_ids) == full or len(state.output) == budget
            context += len(r.emitted_ids)
        assert state.arrival_s <= state.admitted_s <= state.first_token_s <= state.last_token_s


def test_a_target_that_drafts_for_itself_is_always_accepted() -> None:
    model, prompts, _, _ = _reference("llama")
    states = decode(model, prompts[:8], concurrency=4, max_new_tokens=21, drafter=_self_draft)
    assert all(r.accepted == r.verified == 4 for s in states for r in s.rounds)
    assert {len(s.rounds) for s in states} == {4}  # 1 + 4 rounds of 5 tokens
