"""How numbers are written: three significant digits, and a dash where there is nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

NOTHING = "–"


def number(value: float, suffix: str = "") -> str:
    """Three significant digits, without exponent: 0.123, 1.23, 12.3, 123, 1234."""
    if not math.isfinite(value):
        return NOTHING
    digits = 2 - math.floor(math.log10(abs(value))) if abs(value) >= 0.001 else 3
    return f"{value:.{min(max(digits, 0), 3)}f}{suffix}"


def interval(low: float, high: float) -> str:
    """Both ends, or a dash where there is no interval."""
    return f"{number(low)}–{number(high)}" if math.isfinite(low) and math.isfinite(high) else NOTHING


def milliseconds(seconds: float) -> str:
    """A time in milliseconds, without the unit."""
    return number(1000 * seconds)


def percents(rates: Sequence[float], per_line: int = 4) -> str:
    """Rates by position as whole per cents, so many a line."""
    words = [f"{100 * rate:.0f}" if math.isfinite(rate) else NOTHING for rate in rates]
    wide = max(map(len, words), default=0)
    lines = [
        " ".join(word.rjust(wide) for word in words[i : i + per_line]) for i in range(0, len(words), per_line)
    ]
    width = max(map(len, lines), default=0)
    return "\n".join(line.ljust(width) for line in lines) or NOTHING
