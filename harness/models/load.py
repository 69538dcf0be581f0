"""Reading a resolved model: tokenizer, weights, stop tokens."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from harness.errors import BenchError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from harness.models.resolve import ResolvedModel


def load_tokenizer(resolved: ResolvedModel) -> PreTrainedTokenizerBase:
    """The model's tokenizer. Raises `BenchError` when the folder has none that transformers can read."""
    from transformers import AutoTokenizer

    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            resolved.path, local_files_only=True
        )
    except Exception as error:  # transformers raises a dozen types for a folder it cannot read
        raise BenchError(
            f"{resolved.source}: no usable tokenizer in {resolved.path} ({_first_line(error)}). "
            "Put the model's tokenizer.json and tokenizer_config.json there."
        ) from error
    return tokenizer


def load_model(resolved: ResolvedModel, dtype: torch.dtype, device: torch.device | str) -> PreTrainedModel:
    """The model's weights as `dtype` on `device`, in evaluation mode, read from safetensors only.

    Raises `BenchError` when transformers does not know the architecture, the files do not fit it, or the
    device has not enough memory.
    """
    from transformers import AutoModelForCausalLM

    try:
        model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
            resolved.path, dtype=dtype, use_safetensors=True, local_files_only=True
        )
        model.to(device)  # type: ignore[arg-type]
    except Exception as error:  # as above, and torch's own for the device
        raise BenchError(
            f"{resolved.source}: cannot load {resolved.path} as {dtype} on {device} ({_first_line(error)}). "
            "Check that it is a whole causal language model, that the installed transformers knows it, "
            "and that the device has the memory."
        ) from error
    model.train(False)
    return model


def stop_token_ids(resolved: ResolvedModel, tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """Token ids that end a request, ascending: all that the generation configuration, the model configuration
    and the tokenizer name. Raises `BenchError` when one of the two files is not JSON.
    """
    generation, config = _read(resolved, "generation_config.json"), _read(resolved, "config.json")
    named = [generation, config, config.get("text_config", {})]
    ids: set[int] = set()
    for eos in (*(values.get("eos_token_id") for values in named), tokenizer.eos_token_id):
        ids.update(eos if isinstance(eos, list) else [] if eos is None else [eos])
    return tuple(sorted(ids))


def _read(resolved: ResolvedModel, name: str) -> dict[str, Any]:
    file = resolved.path / name
    if not file.is_file():
        return {}
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BenchError(f"{file}: not valid JSON ({error}). Download or save the model again.") from error
    return content


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
