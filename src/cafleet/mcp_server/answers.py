"""What the tools and resources answer: typed, and bounded, since every answer is read by a model.

A field with a default is left out of an answer where it has that value.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from pydantic import BaseModel, ConfigDict

from cafleet.broker.members import RosterEntry, skills
from cafleet.broker.timeline import TimelineEntry
from cafleet.models import Message, MessageState, MessageType, Notification, NotificationState

MAX_CHARACTERS = 20_000
"""Of message text in one answer: some five thousand tokens."""
MAX_ROWS = 100
"""Members, fleets or entries in one answer."""
PREVIEW_CHARACTERS = 500
"""Of one text in the timeline."""

T = TypeVar("T")


class Answer(BaseModel):
    """The structured content of a result."""

    model_config = ConfigDict(extra="forbid")

    def as_json(self) -> str:
        """One line, without what has its default."""
        return self.model_dump_json(exclude_defaults=True)


class StoredMessage(Answer):
    message_id: int
    from_member_id: int
    from_name: str | None
    to_member_id: int | None
    """Null for the summary of a broadcast."""
    type: MessageType
    created_at: str
    status_state: MessageState
    status_timestamp: str
    origin_message_id: int | None = None
    """The broadcast that it belongs to."""
    text: str
    offset: int = 0
    """Characters of the text before what is here."""
    more_characters: int = 0
    """Characters of the text after what is here: show_message has them."""


class Inbox(Answer):
    member_id: int
    messages: list[StoredMessage]
    """Newest first."""
    unread: int
    more: int = 0
    """Unread messages that are not here."""
    hint: str | None = None


class Told(Answer):
    """What became of the line in the recipient's pane."""

    state: NotificationState
    reason: str | None = None


class SendOutcome(Answer):
    to_member_id: int
    message_id: int | None = None
    notification: Told | None = None
    repeated: bool = False
    """The key named a message that was already stored; nothing was stored now."""
    warning: str | None = None
    error: str | None = None
    """Why nothing was stored for this recipient."""


class SendAnswer(Answer):
    results: list[SendOutcome]
    warning: str | None = None


class BroadcastAnswer(Answer):
    message_id: int
    """Of the summary."""
    recipients: int
    notified: int
    repeated: bool = False
    warnings: list[str] = []


class AckFailure(Answer):
    message_id: int
    error: str


class AckAnswer(Answer):
    acknowledged: list[int]
    failed: list[AckFailure] = []


class MemberRow(Answer):
    member_id: int
    name: str
    kind: str
    description: str = ""
    skills: list[str] = []
    coding_agent: str | None = None
    pane: str | None = None
    unread: int = 0
    idle_seconds: int | None = None
    """Since it last sent, received or acknowledged anything."""


class Members(Answer):
    fleet_id: int
    members: list[MemberRow]
    """By id."""
    more: int = 0
    hint: str | None = None


class MonitorState(Answer):
    running: bool
    monitor_member_id: int | None = None
    last_tick_at: str | None = None
    last_wake_at: str | None = None
    wake_requested_at: str | None = None
    wake_interval_seconds: int | None = None


class PaneTrouble(Answer):
    """A member whose pane needs somebody's attention."""

    member_id: int
    name: str
    pane: str
    """`alive`, `exited`, `gone`, `pending` or `unknown`."""
    detail: str | None = None
    notifications_held: int = 0
    reason: str | None = None
    """Why they are held."""


class FleetState(Answer):
    fleet_id: int
    name: str | None
    created_at: str
    director_member_id: int | None
    members: int
    unread: int
    monitor: MonitorState
    attention: list[PaneTrouble] = []
    more_attention: int = 0


class FleetStates(Answer):
    fleets: list[FleetState]
    more: int = 0


class TimelineRow(Answer):
    """A message, or all deliveries of one broadcast."""

    message_id: int
    """Of the broadcast's summary where it is one."""
    broadcast: bool = False
    from_member_id: int
    from_name: str | None
    to_member_ids: list[int]
    acknowledged: int
    created_at: str
    status_timestamp: str
    text: str
    more_characters: int = 0


class Timeline(Answer):
    fleet_id: int
    entries: list[TimelineRow]
    more: int = 0


