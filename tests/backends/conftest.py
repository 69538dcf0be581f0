"""The tiny models and the workbench of `tests/executors`."""

from __future__ import annotations

from tests.executors.conftest import _one_thread, _steady, models, workbench

__all__ = ["_one_thread", "_steady", "models", "workbench"]
