"""Sampled decoding has the target's distribution, whatever the drafter; and the test can tell when it has not."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from scipy.stats import chisquare
from transformers import LlamaConfig

from baselines.autoregressive.draft_model import DraftModelDrafter
from baselines.lookup.ngram import NgramDrafter
from harness.engine import verify as verification
from harness.engine.contracts import DraftBatch, DrafterContext, Outcome, Proposal, TargetFeatures
from harness.engine.decoder import PackedDecoder
from harness.engine.request import RequestState
from harness.engine.rng import Stream, uniforms
from harness.engine.sampling import Sampling, draw, probabilities
from tests.engine.conftest import CONFIGS, DrafterMaker, decode, make_model

V, LENGTH, DRAWS = 5, 4, 100_000
DRAWS_FOR_POWER = 20_000  # a wrong residual shows with a fifth of them
PROMPT = [3, 1, 4]


def _tiny(seed: int) -> Any:
    config = LlamaConfig(
        vocab_size=V,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=64,
        initializer_range=0.5,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    return make_model(config, seed)


class _BadDrafter:
    """Drafts from one fixed distribution that favours what the target does not."""

    needs = TargetFeatures()

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self._q = torch.tensor([0.02, 0.55, 0.03, 0.1, 0.3])

    def begin(self, requests: Sequence[RequestState], features: Sequence[torch.Tensor] | None) -> None:
        pass

    def propose(self, batch: DraftBatch) -> Proposal:
        q = self._q.expand(len(batch.requests), self.block_size, V)
        tokens = draw(q, uniforms(batch.seeds, batch.rounds, self.block_size, Stream.DRAFT))
        return Proposal(tokens, q, torch.full_like(batch.anchors, self.block_size))

    def observe(self, batch: DraftBatch, proposal: Proposal, outcome: Outcome) -> None:
        pass

    def end(self, requests: Sequence[RequestState]) -> None:
        pass


def _bad(context: DrafterContext) -> _BadDrafter:
    return _BadDrafter(3)


def _draft_model(context: DrafterContext) -> DraftModelDrafter:
    return DraftModelDrafter(PackedDecoder(_tiny(seed=8), context.capacity), 3, context)


def _ngram(context: DrafterContext) -> NgramDrafter:
    return NgramDrafter(3, 2, 1, context.target.device)


def _enumerate(model: Any, sampling: Sampling) -> dict[tuple[int, ...], float]:
    """Exact probability of every sequence of LENGTH tokens, by Hugging Face's forward pass over all of them."""
    sequences = list(itertools.product(range(V), repeat=LENGTH))
    ids = torch.tensor([[*PROMPT, *s] for s in sequences])
    with torch.inference_mode():
        p = probabilities(model(ids).logits[:, len(PROMPT) - 1 : -1], sampling).double()
    each = p.gather(-1, ids[:, len(PROMPT) :, None]).squeeze(-1).prod(-1)
    return dict(zip(sequences, (each / each.sum()).tolist(), strict=True))


def _p_value(sampling: Sampling, drafter: DrafterMaker | None, draws: int = DRAWS) -> float:
    """Goodness of fit of `draws` sampled sequences to the enumeration; rare sequences are pooled."""
    model = _tiny(seed=1)
    states = decode(
        model,
        [PROMPT] * draws,
        concurrency=4000,
        sampling=sampling,
        max_new_tokens=LENGTH,
        drafter=drafter,
    )
    counts: dict[tuple[int, ...], int] = {}
    for state in states:
        counts[tuple(state.output)] = counts.get(tuple(state.output), 0) + 1
    expected = _enumerate(model, sampling)
    assert not {s for s in counts if expected[s] == 0.0}, "a sequence the target cannot produce"
    common = [s for s, p in expected.items() if p * draws >= 10]
    observed = [counts.get(s, 0) for s in common]
    wanted = [expected[s] * draws for s in common]
    rest = draws - sum(wanted)
    if rest >= 5:
        observed.append(draws - sum(observed))
        wanted.append(rest)
    return float(chisquare(observed, wanted, sum_check=False).pvalue)


ONE = Sampling(temperature=1.0)


@pytest.mark.parametrize(
    "drafter", [None, _bad, _draft_model, _ngram], ids=["target", "bad", "model", "ngram"]
)
def test_sequences_have_the_targets_distribution(drafter: DrafterMaker | None) -> None:
    assert _p_value(ONE, drafter) > 1e-3


def test_with_temperature_top_k_and_top_p() -> None:
    assert _p_value(Sampling(temperature=0.7, top_k=4, top_p=0.9), _draft_model) > 1e-3


@pytest.mark.parametrize("drafter", [_bad, _draft_model, _ngram], ids=["bad", "model", "ngram"])
def test_a_wrong_residual_is_caught(drafter: DrafterMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Power: drawing the correction from the target's own distribution must not pass."""
    monkeypatch.setattr(verification, "residual", lambda target, draft, rejected: target)
    assert _p_value(ONE, drafter, DRAWS_FOR_POWER) < 1e-12


@pytest.mark.parametrize("drafter", [None, _draft_model, _ngram], ids=["target", "model", "ngram"])
def test_a_seeded_request_is_the_same_in_any_batch(drafter: DrafterMaker | None) -> None:
    """Concurrency, order of arrival and the other requests change nothing."""
    model = make_model(CONFIGS["llama"](), seed=3)

    def maker(context: DrafterContext) -> Any:
        if drafter is _draft_model:
            return DraftModelDrafter(
                PackedDecoder(make_model(CONFIGS["llama"](), 5), context.capacity), 3, context
            )
        return _ngram(context)

    prompts = [[(7 * i + k) % 58 + 3 for k in range(1 + i % 9)] for i in range(24)]
    budgets = [5 + (i * 7) % 20 for i in range(24)]
    outputs = []
    for concurrency, order in ((1, range(24)), (8, range(24)), (5, reversed(range(24)))):
        order = list(order)
        states = decode(
            model,
            [prompts[i] for i in order],
            concurrency=concurrency,
            sampling=Sampling(temperature=0.9),
            max_new_tokens=[budgets[i] for i in order],
            seeds=[100 + i for i in order],
            drafter=None if drafter is None else maker,
        )
        outputs.append({s.request.seed: s.output for s in states})
    assert outputs[0] == outputs[1] == outputs[2]
    assert len({tuple(o) for o in outputs[0].values()}) > 20
