"""Whether a sender is who it says it is, as far as that can be told without asking anybody.

Every `message send` comes here, so it loads no multiplexer.
"""

from cafleet.db import members
from cafleet.multiplexer.own_pane import own_pane
from cafleet.runtime import Runtime


def caller_mismatch(runtime: Runtime, member_id: int) -> int | None:
    """The member that the calling pane belongs to, where that is another than `member_id`.

    For a warning only: the environment is taken at its word, no multiplexer is asked. None where the
    process runs in no member's pane, or in nested multiplexers of which none is chosen, or `member_id` is
    (also) placed in it.
    """
    pane = own_pane(runtime.config.environ)
    if pane is None:
        return None
    with runtime.database.read() as conn:
        if members.lives_in_pane(conn, member_id, pane.server, pane.pane):
            return None
        member = members.by_pane(conn, pane.server, pane.pane)
    return None if member is None else member.member_id


def other_identity(runtime: Runtime, from_id: int) -> str | None:
    """The warning for a sender's id that is taken at its word where the calling pane is known to be another
    member's (K3)."""
    mismatch = caller_mismatch(runtime, from_id)
    if mismatch is None:
        return None
    return f"this pane is member {mismatch}, but the message says it is from {from_id}."
