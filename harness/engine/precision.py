"""Which arithmetic the engine uses on this machine when a suite says `dtype: auto`."""

from __future__ import annotations

NAMES = ("float32", "bfloat16", "float16")


def _cpu_has_bfloat16() -> bool:
    """Whether the CPU multiplies bfloat16 with float32 accumulation in hardware (AVX512-BF16, AMX, ARM BF16)."""
    import torch

    capability = torch.backends.cpu.get_cpu_capability()
    if capability.startswith("SVE") or capability == "DEFAULT":
        return False
    probes = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, probe, lambda: False)() for probe in probes)


def default_dtype(device: str) -> str:
    """Name of the dtype that `auto` means on `device` ("cpu", "cuda", "cuda:1")."""
    return "bfloat16" if device.startswith("cuda") or _cpu_has_bfloat16() else "float32"


def reason(device: str) -> str:
    """Why `default_dtype` is what it is, in one sentence."""
    if device.startswith("cuda"):
        return "CUDA devices compute bfloat16 with float32 accumulation"
    if _cpu_has_bfloat16():
        return "this CPU multiplies bfloat16 in hardware (AVX512-BF16 or AMX)"
    return "this CPU has no bfloat16 arithmetic, so bfloat16 weights are widened to float32, which is exact"
