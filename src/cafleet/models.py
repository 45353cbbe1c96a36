"""Every record that leaves the storage package, with the meaning of each field.

Timestamps are text as `clock.format_timestamp` writes them. Ids are integers >= 1, never reused.
"""

from enum import StrEnum

from cafleet.light_typing import NamedTuple


class MemberStatus(StrEnum):
    """`members.status`."""

    ACTIVE = "active"
    DEREGISTERED = "deregistered"


class MemberKind(StrEnum):
    """Derived on reading, never stored: from the fleet's back-reference, then the card's marker."""

    DIRECTOR = "director"
    MONITOR = "monitor"
    MEMBER = "member"


class MessageType(StrEnum):
    """`messages.type`."""

    UNICAST = "unicast"
    BROADCAST_SUMMARY = "broadcast_summary"


class MessageState(StrEnum):
    """`messages.status_state`: moves once, from the first to the second, by an ACK."""

    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"


class NotificationState(StrEnum):
    """What a sender is told of the line in the recipient's pane (SPEC 4.4)."""

    NOTIFIED = "notified"
    SKIPPED = "skipped"
    DEFERRED = "deferred"
    FAILED = "failed"


class Fleet(NamedTuple):
    """An isolated group of members; soft-deleted, never removed."""

    fleet_id: int
    name: str | None
    created_at: str
    deleted_at: str | None
    director_member_id: int | None
    """Null only during bootstrap."""


class Placement(NamedTuple):
    """The link from a member to its pane; *pending* while `mux_pane_id` is null."""

    member_id: int
    mux_session: str
    mux_window_id: str
    mux_pane_id: str | None
    backend: str
    """Name of the multiplexer backend: `tmux`, `herdr`, …"""
    coding_agent: str
    created_at: str
    mux_server: str | None
    """Which multiplexer server the pane belongs to; for tmux `<host>|<socket>|<pid>` (SPEC 5.2)."""


class Member(NamedTuple):
    """A registry entry of a fleet."""

    member_id: int
    fleet_id: int
    name: str
    description: str
    status: MemberStatus
    kind: MemberKind
    registered_at: str
    deregistered_at: str | None
    card_json: str
    """The stored card, unparsed: `{"skills": […], "cafleet": {"kind": "monitor"}}`."""
    placement: Placement | None
    """None: no placement row. A row whose pane id is null is a *pending* placement."""


class Message(NamedTuple):
    """One delivery, or the summary row of a broadcast. Field order is the JSON key order (SPEC 7.2)."""

    message_id: int
    owner_member_id: int
    from_member_id: int
    to_member_id: int | None
    """None for a summary."""
    type: MessageType
    created_at: str
    status_state: MessageState
    status_timestamp: str
    origin_message_id: int | None
    """The summary's id on every row of a broadcast, the summary included."""
    text: str


class Activity(NamedTuple):
    """When a member last did something (SPEC 3)."""

    last_sent: str | None
    last_recv: str | None
    last_ack: str | None
    idle: int | None
    """Whole seconds since the newest of the three, never negative; None when unknown."""


class MonitorRuntime(NamedTuple):
    """The one row per fleet that a monitor loop claims. "No monitor" is no row."""

    fleet_id: int
    pid: int | None
    """Process id of the claiming loop; None when not claimed."""
    started_at: str | None
    last_tick_at: str | None
    last_wake_at: str | None
    """None until a first wake succeeded; kept by clear and reclaim."""
    wake_requested_at: str | None
    tick_seconds: int
    wake_interval_seconds: int | None
    """0 disables scheduled wakes only; None: not claimed since the column exists."""


class AssetInstall(NamedTuple):
    """Which version last installed an agent's skills and preset at a path."""

    coding_agent: str
    path: str
    cafleet_version: str
    installed_at: str


class Notification(NamedTuple):
    """The outcome of one attempt to type a line."""

    state: NotificationState
    reason: str | None
    """One short clause for people; None when notified."""
