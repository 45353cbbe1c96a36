"""Records as lines and cells of the dashboard; pure."""

import re
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from rich.text import Text

from cafleet.broker.fleets import FleetOverview
from cafleet.broker.members import RosterEntry
from cafleet.broker.monitors import MonitorOverview
from cafleet.broker.survey import PaneCondition, PaneReport
from cafleet.broker.timeline import TimelineEntry
from cafleet.clock import parse_timestamp, span
from cafleet.delivery.line import plain, plain_line
from cafleet.models import MemberKind, Message, MessageState
from cafleet.top.columns import Column
from cafleet.top.snapshot import FleetView

PREVIEW = 300
"""Code points of a text in a list."""
LOOKED_AT = 2000
"""Code points of a text that are looked at for that."""
NAME = 64
"""Code points of a name in a list."""
TITLE = 24
"""Cells of a name in a line of its own."""
SHORTEST_TITLE = 4

ROSTER = (
    Column("id"),
    Column("name", least=8),
    Column("kind", dropped=1),
    Column("agent", dropped=2, least=8),
    Column("pane"),
    Column("unread"),
    Column("idle", dropped=3),
    Column("held", dropped=4),
)
INBOX = (
    Column("id"),
    Column("from", least=6, share=6),
    Column("age", dropped=1),
    Column("text", least=12, stretch=True),
)
TIMELINE = (
    Column("id"),
    Column("from", least=6, share=6),
    Column("to", least=6, share=6),
    Column("age", dropped=1),
    Column("ack", dropped=2),
    Column("text", least=12, stretch=True),
)
HELD = (
    Column("id"),
    Column("name", least=6, share=4),
    Column("held", dropped=1),
    Column("why", least=12, stretch=True),
)

_UNSTEADY = re.compile("[\u200d\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]")
"""What joins and colours emoji: terminals do not agree on how wide the result is, and a row that is
wider than was thought breaks the whole screen. Without them the single signs are seen."""

_PANE_STYLES = {
    PaneCondition.ALIVE: "green",
    PaneCondition.EXITED: "red",
    PaneCondition.GONE: "red",
    PaneCondition.PENDING: "yellow",
    PaneCondition.UNKNOWN: "yellow",
}
_KIND_MARKS = {MemberKind.DIRECTOR: "director", MemberKind.MONITOR: "monitor", MemberKind.MEMBER: ""}


class Row(NamedTuple):
    """One row of a table."""

    key: str
    """The id of what it shows."""
    cells: tuple[Text, ...]


@lru_cache(maxsize=512)
def name(text: str | None) -> str:
    """A name that others chose, in one harmless line."""
    return steady(plain(text or "", NAME)) or "?"


def title(text: str | None, room: int = TITLE) -> str:
    """The same where it has little room; `room` in cells."""
    shown = Text(name(text))
    shown.truncate(min(TITLE, max(SHORTEST_TITLE, room)), overflow="ellipsis")
    return shown.plain


def steady(text: str) -> str:
    """`text` without what terminals do not agree about."""
    return _UNSTEADY.sub("", text)


def preview(text: str) -> Text:
    """The beginning of a message, in one harmless line."""
    return Text(_preview(text[:LOOKED_AT]), no_wrap=True)


@lru_cache(maxsize=512)  # The lists show the same messages again and again.
def _preview(text: str) -> str:
    return steady(plain(text, PREVIEW))


def tab_label(overview: FleetOverview) -> str:
    return f"{overview.fleet.fleet_id} {title(overview.fleet.name)} ({overview.member_count})"


def roster_rows(view: FleetView) -> list[Row]:
    return [
        Row(str(entry.member.member_id), _roster_cells(entry, view.panes.get(entry.member.member_id)))
        for entry in view.roster
    ]


def _roster_cells(entry: RosterEntry, report: PaneReport | None) -> tuple[Text, ...]:
    member = entry.member
    unread, held = entry.unread, 0 if report is None else report.held
    return (
        _number(member.member_id),
        Text(name(member.name), "bold" if member.kind is MemberKind.DIRECTOR else ""),
        Text(_KIND_MARKS[member.kind], "cyan"),
        Text("-" if member.placement is None else member.placement.coding_agent),
        pane_cell(entry, report),
        Text(str(unread), "bold yellow" if unread else "", justify="right"),
        Text(span(entry.activity.idle), justify="right"),
        Text(str(held) if held else "", "bold yellow", justify="right"),
    )


