"""What a measured process and the one that asks it say to each other: one JSON object a line.

`{"do": "load", ...}` is answered with what was loaded, `{"do": "run", "prompts": [[id, ...], ...], "tokens": n,
"concurrency": c}` with a `Run`. A failure is answered with `{"error": "..."}`. Needs the standard library only: it
is imported in environments that have nothing else in common.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypedDict


class Run(TypedDict):
    """One measurement."""

    seconds: float  # from the first submission to the last token, prefill included
    outputs: list[list[int]]  # new token ids, in the order of the prompts
    ttft_s: list[float]  # first token of each request after its submission
    tpot_s: list[float]  # mean time between its later tokens: prefill excluded


class Finished(NamedTuple):
    """A request that has ended; instants in seconds after its submission."""

    output: list[int]
    first_token_s: float
    last_token_s: float


class Generator(Protocol):
    """An engine."""

    @property
    def load(self) -> Callable[..., dict[str, Any]]:
        """Make it ready; returns what it says of itself."""

    def generate(self, prompts: Sequence[Sequence[int]], tokens: int) -> list[Finished]:
        """Decode prompts that are submitted at once, greedily; answers in their order."""


def serve(generator: Generator) -> None:
    """Answer questions from standard input until it ends. Whatever else prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    actions: dict[str, Callable[..., object]] = {
        "load": generator.load,
        "run": lambda **options: measure(generator, **options),
    }
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = actions[question.pop("do")](**question)
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def measure(generator: Generator, prompts: list[list[int]], tokens: int, concurrency: int) -> Run:
    """Decode the prompts, `concurrency` of them submitted at once, the next when all of those have ended."""
    waves = [prompts[first : first + concurrency] for first in range(0, len(prompts), concurrency)]
    finished: list[Finished] = []
    gc.collect()
    gc.disable()
    try:
        begun = time.perf_counter()
        for wave in waves:
            finished += generator.generate(wave, tokens)
        seconds = time.perf_counter() - begun
    finally:
        gc.enable()
    if wrong := [len(request.output) for request in finished if len(request.output) != tokens]:
        raise RuntimeError(f"asked for {tokens} tokens a request, got {wrong[0]}")
    return Run(
        seconds=seconds,
        outputs=[request.output for request in finished],
        ttft_s=[request.first_token_s for request in finished],
        tpot_s=[(r.last_token_s - r.first_token_s) / max(1, tokens - 1) for r in finished],
    )
