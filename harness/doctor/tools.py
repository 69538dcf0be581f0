"""What compiles kernels: a C++ compiler, CUDA's compiler, Triton."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from harness.doctor.report import Check, unusable, usable


def check_compiler() -> Check:
    """The C++ compiler that PyTorch would call: $CXX, else the first of c++, g++, clang++ on the PATH."""
    chosen = shlex.split(os.environ.get("CXX", ""))[:1]
    found = next(filter(None, map(shutil.which, chosen or ["c++", "g++", "clang++"])), None)
    if found is not None and (line := _first_line(found)) is not None:
        return usable("C++", line)
    why = f"CXX={chosen[0]} is no program that runs" if chosen else "no c++, g++ or clang++ on the PATH"
    return unusable("C++", f"{why}: torch.compile cannot work on the CPU", "install g++, or set CXX")


def check_nvcc() -> Check:
    """CUDA's compiler: in $CUDA_HOME/bin, else on the PATH."""
    home = os.environ.get("CUDA_HOME")
    found = shutil.which("nvcc", path=str(Path(home) / "bin")) if home else shutil.which("nvcc")
    if found is not None and (release := re.search(r"release (\S+),", _output(found) or "")):
        return usable("nvcc", f"CUDA {release[1]}, {found}")
    why = f"none {'in $CUDA_HOME/bin' if home else 'on the PATH'}: CUDA sources cannot be compiled"
    return unusable("nvcc", why, "install the CUDA toolkit, and set CUDA_HOME to it")


def check_triton() -> Check:
    """Triton, by its metadata alone: importing it looks for drivers."""
    try:
        return usable("Triton", version("triton"))
    except PackageNotFoundError:
        why = "not installed: Triton kernels cannot run"
        return unusable("Triton", why, "it comes with PyTorch's CUDA build; alone: pip install triton")


def _first_line(program: str) -> str | None:
    lines = (_output(program) or "").splitlines()
    return lines[0] if lines else None


def _output(program: str) -> str | None:
    """What `program --version` prints, None when it fails."""
    try:
        answer = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout
