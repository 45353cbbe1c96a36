"""One attempt at one line: lock the pane, look again, type, stamp (SPEC 4.1 to 4.3).

The drain loads this module, and with it all that types, only when there is something to type.
No transaction is open while a multiplexer works; the order is always pane lock, then database.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from cafleet.agents import registry
from cafleet.clock import format_timestamp, parse_timestamp
from cafleet.db import members, notifications
from cafleet.db.notifications import Delivery
from cafleet.delivery.channel import Channel, Told
from cafleet.delivery.eligibility import NOTIFIED, verdict
from cafleet.delivery.line import (
    OwnLine,
    comparable,
    fingerprint,
    is_line_of,
    is_tail_of,
    joined_lines,
    own_line,
    plain_line,
    render_line,
    same_errand,
)
from cafleet.delivery.pane_channel import PaneChannel
from cafleet.delivery.pane_state import PaneReading
from cafleet.errors import CafleetError, DatabaseError, MultiplexerTimeout, PaneBusy
from cafleet.models import Member, MemberStatus, Notification, NotificationState, Placement
from cafleet.multiplexer.base import PaneAddress
from cafleet.multiplexer.pane_lock import PaneLock, mark_left, pane_lock
from cafleet.runtime import Runtime

_MOST_MOVES = 3
"""How often a recipient may change its pane while its lock is waited for."""
_MOST_LEFT_OVERS = 3
_MOST_CANDIDATES = 50
"""Deliveries among which the one is sought whose line ends as a scrolled composer does."""


class Attempt(NamedTuple):
    """What became of one pending delivery."""

    message_id: int
    member_id: int
    """The recipient."""
    notification: Notification
    touched: bool = True
    """False: the pane was never reached, since another process held its lock."""
    recorded: bool = True
    """False: the line was typed, but the database did not take the stamp."""


def attempt(
    runtime: Runtime, message_id: int, member_id: int, lock_seconds: float, silent: dict[str, str]
) -> Attempt:
    """Type the line of a pending delivery and stamp it. Never raises a CafleetError: the message is
    stored, and whatever goes wrong is the notification's own failure.

    `lock_seconds`: how long the pane's lock is waited for. `silent`: multiplexer servers that did not
    answer in time, and what was said of it; such a server is not asked again, and new ones are added.
    """
    try:
        return Attempt(message_id, member_id, _type_pending(runtime, message_id, lock_seconds, silent))
    except _LockBusy as error:
        return Attempt(message_id, member_id, _deferred(error), touched=False)
    except _NotRecorded as error:
        return Attempt(message_id, member_id, _failed(error), recorded=False)
    except PaneBusy as error:
        return Attempt(message_id, member_id, _deferred(error))
    except CafleetError as error:
        return Attempt(message_id, member_id, _failed(error))


def record_again(runtime: Runtime, message_id: int, member_id: int) -> Attempt:
    """Stamp a line that this process has typed already, after `Attempt.recorded` was False."""
    try:
        _record(runtime, message_id)
    except _NotRecorded as error:
        return Attempt(message_id, member_id, _failed(error), recorded=False)
    return Attempt(message_id, member_id, NOTIFIED)


def type_plain_line(runtime: Runtime, member: Member, line: str, lock_seconds: float) -> Notification:
    """Type a line that belongs to no message, in the same states and under the same lock."""
    try:
        return _type_plain(runtime, member, plain_line(line), lock_seconds)
    except PaneBusy as error:
        return _deferred(error)
    except CafleetError as error:
        return _failed(error)


def is_left_over(runtime: Runtime, placement: Placement, reading: PaneReading) -> bool:
    """Whether what stands in the placement's composer is a line of cafleet's that is still to be
    submitted, and no person's words: the next attempt finishes it."""
    directory, address = runtime.config.data_directory, _address(placement)
    mark = mark_left(directory, placement.backend, address)
    return any(
        fingerprint(text) == mark or _recognise(runtime, placement, text) is not None
        for text in reading.texts
    )


