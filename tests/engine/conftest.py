"""Small real models with random weights, one a family."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    MistralConfig,
    PreTrainedConfig,
    Qwen2Config,
    Qwen3Config,
)

from harness.engine.arrivals import Arrivals
from harness.engine.contracts import Drafter, DrafterContext, Scheduler
from harness.engine.decoder import PackedDecoder
from harness.engine.engine import Engine, Speculation
from harness.engine.request import Request, RequestState
from harness.engine.sampling import Sampling
from harness.engine.schedulers import FixedScheduler
from harness.engine.slots import Slots

SMALL: dict[str, Any] = {
    "vocab_size": 61,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 256,
    "initializer_range": 0.35,  # large enough that greedy choices vary and attention matters
    "eos_token_id": 1,
    "bos_token_id": 0,
    "pad_token_id": 2,
}

CONFIGS: dict[str, Callable[[], PreTrainedConfig]] = {
    "llama": lambda: LlamaConfig(**SMALL, tie_word_embeddings=True),
    "mistral": lambda: MistralConfig(**SMALL, sliding_window=7),
    "qwen2": lambda: Qwen2Config(**{k: v for k, v in SMALL.items() if k != "head_dim"}),
    "qwen3": lambda: Qwen3Config(**SMALL),
    "gemma3": lambda: Gemma3TextConfig(
        **SMALL,
        sliding_window=5,
        layer_types=["sliding_attention", "full_attention"],
        query_pre_attn_scalar=12,
    ),
}


def make_model(config: PreTrainedConfig, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name or "bias" in name:  # norms and biases start trivial: make them matter
                parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Tiny products are slower on several threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


GREEDY = Sampling()
ALL = FixedScheduler()
DrafterMaker = Callable[[DrafterContext], Drafter]


def decode(
    model: Any,
    prompts: Sequence[Sequence[int]],
    *,
    concurrency: int = 1,
    sampling: Sampling = GREEDY,
    max_new_tokens: int | Sequence[int] = 16,
    stop_tokens: Sequence[int] = (),
    drafter: DrafterMaker | None = None,
    scheduler: Scheduler = ALL,
    seeds: Sequence[int] | None = None,
    load: Callable[[Any], PackedDecoder] | None = None,
) -> list[RequestState]:
    """Run prompts through the engine; states in the order of the prompts."""
    budgets = [max_new_tokens] * len(prompts) if isinstance(max_new_tokens, int) else list(max_new_tokens)
    capacity = max(len(p) + b for p, b in zip(prompts, budgets, strict=True)) + 20
    target, slots = PackedDecoder(model, capacity), Slots()
    speculation = None
    if drafter is not None:
        context = DrafterContext(
            target=target,
            slots=slots,
            rows=concurrency,
            capacity=capacity,
            folder=lambda source: Path(source.source),
            load=load or (lambda source: target),
        )
        speculation = Speculation(drafter(context), scheduler)
    engine = Engine(
        target,
        rows=concurrency,
        capacity=capacity,
        sampling=sampling,
        stop_tokens=stop_tokens,
        slots=slots,
        speculation=speculation,
    )
    requests = [
        Request(i, tuple(p), seeds[i] if seeds else i, b)
        for i, (p, b) in enumerate(zip(prompts, budgets, strict=True))
    ]
    return sorted(engine.run(Arrivals(requests)), key=lambda s: s.request.index)
