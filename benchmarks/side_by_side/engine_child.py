"""The in-process engine, target-only, behind the protocol."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from harness.engine import precision
from harness.engine.arrivals import Arrivals
from harness.engine.decoder import PackedDecoder
from harness.engine.engine import Engine
from harness.engine.request import Request
from harness.engine.sampling import Sampling
from harness.models.load import load_model
from harness.models.resolve import resolve
from side_by_side.protocol import Finished, serve


class InProcessEngine:
    """Keeps one `Engine` a concurrency, as `bench run` makes one a cell."""

    def load(self, *, model: str, dtype: str, capacity: int) -> dict[str, Any]:
        resolved = resolve(f"path:{model}", sha256=None, base=Path(model))
        name = precision.default_dtype("cpu") if dtype == "auto" else dtype
        weights = load_model(resolved, getattr(torch, name), "cpu")
        self._capacity = capacity
        self._decoder = PackedDecoder(weights, int(weights.config.max_position_embeddings))
        self._engines: dict[int, Engine] = {}
        return {
            "versions": {name: version(name) for name in ("dspark-bench", "torch", "transformers")},
            "dtype": name,
            "dtype_reason": precision.reason("cpu") if dtype == "auto" else "asked for",
            "linear": self._decoder.linear_kernel,
            "threads": torch.get_num_threads(),
        }

    def generate(self, prompts: Sequence[Sequence[int]], tokens: int) -> list[Finished]:
        rows = len(prompts)
        if rows not in self._engines:
            self._engines[rows] = Engine(
                self._decoder, rows=rows, capacity=self._capacity, sampling=Sampling(temperature=0.0)
            )
        requests = [Request(index, tuple(prompt), 0, tokens) for index, prompt in enumerate(prompts)]
        states = self._engines[rows].run(Arrivals(requests))
        states.sort(key=lambda state: state.request.index)
        return [Finished(s.output, s.first_token_s, s.last_token_s) for s in states]


if __name__ == "__main__":
    serve(InProcessEngine())
