"""The user's cache folder: converted models, what each wheel member hashes to, hashes of large files."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import BenchError


def cache_folder(name: str) -> Path:
    """`$XDG_CACHE_HOME/dspark-bench/<name>` (`~/.cache` without the variable), made when absent.

    Raises `BenchError` when it cannot be made.
    """
    # The XDG specification: a relative value is invalid and must be ignored.
    root = Path(os.environ.get("XDG_CACHE_HOME", ""))
    folder = (root if root.is_absolute() else Path.home() / ".cache") / "dspark-bench" / name
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn the operating system's refusal to write into the cache into a `BenchError` with the mend."""
    try:
        yield
    except OSError as error:
        raise BenchError(
            f"{path}: cannot write to the cache: {error.strerror or error}. "
            "Free some space or make it writable, or set XDG_CACHE_HOME to a folder that is."
        ) from error


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file, waiting for its holder. It ends with the process."""
    with writing(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def write_whole(path: Path, text: str) -> None:
    """Write a small text file that other processes see whole or not at all. Raises OSError."""
    descriptor, temporary = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    Path(temporary).replace(path)
