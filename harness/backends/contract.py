"""What a backend is given and must return."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pydantic import BaseModel

    from harness.models.resolve import ResolvedModel
    from harness.prompts.render import RenderedPrompt
    from harness.suites.schema import Cell


@dataclass(frozen=True)
class ResolvedCell:
    """A cell with everything it names brought onto this machine, or the reason why that failed."""

    cell: Cell
    cell_id: str
    base: Path  # folder that relative sources start from
    target: ResolvedModel | None
    prompts: Sequence[RenderedPrompt]
    domain: str | None
    prompt_ids_sha256: str | None
    drafter_sha256: str | None
    problem: str | None  # why it cannot be measured


@dataclass(frozen=True)
class Measurement:
    """What was measured of a cell: rows of the tables, and what the row of `cells` needs besides them."""

    requests: list[dict[str, Any]]
    rounds: list[dict[str, Any]]
    warmup_s: float
    wall_s: float
    steps: int


@dataclass(frozen=True)
class Finished:
    """A request has ended; what progress displays count."""

    output_tokens: int


class OpenCell(Protocol):
    """A cell ready to be measured."""

    @property
    def configuration(self) -> Mapping[str, Any]:
        """The live configuration of what will measure it; has `device` and `dtype`."""

    def measure(self, progress: Callable[[Finished], None]) -> Measurement:
        """Warm up, then measure. Raises BenchError when the cell cannot be measured."""


class Backend(Protocol):
    """Opens cells one after another; keeps loaded models between them."""

    def open(self, resolved: ResolvedCell) -> OpenCell:
        """Load what the cell needs. Raises BenchError when that cannot be had."""

    def close(self) -> None:
        """Free models and stop whatever was started."""


@dataclass(frozen=True)
class BackendPlugin:
    """An entry point of the group `dspark_bench.backends`."""

    name: str
    options: type[BaseModel]
    build: Callable[[Any], Backend]
