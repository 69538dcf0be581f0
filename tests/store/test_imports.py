"""What reads Parquet starts without torch, and `import harness` without pandas."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def loaded(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    return set(done.stdout.split())


def test_readers_of_parquet_never_import_torch() -> None:
    modules = loaded(
        "import harness.store.rundir, harness.store.identity, harness.metrics.compare, harness.metrics.cell,"
        "harness.tables.comparison, harness.tables.document, harness.figures.files"
    )
    assert "harness.metrics.summary" in modules
    assert not modules & {"torch", "transformers"}


def test_the_package_itself_imports_nothing_heavy() -> None:
    assert not loaded("import harness; harness.load") & {"torch", "pandas", "numpy", "pyarrow"}
