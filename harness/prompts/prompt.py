"""A prompt before any chat template."""

from __future__ import annotations

from typing import NamedTuple


class Prompt(NamedTuple):
    """What a user says first."""

    text: str
    domain: str  # math, code, chat or what the suite says
