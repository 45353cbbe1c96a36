"""What a message body and a send's key may be; pure, the same at every door (SPEC 3, 7.1)."""

from cafleet.errors import InvalidInput

MAX_BODY_BYTES = 1024 * 1024
"""Of the body as UTF-8."""
MAX_KEY_LENGTH = 128
"""Code points."""


def check_body(text: str) -> str:
    """`text` itself, which is stored exactly as given.

    Raises:
        InvalidInput: empty or whitespace only, more than 1 MiB, a NUL, or not encodable as UTF-8.
    """
    if not text or text.isspace():
        raise InvalidInput("message text is empty")
    if "\0" in text:
        raise InvalidInput("message text contains a NUL character")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidInput("message text is not valid UTF-8 (it holds a lone surrogate)") from None
    if size > MAX_BODY_BYTES:
        raise InvalidInput(f"message text has {size} bytes; at most {MAX_BODY_BYTES} (1 MiB) are allowed")
    return text


def check_key(key: str) -> str:
    """`key` itself.

    Raises:
        InvalidInput: not 1 to 128 printable characters.
    """
    if not 1 <= len(key) <= MAX_KEY_LENGTH:
        raise InvalidInput(f"a key has 1 to {MAX_KEY_LENGTH} characters (got {len(key)})")
    if not key.isprintable():
        raise InvalidInput("a key holds printable characters only")
    return key
