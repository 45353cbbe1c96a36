"""What a terminal program drew, as text: captured rows with the escape sequences sorted out."""

import re

_ESCAPES = re.compile(
    r"\x1b\[(?P<sgr>[0-9;:]*)m"  # colour, dim, …: the only sequence that may stay
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # any other control sequence
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # strings: hyperlinks, clipboard, titles
    r"|\x1b[ -/]*[0-~]?"
    r"|(?P<drawing>[\x0e\x0f])"  # line-drawing letters on, off
    r"|[\x00-\x08\x0a-\x0d\x10-\x1a\x1c-\x1f\x7f-\x9f]"
)
_LINE_DRAWING = str.maketrans("jklmnqtuvwxa`fg~", "┘┐┌└┼─├┤┴┬│▒◆°±·")


def styled_rows(rows: list[str]) -> list[str]:
    """Rows with SGR sequences only, each readable alone.

    A multiplexer states a style once and lets it run over the line ends: here every row starts with
    the style that is in force.
    """
    style = ""
    cleaned = []
    for row in rows:
        text, style_after = _clean(row, style)
        cleaned.append(style + text)
        style = style_after
    return cleaned


def plain_rows(rows: list[str]) -> list[str]:
    """Rows without any escape sequence or control character, right-stripped."""
    return [_SGR.sub("", _clean(row, "")[0]).rstrip() for row in rows]


def last_rows(rows: list[str], count: int, *, ansi: bool) -> str:
    """The last `count` captured rows as one text, without blank ones at the end; with colours only where
    they are asked for, and none of them runs over its row's end."""
    plain = plain_rows(rows)
    while plain and not plain[-1]:
        plain.pop()
    shown = styled_rows(rows)[: len(plain)] if ansi else plain
    return "\n".join(f"{row}\x1b[0m" if "\x1b" in row else row for row in shown[-count:])


def printable(text: str) -> str:
    """One line of a program's text (a title, a command name) without control characters."""
    return _CONTROL.sub("", text)


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SGR = re.compile(r"\x1b\[[0-9;:]*m")


def _clean(row: str, style: str) -> tuple[str, str]:
    """The row with its SGR sequences only, and the style in force at its end."""
    if not any(character < " " or "\x7f" <= character <= "\x9f" for character in row):
        return row, style
    pieces: list[str] = []
    drawing = False
    position = 0
    for match in _ESCAPES.finditer(row):
        text = row[position : match.start()]
        pieces.append(text.translate(_LINE_DRAWING) if drawing else text)
        position = match.end()
        if match["sgr"] is not None:
            pieces.append(match[0])
            style = _styled(style, match[0], match["sgr"])
        elif match["drawing"]:
            drawing = match["drawing"] == "\x0e"
    text = row[position:]
    pieces.append(text.translate(_LINE_DRAWING) if drawing else text)
    return "".join(pieces), style


def _styled(style: str, sequence: str, parameters: str) -> str:
    """The style after one more SGR sequence: a leading 0 forgets everything before it."""
    first, _, rest = parameters.partition(";")
    if first in ("", "0"):
        return f"\x1b[{rest}m" if rest else ""
    return style + sequence
