"""What is installed: drafters, schedulers and backends, found by entry point and imported when asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from typing import Any, NamedTuple, Protocol, cast

from pydantic import BaseModel

from harness.errors import BenchError


class Plugin(Protocol):
    """What an entry point loads to: light to import, with a model of its options and a way to build it."""

    @property
    def name(self) -> str: ...
    @property
    def options(self) -> type[BaseModel]: ...  # strict, forbids extra keys
    @property
    def build(self) -> Callable[..., Any]: ...


class Registry:
    """Plugins of one kind by name. Nothing is imported before `get`."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._load: dict[str, Callable[[], Any]] = {}

    def register(self, name: str, load: Callable[[], Any]) -> None:
        """Add a plugin. Raises BenchError when the name is taken."""
        if name in self._load:
            raise BenchError(f"two installed packages offer the {self.kind} {name!r}; uninstall one of them")
        self._load[name] = load

    def names(self) -> list[str]:
        return sorted(self._load)

    def get(self, name: str) -> Plugin:
        """Import the plugin. Raises BenchError when there is none of that name or its import fails."""
        if name not in self._load:
            installed = ", ".join(self.names()) or "none (is the package installed? `pip install -e .`)"
            raise BenchError(f"unknown {self.kind} {name!r}; installed: {installed}")
        try:
            return cast(Plugin, self._load[name]())
        except (ImportError, AttributeError) as error:
            raise BenchError(f"the {self.kind} {name!r} cannot be imported: {error}") from error


class Components(NamedTuple):
    """The three registries a suite is checked against."""

    drafters: Registry
    schedulers: Registry
    backends: Registry


def from_entry_points(kind: str, group: str) -> Registry:
    """A registry of all installed entry points of a group. Raises BenchError for a name offered twice."""
    registry = Registry(kind)
    for entry in entry_points(group=group):
        registry.register(entry.name, entry.load)
    return registry


@cache
def drafters() -> Registry:
    return from_entry_points("drafter", "dspark_bench.drafters")


@cache
def schedulers() -> Registry:
    return from_entry_points("scheduler", "dspark_bench.schedulers")


@cache
def backends() -> Registry:
    return from_entry_points("backend", "dspark_bench.backends")


def installed() -> Components:
    return Components(drafters(), schedulers(), backends())