def pane_cell(entry: RosterEntry, report: PaneReport | None) -> Text:
    """Where the member's agent is, and how it is."""
    placement = entry.member.placement
    if placement is None or report is None:
        return Text("none", "dim")
    pane = "" if placement.mux_pane_id is None else f"{placement.mux_pane_id} "
    status = "" if report.exit_status is None else f" {report.exit_status}"
    return Text(f"{pane}{report.condition}{status}", _PANE_STYLES[report.condition])


def inbox_rows(view: FleetView, now: datetime) -> list[Row]:
    return [Row(str(message.message_id), _inbox_cells(message, view, now)) for message in view.inbox]


def _inbox_cells(message: Message, view: FleetView, now: datetime) -> tuple[Text, ...]:
    return (
        _number(message.message_id),
        Text(name(view.names.get(message.from_member_id))),
        Text(age(message.created_at, now), justify="right"),
        preview(message.text),
    )


def timeline_rows(view: FleetView, now: datetime) -> list[Row]:
    return [
        Row(str(entry.deliveries[0].message_id), _timeline_cells(entry, view, now)) for entry in view.timeline
    ]


def _timeline_cells(entry: TimelineEntry, view: FleetView, now: datetime) -> tuple[Text, ...]:
    first = entry.deliveries[0]
    if entry.origin_message_id is None:
        to = name(view.names.get(first.owner_member_id))
        done = first.status_state is MessageState.COMPLETED
        mark = Text("✓" if done else "·", "green" if done else "yellow", justify="right")
    else:
        to = f"all ({entry.recipients})"
        done = entry.acknowledged == entry.recipients
        share = f"{entry.acknowledged}/{entry.recipients}"
        mark = Text(share, "green" if done else "yellow", justify="right")
    return (
        _number(entry.origin_message_id or first.message_id),
        Text(name(view.names.get(first.from_member_id))),
        Text(to),
        Text(age(first.created_at, now), justify="right"),
        mark,
        preview(first.text),
    )


def held_rows(view: FleetView) -> list[Row]:
    """Members for which a notification waits, and why."""
    return [
        Row(
            str(entry.member.member_id),
            (
                _number(entry.member.member_id),
                Text(name(entry.member.name)),
                Text(str(report.held), justify="right"),
                preview(report.why_held or report.detail or ""),
            ),
        )
        for entry in view.roster
        if (report := view.panes.get(entry.member.member_id)) is not None and report.held
    ]


def monitor_line(overview: MonitorOverview, now: datetime) -> Text:
    """How the fleet's monitor loop is, in about forty cells."""
    row = overview.runtime
    if not overview.live or row is None:
        state = Text("monitor: not running", "yellow" if overview.monitor_member_id else "dim")
    else:
        state = Text("monitor: running", "green")
        interval = row.wake_interval_seconds
        if interval is not None:
            state.append(f", every {_period(interval)}" if interval else ", no schedule")
    if overview.monitor_member_id is None:
        state.append(", no monitor member", "dim")
    if overview.live and row is not None and row.wake_requested_at is not None:
        state.append(", wake requested", "yellow")
    elif row is not None and row.last_wake_at is not None:
        state.append(f", woken {age(row.last_wake_at, now)} ago")
    return state


def status_line(view: FleetView, now: datetime) -> Text:
    """The one line above the roster."""
    unread = sum(entry.unread for entry in view.roster)
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(f"{len(view.roster)} members, ")
    line.append(f"{unread} unread", "bold yellow" if unread else "")
    line.append(", ")
    line.append(f"{view.held} held", "bold yellow" if view.held else "")
    line.append(" · ")
    line.append_text(monitor_line(view.monitor, now))
    return line


def full_text(message: Message, names: dict[int, str]) -> Text:
    """A whole message to be read."""
    to = "everybody" if message.to_member_id is None else _person(message.to_member_id, names)
    text = Text()
    text.append(f"from {_person(message.from_member_id, names)} to {to}\n", "bold")
    text.append(f"{message.created_at}, {message.status_state}\n\n", "dim")
    text.append("\n".join(steady(plain_line(line)) for line in message.text.split("\n")))
    return text


def _person(member_id: int, names: dict[int, str]) -> str:
    return f"{name(names.get(member_id))} ({member_id})"


def age(timestamp: str, now: datetime) -> str:
    """How long ago."""
    moment = parse_timestamp(timestamp)
    return "?" if moment is None else span(max(0, int((now - moment).total_seconds())))


def _period(seconds: int) -> str:
    """A span that is not rounded."""
    return span(seconds) if (seconds % 60 == 0 and seconds < 3600) or seconds % 3600 == 0 else f"{seconds}s"


def _number(value: int) -> Text:
    return Text(str(value), "dim", justify="right")
