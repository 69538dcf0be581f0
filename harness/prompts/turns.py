"""DeepSpec's prompt files: JSON Lines with `turns`, the list of what the user says. The first is used."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from harness.errors import BenchError


def first_turns(lines: Iterable[str], name: str) -> Iterator[str]:
    """The first turn of every line; empty lines are passed over.

    `name` is the file in error messages. Raises `BenchError`, naming the line, when it is not JSON or has no
    `turns` that begin with a text.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise BenchError(
                f"{name}, line {number}: not valid JSON ({error}). Write one object a line."
            ) from None
        turns = row.get("turns") if isinstance(row, dict) else None
        if not (isinstance(turns, list) and turns and isinstance(turns[0], str) and turns[0].strip()):
            raise BenchError(
                f'{name}, line {number}: needs `turns`, a list that begins with a text: {{"turns": ["..."]}}.'
            )
        yield turns[0]
