"""Which code was running: the commit of the checkout, and what differs from it."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path
from typing import TypedDict

import harness

PACKAGE_ROOT = Path(harness.__file__).resolve().parent.parent


class Checkout(TypedDict):
    """The state of the git checkout that the code was imported from."""

    commit: str | None  # 40 hex digits, None when unknown
    dirty: bool | None  # whether files differ from the commit, ignored ones aside
    diff_sha256: str | None  # of those differences, untracked files included; None when there are none
    unknown: str | None  # why the commit is not known


def read_checkout(root: Path = PACKAGE_ROOT) -> Checkout:
    """The commit and the differences of the checkout whose top folder is `root`.

    Code that was installed, not checked out, has no commit even when it lies inside somebody else's checkout.
    """
    try:
        top = Path(os.fsdecode(_git(root, "rev-parse", "--show-toplevel")).removesuffix("\n"))
        if top.resolve() != root.resolve():
            return _unknown("the code was not imported from a git checkout")
        commit = _git(root, "rev-parse", "--verify", "HEAD").decode().strip()
        diff = _git(root, "diff", "--binary", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD")
        untracked = _git(root, "ls-files", "--others", "--exclude-standard", "-z").split(b"\0")[:-1]
    except FileNotFoundError:
        return _unknown("git is not installed")
    except subprocess.CalledProcessError as error:
        return _unknown(f"git: {os.fsdecode(error.stderr).strip() or error}")
    if not diff and not untracked:
        return Checkout(commit=commit, dirty=False, diff_sha256=None, unknown=None)
    return Checkout(commit=commit, dirty=True, diff_sha256=_hash(root, diff, untracked), unknown=None)


def _hash(root: Path, diff: bytes, untracked: list[bytes]) -> str:
    digest = hashlib.sha256(diff)
    for name in sorted(untracked):
        digest.update(b"\0" + name + b"\0")
        path = root / os.fsdecode(name)
        if path.is_symlink():
            digest.update(os.fsencode(path.readlink()))
        elif path.is_file():  # not a nested repository, which git lists as a folder
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _git(root: Path, *arguments: str) -> bytes:
    return subprocess.run(
        ["git", "-C", str(root), *arguments],
        check=True,
        capture_output=True,
        env=os.environ | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
    ).stdout


def _unknown(why: str) -> Checkout:
    return Checkout(commit=None, dirty=None, diff_sha256=None, unknown=why)
