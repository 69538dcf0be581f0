"""The captured document, its name, and the parts read from other programs."""

from __future__ import annotations

import copy
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.environment import capture, environment_id
from harness.environment.capture import meminfo
from harness.environment.container import container
from harness.environment.gpu import from_csv


@pytest.fixture(scope="module")
def environment() -> dict[str, Any]:
    return capture()


def test_it_is_json(environment: dict[str, Any]) -> None:
    assert json.loads(json.dumps(environment, allow_nan=False)) == environment


def test_it_says_what_is_installed_and_how_many_threads_compute(environment: dict[str, Any]) -> None:
    assert environment["packages"]["torch"] == version("torch")
    assert environment["torch"]["threads"] == torch.get_num_threads()
    assert environment["memory_bytes"] > (environment["now"]["memory_available_bytes"] or 0) >= 0


def test_the_name_is_the_same_for_two_captures(environment: dict[str, Any]) -> None:
    name = environment_id(environment)
    assert len(name) == 12 and int(name, 16) >= 0
    assert environment_id(json.loads(json.dumps(environment))) == name
    later = copy.deepcopy(environment)
    later["now"] = {"captured_at": "2099-01-01T00:00:00+00:00", "cpu": {"mhz": 800.0, "governor": None}}
    assert environment_id(later) == name


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("checkout", "commit", "0" * 40),
        ("checkout", "diff_sha256", "0" * 64),
        ("packages", "torch", "0.0.1"),
        ("cpu", "model", "another"),
        ("cpu", "features", []),
        ("torch", "threads", 999),
        ("variables", "OMP_NUM_THREADS", "999"),
    ],
)
def test_another_machine_or_code_has_another_name(
    environment: dict[str, Any], part: str, key: str, value: object
) -> None:
    other = copy.deepcopy(environment)
    other[part][key] = value
    assert environment_id(other) != environment_id(environment)


def test_gpus_from_nvidia_smi() -> None:
    gpus = from_csv(
        "NVIDIA H200, 143771, 570.124.06, 700.00, 1980, 345, 29\n"
        "NVIDIA A100-SXM4-80GB MIG 1g.10gb, [N/A], 570.124.06, [N/A], 1410, [N/A], 31\n"
    )
    assert gpus.fixed == [
        {
            "name": "NVIDIA H200",
            "memory_mib": 143771,
            "driver": "570.124.06",
            "power_limit_w": 700.0,
            "max_sm_clock_mhz": 1980,
        },
        {
            "name": "NVIDIA A100-SXM4-80GB MIG 1g.10gb",
            "memory_mib": None,
            "driver": "570.124.06",
            "power_limit_w": None,
            "max_sm_clock_mhz": 1410,
        },
    ]
    assert gpus.now == [
        {"sm_clock_mhz": 345, "temperature_c": 29},
        {"sm_clock_mhz": None, "temperature_c": 31},
    ]


def test_no_gpus_in_what_a_broken_driver_prints() -> None:
    assert from_csv("NVIDIA-SMI has failed because it couldn't communicate with the driver.\n") == ([], [])


@pytest.mark.parametrize(
    ("files", "variables", "kind"),
    [
        ({}, {}, "none"),
        ({".dockerenv": ""}, {}, "docker"),
        ({"run/.containerenv": ""}, {}, "podman"),
        ({".dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({}, {"container": "lxc"}, "lxc"),
        ({"proc/1/cgroup": "12:cpu:/kubepods/besteffort/pod1\n"}, {}, "kubernetes"),
        ({"proc/1/cgroup": "0::/system.slice/docker-1f.scope\n"}, {}, "docker"),
        ({"proc/1/cgroup": "0::/init.scope\n"}, {}, "none"),
    ],
)
def test_container(tmp_path: Path, files: dict[str, str], variables: dict[str, str], kind: str) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert container(tmp_path, variables) == kind


def test_memory_from_meminfo(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal:       24684092 kB\nMemFree:  1 kB\n")
    assert meminfo("MemTotal", tmp_path) == 24684092 * 1024
    assert meminfo("MemAvailable", tmp_path) is None
