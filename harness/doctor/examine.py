"""The examination as a whole."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from harness.doctor.machine import describe_machine
from harness.doctor.plugins import check_plugins
from harness.doctor.report import Report, Section
from harness.doctor.sources import check_cache, check_folders, check_hub, check_wheels
from harness.doctor.tools import check_compiler, check_nvcc, check_triton


def examine() -> Report:
    """Look at this machine. Takes a few seconds: it imports torch and asks the hub and pip's index."""
    from harness import registry
    from harness.environment import capture

    with ThreadPoolExecutor(max_workers=2) as pool:
        hub, wheels = pool.submit(check_hub), pool.submit(check_wheels)
        environment = capture()
        sections = [
            Section("machine", describe_machine(environment)),
            Section("backends", check_plugins("backend", registry.backends)),
            Section("drafters", check_plugins("drafter", registry.drafters)),
            Section("schedulers", check_plugins("scheduler", registry.schedulers)),
            Section("model sources", [hub.result(), wheels.result(), check_folders(), check_cache()]),
            Section("tools", [check_compiler(), check_nvcc(), check_triton()]),
        ]
    return Report(sections, environment)
