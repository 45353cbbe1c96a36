"""`/api/events`: what changes in a fleet, pushed as it is committed (SPEC 10).

One thread waits for changes of the database, reads what is new once per fleet (`feeds.py`), and hands
the same bytes to every client. Another looks at the panes of the fleets that somebody watches. No
transaction is open between events, and a reader that does not keep up is dropped: it comes back and
resumes.
"""

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Callable

from starlette.types import Receive, Scope, Send

from cafleet.broker import feed
from cafleet.errors import (
    CafleetError,
    DatabaseBusy,
    FleetDeleted,
    FleetNotFound,
    FleetNotLive,
    IntegrityError,
)
from cafleet.runtime import Runtime
from cafleet.web.feeds import CHECK_SECONDS, PING, ROSTER_SECONDS, Feed, FleetFeed, FleetsFeed, encode
from cafleet.web.panes import look

KEEP_ALIVE_SECONDS = 15.0
MAX_CLIENTS = 256
MAX_WAITING_CHUNKS = 256
MAX_WAITING_BYTES = 8 * 1024 * 1024
"""What a reader may have waiting before it is dropped; one chunk alone always fits."""
GATHER_SECONDS = 0.02
"""Pause after a batch, in which further changes gather: at most so much later, at most 50 reads a second."""
UNWATCHED_SECONDS = 2.0
"""While nobody watches, the file is looked at so often: whether it still is one that can be served."""
PANES_SECONDS = 2.0
PANES_SHARE = 0.05
"""Panes are looked at so often; less often where that took more than this part of the time."""

ALL_FLEETS = None
"""Stands for a fleet's id where the stream is about the list of fleets."""
Subject = int | None


class Subscriber:
    """One open stream, used in the event loop's thread only."""

    def __init__(self) -> None:
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._ready = asyncio.Event()
        self.ended = False

    def push(self, chunk: bytes) -> None:
        """Queue a chunk; end the stream where too much waits already."""
        if self.ended or not chunk:
            return
        waiting = len(self._chunks)
        if waiting and (waiting >= MAX_WAITING_CHUNKS or self._size + len(chunk) > MAX_WAITING_BYTES):
            self._chunks.clear()
            self.end()
            return
        self._chunks.append(chunk)
        self._size += len(chunk)
        self._ready.set()

    def end(self) -> None:
        """Let the stream end after what is queued."""
        self.ended = True
        self._ready.set()

    async def next_chunk(self) -> bytes | None:
        """What is queued; a keep-alive after a quiet time; None at the end."""
        try:
            async with asyncio.timeout(KEEP_ALIVE_SECONDS):
                while not self._chunks and not self.ended:
                    self._ready.clear()
                    await self._ready.wait()
        except TimeoutError:
            return PING
        if not self._chunks:
            return None
        chunk = b"".join(self._chunks)
        self._chunks.clear()
        self._size = 0
        return chunk


