"""From a data set's source to its prompts: `builtin:math`, `jsonl:file` or `hf:gsm8k`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import BenchError
from harness.prompts.hub import hub_set, hub_texts
from harness.prompts.prompt import Prompt
from harness.prompts.registry import HUB_SETS
from harness.prompts.turns import first_turns

if TYPE_CHECKING:
    from harness.suites.schema import Dataset

BUILTIN = ("math", "code", "chat")


def load_prompts(dataset: Dataset, base: Path) -> list[Prompt]:
    """The prompts of a data set in its own order, the first `limit` of them.

    `base` is the folder that `jsonl:` files are relative to, the suite file's. A data set without a `domain`
    has its source's: the builtin set's name, the registered set's domain, a file's name without suffix.
    Raises `BenchError` when the source is unknown, cannot be read or has no prompts.
    """
    scheme, _, name = dataset.source.partition(":")
    match scheme:
        case "builtin" if name in BUILTIN:
            texts, domain = _builtin(name), name
        case "jsonl" if name.strip():
            file = (base / Path(name).expanduser()).resolve()
            texts, domain = _jsonl(file), file.stem
        case "hf":
            registered = hub_set(name)
            texts, domain = hub_texts(name, registered), registered.domain
        case _:
            known = [*(f"builtin:{each}" for each in BUILTIN), *(f"hf:{each}" for each in HUB_SETS)]
            raise BenchError(
                f"Unknown data set {dataset.source!r}: use {', '.join(known)}, or jsonl:file for your own."
            )
    prompts = [Prompt(text, dataset.domain or domain) for text in islice(texts, dataset.limit)]
    if not prompts:
        raise BenchError(f"Data set {dataset.source!r} is empty: give it at least one prompt.")
    return prompts


def _builtin(name: str) -> Iterator[str]:
    file = files("harness.prompts") / "builtin" / f"{name}.jsonl"
    return first_turns(file.read_text(encoding="utf-8").split("\n"), str(file))


def _jsonl(file: Path) -> Iterator[str]:
    try:
        # Not a line-buffered text file: U+2028 and the like inside a JSON string end no line.
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise BenchError(f"{file}: cannot be read: {error.strerror or error}. Correct the path.") from error
    except UnicodeDecodeError as error:
        raise BenchError(f"{file}: not UTF-8 at byte {error.start}. Save it as UTF-8.") from error
    return first_turns(text.split("\n"), str(file))
