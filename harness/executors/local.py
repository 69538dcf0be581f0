"""Measures cells one after another in this process, committing each as it ends."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from harness.backends.contract import Backend, ResolvedCell
from harness.errors import BenchError
from harness.executors.progress import Progress
from harness.executors.rows import cell_row
from harness.registry import backends
from harness.store.parquet import Rows
from harness.store.rundir import RunDirectory


class LocalExecutor:
    """Runs the cells that are left of a run. A cell that fails is committed as such and the others go on."""

    def __init__(self, run: RunDirectory, environment_id: str, progress: Progress) -> None:
        self._run, self._environment_id, self._progress = run, environment_id, progress
        self._backends: dict[str, Backend] = {}

    def execute(self, cells: Sequence[ResolvedCell]) -> None:
        """Measure the cells in the order given, which interleaves the arms."""
        try:
            for resolved in cells:
                self._execute(resolved)
        finally:
            for backend in self._backends.values():
                backend.close()

    def _execute(self, resolved: ResolvedCell) -> None:
        row = partial(cell_row, resolved, environment_id=self._environment_id, started_at=datetime.now(UTC))
        self._progress.start(resolved)
        configuration: dict[str, Any] = {}
        try:
            if resolved.problem is not None:
                raise BenchError(resolved.problem)
            opened = self._backend(resolved.cell.arm.backend).open(resolved)
            configuration = dict(opened.configuration)
            self._run.write_engine(resolved.cell_id, configuration)
            measurement = opened.measure(self._progress.finished)
            measured = row(configuration=configuration, measurement=measurement)
        except Exception as error:  # a fault of a drafter or of ours must not cost the other cells
            reason = str(error)
            if not isinstance(error, BenchError):
                reason = f"{type(error).__name__}: {error}"
                self._progress.log(traceback.format_exc())
            failed = row(configuration=configuration, measurement=None, status="failed", reason=reason)
            self._commit(resolved.cell_id, failed, [], [])
        else:
            self._commit(resolved.cell_id, measured, measurement.requests, measurement.rounds)

    def _commit(self, cell_id: str, row: dict[str, Any], requests: Rows, rounds: Rows) -> None:
        self._run.commit(cell_id, row, requests, rounds)
        self._progress.end(row)

    def _backend(self, name: str) -> Backend:
        if name not in self._backends:
            plugin = backends().get(name)
            self._backends[name] = plugin.build(plugin.options())
        return self._backends[name]
