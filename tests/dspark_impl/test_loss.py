"""The chunked losses equal the plain ones, in value and gradient, and their gradients equal finite differences."""

from __future__ import annotations

import math

import pytest
import torch

from dspark_impl.training import loss
from dspark_impl.training.loss import distribution_loss, position_weights


def _inputs(rows: int, vocabulary: int, dtype: torch.dtype) -> list[torch.Tensor]:
    g = torch.Generator().manual_seed(rows)
    shapes = [(rows, 6), (rows, 3), (vocabulary, 6), (vocabulary, 3), (rows, 5), (vocabulary, 5)]
    tensors = [torch.randn(shape, generator=g, dtype=torch.float64).to(dtype) for shape in shapes]
    labels = torch.randint(0, vocabulary, (rows,), generator=g)
    return [*tensors, labels, torch.rand(rows, generator=g, dtype=torch.float64).to(dtype)]


def _plain(
    hidden: torch.Tensor,
    latent: torch.Tensor,
    lm_head: torch.Tensor,
    w2: torch.Tensor,
    target_hidden: torch.Tensor,
    target_lm_head: torch.Tensor,
    labels: torch.Tensor,
    weights: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    logits = hidden @ lm_head.T + latent @ w2.T
    distance = (logits.softmax(-1) - (target_hidden @ target_lm_head.T).softmax(-1)).abs().sum(-1)
    entropy = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    return (weights * entropy).sum(), (weights * distance).sum(), 1 - distance / 2


@pytest.mark.parametrize("rows", [1, 7, 8, 23])
def test_values_and_gradients_equal_the_plain_computation(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss, "CHUNK", 8)
    inputs = _inputs(rows, 37, torch.float64)
    results = []
    for compute in (distribution_loss, _plain):
        trained = [inputs[i].clone().requires_grad_() for i in (0, 1, 3)]
        entropy, distance, acceptance = compute(trained[0], trained[1], inputs[2], trained[2], *inputs[4:])
        (0.1 * entropy + 0.9 * distance).backward()  # type: ignore[no-untyped-call]
        results.append([entropy, distance, acceptance, *(t.grad for t in trained)])
    for got, expected in zip(*results, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-12)


def test_gradients_equal_finite_differences() -> None:
    inputs = _inputs(4, 9, torch.float64)
    trained = [inputs[i].requires_grad_() for i in (0, 1, 3)]

    def losses(
        hidden: torch.Tensor, latent: torch.Tensor, w2: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return distribution_loss(hidden, latent, inputs[2], w2, *inputs[4:])[:2]

    assert torch.autograd.gradcheck(losses, trained, eps=1e-7, atol=1e-5)


def test_at_a_tie_the_distance_and_its_gradient_are_zero() -> None:
    """Draft equal to target: the acceptance is 1 and nothing pulls."""
    inputs = _inputs(5, 11, torch.float64)
    hidden, head = inputs[4].clone().requires_grad_(), inputs[5]
    result = distribution_loss(hidden, None, head, None, inputs[4], head, inputs[6], inputs[7])
    result.total_variation.backward()  # type: ignore[no-untyped-call]
    assert result.total_variation == 0
    assert torch.equal(result.acceptance, torch.ones(5, dtype=torch.float64))
    assert hidden.grad is not None and not hidden.grad.any()


def test_saturated_logits_stay_finite() -> None:
    inputs = _inputs(6, 20, torch.float32)
    hidden = (inputs[0] * 1e4).requires_grad_()
    result = distribution_loss(hidden, inputs[1], inputs[2], inputs[3], inputs[4] * 1e4, *inputs[5:])
    (result.cross_entropy + result.total_variation).backward()  # type: ignore[no-untyped-call]
    assert all(torch.isfinite(value).all() for value in result)
    assert hidden.grad is not None and torch.isfinite(hidden.grad).all()


def test_the_label_of_acceptance_is_the_chance_that_a_draw_is_accepted() -> None:
    """Equation 8 against the rule of speculative sampling: Σ_v p_d(v) min(1, p_t(v) / p_d(v))."""
    inputs = _inputs(9, 13, torch.float64)
    result = distribution_loss(*inputs)
    p = (inputs[0] @ inputs[2].T + inputs[1] @ inputs[3].T).softmax(-1)
    q = (inputs[4] @ inputs[5].T).softmax(-1)
    expected = (p * (q / p).clamp(max=1.0)).sum(-1)
    torch.testing.assert_close(result.acceptance, expected, rtol=1e-12, atol=1e-12)


def test_position_weights_are_the_papers() -> None:
    expected = [math.exp(-(k - 1) / 7) for k in range(1, 8)]
    torch.testing.assert_close(position_weights(7), torch.tensor(expected))


def test_a_latent_without_its_projection_is_refused() -> None:
    inputs = _inputs(2, 5, torch.float32)
    with pytest.raises(ValueError, match="belong together"):
        distribution_loss(inputs[0], inputs[1], inputs[2], None, *inputs[4:])
