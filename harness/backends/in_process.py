"""Measures cells with `harness.engine` in this process."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers.utils import logging

from harness.backends.contract import Finished, Measurement, ResolvedCell
from harness.engine import precision
from harness.engine.arrivals import Arrivals, poisson_arrivals
from harness.engine.contracts import DrafterContext, ModelSource
from harness.engine.decoder import PackedDecoder
from harness.engine.engine import PREFILL_TOKENS, Engine, Speculation
from harness.engine.request import Request, RequestState
from harness.engine.sampling import Sampling
from harness.engine.slots import Slots
from harness.errors import BenchError
from harness.models.load import load_model, load_tokenizer, stop_token_ids
from harness.models.resolve import ResolvedModel, resolve
from harness.registry import drafters, schedulers
from harness.suites.schema import Cell, Target

_WARMUP_TOKENS = 16  # enough to meet every batch shape a decode step has once


class _Loaded(NamedTuple):
    """A target in memory."""

    key: tuple[str, str, str]  # content, dtype, device
    decoder: PackedDecoder
    context_length: int
    stop_tokens: tuple[int, ...]
    vocabulary: dict[str, int]


class InProcessBackend:
    """Keeps the last target between cells: cells come ordered by target."""

    def __init__(self) -> None:
        # The run has its own, and transformers' would write across it.
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        self._loaded: _Loaded | None = None

    def open(self, resolved: ResolvedCell) -> EngineCell:
        """Load the target, unless it is in memory, and build the arm's drafter and scheduler."""
        assert resolved.target is not None
        target = self._load(resolved.target, resolved.cell.target)
        _check_lengths(resolved, target.context_length)
        return EngineCell(resolved, target)

    def close(self) -> None:
        self._loaded = None

    def _load(self, resolved: ResolvedModel, target: Target) -> _Loaded:
        device = _device(target.device)
        dtype = precision.default_dtype(str(device)) if target.dtype == "auto" else target.dtype
        key = (resolved.sha256, dtype, str(device))
        if self._loaded is None or self._loaded.key != key:
            self._loaded = None  # the old target leaves memory before the new one enters
            tokenizer = load_tokenizer(resolved)
            model = load_model(resolved, getattr(torch, dtype), device)
            context = int(model.config.max_position_embeddings)
            stops = stop_token_ids(resolved, tokenizer)
            decoder = PackedDecoder(model, context)
            self._loaded = _Loaded(key, decoder, context, stops, tokenizer.get_vocab())
        limit = min(self._loaded.context_length, target.context_length or self._loaded.context_length)
        return self._loaded._replace(context_length=limit)


def _device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise BenchError(f"device: {name!r} cannot be used here ({reason}); use auto or cpu") from error


def _check_lengths(resolved: ResolvedCell, limit: int) -> None:
    """Every prompt must leave room for its output."""
    budget = resolved.cell.generation.max_new_tokens
    for index, prompt in enumerate(resolved.prompts):
        if len(prompt.ids) + budget > limit:
            raise BenchError(
                f"data set {resolved.cell.dataset_name!r}: prompt {index + 1} has {len(prompt.ids)} tokens and with "
                f"max_new_tokens = {budget} exceeds the context of {limit} tokens; lower max_new_tokens, raise the "
                "target's context_length if it is capped, or leave the prompt out"
            )


