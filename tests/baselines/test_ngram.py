"""Prompt lookup drafts what a search of the whole text finds."""

from __future__ import annotations

import random

import pytest
import torch
from pydantic import ValidationError

from baselines.lookup import NGRAM, NgramOptions
from baselines.lookup.ngram import NgramDrafter
from harness.engine.contracts import DraftBatch, Outcome
from harness.engine.request import Request, RequestState
from harness.engine.sampling import Sampling


def _search(text: list[int], count: int, longest: int, shortest: int) -> list[int]:
    """First occurrence of the longest suffix that occurs earlier in the text, and what follows it."""
    for size in range(min(longest, len(text) - 1), shortest - 1, -1):
        for start in range(len(text) - size):
            if text[start : start + size] == text[-size:]:
                return text[start + size : start + size + count]
    return []


def _batch(states: list[RequestState]) -> DraftBatch:
    zero = torch.zeros(len(states), dtype=torch.long)
    return DraftBatch(states, zero, zero, zero, zero, Sampling())


@pytest.mark.parametrize(("longest", "shortest"), [(1, 1), (3, 1), (4, 2), (5, 5)])
def test_drafts_equal_a_search_of_the_text(longest: int, shortest: int) -> None:
    """Over rounds in which some drafts are accepted, for three requests at once."""
    rng = random.Random(longest)
    drafter = NgramDrafter(4, longest, shortest, torch.device("cpu"))
    states = []
    for index, length in enumerate((1, 6, 25)):
        prompt = tuple(rng.randrange(4) for _ in range(length))
        states.append(RequestState(Request(index, prompt, 0, 99), 0.0, output=[rng.randrange(4)]))
    drafter.begin(states, None)
    drafted = 0
    for _ in range(30):
        batch = _batch(states)
        proposal = drafter.propose(batch)
        expected = [_search(s.tokens, 4, longest, shortest) for s in states]
        got = [row[:n] for row, n in zip(proposal.tokens.tolist(), proposal.drafted.tolist(), strict=True)]
        assert got == expected
        drafted += sum(map(len, got))
        accepted = [rng.randint(0, len(draft)) for draft in got]
        following = [rng.randrange(4) for _ in states]
        outcome = Outcome(torch.tensor(accepted), torch.tensor(following), None, proposal.drafted)
        drafter.observe(batch, proposal, outcome)
        for state, draft, n, token in zip(states, got, accepted, following, strict=True):
            state.output += [*draft[:n], token]
    assert drafted > 0
    drafter.end(states[:1])
    assert len(drafter.propose(_batch(states[1:])).tokens) == 2


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValidationError, match="min_ngram = 3 is above max_ngram = 2"):
        NgramOptions(max_ngram=2, min_ngram=3)
    assert NGRAM.options is NgramOptions
