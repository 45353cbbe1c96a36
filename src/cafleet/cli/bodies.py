"""The text of a message or a prompt: a positional or `--file`, never both (SPEC 7.1)."""

import os
import sys

from cafleet.cli.arguments import Argument, Values, option, positional
from cafleet.errors import CafleetError, InvalidInput, UsageError

MAX_BYTES = 1 << 20
"""No text is longer. The broker says so; reading stops soon after, however much there is."""


def body_arguments(metavar: str, what: str) -> tuple[Argument, Argument]:
    """The two ways to give a text."""
    return (
        positional("body", metavar, f"{what}; after -- when it starts with a dash", required=False),
        option("--file", "PATH", f"read {what} from a file, kept byte for byte; - reads standard input"),
    )


def body(values: Values, metavar: str) -> str:
    """The text exactly as it was given.

    Raises:
        UsageError: none or both of the two ways were used.
        InvalidInput: it is not valid UTF-8.
        CafleetError: the file cannot be read.
    """
    text, path = values.optional_text("body"), values.optional_text("file")
    if (text is None) == (path is None):
        raise UsageError(f"give either {metavar} or --file PATH")
    if text is not None:
        return text
    assert path is not None
    return read_text(path)


def read_text(path: str) -> str:
    """The content of a file, or of standard input for `-`, exactly.

    Raises:
        InvalidInput: it is not valid UTF-8.
        CafleetError: it cannot be read.
    """
    try:
        return _read(path).decode("utf-8")
    except UnicodeDecodeError as error:
        where = "standard input" if path == "-" else path
        raise InvalidInput(f"{where} is not valid UTF-8 (byte {error.start})") from None


def _read(path: str) -> bytes:
    if path == "-":
        if sys.stdin is None:
            raise CafleetError("cannot read standard input: it is closed")
        return _at_most(sys.stdin.fileno(), "standard input")
    try:
        descriptor = os.open(path.encode("utf-8", "surrogateescape"), os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise CafleetError(f"cannot read {path}: {_reason(error)}") from None
    try:
        return _at_most(descriptor, path)
    finally:
        os.close(descriptor)


def _at_most(descriptor: int, where: str) -> bytes:
    """Everything up to a little more than any text may have."""
    chunks, left = [], MAX_BYTES + 8
    try:
        while left > 0 and (chunk := os.read(descriptor, left)):
            chunks.append(chunk)
            left -= len(chunk)
    except OSError as error:
        raise CafleetError(f"cannot read {where}: {_reason(error)}") from None
    data = b"".join(chunks)
    # A cut in the middle of a character must not be reported as bad UTF-8 instead of as too long.
    return data if left > 0 else data.decode("utf-8", "ignore").encode() if _is_utf8_but_cut(data) else data


def _is_utf8_but_cut(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.end == len(data) and error.reason == "unexpected end of data"
    return True


def _reason(error: Exception) -> str:
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
