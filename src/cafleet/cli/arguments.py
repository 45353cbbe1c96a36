"""The command line as data: one description per command feeds the parser (`parsing.py`), `--help`
(`help_pages.py`), the reference page and the shell completion.

The standard parser is not used, for two measured reasons. Importing it and building one group's
parser costs half of what a bare interpreter costs to start, on a command that may take three and a
half of those (SPEC 13). And what it does with `--`, with positionals between flags and with
abbreviated flags differs between the Python releases that we run on, while a message text must
arrive exactly (SPEC 7.1).
"""

from collections.abc import Callable, Mapping

from cafleet.cli.output import Output
from cafleet.runtime import Runtime

MAX_INTEGER = 2**63 - 1
"""The largest integer that the database holds."""


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
        """Whether the flag was given."""
        return dest in self._found

    def integer(self, dest: str) -> int:
        """The number of a required argument."""
        value = self._found[dest]
        assert isinstance(value, int)
        return value

    def optional_integer(self, dest: str) -> int | None:
        """The number; None where it was not given."""
        return self.integer(dest) if dest in self._found else None

    def integers(self, dest: str) -> list[int]:
        """Every value of an argument that may be repeated; empty when it was not given."""
        value = self._found.get(dest, [])
        assert isinstance(value, list)
        return value

    def optional_seconds(self, dest: str) -> float | None:
        """The time span in seconds; None where it was not given."""
        value = self._found.get(dest)
        assert value is None or isinstance(value, float)
        return value

    def text(self, dest: str) -> str:
        """The text of a required argument."""
        value = self._found[dest]
        assert isinstance(value, str)
        return value

    def optional_text(self, dest: str) -> str | None:
        """The text; None where it was not given."""
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
