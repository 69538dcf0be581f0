"""From a suite to its cells, in the order they are measured."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from harness.suites.schema import Cell, Inclusion, Selector, Suite


class Point(NamedTuple):
    """A point of the matrix, by name, without the repeat."""

    target: str
    dataset: str
    temperature: float
    concurrency: int
    arm: str


class Group(NamedTuple):
    """A comparison: the points that differ in nothing but the arm."""

    target: str
    dataset: str
    temperature: float
    concurrency: int


def matrix(suite: Suite) -> list[Point]:
    """The product of the axes, before `exclude` and `include`."""
    axes = suite.matrix
    return [
        Point(*values)
        for values in product(
            axes.targets or suite.targets,
            axes.datasets or suite.datasets,
            axes.temperature,
            axes.concurrency,
            axes.arms or suite.arms,
        )
    ]


def matches(selector: Selector, point: Point) -> bool:
    """Whether the point has one of the values of every field given."""
    fields = (
        (selector.target, point.target),
        (selector.dataset, point.dataset),
        (selector.temperature, point.temperature),
        (selector.concurrency, point.concurrency),
        (selector.arm, point.arm),
    )
    return all(values is None or value in values for values, value in fields)


def groups(suite: Suite) -> dict[Group, list[str]]:
    """The arms of every comparison: the matrix less `exclude`, then what `include` adds, nothing twice."""
    points = [point for point in matrix(suite) if not any(matches(one, point) for one in suite.exclude)]
    for inclusion in suite.include:
        points += _included(inclusion)
    found: dict[Group, list[str]] = {}
    for point in dict.fromkeys(points):
        found.setdefault(Group(*point[:4]), []).append(point.arm)
    return found


def expand(suite: Suite) -> list[Cell]:
    """All cells of a suite that `load_suite` accepted, in the order they are measured.

    Comparison after comparison; in each, repeat after repeat; in each, all arms, their order rotated by one
    from one repeat to the next (A B C, B C A, C A B). So what drifts while the machine warms up or fills up
    meets all arms alike.
    """
    return [_cell(suite, group, arm, repeat) for group, arm, repeat in _interleaved(suite)]


def _interleaved(suite: Suite) -> Iterator[tuple[Group, str, int]]:
    for group, arms in groups(suite).items():
        for repeat in range(suite.matrix.repeats):
            turn = repeat % len(arms)
            for arm in arms[turn:] + arms[:turn]:
                yield group, arm, repeat


def _included(inclusion: Inclusion) -> list[Point]:
    return [
        Point(*values)
        for values in product(
            inclusion.target,
            inclusion.dataset,
            inclusion.temperature,
            inclusion.concurrency,
            inclusion.arm,
        )
    ]


def _cell(suite: Suite, group: Group, arm: str, repeat: int) -> Cell:
    return Cell(
        suite=suite.name,
        target_name=group.target,
        target=suite.targets[group.target],
        arm_name=arm,
        arm=suite.arms[arm],
        dataset_name=group.dataset,
        dataset=suite.datasets[group.dataset],
        concurrency=group.concurrency,
        temperature=group.temperature,
        repeat=repeat,
        generation=suite.defaults,
    )
