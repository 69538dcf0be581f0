"""Is what a suite asks for a fair comparison? Checks on the whole suite, once every key is in order."""

from __future__ import annotations

from harness.suites.expand import groups, matches, matrix
from harness.suites.problems import Problems, Step
from harness.suites.schema import Suite
from harness.suites.yaml_nodes import Node

_SHOWN = 8  # groups without a target-only arm that are named one by one


def check_comparisons(suite: Suite, tree: Node, problems: Problems) -> None:
    """Excludes that do nothing, no cells at all, sampling options without sampling, no target-only arm."""
    points = matrix(suite)
    for index, selector in enumerate(suite.exclude):
        if not any(matches(selector, point) for point in points):
            message = "takes nothing out: no cell of the matrix has these values; mend or delete it"
            _add(problems, tree, ("exclude", index), message)
    found = groups(suite)
    if not found:
        _add(problems, tree, ("exclude",), "takes every cell out; leave some")
        return
    if all(group.temperature == 0 for group in found):
        for key, value, off in (("top_k", suite.defaults.top_k, 0), ("top_p", suite.defaults.top_p, 1.0)):
            if value != off:
                message = "has no effect, every temperature is 0; take it out or add a temperature above 0"
                _add(problems, tree, ("defaults", key), message, shown=True)
    _check_target_only(suite, tree, problems)


def _check_target_only(suite: Suite, tree: Node, problems: Problems) -> None:
    if all(arm.drafter for arm in suite.arms.values()):
        message = (
            "no target-only arm to compare with; add an arm without a drafter, such as `target-only: {}`"
        )
        _add(problems, tree, ("arms",), message)
        return
    lacking = []
    for group, arms in groups(suite).items():
        for backend in dict.fromkeys(suite.arms[arm].backend for arm in arms):
            if all(suite.arms[arm].drafter for arm in arms if suite.arms[arm].backend == backend):
                lacking.append(
                    f"target {group.target}, dataset {group.dataset}, concurrency {group.concurrency}, "
                    f"temperature {group.temperature:g}, backend {backend}"
                )
    for name in lacking[:_SHOWN]:
        message = f"no target-only arm in the group {name}; add an arm without a drafter to it"
        _add(problems, tree, ("matrix",), message)
    if len(lacking) > _SHOWN:
        _add(problems, tree, ("matrix",), f"{len(lacking) - _SHOWN} more groups have no target-only arm")


def _add(
    problems: Problems, tree: Node, path: tuple[Step, ...], message: str, *, shown: bool = False
) -> None:
    node, _ = tree.nearest(path)
    problems.add(node.place, path, message, node.shown() if shown else None)
