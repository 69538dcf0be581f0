"""When requests arrive: as soon as there is room (closed loop) or by themselves (open loop)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from harness.engine.request import Request, RequestState


def poisson_arrivals(count: int, rate: float, seed: int) -> list[float]:
    """Instants in seconds at which `count` requests arrive, `rate` a second on average, the first at 0."""
    gaps = np.random.default_rng(seed).exponential(1.0 / rate, size=count)
    return [float(t) for t in np.cumsum(gaps) - gaps[0]]


class Arrivals:
    """Hands out requests in order. `times` None is a closed loop: a request arrives when the engine has room."""

    def __init__(self, requests: Sequence[Request], times: Sequence[float] | None = None) -> None:
        arrival: Sequence[float | None] = times or [None] * len(requests)
        self._waiting = deque(zip(requests, arrival, strict=True))

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def next_at(self) -> float:
        """Instant of the next arrival, 0 in a closed loop."""
        return self._waiting[0][1] or 0.0

    def take(self, now: float, room: int) -> list[RequestState]:
        """Requests that have arrived by `now`, `room` at most."""
        taken: list[RequestState] = []
        while self._waiting and len(taken) < room and self.next_at <= now:
            request, time = self._waiting.popleft()
            taken.append(RequestState(request, arrival_s=now if time is None else time))
        return taken
