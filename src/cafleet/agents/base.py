"""What cafleet must know of one coding-agent product; each product is one data-like module.

A module (or a `config.toml` entry) gives an object that satisfies `Agent`. Nothing outside this
folder names a product or one of its screen texts.
"""

import os
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

LONGEST_LINE = 700
"""UTF-16 units of a typed line; a longer one is wrapped as an attachment by some products (SPEC 4.3)."""


class AgentState(StrEnum):
    """What an agent's screen says (SPEC 4.3); the multiplexer's own states are not in here."""

    AT_REST = "at rest"
    WORKING = "working"
    AWAITING_USER = "awaiting the user"
    UNKNOWN = "not recognised"


class Screen(NamedTuple):
    """A pane's screen as an agent module reads it; made by `screen.parse`."""

    rows: tuple[str, ...]
    """Plain text, right-stripped, top to bottom."""
    ink: tuple[str, ...]
    """The same rows, character by character, with everything that is drawn faint (a placeholder, a
    hint) replaced by blanks; right-stripped."""
    title: str
    """The pane title: a hint only, the program controls it."""
    cursor_y: int
    width: int = 0
    """Columns of the pane; 0: not known."""


class Extent(StrEnum):
    """How much of the composer's text the screen shows."""

    WHOLE = "whole"
    TAIL = "tail"
    """The composer has scrolled: only the end of its text is shown."""
    FOLDED = "folded"
    """The product shows a mark in place of pasted text."""


class Reading(NamedTuple):
    """One classified screen."""

    state: AgentState
    composer: str | None
    """What stands in the composer (placeholders excluded, its rows joined with a newline);
    empty: nothing; None: no composer can be read on this screen."""
    extent: Extent = Extent.WHOLE
    below: tuple[str, ...] = ()
    """The next rows, of which any number can belong to the composer's text: where it ends cannot be seen."""

    def texts(self) -> list[str]:
        """Every text that the composer can hold, the shortest first; empty where there is none."""
        texts = [] if self.composer is None else [self.composer]
        for row in self.below:
            texts.append(f"{texts[-1]}\n{row}")
        return texts


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


class Preset(NamedTuple):
    """One file that `setup` puts where the product reads rules or agents from."""

    source: str
    """File name under `assets/presets/`."""
    target: str
    """Absolute path."""


class AssetHome(NamedTuple):
    """Where one product keeps skills and presets."""

    path: str
    """Identity of this place: what `asset_installs.path` records (absolute)."""
    origin: str
    """Where the path came from: an environment variable's name, `config.toml`, or `default`."""
    skills_directory: str
    preset: Preset | None


class Agent(Protocol):
    """One coding-agent product."""

    name: str
    binary: str
    """Program name, looked up on PATH before anything is written."""
    settle_seconds: float
    """Pause after a paste, and after Enter, before the screen is read again."""
    start_seconds: float
    """How long the program may take from start to its first recognisable screen."""
    line_limit: int
    """Longest line, in UTF-16 units, that this product's composer shows as the text itself. A
    notification is cut to it; a longer line can be typed, but a left-over of it is not known again."""
    scrub: Sequence[str]
    """Environment names (or `PREFIX_*`) that mark a process as running inside this product."""
    has_assets: bool
    """The product has a place for skills."""

    def check(self, model: str | None, effort: str | None) -> None:
        """Raises UsageError where model or effort cannot work for this product."""
        ...

    def start_argv(self, request: StartRequest, binary_path: str) -> list[str]:
        """The command line. Raises CafleetError where something that it needs is missing."""
        ...

    def read(self, screen: Screen) -> Reading:
        """Classify the bottom of the screen. Never raises."""
        ...

    def asset_home(self) -> AssetHome | None:
        """Where `setup` installs for this product; None where `has_assets` is false.

        Raises CafleetError: a variable that must be absolute is not (SPEC 8)."""
        ...


def utf16_length(text: str) -> int:
    """Length in the unit in which the products count."""
    return len(text) + sum(character > "\uffff" for character in text)


def option(flag: str, value: str) -> list[str]:
    """`flag` with its value; a value that looks like a flag itself is attached to it."""
    return [f"{flag}={value}"] if value.startswith("-") else [flag, value]


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
