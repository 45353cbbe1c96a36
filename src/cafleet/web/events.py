"""`/api/events`: what changes in a fleet, pushed as it is committed (SPEC 10).

One thread waits for changes of the database, reads what is new once per fleet, and hands the same
bytes to every client. An event's id says where its reader stands, in stored facts alone
(`broker.feed`), so a stream can be resumed after any interruption, a restart of the server included.
Where it cannot, `reset` tells the reader to load everything again. No transaction is open between
events, and a reader that does not keep up is dropped: it comes back and resumes.
"""

import asyncio
import hashlib
import json
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from starlette.types import Receive, Scope, Send

from cafleet.broker import feed
from cafleet.broker.feed import Position
from cafleet.broker.members import list_known_members
from cafleet.errors import (
    CafleetError,
    DatabaseBusy,
    FleetDeleted,
    FleetNotFound,
    FleetNotLive,
    IntegrityError,
)
from cafleet.runtime import Runtime
from cafleet.web.monitor import overview
from cafleet.web.rows import Json, member_row, message_rows

KEEP_ALIVE_SECONDS = 15.0
MAX_CLIENTS = 256
REPLAY_LIMIT = 1000
"""Changes of a kind that a returning reader is told one by one; beyond that it starts over."""
LIVE_LIMIT = 5000
MAX_WAITING_CHUNKS = 256
MAX_WAITING_BYTES = 8 * 1024 * 1024
"""What a reader may have waiting before it is dropped; one chunk alone always fits."""
GATHER_SECONDS = 0.02
"""Pause after a batch, in which further changes gather: at most so much later, at most 50 reads a second."""
ROSTER_SECONDS = 0.5
"""The roster and the monitor are looked at no more often."""
CHECK_SECONDS = 1.0
"""How often time alone may change something (a heartbeat grows old), and positions are verified."""

_ID = re.compile(r"([0-9]{1,18})\.([0-9]{1,18})\.([0-9a-f]{12})\.([0-9a-f]{12})\.([ -~]{0,64})", re.ASCII)


class Standing(NamedTuple):
    """Where a reader of a fleet's stream stands; its text form is the event id."""

    position: Position
    roster: str
    """Fingerprint of the roster that the reader knows."""
    monitor: str
    """The same of the monitor."""

    def __str__(self) -> str:
        at = self.position
        return f"{at.message_id}.{at.open_deliveries}.{self.roster}.{self.monitor}.{at.newest_ack}"


def parse_standing(text: str) -> Standing | None:
    """The standing that an event id names; None where it is not one of ours."""
    match = _ID.fullmatch(text)
    if match is None:
        return None
    message_id, open_deliveries, roster, monitor, newest_ack = match.groups()
    return Standing(Position(int(message_id), int(open_deliveries), newest_ack), roster, monitor)


def encode(event: str, data: object, standing: Standing | None = None) -> bytes:
    """One event as it goes over the wire. JSON text has no line breaks, so one `data` line holds it."""
    head = f"id: {standing}\n" if standing is not None else ""
    body = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f"{head}event: {event}\ndata: {body}\n\n".encode()


PING = encode("ping", {})


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


