"""The `bench` command: one file per subcommand, imported when it is asked for."""

from __future__ import annotations

from harness.cli.group import bench


def main() -> None:
    """Run the command line and exit."""
    bench(prog_name="bench")
