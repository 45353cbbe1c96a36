"""A shell's completion script, made by shtab from the table of commands.

shtab reads argparse's parsers, so one is built here, for this moment only: nothing ever parses with it.
"""

import argparse
import re
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
_BASH_WORDS = r"""
# Bash breaks words at "=", leaves an opened quote in them, and tells of the word at the cursor the whole.
_cafleet() {
  local before="${COMP_LINE:0:COMP_POINT}" word="${COMP_WORDS[COMP_CWORD]}" one
  while [[ -n $word && $before != *"$word" ]]; do word="${word%?}"; done
  local -a words=()
  for one in "${COMP_WORDS[@]:0:COMP_CWORD}"; do
    [[ $one == "=" && ${#words[@]} -gt 0 && ${words[${#words[@]}-1]} == --* ]] || words+=("$one")
  done
  [[ $word == "=" ]] && word=""
  local -a COMP_WORDS=("${words[@]}" "${word#[\"\']}")
  local COMP_CWORD="${#words[@]}"
  _shtab_cafleet
}
complete -o bashdefault -F _cafleet cafleet
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


_FISH_VALUE = "(string replace -r -- '^--[^=]+=' '' (commandline -ct))"
_FILE = {**shtab.FILE, "fish": f"(__fish_complete_path {_FISH_VALUE})"}
_DIRECTORY = {**shtab.DIRECTORY, "fish": f"(__fish_complete_directories {_FISH_VALUE})"}
_ZSH_OPTION = re.compile(r"""^(\s+(?:"\*")?)(?:\{(--[^}]+)\}"|"(\*?)(--[\w-]+))(\[.*\]:)""", re.MULTILINE)
"""An option that takes a value, in what shtab writes for zsh."""

_BY_METAVAR: dict[str, dict[str, Any]] = {
    "FLEET_ID": _listed("fleets"),
    "MEMBER_ID": _listed("members"),
    "A": _listed("agents"),
    "PATH": _FILE,
    "FILE": _FILE,
    "SOURCE": _FILE,
    "DIR": _DIRECTORY,
}
_CHOICES = {"SHELL": ("bash", "zsh", "fish"), "ROLE": ("monitor",)}


def script(shell: str) -> str:
    """The script for `shell`."""
    text: str = shtab.complete(_parser(), shell)
    if shell == "bash":
        return text + _BASH_WORDS
    return _ZSH_OPTION.sub(_with_equals, text) if shell == "zsh" else text


def _with_equals(found: re.Match[str]) -> str:
    """zsh takes a value behind "=" only from an option that says so."""
    before, several, star, one, after = found.groups()
    if several:
        return f'{before}{{{",".join(f"{name}=" for name in several.split(","))}}}"{after}'
    return f'{before}"{star}{one}={after}'


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
