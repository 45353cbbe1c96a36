"""Poll, ACK, show: the truth that a notification only points at (SPEC 3).

Nothing here types into a pane, so nothing of delivery is imported: these are hot commands.
"""

from cafleet.clock import format_timestamp
from cafleet.db import members, messages
from cafleet.errors import AlreadyAcknowledged, MemberNotFound, MessageNotFound, SummaryNotAcknowledgeable
from cafleet.models import Message, MessageType
from cafleet.runtime import Runtime


def poll(
    runtime: Runtime, member_id: int, limit: int | None = None, characters: int | None = None
) -> list[Message]:
    """The member's waiting deliveries, newest status first; changes nothing. `limit` None: all.
    `characters`: no more of them than it takes for their texts to reach so many.

    The member must exist but need not be active: what waits for it stays readable.

    Raises:
        MemberNotFound: no such member.
    """
    with runtime.database.read() as conn:
        if not members.exists(conn, member_id):
            raise MemberNotFound(member_id)
        return messages.inbox(conn, member_id, limit, characters)


def count_unread(runtime: Runtime, member_id: int) -> int:
    """How many deliveries `poll` would return without a limit.

    Raises:
        MemberNotFound: no such member.
    """
    with runtime.database.read() as conn:
        if not members.exists(conn, member_id):
            raise MemberNotFound(member_id)
        return messages.count_inbox(conn, member_id)


def ack(runtime: Runtime, message_id: int) -> Message:
    """Move a waiting delivery to `completed`, once, and stamp it; returns it as it now is.

    Raises:
        MessageNotFound, AlreadyAcknowledged, SummaryNotAcknowledgeable.
    """
    with runtime.database.write() as conn:
        changed = messages.complete(conn, message_id, format_timestamp(runtime.now()))
        message = messages.get(conn, message_id)
        if message is None:
            raise MessageNotFound(message_id)
        if message.type is MessageType.BROADCAST_SUMMARY:
            raise SummaryNotAcknowledgeable(message_id)
        if not changed:
            raise AlreadyAcknowledged(message_id)
        return message


def show(runtime: Runtime, message_id: int) -> Message:
    """Any message by id.

    Raises:
        MessageNotFound: no such message.
    """
    with runtime.database.read() as conn:
        message = messages.get(conn, message_id)
    if message is None:
        raise MessageNotFound(message_id)
    return message
