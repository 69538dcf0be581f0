"""A run directory: what was to be measured, on what, and the cells measured so far.

run.json                    schema version, suite, environment, planned cells
suite.yaml                  the suite after resolution
environments/<id>.json      the machine
engines/<cell_id>.json      the live engine configuration
rounds/<cell_id>.parquet    written first
requests/<cell_id>.parquet  written second
cells/<cell_id>.parquet     written last: a cell without it was never measured
run.lock                    held by the process that writes
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from harness.errors import BenchError
from harness.store.atomic import TEMPORARY, make_folder, remove, write_text
from harness.store.frames import Frames, to_frames
from harness.store.lock import RunLock
from harness.store.parquet import Rows, check_version, read_table, to_table, write_table
from harness.store.schema import SCHEMA_VERSION, STATUSES, TABLES

DONE = ("ok", "unsupported", "skipped")  # a failed cell is measured again by the next run

_FOLDERS = ("environments", "engines", *TABLES)
_ENTRIES = {"run.json", "suite.yaml", "run.lock", *_FOLDERS}


class PlannedCell(NamedTuple):
    """A cell that the run is to measure, with the label people know it by."""

    cell_id: str
    label: str


class Plan(NamedTuple):
    """What `run.json` says."""

    suite: str
    suite_sha256: str
    environment_id: str
    created: str  # ISO 8601, UTC
    cells: list[PlannedCell]


class RunDirectory:
    """Reads a run, and commits cells to it when open for writing; a context manager that frees the lock."""

    def __init__(self, path: Path, plan: Plan, lock: RunLock | None) -> None:
        self.path = path
        self.plan = plan
        self._lock = lock

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        suite: str,
        suite_yaml: str,
        environment_id: str,
        environment: Mapping[str, Any],
        planned: Sequence[PlannedCell],
    ) -> RunDirectory:
        """Start a run, open for writing, in a folder that is new, empty or left by a killed `create`.

        suite_yaml: the resolved suite as text. environment: anything JSON can hold, secrets already redacted.
        Raises `BenchError` when the folder holds something else or a run, is locked, or cannot be written.
        """
        path = Path(path)
        make_folder(path)
        foreign = sorted(e.name for e in path.iterdir() if e.name not in _ENTRIES and TEMPORARY not in e.name)
        if foreign:
            raise BenchError(
                f"{path}: holds {foreign[0]!r}, which is no part of a run. Choose another run directory."
            )
        lock = RunLock(path / "run.lock")
        try:
            if (path / "run.json").exists():
                raise BenchError(
                    f"{path}: already holds a run. Open it to go on, or choose another run directory."
                )
            for folder in _FOLDERS:
                make_folder(path / folder)
            created = datetime.now(UTC).isoformat(timespec="seconds")
            run = cls(path, Plan(suite, "", environment_id, created, []), lock)
            run.replan(
                suite_yaml=suite_yaml, environment_id=environment_id, environment=environment, planned=planned
            )
        except BaseException:
            lock.release()
            raise
        return run

    @classmethod
    def open(cls, path: str | Path, *, write: bool = False) -> RunDirectory:
        """Open a run to read it, or to go on with it: what a killed process left half done is then removed.

        Raises `BenchError` when the folder is no run directory, its `run.json` is damaged or of another
        schema version, or, for writing, another process holds it.
        """
        path = Path(path)
        plan = _read_plan(path)
        if not write:
            return cls(path, plan, None)
        lock = RunLock(path / "run.lock")
        try:
            run = cls(path, _read_plan(path), lock)  # again: it may have changed before we held the lock
            run._clean()
        except BaseException:
            lock.release()
            raise
        return run

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Free the lock, if held."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def replan(
        self,
        *,
        suite_yaml: str,
        environment_id: str,
        environment: Mapping[str, Any],
        planned: Sequence[PlannedCell],
    ) -> None:
        """Say anew what the run is to measure and on what machine, `run.json` last.

        Cells that were measured and are no longer planned stay on disk, but are no longer read.
        """
        self._writable()
        digest = hashlib.sha256(suite_yaml.encode()).hexdigest()
        plan = self.plan._replace(suite_sha256=digest, environment_id=environment_id, cells=list(planned))
        write_text(self.path / "suite.yaml", suite_yaml)
        write_text(self.path / "environments" / f"{environment_id}.json", _json(environment))
        cells = [cell._asdict() for cell in plan.cells]
        write_text(
            self.path / "run.json",
            _json({"schema_version": SCHEMA_VERSION, **plan._asdict(), "cells": cells}),
        )
        self.plan = plan

    def write_engine(self, cell_id: str, configuration: Mapping[str, Any]) -> None:
        """Keep the live engine configuration of a cell, before it runs."""
        self._writable(cell_id)
        write_text(self.path / "engines" / f"{cell_id}.json", _json(configuration))

    def commit(self, cell_id: str, cell_row: Mapping[str, Any], requests: Rows, rounds: Rows) -> None:
        """Make one cell permanent: a kill before the last rename leaves it unmeasured, never half measured.

        cell_row: columns of `cells`, with a status; absent columns become null. requests, rounds: rows as
        dictionaries, or columns by name; empty for a cell that is not ok. Raises `BenchError` when the folder
        cannot be written, `ValueError` for rows that do not fit the tables.
        """
        self._writable(cell_id)
        if cell_row.get("status") not in STATUSES:
            raise ValueError(
                f"cell {cell_id}: status {cell_row.get('status')!r} is none of {', '.join(STATUSES)}"
            )
        rows: dict[str, Rows] = {"rounds": rounds, "requests": requests, "cells": [cell_row]}
        tables = {name: to_table(name, cell_id, of) for name, of in rows.items()}
        # Measured again after a failure: the old marker must not vouch for new rounds.
        remove(self._file("cells", cell_id))
        for name in ("rounds", "requests", "cells"):
            write_table(self._file(name, cell_id), tables[name])

    def committed(self) -> dict[str, str]:
        """Status of every planned cell that is committed; those in `DONE` need no second run."""
        return {cell_id: table["status"][0].as_py() for cell_id, table in self._cells(["status"]).items()}

    def frames(self, *, lists: bool = True) -> Frames:
        """Read the planned cells that are committed, in planned order.

        lists: whether to read the list columns (token ids, confidences), most of the bytes of a run.
        Raises `BenchError` naming the file that is damaged, missing or of another schema version.
        """
        cells = self._cells(None)
        measured = [cell_id for cell_id, table in cells.items() if table["status"][0].as_py() == "ok"]
        return to_frames(
            list(cells.values()),
            [self._rows("requests", cell_id, lists) for cell_id in measured],
            [self._rows("rounds", cell_id, lists) for cell_id in measured],
        )

    def _cells(self, columns: list[str] | None) -> dict[str, Any]:
        tables = {}
        for cell in self.plan.cells:
            path = self._file("cells", cell.cell_id)
            try:
                table = read_table(path, "cells", columns)
            except FileNotFoundError:
                continue  # not measured yet
            if table.num_rows != 1:
                raise BenchError(
                    f"{path}: {table.num_rows} rows instead of one. Delete the file and run again."
                )
            tables[cell.cell_id] = table
        return tables

    def _rows(self, name: str, cell_id: str, lists: bool) -> Any:
        path = self._file(name, cell_id)
        columns = None if lists else [f.name for f in TABLES[name] if not str(f.type).startswith("list")]
        try:
            return read_table(path, name, columns)
        except FileNotFoundError as error:
            marker = self._file("cells", cell_id)
            raise BenchError(
                f"{path}: missing, though the cell is committed. Delete {marker} and run again."
            ) from error

    def _clean(self) -> None:
        """Remove temporary files, and rows without the `cells` file that would vouch for them."""
        for file in self.path.rglob(f"{TEMPORARY}*"):
            remove(file)
        for name in ("rounds", "requests"):
            for file in (self.path / name).glob("*.parquet"):
                if not self._file("cells", file.stem).exists():
                    remove(file)

    def _file(self, table: str, cell_id: str) -> Path:
        return self.path / table / f"{cell_id}.parquet"

    def _writable(self, cell_id: str | None = None) -> None:
        if self._lock is None:
            raise ValueError(f"{self.path} is open for reading")
        if cell_id is not None and all(cell.cell_id != cell_id for cell in self.plan.cells):
            raise ValueError(f"cell {cell_id!r} is not planned in {self.path}")


def _read_plan(path: Path) -> Plan:
    file = path / "run.json"
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        check_version(file, content["schema_version"])
        cells = [PlannedCell(cell["cell_id"], cell["label"]) for cell in content["cells"]]
        return Plan(
            content["suite"], content["suite_sha256"], content["environment_id"], content["created"], cells
        )
    except (FileNotFoundError, NotADirectoryError) as error:
        raise BenchError(
            f"{path}: not a run directory (no run.json). Give the folder that `bench run` named, "
            "usually results/runs/<suite>/<run>."
        ) from error
    except OSError as error:
        raise BenchError(f"{file}: cannot read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"{file}: damaged ({error}). Measure again into a new run directory.") from error


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
