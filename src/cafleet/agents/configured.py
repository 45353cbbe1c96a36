"""An agent that a user defines (SPEC 6): `config_file.py` reads its settings, here they are put to use."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from cafleet.agents import command_template
from cafleet.agents.base import AgentState, AssetHome, Extent, Reading, Screen, StartRequest
from cafleet.agents.command_template import Command
from cafleet.agents.screen import columns, last_inked
from cafleet.errors import UsageError

BOTTOM_ROWS = 20
"""How far up from the last row that is not blank a cue or the composer can be."""
_WRAP_SLACK = 4
"""Columns that a program may leave free at the right edge."""
_RULE = re.compile(r"[─━═╌╭╮╰╯└┘┴╹▀▄_-]{3,}|[╰└][─━].*")

Patterns = tuple[re.Pattern[str], ...]


class Settings(NamedTuple):
    """One `[agents.<name>]` table, checked."""

    command: Command
    composer: re.Pattern[str] | None
    composer_end: re.Pattern[str] | None
    placeholder: re.Pattern[str] | None
    awaiting_user: Patterns
    working: Patterns
    settle_seconds: float
    start_seconds: float
    line_limit: int
    scrub: tuple[str, ...]
    models: tuple[str, ...] | None
    efforts: tuple[str, ...] | None
    skills: str | None


class ConfiguredAgent:
    """An agent whose facts are data."""

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        self.binary = str(settings.command[0])
        self.settle_seconds = settings.settle_seconds
        self.start_seconds = settings.start_seconds
        self.line_limit = settings.line_limit
        self.scrub: Sequence[str] = settings.scrub
        self.has_assets = settings.skills is not None
        self._settings = settings

    def check(self, model: str | None, effort: str | None) -> None:
        self._check_one("model", model, self._settings.models)
        self._check_one("effort", effort, self._settings.efforts)

    def _check_one(self, what: str, value: str | None, allowed: Sequence[str] | None) -> None:
        if value is None:
            return
        if not self._holds(what):
            raise UsageError(f"{self.name} has no {what} setting: its command holds no {{{what}}}")
        if allowed is not None and value not in allowed:
            raise UsageError(f"{self.name} has no {what} '{value}'; known: {', '.join(allowed)}")

    def _holds(self, placeholder: str) -> bool:
        return command_template.holds(self._settings.command, placeholder)

    def start_argv(self, request: StartRequest, binary_path: str) -> list[str]:
        if not self._holds("prompt"):  # It would start, and never be told what it is for.
            raise UsageError(f"{self.name} cannot be given its prompt: its command holds no {{prompt}}")
        values: dict[str, str | None] = {
            "prompt": request.prompt,
            "model": request.model,
            "effort": request.effort,
            "name": request.name,
            "member_id": str(request.member_id),
            "fleet_id": str(request.fleet_id),
        }
        return [binary_path, *command_template.fill(self._settings.command[1:], values)]

    def read(self, screen: Screen) -> Reading:
        last = last_inked(screen.rows)
        bottom = range(max(0, last + 1 - BOTTOM_ROWS), last + 1)
        block = _composer_block(screen, bottom, self._settings)
        if block is None:
            if _any_row(screen, bottom, self._settings.awaiting_user):
                return Reading(AgentState.AWAITING_USER, None)
            working = _any_row(screen, bottom, self._settings.working)
            return Reading(AgentState.WORKING if working else AgentState.UNKNOWN, None)
        if _any_row(screen, range(block.possible_end, bottom.stop), self._settings.awaiting_user):
            return Reading(AgentState.AWAITING_USER, None)
        others = [at for at in bottom if not block.start <= at < block.possible_end]
        working = _any_row(screen, others, self._settings.working)
        text, below = _draft(screen, block, self._settings)
        state = AgentState.WORKING if working else AgentState.AT_REST
        return Reading(state, text, Extent.WHOLE, below)

    def asset_home(self) -> AssetHome | None:
        folder = self._settings.skills
        return None if folder is None else AssetHome(folder, "config.toml", folder, None)


# -- the screen --------------------------------------------------------------------------------


def _any_row(screen: Screen, rows: Sequence[int], patterns: Patterns) -> bool:
    return any(pattern.search(screen.rows[at]) for at in rows for pattern in patterns)


def _match(pattern: re.Pattern[str], row: str) -> re.Match[str] | None:
    """Rows come without trailing blanks; the one after an empty composer's sign is given back."""
    return pattern.search(row) or pattern.search(row + " ")


class _Block(NamedTuple):
    """The composer's rows: from `start` up to `end` for certain, up to `possible_end` perhaps."""

    start: int
    end: int
    possible_end: int


def _composer_block(screen: Screen, bottom: range, settings: Settings) -> _Block | None:
    """The lowest row that matches, and the rows into which its text is wrapped."""
    if settings.composer is None:
        return None
    found = [at for at in bottom if _match(settings.composer, screen.rows[at])]
    if not found:
        return None
    start = found.pop()
    # A wrapped row of the text can itself look like the composer's first row.
    while found and all(_is_wrapped(screen, at) for at in range(found[-1], start)):
        start = found.pop()
    end = possible_end = start + 1
    if not _first_draft(screen, start, settings.composer):
        return _Block(start, end, end)
    while possible_end < bottom.stop and _may_go_on(screen, possible_end, settings):
        if end == possible_end and (settings.composer_end is not None or _is_full(screen, end - 1)):
            end += 1
        possible_end += 1
    return _Block(start, end, possible_end)


def _may_go_on(screen: Screen, at: int, settings: Settings) -> bool:
    """Whether row `at` can belong to the text of the row above it."""
    row = screen.rows[at]
    if not row.strip() or _RULE.fullmatch(row.strip()):
        return False
    if settings.composer_end is not None:
        return not settings.composer_end.search(row)
    return _is_wrapped(screen, at - 1)


def _is_full(screen: Screen, at: int) -> bool:
    """Whether the row reaches the edge; a wide character and two blanks can stand before it unseen."""
    return bool(screen.width) and columns(screen.rows[at]) >= screen.width - 3


def _is_wrapped(screen: Screen, at: int) -> bool:
    """Whether the next row's first word would not have fitted into row `at`."""
    if not screen.width or _is_full(screen, at):
        return True
    words = screen.rows[at + 1].split()
    return bool(words) and columns(screen.rows[at]) + 1 + columns(words[0]) > screen.width - _WRAP_SLACK


def _first_draft(screen: Screen, start: int, composer: re.Pattern[str]) -> str:
    """The draft in the first row, without what is drawn faint."""
    match = _match(composer, screen.rows[start])
    if match is None:
        return ""
    begin, end = match.span("draft")
    return screen.ink[start][begin:end].strip()


def _draft(screen: Screen, block: _Block, settings: Settings) -> tuple[str, tuple[str, ...]]:
    """The text, and the rows that may belong to it."""
    if settings.composer is None:
        return "", ()
    rows = [screen.ink[at].strip() for at in range(block.start, block.possible_end)]
    rows[0] = _first_draft(screen, block.start, settings.composer)
    sure = block.end - block.start
    text = "\n".join(rows[:sure]).strip()
    if settings.placeholder is not None and settings.placeholder.fullmatch(text):
        return "", ()
    return text, tuple(rows[sure:])
