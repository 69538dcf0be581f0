"""A linear layer laid out for the machine: prepacked for oneDNN on CPUs that have it, plain elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.functional import linear

# oneDNN chooses a packed layout for a number of rows. Decode steps have a few to a few dozen; a layout made for 8
# is within a few percent of the best at 1 and at 128, one made for 1 is twice as slow at 8.
_ROWS_HINT = 8


def _onednn_takes(weight: torch.Tensor) -> bool:
    if weight.device.type != "cpu" or not torch._C._has_mkldnn:
        return False
    if weight.dtype == torch.float32:
        return True
    return weight.dtype == torch.bfloat16 and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def kernel_name(weight: torch.Tensor) -> str:
    """What `packed_linear` uses for weights like this one."""
    return "oneDNN, weights prepacked" if _onednn_takes(weight) else "torch.nn.functional.linear"


def packed_linear(
    weight: torch.Tensor, bias: torch.Tensor | None = None
) -> Callable[[torch.Tensor], torch.Tensor]:
    """A function x [T, in] -> x @ weight.T + bias [T, out]. weight [out, in]; the caller may drop it afterwards."""
    if not _onednn_takes(weight):
        return lambda x: linear(x, weight, bias)
    packed = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), _ROWS_HINT)
    pointwise = torch.ops.mkldnn._linear_pointwise
    return lambda x: pointwise(x, packed, bias, "none", [], "")
