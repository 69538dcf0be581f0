"""Sequential heads (paper section 3.1): what lets the words of a block depend on each other; and the confidence head.

Parameter names are DeepSpec's, so that its checkpoints load as they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import nn

from dspark_impl.config import DSparkConfig


class SequentialHead(nn.Module, ABC):
    """Adds a bias to the base logits of each position that depends on the tokens before it in the block."""

    def __init__(self, config: DSparkConfig) -> None:
        super().__init__()
        self.rank = config.markov_rank
        self.markov_w1 = nn.Embedding(config.vocab_size, config.markov_rank)
        self.markov_w2 = nn.Linear(config.markov_rank, config.vocab_size, bias=False)

    def start(self, previous: torch.Tensor) -> torch.Tensor:
        """State before the first position; zeros [..., r] for tokens [...]."""
        return self.markov_w1.weight.new_zeros(*previous.shape, self.rank)

    @abstractmethod
    def step(
        self, state: torch.Tensor, previous: torch.Tensor, hidden: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """One position. state [..., r], previous token ids [...], backbone output h_k [..., d].

        Returns the next state [..., r] and the latent [..., r] whose product with W2 is the bias.
        """

    def bias(self, latent: torch.Tensor) -> torch.Tensor:
        """Latent [..., r] to logits [..., V]."""
        bias: torch.Tensor = self.markov_w2(latent)
        return bias


class MarkovHead(SequentialHead):
    """Equation 5: B(x_{k-1}, ·) = W1[x_{k-1}] W2. No state."""

    def step(
        self, state: torch.Tensor, previous: torch.Tensor, hidden: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return state, self.markov_w1(previous)


class GatedMarkovHead(SequentialHead):
    """The Markov head with W1[x_{k-1}] gated by the backbone's output (DeepSpec's `gated`)."""

    def __init__(self, config: DSparkConfig) -> None:
        super().__init__(config)
        self.gate_proj = nn.Linear(config.hidden_size + self.rank, self.rank)

    def step(
        self, state: torch.Tensor, previous: torch.Tensor, hidden: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        embedded = self.markov_w1(previous)
        return state, torch.sigmoid(self.gate_proj(torch.cat((hidden, embedded), -1))) * embedded


class RNNHead(SequentialHead):
    """Equation 6: a gated recurrent state over the block, zero at its start."""

    def __init__(self, config: DSparkConfig) -> None:
        super().__init__(config)
        self.joint_proj = nn.Linear(2 * self.rank + config.hidden_size, 3 * self.rank)

    def step(
        self, state: torch.Tensor, previous: torch.Tensor, hidden: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        z = torch.cat((state, self.markov_w1(previous), hidden), -1)
        gate, candidate, output = self.joint_proj(z).chunk(3, -1)
        gate = torch.sigmoid(gate)
        return gate * state + (1.0 - gate) * torch.tanh(candidate), torch.tanh(output)


class ConfidenceHead(nn.Module):
    """Equation 7: c_k = σ(w · [h_k; W1[x_{k-1}]]), or of h_k alone."""

    def __init__(self, config: DSparkConfig) -> None:
        super().__init__()
        width = config.markov_rank if config.confidence_head_with_markov else 0
        self.proj = nn.Linear(config.hidden_size + width, 1)

    def forward(self, hidden: torch.Tensor, embedded: torch.Tensor | None) -> torch.Tensor:
        """hidden [..., d], embedded W1[x_{k-1}] [..., r] or None; returns c_k float32 [...]."""
        features = hidden if embedded is None else torch.cat((hidden, embedded), -1)
        return torch.sigmoid(self.proj(features).squeeze(-1).float())


_HEADS: dict[str, type[SequentialHead]] = {"vanilla": MarkovHead, "gated": GatedMarkovHead, "rnn": RNNHead}


def build_sequential_head(config: DSparkConfig) -> SequentialHead | None:
    """The head that `markov_head_type` names; None at rank 0."""
    return _HEADS[config.markov_head_type](config) if config.markov_rank else None