class Hub:
    """All streams of the server and the thread that feeds them."""

    def __init__(self, open_runtime: Callable[[], Runtime], on_failure: Callable[[Exception], None]) -> None:
        """`on_failure` is called, in the watcher's thread, when the database cannot be followed any more
        (it is gone, or was upgraded by another release)."""
        self._open_runtime = open_runtime
        self._on_failure = on_failure
        self._lock = threading.Lock()
        """Held while a feed reads the database; never by the loop's thread."""
        self._feeds: dict[Subject, Feed] = {}
        self._subscribers: dict[Subject, set[Subscriber]] = {}
        self._streams: Counter[Subject] = Counter()
        """Open streams by fleet, those on their way included: while there is one its feed is kept.
        Changed by the loop's thread only."""
        self._wanted = threading.Event()
        self._look_soon = threading.Event()
        self._closing = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._threads = [
            threading.Thread(target=self._watch, name="cafleet-events", daemon=True),
            threading.Thread(target=self._watch_panes, name="cafleet-panes", daemon=True),
        ]

    # -- in the loop's thread -------------------------------------------------------------------

    def start(self) -> None:
        """Begin; streams are served in the running loop."""
        self._loop = asyncio.get_running_loop()
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End every stream and the threads."""
        self._closing.set()
        self._wanted.set()
        self._look_soon.set()
        for subscribers in self._subscribers.values():
            for subscriber in subscribers:
                subscriber.end()

    def join(self, timeout_seconds: float) -> None:
        """Wait for the threads to end; one that waits for a multiplexer is left to finish on its own."""
        deadline = time.monotonic() + timeout_seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def reserve(self, subject: Subject) -> bool:
        """Make room for a stream, which `release` gives back; False: there are too many."""
        if self._streams.total() >= MAX_CLIENTS:
            return False
        self._streams[subject] += 1
        return True

    def release(self, subject: Subject, subscriber: Subscriber) -> None:
        """Forget a stream."""
        subscriber.ended = True
        self._subscribers.get(subject, set()).discard(subscriber)
        self._streams[subject] -= 1
        if not self._streams[subject]:
            del self._streams[subject]
            self._subscribers.pop(subject, None)

    def _add(self, subject: Subject, subscriber: Subscriber, first: bytes) -> None:
        if subscriber.ended:
            return
        self._subscribers.setdefault(subject, set()).add(subscriber)
        subscriber.push(first)
        if self._closing.is_set():
            subscriber.end()

    def _deliver(self, subject: Subject, chunk: bytes, last: bool) -> None:
        for subscriber in self._subscribers.get(subject, ()):
            subscriber.push(chunk)
            if last:
                subscriber.end()

    # -- in any other thread --------------------------------------------------------------------

    def subscribe(self, runtime: Runtime, subject: Subject, last_id: str, subscriber: Subscriber) -> None:
        """Feed a reserved stream with what comes after `last_id` (empty: now).

        Raises:
            FleetNotFound, FleetDeleted, FleetNotLive.
        """
        with self._lock:
            current = self._feeds.get(subject)
            if current is None:
                current = self._feeds[subject] = _open_feed(runtime, subject)
                self._look_soon.set()
            else:
                # Whoever is here already is told first, so that all stand at the same point.
                self._publish(subject, current.advance(runtime, changed=True, thorough=True))
            self._in_loop(self._add, subject, subscriber, current.welcome(runtime, last_id))
        self._wanted.set()

    def _publish(self, subject: Subject, chunk: bytes, *, last: bool = False) -> None:
        if chunk:
            self._in_loop(self._deliver, subject, chunk, last)

    def _in_loop(self, function: Callable[..., None], *arguments: object) -> None:
        assert self._loop is not None  # start() came first
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)

    # -- in the watcher's thread ----------------------------------------------------------------

    def _watch(self) -> None:
        runtime = self._open_runtime()
        try:
            while not self._closing.is_set():
                if self._wanted.wait(UNWATCHED_SECONDS):
                    self._follow(runtime)
                else:
                    _check(runtime)
        except Exception as error:  # Streams that say nothing any more would pass for quiet ones.
            self._on_failure(error)
        finally:
            runtime.database.close()

    def _follow(self, runtime: Runtime) -> None:
        """Until nobody listens: wait for a change, read it, publish it."""
        changed = False
        while not self._closing.is_set():
            try:
                changed = runtime.database.wait_for_change(self._patience()) or changed
                if not self._advance_all(runtime, changed=changed):
                    return
                changed = False
            except DatabaseBusy:
                pass  # Someone holds the file; what changed is still there afterwards.
            self._closing.wait(GATHER_SECONDS)

    def _patience(self) -> float:
        with self._lock:
            waiting = any(current.look_again for current in self._feeds.values())
        return ROSTER_SECONDS / 2 if waiting else CHECK_SECONDS

    def _advance_all(self, runtime: Runtime, *, changed: bool) -> bool:
        """False where nobody listens any more."""
        with self._lock:
            for subject in list(self._feeds):
                if self._streams[subject]:
                    self._advance(runtime, subject, changed=changed)
                else:
                    del self._feeds[subject]
            if not self._feeds:
                self._wanted.clear()
            return bool(self._feeds)

    def _advance(self, runtime: Runtime, subject: Subject, *, changed: bool) -> None:
        try:
            self._publish(subject, self._feeds[subject].advance(runtime, changed=changed))
        except (FleetNotFound, FleetDeleted, FleetNotLive) as error:
            self._publish(subject, encode("gone", {"detail": str(error)}), last=True)
            del self._feeds[subject]
        except IntegrityError:
            # A row that cannot be read: the streams end, and whoever returns gets the error's text.
            self._publish(subject, PING, last=True)
            del self._feeds[subject]

    # -- in the thread that looks at panes ------------------------------------------------------

    def _watch_panes(self) -> None:
        runtime = self._open_runtime()
        pause = PANES_SECONDS
        while not self._closing.is_set():
            self._look_soon.wait(pause)
            self._look_soon.clear()
            started = time.monotonic()
            for fleet_id in self._watched_fleets():
                self._look_at_panes(runtime, fleet_id)
            pause = max(PANES_SECONDS, (time.monotonic() - started) / PANES_SHARE)
        runtime.database.close()

    def _watched_fleets(self) -> list[int]:
        with self._lock:
            return [subject for subject in self._feeds if subject is not ALL_FLEETS]

    def _look_at_panes(self, runtime: Runtime, fleet_id: int) -> None:
        try:
            panes = look(runtime, fleet_id)
        except CafleetError:
            return  # The fleet or the file has ended, which the other thread tells; or it is busy.
        with self._lock:
            current = self._feeds.get(fleet_id)
            if isinstance(current, FleetFeed):
                self._publish(fleet_id, current.show_panes(panes))


class EventStream:
    """The response to `/api/events`: an ASGI application."""

    def __init__(self, hub: Hub, subject: Subject, subscriber: Subscriber) -> None:
        self._hub, self._subject, self._subscriber = hub, subject, subscriber

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the client leaves, falls behind, or the server ends."""
        watcher = asyncio.create_task(self._until_disconnect(receive))
        try:
            await send(
                {
                    "type": "http.response.start",
                    "status": 200,
                    "headers": [
                        (b"content-type", b"text/event-stream; charset=utf-8"),
                        (b"cache-control", b"no-store"),
                    ],
                }
            )
            while (chunk := await self._subscriber.next_chunk()) is not None:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except asyncio.CancelledError:
            pass  # The server ends, and this reader takes nothing: there is nobody to tell.
        finally:
            watcher.cancel()
            self._hub.release(self._subject, self._subscriber)

    async def _until_disconnect(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._subscriber.end()


def _check(runtime: Runtime) -> None:
    """Raises CafleetError: the file is not there any more, or another release upgraded it."""
    try:
        if runtime.database.wait_for_change(0):
            feed.check(runtime)
    except DatabaseBusy:
        pass  # It is there.


def _open_feed(runtime: Runtime, subject: Subject) -> Feed:
    """Raises FleetNotFound, FleetDeleted, FleetNotLive."""
    return FleetsFeed(runtime) if subject is ALL_FLEETS else FleetFeed(runtime, subject)
