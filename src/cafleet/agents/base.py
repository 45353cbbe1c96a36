"""What cafleet must know of one coding-agent product; each product is one data-like module.

A module (or a `config.toml` entry) gives an object that satisfies `Agent`. Nothing outside this
folder names a product or one of its screen texts.
"""

import os
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol


class AgentState(StrEnum):
    """What an agent's screen says (SPEC 4.3); the multiplexer's own states are not in here."""

    AT_REST = "at rest"
    WORKING = "working"
    AWAITING_USER = "awaiting the user"
    UNKNOWN = "not recognised"


class Screen(NamedTuple):
    """A pane's screen as an agent module reads it."""

    rows: tuple[str, ...]
    """Plain text, right-stripped, top to bottom."""
    ink: tuple[str, ...]
    """The same rows with everything that is drawn dim (a placeholder) replaced by blanks."""
    title: str
    """The pane title: a hint only, the program controls it."""
    cursor_y: int


class Reading(NamedTuple):
    """One classified screen."""

    state: AgentState
    composer: str | None
    """What stands in the composer (placeholders excluded, its rows joined with a newline);
    empty: nothing; None: no composer can be read on this screen."""


class StartRequest(NamedTuple):
    """How a member's agent is to be started."""

    prompt: str
    name: str
    member_id: int
    fleet_id: int
    monitor: bool
    """A monitor may also scan and ping."""
    model: str | None
    effort: str | None


class Agent(Protocol):
    """One coding-agent product."""

    name: str
    binary: str
    """Program name, looked up on PATH before anything is written."""
    settle_seconds: float
    """Pause after a paste, and after Enter, before the screen is read again."""
    start_seconds: float
    """How long the program may take from start to its first recognisable screen."""
    scrub: Sequence[str]
    """Environment names (or `PREFIX_*`) that mark a process as running inside this product."""

    def check(self, model: str | None, effort: str | None) -> None:
        """Raises UsageError where model or effort cannot work for this product."""
        ...

    def start_argv(self, request: StartRequest, binary_path: str) -> list[str]:
        """The command line. Raises CafleetError where something that it needs is missing."""
        ...

    def read(self, screen: Screen) -> Reading:
        """Classify the bottom of the screen. Never raises."""
        ...


def find_binary(name: str, path: str) -> str | None:
    """Absolute path of an executable file `name` on `path` (a PATH value), or None."""
    if os.sep in name:
        return os.path.abspath(name) if _executable(name) else None
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder or os.curdir, name)
        if _executable(candidate):
            return os.path.abspath(candidate)
    return None


def _executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
