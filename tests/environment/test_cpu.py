"""Processors are read from what their operating systems really print."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.environment.cpu import from_cpuinfo, from_sysctl, quota_cores, read_clock, read_cpu

# Two sockets, two cores each, two threads a core; flags shortened.
SAPPHIRE_RAPIDS = "\n\n".join(
    f"""processor\t: {thread}
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) Platinum 8480+
cpu MHz\t\t: {2000 + thread}.000
physical id\t: {thread // 2 % 2}
core id\t\t: {thread % 2}
flags\t\t: fpu sse2 avx f16c fma avx2 avx512f avx512_bf16 amx_bf16 amx_tile avx512_vnni
power management:"""
    for thread in range(8)
)

ZEN3 = """processor\t: 0
model name\t: AMD EPYC 7763 64-Core Processor
cpu MHz\t\t: 2445.426
physical id\t: 0
core id\t\t: 0
flags\t\t: fpu sse2 avx f16c fma avx2
"""

NEOVERSE_V1 = """processor\t: 0
BogoMIPS\t: 2100.00
Features\t: fp asimd evtstrm aes fphp asimdhp sve svebf16 i8mm bf16
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x1
CPU part\t: 0xd40
CPU revision\t: 1

processor\t: 1
BogoMIPS\t: 2100.00
Features\t: fp asimd evtstrm aes fphp asimdhp sve svebf16 i8mm bf16
CPU implementer\t: 0x41
CPU part\t: 0xd40
"""

M2 = """machdep.cpu.brand_string: Apple M2 Pro
hw.physicalcpu: 10
hw.optional.neon: 1
hw.optional.AdvSIMD: 1
hw.optional.arm.FEAT_BF16: 1
"""

INTEL_MAC = """machdep.cpu.brand_string: Intel(R) Core(TM) i7-9750H CPU @ 2.60GHz
hw.physicalcpu: 6
hw.optional.avx2_0: 1
hw.optional.fma: 1
hw.optional.f16c: 1
hw.optional.avx512f: 0
"""


def test_intel_with_amx() -> None:
    assert from_cpuinfo(SAPPHIRE_RAPIDS) == (
        "Intel(R) Xeon(R) Platinum 8480+",
        4,
        ["avx2", "fma", "f16c", "avx512f", "avx512_bf16", "amx_bf16"],
    )


def test_amd_without_bfloat16() -> None:
    assert from_cpuinfo(ZEN3) == ("AMD EPYC 7763 64-Core Processor", 1, ["avx2", "fma", "f16c"])


def test_arm_has_no_model_name() -> None:
    assert from_cpuinfo(NEOVERSE_V1) == ("ARM Neoverse V1", None, ["neon", "bf16", "sve"])


def test_unknown_arm_part_keeps_its_number() -> None:
    assert from_cpuinfo(NEOVERSE_V1.replace("0xd40", "0xfff")).model == "ARM 0xfff"


def test_apple() -> None:
    assert from_sysctl(M2) == ("Apple M2 Pro", 10, ["neon", "bf16"])


def test_intel_mac() -> None:
    assert from_sysctl(INTEL_MAC) == ("Intel(R) Core(TM) i7-9750H CPU @ 2.60GHz", 6, ["avx2", "fma", "f16c"])


def test_nothing_to_read() -> None:
    assert from_cpuinfo("") == (None, None, [])
    assert from_sysctl("") == (None, None, [])


def test_the_clock_is_the_mean_over_cores(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(SAPPHIRE_RAPIDS)
    governor = tmp_path / "sys/devices/system/cpu/cpu0/cpufreq"
    governor.mkdir(parents=True)
    (governor / "scaling_governor").write_text("performance\n")
    assert read_clock(tmp_path) == {"mhz": 2003.5, "governor": "performance"}
    assert read_clock(tmp_path / "proc") == {"mhz": None, "governor": None}


@pytest.mark.parametrize(("limit", "cores"), [("150000 100000", 1.5), ("max 100000", None)])
def test_cpu_limit_of_a_container(tmp_path: Path, limit: str, cores: float | None) -> None:
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/cpu.max").write_text(limit + "\n")
    assert quota_cores(tmp_path) == cores


@pytest.mark.parametrize(("quota", "cores"), [("50000", 0.5), ("-1", None)])
def test_cpu_limit_of_a_container_with_the_older_interface(
    tmp_path: Path, quota: str, cores: float | None
) -> None:
    (tmp_path / "sys/fs/cgroup/cpu").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/cpu/cpu.cfs_quota_us").write_text(quota + "\n")
    (tmp_path / "sys/fs/cgroup/cpu/cpu.cfs_period_us").write_text("100000\n")
    assert quota_cores(tmp_path) == cores


def test_this_machine() -> None:
    cpu = read_cpu()
    assert cpu["model"]
    assert cpu["logical_cores"] is not None and cpu["usable_cores"] is not None
    assert 1 <= cpu["usable_cores"] <= cpu["logical_cores"]
    if cpu["physical_cores"] is not None:
        assert 1 <= cpu["physical_cores"] <= cpu["logical_cores"]


def test_arm_cores_are_counted_from_their_siblings(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(NEOVERSE_V1)
    for core, siblings in enumerate(["0,2", "1,3", "0,2", "1,3"]):
        topology = tmp_path / f"sys/devices/system/cpu/cpu{core}/topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(siblings + "\n")
    cpu = read_cpu(tmp_path)
    assert (cpu["model"], cpu["physical_cores"]) == ("ARM Neoverse V1", 2)
