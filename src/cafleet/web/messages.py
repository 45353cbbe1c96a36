"""`/api/messages`: send, and acknowledge."""

from cafleet.broker import inbox, members, messages
from cafleet.errors import MessageNotFound
from cafleet.runtime import Runtime
from cafleet.web.members import require_in_fleet
from cafleet.web.requests import Call, Refused, integer, json_object, string
from cafleet.web.rows import Json, message_row, notification_row

EVERYONE = "*"
"""As `to_member_id`: a broadcast."""


def send(runtime: Runtime, call: Call) -> Json:
    """Store a message or a broadcast and notify panes, exactly as the command line does."""
    fields = json_object(call.body, ("from_member_id", "to_member_id", "text"), ("key",))
    sender = integer(fields["from_member_id"], "from_member_id", 1)
    recipient = fields["to_member_id"]
    text = string(fields["text"], "text")
    key = string(fields["key"], "key") if "key" in fields else None
    if recipient != EVERYONE and type(recipient) is not int:
        raise Refused(422, 'to_member_id must be an integer or "*"')
    require_in_fleet(runtime, sender, call.fleet_id)
    if recipient == EVERYONE:
        return _broadcast(runtime, sender, text, key)
    sent = messages.send(runtime, sender, integer(recipient, "to_member_id", 1), text, key)
    return {
        "message_id": sent.message.message_id,
        "status": sent.message.status_state,
        "notification": notification_row(sent.notification),
        "recipients": 1,
        "notified": int(sent.notification.state == "notified"),
        "repeated": sent.repeated,
    }


def _broadcast(runtime: Runtime, sender: int, text: str, key: str | None) -> Json:
    result = messages.broadcast(runtime, sender, text, key)
    return {
        "message_id": result.summary.message_id,
        "status": result.summary.status_state,
        "notification": None,
        "recipients": result.recipients,
        "notified": result.notified,
        "repeated": result.repeated,
    }


def acknowledge(runtime: Runtime, call: Call) -> Json:
    """ACK one delivery."""
    shown = inbox.show(runtime, call.path_id)
    owner = members.get_member(runtime, shown.owner_member_id)
    if owner.fleet_id != call.fleet_id:
        raise MessageNotFound(call.path_id)
    # Read before: a look that failed after the ACK would make it look as if it were not stored.
    names = members.names_of(runtime, {shown.from_member_id, owner.member_id})
    return message_row(inbox.ack(runtime, call.path_id), names)
