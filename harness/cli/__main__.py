"""`python -m harness.cli`, where the console script is not on the PATH."""

from __future__ import annotations

from harness.cli import main

main()
