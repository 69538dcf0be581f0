"""The real target: 60 built-in prompts decoded as Hugging Face's `generate` decodes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from baselines.autoregressive.draft_model import DraftModelDrafter
from baselines.lookup.ngram import NgramDrafter
from harness.engine.contracts import DrafterContext
from harness.models.load import load_model, load_tokenizer
from harness.models.resolve import ResolvedModel
from harness.prompts.load import load_prompts
from harness.prompts.render import render
from harness.suites.schema import Dataset
from tests.engine.conftest import DrafterMaker, decode

TOKENS = 8


@pytest.fixture(autouse=True)
def _all_threads(_one_thread: None) -> None:
    """A real model is worth all cores."""
    torch.set_num_threads(max(2, torch.get_num_threads()))


@pytest.fixture(scope="module")
def reference(smollm2: ResolvedModel) -> tuple[Any, list[list[int]], list[list[int]]]:
    """The model in float32, the first 20 prompts of each built-in set, and what `generate` says."""
    tokenizer = load_tokenizer(smollm2)
    model: Any = load_model(smollm2, torch.float32, "cpu")
    sets = [
        load_prompts(Dataset(source=f"builtin:{name}", limit=20), Path()) for name in ("math", "code", "chat")
    ]
    prompts = [p for each in sets for p in each]
    ids = [list(r.ids) for r in render(prompts, tokenizer, thinking=False, system=None)]
    outputs = []
    for prompt in ids:
        tensor = torch.tensor([prompt])
        out = model.generate(
            tensor,
            attention_mask=torch.ones_like(tensor),
            max_new_tokens=TOKENS,
            do_sample=False,
            pad_token_id=2,
        )
        outputs.append(out[0, len(prompt) :].tolist())
    return model, ids, outputs


def _ngram(context: DrafterContext) -> NgramDrafter:
    return NgramDrafter(7, 4, 2, context.target.device)


def _self_draft(context: DrafterContext) -> DraftModelDrafter:
    return DraftModelDrafter(context.target, 3, context)


@pytest.mark.parametrize(
    ("concurrency", "drafter"),
    [(1, None), (8, None), (1, _ngram), (8, _ngram), (8, _self_draft)],
    ids=["target-1", "target-8", "ngram-1", "ngram-8", "self-draft-8"],
)
def test_equal_to_generate(
    reference: tuple[Any, list[list[int]], list[list[int]]], concurrency: int, drafter: DrafterMaker | None
) -> None:
    """At concurrency 8 with different budgets, so that requests join and leave mid-flight."""
    model, prompts, expected = reference
    budgets = [TOKENS - (i % 5 if concurrency > 1 else 0) for i in range(len(prompts))]
    states = decode(
        model, prompts, concurrency=concurrency, max_new_tokens=budgets, stop_tokens=[2], drafter=drafter
    )
    assert len(states) == 60
    assert [s.output for s in states] == [e[:b] for e, b in zip(expected, budgets, strict=True)]
