"""The command line starts light, and each way of failing has its exit code and its words."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from harness.cli.group import COMMANDS, Lazy, LazyGroup, bench

HEAVY = {"torch", "transformers", "pandas", "pyarrow", "matplotlib", "numpy", "pydantic", "rich", "yaml"}

GROUP = LazyGroup(
    "bench",
    lazy={
        name: Lazy(f"tests.cli.failing:{name}", "Fails.") for name in ("mendable", "interrupted", "faulty")
    },
)


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def imported_by(arguments: Sequence[str]) -> set[str]:
    """Top-level modules that are imported when `bench` has answered."""
    program = (
        "import sys, json\n"
        "from harness.cli import main\n"
        f"sys.argv = ['bench', *{list(arguments)!r}]\n"
        "try:\n    main()\n"
        "finally:\n    print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))\n"
    )
    answer = python("-c", program)
    assert answer.stderr == ""
    return set(json.loads(answer.stdout.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    modules = imported_by(arguments)
    assert "click" in modules
    assert modules & HEAVY == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_each_line_of_the_help_is_what_the_command_says_of_itself(name: str) -> None:
    command = bench.get_command(click.Context(bench), name)
    assert command is not None
    assert command.name == name
    assert command.get_short_help_str(limit=200) == COMMANDS[name].help


def test_help_lists_every_command() -> None:
    answer = CliRunner().invoke(bench, ["--help"])
    assert answer.exit_code == 0
    for name, lazy in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(lazy.help)}$", answer.stdout, re.MULTILINE)


def test_an_unknown_command_is_a_usage_error() -> None:
    answer = CliRunner().invoke(bench, ["rum"])
    assert answer.exit_code == 2
    assert "No such command 'rum'" in answer.stderr


def test_what_a_person_can_mend_is_one_sentence_and_exit_code_2() -> None:
    answer = CliRunner().invoke(GROUP, ["mendable"])
    assert answer.exit_code == 2
    assert answer.stdout == ""
    assert answer.stderr == "error: suites/a.yaml: no target named 'big'; there are: small\n"


def test_ctrl_c_is_exit_code_130() -> None:
    answer = CliRunner().invoke(GROUP, ["interrupted"])
    assert answer.exit_code == 130
    assert answer.stdout == ""
    assert answer.stderr == "stopped\n"


def test_a_fault_of_the_program_keeps_its_traceback() -> None:
    assert isinstance(CliRunner().invoke(GROUP, ["faulty"]).exception, RuntimeError)


@pytest.mark.parametrize(("terminal", "red"), [(True, True), (False, False)])
def test_errors_are_red_on_a_terminal_only(tmp_path: Path, terminal: bool, red: bool) -> None:
    reader, stderr = pty.openpty() if terminal else os.pipe()
    command = [sys.executable, "-m", "harness.cli", "show", "nothing", "--results", str(tmp_path)]
    finished = subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr, check=False)
    os.close(stderr)
    output = os.read(reader, 4096).decode()
    os.close(reader)
    assert finished.returncode == 2
    assert ("\x1b[31m" in output) is red
    assert "error: 'nothing' is neither a run directory" in output


def test_a_reader_that_went_away_is_no_error() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "harness.cli", "--help"]
    finished = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write_end)
    assert finished.stderr == ""
