"""NVIDIA GPUs and their driver, as `nvidia-smi` tells them."""

from __future__ import annotations

import csv
import subprocess
from typing import NamedTuple, TypedDict


class Gpu(TypedDict):
    """What stays the same while the machine is up. Unknown values are None."""

    name: str
    memory_mib: int | None
    driver: str
    power_limit_w: float | None
    max_sm_clock_mhz: int | None


class GpuNow(TypedDict):
    """What changes from moment to moment."""

    sm_clock_mhz: int | None
    temperature_c: int | None


class Gpus(NamedTuple):
    """All GPUs of the machine, in `nvidia-smi`'s order."""

    fixed: list[Gpu]
    now: list[GpuNow]


_FIELDS = (
    "name",
    "memory.total",
    "driver_version",
    "power.limit",
    "clocks.max.sm",
    "clocks.sm",
    "temperature.gpu",
)


def read_gpus() -> Gpus:
    """The GPUs of this machine; none when there is no working driver."""
    command = ["nvidia-smi", f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        return Gpus([], [])
    return from_csv(answer)


def from_csv(text: str) -> Gpus:
    """Read `nvidia-smi`'s table of the fields asked for, one GPU a line. MIG and some boards answer [N/A]."""
    gpus = Gpus([], [])
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        if len(row) != len(_FIELDS):
            continue
        name, memory, driver, power, max_clock, clock, temperature = row
        limit = _number(power)
        gpus.fixed.append(
            Gpu(
                name=name,
                memory_mib=_whole(memory),
                driver=driver,
                power_limit_w=limit,
                max_sm_clock_mhz=_whole(max_clock),
            )
        )
        gpus.now.append(GpuNow(sm_clock_mhz=_whole(clock), temperature_c=_whole(temperature)))
    return gpus


def _number(field: str) -> float | None:
    try:
        return float(field)
    except ValueError:
        return None


def _whole(field: str) -> int | None:
    number = _number(field)
    return None if number is None else round(number)
