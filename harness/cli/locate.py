"""Which run a RUN argument means."""

from __future__ import annotations

from pathlib import Path

import click

from harness.errors import BenchError

RUN_HELP = "RUN is a run directory, a suite file, or a suite's name; for a suite, its latest run."

results_option = click.option(
    "--results",
    type=click.Path(path_type=Path),
    default=Path("results/runs"),
    show_default=True,
    help="Folder of the runs: one folder a suite, in it one a run.",
)


def locate_run(run: str, results: Path) -> Path:
    """The run directory that `run` names.

    run: a run directory, a suite file (.yaml, .yml), or the name of a suite with runs in `results`. Of the
    runs of a suite the latest is the one whose `run.json` was written last: going on with a run writes it.
    Raises BenchError when there is no such run.
    """
    path = Path(run)
    if (path / "run.json").is_file():
        return path
    suite = _suite_name(path) if path.suffix in (".yaml", ".yml") else run
    found = list((results / suite).glob("*/run.json")) if suite and Path(suite).name == suite else []
    if found:
        return max(found, key=lambda file: (file.stat().st_mtime_ns, file.parent.name)).parent
    if path.suffix in (".yaml", ".yml"):
        raise BenchError(f"{results / suite}: holds no run of the suite {run}. Measure it: bench run {run}")
    measured = sorted({file.parent.parent.name for file in results.glob("*/*/run.json")})
    known = f"suites with runs there: {', '.join(measured)}" if measured else "no suite has a run there"
    raise BenchError(
        f"{run!r} is neither a run directory (a folder with a run.json) nor a suite with runs in {results}; "
        f"{known}."
    )


def _suite_name(path: Path) -> str:
    from harness.suites.load import load_suite

    return load_suite(path).suite.name
