"""Cells of the dashboard."""

from datetime import UTC, datetime, timedelta

import pytest

from cafleet.broker.monitors import MonitorOverview
from cafleet.clock import format_timestamp
from cafleet.models import Message, MessageState, MessageType, MonitorRuntime
from cafleet.top.rows import age, full_text, monitor_line, name, preview, title

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_how_long_ago() -> None:
    assert age(format_timestamp(NOW - timedelta(minutes=5)), NOW) == "5m"
    assert age(format_timestamp(NOW + timedelta(minutes=5)), NOW) == "0s"
    assert age("not a time", NOW) == "?"


def test_a_name_is_one_harmless_line() -> None:
    assert name("a\x1b]0;x\x07b\nc\u202e") == "ab⏎c"
    assert name("n" * 65) == "n" * 64 + "…"
    assert name(None) == "?"
    assert name("\u202e") == "?"


def test_terminals_agree_about_the_width_of_what_is_shown() -> None:
    family, flag, thumb = "👩\u200d👩\u200d👧", "🏳\ufe0f\u200d🌈", "👍\U0001f3fd"
    assert name(family + flag + thumb) == "👩👩👧🏳🌈👍"
    assert preview(family).plain == "👩👩👧"


def test_a_title_is_cut_by_what_it_takes_on_the_screen() -> None:
    assert title("漢" * 20) == "漢" * 11 + " …"
    assert title("somebody", 6) == "someb…"
    assert title("somebody", -3) == "som…"


@pytest.mark.parametrize(
    ("changes", "member_id", "shown"),
    [
        ({}, 3, "monitor: running, every 10m"),
        ({"wake_interval_seconds": 90}, 3, "monitor: running, every 90s"),
        ({"wake_interval_seconds": 0}, None, "monitor: running, no schedule, no monitor member"),
        ({"last_wake_at": format_timestamp(NOW)}, 3, "monitor: running, every 10m, woken 0s ago"),
        (
            {"last_wake_at": format_timestamp(NOW), "wake_requested_at": format_timestamp(NOW)},
            3,
            "monitor: running, every 10m, wake requested",
        ),
    ],
)
def test_the_monitor_in_few_words(changes: dict[str, object], member_id: int | None, shown: str) -> None:
    runtime = MonitorRuntime(1, 4711, None, None, None, None, 5, 600)._replace(**changes)  # type: ignore[arg-type]
    assert monitor_line(MonitorOverview(1, True, runtime, member_id, {}), NOW).plain == shown


def test_a_monitor_that_has_died() -> None:
    runtime = MonitorRuntime(1, 4711, None, None, format_timestamp(NOW), format_timestamp(NOW), 5, 600)
    assert (
        monitor_line(MonitorOverview(1, False, runtime, 3, {}), NOW).plain
        == "monitor: not running, woken 0s ago"
    )


def test_a_whole_message_keeps_its_lines_and_loses_its_controls() -> None:
    at = format_timestamp(NOW)
    message = Message(
        7, 2, 1, 2, MessageType.UNICAST, at, MessageState.INPUT_REQUIRED, at, None, "one\x1b[2J\n\n[bold]two"
    )
    shown = full_text(message, {1: "boss"}).plain
    assert shown == f"from boss (1) to ? (2)\n{at}, input_required\n\none\n\n[bold]two"
