"""Folders that the products take from the environment."""

import os

from cafleet.config import Config
from cafleet.errors import CafleetError


def folder(config: Config, variable: str, *default: str) -> tuple[str, str]:
    """(absolute folder, origin): the variable where it is set, else `default` under the home folder.

    Raises:
        CafleetError: the variable is set to something that is not absolute (SPEC 8).
    """
    value = config.environ.get(variable)
    if not value:
        return os.path.join(config.home, *default), "default"
    if not os.path.isabs(value):
        raise CafleetError(f"{variable} must be an absolute path (got '{value}')")
    return os.path.normpath(value), variable
