"""Cross-entropy and total variation of draft logits that never exist in full (equations 8 to 10)."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

CHUNK = 512  # rows whose logits exist at one time: enough that reading the LM head again costs little


class DistributionLoss(NamedTuple):
    """Sums over rows, and the acceptance each row would have."""

    cross_entropy: torch.Tensor  # []: Σ w · -log p_d(x*), eq. 9
    total_variation: torch.Tensor  # []: Σ w · ‖p_d - p_t‖₁, eq. 10
    acceptance: torch.Tensor  # float32 [N]: c* = 1 - ½‖p_d - p_t‖₁, eq. 8; no gradient flows through it


def position_weights(block_size: int, device: torch.device | None = None) -> torch.Tensor:
    """w_k = exp(-(k - 1) / γ) for k = 1..γ; float32 [γ]."""
    return torch.exp(-torch.arange(block_size, device=device, dtype=torch.float32) / block_size)


def distribution_loss(
    hidden: torch.Tensor,
    latent: torch.Tensor | None,
    lm_head: torch.Tensor,
    markov_w2: torch.Tensor | None,
    target_hidden: torch.Tensor,
    target_lm_head: torch.Tensor,
    labels: torch.Tensor,
    weights: torch.Tensor,
) -> DistributionLoss:
    """Both losses of draft logits `hidden @ lm_head.T + latent @ markov_w2.T`, CHUNK rows at a time.

    hidden [N, d] and latent [N, r] of the drafter, target_hidden [N, d'] of the target before its LM head;
    lm_head [V, d] and target_lm_head [V, d'] are frozen, markov_w2 [V, r] is trained; labels int64 [N];
    weights [N]. Gradients go to hidden, latent and markov_w2. They are computed on the way forward, so that
    no chunk's logits are kept. At a tie p_d = p_t the total variation has the subgradient 0.
    """
    if (latent is None) != (markov_w2 is None):
        raise ValueError("latent and markov_w2 belong together: give both or neither")
    return DistributionLoss(
        *_DistributionLoss.apply(  # type: ignore[no-untyped-call]
            hidden, latent, lm_head, markov_w2, target_hidden, target_lm_head, labels, weights
        )
    )


class _DistributionLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: torch.Tensor,
        latent: torch.Tensor | None,
        lm_head: torch.Tensor,
        markov_w2: torch.Tensor | None,
        target_hidden: torch.Tensor,
        target_lm_head: torch.Tensor,
        labels: torch.Tensor,
        weights: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        exact = torch.promote_types(hidden.dtype, torch.float32)  # float64 stays, bfloat16 becomes float32
        sums = hidden.new_zeros(2, dtype=exact)
        acceptance = hidden.new_empty(len(hidden), dtype=exact)
        # Gradients of the two losses, [2, ...]: what weighs them is known only on the way back.
        to_hidden = hidden.new_empty(2, *hidden.shape)
        to_latent = None if latent is None else latent.new_empty(2, *latent.shape)
        to_w2 = None if markov_w2 is None else markov_w2.new_zeros(2, *markov_w2.shape, dtype=exact)
        for begin in range(0, len(hidden), CHUNK):
            at = slice(begin, begin + CHUNK)
            logits = hidden[at] @ lm_head.T
            if latent is not None and markov_w2 is not None:
                logits = logits + latent[at] @ markov_w2.T
            log_p = logits.to(exact).log_softmax(-1)
            target = (target_hidden[at] @ target_lm_head.T).to(exact).log_softmax(-1).exp()
            p, w, label = log_p.exp(), weights[at].to(exact), labels[at, None]
            difference = p - target
            distance = difference.abs().sum(-1)
            acceptance[at] = 1.0 - 0.5 * distance
            sums[0] -= (w * log_p.gather(-1, label).squeeze(-1)).sum()
            sums[1] += (w * distance).sum()
            sign = difference.sign()
            for which, gradient in enumerate(
                (
                    p.scatter_add(-1, label, -torch.ones_like(w)[:, None]),
                    p * (sign - (p * sign).sum(-1, True)),
                )
            ):
                weighed = (gradient * w[:, None]).to(hidden.dtype)
                to_hidden[which, at] = weighed @ lm_head
                if (
                    to_latent is not None
                    and to_w2 is not None
                    and latent is not None
                    and markov_w2 is not None
                ):
                    to_latent[which, at] = weighed @ markov_w2
                    to_w2[which] += (weighed.T @ latent[at]).to(exact)
        ctx.save_for_backward(to_hidden, to_latent, to_w2)
        ctx.mark_non_differentiable(acceptance)
        return sums[0].clone(), sums[1].clone(), acceptance

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        to_hidden, to_latent, to_w2 = ctx.saved_tensors
        scale = torch.stack(gradients[:2])

        def weighed(each: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor | None:
            return None if each is None else torch.tensordot(scale, each.to(scale.dtype), 1).to(dtype)

        dtype = to_hidden.dtype
        return (
            weighed(to_hidden, dtype),
            weighed(to_latent, dtype),
            None,
            weighed(to_w2, dtype),
            None,
            None,
            None,
            None,
        )
