"""A run directory keeps what was committed, whatever happens, and says what is wrong with a file."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import harness
from harness.errors import BenchError
from harness.store.parquet import VERSION_KEY
from harness.store.rundir import DONE, PlannedCell, RunDirectory

ROOT = Path(__file__).parents[2]
PLANNED = [PlannedCell(f"{i:016x}", f"cell {i}") for i in range(4)]
A, B, C, _ = (cell.cell_id for cell in PLANNED)
OK = {"suite": "s", "arm": "a", "status": "ok", "concurrency": 1}
REQUESTS = [{"request": 0, "prompt_sha256": "p", "output_tokens": 3, "output_ids": [5, 6, 7]}]
ROUNDS: dict[str, list[Any]] = {
    "request": [0, 0],
    "round": [0, 1],
    "drafted": [2, 2],
    "verified": [2, 1],
    "accepted": [1, 0],
    "ended_by_stop": [False, False],
    "confidences": [[0.5, 0.25], None],
    "draft_ids": [[6, 9], [1, 2]],
}


def create(path: Path, planned: list[PlannedCell] = PLANNED) -> RunDirectory:
    return RunDirectory.create(
        path,
        suite="s",
        suite_yaml="name: s\n",
        environment_id="env",
        environment={"threads": 2},
        planned=planned,
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with one measured cell, closed."""
    with create(tmp_path / "run") as opened:
        opened.commit(A, OK, REQUESTS, ROUNDS)
    return tmp_path / "run"


def test_frames_give_back_what_was_committed(run: Path) -> None:
    cells, requests, rounds = harness.load(run)
    assert cells["cell_id"].tolist() == [A] and cells["status"].tolist() == ["ok"]
    assert requests["cell_id"].tolist() == [A] and list(requests["output_ids"].iloc[0]) == [5, 6, 7]
    assert rounds["verified"].tolist() == [2, 1]
    assert list(rounds["confidences"].iloc[0]) == [0.5, 0.25] and rounds["confidences"].isna().tolist() == [
        False,
        True,
    ]
    assert cells["wall_s"].isna().all()  # not given


def test_list_columns_can_be_left_out(run: Path) -> None:
    frames = RunDirectory.open(run).frames(lists=False)
    assert (
        "draft_ids" not in frames.rounds
        and "accepted" in frames.rounds
        and "output_ids" not in frames.requests
    )


def test_a_run_without_results_has_empty_frames_with_all_columns(tmp_path: Path) -> None:
    create(tmp_path / "run").close()
    frames = harness.load(tmp_path / "run")
    assert [len(frame) for frame in frames] == [0, 0, 0]
    assert "tau" in frames.cells and "prompt_sha256" in frames.requests and "accepted" in frames.rounds


def test_plan_suite_environment_and_engine_are_kept(tmp_path: Path) -> None:
    with create(tmp_path / "run") as run:
        run.write_engine(A, {"threads": 2})
        with pytest.raises(ValueError, match="not planned"):
            run.write_engine("f" * 16, {})
    plan = RunDirectory.open(tmp_path / "run").plan
    assert plan.suite == "s" and plan.cells == PLANNED and plan.environment_id == "env"
    assert plan.suite_sha256 == hashlib.sha256(b"name: s\n").hexdigest()
    for file in ("suite.yaml", "environments/env.json", f"engines/{A}.json"):
        assert (tmp_path / "run" / file).stat().st_size


def test_only_failed_cells_are_to_be_run_again_and_the_new_result_replaces_the_old(run: Path) -> None:
    with RunDirectory.open(run, write=True) as opened:
        opened.commit(B, {**OK, "status": "failed", "reason": "no such model"}, [], [])
        opened.commit(C, {**OK, "status": "unsupported", "reason": "no CUDA"}, [], [])
        assert opened.committed() == {A: "ok", B: "failed", C: "unsupported"}
        assert [cell for cell, status in opened.committed().items() if status not in DONE] == [B]
        opened.commit(B, OK, REQUESTS, ROUNDS)
    frames = harness.load(run)
    assert frames.cells.set_index("cell_id")["status"].to_dict() == {A: "ok", B: "ok", C: "unsupported"}
    assert len(frames.rounds) == 4


