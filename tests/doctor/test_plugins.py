"""A plugin that cannot be imported is a line with its reason, and hides none of the others."""

from __future__ import annotations

from typing import Any

import pytest

from harness.doctor.plugins import check_plugins
from harness.errors import BenchError
from harness.registry import Registry


def missing_package() -> Any:
    raise ModuleNotFoundError("No module named 'vllm'")


def broken_package() -> Any:
    raise RuntimeError("libcuda.so.1: cannot open")


def silent_package() -> Any:
    raise ValueError


def test_working_and_broken_plugins() -> None:
    registry = Registry("backend")
    registry.register("engine", object)
    registry.register("vllm", missing_package)
    registry.register("own", broken_package)
    registry.register("quiet", silent_package)
    checks = {check.name: check for check in check_plugins("backend", lambda: registry)}
    assert checks["engine"] == ("engine", True, "", None)
    assert "No module named 'vllm'" in checks["vllm"].detail
    assert checks["own"].detail == "libcuda.so.1: cannot open"
    assert checks["quiet"].detail == "ValueError"
    for name in ("vllm", "own", "quiet"):
        assert checks[name].usable is False and checks[name].mend


def test_two_packages_that_offer_the_same_name() -> None:
    def registry() -> Registry:
        raise BenchError("two installed packages offer the drafter 'ngram'")

    (check,) = check_plugins("drafter", registry)
    assert check.usable is False and "offer the drafter 'ngram'" in check.detail


@pytest.mark.parametrize("kind", ["backend", "drafter", "scheduler"])
def test_none_installed(kind: str) -> None:
    (check,) = check_plugins(kind, lambda: Registry(kind))
    assert check.usable is False and check.mend
