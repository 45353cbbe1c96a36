"""Text that other people wrote, made harmless for a terminal (SPEC 7.2; field cases B7, K1)."""

_CONTROLS = (*range(0x20), *range(0x7F, 0xA0))
_LINE_SEPARATORS = (0x2028, 0x2029)
"""What some programs take for a newline."""

_NEVER_SHOWN = frozenset((*_CONTROLS, *_LINE_SEPARATORS))

_IN_A_BLOCK = {code: f"\\x{code:02x}" for code in _CONTROLS if code not in (0x09, 0x0A)}
_IN_A_BLOCK.update({code: f"\\u{code:04x}" for code in _LINE_SEPARATORS})


def escape_lines(text: str) -> str:
    """`text` with every control character but newline and tab shown as an escape (`\\x1b`)."""
    return text if text.isprintable() else text.translate(_IN_A_BLOCK)


def escape(text: str) -> str:
    """`text` in one line, for a name or a table cell: all that does not show itself is an escape.

    That includes the invisible format characters, which could make one name look like another.
    """
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    code = ord(character)
    if character.isprintable() or (character.isspace() and code not in _NEVER_SHOWN):
        return character
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
