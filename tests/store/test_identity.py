"""The cell id changes with what decides a measurement, and with nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from harness.store.identity import cell_id
from harness.suites.schema import Arm, Cell, Component, Dataset, Generation, Target

CELL = Cell(
    suite="nightly",
    target_name="small",
    target=Target(source="hf:org/small@1", dtype="float32"),
    arm_name="draft",
    arm=Arm(drafter=Component(name="draft_model", options={"source": "path:/a/draft", "block_size": 5})),
    dataset_name="math",
    dataset=Dataset(source="jsonl:/a/math.jsonl", limit=30),
    concurrency=8,
    temperature=0.0,
    repeat=0,
    generation=Generation(),
)
HASHES: dict[str, Any] = {"prompt_ids_sha256": "p", "target_sha256": "t", "drafter_sha256": "d"}


def changed(**fields: Any) -> Cell:
    return CELL.model_copy(update=fields)


def test_it_is_sixteen_hexadecimal_digits_and_always_the_same() -> None:
    assert cell_id(CELL, **HASHES) == cell_id(Cell(**CELL.model_dump()), **HASHES)
    assert len(cell_id(CELL, **HASHES)) == 16 and int(cell_id(CELL, **HASHES), 16) >= 0


@pytest.mark.parametrize(
    "other",
    [
        changed(suite="weekly"),
        changed(target=Target(source="path:/b/small", sha256="t", dtype="float32")),
        changed(dataset=Dataset(source="jsonl:/b/renamed.jsonl", limit=None)),
        changed(
            arm=Arm(
                drafter=Component(name="draft_model", options={"source": "path:/b/draft", "block_size": 5})
            )
        ),
    ],
    ids=["suite", "target moved", "prompts moved", "drafter moved"],
)
def test_where_things_lie_does_not_count(other: Cell) -> None:
    assert cell_id(other, **HASHES) == cell_id(CELL, **HASHES)


@pytest.mark.parametrize(
    "other",
    [
        changed(arm_name="other"),
        changed(target=Target(source="hf:org/small@1", dtype="bfloat16")),
        changed(target=Target(source="hf:org/small@1", dtype="float32", device="cuda")),
        changed(concurrency=1),
        changed(temperature=1.0),
        changed(repeat=1),
        changed(generation=Generation(seed=1)),
        changed(generation=Generation(max_new_tokens=64)),
        changed(
            arm=Arm(
                drafter=Component(name="draft_model", options={"source": "path:/a/draft", "block_size": 4})
            )
        ),
        changed(arm=CELL.arm.model_copy(update={"scheduler": Component(name="other")})),
    ],
)
def test_what_decides_the_measurement_counts(other: Cell) -> None:
    assert cell_id(other, **HASHES) != cell_id(CELL, **HASHES)


@pytest.mark.parametrize("name", list(HASHES))
def test_content_counts(name: str) -> None:
    assert cell_id(CELL, **{**HASHES, name: "other"}) != cell_id(CELL, **HASHES)


def test_without_a_content_hash_the_location_counts() -> None:
    none = {**HASHES, "target_sha256": None}
    moved = changed(target=Target(source="hf:org/missing", dtype="float32"))
    assert cell_id(CELL, **none) != cell_id(moved, **none)
