"""Probabilities equal Hugging Face's warpers; draws are distributed as their weights; numbers are as specified."""

from __future__ import annotations

import pytest
import torch
from scipy.stats import chisquare, kstest
from transformers import LogitsProcessorList, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from harness.engine.rng import Stream, uniforms
from harness.engine.sampling import Sampling, draw, probabilities


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("top_k", [0, 1, 7, 200])
@pytest.mark.parametrize("top_p", [0.05, 0.8, 1.0])
def test_probabilities_equal_hugging_face(temperature: float, top_k: int, top_p: float) -> None:
    logits = torch.randn(40, 97, generator=torch.Generator().manual_seed(0)) * 3
    warpers = LogitsProcessorList([TemperatureLogitsWarper(temperature)])
    if top_k:
        warpers.append(TopKLogitsWarper(top_k))
    if top_p < 1:
        warpers.append(TopPLogitsWarper(top_p))
    expected = warpers(torch.zeros(40, 1, dtype=torch.long), logits.clone()).softmax(-1)
    torch.testing.assert_close(probabilities(logits, Sampling(temperature, top_k, top_p)), expected)


def test_temperature_zero_is_one_hot_on_the_first_largest() -> None:
    logits = torch.tensor([[1.0, 5.0, 5.0], [9.0, 0.0, 1.0]])
    expected = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    assert torch.equal(probabilities(logits, Sampling()), expected)


def test_saturated_bfloat16_logits_stay_finite() -> None:
    logits = torch.tensor([[3e38, 3e38, -3e38]], dtype=torch.bfloat16)
    expected = torch.tensor([[0.5, 0.5, 0.0]])
    torch.testing.assert_close(probabilities(logits, Sampling(temperature=1.0)), expected)


def test_draws_follow_the_weights_and_never_hit_a_zero() -> None:
    weights = torch.tensor([0.0, 3.0, 0.0, 1.0, 4.0, 0.0])  # not normalised on purpose
    seeds = torch.arange(200_000)
    u = uniforms(seeds, torch.zeros_like(seeds), 1, Stream.TARGET)[:, 0]
    counts = torch.bincount(draw(weights.expand(len(seeds), -1), u), minlength=6)
    assert counts[[0, 2, 5]].sum() == 0
    observed = counts[[1, 3, 4]].numpy()
    assert chisquare(observed, [75_000, 25_000, 100_000]).pvalue > 1e-3


def _splitmix(x: int) -> int:
    """The published finaliser in Python's unbounded integers."""
    mask = (1 << 64) - 1
    x = (x + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def test_uniforms_equal_the_published_generator() -> None:
    assert _splitmix(0) == 0xE220A8397B1DCDAF  # first output of SplitMix64 seeded with 0
    seeds, rounds = [0, 5, -3, 2**62], [0, 9, -1, 40]
    mask = (1 << 64) - 1
    got = uniforms(torch.tensor(seeds), torch.tensor(rounds), 6, Stream.ACCEPT)
    for i, (seed, number) in enumerate(zip(seeds, rounds, strict=True)):
        state = _splitmix(_splitmix(seed & mask) ^ (number & mask))
        for k in range(6):
            word = _splitmix(state ^ (k * len(Stream) + Stream.ACCEPT))
            assert got[i, k].item() == ((word >> 11) + 0.5) * 2.0**-53


def test_uniforms_are_uniform_and_their_streams_independent() -> None:
    seeds = torch.arange(50_000)
    zero = torch.zeros_like(seeds)
    columns = [
        uniforms(seeds, zero, 3, Stream.TARGET),
        uniforms(seeds, zero + 1, 3, Stream.TARGET),
        uniforms(seeds, zero, 3, Stream.ACCEPT),
        uniforms(seeds, zero, 3, Stream.DRAFT),
    ]
    table = torch.cat(columns, 1)  # [50,000, 12]
    for column in table.T:
        assert kstest(column.numpy(), "uniform").pvalue > 1e-4
    correlation = torch.corrcoef(table.T) - torch.eye(12)
    assert correlation.abs().max() < 5 / 50_000**0.5
