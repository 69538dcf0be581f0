"""Names and lists of the matrix: every name must be defined, no value may come twice."""

from __future__ import annotations

from collections.abc import Iterator

from harness.suites.problems import Problems, Step, allowed
from harness.suites.yaml_nodes import Node

_SECTIONS = {"target": "targets", "arm": "arms", "dataset": "datasets"}


def check_names(tree: Node, problems: Problems) -> None:
    """Look at matrix, exclude and include. Values of a wrong type are left to the schema."""
    for path, section, axis in _axes(tree):
        defined = tree.mapping[section].mapping if section and section in tree.mapping else {}
        seen: list[object] = []
        for index, item in enumerate(axis.items):
            where = (*path, index) if isinstance(axis.value, list) else path
            value = item.value
            if isinstance(value, bool | dict | list):
                continue
            if value in seen:
                problems.add(item.place, where, "given twice; keep one", item.shown())
            elif section and isinstance(value, str) and value not in defined:
                kind = {"targets": "target", "arms": "arm", "datasets": "data set"}[section]
                problems.add(item.place, where, f"unknown {kind}; {allowed(value, defined)}", item.shown())
            seen.append(value)


def _axes(tree: Node) -> Iterator[tuple[tuple[Step, ...], str | None, Node]]:
    """Path, section its names are defined in (None for numbers) and node of every axis."""
    for key, axis in tree.mapping.get("matrix", Node(None, tree.place)).mapping.items():
        if key in ("concurrency", "temperature") or key in _SECTIONS.values():
            yield ("matrix", key), key if key in _SECTIONS.values() else None, axis
    for block in ("exclude", "include"):
        for index, selector in enumerate(tree.mapping.get(block, Node(None, tree.place)).items):
            for key, axis in selector.mapping.items():
                if key in ("concurrency", "temperature") or key in _SECTIONS:
                    yield (block, index, key), _SECTIONS.get(key), axis
