"""From the words of a command line to the values of its arguments (SPEC 7.1)."""

from collections.abc import Sequence

from cafleet.cli.arguments import HELP, JSON, Argument, Command, Values, string
from cafleet.errors import UsageError


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
    """The known word that is most likely meant: it starts with `word`, or differs by an edit (in long
    words: two)."""
    if len(word) < 2:
        return None
    best = min(known, key=lambda other: (not other.startswith(word), _distance(word, other)), default=None)
    if best is None or not (best.startswith(word) or _distance(word, best) <= min(2, (len(word) + 1) // 3)):
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
