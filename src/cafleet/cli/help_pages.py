"""Help pages, from the same descriptions that the parser uses."""

from collections.abc import Sequence

from cafleet.cli import commands
from cafleet.cli.arguments import HELP, JSON, Command

WIDTH = 100
"""Columns of a help page: fixed, so that it is the same wherever it is read."""


def program_page() -> str:
    """What `cafleet --help` shows."""
    rows = [(name, summary) for name, (_, _, summary) in commands.COMMANDS.items()]
    return "\n".join(
        [
            "Usage: cafleet COMMAND [ARGUMENTS] [--json] [--help]",
            "",
            "A local message broker and member registry for teams of coding agents in terminal panes.",
            "",
            "Commands:",
            *two_columns(rows),
            "",
            "Options, accepted before and after the command:",
            *two_columns(
                [
                    ("--json", "print one compact line of JSON instead of text"),
                    ("--help", "show this help, or that of the command"),
                    ("--version", "show the version"),
                ]
            ),
            "",
            "Examples:",
            "  cafleet setup",
            "  cafleet message send --from 1 --to 2 'the build is green'",
            "  cafleet message poll --help",
        ]
    )


def group_page(noun: str) -> str:
    """What `cafleet NOUN --help` shows: the commands of that noun."""
    names = [f"{noun} {verb}" for verb in commands.groups()[noun]]
    rows = [(name, commands.COMMANDS[name][2]) for name in names]
    return "\n".join(
        [
            f"Usage: cafleet {noun} COMMAND [ARGUMENTS] [--json] [--help]",
            "",
            "Commands:",
            *two_columns(rows),
            "",
            "Examples:",
            *(f"  cafleet {name} --help" for name in names),
        ]
    )


def usage(name: str, command: Command) -> str:
    """`cafleet message poll MEMBER_ID [--limit N] [--json]`."""
    parts = [f"cafleet {name}"]
    options = [argument for argument in command.arguments if argument.flags]
    for argument in [*(a for a in command.arguments if not a.flags), *options]:
        shape = argument.flags[0] if argument.flags else ""
        shape = f"{shape} {argument.metavar}".strip()
        if not argument.required:
            shape = f"[{shape}]"
        parts.append(shape + ("…" if argument.many else ""))
    if command.json:
        parts.append("[--json]")
    return " ".join(parts)


def command_page(name: str, summary: str, command: Command) -> str:
    """The whole `--help` text of one command; `summary` is a clause without a full stop."""
    lines = _wrap(f"Usage: {usage(name, command)}", 4)
    lines += ["", *_wrap(summary[0].upper() + summary[1:] + ".", 0)]
    if command.description:
        lines += ["", *_wrap(command.description, 0)]
    places = [a for a in command.arguments if not a.flags]
    options = [a for a in command.arguments if a.flags] + [JSON] * command.json + [HELP]
    for title, arguments in (("Arguments:", places), ("Options:", options)):
        if arguments:
            rows = [(f"{', '.join(a.flags)} {a.metavar}".strip(), a.help) for a in arguments]
            lines += ["", title, *two_columns(rows)]
    lines += ["", "Examples:", *(f"  {example}" for example in command.examples)]
    return "\n".join(lines)


def two_columns(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Indented lines `name  explanation`, the explanations aligned and wrapped."""
    left = max(len(name) for name, _ in rows) + 4
    lines = []
    for name, text in rows:
        wrapped = _wrap(" " * left + text, left)
        lines.append(f"  {name}".ljust(left) + wrapped[0][left:])
        lines += wrapped[1:]
    return lines


def _wrap(text: str, indent: int) -> list[str]:
    """`text` in lines of at most `WIDTH` columns, all but the first indented."""
    lead = text[: len(text) - len(text.lstrip())]
    lines, line = [], lead
    for word in text.split():
        if line.strip() and len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = " " * indent
        line += (" " if line.strip() else "") + word
    return [*lines, line]
