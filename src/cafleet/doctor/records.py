"""What a check finds: facts to read, and findings with the command or setting that mends them."""

from enum import StrEnum
from typing import NamedTuple

Fact = str | int | bool | None
Row = dict[str, Fact]
"""One line of facts: name to value, in the order in which they are shown."""


class Level(StrEnum):
    """How much a finding matters."""

    ISSUE = "issue"
    """Something that will not work; the exit code is 1."""
    NOTE = "note"
    """Worth knowing, nothing to mend."""


class Finding(NamedTuple):
    """One thing that was found."""

    level: Level
    text: str
    mend: str
    """What to do about it: a command to type or a setting to change; empty for a mere note."""


class Section(NamedTuple):
    """What one check has to say."""

    name: str
    rows: list[Row]
    findings: list[Finding]


class Report(NamedTuple):
    """Everything."""

    sections: list[Section]

    @property
    def issues(self) -> int:
        """How many findings need mending."""
        return sum(one.level is Level.ISSUE for section in self.sections for one in section.findings)


def issue(text: str, mend: str) -> Finding:
    """Something that will not work."""
    return Finding(Level.ISSUE, text, mend)


def note(text: str, mend: str = "") -> Finding:
    """Something that is worth knowing."""
    return Finding(Level.NOTE, text, mend)
