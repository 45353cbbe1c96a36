"""Where the built-in products keep skills and presets.

Apart from the product modules, because the stale-assets guard asks on every command and must not load those.
"""

import os

from cafleet.config import Config
from cafleet.errors import CafleetError

_HOMES = {
    "claude": ("CLAUDE_CONFIG_DIR", ".claude"),
    "codex": ("CODEX_HOME", ".codex"),
    "opencode": ("OPENCODE_CONFIG_DIR", ".opencode"),
}
"""Name → the variable that moves the folder, and the folder's name under the home folder."""


def identity(name: str, config: Config) -> tuple[str, str]:
    """(absolute folder, origin) of a built-in product; origin is the variable's name or `default`.

    The folder is what `asset_installs.path` records.

    Raises:
        CafleetError: the variable is set to something that is not absolute (SPEC 8).
    """
    variable, folder = _HOMES[name]
    value = config.environ.get(variable)
    if not value:
        return os.path.join(config.home, folder), "default"
    if not os.path.isabs(value):
        raise CafleetError(f"{variable} must be an absolute path (got '{value}')")
    return os.path.normpath(value), variable


def is_built_in(name: str) -> bool:
    """Whether `identity` knows the product."""
    return name in _HOMES
