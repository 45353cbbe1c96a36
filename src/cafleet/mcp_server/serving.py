"""Serve one client until it goes."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress

import anyio

from cafleet.errors import CafleetError
from cafleet.mcp_server.channel import Channel
from cafleet.mcp_server.lifetime import Watch
from cafleet.mcp_server.server import Desk
from cafleet.mcp_server.transport import open_streams
from cafleet.models import Member
from cafleet.runtime import Runtime

GRACE_SECONDS = 1.5
"""A call that types into a pane may take so long to finish; clients kill after two seconds."""


def serve(open_runtime: Callable[[], Runtime], channel: Channel, member: Member | None) -> None:
    """Until the client closes its end, the parent is gone, or SIGINT, SIGTERM or SIGHUP.

    Raises:
        CafleetError: the database cannot be used any more, for instance after an upgrade.
    """
    anyio.run(_serve, open_runtime, channel, member)


async def _serve(open_runtime: Callable[[], Runtime], channel: Channel, member: Member | None) -> None:
    desk = Desk(open_runtime, member)
    failures: list[CafleetError] = []
    loop = asyncio.get_running_loop()
    async with anyio.create_task_group() as tasks, open_streams(channel) as streams:

        def end(error: CafleetError | None) -> None:
            if error is not None:
                failures.append(error)
            with suppress(RuntimeError):  # The loop has ended on its own meanwhile.
                loop.call_soon_threadsafe(streams.end)

        watch = Watch(open_runtime, channel.parent, member, end)
        watch.start()
        tasks.start_soon(_end_on_signal, streams.end)
        server = desk.server()
        await server.run(streams.incoming, streams.outgoing, server.create_initialization_options())
        tasks.cancel_scope.cancel()
    watch.close(GRACE_SECONDS)
    desk.close(GRACE_SECONDS)
    if failures:
        raise failures[0]


async def _end_on_signal(end: Callable[[], None]) -> None:
    """Being stopped is no failure."""
    wanted = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # Else: started to survive its terminal.
        wanted.append(signal.SIGHUP)
    with anyio.open_signal_receiver(*wanted) as signals:
        async for _ in signals:
            end()
