"""The packed forward pass equals Hugging Face's, however the tokens are packed."""

from __future__ import annotations

import pytest
import torch
from transformers import GPT2Config

from harness.engine import attention
from harness.engine.attention import PackedBatch
from harness.engine.decoder import PackedDecoder
from harness.errors import BenchError
from tests.engine.conftest import CONFIGS, make_model


@pytest.mark.parametrize("family", CONFIGS)
@pytest.mark.parametrize("padded_queries", [attention._PADDED_QUERIES, 0], ids=["padded", "each"])
@torch.inference_mode()
def test_logits_and_features_equal_hugging_face(
    family: str, padded_queries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "_PADDED_QUERIES", padded_queries)
    model = make_model(CONFIGS[family]())
    texts = [torch.randint(3, 61, (n,), generator=torch.Generator().manual_seed(n)) for n in (19, 33, 26)]
    expected = [model(t[None], output_hidden_states=True) for t in texts]
    decoder = PackedDecoder(model, 64)
    cache = decoder.new_cache(4, 64)
    # Three steps that split the texts unevenly, in cache rows 1 to 3.
    cuts = [(0, 5, 11, 19), (0, 20, 21, 33), (0, 1, 9, 26)]
    logits: list[list[torch.Tensor]] = [[], [], []]
    features: list[list[torch.Tensor]] = [[], [], []]
    for step in range(3):
        starts = [c[step] for c in cuts]
        lengths = [c[step + 1] - c[step] for c in cuts]
        batch = PackedBatch(cache, 1, starts, lengths)
        tokens = torch.cat([t[s : s + n] for t, s, n in zip(texts, starts, lengths, strict=True)])
        hidden = decoder.forward(tokens, batch, capture=(0, -1))
        assert hidden.features is not None
        for i, part in enumerate(decoder.logits(hidden.last).split(lengths)):
            logits[i].append(part)
        for i, part in enumerate(hidden.features.split(lengths)):
            features[i].append(part)
    for i in range(3):
        torch.testing.assert_close(torch.cat(logits[i]), expected[i].logits[0], rtol=1e-4, atol=1e-4)
        states = expected[i].hidden_states
        torch.testing.assert_close(
            torch.cat(features[i]), torch.cat((states[1][0], states[0][0]), -1), rtol=1e-4, atol=1e-4
        )


def test_moving_a_row_moves_its_request() -> None:
    model = make_model(CONFIGS["llama"]())
    decoder = PackedDecoder(model, 32)
    text = torch.randint(3, 61, (12,))
    with torch.inference_mode():
        cache = decoder.new_cache(3, 32)
        decoder.forward(text[:11], PackedBatch(cache, 2, [0], [11]))
        cache.move(2, 0, 11)
        moved = decoder.forward(text[11:], PackedBatch(cache, 0, [11], [1])).last
        stayed = decoder.forward(text[11:], PackedBatch(cache, 2, [11], [1])).last
    torch.testing.assert_close(moved, stayed, rtol=0, atol=0)


def test_an_unknown_family_is_refused_by_name() -> None:
    model = make_model(GPT2Config(vocab_size=61, n_embd=32, n_layer=1, n_head=2))
    with pytest.raises(BenchError, match=r"'gpt2'.*llama, mistral, qwen2, qwen3, gemma3_text"):
        PackedDecoder(model, 32)
