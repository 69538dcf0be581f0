"""Keys and values of all requests in flight, one row of the cache a request."""

from __future__ import annotations

import torch


class KVCache:
    """Keys and values [layers, rows, capacity, kv_heads, head_dim].

    The rows of the requests in flight are kept dense from row 0 on (`harness.engine.slots`), so that a step's
    attention reads views and never gathers. Rolling back rejected tokens costs nothing: what lies beyond a
    request's context length is never read and is overwritten by the next round.
    """

    def __init__(
        self,
        layers: int,
        rows: int,
        capacity: int,
        kv_heads: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.rows, self.capacity = rows, capacity
        shape = (layers, rows, capacity, kv_heads, head_dim)
        self.keys = torch.zeros(shape, dtype=dtype, device=device)
        self.values = torch.zeros(shape, dtype=dtype, device=device)
        flat = (layers, rows * capacity, kv_heads, head_dim)
        self._flat_keys, self._flat_values = self.keys.view(flat), self.values.view(flat)

    def write(self, layer: int, index: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Store keys and values [T, kv_heads, head_dim] at index [T] = row * capacity + position."""
        self._flat_keys[layer].index_copy_(0, index, keys)
        self._flat_values[layer].index_copy_(0, index, values)

    def move(self, source: int, destination: int, length: int) -> None:
        """Copy the first `length` positions of one row over another."""
        for tensor in (self.keys, self.values):
            tensor[:, destination, :length] = tensor[:, source, :length]
