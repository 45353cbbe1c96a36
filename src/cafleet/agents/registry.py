"""Agent name to agent: the three built-in products, then `config.toml`."""

from importlib import import_module

from cafleet.config import Config
from cafleet.errors import UnknownAgent
from cafleet.light_typing import TYPE_CHECKING, cast

if TYPE_CHECKING:  # The stale-assets guard of every command comes through here.
    from cafleet.agents.base import Agent

_BUILT_IN = {
    "claude": "cafleet.agents.claude",
    "codex": "cafleet.agents.codex",
    "opencode": "cafleet.agents.opencode",
}
"""Each module has `make(config) -> Agent`; only the one that is asked for is imported."""
_CONFIG_FILE = "cafleet.agents.config_file"
"""Has `make_all(config) -> dict[str, Agent]`."""

BUILT_IN = tuple(_BUILT_IN)


def get(name: str, config: Config) -> "Agent":
    """The agent called `name`.

    Raises:
        UnknownAgent: neither built in nor configured.
        ConfigFileError: the name is not built in and config.toml has a mistake.
    """
    module = _BUILT_IN.get(name)
    if module is not None:
        return cast("Agent", import_module(module).make(config))
    configured = _configured(config)
    if name not in configured:
        raise UnknownAgent(name, [*BUILT_IN, *configured])
    return configured[name]


def known(config: Config) -> list[str]:
    """Every usable name, the built-in ones first. Raises ConfigFileError."""
    return [*BUILT_IN, *_configured(config)]


def _configured(config: Config) -> "dict[str, Agent]":
    return cast("dict[str, Agent]", import_module(_CONFIG_FILE).make_all(config))
