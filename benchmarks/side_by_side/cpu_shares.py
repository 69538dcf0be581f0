"""What else the machine did while a process was measured: time stolen by its host, and work of other processes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_STAT = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


class Share(NamedTuple):
    """Shares of the time of all cores, 0 to 1."""

    steal: float  # the host gave the virtual machine no processor although it had work
    others: float  # processes outside the measured group ran, the kernel's own work included
    measured: float  # the measured group ran


class Sample(NamedTuple):
    """Clock ticks since the machine started, and those of one process group."""

    total: int
    steal: int
    busy: int
    group: int

    @classmethod
    def take(cls, group: int) -> Sample:
        """Read /proc (Linux)."""
        line = Path("/proc/stat").read_text().partition("\n")[0].split()[1:]
        ticks = dict(zip(_STAT, map(int, line), strict=False))
        busy = sum(ticks[name] for name in ("user", "nice", "system", "irq", "softirq"))
        return cls(sum(ticks.values()), ticks["steal"], busy, group_ticks(group))

    def until(self, later: Sample) -> Share:
        total = max(1, later.total - self.total)
        group = later.group - self.group
        return Share(
            steal=(later.steal - self.steal) / total,
            others=max(0, later.busy - self.busy - group) / total,
            measured=group / total,
        )


def group_ticks(group: int) -> int:
    """Processor time of the living processes of a group, user and system, in clock ticks."""
    total = 0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # After the command, which may hold spaces: state, parent, group, ...
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        if int(fields[2]) == group:
            total += int(fields[11]) + int(fields[12])
    return total
