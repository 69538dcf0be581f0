"""What a DSpark checkpoint says of itself, read from DeepSpec's `config.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness.errors import BenchError

ARCHITECTURES = {"Qwen3DSparkModel": "qwen3", "LlamaDSparkModel": "llama"}
HEADS = ("vanilla", "gated", "rnn")


@dataclass(frozen=True)
class DSparkConfig:
    """Shape of a DSpark drafter (paper sections 2.2 and 3.1); `markov_rank` 0 is DFlash with DSpark's slots."""

    backbone: Mapping[str, Any]  # the transformer's own configuration, in Hugging Face's names
    model_type: str
    block_size: int  # γ
    target_layer_ids: tuple[int, ...]  # i: output of the target's decoder layer i; -1: its embedding output
    num_target_layers: int
    mask_token_id: int
    markov_rank: int
    markov_head_type: str
    enable_confidence_head: bool
    confidence_head_with_markov: bool

    @property
    def hidden_size(self) -> int:
        return int(self.backbone["hidden_size"])

    @property
    def vocab_size(self) -> int:
        return int(self.backbone["vocab_size"])


def read_config(folder: Path) -> DSparkConfig:
    """Read and check `config.json` of a checkpoint folder in DeepSpec's format.

    Raises BenchError that names the file, the key, its value and what is allowed.
    """
    file = folder / "config.json"
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BenchError(f"{file}: cannot be read ({error}); a checkpoint folder needs one") from error
    if not isinstance(raw, dict):
        raise BenchError(f"{file}: holds no JSON object; copy the checkpoint again")
    return _checked(raw, file)


def _checked(raw: dict[str, Any], file: Path) -> DSparkConfig:
    names = raw.get("architectures") or []
    if len(names) != 1 or names[0] not in ARCHITECTURES:
        raise BenchError(
            f"{file}: architectures = {names}: not a DeepSpec DSpark checkpoint, which has one of "
            f"{', '.join(ARCHITECTURES)}"
        )

    def count(name: str, minimum: int) -> int:
        value = raw.get(name)
        if type(value) is not int or value < minimum:
            raise BenchError(f"{file}: {name} = {value!r}: must be int of at least {minimum}")
        return value

    layers = count("num_target_layers", 2)
    rank = count("markov_rank", 0)
    head = raw.get("markov_head_type", "vanilla")
    if rank and head not in HEADS:
        raise BenchError(f"{file}: markov_head_type = {head!r}: must be one of {', '.join(HEADS)}")
    confidence = bool(raw.get("enable_confidence_head", False))
    with_markov = confidence and bool(raw.get("confidence_head_with_markov", False))
    if with_markov and not rank:
        raise BenchError(
            f"{file}: confidence_head_with_markov = true needs a Markov head, but markov_rank = 0"
        )
    vocabulary, mask = count("vocab_size", 1), count("mask_token_id", 0)
    if mask >= vocabulary:
        raise BenchError(f"{file}: mask_token_id = {mask} is outside the vocabulary of {vocabulary} entries")
    return DSparkConfig(
        backbone=raw,
        model_type=ARCHITECTURES[names[0]],
        block_size=count("block_size", 1),
        target_layer_ids=_layer_ids(raw.get("target_layer_ids"), layers, file),
        num_target_layers=layers,
        mask_token_id=mask,
        markov_rank=rank,
        markov_head_type=head,
        enable_confidence_head=confidence,
        confidence_head_with_markov=with_markov,
    )


def _layer_ids(value: Any, layers: int, file: Path) -> tuple[int, ...]:
    """Strictly increasing, each -1 or a layer before the last: the last one's output is what is predicted."""
    fine = isinstance(value, list) and value and all(type(i) is int and -1 <= i < layers - 1 for i in value)
    if not fine or any(a >= b for a, b in pairwise(value)):
        raise BenchError(
            f"{file}: target_layer_ids = {value!r}: must be increasing layer numbers from -1 (the embedding output) "
            f"to {layers - 2} (the last of {layers} layers is never used)"
        )
    return tuple(value)
