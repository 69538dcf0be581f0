"""Which cache row a request lies in: decoding requests dense from row 0, prefilling ones right behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.engine.request import RequestState

if TYPE_CHECKING:
    from harness.engine.kvcache import KVCache


class Slots:
    """Keeps the rows dense, moving a request's keys and values in every attached cache when another leaves."""

    def __init__(self) -> None:
        self.decoding: list[RequestState] = []
        self.prefilling: list[RequestState] = []
        self._caches: list[KVCache] = []

    def attach(self, cache: KVCache) -> None:
        """From now on `cache` follows the requests."""
        self._caches.append(cache)

    def __len__(self) -> int:
        return len(self.decoding) + len(self.prefilling)

    def admit(self, state: RequestState) -> None:
        """Give a new request the next free row."""
        state.row = len(self)
        self.prefilling.append(state)

    def start_decoding(self, count: int) -> None:
        """The first `count` prefilling requests have read their prompts."""
        self.decoding += self.prefilling[:count]
        del self.prefilling[:count]

    def release(self, ended: Sequence[RequestState]) -> None:
        """Take decoding requests out and close the gaps with the requests behind them."""
        for state in sorted(
            ended, key=lambda s: -s.row
        ):  # from the back, so that none is moved only to leave
            hole, last = state.row, self.decoding.pop()
            if last is not state:
                self._place(last, hole)
                self.decoding[hole] = last
            state.row = -1
        # Prefilling requests are read oldest first from consecutive rows, so none may jump ahead of another.
        for row, state in enumerate(self.prefilling, start=len(self.decoding)):
            self._place(state, row)

    def _place(self, state: RequestState, row: int) -> None:
        held = state.prefilled + len(state.output)
        if held and row != state.row:
            for cache in self._caches:
                cache.move(state.row, row, min(held, cache.capacity))
        state.row = row
