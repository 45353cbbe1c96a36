"""The command of a configured agent: arguments with placeholders, and how they are filled in."""

import re
from collections.abc import Mapping

PLACEHOLDERS = ("prompt", "model", "effort", "name", "member_id", "fleet_id")
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")

Command = tuple[str | tuple[str, ...], ...]
"""Arguments, and groups of arguments that are given or left out together."""


def has_braces(text: str) -> bool:
    """Whether anything in the argument is to be filled in."""
    return bool(_BRACES.search(text))


def mistake(text: str) -> str | None:
    """One clause on what cannot be filled in; None for a sound argument."""
    for match in _BRACES.finditer(text):
        if match[0] in "{}":
            return f"has a stray '{match[0]}' in '{text}'"
        if match[1] is not None and match[1] not in PLACEHOLDERS:
            known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            return f"unknown placeholder '{match[0]}'; known: {known}"
    return None


def holds(command: Command, placeholder: str) -> bool:
    """Whether the command says where the value of `placeholder` goes."""
    return any(placeholder in _names_in(part) for item in command for part in _parts(item))


def fill(items: Command, values: Mapping[str, str | None]) -> list[str]:
    """The command's arguments. What names a value that was not given is left out: a whole group, or
    an argument together with the flag right before it."""
    argv: list[str] = []
    for item in items:
        parts = _parts(item)
        if all(values[name] is not None for part in parts for name in _names_in(part)):
            argv += [_fill(part, values) for part in parts]
        elif isinstance(item, str) and _BRACES.fullmatch(item) and argv and argv[-1].startswith("-"):
            argv.pop()
    return argv


def _parts(item: str | tuple[str, ...]) -> tuple[str, ...]:
    return (item,) if isinstance(item, str) else item


def _names_in(text: str) -> list[str]:
    return [match[1] for match in _BRACES.finditer(text) if match[1] is not None]


def _fill(text: str, values: Mapping[str, str | None]) -> str:
    def replace(match: re.Match[str]) -> str:
        return (values[match[1]] or "") if match[1] is not None else match[0][0]

    return _BRACES.sub(replace, text)
