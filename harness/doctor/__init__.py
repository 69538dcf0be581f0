"""What this machine is, and what of the bench works on it: `bench doctor`."""

from __future__ import annotations

from harness.doctor.examine import examine
from harness.doctor.screen import render

__all__ = ["examine", "render"]
