"""How a message is shown: the envelope for reading, the record for programs (SPEC 7.2)."""

from collections.abc import Sequence

from cafleet.cli.escapes import escape, escape_lines
from cafleet.cli.output import CYAN, Output
from cafleet.models import Message, MessageType, Notification

TEXT_LIMIT = 50
"""Envelopes that one text answer shows unless `--limit` says otherwise."""


def envelope(message: Message, out: Output) -> str:
    """The header and the whole body, each of its lines indented by two blanks: no body line can
    pass for a header."""
    parts = [str(message.message_id), f"from:{message.from_member_id}", escape(message.status_timestamp)]
    if message.type != MessageType.UNICAST:
        parts.append(f"kind:{message.type}")
    if message.origin_message_id is not None:
        parts.append(f"origin:{message.origin_message_id}")
    header = out.paint(f"[{' | '.join(parts)}]", CYAN)
    body = escape_lines(message.text).replace("\n", "\n  ")
    return f"{header}\n  {body}"


def message_record(message: Message) -> dict[str, object]:
    """The whole message, keys in the order of SPEC 7.2."""
    return message._asdict()


def notification_record(notification: Notification) -> dict[str, object]:
    """The outcome of telling the recipient."""
    return {"state": notification.state, "reason": notification.reason}


def show_inbox(messages: Sequence[Message], out: Output, more: int = 0) -> None:
    """The messages of an inbox and, as text, how many `more` there are."""
    if out.as_json:
        out.json([message_record(message) for message in messages])
        return
    for message in messages:
        out.write(envelope(message, out))
    if not messages:
        out.write("No messages found.")
    if more > 0:
        out.write(f"… {more} more; use --limit or --json")
