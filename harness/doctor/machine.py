"""The machine in a few lines, from its captured environment."""

from __future__ import annotations

from typing import Any

from harness.doctor.report import Check, unusable

GIB = 2**30


def describe_machine(environment: dict[str, Any]) -> list[Check]:
    """Code, processor, cores, memory, GPUs and the arithmetic that `dtype: auto` means on each device.

    environment: what `harness.environment.capture` returned.
    """
    return [
        Check("bench", None, _code(environment)),
        Check("system", None, _system(environment)),
        Check("CPU", None, _cpu(environment["cpu"])),
        _cores(environment),
        Check("memory", None, _memory(environment)),
        *_gpus(environment),
        *_arithmetic(environment),
    ]


def _code(environment: dict[str, Any]) -> str:
    checkout = environment["checkout"]
    version = environment["packages"].get("dspark-bench", "not installed")
    if checkout["commit"] is None:
        return f"{version}, commit unknown: {checkout['unknown']}"
    return f"{version}, commit {checkout['commit'][:12]}{', changed since' if checkout['dirty'] else ''}"


def _system(environment: dict[str, Any]) -> str:
    system, packages = environment["system"], environment["packages"]
    parts = [
        f"{system['name']} {system['kernel']}",
        f"Python {environment['python']['version']}",
        *(f"{name} {packages[name]}" for name in ("torch", "transformers") if name in packages),
    ]
    if environment["container"] != "none":
        parts.append(f"in {environment['container']}")
    return ", ".join(parts)


def _cpu(cpu: dict[str, Any]) -> str:
    features = " ".join(cpu["features"]) or "no features known"
    return f"{cpu['model']} ({cpu['architecture']}: {features})"


def _cores(environment: dict[str, Any]) -> Check:
    cpu, torch = environment["cpu"], environment["torch"]
    physical = cpu["physical_cores"] or "unknown number of"
    detail = f"{physical} physical, {cpu['logical_cores']} logical, {cpu['usable_cores']} usable"
    if cpu["quota_cores"] is not None:
        detail += f", time of {cpu['quota_cores']:g} by the container's limit"
    if torch is None:
        return Check("cores", None, detail)
    detail += f"; torch computes with {torch['threads']} threads"
    granted = min(n for n in (cpu["usable_cores"], cpu["quota_cores"]) if n is not None)
    if torch["threads"] > max(1, granted):
        return unusable(
            "cores",
            f"{detail}, more than it is granted: steps will stall",
            f"set OMP_NUM_THREADS={max(1, int(granted))}",
        )
    return Check("cores", None, detail)


def _memory(environment: dict[str, Any]) -> str:
    total, available = environment["memory_bytes"], environment["now"]["memory_available_bytes"]
    if total is None:
        return "unknown"
    free = "" if available is None else f", {available / GIB:.1f} GiB available"
    return f"{total / GIB:.1f} GiB{free}"


def _gpus(environment: dict[str, Any]) -> list[Check]:
    gpus, torch = environment["gpus"], environment["torch"]
    if not gpus:
        return [Check("GPU", None, "none: nvidia-smi is missing or names no device")]
    kinds: dict[tuple[Any, ...], int] = {}
    for gpu in gpus:
        kind = (gpu["name"], gpu["memory_mib"], gpu["driver"])
        kinds[kind] = kinds.get(kind, 0) + 1
    checks = []
    for (name, memory, driver), count in kinds.items():
        size = f", {memory / 1024:.0f} GiB" if memory is not None else ""
        times = f"{count} times " if count > 1 else ""
        detail = f"{times}{name}{size}, driver {driver}"
        if torch is None or torch["cuda_available"]:
            built = f", torch built for CUDA {torch['cuda']}" if torch else ""
            checks.append(Check("GPU", None, detail + built))
        elif torch["cuda"] is None:
            mend = "install PyTorch's CUDA build: remove .venv, then make install"
            checks.append(unusable("GPU", f"{detail}, but torch is a CPU build", mend))
        else:
            mend = "update the driver, or look at CUDA_VISIBLE_DEVICES"
            checks.append(
                unusable("GPU", f"{detail}, but torch, built for CUDA {torch['cuda']}, finds no device", mend)
            )
    return checks


def _arithmetic(environment: dict[str, Any]) -> list[Check]:
    if environment["torch"] is None:
        mend = "make install, or pip install torch"
        return [unusable("torch", "it is not installed or cannot be imported: nothing can be decoded", mend)]
    from harness.engine import precision

    devices = ["cpu", "cuda"] if environment["torch"]["cuda_available"] else ["cpu"]
    return [
        Check(f"dtype {device}", None, f"{precision.default_dtype(device)}: {precision.reason(device)}")
        for device in devices
    ]
