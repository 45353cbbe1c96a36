"""Agents that a user defines in `config.toml` (SPEC 6; every key is described in `docs/agents.md`)."""

import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from cafleet.agents.base import (
    LONGEST_LINE,
    Agent,
    AgentState,
    AssetHome,
    Extent,
    Reading,
    Screen,
    StartRequest,
)
from cafleet.agents.registry import BUILT_IN
from cafleet.agents.screen import columns, last_inked
from cafleet.config import Config
from cafleet.errors import ConfigFileError, UsageError

BOTTOM_ROWS = 20
"""How far up from the last row that is not blank a cue or the composer can be."""
_WRAP_SLACK = 4
"""Columns that a program may leave free at the right edge."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_PLACEHOLDERS = ("prompt", "model", "effort", "name", "member_id", "fleet_id")
_RULE = re.compile(r"[─━═╌╭╮╰╯└┘┴╹▀▄_-]{3,}|[╰└][─━].*")

Command = tuple[str | tuple[str, ...], ...]
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
        return any(placeholder in _names_in(part) for part in _flat(self._settings.command))

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
        return [binary_path, *_filled(self._settings.command[1:], values)]

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


# -- the command line --------------------------------------------------------------------------


def _flat(command: Command) -> list[str]:
    return [part for item in command for part in ((item,) if isinstance(item, str) else item)]


def _names_in(text: str) -> list[str]:
    return [match[1] for match in _BRACES.finditer(text) if match[1] is not None]


def _filled(items: Command, values: Mapping[str, str | None]) -> list[str]:
    """The command's arguments. What names a value that was not given is left out: a whole group, or
    an argument together with the flag right before it."""
    argv: list[str] = []
    for item in items:
        parts = (item,) if isinstance(item, str) else item
        if all(values[name] is not None for part in parts for name in _names_in(part)):
            argv += [_fill(part, values) for part in parts]
        elif isinstance(item, str) and _BRACES.fullmatch(item) and argv and argv[-1].startswith("-"):
            argv.pop()
    return argv


def _fill(text: str, values: Mapping[str, str | None]) -> str:
    def replace(match: re.Match[str]) -> str:
        return (values[match[1]] or "") if match[1] is not None else match[0][0]

    return _BRACES.sub(replace, text)


# -- the file ----------------------------------------------------------------------------------


def make_all(config: Config) -> dict[str, Agent]:
    """Every agent of `config.toml`, by name; none where there is no such file.

    Raises:
        ConfigFileError: the file cannot be read, or has a mistake.
    """
    path = config.config_path
    try:
        with open(path, "rb") as file:
            raw = file.read()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigFileError(path, error.strerror or "cannot be read") from None
    try:
        text = raw.decode("utf-8")
        document = tomllib.loads(text)
    except UnicodeDecodeError:
        raise ConfigFileError(path, "is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(path, str(error), text) from None
    except RecursionError:
        raise ConfigFileError(path, "is nested too deeply") from None
    return _Reader(path, text, config.home).agents(document)


def _syntax_error(path: str, message: str, text: str) -> ConfigFileError:
    found = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", message)
    if found is None:
        return ConfigFileError(path, message)
    last = len(text.rstrip().splitlines()) or 1
    return ConfigFileError(path, found[1], line=int(found[2] or last))


class _Reader:
    """Checks the parsed file, and knows the line of a key for its errors."""

    def __init__(self, path: str, text: str, home: str) -> None:
        self._path, self._lines, self._home = path, text.splitlines(), home
        self._name = ""

    def agents(self, document: Mapping[str, Any]) -> dict[str, Agent]:
        for key in document:
            if key != "agents":
                raise ConfigFileError(self._path, "unknown key", key=key, line=self._line_of(None, key))
        tables = document.get("agents", {})
        if not isinstance(tables, dict):
            raise ConfigFileError(
                self._path, "must be a table", key="agents", line=self._line_of(None, "agents")
            )
        return {name: ConfiguredAgent(name, self._settings(name, table)) for name, table in tables.items()}

    def _settings(self, name: str, table: object) -> Settings:
        self._name = name
        if not _NAME.fullmatch(name):
            raise self._error(None, "is not a name (letters, digits, '.', '_' and '-')")
        if name in BUILT_IN:
            raise self._error(None, "is built in and cannot be defined again")
        if not isinstance(table, dict):
            raise self._error(None, "must be a table")
        for key in table:
            if key not in _CHECKS:
                raise self._error(key, f"unknown key; known: {', '.join(_CHECKS)}")
        if "command" not in table:
            raise self._error(None, "has no 'command'")
        values = {
            key: check(self, key, table[key]) if key in table else default
            for key, (check, default) in _CHECKS.items()
        }
        return Settings(**values)

    def command(self, key: str, value: object) -> Command:
        if not isinstance(value, list) or not value or not isinstance(value[0], str):
            raise self._error(key, "must be an array that starts with the program's name")
        items = tuple(tuple(item) if isinstance(item, list) else item for item in value)
        for item in items:
            for part in (item,) if not isinstance(item, tuple) else item:
                self._check_argument(key, part)
        if not value[0].strip() or _BRACES.search(value[0]):
            raise self._error(key, "must start with a program's name without placeholders")
        return items

    def _check_argument(self, key: str, part: object) -> None:
        if not isinstance(part, str) or "\0" in part:
            raise self._error(key, "must hold strings, or arrays of strings")
        for match in _BRACES.finditer(part):
            if match[0] in "{}":
                raise self._error(key, f"has a stray '{match[0]}' in '{part}'")
            if match[1] is not None and match[1] not in _PLACEHOLDERS:
                known = ", ".join(f"{{{name}}}" for name in _PLACEHOLDERS)
                raise self._error(key, f"unknown placeholder '{match[0]}'; known: {known}")

    def pattern(self, key: str, value: object) -> re.Pattern[str]:
        if not isinstance(value, str):
            raise self._error(key, "must be a regular expression in a string")
        try:
            return re.compile(value)
        except re.error as error:
            raise self._error(key, f"'{value}' is not a regular expression: {error}") from None

    def composer(self, key: str, value: object) -> re.Pattern[str]:
        pattern = self.pattern(key, value)
        if "draft" not in pattern.groupindex:
            raise self._error(key, "must have a group (?P<draft>…)")
        return pattern

    def patterns(self, key: str, value: object) -> Patterns:
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list):
            raise self._error(key, "must be an array of regular expressions")
        compiled = tuple(self.pattern(key, item) for item in values)
        if any(pattern.search("") for pattern in compiled):
            raise self._error(key, "has a regular expression that matches every line")
        return compiled

    def strings(self, key: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise self._error(key, "must be an array of strings")
        return tuple(value)

    def seconds(self, key: str, value: object) -> float:
        return self._number(key, value, 0, 120)

    def line_limit(self, key: str, value: object) -> int:
        if isinstance(value, float):
            raise self._error(key, "must be a whole number")
        return int(self._number(key, value, 80, LONGEST_LINE))

    def _number(self, key: str, value: object, least: float, most: float) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise self._error(key, f"must be a number from {least:g} to {most:g}")
        return float(value)

    def folder(self, key: str, value: object) -> str:
        if isinstance(value, str) and value.startswith("~/"):
            value = os.path.join(self._home, value[2:])
        if not isinstance(value, str) or not os.path.isabs(value) or "\0" in value:
            raise self._error(key, f"must be an absolute path (got '{value}')")
        return os.path.normpath(value)

    def _error(self, key: str | None, detail: str) -> ConfigFileError:
        full = f"agents.{self._name}" + (f".{key}" if key else "")
        return ConfigFileError(self._path, detail, key=full, line=self._line_of(self._name, key))

    def _line_of(self, name: str | None, key: str | None) -> int | None:
        """Line of `key`, or of the table's header where the key is written in some other way."""
        header = re.compile(rf"\s*\[\s*agents\s*\.\s*[\"']?{re.escape(name or '')}[\"']?\s*\]")
        assignment = re.compile(rf"\s*(?:\[\s*)?[\"']?{re.escape(key or '')}[\"']?\s*[=.\]]")
        inside, found = name is None, None
        for number, line in enumerate(self._lines, 1):
            if name is not None and line.lstrip().startswith("["):
                inside = bool(header.match(line))
                found = number if inside else found
            if inside and key is not None and assignment.match(line):
                return number
        return found


_Check = Callable[[_Reader, str, object], Any]
_CHECKS: dict[str, tuple[_Check, Any]] = {
    "command": (_Reader.command, ()),
    "composer": (_Reader.composer, None),
    "composer_end": (_Reader.pattern, None),
    "placeholder": (_Reader.pattern, None),
    "awaiting_user": (_Reader.patterns, ()),
    "working": (_Reader.patterns, ()),
    "settle_seconds": (_Reader.seconds, 0.15),
    "start_seconds": (_Reader.seconds, 10.0),
    "line_limit": (_Reader.line_limit, LONGEST_LINE),
    "scrub": (_Reader.strings, ()),
    "models": (_Reader.strings, None),
    "efforts": (_Reader.strings, None),
    "skills": (_Reader.folder, None),
}
"""Key → how its value is checked, and what holds where it is left out."""
