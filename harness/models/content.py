"""The hash of a model folder's content: configuration, tokenizer and weights, and nothing else in it."""

from __future__ import annotations

import hashlib
import time
from contextlib import suppress
from pathlib import Path

from harness.errors import BenchError
from harness.models.cache import cache_folder, write_whole

RELEVANT = (
    "config.json",
    "generation_config.json",
    "*.safetensors",
    "*.safetensors.index.json",
    "tokenizer*",
    "vocab.*",
    "merges.txt",
    "added_tokens.json",
    "special_tokens_map.json",
    "chat_template*",
    "*.tiktoken",
    "*.model",
)

_SETTLED_S = 2.0  # a file younger than this may change once more within the same tick of its clock


def content_sha256(folder: Path) -> str:
    """Hash of the names and contents of the files that decide what the model in `folder` computes.

    The hashes of single files are kept in the user's cache by path, size and times of change, so that
    gigabytes of weights are read once. Raises `BenchError` when a file cannot be read.
    """
    files = {file for pattern in RELEVANT for file in folder.glob(pattern) if file.is_file()}
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda file: file.name):
        digest.update(f"{file.name}\0{_file_sha256(file)}\n".encode())
    return digest.hexdigest()


def _file_sha256(file: Path) -> str:
    try:
        stat = file.stat()
        identity = f"{file.resolve()}\0{stat.st_size}\0{stat.st_mtime_ns}\0{stat.st_ctime_ns}"
        known = cache_folder("hashes") / hashlib.sha256(identity.encode()).hexdigest()
    except BenchError:
        return _read_sha256(file)  # a cache that cannot be written only costs time here
    with suppress(OSError):
        return known.read_text(encoding="utf-8")
    sha256 = _read_sha256(file)
    if time.time() - stat.st_mtime > _SETTLED_S:
        with suppress(OSError):
            write_whole(known, sha256)
    return sha256


def _read_sha256(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise BenchError(f"{file}: cannot be read: {error.strerror or error}. Make it readable.") from error
