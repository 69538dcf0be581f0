"""YAML with a file and a line for every key and value.

YAML 1.2 core schema: `on` and `yes` are text, `1e-3` is a number, `010` is ten, dates are text.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from harness.errors import BenchError
from harness.suites.problems import Place, Problems, Step

_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True)
class Node:
    """A value of the file: a mapping, a list or a scalar, and where its key (in a list: itself) stands."""

    value: dict[str, Node] | list[Node] | str | int | float | bool | None
    place: Place
    text: str = ""  # of a scalar, as written

    @property
    def mapping(self) -> dict[str, Node]:
        """Its items when it is a mapping, nothing otherwise."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def items(self) -> list[Node]:
        """Its items when it is a list, itself when it is a scalar, nothing otherwise."""
        if isinstance(self.value, list):
            return self.value
        return [] if self.value is None or isinstance(self.value, dict) else [self]

    def plain(self) -> Any:
        """The value without places."""
        if isinstance(self.value, dict):
            return {key: child.plain() for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.plain() for child in self.value]
        return self.value

    def shown(self) -> str:
        """The value for an error message: text in quotes, other scalars as written, the rest shortened."""
        if isinstance(self.value, str | dict | list):
            text = json.dumps(self.plain(), ensure_ascii=False)
            return text if len(text) <= 60 else f"{text[:57]}..."
        return self.text or "null"

    def nearest(self, path: tuple[Step, ...]) -> tuple[Node, tuple[Step, ...]]:
        """Follow a path as far as it exists: the last node on it, and the path to that node."""
        node = self
        for depth, step in enumerate(path):
            if isinstance(node.value, list) and isinstance(step, int) and step < len(node.value):
                node = node.value[step]
            elif isinstance(step, str) and step in node.mapping:
                node = node.mapping[step]
            else:
                return node, path[:depth]
        return node, path


class _CoreLoader(yaml.SafeLoader):
    """Knows none of the YAML 1.1 scalars its base class knows."""


_CoreLoader.yaml_implicit_resolvers = {}

for _kind, _pattern in {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?[0-9]+",
    "float": r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
}.items():
    _CoreLoader.add_implicit_resolver(f"{_TAG}{_kind}", re.compile(rf"^(?:{_pattern})$"), None)


def parse(file: Path, problems: Problems) -> Node:
    """The tree of one file. Duplicate keys, keys that are not text and foreign tags go to the problems.

    Raises BenchError when the file cannot be read or is not YAML: then there is no tree to look further in.
    """
    shown = Place(file, 0).file_shown
    try:
        text = file.read_text(encoding="utf-8")
        root = yaml.compose(text, Loader=_CoreLoader)
    except OSError as error:
        raise BenchError(f"{shown}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BenchError(f"{shown}: not a text file in UTF-8 (byte {error.start})") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f":{mark.line + 1}" if mark else ""
        reason = " ".join(filter(None, (error.context, error.problem)))
        raise BenchError(f"{shown}{where}: not valid YAML: {reason}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise BenchError(f"{shown}: not valid YAML: {error}") from error
    if root is None:
        return Node(None, Place(file, 1))
    return _located(root, Place(file, 1), (), problems, ())


def _located(
    raw: yaml.Node, place: Place, path: tuple[Step, ...], problems: Problems, above: tuple[int, ...]
) -> Node:
    if id(raw) in above:
        problems.add(place, path, "an alias that contains itself; write the value out")
        return Node(None, place)
    above = (*above, id(raw))
    if isinstance(raw, yaml.ScalarNode):
        return _scalar(raw, place, path, problems)
    if raw.tag not in (f"{_TAG}seq", f"{_TAG}map"):
        problems.add(place, path, f"the tag {raw.tag} is not supported; write a plain value")
        return Node(None, place)
    if isinstance(raw, yaml.SequenceNode):
        children = []
        for index, item in enumerate(raw.value):
            where = Place(place.file, item.start_mark.line + 1)
            children.append(_located(item, where, (*path, index), problems, above))
        return Node(children, place)
    items: dict[str, Node] = {}
    for raw_key, raw_value in raw.value:
        where = Place(place.file, raw_key.start_mark.line + 1)
        if not isinstance(raw_key, yaml.ScalarNode) or raw_key.tag != f"{_TAG}str":
            written = raw_key.value if isinstance(raw_key, yaml.ScalarNode) else "a mapping or a list"
            problems.add(where, path, f"the key {written} is not text; put it in quotes")
        elif raw_key.value == "<<" and raw_key.style is None:
            problems.add(where, path, "the key << is not supported; share between files with `extends`")
        elif raw_key.value in items:
            first = items[raw_key.value].place.line
            problems.add(where, (*path, raw_key.value), f"given twice, first on line {first}; keep one")
        else:
            items[raw_key.value] = _located(raw_value, where, (*path, raw_key.value), problems, above)
    return Node(items, place)


def _scalar(raw: yaml.ScalarNode, place: Place, path: tuple[Step, ...], problems: Problems) -> Node:
    kind = raw.tag.removeprefix(_TAG)
    text: str = raw.value
    try:
        if kind == "str":
            return Node(text, place, text)
        if kind == "null":
            return Node(None, place, text)
        if kind == "bool":
            return Node({"true": True, "false": False}[text.lower()], place, text)
        if kind == "int":
            return Node(int(text), place, text)
        if kind == "float":
            number = float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
            if not math.isfinite(number):
                problems.add(place, path, "must be a finite number", text)
            return Node(number, place, text)
        problems.add(place, path, f"the tag {raw.tag} is not supported; write a plain value")
    except (KeyError, ValueError):
        problems.add(place, path, f"{text[:60]!r} is not a value of type {kind}")
    return Node(None, place, text)


def folder_of(file: Path) -> Path:
    """The folder that relative paths named in a file start from, without symbolic links."""
    return file.parent.resolve()
