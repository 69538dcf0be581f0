"""One writer a run directory."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from harness.errors import BenchError
from harness.store.atomic import writing


class RunLock:
    """Holds `run.lock` until released or until the process ends, however it ends."""

    def __init__(self, path: Path) -> None:
        """Take the lock. Raises `BenchError` when another process holds it or the file cannot be written."""
        with writing(path):
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(self._descriptor, 32).decode(errors="replace").strip() or "unknown"
            os.close(self._descriptor)
            raise BenchError(
                f"{path}: another process (pid {holder}) is writing to this run. "
                "Wait until it ends or stop it, or run into another folder."
            ) from error
        with writing(path):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let the next writer in. The file stays: removing it would race with who is about to lock it."""
        os.close(self._descriptor)
