"""Lossless verification of drafted tokens (paper section 2.1; Leviathan et al. 2023, Chen et al. 2023)."""

from __future__ import annotations

from typing import NamedTuple

import torch

from harness.engine.rng import Stream, uniforms
from harness.engine.sampling import Sampling, draw, probabilities


class Verdict(NamedTuple):
    """Outcome of a verification for R requests."""

    accepted: torch.Tensor  # int64 [R]: accepted draft tokens n, 0..ℓ
    next_tokens: (
        torch.Tensor
    )  # int64 [R]: the correction after a rejection, the bonus token after a full block


def residual(target: torch.Tensor, draft: torch.Tensor | None, rejected: torch.Tensor) -> torch.Tensor:
    """Weights of the correction after a rejection: the positive part of p_t - p_d, not normalised.

    target [N, V]; draft [N, V], or None for drafts proposed with certainty; rejected [N] token ids.
    Where rounding leaves nothing (p_t equals p_d), it is p_t.
    """
    if draft is None:
        weights = target.scatter(-1, rejected.unsqueeze(-1), 0.0)
    else:
        weights = (target - draft).clamp_(min=0.0)
    empty = weights.sum(-1, keepdim=True) <= 0.0
    return torch.where(empty, target, weights)


def verify(
    logits: torch.Tensor,
    tokens: torch.Tensor,
    draft: torch.Tensor | None,
    lengths: torch.Tensor,
    sampling: Sampling,
    seeds: torch.Tensor,
    rounds: torch.Tensor,
) -> Verdict:
    """Accept each drafted token with probability min(1, p_t / p_d), then draw the token that follows.

    logits [Σ(1+ℓ), V]: the target's, packed request by request, row k of a request for the token after its
    k-th draft token (row 0: after the anchor). tokens int64 [R, γ]. draft float32 [R, γ, V], or None for
    one-hot drafts (n-gram, temperature 0). lengths int64 [R]: ℓ of each request. seeds and rounds int64 [R]: what
    the random numbers are a function of.
    """
    block = tokens.shape[1]
    starts = (lengths + 1).cumsum(0) - (lengths + 1)  # [R] first row of each request
    verified = torch.arange(block, device=tokens.device) < lengths[:, None]  # [R, γ]
    rows = starts[:, None] + torch.arange(block + 1, device=tokens.device).clamp(
        max=lengths[:, None]
    )  # [R, γ+1]
    if sampling.greedy:
        choice = logits.argmax(-1)[rows]  # [R, γ+1]
        accepted = (verified & (tokens == choice[:, :block])).cumprod(-1).sum(-1)
        return Verdict(accepted, choice.gather(1, accepted[:, None]).squeeze(1))
    target = probabilities(logits, sampling)  # [Σ(1+ℓ), V]
    p_target = target[rows[:, :block], tokens]  # [R, γ]
    p_draft = 1.0 if draft is None else draft.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    u = uniforms(seeds, rounds, block, Stream.ACCEPT)
    accepted = (verified & (u * p_draft < p_target)).cumprod(-1).sum(-1)
    weights = target[starts + accepted]  # [R, V]
    short = (accepted < lengths).nonzero().squeeze(-1)  # requests whose round ends on a rejection
    if short.numel():
        at = accepted[short]
        weights[short] = residual(
            weights[short], None if draft is None else draft[short, at], tokens[short, at]
        )
    return Verdict(accepted, draw(weights, uniforms(seeds, rounds, 1, Stream.TARGET)[:, 0]))
