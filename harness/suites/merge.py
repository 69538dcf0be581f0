"""`extends`: one tree from a suite file and the files it shares with.

Mappings are merged key by key, later files win, the extending file last; lists are replaced; `null` takes a
key out. A drafter or scheduler of another name replaces the one it extends, options and all. `name` and
`description` belong to their file and are not inherited.
"""

from __future__ import annotations

import os
from pathlib import Path

from harness.errors import BenchError
from harness.suites.problems import Problems, Step
from harness.suites.yaml_nodes import Node, folder_of, parse

COMPONENTS = ("drafter", "scheduler")
_FILE_SOURCES = ("path", "jsonl")
NAMED = ("targets", "arms", "datasets")  # mappings from a name to what it stands for


def merged(file: Path, problems: Problems) -> Node:
    """The tree of a suite file with all it extends, components in their long form, sources made portable.

    Problems of single keys are added to `problems`. Raises BenchError when there is no tree to look at: a
    file that cannot be read, is not YAML, or is empty.
    """
    tree = _without_nulls(_with_bases(file, problems, ()), (), problems)
    folder = folder_of(file)
    sections = {
        key: _portable(child, folder) if key in NAMED else child for key, child in tree.mapping.items()
    }
    return Node(sections, tree.place)


def _with_bases(file: Path, problems: Problems, above: tuple[Path, ...]) -> Node:
    tree = parse(file, problems)
    if not tree.mapping:
        what = "not a mapping" if tree.value else "empty"
        needed = "it needs the keys name, targets, arms and datasets"
        raise BenchError(f"{tree.place.file_shown}:1: the suite is {what}; {needed}")
    tree = _long_form(tree, problems)
    base: Node | None = None
    for other in _extended(tree, file, problems, (*above, file.resolve())):
        shared = _with_bases(other, problems, (*above, file.resolve()))
        own = {key: child for key, child in shared.mapping.items() if key not in ("name", "description")}
        base = _overlay(base, Node(own, shared.place), ()) if base else Node(own, shared.place)
    tree = Node({key: child for key, child in tree.mapping.items() if key != "extends"}, tree.place)
    return _overlay(base, tree, ()) if base else tree


def _extended(tree: Node, file: Path, problems: Problems, chain: tuple[Path, ...]) -> list[Path]:
    """The files `extends` names. Those that are missing or lead back here are problems and left out."""
    named = tree.mapping.get("extends")
    if named is None:
        return []
    if isinstance(named.value, dict):
        problems.add(named.place, ("extends",), "must be a list of files", named.shown())
    found = []
    for index, item in enumerate(named.items):
        path: tuple[Step, ...] = ("extends", index) if isinstance(named.value, list) else ("extends",)
        other = folder_of(file) / str(item.value)
        if not isinstance(item.value, str):
            problems.add(item.place, path, "must be a file name", item.shown())
        elif other.resolve() in chain:
            loop = " -> ".join(link.name for link in [*chain[chain.index(other.resolve()) :], other])
            problems.add(
                item.place,
                path,
                f"files extend each other in a circle ({loop}); take one out",
                item.shown(),
            )
        elif not other.is_file():
            problems.add(
                item.place, path, "no such file; the name is relative to the file it stands in", item.shown()
            )
        else:
            found.append(Path(os.path.normpath(other)))
    return found


def _long_form(tree: Node, problems: Problems) -> Node:
    """Components as `{name, options}`: `ngram` and `{name: ngram, block_size: 7}` are short for it."""
    arms = tree.mapping.get("arms")
    if arms is None or not isinstance(arms.value, dict):
        return tree
    rewritten = {}
    for name, arm in arms.value.items():
        parts = {
            key: _component(child, ("arms", name, key), problems) if key in COMPONENTS else child
            for key, child in arm.mapping.items()
        }
        rewritten[name] = Node(parts, arm.place) if isinstance(arm.value, dict) else arm
    return Node({**tree.mapping, "arms": Node(rewritten, arms.place)}, tree.place)


def _component(node: Node, path: tuple[Step, ...], problems: Problems) -> Node:
    if isinstance(node.value, str):
        return Node({"name": node, "options": Node({}, node.place)}, node.place)
    if not isinstance(node.value, dict):
        return node
    long = {key: child for key, child in node.value.items() if key == "name"}
    short = {key: child for key, child in node.value.items() if key not in ("name", "options")}
    options = node.value.get("options", Node({}, node.place))
    if isinstance(options.value, dict):
        for key in short.keys() & options.value.keys():
            first = options.value[key].place.line
            problems.add(short[key].place, (*path, key), f"given twice, also on line {first}; keep one")
        options = Node({**options.value, **short}, options.place)
    return Node({**long, "options": options}, node.place)


def _overlay(base: Node, top: Node, path: tuple[Step, ...]) -> Node:
    if not (isinstance(base.value, dict) and isinstance(top.value, dict)):
        return top
    if len(path) == 3 and path[0] == "arms" and path[2] in COMPONENTS:
        renamed = top.value.get("name")
        if renamed and renamed.value != base.plain().get("name"):
            return top
    items = dict(base.value)
    for key, child in top.value.items():
        if key not in items:
            items[key] = child
        elif child.value is None:
            del items[key]
        else:
            items[key] = _overlay(items[key], child, (*path, key))
    return Node(items, top.place)


def _without_nulls(node: Node, path: tuple[Step, ...], problems: Problems) -> Node:
    """Take out keys whose value is `null`. An entry that is only `null` and took nothing out is a slip."""
    if not isinstance(node.value, dict):
        return node
    items = {}
    for key, child in node.value.items():
        if child.value is not None:
            items[key] = _without_nulls(child, (*path, key), problems)
        elif len(path) == 1 and path[0] in NAMED:
            message = (
                "an entry without a value; `null` takes out an entry of an extended file, `{}` makes an arm"
            )
            problems.add(child.place, (*path, key), f"{message} without a drafter")
    return Node(items, node.place)


def _portable(node: Node, folder: Path) -> Node:
    """Relative sources, each relative to the file that names it, made relative to the suite's folder."""
    if isinstance(node.value, dict):
        return Node({key: _portable(child, folder) for key, child in node.value.items()}, node.place)
    if isinstance(node.value, list):
        return Node([_portable(child, folder) for child in node.value], node.place)
    scheme, _, path = node.value.partition(":") if isinstance(node.value, str) else ("", "", "")
    if scheme not in _FILE_SOURCES or not path or path.startswith("~") or Path(path).is_absolute():
        return node
    moved = Path(os.path.relpath(folder_of(node.place.file) / path, folder)).as_posix()
    return Node(f"{scheme}:{moved}", node.place, node.text)
