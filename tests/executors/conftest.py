"""Tiny models, made once, and a fresh workbench a test."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import torch

from harness.environment.checkout import read_checkout
from tests.executors.workbench import Models, Workbench, save_models


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    return save_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session", autouse=True)
def _steady() -> Iterator[None]:
    """What would slow the tests down, or make them depend on what somebody does meanwhile.

    A cell collects garbage before it is timed: what was imported need not be searched each time. The checkout
    counts as it is now: an edit while the tests run would be another environment.
    """
    gc.freeze()
    checkout = read_checkout()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_module("harness.environment.capture"), "read_checkout", lambda: checkout)
        yield
    gc.unfreeze()


@pytest.fixture
def workbench(tmp_path: Path, models: Models, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Workbench(tmp_path, models)


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Tiny products are slower on several threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
