"""What is wrong with a suite file: collected with file, line, key and value, and raised together."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from harness.errors import BenchError

Step = str | int  # a key of a mapping or an index of a list


class Place(NamedTuple):
    """A line of a file."""

    file: Path
    line: int  # from 1

    @property
    def file_shown(self) -> str:
        """The file relative to the working directory when it lies in it."""
        relative = os.path.relpath(self.file)
        return str(self.file) if relative.startswith("..") else relative


class Problems:
    """Problems found so far, so that one look at the message mends the whole file."""

    def __init__(self) -> None:
        self._found: dict[str, Place] = {}  # message -> place; the same message is kept once

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, place: Place, path: Iterable[Step], message: str, value: str | None = None) -> None:
        """Note a problem of the key at `path`; `value` is what stands there, when that helps."""
        key = dotted(path)
        subject = f"{key} = {value}" if key and value is not None else key
        where = f"{place.file_shown}:{place.line}"
        self._found[": ".join(filter(None, (where, subject, message)))] = place

    def raise_if_any(self) -> None:
        """Raises BenchError with one line a problem, in the order of the files' lines."""
        if self._found:
            raise BenchError("\n".join(sorted(self._found, key=lambda message: self._found[message])))


def dotted(path: Iterable[Step]) -> str:
    """`arms.ngram.drafter`, `matrix.concurrency[1]`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def allowed(word: str, names: Iterable[str]) -> str:
    """`did you mean x? allowed: x, y`: how to mend a name that does not exist."""
    names = list(names)
    close = difflib.get_close_matches(word, names, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"{hint}allowed: {', '.join(names) or 'nothing'}"
