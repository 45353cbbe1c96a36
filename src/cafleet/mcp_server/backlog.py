"""How many requests may be unanswered at a time.

A client that asks on and on and reads no answers would otherwise fill this process's memory: every
request that was read is kept until its answer could be written.
"""

import select
from collections.abc import Callable

import anyio
from mcp.shared.dispatcher import as_request_id, coerce_request_id
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

MAX_OPEN = 256
STUCK_SECONDS = 2.0
"""A client that takes no answer for so long, and has closed its end, does not come back."""


class Backlog:
    """The requests that were read and are not answered. In the loop's thread only."""

    def __init__(self) -> None:
        self._open: set[object] = set()
        self._settled = anyio.Event()

    async def room(self, gone: Callable[[], bool]) -> bool:
        """Wait until one request more can be taken; False: nothing moves any more and `gone()`."""
        while len(self._open) >= MAX_OPEN:
            self._settled = anyio.Event()
            with anyio.move_on_after(STUCK_SECONDS) as pause:
                await self._settled.wait()
            if pause.cancelled_caught and gone():
                return False
        return True

    def note_read(self, message: JSONRPCMessage) -> None:
        """A request opens, a cancellation settles: what was cancelled is never answered."""
        if isinstance(message, JSONRPCRequest):
            self._open.add(coerce_request_id(message.id))  # To the SDK, 7 and "7" are one id.
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._settle((message.params or {}).get("requestId"))

    def note_written(self, message: JSONRPCMessage) -> None:
        """An answer settles its request."""
        if isinstance(message, (JSONRPCResponse, JSONRPCError)):
            self._settle(message.id)

    def _settle(self, request_id: object) -> None:
        known = as_request_id(request_id)
        if known is not None:
            self._open.discard(coerce_request_id(known))
            self._settled.set()


def hung_up(descriptor: int) -> bool:
    """Whether the other end was closed, although there may be something left to read."""
    closed = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)
    poll = select.poll()
    poll.register(descriptor, closed)
    return any(event & closed for _, event in poll.poll(0))
