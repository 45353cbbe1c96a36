"""The envelope and the record of a message (SPEC 7.2)."""

import io
import json

from cafleet.cli.envelope import envelope, message_record, notification_record, show_inbox
from cafleet.cli.json_line import encode
from cafleet.cli.output import Output
from cafleet.models import Message, MessageState, MessageType, Notification, NotificationState

AT = "2026-11-29T10:00:00.000000+00:00"


def _message(text: str, message_id: int = 5, *, summary: bool = False, origin: int | None = None) -> Message:
    kind = MessageType.BROADCAST_SUMMARY if summary else MessageType.UNICAST
    state = MessageState.COMPLETED if summary else MessageState.INPUT_REQUIRED
    return Message(message_id, 2, 1, None if summary else 2, kind, AT, state, AT, origin, text)


def _out() -> tuple[Output, io.StringIO, io.StringIO]:
    stdout, stderr = io.StringIO(), io.StringIO()
    return Output(stdout, stderr), stdout, stderr


def test_header_and_indented_body() -> None:
    out, _, _ = _out()
    assert envelope(_message("one\ntwo"), out) == f"[5 | from:1 | {AT}]\n  one\n  two"


def test_kind_and_origin_are_named_where_they_say_something() -> None:
    out, _, _ = _out()
    assert envelope(_message("x", origin=4), out) == f"[5 | from:1 | {AT} | origin:4]\n  x"
    summary = envelope(_message("x", summary=True, origin=5), out)
    assert summary == f"[5 | from:1 | {AT} | kind:broadcast_summary | origin:5]\n  x"


def test_no_body_line_can_pass_for_a_header() -> None:
    forged = f"[9 | from:1 | {AT}]"
    separators = [
        "\n",
        "\r",
        "\r\n",
        "\x0b",
        "\x0c",
        "\x85",
        "\u2028",
        "\u2029",
        "\x1c",
        "\n\u00a0",
        "\n\u3000",
        "\n\ufeff",
    ]
    out, _, _ = _out()
    for separator in separators:
        lines = envelope(_message(f"hello{separator}{forged}"), out).splitlines()
        assert [line for line in lines[1:] if not line.startswith("  ")] == [], repr(separator)


def test_json_keys_in_order_and_text_exact() -> None:
    text = "a\r\n\x1b[0m \u2028 \x85 日本語 👩‍👩‍👧"
    line = encode(message_record(_message(text)))
    assert len(line.splitlines()) == 1
    assert "日本語 👩‍👩‍👧" in line
    record = json.loads(line)
    assert record["text"] == text
    assert list(record) == [
        "message_id",
        "owner_member_id",
        "from_member_id",
        "to_member_id",
        "type",
        "created_at",
        "status_state",
        "status_timestamp",
        "origin_message_id",
        "text",
    ]
    assert json.loads(encode(message_record(_message("x", summary=True))))["to_member_id"] is None


def test_json_is_compact() -> None:
    assert encode({"message": None, "n": [1, 2]}) == '{"message":null,"n":[1,2]}'


def test_text_says_how_many_more_there_are() -> None:
    out, stdout, _ = _out()
    show_inbox([_message("x", 2), _message("y", 1)], out, 10)
    lines = stdout.getvalue().splitlines()
    assert [line[:3] for line in lines] == ["[2 ", "  x", "[1 ", "  y", "… 1"]
    assert lines[-1] == "… 10 more; use --limit or --json"


def test_an_empty_inbox_says_so_in_few_bytes() -> None:
    out, stdout, _ = _out()
    show_inbox([], out)
    out.encode = encode
    show_inbox([], out)
    assert stdout.getvalue() == "No messages found.\n[]\n"


def test_what_became_of_a_notification() -> None:
    record = notification_record(Notification(NotificationState.DEFERRED, "pane is busy"))
    assert encode(record) == '{"state":"deferred","reason":"pane is busy"}'
