"""Which run directory `bench run` writes to: one that goes on, or a new one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from harness.errors import BenchError
from harness.store.rundir import DONE, PlannedCell, RunDirectory


def latest(folder: Path, environment_id: str, same: Callable[[RunDirectory], bool]) -> Path | None:
    """The latest run in a suite's folder that was measured in this environment and is `same`.

    Raises BenchError when the very latest run cannot be read; older ones that cannot are passed over.
    """
    files = sorted(folder.glob("*/run.json"), key=lambda file: -file.stat().st_mtime_ns)
    for file in files:
        try:
            run = RunDirectory.open(file.parent)
            if run.plan.environment_id == environment_id and same(run):
                return run.path
        except BenchError as error:
            if file == files[0]:
                raise BenchError(f"{error} --new starts a run beside it.") from error
    return None


def goes_on(run: RunDirectory, planned: Sequence[PlannedCell]) -> bool:
    """Whether measuring the planned cells in this run keeps all it has measured.

    A cell that is not measured may have another id: a model or prompts that could not be had count by where they
    were looked for, and by their content once they are there.
    """
    if [cell.label for cell in run.plan.cells] != [cell.label for cell in planned]:
        return False
    changed = set(run.plan.cells) - set(planned)
    if not changed:
        return True
    status = run.committed()
    return all(status.get(cell.cell_id) not in DONE for cell in changed)


def new_folder(folder: Path, name: str | None, *, new: bool) -> Path:
    """The run directory called `name`, there or not, or one named after the time that is not there yet.

    Raises BenchError when the name is no folder's name, or it is there and must be `new`.
    """
    if name is None:
        now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        names = [now, *(f"{now}-{number}" for number in range(2, 100))]
        return next(folder / each for each in names if not (folder / each).exists())
    if name in ("", "..") or Path(name).name != name:
        raise BenchError(
            f"--run {name!r}: not a folder's name; give one without slashes, like `before-the-fix`."
        )
    if new and (folder / name / "run.json").exists():
        raise BenchError(f"--new: the run {folder / name} exists already; choose another --run name.")
    return folder / name