class EngineCell:
    """A cell with its target in memory and its drafter built."""

    def __init__(self, resolved: ResolvedCell, target: _Loaded) -> None:
        self._cell, self._prompts, self._target = resolved.cell, resolved.prompts, target
        self._base = resolved.base
        generation = resolved.cell.generation
        self._rows = min(self._cell.concurrency, len(self._prompts))
        self._slots = Slots()
        block = 0 if self._cell.arm.drafter is None else int(self._cell.arm.drafter.options["block_size"])
        longest = max(len(prompt.ids) for prompt in self._prompts)
        self._capacity = longest + generation.max_new_tokens + block + 1
        self._sampling = Sampling(self._cell.temperature, generation.top_k, generation.top_p)
        self._engine = Engine(
            target.decoder,
            rows=self._rows,
            capacity=self._capacity,
            sampling=self._sampling,
            stop_tokens=() if generation.ignore_eos else target.stop_tokens,
            slots=self._slots,
            speculation=self._speculation(),
        )

    def _speculation(self) -> Speculation | None:
        arm = self._cell.arm
        if arm.drafter is None:
            return None
        context = DrafterContext(
            target=self._target.decoder,
            slots=self._slots,
            rows=self._rows,
            capacity=self._capacity,
            folder=self._folder,
            load=self._load_draft_model,
        )
        plugin = drafters().get(arm.drafter.name)
        drafter = plugin.build(plugin.options(**arm.drafter.options), context)
        chooser = schedulers().get(arm.scheduler.name)
        return Speculation(drafter, chooser.build(chooser.options(**arm.scheduler.options)))

    def _folder(self, source: ModelSource) -> Path:
        return resolve(source.source, sha256=source.sha256, base=self._base).path

    def _load_draft_model(self, source: ModelSource) -> PackedDecoder:
        resolved = resolve(source.source, sha256=source.sha256, base=self._base)
        vocabulary = load_tokenizer(resolved).get_vocab()
        if vocabulary != self._target.vocabulary:
            raise BenchError(
                f"arm {self._cell.arm_name!r}: source = {source.source!r} has another tokenizer than the target "
                f"({len(vocabulary)} and {len(self._target.vocabulary)} entries, or other ids); choose a draft "
                "model of the target's own family"
            )
        decoder = self._target.decoder
        return PackedDecoder(load_model(resolved, decoder.dtype, decoder.device), self._capacity)

    @property
    def configuration(self) -> Mapping[str, Any]:
        """What a reader needs to know of the engine to trust or repeat the numbers."""
        decoder, arm = self._target.decoder, self._cell.arm
        return {
            "backend": "engine",
            "device": str(decoder.device),
            "dtype": str(decoder.dtype).removeprefix("torch."),
            "dtype_reason": precision.reason(str(decoder.device)),
            "threads": torch.get_num_threads(),
            "linear": decoder.linear_kernel,
            "attention": "scaled_dot_product_attention over dense rows, grouped heads folded into queries",
            "rows": self._rows,
            "capacity": self._capacity,
            "prefill_tokens": PREFILL_TOKENS,
            "prefix_caching": False,
            "vocabulary": decoder.vocab_size,
            "tokenizer_entries": len(self._target.vocabulary),
            "stop_tokens": sorted(self._engine.stop_tokens),
            "drafter": None if arm.drafter is None else arm.drafter.model_dump(),
            "scheduler": arm.scheduler.model_dump(),
        }

    def measure(self, progress: Callable[[Finished], None]) -> Measurement:
        """Warm up, then decode all prompts. The garbage collector rests inside the measured window."""
        warmup_s = self._warm_up()
        generation = self._cell.generation
        requests = self._requests(len(self._prompts), generation.max_new_tokens)
        times = None
        if generation.arrivals is not None:
            seed = generation.seed + self._cell.repeat
            times = poisson_arrivals(len(requests), generation.arrivals.rate, seed)
        gc.collect()
        gc.disable()
        try:
            states = self._engine.run(
                Arrivals(requests, times), lambda state: progress(Finished(len(state.output)))
            )
        finally:
            gc.enable()
        states.sort(key=lambda state: state.request.index)
        return Measurement(
            requests=[self._request_row(state) for state in states],
            rounds=[{"request": s.request.index, **vars(r)} for s in states for r in s.rounds],
            warmup_s=warmup_s,
            wall_s=max(state.last_token_s for state in states),
            steps=self._engine.steps,
        )

    def _warm_up(self) -> float:
        """Decode the start of a few prompts at the cell's own concurrency; seconds it took."""
        generation = self._cell.generation
        if generation.warmup_requests == 0:
            return 0.0
        begun = time.perf_counter()
        count = min(max(generation.warmup_requests, self._rows), len(self._prompts))
        self._engine.run(Arrivals(self._requests(count, min(_WARMUP_TOKENS, generation.max_new_tokens))))
        return time.perf_counter() - begun

    def _requests(self, count: int, max_new_tokens: int) -> list[Request]:
        """The first `count` prompts. A prompt's seed differs by repeat, and is the same in every arm."""
        return [
            Request(index, prompt.ids, _seed(self._cell, index), max_new_tokens)
            for index, prompt in enumerate(self._prompts[:count])
        ]

    def _request_row(self, state: RequestState) -> dict[str, Any]:
        return {
            "request": state.request.index,
            "prompt_sha256": self._prompts[state.request.index].sha256,
            "prompt_tokens": len(state.request.prompt),
            "output_tokens": len(state.output),
            "finish_reason": state.finish_reason,
            "seed": state.request.seed,
            "arrival_s": state.arrival_s,
            "admitted_s": state.admitted_s,
            "first_token_s": state.first_token_s,
            "last_token_s": state.last_token_s,
            "rounds": len(state.rounds),
            "drafted": sum(r.drafted for r in state.rounds),
            "verified": sum(r.verified for r in state.rounds),
            "accepted": sum(r.accepted for r in state.rounds),
            "output_ids": state.output,
        }


def _seed(cell: Cell, index: int) -> int:
    return cell.generation.seed + 1_000_003 * cell.repeat + index
