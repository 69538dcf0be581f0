"""Where the evaluation prompts lie that the repository does not contain."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def evaluation_prompts() -> Path:
    folder = Path(__file__).resolve().parents[3] / "shared/prompts"
    if not folder.is_dir():
        pytest.skip(f"no evaluation prompts at {folder}: they are not part of the repository")
    return folder
