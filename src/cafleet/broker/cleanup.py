"""Undo what a failed creation has already done, and say what could not be undone (SPEC 7.3)."""

from collections.abc import Callable

from cafleet.errors import CafleetError


def undo(error: BaseException, what: str, action: Callable[[], object]) -> None:
    """Do `action`; its own failure is noted on `error`, the one that is being reported."""
    try:
        action()
    except CafleetError as failure:
        line = f"cleanup failed for {what}: {failure}"
        if isinstance(error, CafleetError):
            error.cleanup_failures.append(line)
        else:
            error.add_note(line)
