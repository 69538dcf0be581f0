"""Model sources are usable exactly when what they need answers, and the reason is told."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from harness.doctor.sources import check_cache, check_folders, check_hub, check_wheels


@pytest.mark.parametrize("path", ["/simple/pip/", "/nothing-here"])
def test_a_hub_that_answers_is_usable_whatever_it_says(
    monkeypatch: pytest.MonkeyPatch, port: int, path: str
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{port}{path}")
    check = check_hub()
    assert check.usable and check.mend is None
    assert f"127.0.0.1:{port}" in check.detail


def test_a_hub_that_refuses_connections(monkeypatch: pytest.MonkeyPatch, closed_port: int) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"http://me:planted@127.0.0.1:{closed_port}")
    check = check_hub()
    assert check.usable is False
    assert "does not answer (Connection refused)" in check.detail
    assert "HF_ENDPOINT" in str(check.mend)
    assert "planted" not in str(check)


def test_a_hub_that_accepts_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        check = check_hub()
    assert check.usable is False
    assert "timed out" in check.detail


def test_a_hub_address_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "hub.example")
    assert check_hub().usable is False


def test_offline_mode_is_told_and_nothing_is_asked(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    check = check_hub()
    assert check.usable is False
    assert "HF_HUB_OFFLINE is set" in check.detail
    assert check.mend == "unset HF_HUB_OFFLINE"
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    assert check_hub().usable


def test_an_index_that_answers(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{port}/simple")
    check = check_wheels()
    assert check.usable, check


def test_an_index_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, closed_port: int) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"http://me:planted@127.0.0.1:{closed_port}/simple")
    check = check_wheels()
    assert check.usable is False
    assert "PIP_INDEX_URL" in str(check.mend)
    assert "planted" not in str(check)


def test_a_cache_that_can_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    check = check_cache()
    assert check.detail.startswith(f"{tmp_path}/dspark-bench, ")
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


def test_a_cache_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    check = check_cache()
    assert check.usable is False
    assert str(tmp_path / "file") in check.detail
    assert "XDG_CACHE_HOME" in str(check.mend)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "dspark-bench/models"
    folder.mkdir(parents=True)
    folder.chmod(0o500)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    check = check_cache()
    assert check.usable is False and "cannot write" in check.detail


def test_folders_need_nothing() -> None:
    assert check_folders().usable
