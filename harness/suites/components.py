"""Drafters, schedulers and backends that arms name: do they exist, and does each accept its options?"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from harness.errors import BenchError
from harness.registry import Components, Registry
from harness.suites.problems import Problems, Step, allowed
from harness.suites.schema import Arm, Options
from harness.suites.wording import add_invalid
from harness.suites.yaml_nodes import Node


def fill_in(tree: Node, plain: dict[str, Any], components: Components, problems: Problems) -> None:
    """Check the components of all arms and write the defaults of their options into `plain`.

    `plain` is the tree without places. With every default in it, the resolved suite shows, and the cell id
    covers, each value that decides what is measured. A target-only arm keeps its unused scheduler as it is.
    """
    arms = tree.mapping["arms"].mapping if "arms" in tree.mapping else {}
    for name, arm in arms.items():
        if not isinstance(arm.value, dict):
            continue
        path = ("arms", name)
        backend = arm.value.get("backend")
        chosen = backend.value if backend else Arm.model_fields["backend"].default
        if isinstance(chosen, str) and chosen not in components.backends.names():
            known = allowed(chosen, components.backends.names())
            problems.add(
                (backend or arm).place, (*path, "backend"), f"unknown backend; {known}", f'"{chosen}"'
            )
        if "drafter" not in arm.value:
            if "scheduler" in arm.value:
                message = (
                    "an arm without a drafter has nothing to schedule; take it out or give the arm a drafter"
                )
                problems.add(arm.value["scheduler"].place, (*path, "scheduler"), message)
            continue
        for key, registry in (("drafter", components.drafters), ("scheduler", components.schedulers)):
            given = plain["arms"][name].setdefault(key, Arm().scheduler.model_dump())
            if isinstance(given, dict) and isinstance(given.get("name"), str):
                options = _options(tree, (*path, key), given, registry, problems)
                plain["arms"][name][key] = given | {"options": options}


def _options(
    tree: Node, path: tuple[Step, ...], given: dict[str, Any], registry: Registry, problems: Problems
) -> Options:
    """The options with their defaults filled in; as given when they are wrong."""
    name: str = given["name"]
    options: Options = given.get("options", {})
    node, _ = tree.nearest((*path, "name"))
    if name not in registry.names():
        hint = "; leave `drafter` out for a target-only arm" if path[-1] == "drafter" else ""
        known = allowed(name, registry.names())
        problems.add(node.place, path, f"unknown {registry.kind}; {known}{hint}", f'"{name}"')
        return options
    try:
        plugin = registry.get(name)
    except BenchError as error:
        problems.add(node.place, path, str(error))
        return options
    try:
        return plugin.options.model_validate(options).model_dump(mode="json")
    except ValidationError as error:
        add_invalid(error, plugin.options, tree, problems, below=(*path, "options"), noun="option")
        return options
