"""One HTTP connection: Uvicorn's, with a limit for the head of a request and answers like all others."""

import asyncio
import json

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from cafleet.web.security import HEADERS

HEAD_SECONDS = 30.0
"""A client that has not sent the whole head of a request for so long is cut off. The body has a limit of
its own, and so has the pause after an answer (Uvicorn's `timeout_keep_alive`)."""


class Connection(H11Protocol):
    """What `uvicorn.Config(http=…)` takes."""

    head_seconds = HEAD_SECONDS
    _cut_off: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._limit_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._limit_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lift_limit()
        super().connection_lost(exc)

    def send_400_response(self, _msg: str) -> None:
        """Answer what is no HTTP, as every error is answered."""
        body = json.dumps({"detail": "this is not a valid HTTP request"}).encode()
        headers = {
            **HEADERS,
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Connection": "close",
        }
        call: RequestResponseCycle | None = self.cycle
        if call is not None and not call.response_complete:
            # The call whose body this was is not to answer, too.
            call.disconnected = True
            call.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):  # Else an answer has begun.
            for event in (
                h11.Response(status_code=400, reason="Bad Request", headers=list(headers.items())),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _limit_head(self) -> None:
        """Let the limit run while a head is awaited; more of the same head does not start it again."""
        if self.conn.their_state is not h11.IDLE:
            self._lift_limit()
        elif self._cut_off is None:
            self._cut_off = self.loop.call_later(self.head_seconds, self.transport.close)

    def _lift_limit(self) -> None:
        if self._cut_off is not None:
            self._cut_off.cancel()
            self._cut_off = None
