"""Brings what cells name onto this machine, once for all cells that share it, and gives each cell its id."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from harness.backends.contract import ResolvedCell
from harness.engine.contracts import DrafterPlugin
from harness.errors import BenchError
from harness.models.load import load_tokenizer
from harness.models.resolve import ResolvedModel, resolve
from harness.prompts.load import load_prompts
from harness.prompts.render import RenderedPrompt, prompts_sha256, render
from harness.registry import drafters
from harness.store.identity import cell_id
from harness.suites.schema import Cell, Component

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


_T = TypeVar("_T")


class _Prompts(NamedTuple):
    rendered: list[RenderedPrompt]
    domain: str
    sha256: str


class Resolver:
    """Remembers targets, tokenizers and prompts; a failure is remembered too and befalls every cell it touches."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._known: dict[tuple[Any, ...], Any] = {}

    def resolve(self, cell: Cell) -> ResolvedCell:
        """The cell with its content, or with the first problem that keeps it from being measured."""
        problem, target, prompts, drafter = None, None, None, None
        try:
            target = self._target(cell)
            prompts = self._prompts(cell, target)
            drafter = self._drafter(cell.arm.drafter)
        except BenchError as error:
            problem = str(error)
        identity = cell_id(
            cell,
            prompt_ids_sha256=prompts.sha256 if prompts else None,
            target_sha256=target.sha256 if target else None,
            drafter_sha256=drafter,
        )
        return ResolvedCell(
            cell=cell,
            cell_id=identity,
            base=self._base,
            target=target,
            prompts=prompts.rendered if prompts else (),
            domain=prompts.domain if prompts else cell.dataset.domain,
            prompt_ids_sha256=prompts.sha256 if prompts else None,
            drafter_sha256=drafter,
            problem=problem,
        )

    def _once(self, key: tuple[Any, ...], make: Callable[[], _T]) -> _T:
        if key not in self._known:
            try:
                self._known[key] = make()
            except BenchError as error:
                self._known[key] = error
        found = self._known[key]
        if isinstance(found, BenchError):
            raise found
        made: _T = found
        return made

    def _target(self, cell: Cell) -> ResolvedModel:
        source, sha256 = cell.target.source, cell.target.sha256
        return self._once(("model", source, sha256), lambda: resolve(source, sha256=sha256, base=self._base))

    def _prompts(self, cell: Cell, target: ResolvedModel) -> _Prompts:
        generation = cell.generation
        tokenizer: PreTrainedTokenizerBase = self._once(
            ("tokenizer", target.sha256), lambda: load_tokenizer(target)
        )

        def make() -> _Prompts:
            prompts = load_prompts(cell.dataset, self._base)
            rendered = render(prompts, tokenizer, thinking=generation.thinking, system=generation.system)
            return _Prompts(rendered, prompts[0].domain, prompts_sha256(rendered))

        shared = (cell.dataset.source, cell.dataset.domain, cell.dataset.limit)
        return self._once(("prompts", target.sha256, *shared, generation.thinking, generation.system), make)

    def _drafter(self, drafter: Component | None) -> str | None:
        """Content hash of the drafter's weights; None for drafters without any."""
        if drafter is None:
            return None
        plugin = cast(DrafterPlugin, drafters().get(drafter.name))
        weights = plugin.weights(plugin.options(**drafter.options))
        if weights is None:
            return None
        model = self._once(
            ("model", *weights), lambda: resolve(weights.source, sha256=weights.sha256, base=self._base)
        )
        return model.sha256