class _LockBusy(PaneBusy):
    """pane is busy"""


class _NotRecorded(CafleetError):
    """Typed, but the stamp was refused."""

    def __init__(self, cause: DatabaseError) -> None:
        super().__init__(f"the line was typed, but that could not be recorded: {cause}")


class _Lock:
    """The pane's lock; that it is busy is told apart from a pane that is."""

    def __init__(self, runtime: Runtime, placement: Placement, timeout_seconds: float) -> None:
        directory, address = runtime.config.data_directory, _address(placement)
        self._lock = pane_lock(directory, placement.backend, address, timeout_seconds)

    def __enter__(self) -> PaneLock:
        try:
            return self._lock.__enter__()
        except PaneBusy as error:
            raise _LockBusy from error

    def __exit__(self, *_: object) -> None:
        self._lock.__exit__(None, None, None)


# -- one message ---------------------------------------------------------------------------------


def _type_pending(
    runtime: Runtime, message_id: int, lock_seconds: float, silent: dict[str, str]
) -> Notification:
    delivery, placement = _pending(runtime, message_id)
    for _ in range(_MOST_MOVES):
        if placement is None:
            return verdict(delivery) or NOTIFIED
        server = f"{placement.backend} {placement.mux_server}"
        if server in silent:
            return Notification(NotificationState.FAILED, silent[server])
        locked = placement
        with _Lock(runtime, locked, lock_seconds) as lock, _noting_silence(server, silent):
            delivery, placement = _pending(runtime, message_id)
            if delivery and placement and _same_pane(placement, locked):
                return _type_locked(runtime, delivery, placement, lock)
    return Notification(NotificationState.DEFERRED, "its pane changes all the time")


@contextmanager
def _noting_silence(server: str, silent: dict[str, str]) -> Iterator[None]:
    try:
        yield
    except MultiplexerTimeout as error:
        silent[server] = str(error)
        raise


def _pending(runtime: Runtime, message_id: int) -> tuple[Delivery | None, Placement | None]:
    """The delivery as it is now, and where its line goes; None: nowhere, nothing is to be typed."""
    with runtime.database.read() as connection:
        delivery = notifications.delivery(connection, message_id)
    return delivery, None if delivery is None or verdict(delivery) else delivery.placement


def _type_locked(runtime: Runtime, delivery: Delivery, placement: Placement, lock: PaneLock) -> Notification:
    # A line that cannot be stamped would be typed again by everybody who comes.
    runtime.database.prove_writable()
    channel = _channel(runtime, placement, lock)
    line = render_line(delivery, runtime.config.max_text_len, units=channel.line_limit)

    def recognise(content: str) -> OwnLine | None:
        return _recognise(runtime, placement, content)

    for _ in range(_MOST_LEFT_OVERS):
        told = channel.tell(line, recognise)
        if told.notification.state is not NotificationState.NOTIFIED:
            return told.notification
        if told.left_over is None:
            _record(runtime, delivery.message_id)
            return NOTIFIED
        for message_id in told.left_over.message_ids:
            _record(runtime, message_id)
        if delivery.message_id in told.left_over.message_ids:
            return NOTIFIED
    return Notification(NotificationState.DEFERRED, "other lines keep appearing in its composer")


def _record(runtime: Runtime, message_id: int) -> None:
    """Stamp where the row is still pending; a row ACKed meanwhile keeps what it has."""
    try:
        with runtime.database.write() as connection:
            notifications.stamp(connection, message_id, format_timestamp(runtime.now()))
    except DatabaseError as error:
        raise _NotRecorded(error) from error


def _recognise(runtime: Runtime, placement: Placement, content: str) -> OwnLine | None:
    """Which of our own lines to this pane `content` is, and nothing but that."""
    if own_line(content) is None:
        return _recognise_end(runtime, placement.member_id, content)
    return joined_lines(content, lambda piece: _recognise_whole(runtime, placement, piece))


