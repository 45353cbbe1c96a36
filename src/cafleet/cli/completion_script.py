"""A shell's completion script, made by shtab from the table of commands.

shtab reads argparse's parsers, so one is built here, for this moment only: nothing ever parses with it.
"""

import argparse
from typing import Any

import shtab

from cafleet.cli import commands
from cafleet.cli.arguments import HELP, JSON, Argument, Command

_BASH = """
_cafleet_ids() {
  local -a found
  local line
  while IFS= read -r line; do
    [[ $line == "$2"* ]] && found+=("$line")
  done < <(cafleet completion "$1" 2>/dev/null)
  # A name stands beside its id as long as there is a choice; what is inserted is the id alone.
  if [[ ${#found[@]} -eq 1 ]]; then
    printf '%s\\n' "${found[0]%%$'\\t'*}"
  else
    for line in "${found[@]}"; do printf '%s\\n' "${line/$'\\t'/  -- }"; done
  fi
}
"""
_ZSH = """
_cafleet_ids() {
  local -a found
  found=(${(f)"$(cafleet completion $1 2>/dev/null)"})
  (( $#found )) || return 1
  found=("${(@)found//\\\\/\\\\\\\\}")
  found=("${(@)found//:/\\\\:}")
  found=("${(@)found/$'\\t'/:}")
  _describe -V "$1" found
}
"""


def _listed(kind: str) -> dict[str, Any]:
    """A completion that asks this program."""
    return {
        "bash": f"_cafleet_{kind}",
        "zsh": f"_cafleet_{kind}",
        "fish": f"(cafleet completion {kind} 2>/dev/null)",
        "preamble": {
            "bash": f'{_BASH}_cafleet_{kind}() {{ _cafleet_ids {kind} "$1"; }}\n',
            "zsh": f"{_ZSH}_cafleet_{kind}() {{ _cafleet_ids {kind} }}\n",
        },
    }


_BY_METAVAR: dict[str, dict[str, Any]] = {
    "FLEET_ID": _listed("fleets"),
    "MEMBER_ID": _listed("members"),
    "A": _listed("agents"),
    "PATH": shtab.FILE,
    "FILE": shtab.FILE,
    "SOURCE": shtab.FILE,
    "DIR": shtab.DIRECTORY,
}
_CHOICES = {"SHELL": ("bash", "zsh", "fish"), "ROLE": ("monitor",)}


def script(shell: str) -> str:
    """The script for `shell`."""
    text: str = shtab.complete(_parser(), shell)
    return text


def _parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser("cafleet", add_help=False)
    _add_flags(root, [HELP])
    root.add_argument("--version", action="store_true", help="show the version")
    nouns = root.add_subparsers()
    verbs: dict[str, Any] = {}
    for name, (_, _, summary) in commands.COMMANDS.items():
        noun, _, verb = name.partition(" ")
        if verb and noun not in verbs:
            group = nouns.add_parser(noun, help=f"{noun} commands", add_help=False)
            verbs[noun] = group.add_subparsers()
        within = verbs[noun] if verb else nouns
        parser = within.add_parser(verb or noun, help=summary, description=summary, add_help=False)
        _describe(parser, commands.load(name))
    return root


def _describe(parser: argparse.ArgumentParser, command: Command) -> None:
    for argument in command.arguments:
        if argument.flags:
            _add_option(parser, argument)
        else:
            nargs = "+" if argument.many else None if argument.required else "?"
            added = parser.add_argument(
                argument.dest, nargs=nargs, metavar=argument.metavar, help=_plain(argument.help)
            )
            _complete(added, argument)
    _add_flags(parser, [JSON, HELP] if command.json else [HELP])


def _add_option(parser: argparse.ArgumentParser, argument: Argument) -> None:
    if not argument.metavar:
        _add_flags(parser, [argument])
        return
    action = "append" if argument.many else "store"
    added = parser.add_argument(
        *argument.flags, action=action, metavar=argument.metavar, help=_plain(argument.help)
    )
    _complete(added, argument)


def _add_flags(parser: argparse.ArgumentParser, flags: list[Argument]) -> None:
    for flag in flags:
        parser.add_argument(*flag.flags, action="store_true", help=_plain(flag.help))


def _complete(added: argparse.Action, argument: Argument) -> None:
    if argument.metavar in _BY_METAVAR:
        added.complete = _BY_METAVAR[argument.metavar]  # type: ignore[attr-defined]  # shtab's own hook
    elif argument.metavar in _CHOICES:
        added.choices = _CHOICES[argument.metavar]


def _plain(text: str) -> str:
    """Without what argparse would expand."""
    return text.replace("%", "%%")
