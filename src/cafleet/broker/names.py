"""What names and descriptions may be; pure, the same at every door (SPEC 3)."""

import unicodedata

from cafleet.errors import InvalidInput

MAX_NAME_LENGTH = 64
MAX_DESCRIPTION_LENGTH = 500
"""Both in code points."""

_RESERVED = frozenset({"*", "all"})
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Control, format, surrogate, line separator, paragraph separator."""


def check_name(name: str) -> str:
    """`name` itself, of a fleet or a member.

    Raises:
        InvalidInput: not 1 to 64 code points, an unsafe character, a blank at an end, or reserved
            (`*`, and `all` in any case: it means everybody in the composer of the web page).
    """
    if not 1 <= len(name) <= MAX_NAME_LENGTH:
        raise InvalidInput(f"a name has 1 to {MAX_NAME_LENGTH} characters (got {len(name)})")
    _check_characters("a name", name)
    if name != name.strip():
        raise InvalidInput("a name must not begin or end with a blank")
    if name.casefold() in _RESERVED:
        raise InvalidInput(f"the name '{name}' is reserved")
    return name


def mend_name(name: str) -> str:
    """`name` itself where it is allowed, else the nearest one that is: for a file that was written by others
    (SPEC 2.6), whose rows must all be kept."""
    mended = _mended(name.strip(), MAX_NAME_LENGTH).strip()
    if mended.casefold() in _RESERVED:
        return f"{mended}_"
    return mended or "unnamed"


def mend_description(description: str) -> str:
    """The same for a description."""
    return _mended(description, MAX_DESCRIPTION_LENGTH)


def check_description(description: str) -> str:
    """`description` itself; it may be empty.

    Raises:
        InvalidInput: more than 500 code points, or an unsafe character.
    """
    if len(description) > MAX_DESCRIPTION_LENGTH:
        raise InvalidInput(
            f"a description has at most {MAX_DESCRIPTION_LENGTH} characters (got {len(description)})"
        )
    _check_characters("a description", description)
    return description


def check_skill(skill: str) -> str:
    """`skill` itself: one word or phrase of a member's card, by the rules of a name.

    Raises:
        InvalidInput: as for a name.
    """
    if not 1 <= len(skill) <= MAX_NAME_LENGTH:
        raise InvalidInput(f"a skill has 1 to {MAX_NAME_LENGTH} characters (got {len(skill)})")
    _check_characters("a skill", skill)
    if skill != skill.strip():
        raise InvalidInput("a skill must not begin or end with a blank")
    return skill


def _mended(text: str, length: int) -> str:
    return "".join(" " if unicodedata.category(c) in _UNSAFE_CATEGORIES else c for c in text)[:length]


def _check_characters(what: str, text: str) -> None:
    for character in text:
        if unicodedata.category(character) in _UNSAFE_CATEGORIES:
            raise InvalidInput(
                f"{what} must not contain control, format or separator characters (U+{ord(character):04X})"
            )
