"""Tiny random DSpark checkpoints on disk, in DeepSpec's format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from transformers import LlamaConfig

from dspark_impl.config import read_config
from dspark_impl.model import DSparkModel
from tests.engine.conftest import SMALL, make_model
from tests.engine.conftest import _one_thread as _one_thread

LAYERS = 4

BASE: dict[str, Any] = {
    "architectures": ["Qwen3DSparkModel"],
    "model_type": "qwen3",
    "block_size": 5,
    "num_hidden_layers": 2,
    "num_target_layers": LAYERS,
    "target_layer_ids": [-1, 0, 2],
    "mask_token_id": 60,
    "num_anchors": 8,
    "markov_rank": 6,
    "markov_head_type": "vanilla",
    "enable_confidence_head": True,
    "confidence_head_with_markov": True,
    "hidden_size": 48,
    "intermediate_size": 40,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": 61,
    "rms_norm_eps": 1e-6,
    "rope_theta": 500.0,
    "max_position_embeddings": 256,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "dtype": "float32",
}

CheckpointMaker = Callable[..., Path]


@pytest.fixture
def checkpoint(tmp_path: Path) -> CheckpointMaker:
    """make(own_embeddings=..., **changes to the configuration) -> folder."""

    def make(*, own_embeddings: bool = False, **changes: Any) -> Path:
        folder = tmp_path / "checkpoint"
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps(BASE | changes))
        torch.manual_seed(3)
        model = DSparkModel(read_config(folder))
        if own_embeddings:
            model.embed_tokens = torch.nn.Embedding(61, 48)
            model.lm_head = torch.nn.Linear(48, 61, bias=False)
        tensors = {name: torch.randn_like(value) * 0.4 for name, value in model.state_dict().items()}
        save_file(tensors, folder / "model.safetensors")
        return folder

    return make


@pytest.fixture(scope="session")
def target() -> Any:
    """A Llama with random weights, four layers deep."""
    return make_model(LlamaConfig(**(SMALL | {"num_hidden_layers": LAYERS})), seed=6)
