"""The processor: model, cores, the features that decide which arithmetic runs, and its clock just now."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, TypedDict

# As /proc/cpuinfo spells them, x86 first, then ARM.
FEATURES = ("avx2", "fma", "f16c", "avx512f", "avx512_bf16", "amx_bf16", "neon", "bf16", "sve")

_SYSCTL_FEATURES = {
    "hw.optional.avx2_0": "avx2",
    "hw.optional.fma": "fma",
    "hw.optional.f16c": "f16c",
    "hw.optional.avx512f": "avx512f",
    "hw.optional.neon": "neon",
    "hw.optional.AdvSIMD": "neon",
    "hw.optional.arm.FEAT_BF16": "bf16",
}
_SYSCTL = ["machdep.cpu.brand_string", "hw.physicalcpu", *_SYSCTL_FEATURES]

_ARM_VENDORS = {"0x41": "ARM", "0xc0": "Ampere", "0x61": "Apple", "0x51": "Qualcomm", "0x48": "HiSilicon"}
_ARM_PARTS = {
    ("0x41", "0xd0c"): "Neoverse N1",
    ("0x41", "0xd40"): "Neoverse V1",
    ("0x41", "0xd49"): "Neoverse N2",
    ("0x41", "0xd4f"): "Neoverse V2",
}


class Cpu(TypedDict):
    """What stays the same while the machine is up."""

    model: str
    architecture: str  # x86_64, aarch64, arm64
    physical_cores: int | None
    logical_cores: int | None
    usable_cores: int | None  # those this process may run on
    quota_cores: float | None  # share of them that a container's CPU limit grants, None without a limit
    features: list[str]  # of FEATURES, in that order


class Identity(NamedTuple):
    """What the operating system's description of the processor says."""

    model: str | None
    physical_cores: int | None
    features: list[str]


def read_cpu(root: Path = Path("/")) -> Cpu:
    """The processor of this machine; what the operating system does not tell is None or absent."""
    identity = _identity(root)
    return Cpu(
        model=identity.model or platform.processor() or platform.machine(),
        architecture=platform.machine(),
        physical_cores=identity.physical_cores or _physical_cores(root),
        logical_cores=os.cpu_count(),
        usable_cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        quota_cores=quota_cores(root),
        features=identity.features,
    )


def from_cpuinfo(text: str) -> Identity:
    """Read /proc/cpuinfo of an x86 or ARM machine."""
    first: dict[str, str] = {}
    cores = set()
    for block in re.split(r"\n\s*\n", text.strip()):
        fields = dict(re.findall(r"^([^\t:]+?)\s*:[ \t]*(.*)$", block, re.MULTILINE))
        first = first or fields
        if "core id" in fields:
            cores.add((fields.get("physical id"), fields["core id"]))
    flags = set(f"{first.get('flags', '')} {first.get('Features', '')}".split())
    if "asimd" in flags:
        flags.add("neon")
    return Identity(
        first.get("model name") or _arm_model(first), len(cores) or None, [f for f in FEATURES if f in flags]
    )


def from_sysctl(text: str) -> Identity:
    """Read macOS's `sysctl NAME...`, lines of `name: value`."""
    values = dict(re.findall(r"^([\w.]+): (.*)$", text, re.MULTILINE))
    found = {feature for name, feature in _SYSCTL_FEATURES.items() if values.get(name) == "1"}
    cores = values.get("hw.physicalcpu")
    return Identity(
        values.get("machdep.cpu.brand_string"),
        int(cores) if cores else None,
        [f for f in FEATURES if f in found],
    )


def quota_cores(root: Path = Path("/")) -> float | None:
    """How many cores' worth of time the container's CPU limit grants (cgroup v2 or v1), None without one."""
    cgroup = root / "sys/fs/cgroup"
    try:
        if (cgroup / "cpu.max").is_file():
            quota, period = (cgroup / "cpu.max").read_text().split()
        else:
            quota = (cgroup / "cpu/cpu.cfs_quota_us").read_text().strip()
            period = (cgroup / "cpu/cpu.cfs_period_us").read_text().strip()
    except (OSError, ValueError):
        return None
    return None if quota in ("max", "-1") else int(quota) / int(period)


def read_clock(root: Path = Path("/")) -> dict[str, float | str | None]:
    """The clock of each core now, averaged in MHz, and the governor that sets it; None when not readable."""
    try:
        clocks = [float(mhz) for mhz in re.findall(r"^cpu MHz\s*: ([\d.]+)", _cpuinfo(root), re.MULTILINE)]
    except OSError:
        clocks = []
    try:
        governor = (root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").read_text().strip()
    except OSError:
        governor = None
    return {"mhz": round(sum(clocks) / len(clocks), 1) if clocks else None, "governor": governor}


def _identity(root: Path) -> Identity:
    try:
        if sys.platform == "darwin":
            # Names that this Mac does not know go to standard error and set the exit code.
            asked = subprocess.run(["sysctl", *_SYSCTL], capture_output=True, text=True, check=False)
            return from_sysctl(asked.stdout)
        return from_cpuinfo(_cpuinfo(root))
    except OSError:
        return Identity(None, None, [])


def _cpuinfo(root: Path) -> str:
    return (root / "proc/cpuinfo").read_text(encoding="utf-8", errors="replace")


def _physical_cores(root: Path) -> int | None:
    """ARM's /proc/cpuinfo does not say which logical cores share a physical one."""
    files = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/topology/thread_siblings_list")
    return len({file.read_text().strip() for file in files}) or None


def _arm_model(fields: dict[str, str]) -> str | None:
    vendor, part = fields.get("CPU implementer"), fields.get("CPU part")
    if vendor is None or part is None:
        return None
    return f"{_ARM_VENDORS.get(vendor, vendor)} {_ARM_PARTS.get((vendor, part), part)}"
