"""Files that are whole or absent: written under a temporary name, synced, renamed, and the folder synced."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from harness.errors import BenchError

TEMPORARY = ".tmp-"  # prefix of a file being written; left behind only by a killed process

_MENDS = {
    errno.ENOSPC: "the disk is full: free some space, then run the same command again to go on",
    errno.EDQUOT: "the disk quota is used up: free some space, then run the same command again to go on",
    errno.EFBIG: "larger than this process may write: raise `ulimit -f` or choose another results folder",
    errno.EACCES: "permission denied: make it writable or choose another results folder",
    errno.EPERM: "permission denied: make it writable or choose another results folder",
    errno.EROFS: "the file system is read-only: choose another results folder",
    errno.ENOTDIR: "part of the path is a file, not a folder: choose another results folder",
    errno.EEXIST: "it is a file, not a folder: choose another results folder",
    errno.ENOENT: "the folder does not exist and cannot be made: choose another results folder",
}


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn the operating system's refusal to write `path` into a `BenchError` with the mend."""
    try:
        yield
    except OSError as error:
        mend = _MENDS.get(error.errno or 0, f"{error.strerror or error}: choose another results folder")
        raise BenchError(f"{path}: cannot write: {mend}.") from error


def make_folder(path: Path) -> None:
    """Make a folder and its parents; one that exists is fine. Raises `BenchError`."""
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)


def write_file(path: Path, fill: Callable[[IO[bytes]], object]) -> None:
    """Let `fill` write the content of `path`, which appears whole and on disk, or not at all.

    Raises `BenchError` when the file cannot be written; what was there before is then untouched.
    """
    temporary = path.with_name(f"{TEMPORARY}{os.getpid()}-{path.name}")
    with writing(path):
        try:
            with temporary.open("wb") as file:
                fill(file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8, whole or not at all. Raises `BenchError`."""
    write_file(path, lambda file: file.write(text.encode()))


def remove(path: Path) -> None:
    """Remove a file durably; one that is absent is fine. Raises `BenchError`."""
    with writing(path):
        path.unlink(missing_ok=True)
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames and removals in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