def test_cells_no_longer_planned_stay_on_disk_and_are_not_read(run: Path) -> None:
    with RunDirectory.open(run, write=True) as opened:
        opened.replan(suite_yaml="x", environment_id="env2", environment={}, planned=PLANNED[1:])
        assert opened.committed() == {}
    assert harness.load(run).cells.empty and (run / "cells" / f"{A}.parquet").exists()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"requests": [{"request": 0, "tokens": 3}]}, "no column 'tokens'"),
        ({"rounds": [{"cell_id": "other"}]}, "another cell_id"),
        ({"cell_row": {"status": "done"}}, "status 'done'"),
    ],
)
def test_rows_that_do_not_fit_are_refused_before_anything_is_written(
    tmp_path: Path, rows: dict[str, Any], message: str
) -> None:
    with create(tmp_path / "run") as run:
        with pytest.raises(ValueError, match=message):
            run.commit(A, **{"cell_row": OK, "requests": REQUESTS, "rounds": ROUNDS, **rows})
        assert not list((tmp_path / "run").rglob("*.parquet"))


def test_reading_does_not_write(run: Path) -> None:
    with pytest.raises(ValueError, match="open for reading"):
        RunDirectory.open(run).commit(B, OK, [], [])


def test_leftovers_of_a_killed_process_are_not_read_and_are_cleaned_for_writing(run: Path) -> None:
    shutil.copy(run / "rounds" / f"{A}.parquet", run / "rounds" / f"{B}.parquet")  # its cells file never came
    half = run / "cells" / f".tmp-77-{B}.parquet"
    half.write_bytes(b"PAR1 half")
    assert RunDirectory.open(run).committed() == {A: "ok"} and len(harness.load(run).rounds) == 2
    assert half.exists()  # a reader leaves the files of a living writer alone
    RunDirectory.open(run, write=True).close()
    assert not half.exists() and not (run / "rounds" / f"{B}.parquet").exists()
    assert (run / "rounds" / f"{A}.parquet").exists()


WRITER = """
import sys
from tests.store.test_rundir import OK, PLANNED, create
from harness.store.rundir import PlannedCell, RunDirectory
from pathlib import Path
path, planned = Path(sys.argv[1]), [PlannedCell(f"{i:016x}", str(i)) for i in range(60)]
run = RunDirectory.open(path, write=True) if (path / "run.json").exists() else create(path, planned)
done = run.committed()
print("ready", flush=True)
for i, cell in enumerate(planned):
    if cell.cell_id not in done:
        n = 500 + i
        rows = {"request": [0] * n, "round": list(range(n)), "draft_ids": [[i] * 7] * n}
        run.commit(cell.cell_id, {**OK, "seed": i, "rounds": n}, [{"request": 0, "rounds": n}], rows)
print("all", flush=True)
"""


def test_killed_at_any_moment_a_run_ends_with_every_cell_whole(tmp_path: Path) -> None:
    chance, kills, last = random.Random(0), 0, ""
    while last != "all":
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
        if kills < 4:
            time.sleep(chance.uniform(0.0, 0.12))
            writer.send_signal(signal.SIGKILL)
            kills += 1
        last = writer.stdout.read().strip()
        writer.wait()
        frames = harness.load(tmp_path / "run")
        assert (
            frames.rounds.groupby("cell_id", observed=True).size().tolist() == frames.cells["rounds"].tolist()
        )
    assert sorted(frames.cells["seed"]) == list(range(60))
    assert not [p for p in (tmp_path / "run").rglob("*") if p.name.startswith(".tmp")]


def test_a_second_writer_is_refused_and_may_write_once_the_first_is_gone(run: Path) -> None:
    first = RunDirectory.open(run, write=True)
    with pytest.raises(BenchError, match=rf"run\.lock: another process \(pid {os.getpid()}\) is writing"):
        RunDirectory.open(run, write=True)
    assert RunDirectory.open(run).committed() == {A: "ok"}  # readers are welcome
    first.close()
    RunDirectory.open(run, write=True).close()


@pytest.mark.parametrize("table", ["cells", "requests", "rounds"])
@pytest.mark.parametrize("keep", [0, 4, 0.5, 0.98])
def test_a_truncated_file_is_named_with_the_mend(run: Path, table: str, keep: float) -> None:
    file = run / table / f"{A}.parquet"
    content = file.read_bytes()
    file.write_bytes(content[: int(keep if keep > 1 else keep * len(content))])
    with pytest.raises(BenchError) as error:
        harness.load(run)
    for word in (str(file), A, f"rounds/{A}.parquet", "run again"):
        assert word in str(error.value)


