"""How help pages speak of coding agents, whose names are known in one place only."""

from cafleet.agents.registry import BUILT_IN

AGENT = next(iter(BUILT_IN))
"""One for the examples."""

AGENTS = f"{', '.join(BUILT_IN)}, or one that config.toml defines"
