"""The machine's lines say what the captured environment says, and warn of what would spoil a measurement."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from harness.doctor.machine import describe_machine
from harness.doctor.report import Check

ENVIRONMENT: dict[str, Any] = {
    "checkout": {"commit": "ab" * 20, "dirty": True, "diff_sha256": "cd" * 32, "unknown": None},
    "packages": {"dspark-bench": "0.1.0", "torch": "2.13.0+cpu", "transformers": "5.19.0"},
    "python": {"version": "3.11.7", "implementation": "CPython"},
    "system": {"name": "Linux", "kernel": "6.18.44", "libc": "glibc 2.36"},
    "cpu": {
        "model": "AMD EPYC 7763",
        "architecture": "x86_64",
        "physical_cores": 4,
        "logical_cores": 8,
        "usable_cores": 8,
        "quota_cores": None,
        "features": ["avx2", "f16c"],
    },
    "memory_bytes": 16 * 2**30,
    "gpus": [],
    "torch": {
        "threads": 4,
        "interop_threads": 4,
        "cpu_capability": "AVX2",
        "cuda": None,
        "cuda_available": False,
    },
    "container": "none",
    "variables": {},
    "now": {"memory_available_bytes": 12 * 2**30},
}
H200 = {"name": "NVIDIA H200", "memory_mib": 143771, "driver": "570.1", "power_limit_w": 700.0}


def lines(**changes: Any) -> dict[str, Check]:
    environment = copy.deepcopy(ENVIRONMENT)
    for part, values in changes.items():
        if isinstance(values, dict):
            environment[part] |= values
        else:
            environment[part] = values
    return {check.name: check for check in describe_machine(environment)}


def test_what_it_says() -> None:
    found = lines()
    assert found["bench"].detail == "0.1.0, commit abababababab, changed since"
    assert found["CPU"].detail == "AMD EPYC 7763 (x86_64: avx2 f16c)"
    assert found["cores"].detail == "4 physical, 8 logical, 8 usable; torch computes with 4 threads"
    assert found["memory"].detail == "16.0 GiB, 12.0 GiB available"
    assert found["GPU"].detail.startswith("none")
    assert {check.usable for check in found.values()} == {None}


def test_code_without_a_checkout() -> None:
    unknown = {"commit": None, "dirty": None, "diff_sha256": None, "unknown": "git is not installed"}
    assert lines(checkout=unknown)["bench"].detail == "0.1.0, commit unknown: git is not installed"


@pytest.mark.parametrize(("limit", "threads"), [({"quota_cores": 2.0}, 2), ({"usable_cores": 3}, 3)])
def test_more_threads_than_cores_is_no_good(limit: dict[str, float], threads: int) -> None:
    check = lines(cpu=limit)["cores"]
    assert check.usable is False
    assert check.mend == f"set OMP_NUM_THREADS={threads}"


def test_one_thread_is_never_too_many() -> None:
    assert lines(cpu={"quota_cores": 0.5}, torch={"threads": 1})["cores"].usable is None


def test_equal_gpus_share_a_line() -> None:
    check = lines(gpus=[H200, H200], torch={"cuda": "13.0", "cuda_available": True})["GPU"]
    assert check.usable is None
    assert check.detail == "2 times NVIDIA H200, 140 GiB, driver 570.1, torch built for CUDA 13.0"


@pytest.mark.parametrize(("cuda", "why"), [(None, "torch is a CPU build"), ("13.0", "finds no device")])
def test_a_gpu_that_torch_cannot_use(cuda: str | None, why: str) -> None:
    check = lines(gpus=[H200], torch={"cuda": cuda})["GPU"]
    assert check.usable is False
    assert why in check.detail and check.mend


def test_the_arithmetic_of_each_device_has_a_reason() -> None:
    dtype, _, reason = lines()["dtype cpu"].detail.partition(": ")
    assert dtype in ("float32", "bfloat16") and reason
    cuda = lines(torch={"cuda": "13.0", "cuda_available": True})["dtype cuda"]
    assert cuda.detail.startswith("bfloat16: ")


def test_without_torch() -> None:
    check = lines(torch=None)["torch"]
    assert check.usable is False and check.mend
