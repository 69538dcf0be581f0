"""Rows stay dense and caches follow their requests, whoever joins and leaves."""

from __future__ import annotations

import random

import torch

from harness.engine.kvcache import KVCache
from harness.engine.request import Request, RequestState
from harness.engine.slots import Slots


def test_random_joins_and_leaves_keep_every_request_with_its_keys() -> None:
    """Each request writes its own number as keys; after any history they are found in its row."""
    rng, rows, capacity = random.Random(0), 9, 12
    slots = Slots()
    caches = [KVCache(2, rows, capacity, 1, 4, torch.float32, torch.device("cpu")) for _ in range(2)]
    for cache in caches:
        slots.attach(cache)

    def write(state: RequestState, length: int) -> None:
        for cache in caches:
            cache.keys[:, state.row, :length] = state.request.index
            cache.values[:, state.row, :length] = -state.request.index

    number = moved = 0
    for _ in range(1500):
        action = rng.random()
        if action < 0.45 and len(slots) < rows:
            number += 1
            slots.admit(RequestState(Request(number, (0,) * rng.randint(1, 6), 0, 5), 0.0))
        elif action < 0.7 and slots.prefilling:
            head = slots.prefilling[0]
            head.prefilled = rng.randint(head.prefilled, len(head.request.prompt))
            write(head, head.prefilled)
            if head.prefilled == len(head.request.prompt):
                slots.start_decoding(1)
                head.output.append(0)
        elif slots.decoding:
            for state in slots.decoding:
                if len(state.output) < 5:
                    state.output.append(0)
                write(state, len(state.tokens) - 1)
            ended = rng.sample(slots.decoding, rng.randint(1, len(slots.decoding)))
            before = {id(s): s.row for s in slots.decoding}
            slots.release(ended)
            moved += sum(before[id(s)] != s.row for s in slots.decoding)
        everyone = [*slots.decoding, *slots.prefilling]
        assert [state.row for state in everyone] == list(range(len(everyone)))
        for state in everyone:
            held = state.prefilled + max(0, len(state.output) - 1)  # the anchor is not in the cache yet
            for cache in caches:
                assert bool((cache.keys[:, state.row, :held] == state.request.index).all())
                assert bool((cache.values[:, state.row, :held] == -state.request.index).all())
    assert number > 50 and moved > 20
