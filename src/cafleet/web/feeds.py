"""What the readers of one event stream are told, and where each of them stands (SPEC 10).

A feed reads what is new once for all its readers and turns it into the same bytes for each. An
event's id says where its reader stands, in stored facts alone (`broker.feed`), so a stream can be
resumed after any interruption, a restart of the server included. Where it cannot, `reset` tells the
reader to load everything again.
"""

import hashlib
import json
import re
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from cafleet.broker import feed
from cafleet.broker.feed import Position
from cafleet.broker.fleets import list_fleets
from cafleet.broker.members import list_everyone
from cafleet.runtime import Runtime
from cafleet.web.monitor import overview
from cafleet.web.rows import Json, fleet_row, member_row, message_rows

REPLAY_LIMIT = 1000
"""Changes of a kind that a returning reader is told one by one; beyond that it starts over."""
LIVE_LIMIT = 5000
ROSTER_SECONDS = 0.5
"""The roster, the monitor and the list of fleets are looked at no more often."""
CHECK_SECONDS = 1.0
"""How often time alone may change something (a heartbeat grows old), and positions are verified."""

_ID = re.compile(
    r"([0-9]{1,18})\.([0-9a-f]{12})\.([0-9]{1,18})\.([0-9a-f]{12})\.([0-9a-f]{12})\.([ -~]{0,64})", re.ASCII
)


class Standing(NamedTuple):
    """Where a reader of a fleet's stream stands; its text form is the event id."""

    position: Position
    roster: str
    """Fingerprint of the roster that the reader knows."""
    monitor: str
    """The same of the monitor."""

    def __str__(self) -> str:
        at = self.position
        where = f"{at.message_id}.{at.mark}.{at.open_deliveries}"
        return f"{where}.{self.roster}.{self.monitor}.{at.newest_ack}"


def parse_standing(text: str) -> Standing | None:
    """The standing that an event id names; None where it is not one of ours."""
    match = _ID.fullmatch(text)
    if match is None:
        return None
    message_id, mark, open_deliveries, roster, monitor, newest_ack = match.groups()
    return Standing(Position(int(message_id), mark, int(open_deliveries), newest_ack), roster, monitor)


def encode(event: str, data: object, standing: Standing | None = None) -> bytes:
    """One event as it goes over the wire. JSON text has no line breaks, so one `data` line holds it."""
    head = f"id: {standing}\n" if standing is not None else ""
    body = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f"{head}event: {event}\ndata: {body}\n\n".encode()


PING = encode("ping", {})


class Feed(Protocol):
    """What a stream is fed from. Every method runs under the hub's lock.

    The first two raise FleetNotFound, FleetDeleted or FleetNotLive where the stream has no subject any more.
    """

    look_again: bool
    """Something has changed that was not looked at yet."""

    def advance(self, runtime: Runtime, *, changed: bool, thorough: bool = False) -> bytes:
        """Everything new as events. `changed` False: time alone has passed; `thorough`: put nothing off."""
        ...

    def welcome(self, runtime: Runtime, last_id: str) -> bytes:
        """What a new reader is told first (`last_id` empty), or a returning one what it missed; call
        `advance(thorough=True)` first."""
        ...


class FleetFeed:
    """One fleet: its messages, members, monitor, and what its panes show."""

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
        self._panes: dict[int, Json] = {}
        self._untold: list[bytes] = []
        """Events that `standing` counts already. They outlive a call that ends in an error, since no later
        read would find them again."""

    def advance(self, runtime: Runtime, *, changed: bool, thorough: bool = False) -> bytes:
        now = time.monotonic()
        self._unverified = self._unverified or changed
        self.look_again = self.look_again or changed
        verify = self._unverified and (thorough or now - self._verified_at >= CHECK_SECONDS)
        if changed or verify:
            self._untold += self._new_messages(runtime, verify=verify)
        if verify:
            self._verified_at, self._unverified = now, False
        elapsed = now - self._looked_at
        if thorough or elapsed >= (ROSTER_SECONDS if self.look_again else CHECK_SECONDS):
            self._untold += self._new_states(runtime)
            self._looked_at, self.look_again = now, False
        chunk = b"".join(self._untold)
        self._untold.clear()
        return chunk

    def welcome(self, runtime: Runtime, last_id: str) -> bytes:
        hello = encode("hello", {"fleet_id": self._fleet_id}, None if last_id else self.standing)
        missed = self._replay(runtime, last_id) if last_id else b""
        return hello + missed + b"".join(encode("pane", row) for row in self._panes.values())

    def show_panes(self, panes: Mapping[int, Json]) -> bytes:
        """`pane` events for what differs from the last look. Not stored anywhere, so without an id."""
        different = [row for key, row in panes.items() if self._panes.get(key) != row]
        self._panes = dict(panes)
        return b"".join(encode("pane", row) for row in different)

    def _replay(self, runtime: Runtime, last_id: str) -> bytes:
        """What was missed after `last_id`, up to `standing`."""
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
        events = _message_events(runtime, found.changes, since)
        self.standing = since._replace(position=found.position)
        return events

    def _new_states(self, runtime: Runtime) -> list[bytes]:
        parts = []
        # All reading comes first: one that fails must leave everything as it was.
        members = _roster(runtime, self._fleet_id) if self.look_again else None
        self._monitor = overview(runtime, self._fleet_id)
        if members is not None:
            known = self._members
            different = [
                row for key, row in members.items() if _without_idle(row) != _without_idle(known.get(key))
            ]
            self._members = members
            if different:
                parts += [encode("member", row) for row in different]
                self.standing = self.standing._replace(roster=_fingerprint(members))
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


class FleetsFeed:
    """The live fleets: the whole list whenever it is another one."""

    def __init__(self, runtime: Runtime) -> None:
        self._rows = _fleets(runtime)
        self._looked_at = time.monotonic()
        self.look_again = False

    def advance(self, runtime: Runtime, *, changed: bool, thorough: bool = False) -> bytes:
        self.look_again = self.look_again or changed
        now = time.monotonic()
        if not self.look_again or (now - self._looked_at < ROSTER_SECONDS and not thorough):
            return b""
        rows, known = _fleets(runtime), self._rows
        self._rows, self._looked_at, self.look_again = rows, now, False
        return b"" if rows == known else self._event()

    def welcome(self, _runtime: Runtime, _last_id: str) -> bytes:
        """The list is small: whoever comes back gets it again."""
        return encode("hello", {}) + self._event()

    def _event(self) -> bytes:
        return encode("fleets", self._rows)


def _fleets(runtime: Runtime) -> list[Json]:
    return [fleet_row(found) for found in list_fleets(runtime)]


def _roster(runtime: Runtime, fleet_id: int) -> dict[int, Json]:
    """Everyone: who left without a message is in no listing any more, so only an event can tell of that."""
    return {entry.member.member_id: member_row(entry) for entry in list_everyone(runtime, fleet_id)}


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