def _recognise_whole(runtime: Runtime, placement: Placement, content: str) -> OwnLine | None:
    line = own_line(content)
    if line is None or line.message_id is None:
        return line
    with runtime.database.read() as connection:
        delivery = notifications.delivery(connection, line.message_id)
    if delivery is None or delivery.placement is None or not is_line_of(line, delivery):
        return None
    return line if _same_pane(delivery.placement, placement) else None


def _recognise_end(runtime: Runtime, member_id: int, content: str) -> OwnLine | None:
    """In a small pane a long line has scrolled: its end is all that shows."""
    with runtime.database.read() as connection:
        for message_id in notifications.unstamped(connection, member_id, _MOST_CANDIDATES):
            delivery = notifications.delivery(connection, message_id)
            if delivery and is_tail_of(content, render_line(delivery, runtime.config.max_text_len)):
                return OwnLine(message_id, content)
    return None


# -- one plain line ------------------------------------------------------------------------------


def _type_plain(runtime: Runtime, member: Member, line: str, lock_seconds: float) -> Notification:
    placement = member.placement
    if placement is None or placement.mux_pane_id is None:
        return Notification(NotificationState.SKIPPED, f"member {member.member_id} has no pane")
    with _Lock(runtime, placement, lock_seconds) as lock:
        with runtime.database.read() as connection:
            current = members.get(connection, member.member_id)
        if current is None or current.status is not MemberStatus.ACTIVE:
            return Notification(NotificationState.SKIPPED, f"member {member.member_id} is no longer active")
        if current.placement is None or not _same_pane(current.placement, placement):
            return Notification(NotificationState.DEFERRED, "its pane has changed meanwhile")
        return _tell_plain(runtime, current.placement, line, lock)


def _tell_plain(runtime: Runtime, placement: Placement, line: str, lock: PaneLock) -> Notification:
    channel = _channel(runtime, placement, lock)
    wanted = own_line(line) or OwnLine(None, comparable(line))

    def recognise(content: str) -> OwnLine | None:
        return _recognise(runtime, placement, content)

    told = Told(NOTIFIED)
    for _ in range(_MOST_LEFT_OVERS):
        told = channel.tell(line, recognise)
        if told.left_over is None or told.notification.state is not NotificationState.NOTIFIED:
            return told.notification
        for message_id in told.left_over.message_ids:
            _record(runtime, message_id)
        if told.left_over.content == wanted.content or same_errand(told.left_over, wanted):
            break
    return told.notification


# -- where ---------------------------------------------------------------------------------------


def _channel(runtime: Runtime, placement: Placement, lock: PaneLock) -> Channel:
    """Today every agent is reached through its pane."""
    agent = registry.get(placement.coding_agent, runtime.config)
    multiplexer = runtime.multiplexer_for(placement.backend)
    starting = _age_seconds(runtime, placement) < agent.start_seconds
    return PaneChannel(
        multiplexer, _address(placement), agent, placement.member_id, starting=starting, lock=lock
    )


def _age_seconds(runtime: Runtime, placement: Placement) -> float:
    """How long ago the member was placed; for ever, where the clock was set back since."""
    placed = parse_timestamp(placement.created_at)
    age = math.inf if placed is None else (runtime.now() - placed).total_seconds()
    return age if age >= 0 else math.inf


def _address(placement: Placement) -> PaneAddress:
    pane = placement.mux_pane_id or ""
    return PaneAddress(placement.mux_server, placement.mux_session, placement.mux_window_id, pane)


def _same_pane(one: Placement, other: Placement) -> bool:
    return one.backend == other.backend and _address(one) == _address(other)


def _deferred(error: CafleetError) -> Notification:
    return Notification(NotificationState.DEFERRED, str(error))


def _failed(error: CafleetError) -> Notification:
    return Notification(NotificationState.FAILED, str(error))
