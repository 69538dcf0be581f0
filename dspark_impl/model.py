"""A DSpark drafter's weights: backbone, feature projection, sequential head, confidence head."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import AutoConfig, AutoModel

from dspark_impl.config import DSparkConfig, read_config
from dspark_impl.heads import ConfidenceHead, build_sequential_head
from harness.errors import BenchError

# Tensors a checkpoint may leave out: the drafter then shares the target's own (paper section 3.3).
SHARED = ("embed_tokens.weight", "lm_head.weight")


class DSparkModel(nn.Module):
    """DeepSpec's module tree, with its parameter names. The layers are Hugging Face's own decoder layers."""

    def __init__(self, config: DSparkConfig) -> None:
        super().__init__()
        self.config = config
        raw = {k: v for k, v in config.backbone.items() if k not in ("architectures", "model_type", "dtype")}
        # The embedding is set from the checkpoint or the target: one entry keeps the module from allocating it.
        shape = AutoConfig.for_model(config.model_type, **(raw | {"vocab_size": 1, "pad_token_id": None}))
        body: Any = AutoModel.from_config(shape)  # type: ignore[no-untyped-call]
        self.transformer_config = shape
        self.layers, self.norm, self.rotary_emb = body.layers, body.norm, body.rotary_emb
        width = config.hidden_size
        self.fc = nn.Linear(len(config.target_layer_ids) * width, width, bias=False)
        self.hidden_norm = type(body.norm)(width, eps=shape.rms_norm_eps)
        self.markov_head = build_sequential_head(config)
        self.confidence_head = ConfidenceHead(config) if config.enable_confidence_head else None
        self.embed_tokens: nn.Embedding | None = None
        self.lm_head: nn.Linear | None = None


def read_model(folder: Path, dtype: torch.dtype) -> DSparkModel:
    """The model of a checkpoint folder, as `dtype` on the CPU.

    Raises BenchError that names what is missing, what is too many, or what has another shape.
    """
    config = read_config(folder)
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise BenchError(f"{folder}: has no *.safetensors; copy the checkpoint again")
    tensors: dict[str, torch.Tensor] = {}
    for file in files:
        try:
            tensors |= load_file(file)
        except Exception as error:  # safetensors raises its own type and the system's
            raise BenchError(f"{file}: cannot be read ({error}); copy the checkpoint again") from error
    model = DSparkModel(config)
    width, vocabulary = config.hidden_size, config.vocab_size
    if "embed_tokens.weight" in tensors:
        model.embed_tokens = nn.Embedding(vocabulary, width)
    if "lm_head.weight" in tensors:
        model.lm_head = nn.Linear(width, vocabulary, bias=False)
    expected = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    found = {name: tuple(value.shape) for name, value in tensors.items()}
    for problem, names in (
        ("lacks", sorted(expected.keys() - found.keys())),
        ("has tensors that its configuration has no place for:", sorted(found.keys() - expected.keys())),
    ):
        if names:
            raise BenchError(f"{folder}: {problem} {', '.join(names[:4])}{' …' if len(names) > 4 else ''}")
    for name, shape in expected.items():
        if found[name] != shape:
            raise BenchError(
                f"{folder}: {name} has shape {found[name]}, but its configuration makes it {shape}"
            )
    model.load_state_dict(tensors)
    return model.to(dtype).eval()


def write_model(model: DSparkModel, folder: Path) -> None:
    """Write a checkpoint folder in DeepSpec's format, which `read_model` reads back unchanged."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: value.contiguous() for name, value in model.state_dict().items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    text = json.dumps(dict(model.config.backbone), indent=2, ensure_ascii=False)
    (folder / "config.json").write_text(text + "\n", encoding="utf-8")
