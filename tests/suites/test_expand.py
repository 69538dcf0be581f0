"""Expansion: which cells, and in which order, against an expansion written out the long way."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from harness.suites.expand import expand
from harness.suites.schema import (
    Arm,
    Cell,
    Component,
    Dataset,
    Inclusion,
    Matrix,
    Selector,
    Suite,
    Target,
)

TARGETS, ARMS, DATASETS = ["t", "u"], ["a", "b", "c", "d"], ["x", "y"]
CONCURRENCY, TEMPERATURE = [1, 4, 8], [0.0, 0.5, 1.0]


def some(values: list[str] | list[int] | list[float]) -> st.SearchStrategy[list[object]]:
    return st.lists(st.sampled_from(values), min_size=1, unique=True)


FIELDS = {
    "target": some(TARGETS),
    "arm": some(ARMS),
    "dataset": some(DATASETS),
    "concurrency": some(CONCURRENCY),
    "temperature": some(TEMPERATURE),
}


@st.composite
def suites(draw: st.DrawFn) -> Suite:
    return Suite(
        name="s",
        targets={name: Target(source=f"hf:{name}") for name in TARGETS},
        arms={name: Arm(drafter=Component(name=name) if name > "a" else None) for name in ARMS},
        datasets={name: Dataset(source=f"builtin:{name}") for name in DATASETS},
        matrix=Matrix.model_validate(
            {
                "targets": draw(st.none() | some(TARGETS)),
                "arms": draw(st.none() | some(ARMS)),
                "datasets": draw(st.none() | some(DATASETS)),
                "concurrency": draw(some(CONCURRENCY)),
                "temperature": draw(some(TEMPERATURE)),
                "repeats": draw(st.integers(1, 5)),
            }
        ),
        exclude=[
            Selector.model_validate(fields)
            for fields in draw(st.lists(st.fixed_dictionaries({}, optional=FIELDS), max_size=2))
        ],
        include=[
            Inclusion.model_validate(fields)
            for fields in draw(st.lists(st.fixed_dictionaries(FIELDS), max_size=2))
        ],
    )


Key = tuple[str, str, float, int, str]


def key(cell: Cell) -> Key:
    return (cell.target_name, cell.dataset_name, cell.temperature, cell.concurrency, cell.arm_name)


def wanted(suite: Suite) -> set[Key]:
    """The points of the suite by asking every conceivable point whether it belongs."""

    def selected(selector: Selector | Inclusion, point: Key) -> bool:
        names = ("target", "dataset", "temperature", "concurrency", "arm")
        given = [(getattr(selector, name), value) for name, value in zip(names, point, strict=True)]
        return all(value in values for values, value in given if values is not None)

    def in_matrix(point: Key) -> bool:
        axes = suite.matrix
        target, dataset, temperature, concurrency, arm = point
        return (
            (axes.targets is None or target in axes.targets)
            and (axes.datasets is None or dataset in axes.datasets)
            and (axes.arms is None or arm in axes.arms)
            and temperature in axes.temperature
            and concurrency in axes.concurrency
        )

    found = set()
    for target in TARGETS:
        for dataset in DATASETS:
            for temperature in TEMPERATURE:
                for concurrency in CONCURRENCY:
                    for arm in ARMS:
                        point = (target, dataset, temperature, concurrency, arm)
                        kept = in_matrix(point) and not any(selected(one, point) for one in suite.exclude)
                        if kept or any(selected(one, point) for one in suite.include):
                            found.add(point)
    return found


@given(suites())
def test_the_cells_are_those_asked_for_each_repeat_once(suite: Suite) -> None:
    counted = Counter((*key(cell), cell.repeat) for cell in expand(suite))
    assert set(counted.values()) <= {1}
    assert set(counted) == {
        (*point, repeat) for point in wanted(suite) for repeat in range(suite.matrix.repeats)
    }


@given(suites())
def test_a_comparison_is_measured_in_one_stretch_repeat_by_repeat(suite: Suite) -> None:
    stretches = [(group, list(cells)) for group, cells in groupby(expand(suite), lambda cell: key(cell)[:4])]
    assert len({group for group, _ in stretches}) == len(stretches)
    for _, cells in stretches:
        repeats = [cell.repeat for cell in cells]
        assert repeats == sorted(repeats)


@given(suites())
def test_arms_rotate_by_one_each_repeat(suite: Suite) -> None:
    orders: dict[tuple[object, ...], dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for cell in expand(suite):
        orders[key(cell)[:4]][cell.repeat].append(cell.arm_name)
    for by_repeat in orders.values():
        for repeat in range(1, suite.matrix.repeats):
            before = by_repeat[repeat - 1]
            assert by_repeat[repeat] == before[1:] + before[:1]


@given(suites())
def test_cells_carry_what_the_suite_says_of_their_names(suite: Suite) -> None:
    for cell in expand(suite):
        assert cell.target == suite.targets[cell.target_name]
        assert cell.arm == suite.arms[cell.arm_name]
        assert cell.dataset == suite.datasets[cell.dataset_name]
        assert cell.generation == suite.defaults


def test_the_order_of_a_small_suite_written_out() -> None:
    suite = Suite(
        name="s",
        targets={"t": Target(source="hf:t")},
        arms={"A": Arm(), "B": Arm(drafter=Component(name="b")), "C": Arm(drafter=Component(name="c"))},
        datasets={"x": Dataset(source="builtin:x")},
        matrix=Matrix(concurrency=[1, 8], repeats=3),
        exclude=[Selector(arm=["B"], concurrency=[8])],
    )
    order = [f"{cell.concurrency}{cell.arm_name}{cell.repeat}" for cell in expand(suite)]
    assert " ".join(order) == "1A0 1B0 1C0 1B1 1C1 1A1 1C2 1A2 1B2 8A0 8C0 8C1 8A1 8A2 8C2"
