"""`mcp`: the broker for clients of the Model Context Protocol."""

import os

from cafleet.broker import members
from cafleet.cli.arguments import Command, Values, integer, option
from cafleet.cli.output import Output
from cafleet.errors import MemberGone
from cafleet.models import MemberStatus
from cafleet.runtime import Runtime


def mcp(runtime: Runtime, values: Values, out: Output) -> int:
    """`mcp`: serve until the client goes. Raises MemberGone."""
    from cafleet.mcp_server import channel

    member_id = values.optional_integer("member_id")
    member = None if member_id is None else members.get_member(runtime, member_id)
    if member is not None and member.status is not MemberStatus.ACTIVE:
        raise MemberGone(member.member_id)
    if out.terminal and os.isatty(0):
        out.warn("an MCP client starts this command and speaks to it; by hand, end it with Ctrl-C.")
    claimed = channel.claim()  # Before the libraries come, with their warnings.
    from cafleet.mcp_server import serving  # Heavy: only whoever starts the server pays for it.

    serving.serve(runtime.for_another_thread, claimed, member)
    return 0


COMMANDS = {
    "mcp": Command(
        mcp,
        option("--member-id", "MEMBER_ID", "speak for this member only; tools then need no sender", integer),
        description="Serves the Model Context Protocol on standard input and output until the client closes "
        "them. It is started by the client, not by hand: docs/mcp.md has the lines for each coding agent.",
        examples=("cafleet mcp", "cafleet mcp --member-id=3"),
        json=False,
    ),
}
