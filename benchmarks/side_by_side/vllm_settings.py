"""The ways to run vLLM's CPU build that can be the fastest on one machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

NAMES = ("in-process", "bound")


class Setting(NamedTuple):
    """Its executor, and the variables it is started with."""

    executor: str
    environment: Mapping[str, str]


def setting(name: str, python: Path) -> Setting:
    """One of NAMES, for the environment that `python` is the interpreter of.

    vLLM's own choice of cores keeps one free of arithmetic, which is half of a two-core machine, and one CPU of the
    target's size is too little work to pay for scheduler and worker processes: so `in-process` runs all in one
    process, and `bound` runs vLLM's usual processes with a thread on every core.
    """
    cores = physical_cores()
    common = {
        "LD_PRELOAD": ":".join(str(file) for file in preloads(python)),
        "VLLM_CPU_KVCACHE_SPACE": "2",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    if name == "bound":
        return Setting("mp", {**common, "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, cores))})
    own = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    return Setting("uni", {**common, **own, "OMP_NUM_THREADS": str(len(cores))})


def preloads(python: Path) -> list[Path]:
    """The libraries that vLLM's documentation says to preload, as far as they are installed."""
    library = python.parent.parent / "lib"
    places = [library, *Path("/usr/lib").glob("*-linux-gnu"), Path("/usr/lib64"), Path("/usr/lib")]
    tcmalloc = [folder / "libtcmalloc_minimal.so.4" for folder in places]
    return [
        *[file for file in tcmalloc if file.is_file()][:1],
        *[file for file in [library / "libiomp5.so"] if file.is_file()],
    ]


def physical_cores() -> list[int]:
    """The logical CPUs this process may use, one of each physical core."""
    chosen: dict[str, int] = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        file = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        chosen.setdefault(file.read_text().strip() if file.is_file() else str(cpu), cpu)
    return list(chosen.values())
