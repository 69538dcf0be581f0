"""Reading resolved models: errors and stop tokens. Loading itself is tested where real models are made."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from harness.errors import BenchError
from harness.models.load import load_model, load_tokenizer, stop_token_ids
from harness.models.resolve import ResolvedModel


def _model(folder: Path, **files: Any) -> ResolvedModel:
    for name, content in files.items():
        (folder / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return ResolvedModel(folder, "0" * 64, "path:here")


@pytest.mark.parametrize(
    ("files", "tokenizer_eos", "expected"),
    [
        ({"config": {"eos_token_id": 2}}, None, (2,)),
        ({"config": {"eos_token_id": 45}, "generation_config": {"eos_token_id": [45, 43]}}, 7, (7, 43, 45)),
        ({"config": {"text_config": {"eos_token_id": [1, 106]}}, "generation_config": {}}, 1, (1, 106)),
        ({"config": {"eos_token_id": None}}, None, ()),
        ({"config": {"eos_token_id": 0}}, 0, (0,)),
    ],
)  # fmt: skip
def test_stop_tokens_are_all_that_are_named(
    tmp_path: Path, files: dict[str, Any], tokenizer_eos: int | None, expected: tuple[int, ...]
) -> None:
    tokenizer: Any = SimpleNamespace(eos_token_id=tokenizer_eos)
    assert stop_token_ids(_model(tmp_path, **files), tokenizer) == expected


def test_broken_generation_config(tmp_path: Path) -> None:
    tokenizer: Any = SimpleNamespace(eos_token_id=1)
    with pytest.raises(BenchError, match=r"generation_config\.json: not valid JSON"):
        stop_token_ids(_model(tmp_path, config={}, generation_config="{"), tokenizer)


def test_no_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"path:here: no usable tokenizer.*tokenizer\.json"):
        load_tokenizer(_model(tmp_path, config={"model_type": "llama"}))


@pytest.mark.parametrize("config", [{"model_type": "no-such-family"}, {"model_type": "llama"}, {}])
def test_model_that_cannot_be_loaded(tmp_path: Path, config: dict[str, Any]) -> None:
    """An architecture nobody knows, a known one without weights, a configuration that says nothing."""
    with pytest.raises(BenchError, match=r"path:here: cannot load .* as torch\.bfloat16 on cpu"):
        load_model(_model(tmp_path, config=config), torch.bfloat16, "cpu")
