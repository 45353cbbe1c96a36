"""Load at the start what a tick may need days later.

Modules of the program that are loaded on first use would, once it was upgraded under a running loop, be
those of another version than the rest of the process.
"""

from contextlib import suppress

from cafleet.agents import config_file, registry
from cafleet.db import members, private_copy, wakeups
from cafleet.delivery import attempt
from cafleet.errors import CafleetError
from cafleet.runtime import Runtime

LOADED = (attempt, config_file, private_copy, wakeups)
"""Modules that their users load by name, so that commands without a use for them start fast."""


def preload(runtime: Runtime, fleet_id: int) -> None:
    """Load the backends and agents of the fleet's panes. What cannot be loaded is nobody's failure yet.

    Raises DatabaseError.
    """
    with runtime.database.read() as connection:
        placements = [member.placement for member in members.list_active(connection, fleet_id)]
    for backend in {placement.backend for placement in placements if placement}:
        with suppress(CafleetError):
            runtime.multiplexer_for(backend)
    for agent in {*registry.BUILT_IN, *(placement.coding_agent for placement in placements if placement)}:
        with suppress(CafleetError):
            registry.get(agent, runtime.config)