class _FleetFeed:
    """What all readers of one fleet have been told so far. Every method runs under the hub's lock."""

    def __init__(self, runtime: Runtime, fleet_id: int) -> None:
        """Raises FleetNotFound, FleetDeleted, FleetNotLive."""
        self._fleet_id = fleet_id
        # The position first: what changes meanwhile is then told again, not left out.
        position = feed.position(runtime, fleet_id)
        self._members = _roster(runtime, fleet_id)
        self._monitor = overview(runtime, fleet_id)
        self.standing = Standing(position, _fingerprint(self._members), _monitor_fingerprint(self._monitor))
        self._looked_at = self._verified_at = time.monotonic()
        self._unverified = False
        self.look_again = False
        """The roster was not looked at since the last change."""

    def advance(self, runtime: Runtime, *, changed: bool, thorough: bool = False) -> bytes:
        """Everything new as events, `reset` where that cannot be told.

        Raises FleetNotFound, FleetDeleted, FleetNotLive.
        """
        now = time.monotonic()
        self._unverified = self._unverified or changed
        self.look_again = self.look_again or changed
        verify = self._unverified and (thorough or now - self._verified_at >= CHECK_SECONDS)
        parts = self._new_messages(runtime, verify=verify) if changed or verify else []
        if verify:
            self._verified_at, self._unverified = now, False
        elapsed = now - self._looked_at
        if thorough or elapsed >= (ROSTER_SECONDS if self.look_again else CHECK_SECONDS):
            parts += self._new_states(runtime)
            self._looked_at, self.look_again = now, False
        return b"".join(parts)

    def replay(self, runtime: Runtime, last_id: str) -> bytes:
        """What a returning reader missed, up to `standing`; call `advance(thorough=True)` first."""
        since = parse_standing(last_id)
        found = None
        if since is not None:
            found = feed.changes_since(
                runtime, self._fleet_id, since.position, limit=REPLAY_LIMIT, until=self.standing.position
            )
        if since is None or found is None:
            return encode("reset", {"fleet_id": self._fleet_id}, self.standing)
        parts = _message_events(runtime, found.changes, since)
        if since.roster != self.standing.roster:
            parts += [encode("member", row) for row in self._members.values()]
        if since.monitor != self.standing.monitor:
            parts.append(encode("monitor", self._monitor))
        if len(parts) > len(found.changes):
            parts.append(encode("ping", {}, self.standing))
        return b"".join(parts)

    def _new_messages(self, runtime: Runtime, *, verify: bool) -> list[bytes]:
        since = self.standing
        found = feed.changes_since(runtime, self._fleet_id, since.position, limit=LIVE_LIMIT, verify=verify)
        if found is None:
            self.standing = since._replace(position=feed.position(runtime, self._fleet_id))
            return [encode("reset", {"fleet_id": self._fleet_id}, self.standing)]
        self.standing = since._replace(position=found.position)
        return _message_events(runtime, found.changes, since)

    def _new_states(self, runtime: Runtime) -> list[bytes]:
        parts = []
        if self.look_again:
            members, known = _roster(runtime, self._fleet_id), self._members
            different = [
                row for key, row in members.items() if _without_idle(row) != _without_idle(known.get(key))
            ]
            self._members = members
            if different:
                parts += [encode("member", row) for row in different]
                self.standing = self.standing._replace(roster=_fingerprint(members))
        self._monitor = overview(runtime, self._fleet_id)
        fingerprint = _monitor_fingerprint(self._monitor)
        if fingerprint != self.standing.monitor:
            self.standing = self.standing._replace(monitor=fingerprint)
            parts.append(encode("monitor", self._monitor))
        if parts:
            # The id comes last, alone: a reader that gets a part only is told again.
            parts.append(encode("ping", {}, self.standing))
        return parts


def _message_events(runtime: Runtime, changes: list[feed.Change], since: Standing) -> list[bytes]:
    rows = message_rows(runtime, [change.message for change in changes])
    return [
        encode("ack" if change.acknowledged else "message", row, since._replace(position=change.position))
        for change, row in zip(changes, rows, strict=True)
    ]


