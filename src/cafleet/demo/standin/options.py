"""The stand-in's command line, and the faults that can be asked for."""

import argparse
from collections.abc import Mapping, Sequence
from typing import NamedTuple

PROGRAM = "python -m cafleet.demo.standin"
DESCRIPTION = """\
A stand-in for a coding agent: a composer, a screen that tells rest, work and questions apart, and faults
that real agents were seen to have.
"""

FAULTS = {
    "burst": "characters that come faster than 8 ms apart turn an Enter within 120 ms into a newline",
    "eat_enter": "ignore the first N Enters",
    "dialog": "start with a permission question, which Enter, 1 or y approves",
    "busy": "be at work for ever; what is submitted is queued",
    "draft": "start with TEXT in the composer",
    "ghost": "a dim placeholder in the empty composer",
    "boot": "drop all input, and draw nothing, for the first SECONDS",
    "slash": "text that starts with / ! # or ends in @word opens a list that takes the Enter",
    "slow": "draw everything SECONDS late",
    "rows": "the composer shows only its last N rows",
    "drop_paste": "lose the first N pastes",
    "paste_dialog": "a question opens at the moment of the first paste, which is ignored",
    "paste_person": "a person types TEXT at the moment of the first paste",
    "paste_exit": "end at the moment of the first paste",
    "enter_dialog": "a question opens as soon as a turn has been submitted",
}
"""Name → what goes wrong. `--fault NAME` or `--fault NAME=VALUE`."""


class Options(NamedTuple):
    """How the stand-in was started."""

    member_id: int | None
    log: str | None
    """A file that gets a JSON line for each thing that happened."""
    faults: Mapping[str, str]
    prompt: str
    environ: Mapping[str, str]


def _fault(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if name not in FAULTS:
        raise argparse.ArgumentTypeError(f"unknown fault '{name}'; known: {', '.join(FAULTS)}")
    return name, value


def parse(arguments: Sequence[str], environ: Mapping[str, str]) -> Options:
    """The command line. Ends the process (exit status 2) where it is wrong."""
    parser = argparse.ArgumentParser(prog=PROGRAM, description=DESCRIPTION)
    parser.add_argument("--member-id", type=int, help="who it is, for its tool calls")
    parser.add_argument("--log", help="a file for one JSON line per event")
    parser.add_argument("--fault", type=_fault, action="append", default=[], help="; ".join(FAULTS))
    parser.add_argument("prompt", nargs="?", default="")
    values = parser.parse_args(arguments)
    return Options(values.member_id, values.log, dict(values.fault), values.prompt, environ)
