"""The report fits one screen of 80 by 40, whatever is wrong with the machine, and is JSON too."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from harness.doctor import examine, render
from harness.doctor.report import Report, Section, unusable, usable


def screen(report: Report, width: int = 80) -> list[str]:
    file = io.StringIO()
    render(report, Console(file=file, width=width))
    return [line.rstrip() for line in file.getvalue().splitlines()]


@pytest.fixture
def worst(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, closed_port: int) -> Report:
    """This machine without a network, a cache, compilers or git."""
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{closed_port}")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{closed_port}/simple")
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/no/such/folder")
    monkeypatch.setenv("PATH", str(tmp_path))
    return examine()


def test_a_machine_where_nothing_works_still_fits(worst: Report) -> None:
    lines = screen(worst, width=200)
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 40
    text = "\n".join(lines)
    for name in ("hf:", "pypi:", "cache", "C++", "nvcc"):
        assert f"\nno {name} " in text
    assert "ok path:" in text
    for section in worst.sections:
        for check in section.checks:
            assert (check.usable is False) == (check.mend is not None)
    assert text.isascii()  # so that every terminal can print it


def test_the_document_says_the_same(worst: Report) -> None:
    document = json.loads(json.dumps(worst.as_document(), allow_nan=False))
    sources = {check["name"]: check for check in document["sections"]["model sources"]}
    assert sources["hf:"]["usable"] is False and sources["hf:"]["mend"]
    assert sources["path:"]["usable"] is True
    assert document["environment"]["torch"]["threads"] >= 1


def test_names_alone_share_a_line() -> None:
    checks = [usable("a"), unusable("b", "it is broken", "mend it"), usable("c")]
    lines = screen(Report([Section("drafters", checks)], {}))
    assert [line.split() for line in lines] == [
        ["drafters"],
        ["ok", "a,", "c"],
        ["no", "b", "it", "is", "broken.", "Mend:", "mend", "it"],
    ]


def test_long_text_is_wrapped_not_cut() -> None:
    why = "w" * 200
    text = "".join(screen(Report([Section("tools", [unusable("tool", why, "mend it")])], {}), width=40))
    assert text.count("w") == 200
