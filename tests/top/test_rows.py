"""Cells of the dashboard."""

from datetime import UTC, datetime, timedelta

import pytest

from cafleet.clock import format_timestamp
from cafleet.models import Message, MessageState, MessageType
from cafleet.top.rows import age, age_of, full_text, name

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "-"),
        (0, "0s"),
        (59, "59s"),
        (60, "1m"),
        (3599, "59m"),
        (3600, "1h"),
        (86400, "1d"),
        (10**7, "115d"),
    ],
)
def test_a_span_in_its_largest_unit(seconds: int | None, shown: str) -> None:
    assert age_of(seconds) == shown


def test_how_long_ago() -> None:
    assert age(format_timestamp(NOW - timedelta(minutes=5)), NOW) == "5m"
    assert age(format_timestamp(NOW + timedelta(minutes=5)), NOW) == "0s"
    assert age("not a time", NOW) == "?"


def test_a_name_is_one_harmless_line() -> None:
    assert name("a\x1b]0;x\x07b\nc\u202e") == "ab⏎c"
    assert name("n" * 64) == "n" * 24 + "…"
    assert name(None) == "?"


def test_a_whole_message_keeps_its_lines_and_loses_its_controls() -> None:
    at = format_timestamp(NOW)
    message = Message(
        7, 2, 1, 2, MessageType.UNICAST, at, MessageState.INPUT_REQUIRED, at, None, "one\x1b[2J\n\n[bold]two"
    )
    shown = full_text(message, {1: "boss"}).plain
    assert shown == f"from boss (1) to ? (2)\n{at}, input_required\n\none\n\n[bold]two"
