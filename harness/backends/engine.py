"""The `engine` backend: the in-process engine of this project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from harness.backends.contract import BackendPlugin

if TYPE_CHECKING:
    from harness.backends.in_process import InProcessBackend


class EngineOptions(BaseModel):
    """The `engine` backend has no options of its own."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _build(options: EngineOptions) -> InProcessBackend:
    from harness.backends.in_process import InProcessBackend

    return InProcessBackend()


ENGINE = BackendPlugin(name="engine", options=EngineOptions, build=_build)
