"""A checkpoint that cannot be right is refused with the file, the key, the value and the mend."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from dspark_impl.config import read_config
from dspark_impl.drafter import DSparkDrafter
from dspark_impl.model import read_model, write_model
from harness.engine.contracts import DrafterContext
from harness.errors import BenchError
from tests.dspark_impl.conftest import CheckpointMaker
from tests.engine.conftest import CONFIGS, decode, make_model


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"architectures": ["LlamaForCausalLM"]}, r"architectures = \['LlamaForCausalLM'\]: not a DeepSpec"),
        ({"target_layer_ids": [0, 3]}, r"target_layer_ids = \[0, 3\].*to 2 \(the last of 4 layers is never"),
        ({"target_layer_ids": [2, 1]}, r"target_layer_ids = \[2, 1\]: must be increasing"),
        ({"target_layer_ids": []}, r"target_layer_ids = \[\]"),
        ({"mask_token_id": 61}, "mask_token_id = 61 is outside the vocabulary of 61"),
        ({"markov_head_type": "lstm"}, "markov_head_type = 'lstm': must be one of vanilla, gated, rnn"),
        ({"markov_rank": 0}, "confidence_head_with_markov = true needs a Markov head"),
        ({"block_size": 0}, "block_size = 0: must be int of at least 1"),
        ({"block_size": "7"}, "block_size = '7': must be int"),
    ],
)
def test_a_wrong_configuration(changes: dict[str, Any], words: str, checkpoint: CheckpointMaker) -> None:
    folder = checkpoint()
    raw = json.loads((folder / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps(raw))
    with pytest.raises(BenchError, match=words):
        read_config(folder)


def test_missing_extra_and_misshapen_weights(checkpoint: CheckpointMaker) -> None:
    folder = checkpoint()
    file = folder / "model.safetensors"
    whole = load_file(file)
    save_file({k: v for k, v in whole.items() if k != "fc.weight"}, file)
    with pytest.raises(BenchError, match=r"lacks fc\.weight"):
        read_model(folder, torch.float32)
    save_file(whole | {"midlayer.weight": torch.zeros(2)}, file)
    with pytest.raises(BenchError, match=r"no place for: midlayer\.weight"):
        read_model(folder, torch.float32)
    save_file(whole | {"fc.weight": torch.zeros(48, 48)}, file)
    with pytest.raises(BenchError, match=r"fc\.weight has shape \(48, 48\), but .* \(48, 144\)"):
        read_model(folder, torch.float32)
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(BenchError, match="cannot be read"):
        read_model(folder, torch.float32)


def test_a_drafter_of_another_target(checkpoint: CheckpointMaker) -> None:
    folder = checkpoint()

    def drafter(context: DrafterContext) -> DSparkDrafter:
        return DSparkDrafter(read_model(folder, torch.float32), 5, context)

    with pytest.raises(BenchError, match="num_target_layers = 4, but the target has 2"):
        decode(make_model(CONFIGS["llama"]()), [[3, 4]], drafter=drafter)


def test_a_block_longer_than_trained_for(target: Any, checkpoint: CheckpointMaker) -> None:
    folder: Path = checkpoint()
    with pytest.raises(BenchError, match="block_size = 6 is more than the 5"):
        decode(target, [[3, 4]], drafter=lambda c: DSparkDrafter(read_model(folder, torch.float32), 6, c))


def test_what_is_written_is_read_back_unchanged(checkpoint: CheckpointMaker, tmp_path: Path) -> None:
    first = checkpoint(own_embeddings=True, markov_head_type="rnn")
    write_model(read_model(first, torch.float32), tmp_path / "copy")
    assert read_config(tmp_path / "copy") == read_config(first)
    before, after = (load_file(folder / "model.safetensors") for folder in (first, tmp_path / "copy"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
