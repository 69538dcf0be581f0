"""Whatever ends `bench run`, starting it again goes on from there."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from functools import partial
from pathlib import Path

from harness.store.rundir import RunDirectory
from tests.executors import processes
from tests.executors.workbench import COMMAND, Workbench

SEED = 20240607  # of the moments
Files = dict[Path, tuple[int, bytes]]


def committed(run: Path) -> Files:
    """Time of change and bytes of the files of every committed cell."""
    names = {file.name for file in (run / "cells").glob("*.parquet")}
    files = [run / table / name for table in ("cells", "requests", "rounds") for name in names]
    return {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in files}


def count(run: Path) -> int:
    return len(list((run / "cells").glob("*.parquet")))


def has(run: Path, cells: int) -> bool:
    return count(run) >= cells


def outputs(run: Path) -> dict[tuple[str, int], list[int]]:
    requests = RunDirectory.open(run).frames().requests
    rows = zip(requests["cell_id"], requests["request"], requests["output_ids"], strict=True)
    return {(cell, request): list(ids) for cell, request, ids in rows}


def test_ten_kills_at_random_moments_end_like_an_undisturbed_run(workbench: Workbench) -> None:
    suite = workbench.suite(matrix={"repeats": 6})  # 36 cells
    workbench.measure(suite, "--run", "undisturbed")
    run, log = workbench.results / "tiny/killed", workbench.folder / "log"
    command = ["run", str(suite), "--run", "killed", "--results", str(workbench.results)]
    moments, before, in_flight = random.Random(SEED), Files(), 0
    for kill in range(10):
        process = processes.start(command, log)
        if kill in (0, 5):  # before anything is measured, or just when that begins
            delay = moments.uniform(0.0, 1.5)
        else:
            more = partial(has, run, count(run) + moments.randint(1, 2))
            processes.wait_until(more, process, log)
            delay = moments.uniform(0.0, 0.3)
        time.sleep(delay)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL, f"kill {kill} came too late: {log.read_text()}"
        if run.exists():
            now = committed(run)
            assert now.items() >= before.items()  # nothing measured twice
            before = now
            in_flight += len(list((run / "engines").glob("*.json"))) > count(run)
            if (run / "run.json").exists():
                assert len(RunDirectory.open(run).frames().cells) == count(run)  # all of it can be read
    assert 10 < count(run) < 36 and in_flight >= 3  # the kills did hit the measuring
    process = processes.start(command, log)
    processes.finish(process, log)
    assert committed(run).items() >= before.items()
    undisturbed = workbench.results / "tiny/undisturbed"
    for table in ("cells", "requests", "rounds"):
        names = [sorted(file.name for file in (path / table).iterdir()) for path in (run, undisturbed)]
        assert names[0] == names[1]  # the same cells, and no temporary file
    assert not list(run.rglob(".tmp-*"))
    assert set(RunDirectory.open(run).committed().values()) == {"ok"}
    assert outputs(run) == outputs(undisturbed)


def test_ctrl_c_ends_within_two_seconds_and_says_how_to_go_on(workbench: Workbench) -> None:
    suite = workbench.suite(
        defaults={"max_new_tokens": 160, "ignore_eos": True}, arms=workbench.arms("target-only")
    )
    command = ["run", str(suite), "--run", "stopped", "--results", str(workbench.results)]
    run, log = workbench.results / "tiny/stopped", workbench.folder / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*COMMAND, *command],
            stdout=file,
            stderr=file,
            start_new_session=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        try:
            while len(list((run / "engines").glob("*.json"))) < 2:  # the second cell is being measured
                assert process.poll() is None, log.read_text()
                time.sleep(0.005)
            begun = time.monotonic()
            os.killpg(process.pid, signal.SIGINT)
            code = process.wait(30)
            took = time.monotonic() - begun
        finally:
            process.kill()
    assert code == 130
    assert took < 2.0
    message = log.read_text().splitlines()[-1]
    assert message == "stopped: the cells measured so far are kept; the same command goes on from there"
    assert "Traceback" not in log.read_text()
    before = committed(run)
    assert count(run) == 1
    answer = workbench.invoke(*command[:-2])
    assert answer.exit_code == 0 and "1 of 2 cells are measured already, 1 to do" in answer.stderr
    assert count(run) == 2 and committed(run).items() >= before.items()


def test_one_process_a_run_and_sigterm_frees_it(workbench: Workbench) -> None:
    suite = workbench.suite(matrix={"repeats": 4})
    command = ["run", str(suite), "--run", "shared", "--results", str(workbench.results)]
    run, log = workbench.results / "tiny/shared", workbench.folder / "log"
    process = processes.start(command, log)
    processes.wait_until(lambda: count(run) > 0, process, log)
    second = workbench.invoke(*command[:-2])
    assert second.exit_code == 2
    assert f"another process (pid {process.pid}) is writing to this run" in second.stderr
    assert process.is_alive()
    process.terminate()
    process.join(2)
    assert process.exitcode == -signal.SIGTERM
    before = committed(run)
    assert workbench.invoke(*command[:-2]).exit_code == 0
    assert count(run) == 24 and committed(run).items() >= before.items()
    assert not list(run.rglob(".tmp-*"))
