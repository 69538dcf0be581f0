"""What a run was measured on: the checkout, the packages, the machine, with secrets taken out."""

from __future__ import annotations

from harness.environment.capture import capture, environment_id

__all__ = ["capture", "environment_id"]
