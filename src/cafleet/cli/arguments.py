"""The command line as data: one description per command feeds the parser, `--help`, the reference page
and the shell completion.

The standard parser is not used, for two measured reasons. Importing it and building one group's
parser costs half of what a bare interpreter costs to start, on a command that may take three and a
half of those (SPEC 13). And what it does with `--`, with positionals between flags and with
abbreviated flags differs between the Python releases that we run on, while a message text must
arrive exactly (SPEC 7.1).
"""

from collections.abc import Callable, Mapping, Sequence

from cafleet.cli.output import Output
from cafleet.errors import UsageError
from cafleet.runtime import Runtime

MAX_INTEGER = 2**63 - 1
"""The largest integer that the database holds."""


# -- what a command describes ------------------------------------------------------------------


class Argument:
    """One positional, option or flag of a command."""

    __slots__ = ("convert", "dest", "flags", "help", "many", "metavar", "required")

    def __init__(
        self,
        dest: str,
        flags: tuple[str, ...],
        metavar: str,
        help: str,
        convert: "Callable[[str], object]",
        *,
        required: bool,
        many: bool,
    ) -> None:
        self.dest = dest
        self.flags = flags
        """The spellings, preferred one first; empty for a positional."""
        self.metavar = metavar
        """How help shows the value; empty for a flag, which takes none."""
        self.help = help
        self.convert = convert
        """Text to value. Raises ValueError with the clause that follows the argument's name."""
        self.required = required
        self.many = many
        """May be given several times; its value is a list."""

    @property
    def label(self) -> str:
        """How an error names it."""
        return self.flags[0] if self.flags else self.metavar


def integer(text: str) -> int:
    """A literal whole number: ASCII digits, at most what the database holds."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"must be a whole number (got '{text}')")
    digits = text.lstrip("0") or "0"
    if len(digits) > 19 or int(digits) > MAX_INTEGER:
        raise ValueError(f"must be at most {MAX_INTEGER} (got '{text}')")
    return int(digits)


def count(text: str) -> int:
    """A literal whole number of at least one."""
    value = integer(text)
    if value == 0:
        raise ValueError("must be at least 1 (got '0')")
    return value


def seconds(text: str) -> float:
    """A time span in seconds: `2` or `0.5`, at most nine digits before the point."""
    whole, point, fraction = text.partition(".")
    digits = whole + (fraction if point else "0")
    if not (whole and digits.isascii() and digits.isdigit() and len(whole) <= 9) or text.endswith("."):
        raise ValueError(f"must be a number of seconds (got '{text}')")
    return float(text)


def string(text: str) -> str:
    """Any text, as it was given."""
    return text


def positional(
    dest: str,
    metavar: str,
    help: str,
    convert: Callable[[str], object] = string,
    *,
    required: bool = True,
    many: bool = False,
) -> Argument:
    """An argument that is known by its place. Only the last one of a command may be optional or many."""
    return Argument(dest, (), metavar, help, convert, required=required, many=many)


def option(
    flags: str,
    metavar: str,
    help: str,
    convert: Callable[[str], object] = string,
    *,
    dest: str = "",
    required: bool = False,
    many: bool = False,
) -> Argument:
    """An argument with a value. `flags` holds its spellings separated by blanks, preferred one first."""
    spellings = tuple(flags.split())
    return Argument(
        dest or _dest(spellings[0]), spellings, metavar, help, convert, required=required, many=many
    )


def flag(name: str, help: str, *, dest: str = "") -> Argument:
    """An argument without a value: given or not."""
    return Argument(dest or _dest(name), (name,), "", help, string, required=False, many=False)


def _dest(spelling: str) -> str:
    return spelling.lstrip("-").replace("-", "_")


class Values:
    """The values of one parsed command line, by `dest`, each with its type."""

    __slots__ = ("_found",)

    def __init__(self, found: Mapping[str, object]) -> None:
        self._found = found

    def given(self, dest: str) -> bool:
        """The argument was on the command line."""
        return dest in self._found

    def flag(self, dest: str) -> bool:
        return dest in self._found

    def integer(self, dest: str) -> int:
        value = self._found[dest]
        assert isinstance(value, int)
        return value

    def optional_integer(self, dest: str) -> int | None:
        return self.integer(dest) if dest in self._found else None

    def integers(self, dest: str) -> list[int]:
        """Every value of an argument that may be repeated; empty when it was not given."""
        value = self._found.get(dest, [])
        assert isinstance(value, list)
        return value

    def optional_seconds(self, dest: str) -> float | None:
        value = self._found.get(dest)
        assert value is None or isinstance(value, float)
        return value

    def text(self, dest: str) -> str:
        value = self._found[dest]
        assert isinstance(value, str)
        return value

    def optional_text(self, dest: str) -> str | None:
        return self.text(dest) if dest in self._found else None

    def texts(self, dest: str) -> list[str]:
        """Every value of an argument that may be repeated; empty when it was not given."""
        value = self._found.get(dest, [])
        assert isinstance(value, list)
        return value

    def pairs(self, dest: str) -> list[tuple[int, int]]:
        """The same for an argument whose values are two numbers each."""
        value = self._found.get(dest, [])
        assert isinstance(value, list)
        return value


Run = Callable[[Runtime, Values, Output], int]
"""A command's function: does it, writes to the output, returns the exit code."""


