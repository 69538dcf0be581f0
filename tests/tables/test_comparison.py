"""What `bench show` prints: the numbers, what they mean, and every cell that is not ok, in 100 columns."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence

import pytest
from rich.console import Console

from harness.metrics.summary import summarise
from harness.store.frames import Frames
from harness.store.rundir import PlannedCell
from harness.tables.comparison import render
from harness.tables.document import to_json
from tests.synthetic import ArmSpec, CellRows, Scenario, frames, not_ok, simulate

LONG = [0.9, 0.88, 0.86, 0.84, 0.82, 0.8, 0.78, 0.76, 0.74, 0.72, 0.7, 0.68, 0.66, 0.64, 0.62, 0.6]
ARMS = {
    "target only": ArmSpec(),
    "draft model with a long name": ArmSpec([0.8, 0.7, 0.6]),
    "long blocks": ArmSpec(LONG),
    "trimmed": ArmSpec(LONG, verified=2),
}
DOMAINS = {"gsm": "math", "mbpp": "code", "mt": "chat"}


def shown(of: Frames, planned: Sequence[PlannedCell] | None = None, width: int = 100) -> str:
    out = io.StringIO()
    render(of, Console(file=out, width=width, color_system=None), planned)
    return out.getvalue()


@pytest.fixture(scope="module")
def cells() -> list[CellRows]:
    return simulate(Scenario(ARMS, datasets=DOMAINS, prompts=8, concurrency=(1, 8), repeats=2))


@pytest.fixture(scope="module")
def text(cells: list[CellRows]) -> str:
    return shown(frames(cells))


def test_it_fits_in_100_columns_with_nothing_cut(text: str) -> None:
    assert all(len(line) <= 100 for line in text.splitlines())
    assert "…" not in text.replace("k=1,2,… %", "")


def test_every_point_arm_and_domain_is_there(text: str) -> None:
    for concurrency in (1, 8):
        assert f"toy · concurrency {concurrency} · temperature 0" in text
    words = [line.split() for line in text.splitlines()]
    for section in ("all 24 prompts", "math 8 prompts", "code 8 prompts", "chat 8 prompts"):
        assert words.count(section.split()) == 2
    assert text.count("trimmed") == 8 and text.count("reference") == 8


def test_the_numbers_are_those_of_the_summary(cells: list[CellRows], text: str) -> None:
    summary = summarise(frames(cells), ("all",))
    row = summary[(summary["arm"] == "trimmed") & (summary["concurrency"] == 1)].iloc[0]
    line = next(line for line in text.splitlines() if line.strip().startswith("trimmed"))
    for value in (f"{row['tau']:.2f}", f"{row['speedup']:.2f}×", f"{row['tok_s_user']:.1f}", "0.125"):
        assert value in line
    assert f"{row['speedup_low']:.2f}–{row['speedup_high']:.2f}" in text


def test_the_notes_say_which_definition_interval_and_sizes(text: str) -> None:
    notes = " ".join(text.split())
    assert "τ: accepted length, pooled over rounds; a drafted stop token earns no bonus token." in notes
    assert "resamples prompts, never rounds; for speeds, repeats too" in notes
    assert "Prompts: math 8, code 8, chat 8. Repeats: 2." in notes
    assert "Warning" not in notes


def test_cells_that_are_not_ok_are_listed_with_their_reasons(cells: list[CellRows]) -> None:
    reasons = {
        "failed": "path:/nowhere: no such folder",
        "unsupported": "needs [bold]CUDA[/bold]",
        "skipped": "asked",
    }
    changed = list(cells)
    for i, (status, reason) in enumerate(reasons.items()):
        changed[i + 1] = not_ok(cells[i + 1], status, reason)
    text = shown(frames(changed))
    assert "3 of 48 cells are not ok" in text
    for status, reason in reasons.items():
        assert status in text and reason in text  # square brackets in a reason are no markup


def test_a_run_without_any_ok_cell_says_so(cells: list[CellRows]) -> None:
    text = shown(frames([not_ok(cell, "failed", "broken") for cell in cells[:2]]))
    assert "2 of 2 cells are not ok" in text and "nothing to compare" in text
    assert "nothing to compare" in shown(frames([]))


def test_planned_cells_without_a_result_are_counted(cells: list[CellRows]) -> None:
    planned = [PlannedCell(cell.cell_id, "measured") for cell in cells[:4]]
    assert "All 4 planned cells" in shown(frames(cells[:4]), planned)
    assert "1 of 5 planned cells have no result yet; next: later" in shown(
        frames(cells[:4]), [*planned, PlannedCell("x", "later")]
    )


def test_suspect_numbers_are_warned_of() -> None:
    arms = {"misfit": ArmSpec([0.01, 0.01]), "other engine": ArmSpec(backend="vllm")}
    text = " ".join(shown(frames(simulate(Scenario(arms)))).split())
    assert "τ under 1.1 for misfit" in text and "no speed-up for misfit" in text


def test_a_concurrency_that_the_prompts_cannot_fill_is_warned_of() -> None:
    few = Scenario({"target only": ArmSpec()}, datasets=DOMAINS, prompts=6, concurrency=(1, 8))
    assert "concurrency 8 was never reached for math, code, chat" in " ".join(
        shown(frames(simulate(few))).split()
    )


def test_an_arm_with_fewer_data_sets_is_marked(cells: list[CellRows]) -> None:
    gone = [
        not_ok(c, "failed", "x") if (c.row["arm"], c.row["dataset"]) == ("trimmed", "mt") else c
        for c in cells
    ]
    text = " ".join(shown(frames(gone)).split())
    assert "2 of 3 data" in text and "fewer data sets than others" in text


def test_one_prompt_shows_values_without_intervals() -> None:
    text = shown(frames(simulate(Scenario(ARMS, prompts=1))))
    assert "1 prompt " in text and "1 prompts" not in text
    row = summarise(frames(simulate(Scenario(ARMS, prompts=1))), ("domain",)).set_index("arm").loc["trimmed"]
    line = next(line for line in text.splitlines() if line.strip().startswith("trimmed"))
    assert f"{row['tau']:.2f}" in line and f"{row['speedup']:.2f}×" in line
    assert not re.search(r"\d–\d", text)


def test_json_holds_every_row_and_only_what_json_can(cells: list[CellRows]) -> None:
    changed = [*cells[:-1], not_ok(cells[-1], "failed", "broken")]
    document = json.loads(json.dumps(to_json(frames(changed)), allow_nan=False))
    assert {row["level"] for row in document["rows"]} == {"all", "domain", "dataset"}
    assert document["cells"] == {"ok": 47, "failed": 1}
    assert [cell["reason"] for cell in document["not_ok"]] == ["broken"]
    reference = next(row for row in document["rows"] if row["arm"] == "target only")
    assert reference["speedup"] is None and reference["speedup_over"] is None and reference["tau"] == 1.0
    trimmed = next(row for row in document["rows"] if row["arm"] == "trimmed")
    assert (
        len(trimmed["conditional_acceptance"]) == 16 and trimmed["conditional_acceptance"][2:] == [None] * 14
    )
