"""The comparison as a JSON document, as Markdown for the repository, and as a table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, NamedTuple

from side_by_side.cpu_shares import Share
from side_by_side.protocol import Run
from side_by_side.ratios import Agreement, agreement, paired_ratio

if TYPE_CHECKING:
    from rich.table import Table


class Measured(NamedTuple):
    """One arm in one repeat at one concurrency."""

    arm: str
    concurrency: int
    repeat: int
    run: Run
    share: Share

    @property
    def tokens(self) -> int:
        return sum(map(len, self.run["outputs"]))

    @property
    def throughput(self) -> float:
        """Output tokens a second of wall time."""
        return self.tokens / self.run["seconds"]


@dataclass
class Comparison:
    """Everything that was measured, and on what. The first arm is the one the others are compared with."""

    arms: tuple[str, ...]
    concurrencies: tuple[int, ...]
    facts: dict[str, str]  # what a reader needs to know, in the order of the report
    environment: dict[str, Any]
    configurations: dict[str, dict[str, Any]] = field(default_factory=dict)  # of each arm that started
    failures: dict[str, str] = field(default_factory=dict)  # arm -> its own message
    measured: list[Measured] = field(default_factory=list)

    def of(self, arm: str, concurrency: int) -> list[Measured]:
        """In the order of the repeats."""
        rows = [m for m in self.measured if (m.arm, m.concurrency) == (arm, concurrency)]
        return sorted(rows, key=lambda row: row.repeat)

    def pairs(self, arm: str, concurrency: int) -> list[tuple[Measured, Measured]]:
        """The first arm and `arm` in the repeats that both have."""
        theirs = {row.repeat: row for row in self.of(arm, concurrency)}
        return [
            (row, theirs[row.repeat]) for row in self.of(self.arms[0], concurrency) if row.repeat in theirs
        ]


Rows = list[list[str]]


def headline(comparison: Comparison) -> Rows:
    """Throughput of every arm and the first arm's ratio to the others."""
    first, *others = comparison.arms
    rows = [
        [
            "concurrency",
            *(f"{arm}, tok/s" for arm in comparison.arms),
            *(f"{first} / {arm}" for arm in others),
        ]
    ]
    for concurrency in comparison.concurrencies:
        speeds = [_throughput(comparison.of(arm, concurrency)) for arm in comparison.arms]
        ratios = [_ratio(comparison.pairs(arm, concurrency)) for arm in others]
        rows.append([str(concurrency), *speeds, *ratios])
    return rows


def details(comparison: Comparison) -> Rows:
    """Latencies, agreement and what else the machine did."""
    rows = [
        [
            "concurrency",
            "arm",
            "repeats",
            "TTFT, ms",
            "TPOT, ms",
            "same tokens",
            "first divergence",
            "steal",
            "other processes",
        ]
    ]
    for concurrency in comparison.concurrencies:
        for arm in comparison.arms:
            measured = comparison.of(arm, concurrency)
            if not measured:
                continue
            rows.append(
                [
                    str(concurrency),
                    arm,
                    str(len(measured)),
                    f"{1e3 * fmean(t for row in measured for t in row.run['ttft_s']):.0f}",
                    f"{1e3 * fmean(t for row in measured for t in row.run['tpot_s']):.1f}",
                    *_agreement(comparison, arm, concurrency),
                    _shares([row.share.steal for row in measured]),
                    _shares([row.share.others for row in measured]),
                ]
            )
    return rows


def markdown(comparison: Comparison, title: str, notes: Sequence[str]) -> str:
    """The whole report."""
    parts = [f"# {title}", _markdown_table(headline(comparison))]
    if comparison.failures:
        parts.append("\n".join(f"- {arm} did not run: {why}" for arm, why in comparison.failures.items()))
    parts += [*notes, _markdown_table(details(comparison)), "## Measured with"]
    parts.append("\n".join(f"- {name}: {value}" for name, value in comparison.facts.items()))
    for arm, configuration in comparison.configurations.items():
        values = "; ".join(f"{key} {_plain(value)}" for key, value in configuration.items() if value)
        parts[-1] += f"\n- {arm}: {values}"
    return "\n\n".join(parts) + "\n"


def document(comparison: Comparison) -> dict[str, Any]:
    """For programs: every measurement, without the token ids."""
    first, *others = comparison.arms
    return {
        "facts": comparison.facts,
        "configurations": comparison.configurations,
        "failures": comparison.failures,
        "ratios": [
            {
                "concurrency": concurrency,
                "arm": first,
                "baseline": arm,
                **paired_ratio([a.throughput for a, _ in pairs], [b.throughput for _, b in pairs])._asdict(),
                **_compared(pairs)._asdict(),
            }
            for concurrency in comparison.concurrencies
            for arm in others
            if (pairs := comparison.pairs(arm, concurrency))
        ],
        "measurements": [
            {
                "arm": row.arm,
                "concurrency": row.concurrency,
                "repeat": row.repeat,
                "tok_s": row.throughput,
                "tokens": row.tokens,
                **row.share._asdict(),
                "seconds": row.run["seconds"],
                "ttft_s": [round(t, 4) for t in row.run["ttft_s"]],
                "tpot_s": [round(t, 5) for t in row.run["tpot_s"]],
            }
            for row in comparison.measured
        ],
        "environment": comparison.environment,
    }


def terminal_table(rows: Rows) -> Table:
    """The first row is the header."""
    from rich.table import Table

    table = Table(*rows[0])
    for row in rows[1:]:
        table.add_row(*row)
    return table


def _markdown_table(rows: Rows) -> str:
    header, *body = rows
    numeric = ["---:" if name != "arm" else "---" for name in header]
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, numeric, *body])


def _throughput(measured: Sequence[Measured]) -> str:
    if not measured:
        return "did not run"
    speeds = [row.throughput for row in measured]
    return f"{median(speeds):.1f} ({min(speeds):.1f}..{max(speeds):.1f})"


def _ratio(pairs: Sequence[tuple[Measured, Measured]]) -> str:
    if not pairs:
        return "did not run"
    mean, low, high = paired_ratio([a.throughput for a, _ in pairs], [b.throughput for _, b in pairs])
    return f"{mean:.2f}" if low is None else f"{mean:.2f} ({low:.2f}..{high:.2f})"


def _compared(pairs: Sequence[tuple[Measured, Measured]]) -> Agreement:
    ours = [output for row, _ in pairs for output in row.run["outputs"]]
    theirs = [output for _, row in pairs for output in row.run["outputs"]]
    return agreement(ours, theirs)


def _agreement(comparison: Comparison, arm: str, concurrency: int) -> tuple[str, str]:
    pairs = comparison.pairs(arm, concurrency)
    if arm == comparison.arms[0] or not pairs:
        return "", ""
    found = _compared(pairs)
    same = f"{found.identical} of {found.requests} requests"
    if found.first_divergence is None:
        return same, ""
    return same, f"token {found.first_divergence:.0f} (median), {found.earliest_divergence} (earliest)"


def _shares(shares: Sequence[float]) -> str:
    return f"{fmean(shares):.1%} (at most {max(shares):.1%})"


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items())
    return str(value)
