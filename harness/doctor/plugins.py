"""Backends, drafters and schedulers: which are installed, and which of them can be imported."""

from __future__ import annotations

from collections.abc import Callable

from harness.doctor.report import Check, unusable, usable
from harness.errors import BenchError
from harness.registry import Registry


def check_plugins(kind: str, registry: Callable[[], Registry]) -> list[Check]:
    """One check for each that is installed, the name alone when it works."""
    try:
        installed = registry()
    except BenchError as error:
        return [unusable(kind, str(error), "uninstall the package that offers it")]
    if not installed.names():
        return [unusable(kind, "none is installed", "install the package: pip install -e .")]
    return [_check(installed, name) for name in installed.names()]


def _check(installed: Registry, name: str) -> Check:
    try:
        installed.get(name)
    except Exception as error:  # it is another package's code: nothing it does may stop the examination
        why = str(error) or type(error).__name__
        return unusable(name, why, "install what it needs, or uninstall the package that offers it")
    return usable(name)