class Command:
    """One command: what it takes, what it shows, what it runs."""

    __slots__ = ("arguments", "description", "examples", "forgiving", "json", "run")

    def __init__(
        self,
        run: Run,
        *arguments: Argument,
        examples: tuple[str, ...],
        description: str = "",
        json: bool = True,
        forgiving: bool = False,
    ) -> None:
        """`examples`: command lines that a reader can type, without pipes or redirections, since an
        agent's permission rules refuse those. `json`: it returns data and so takes `--json`.
        `forgiving`: it runs although a setting cannot be read."""
        self.run = run
        self.arguments = arguments
        self.examples = examples
        self.description = description
        self.json = json
        self.forgiving = forgiving


JSON = flag("--json", "print one compact line of JSON instead of text")
HELP = flag("--help", "show this help")
"""Accepted by every command, before and after its name."""


# -- parsing -----------------------------------------------------------------------------------


def parse(name: str, command: Command, words: Sequence[str]) -> Values:
    """The values that `words` (what follows the command's name) give.

    Raises:
        UsageError: anything that the command's description does not allow.
    """
    by_flag = {spelling: argument for argument in command.arguments for spelling in argument.flags}
    places = [argument for argument in command.arguments if not argument.flags]
    found: dict[str, object] = {}
    rest = list(reversed(words))
    only_positionals = False
    while rest:
        word = rest.pop()
        if only_positionals or not _like_an_option(word):
            if not places:
                raise UsageError(f"unexpected argument '{word}'{_quoting_hint(command)}")
            argument = places[0] if places[0].many else places.pop(0)
            _store(found, argument, argument.metavar, word)
        elif word == "--":
            only_positionals = True
        else:
            spelling, equals, value = word.partition("=")
            if equals and spelling in (JSON.label, HELP.label):
                raise UsageError(f"{spelling} takes no value")
            if spelling not in by_flag:
                raise UsageError(_unknown_option(name, spelling, list(by_flag)))
            argument = by_flag[spelling]
            if argument.metavar and not equals:
                value = _next_value(spelling, rest)
            elif equals and not argument.metavar:
                raise UsageError(f"{spelling} takes no value")
            _store(found, argument, spelling, value)
    missing = [a.label for a in command.arguments if a.required and a.dest not in found]
    if missing:
        raise UsageError(f"missing {', '.join(missing)}")
    return Values(found)


def _like_an_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _quoting_hint(command: Command) -> str:
    takes_text = any(not a.flags and a.convert is string for a in command.arguments)
    return "; a text of several words must be quoted" if takes_text else ""


def _next_value(spelling: str, rest: list[str]) -> str:
    if not rest or _like_an_option(rest[-1]):
        raise UsageError(
            f"{spelling} needs a value; one that starts with a dash is given as {spelling}=VALUE"
        )
    return rest.pop()


def _store(found: dict[str, object], argument: Argument, label: str, text: str) -> None:
    try:
        value = argument.convert(text)
    except ValueError as error:
        raise UsageError(f"{label} {error}") from None
    if argument.many:
        values = found.setdefault(argument.dest, [])
        assert isinstance(values, list)
        values.append(value)
    elif argument.dest in found and argument.metavar:
        raise UsageError(f"{label} is given twice")
    else:
        found[argument.dest] = value


def _unknown_option(name: str, spelling: str, known: list[str]) -> str:
    near = nearest(spelling, [*known, "--json", "--help"])
    hint = f"; did you mean {near}?" if near else ""
    return (
        f"unknown option '{spelling}' of 'cafleet {name}'{hint} (text that starts with a dash goes after --)"
    )


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The known word that is most likely meant: it starts with `word` or differs by at most two edits."""
    if len(word) < 2:
        return None
    best = min(known, key=lambda other: (not other.startswith(word), _distance(word, other)), default=None)
    if best is None or not (best.startswith(word) or _distance(word, best) <= min(2, len(word) // 2)):
        return None
    return best


def _distance(left: str, right: str) -> int:
    """Edits (insert, drop, replace one character) between two words."""
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        diagonal, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (a != b))
    return row[-1]


# -- help --------------------------------------------------------------------------------------

WIDTH = 100
"""Columns of a help page: fixed, so that it is the same wherever it is read."""


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


def help_page(name: str, summary: str, command: Command) -> str:
    """The whole `--help` text of one command."""
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
