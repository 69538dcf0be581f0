"""The commit, and a hash that changes with every difference from it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.environment.checkout import Checkout, read_checkout


def git(root: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    answer = subprocess.run(
        ["git", "-C", str(root), *identity, *arguments], check=True, capture_output=True, text=True
    )
    return answer.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "a checkout"
    root.mkdir()
    git(root, "init", "--quiet")
    (root / "code.py").write_text("x = 1\n")
    (root / ".gitignore").write_text("ignored/\n")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "first")
    return root


def test_clean(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "HEAD")
    assert read_checkout(checkout) == Checkout(commit=commit, dirty=False, diff_sha256=None, unknown=None)


def test_ignored_files_are_no_difference(checkout: Path) -> None:
    (checkout / "ignored").mkdir()
    (checkout / "ignored/run.parquet").write_text("rows")
    assert read_checkout(checkout)["dirty"] is False


def test_every_difference_has_its_own_hash(checkout: Path) -> None:
    hashes = []

    def note() -> None:
        state = read_checkout(checkout)
        assert state["dirty"] is True
        assert read_checkout(checkout) == state
        hashes.append(state["diff_sha256"])

    (checkout / "code.py").write_text("x = 2\n")
    note()
    (checkout / "new file.py").write_text("y = 1\n")
    note()
    (checkout / "new file.py").write_text("y = 2\n")
    note()
    (checkout / "new file.py").rename(checkout / "other.py")
    note()
    (checkout / "link").symlink_to("other.py")
    note()
    (checkout / "code.py").unlink()
    note()
    assert None not in hashes
    assert len(set(hashes)) == len(hashes)


def test_staging_changes_nothing(checkout: Path) -> None:
    (checkout / "code.py").write_text("x = 2\n")
    before = read_checkout(checkout)
    git(checkout, "add", "--all")
    assert read_checkout(checkout) == before


def test_a_folder_inside_a_checkout_of_something_else_has_no_commit(checkout: Path) -> None:
    inside = checkout / "ignored/site-packages"
    inside.mkdir(parents=True)
    state = read_checkout(inside)
    assert state["commit"] is None and state["dirty"] is None
    assert state["unknown"] == "the code was not imported from a git checkout"


def test_outside_any_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert "not a git repository" in str(read_checkout(tmp_path)["unknown"])


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert read_checkout(tmp_path)["unknown"] == "git is not installed"


def test_a_checkout_without_a_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    state = read_checkout(tmp_path)
    assert state["commit"] is None
    assert str(state["unknown"]).startswith("git: ")
