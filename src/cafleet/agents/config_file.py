"""The `[agents.<name>]` tables of `config.toml` (SPEC 6; every key is described in `docs/agents.md`)."""

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from cafleet.agents import command_template
from cafleet.agents.base import LONGEST_LINE, Agent
from cafleet.agents.command_template import Command
from cafleet.agents.configured import ConfiguredAgent, Patterns, Settings
from cafleet.agents.registry import BUILT_IN
from cafleet.config import Config
from cafleet.errors import ConfigFileError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


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
            raise self._error(
                None, "is not a name (a letter or digit, then letters, digits, '.', '_' and '-')"
            )
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
        if not value[0].strip() or command_template.has_braces(value[0]):
            raise self._error(key, "must start with a program's name without placeholders")
        return items

    def _check_argument(self, key: str, part: object) -> None:
        if not isinstance(part, str) or "\0" in part:
            raise self._error(key, "must hold strings, or arrays of strings")
        mistake = command_template.mistake(part)
        if mistake is not None:
            raise self._error(key, mistake)

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
