"""The prepacked linear layer computes what the plain one computes."""

from __future__ import annotations

import pytest
import torch

from harness.engine.linear import kernel_name, packed_linear


@pytest.mark.parametrize("rows", [1, 2, 7, 8, 33, 200])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.bfloat16, 5e-2)], ids=["float32", "bfloat16"]
)
def test_equal_to_the_plain_product_in_float64(
    rows: int, bias: bool, dtype: torch.dtype, tolerance: float
) -> None:
    generator = torch.Generator().manual_seed(rows)
    weight = torch.randn(96, 72, generator=generator).to(dtype)
    offset = torch.randn(96, generator=generator).to(dtype) if bias else None
    x = torch.randn(rows, 72, generator=generator).to(dtype)
    expected = x.double() @ weight.double().T + (0 if offset is None else offset.double())
    with torch.inference_mode():
        got = packed_linear(weight, offset)(x)
    assert got.dtype == dtype
    torch.testing.assert_close(got.double(), expected, rtol=tolerance, atol=tolerance)


def test_float32_on_cpu_really_runs_prepacked() -> None:
    if not torch._C._has_mkldnn:
        pytest.skip("this build of PyTorch has no oneDNN")
    weight = torch.randn(96, 72)
    assert kernel_name(weight) == "oneDNN, weights prepacked"
    with torch.inference_mode(), torch.profiler.profile() as profile:
        packed_linear(weight)(torch.randn(4, 72))
    assert any("mkldnn::_linear_pointwise" in event.name for event in profile.events())
