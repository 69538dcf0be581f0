"""Attention of a flat batch of tokens against the KV cache: within a request, blind to all others."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn.functional import scaled_dot_product_attention

from harness.engine.kvcache import KVCache

# Up to this many query tokens a request, requests are padded to the longest and attended in one call;
# beyond it (prefill) a call for each request wastes less than the padding would.
_PADDED_QUERIES = 64


class PackedBatch:
    """Where the tokens of a step belong: the marker of the paper's section 5.3, made once and used by every layer.

    Request i of R has `lengths[i]` query tokens at positions `starts[i]`, `starts[i] + 1`, ... and its keys in
    row `first_row + i` of the cache. Tokens lie request by request, without padding, T in all. A query sees the
    keys up to its own position, or up to its request's last query token when the batch is not `causal` (the block
    of a parallel drafter).
    """

    def __init__(
        self,
        cache: KVCache,
        first_row: int,
        starts: Sequence[int],
        lengths: Sequence[int],
        *,
        causal: bool = True,
    ) -> None:
        device = cache.keys.device
        self.cache, self.first_row = cache, first_row
        self.starts, self.lengths = list(starts), list(lengths)
        self.requests, self.tokens = len(self.lengths), sum(self.lengths)
        self.reach = max(start + length for start, length in zip(starts, lengths, strict=True))
        counts = torch.tensor(self.lengths, device=device)
        self.request_of = torch.repeat_interleave(torch.arange(self.requests, device=device), counts)  # [T]
        ends = counts.cumsum(0)
        self.last_token = ends - 1  # [R] index in the flat batch
        offset = torch.arange(self.tokens, device=device) - (ends - counts)[self.request_of]
        self.positions = torch.tensor(self.starts, device=device)[self.request_of] + offset  # [T]
        self._limits = self.positions if causal else self.positions[self.last_token][self.request_of]  # [T]
        self.cache_index = (first_row + self.request_of) * cache.capacity + self.positions  # [T]
        self._padded = max(self.lengths) <= _PADDED_QUERIES
        self._width = max(self.lengths)
        self._causal = causal
        self._even = self.requests * self._width == self.tokens
        self._slot = self.request_of * self._width + offset  # [T] index in the padded batch
        self._masks: dict[tuple[int | None, int], torch.Tensor | None] = {}

    def _mask(self, window: int | None, groups: int) -> torch.Tensor | None:
        """Additive mask [R, 1, groups * width, reach], or None where every query sees every key."""
        if (window, groups) not in self._masks:
            self._masks[window, groups] = self._make_mask(window, groups)
        return self._masks[window, groups]

    def _make_mask(self, window: int | None, groups: int) -> torch.Tensor | None:
        together = self._even and min(self.starts) == max(self.starts)
        same = together and (self._width == 1 or not self._causal)
        if same and (window is None or self.reach <= window):
            return None
        dtype, device = self.cache.keys.dtype, self.cache.keys.device
        # A padding query sees position 0 alone: any key does, as long as its softmax is defined.
        position = torch.zeros(2, self.requests * self._width, dtype=torch.long, device=device)
        position[:, self._slot] = torch.stack((self.positions, self._limits))
        position, limit = position.view(2, self.requests, self._width)
        hidden = self._hidden(position, limit, self.reach, window)
        mask = torch.zeros(hidden.shape, dtype=dtype, device=device).masked_fill_(hidden, float("-inf"))
        mask = mask[:, None].expand(-1, groups, -1, -1)  # [R, G, W, L]
        return mask.reshape(self.requests, 1, groups * self._width, self.reach)

    @staticmethod
    def _hidden(position: torch.Tensor, limit: torch.Tensor, reach: int, window: int | None) -> torch.Tensor:
        """Which keys a query must not see: beyond `limit`, or before the window. [...]; bool [..., reach]."""
        key = torch.arange(reach, device=position.device)
        hidden = key > limit.unsqueeze(-1)
        if window is not None:
            hidden |= key <= position.unsqueeze(-1) - window
        return hidden

    def attend(self, layer: int, query: torch.Tensor, scale: float, window: int | None) -> torch.Tensor:
        """query [T, H, D] against the cached keys and values of `layer`; returns [T, H * D].

        The keys and values of the batch's own tokens must have been written to the cache already. A query at
        position p of a causal batch sees keys 0..p; a sliding window hides those at p - window and before.
        """
        attend = self._attend_padded if self._padded else self._attend_each
        return attend(layer, query, scale, window)

    def _attend_padded(
        self, layer: int, query: torch.Tensor, scale: float, window: int | None
    ) -> torch.Tensor:
        _, heads, size = query.shape
        kv_heads = self.cache.keys.shape[3]
        groups, rows, width = heads // kv_heads, self.requests, self._width
        if not self._even:
            padded = query.new_zeros(rows * width, heads, size)
            padded[self._slot] = query
            query = padded
        # Query heads that share a KV head become rows of one product: [R, KVH, G * W, D].
        query = query.view(rows, width, kv_heads, groups, size).permute(0, 2, 3, 1, 4)
        query = query.reshape(rows, kv_heads, groups * width, size)
        span = slice(self.first_row, self.first_row + rows)
        keys = self.cache.keys[layer, span, : self.reach].transpose(1, 2)
        values = self.cache.values[layer, span, : self.reach].transpose(1, 2)
        out = scaled_dot_product_attention(query, keys, values, self._mask(window, groups), scale=scale)
        out = out.view(rows, kv_heads, groups, width, size).permute(0, 3, 1, 2, 4)
        out = out.reshape(rows * width, heads * size)
        return out if self._even else out[self._slot]

    def _attend_each(self, layer: int, query: torch.Tensor, scale: float, window: int | None) -> torch.Tensor:
        tokens, heads, size = query.shape
        kv_heads = self.cache.keys.shape[3]
        out = query.new_empty(tokens, heads * size)
        begin = 0
        for i, (start, length) in enumerate(zip(self.starts, self.lengths, strict=True)):
            end, row = begin + length, self.first_row + i
            keys = self.cache.keys[layer, row, : start + length].transpose(0, 1)[None]
            values = self.cache.values[layer, row, : start + length].transpose(0, 1)[None]
            mask = None
            if window is not None or (start and self._causal):
                hidden = self._hidden(
                    self.positions[begin:end], self._limits[begin:end], start + length, window
                )
                mask = torch.zeros(hidden.shape, dtype=query.dtype, device=query.device)
                mask.masked_fill_(hidden, float("-inf"))
            part = scaled_dot_product_attention(
                query[begin:end].transpose(0, 1)[None],
                keys,
                values,
                mask,
                is_causal=mask is None and self._causal,
                scale=scale,
                enable_gqa=kv_heads != heads,
            )
            out[begin:end] = part[0].transpose(0, 1).reshape(length, heads * size)
            begin = end
        return out
