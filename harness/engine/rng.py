"""Counter-based random numbers: a request's draws depend on its seed and its own history, never on its batch."""

from __future__ import annotations

from enum import IntEnum

import torch


class Stream(IntEnum):
    """What a draw is for. Two streams of a request never share a number."""

    TARGET = 0  # the prefill's token, the bonus token and the residual
    ACCEPT = 1
    DRAFT = 2


_GOLDEN = -7046029254386353131  # 0x9E3779B97F4A7C15 as a signed 64-bit integer
_MULTIPLY_1 = -4658895280553007687  # 0xBF58476D1CE4E5B9
_MULTIPLY_2 = -7723592293110705685  # 0x94D049BB133111EB


def _shift_right(x: torch.Tensor, bits: int) -> torch.Tensor:
    """Logical right shift; the arithmetic one of int64 would copy the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _mix(x: torch.Tensor) -> torch.Tensor:
    """SplitMix64's step and finaliser (Steele, Lea and Flood 2014) on int64 that wraps."""
    x = x + _GOLDEN
    x = (x ^ _shift_right(x, 30)) * _MULTIPLY_1
    x = (x ^ _shift_right(x, 27)) * _MULTIPLY_2
    return x ^ _shift_right(x, 31)


def uniforms(seeds: torch.Tensor, rounds: torch.Tensor, count: int, stream: Stream) -> torch.Tensor:
    """Numbers in (0, 1), a pure function of (seed, round, position in the block, stream).

    seeds: int64 [R]; rounds: int64 [R], the request's own round counter. Returns float64 [R, count].
    A round never reuses the numbers of another, so a redrafted position is independent of what was drafted
    there before.
    """
    positions = torch.arange(count, device=seeds.device)
    state = _mix(_mix(seeds) ^ rounds)
    state = _mix(state[:, None] ^ (positions * len(Stream) + int(stream))[None, :])
    return (_shift_right(state, 11).double() + 0.5) * 2.0**-53
