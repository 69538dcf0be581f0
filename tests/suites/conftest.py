"""A small set of components, and suites written to a temporary folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest
from pydantic import BaseModel, ConfigDict, Field, model_validator

from harness.registry import Components, Registry


class NgramOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    block_size: int = Field(default=5, ge=1, le=64)
    max_ngram: int = 3
    min_ngram: int = 1

    @model_validator(mode="after")
    def ordered(self) -> Self:
        if self.min_ngram > self.max_ngram:
            raise ValueError(f"min_ngram = {self.min_ngram} is above max_ngram = {self.max_ngram}")
        return self


class ModelOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    model: str
    block_size: int = 4


class NoOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class FixedOptions(NoOptions):
    length: int | None = None


@dataclass(frozen=True)
class Stub:
    """A plugin as the loader sees it."""

    name: str
    options: type[BaseModel]

    def build(self, *arguments: Any) -> None:
        raise NotImplementedError


def registry(kind: str, **plugins: type[BaseModel]) -> Registry:
    made = Registry(kind)
    for name, options in plugins.items():
        stub = Stub(name, options)
        made.register(name, lambda stub=stub: stub)  # type: ignore[misc]
    return made


@pytest.fixture
def components() -> Components:
    return Components(
        registry("drafter", ngram=NgramOptions, draft_model=ModelOptions),
        registry("scheduler", fixed=FixedOptions, confident=NoOptions),
        registry("backend", engine=NoOptions, vllm=NoOptions),
    )


Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a file below the temporary folder, which is the working directory; returns its relative path."""
    monkeypatch.chdir(tmp_path)

    def _write(name: str, text: str) -> Path:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return _write


SUITE = """\
name: base
targets:
  small: {source: "path:models/small"}
arms:
  target-only: {}
  lookup: {drafter: ngram}
datasets:
  math: {source: "builtin:math"}
  code: {source: "jsonl:data/code.jsonl"}
"""


@pytest.fixture
def valid() -> str:
    """A suite without a fault, to which a test adds one."""
    return SUITE
