"""Paths as the caller gave them, seen from the folder that the caller is in."""

import os

from cafleet.errors import InvalidInput


def absolute_path(path: str) -> str:
    """`path`, relative to the current folder, as an absolute one.

    Raises:
        InvalidInput: it is relative, and the current folder was removed meanwhile.
    """
    try:
        return os.path.abspath(path)
    except FileNotFoundError:
        raise InvalidInput("the current folder does not exist any more; change to another one") from None
