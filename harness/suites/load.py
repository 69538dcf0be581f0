"""From a YAML file to a checked suite with every default filled in."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from harness.errors import BenchError
from harness.registry import Components, installed
from harness.suites.comparisons import check_comparisons
from harness.suites.components import fill_in
from harness.suites.merge import merged
from harness.suites.names import check_names
from harness.suites.problems import Problems
from harness.suites.schema import Suite
from harness.suites.wording import add_invalid
from harness.suites.yaml_nodes import folder_of


class LoadedSuite(NamedTuple):
    """A suite and where it came from."""

    suite: Suite
    path: Path  # as given
    sha256: str  # of the resolved suite: the same for the same suite wherever its checkout lies

    @property
    def folder(self) -> Path:
        """What relative `path:` and `jsonl:` sources of the suite and its cells start from."""
        return folder_of(self.path)


def load_suite(path: Path, components: Components | None = None) -> LoadedSuite:
    """Read, merge and check a suite file.

    `components` are the drafters, schedulers and backends that arms may name, those installed by default.
    Raises BenchError with one line for each problem found, naming file, line, key, value and what is allowed.
    """
    if not path.is_file():
        beside = ", ".join(sorted(other.name for other in path.parent.glob("*.yaml"))[:12])
        raise BenchError(
            f"{path}: no such suite file" + (f"; beside it there are: {beside}" if beside else "")
        )
    problems = Problems()
    tree = merged(path, problems)
    plain = tree.plain()
    fill_in(tree, plain, components or installed(), problems)
    check_names(tree, problems)
    try:
        suite = Suite.model_validate(plain)
    except ValidationError as error:
        add_invalid(error, Suite, tree, problems, extra=("extends",))
    else:
        if not problems:
            check_comparisons(suite, tree, problems)
    problems.raise_if_any()
    return LoadedSuite(suite, path, fingerprint(suite))


def fingerprint(suite: Suite) -> str:
    """sha256 of the suite as canonical JSON (sorted keys, no spaces)."""
    text = json.dumps(
        suite.model_dump(mode="json"),
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=True,
        allow_nan=False,
    )
    return hashlib.sha256(text.encode()).hexdigest()
