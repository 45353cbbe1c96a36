"""From stored text to enums: the one place where an unknown value is noticed (SPEC 2.5)."""

from __future__ import annotations

from cafleet.errors import IntegrityError
from cafleet.light_typing import TYPE_CHECKING

if TYPE_CHECKING:
    from enum import StrEnum
    from typing import TypeVar

    E = TypeVar("E", bound=StrEnum)


def decode(kind: type[E], value: object, table: str, row_id: object, column: str) -> E:
    """The member of `kind` that `value` names.

    Raises:
        IntegrityError: the file holds a value that this cafleet does not know.
    """
    try:
        return kind(value)  # type: ignore[arg-type]  # whatever the column holds; unknown raises
    except ValueError:
        raise IntegrityError(table, row_id, value, column) from None
