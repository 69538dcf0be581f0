"""From logits to probabilities to tokens, the same way for target and drafter."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Sampling:
    """Temperature, then top-k, then top-p, in Hugging Face's order. Temperature 0 is greedy."""

    temperature: float = 0.0
    top_k: int = 0  # 0: off
    top_p: float = 1.0  # 1: off

    @property
    def greedy(self) -> bool:
        return self.temperature == 0.0


def probabilities(logits: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """The distribution that is sampled from. logits [..., V]; returns float32 [..., V] that sums to 1.

    At temperature 0 it is one-hot on the first largest logit.
    """
    logits = logits.float()
    if sampling.greedy:
        return torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).float()
    logits = logits / sampling.temperature
    if 0 < sampling.top_k < logits.shape[-1]:
        kth = logits.topk(sampling.top_k, dim=-1).values[..., -1:]
        logits = logits.masked_fill(logits < kth, float("-inf"))
    if sampling.top_p < 1.0:
        # A token stays while the mass of the strictly likelier ones is below top_p: at least one always stays.
        ordered, index = logits.sort(dim=-1, descending=True)
        mass = ordered.softmax(-1)
        outside = mass.cumsum(-1) - mass >= sampling.top_p
        logits = logits.masked_fill(outside.scatter(-1, index, outside), float("-inf"))
    return logits.softmax(-1)


def draw(weights: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Inverse-transform sampling. weights [..., V], not negative, need not sum to 1; u [...] in (0, 1).

    Returns token ids [...]. A token of weight zero is never drawn.
    """
    cumulative = weights.double().cumsum(-1)
    wanted = (u * cumulative[..., -1]).unsqueeze(-1)
    return torch.searchsorted(cumulative, wanted, right=True).squeeze(-1).clamp_(max=weights.shape[-1] - 1)
