"""Where the command line writes: people's text and programs' JSON never share a stream."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console


FILE_WIDTH = 120  # columns of a file or pipe, which have no width of their own


def progress_console(*, as_json: bool) -> Console:
    """For progress and logs: standard output only when that is a terminal and carries no JSON."""
    return _console(stderr=as_json or not sys.stdout.isatty())


def page_console() -> Console:
    """For a command whose whole purpose is the text it prints: standard output, so that it can be piped."""
    return _console(stderr=False)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    fixed = (sys.stderr if stderr else sys.stdout).isatty() or "COLUMNS" in os.environ
    return Console(stderr=stderr, width=None if fixed else FILE_WIDTH)


def write_document(document: Mapping[str, Any]) -> None:
    """Print one JSON document on one line of standard output. Raises ValueError for NaN or infinity."""
    click.echo(json.dumps(document, ensure_ascii=False, allow_nan=False))
