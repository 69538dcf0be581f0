"""Numbers are written with three significant digits and never as if they were there when they are not."""

from __future__ import annotations

import pytest

from harness.tables.numbers import interval, milliseconds, number, percents

NAN = float("nan")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.000"),
        (0.1234, "0.123"),
        (1.0, "1.00"),
        (9.876, "9.88"),
        (45.67, "45.7"),
        (123.4, "123"),
        (4567.8, "4568"),
    ],
)
def test_three_significant_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_nothing_is_a_dash() -> None:
    assert number(NAN) == interval(1.0, NAN) == percents([]) == "–"
    assert percents([0.5, NAN]) == "50  –"


def test_units_and_lines() -> None:
    assert milliseconds(0.0421) == "42.1"
    assert interval(1.0, 2.0) == "1.00–2.00"
    assert percents([1.0, 0.5, 0.25, 0.125, 0.1]).splitlines() == ["100  50  25  12", " 10" + " " * 12]
