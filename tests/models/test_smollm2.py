"""The embedded default, from the package index to words."""

from __future__ import annotations

import torch

from harness.models.load import load_model, load_tokenizer, stop_token_ids
from harness.models.resolve import ResolvedModel
from tests.conftest import SMOLLM2_SHA256


def test_smollm2_is_the_model_we_say(smollm2: ResolvedModel) -> None:
    tokenizer, model = load_tokenizer(smollm2), load_model(smollm2, torch.bfloat16, "cpu")
    config = model.config
    assert smollm2.sha256 == SMOLLM2_SHA256
    assert (config.model_type, config.num_hidden_layers, config.hidden_size) == ("llama", 30, 576)
    assert (config.num_attention_heads, config.num_key_value_heads, config.vocab_size) == (9, 3, 49152)
    assert config.max_position_embeddings == 8192 and config.rope_parameters["rope_theta"] == 100_000
    assert model.dtype == torch.bfloat16 and not model.training
    assert stop_token_ids(smollm2, tokenizer) == (2,)

    ids = tokenizer("The capital of France is", return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        best = int(model(ids).logits[0, -1].argmax())
    assert tokenizer.decode([best]) == " Paris"
