"""The `cafleet` program: finds the command, checks the guards, runs it, and turns whatever went wrong into
one line and an exit code (SPEC 7.1). A command's module is imported only when that command is called.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Sequence

from cafleet import __version__, config
from cafleet.cli import commands
from cafleet.cli.arguments import Command, Values
from cafleet.cli.output import Output, OutputClosed, OutputFailed
from cafleet.cli.parsing import nearest, parse
from cafleet.clock import utc_now
from cafleet.errors import CafleetError, UsageError
from cafleet.light_typing import TYPE_CHECKING
from cafleet.runtime import Runtime

if TYPE_CHECKING:  # Types only; most commands touch no pane.
    from typing import NoReturn

    from cafleet.multiplexer.base import Multiplexer

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130

EXIT_CODES: tuple[tuple[type[BaseException], int], ...] = ((UsageError, USAGE), (CafleetError, FAILED))
"""The first class that fits decides."""


def run() -> NoReturn:
    """The console script: the process ends here.

    It ends without the interpreter's own clean-up, which costs as much as a tenth of a whole command.
    Nothing depends on that: output is flushed and the database is closed by then.
    """
    # A start makes much that stays and next to no garbage: collecting it costs a millisecond for nothing.
    gc.disable()
    _own_standard_streams()
    os._exit(main(sys.argv[1:]))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (this process's own by default) and return its exit code. Raises nothing."""
    out = Output(sys.stdout, sys.stderr)
    try:
        code = _invoke([_as_utf8(word) for word in (sys.argv[1:] if argv is None else argv)], out)
        out.flush()
    except OutputClosed:
        return DONE
    except OutputFailed as error:
        out.error(str(error))
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except CafleetError as error:
        _show_traceback(out)
        out.error(str(error), *_notes(error))
        return next(code for kind, code in EXIT_CODES if isinstance(error, kind))
    except Exception as error:  # The one net: a mistake of ours, too, is one line and a code.
        _show_traceback(out)
        hint = "" if config.debug_wanted() else " (CAFLEET_DEBUG=1 shows where)"
        out.error(f"internal error: {type(error).__name__}: {error}{hint}")
        return FAILED
    return code


# -- from words to a command -------------------------------------------------------------------


def _invoke(words: list[str], out: Output) -> int:
    end = words.index("--") if "--" in words else len(words)
    head, tail = words[:end], words[end:]
    wants_help = "--help" in head or "-h" in head
    wants_json = "--json" in head
    head = [word for word in head if word not in ("--help", "-h", "--json")]
    if not head or head[0].startswith("-"):
        return _without_command(head, wants_help, out)
    name, rest = _command_name(head)
    if wants_help:
        return _show_help(name, out)
    if name not in commands.COMMANDS:
        raise UsageError(f"'cafleet {name}' needs a command; 'cafleet {name} --help' lists them")
    command = commands.load(name)
    try:
        values = parse(name, command, rest + tail)
        if wants_json and not command.json:
            raise UsageError(f"'cafleet {name}' has no --json output")
    except UsageError as error:
        from cafleet.cli.help_pages import usage

        error.add_note(f"Usage: {usage(name, command)}")
        raise
    if wants_json:
        from cafleet.cli.json_line import encode

        out.encode = encode
    return _run(command, commands.COMMANDS[name][1], values, out)


def _without_command(head: list[str], wants_help: bool, out: Output) -> int:
    if wants_help:
        return _show_help("", out)
    if head[:1] == ["--version"]:
        out.write(f"cafleet {__version__}")
        return DONE
    if head:
        raise UsageError(f"unknown option '{head[0]}'; options follow the command's name")
    raise UsageError("a command is needed; 'cafleet --help' lists them")


def _show_help(name: str, out: Output) -> int:
    """The page of a command, of a group, or (an empty name) of the program."""
    from cafleet.cli import help_pages

    if not name:
        out.write(help_pages.program_page())
    elif name in commands.COMMANDS:
        summary = commands.COMMANDS[name][2]
        out.write(help_pages.command_page(name, summary, commands.load(name)))
    else:
        out.write(help_pages.group_page(name))
    return DONE


def _command_name(head: list[str]) -> tuple[str, list[str]]:
    """The full name of the command, or a group's name where its second word is missing; and the rest."""
    noun, groups = head[0], commands.groups()
    if noun in commands.COMMANDS:
        return noun, head[1:]
    if noun not in groups:
        raise UsageError(_unknown_noun(noun, groups))
    if len(head) == 1:
        return noun, []
    name = f"{noun} {head[1]}"
    if name not in commands.COMMANDS:
        near = nearest(head[1], groups[noun])
        hint = f"did you mean '{noun} {near}'?" if near else f"known: {', '.join(groups[noun])}"
        raise UsageError(f"unknown command '{name}'; {hint}")
    return name, head[2:]


def _unknown_noun(word: str, groups: dict[str, list[str]]) -> str:
    near = nearest(word, [*groups, *(name for name in commands.COMMANDS if " " not in name)])
    meant = [near] if near else [f"{noun} {word}" for noun, verbs in groups.items() if word in verbs]
    hint = f"did you mean {' or '.join(map(repr, meant))}?" if meant else "'cafleet --help' lists them"
    return f"unknown command '{word}'; {hint}"


# -- running it --------------------------------------------------------------------------------


def _run(command: Command, guard: str, values: Values, out: Output) -> int:
    from cafleet.db.database import Database

    settings = config.load(forgiving=command.forgiving)
    out.set_color(settings.environ)

    def multiplexer_for(backend: str) -> Multiplexer:
        from cafleet.multiplexer.select import multiplexer

        return multiplexer(backend, settings)

    database = Database(settings.database_path)
    try:
        runtime = Runtime(settings, database, multiplexer_for, utc_now)
        if guard != commands.NO_GUARD:
            database.guard()
        if guard == commands.ASSETS:
            from cafleet.assets.guard import require_current_assets

            require_current_assets(runtime)
        if not gc.isenabled():
            gc.freeze()
            gc.enable()
        return command.run(runtime, values, out)
    finally:
        database.close()


def _own_standard_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _as_utf8(word: str) -> str:
    """An argument's bytes read as UTF-8 whatever the locale; what is not UTF-8 stays as surrogates, which
    every check of a text refuses."""
    if sys.getfilesystemencoding() == "utf-8":
        return word
    return os.fsencode(word).decode("utf-8", "surrogateescape")


def _notes(error: BaseException) -> list[str]:
    """The lines that belong to an error: a usage line, or what could not be cleaned up."""
    notes: list[str] = [*getattr(error, "cleanup_failures", ()), *getattr(error, "__notes__", ())]
    return [line for note in notes for line in note.split("\n")]


def _show_traceback(out: Output) -> None:
    if config.debug_wanted():
        from traceback import format_exc

        out.debug(format_exc().rstrip())