class Hub:
    """All streams of the server and the thread that feeds them."""

    def __init__(
        self, open_runtime: Callable[[], Runtime], on_failure: Callable[[CafleetError], None]
    ) -> None:
        """`on_failure` is called, in the watcher's thread, when the database cannot be followed any more
        (it was replaced, or upgraded by another release)."""
        self._open_runtime = open_runtime
        self._on_failure = on_failure
        self._lock = threading.Lock()
        """Held while a feed reads the database; never by the loop's thread."""
        self._feeds: dict[int, _FleetFeed] = {}
        self._subscribers: dict[int, set[Subscriber]] = {}
        self._streams: Counter[int] = Counter()
        """Open streams by fleet, those on their way included: while there is one its feed is kept.
        Changed by the loop's thread only."""
        self._wanted = threading.Event()
        self._closing = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._watch, name="cafleet-events", daemon=True)

    # -- in the loop's thread -------------------------------------------------------------------

    def start(self) -> None:
        """Begin; streams are served in the running loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def close(self) -> None:
        """End every stream and the thread."""
        self._closing.set()
        self._wanted.set()
        for subscribers in self._subscribers.values():
            for subscriber in subscribers:
                subscriber.end()

    def join(self, timeout_seconds: float) -> None:
        """Wait for the thread to end."""
        self._thread.join(timeout_seconds)

    def reserve(self, fleet_id: int) -> bool:
        """Make room for a stream, which `release` gives back; False: there are too many."""
        if self._streams.total() >= MAX_CLIENTS:
            return False
        self._streams[fleet_id] += 1
        return True

    def release(self, fleet_id: int, subscriber: Subscriber) -> None:
        """Forget a stream."""
        subscriber.ended = True
        self._subscribers.get(fleet_id, set()).discard(subscriber)
        self._streams[fleet_id] -= 1

    def _add(self, fleet_id: int, subscriber: Subscriber, first: bytes) -> None:
        if subscriber.ended:
            return
        self._subscribers.setdefault(fleet_id, set()).add(subscriber)
        subscriber.push(first)
        if self._closing.is_set():
            subscriber.end()

    def _deliver(self, fleet_id: int, chunk: bytes, last: bool) -> None:
        for subscriber in self._subscribers.get(fleet_id, ()):
            subscriber.push(chunk)
            if last:
                subscriber.end()

    # -- in any other thread --------------------------------------------------------------------

    def subscribe(self, runtime: Runtime, fleet_id: int, last_id: str, subscriber: Subscriber) -> None:
        """Feed a reserved stream with what comes after `last_id` (empty: now).

        Raises:
            FleetNotFound, FleetDeleted, FleetNotLive.
        """
        with self._lock:
            current = self._feeds.get(fleet_id)
            if current is None:
                current = self._feeds[fleet_id] = _FleetFeed(runtime, fleet_id)
            else:
                # Whoever is here already is told first, so that all stand at the same point.
                self._publish(fleet_id, current.advance(runtime, changed=True, thorough=True))
            hello = encode("hello", {"fleet_id": fleet_id}, None if last_id else current.standing)
            missed = current.replay(runtime, last_id) if last_id else b""
            self._in_loop(self._add, fleet_id, subscriber, hello + missed)
        self._wanted.set()

    def _publish(self, fleet_id: int, chunk: bytes, *, last: bool = False) -> None:
        if chunk:
            self._in_loop(self._deliver, fleet_id, chunk, last)

    def _in_loop(self, function: Callable[..., None], *arguments: object) -> None:
        assert self._loop is not None  # start() came first
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)

    # -- in the watcher's thread ----------------------------------------------------------------

    def _watch(self) -> None:
        runtime = self._open_runtime()
        try:
            while not self._closing.is_set():
                self._wanted.wait()
                self._follow(runtime)
        except CafleetError as error:
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
            for fleet_id in list(self._feeds):
                if self._streams[fleet_id]:
                    self._advance(runtime, fleet_id, changed=changed)
                else:
                    del self._feeds[fleet_id]
            if not self._feeds:
                self._wanted.clear()
            return bool(self._feeds)

    def _advance(self, runtime: Runtime, fleet_id: int, *, changed: bool) -> None:
        try:
            self._publish(fleet_id, self._feeds[fleet_id].advance(runtime, changed=changed))
        except (FleetNotFound, FleetDeleted, FleetNotLive) as error:
            self._publish(fleet_id, encode("gone", {"detail": str(error)}), last=True)
            del self._feeds[fleet_id]
        except IntegrityError:
            # A row that cannot be read: the streams end, and whoever returns gets the error's text.
            self._publish(fleet_id, PING, last=True)
            del self._feeds[fleet_id]


class EventStream:
    """The response to `/api/events`: an ASGI application."""

    def __init__(self, hub: Hub, fleet_id: int, subscriber: Subscriber) -> None:
        self._hub, self._fleet_id, self._subscriber = hub, fleet_id, subscriber

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
        finally:
            watcher.cancel()
            self._hub.release(self._fleet_id, self._subscriber)

    async def _until_disconnect(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._subscriber.end()


def _roster(runtime: Runtime, fleet_id: int) -> dict[int, Json]:
    return {entry.member.member_id: member_row(entry) for entry in list_known_members(runtime, fleet_id)}


def _without_idle(row: Json | None) -> Json | None:
    """Idle grows by itself: a reader counts it from the three times."""
    return None if row is None else {key: value for key, value in row.items() if key != "idle"}


def _fingerprint(members: dict[int, Json]) -> str:
    return _digest([_without_idle(row) for row in members.values()])


def _monitor_fingerprint(monitor: Json) -> str:
    return _digest([{key: value for key, value in monitor.items() if key != "last_tick_at"}])


def _digest(values: Iterable[object]) -> str:
    text = json.dumps(list(values), sort_keys=True)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