def test_a_flipped_byte_in_the_data_is_found(run: Path) -> None:
    file = run / "requests" / f"{A}.parquet"
    content = bytearray(file.read_bytes())
    page = pq.ParquetFile(file).metadata.row_group(0).column(1)
    content[page.data_page_offset + page.total_compressed_size - 1] ^= 0xFF
    file.write_bytes(content)
    with pytest.raises(BenchError, match="damaged"):
        harness.load(run)


def test_deleting_the_damaged_cell_as_told_mends_the_run(run: Path) -> None:
    (run / "rounds" / f"{A}.parquet").write_bytes(b"")
    for table in ("cells", "requests", "rounds"):
        (run / table / f"{A}.parquet").unlink()
    with RunDirectory.open(run, write=True) as opened:
        assert opened.committed() == {}
        opened.commit(A, OK, REQUESTS, ROUNDS)
    assert len(harness.load(run).rounds) == 2


def test_another_schema_version_names_both(run: Path) -> None:
    file = run / "cells" / f"{A}.parquet"
    table = pq.read_table(file)
    pq.write_table(table.replace_schema_metadata({VERSION_KEY: b"0.7"}), file)
    with pytest.raises(BenchError, match=rf"{A}\.parquet: schema version '0\.7'.*version '1'"):
        harness.load(run)
    pq.write_table(table.replace_schema_metadata(None), file)
    with pytest.raises(BenchError, match="schema version 'none'"):
        RunDirectory.open(run).committed()


def test_another_table_in_its_place_is_found(run: Path) -> None:
    table = pa.table({"x": [1]}, metadata={VERSION_KEY: b"1"})
    pq.write_table(table, run / "rounds" / f"{A}.parquet")
    with pytest.raises(BenchError, match="not the columns of table 'rounds'"):
        harness.load(run)


def test_a_missing_rounds_file_is_named(run: Path) -> None:
    (run / "rounds" / f"{A}.parquet").unlink()
    with pytest.raises(BenchError, match=rf"{A}\.parquet: missing, though the cell is committed. Delete"):
        harness.load(run)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"schema_version": "9", "cells": []}', "schema version '9'.*version '1'"),
        ('{"schema_version": ', "damaged"),
        ("[]", "damaged"),
        ('{"schema_version": "1", "cells": [{}]}', "damaged"),
    ],
)
def test_a_bad_run_json_is_named(run: Path, content: str, message: str) -> None:
    (run / "run.json").write_text(content)
    with pytest.raises(BenchError, match=rf"run\.json: {message}"):
        harness.load(run)


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(BenchError, match="not a run directory"):
            harness.load(path)


def test_create_refuses_foreign_folders_and_runs_and_takes_what_a_killed_create_left(
    run: Path, tmp_path: Path
) -> None:
    with pytest.raises(BenchError, match="already holds a run"):
        create(run)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.tex").touch()
    with pytest.raises(BenchError, match=r"thesis\.tex"):
        create(tmp_path / "foreign")
    (tmp_path / "half" / "cells").mkdir(parents=True)
    (tmp_path / "half" / "suite.yaml").touch()
    create(tmp_path / "half").close()
    assert harness.load(tmp_path / "half").cells.empty


def test_a_results_folder_that_cannot_be_written_is_an_error_with_the_mend(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "run", Path("/proc/bench-run")):
        with pytest.raises(BenchError, match=r"cannot write: .*choose another results folder"):
            create(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_write_permission_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(BenchError, match="permission denied"):
        create(tmp_path / "locked" / "run")


LIMITED = """
import resource, signal, sys
from pathlib import Path
from tests.store.test_rundir import A, OK, create
from harness.errors import BenchError
run = create(Path(sys.argv[1]))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
import random
ids = [[random.getrandbits(30) for _ in range(50_000)]]
try:
    run.commit(A, OK, [], {"request": [0], "round": [0], "draft_ids": ids})
except BenchError as error:
    print(error)
"""


def test_a_file_that_does_not_fit_leaves_nothing_behind(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "run")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    assert f"rounds/{A}.parquet: cannot write: larger than this process may write" in done.stdout
    assert not list((tmp_path / "run" / "rounds").iterdir())
    assert RunDirectory.open(tmp_path / "run").committed() == {}
