"""What an examination finds: facts, and things that are usable or not, with the reason and the mend."""

from __future__ import annotations

from typing import Any, NamedTuple


class Check(NamedTuple):
    """One line of the screen."""

    name: str
    usable: bool | None  # None: a fact that is neither
    detail: str  # what was found; for what is not usable, why
    mend: str | None = None  # what would make it usable


class Section(NamedTuple):
    """Checks that belong together."""

    title: str
    checks: list[Check]


class Report(NamedTuple):
    """A whole examination."""

    sections: list[Section]
    environment: dict[str, Any]  # harness.environment.capture()

    def as_document(self) -> dict[str, Any]:
        """The report as JSON: the sections by title, and the environment they were found in."""
        sections = {section.title: [check._asdict() for check in section.checks] for section in self.sections}
        return {"sections": sections, "environment": self.environment}


def usable(name: str, detail: str = "") -> Check:
    """Something that works."""
    return Check(name, True, detail)


def unusable(name: str, why: str, mend: str) -> Check:
    """Something that does not work."""
    return Check(name, False, why, mend)
