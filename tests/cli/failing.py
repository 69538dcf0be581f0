"""Subcommands that end in each of the ways a real one can."""

from __future__ import annotations

import click

from harness.errors import BenchError


@click.command()
def mendable() -> None:
    """Something outside is wrong."""
    raise BenchError("suites/a.yaml: no target named 'big'; there are: small")


@click.command()
def interrupted() -> None:
    """The person at the keyboard had enough."""
    raise KeyboardInterrupt


@click.command()
def faulty() -> None:
    """A fault of the program's own."""
    raise RuntimeError("a fault")