# -- from records ------------------------------------------------------------------------------


def stored_message(
    message: Message, names: dict[int, str], *, offset: int = 0, characters: int = MAX_CHARACTERS
) -> StoredMessage:
    """A message, its text from `offset` on and at most so many characters of it."""
    text = message.text[offset : offset + characters]
    return StoredMessage(
        message_id=message.message_id,
        from_member_id=message.from_member_id,
        from_name=names.get(message.from_member_id),
        to_member_id=message.to_member_id,
        type=message.type,
        created_at=message.created_at,
        status_state=message.status_state,
        status_timestamp=message.status_timestamp,
        origin_message_id=message.origin_message_id,
        text=text,
        offset=offset,
        more_characters=max(0, len(message.text) - offset - len(text)),
    )


def inbox(member_id: int, messages: Sequence[Message], unread: int, names: dict[int, str]) -> Inbox:
    """As many of the messages, in their order, as an answer holds; the first one in any case."""
    shown = within(messages, lambda message: len(message.text), MAX_CHARACTERS)
    more = max(0, unread - len(shown))
    return Inbox(
        member_id=member_id,
        messages=[stored_message(message, names) for message in shown],
        unread=max(unread, len(shown)),
        more=more,
        hint=f"{more} more: acknowledge these, then poll again" if more else None,
    )


def within(items: Sequence[T], size: Callable[[T], int], budget: int) -> list[T]:
    """The first items whose sizes together stay within the budget, and the first one in any case."""
    kept: list[T] = []
    for item in items:
        budget -= size(item)
        if kept and budget < 0:
            break
        kept.append(item)
    return kept


def told(notification: Notification) -> Told:
    return Told(state=notification.state, reason=notification.reason)


def member_row(entry: RosterEntry) -> MemberRow:
    member, placement = entry.member, entry.member.placement
    return MemberRow(
        member_id=member.member_id,
        name=member.name,
        kind=member.kind,
        description=member.description,
        skills=[skill for skill in skills(member) if isinstance(skill, str)],
        coding_agent=None if placement is None else placement.coding_agent,
        pane=None if placement is None else placement.mux_pane_id,
        unread=entry.unread,
        idle_seconds=entry.activity.idle,
    )


def members_answer(fleet_id: int, roster: Sequence[RosterEntry]) -> Members:
    """The roster, as far as an answer holds it."""
    rows = [member_row(entry) for entry in roster[:MAX_ROWS]]
    kept = within(rows, lambda row: len(row.description) + sum(map(len, row.skills)), MAX_CHARACTERS)
    more = len(roster) - len(kept)
    hint = f"{more} more: call again with after_member_id={kept[-1].member_id}" if more else None
    return Members(fleet_id=fleet_id, members=kept, more=more, hint=hint)


def timeline_row(entry: TimelineEntry, names: dict[int, str], length: int) -> TimelineRow:
    """`length`: how many characters its whole text has."""
    first = entry.deliveries[0]
    return TimelineRow(
        message_id=entry.origin_message_id or first.message_id,
        broadcast=entry.origin_message_id is not None,
        from_member_id=first.from_member_id,
        from_name=names.get(first.from_member_id),
        to_member_ids=sorted(delivery.owner_member_id for delivery in entry.deliveries),
        acknowledged=entry.acknowledged,
        created_at=first.created_at,
        status_timestamp=first.status_timestamp,
        text=first.text,
        more_characters=length - len(first.text),
    )


def timeline_answer(
    fleet_id: int, entries: Sequence[TimelineEntry], names: dict[int, str], lengths: dict[int, int]
) -> Timeline:
    """The timeline, as far as an answer holds it. `lengths`: of the whole texts, by message."""
    rows = [
        timeline_row(entry, names, lengths[entry.deliveries[0].message_id]) for entry in entries[:MAX_ROWS]
    ]
    kept = within(rows, lambda row: len(row.text), MAX_CHARACTERS)
    return Timeline(fleet_id=fleet_id, entries=kept, more=len(entries) - len(kept))


def senders(messages: Iterable[Message]) -> set[int]:
    """Whose names an answer needs."""
    return {message.from_member_id for message in messages}
