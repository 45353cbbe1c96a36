"""The JSON shapes that the API answers with, built from the broker's records (SPEC 10)."""

from collections.abc import Mapping, Sequence
from typing import Any

from cafleet.broker.fleets import FleetOverview
from cafleet.broker.members import RosterEntry, member_facts, names_of, placement_facts
from cafleet.broker.monitors import MonitorOverview
from cafleet.models import Message, Notification
from cafleet.runtime import Runtime

Json = dict[str, Any]


def fleet_row(overview: FleetOverview) -> Json:
    """A fleet in the picker."""
    fleet = overview.fleet
    return {
        "fleet_id": fleet.fleet_id,
        "name": fleet.name,
        "created_at": fleet.created_at,
        "director_member_id": fleet.director_member_id,
        "member_count": overview.member_count,
    }


def member_row(entry: RosterEntry) -> Json:
    """A member of the roster with its activity."""
    member, activity = entry.member, entry.activity
    return {
        "member_id": member.member_id,
        **member_facts(member),
        "unread": entry.unread,
        "idle": activity.idle,
        "last_sent": activity.last_sent,
        "last_recv": activity.last_recv,
        "last_ack": activity.last_ack,
        "placement": placement_facts(member.placement),
    }


def message_row(message: Message, names: Mapping[int, str]) -> Json:
    """A message; a name is null where its member is not in the database."""
    recipient = message.to_member_id
    return {
        "message_id": message.message_id,
        "from_member_id": message.from_member_id,
        "from_member_name": names.get(message.from_member_id),
        "to_member_id": recipient,
        "to_member_name": None if recipient is None else names.get(recipient),
        "type": message.type,
        "status": message.status_state,
        "created_at": message.created_at,
        "status_timestamp": message.status_timestamp,
        "origin_message_id": message.origin_message_id,
        "body": message.text,
    }


def message_rows(runtime: Runtime, messages: Sequence[Message]) -> list[Json]:
    """Messages with the names of both sides, which are looked up together."""
    ids = {message.from_member_id for message in messages}
    ids |= {message.to_member_id for message in messages if message.to_member_id is not None}
    names = names_of(runtime, ids) if ids else {}
    return [message_row(message, names) for message in messages]


def notification_row(notification: Notification) -> Json:
    """What became of the line in the recipient's pane."""
    return {"state": notification.state, "reason": notification.reason}


def monitor_row(overview: MonitorOverview, names: Mapping[int, str]) -> Json:
    """The monitor; the process's own fields are null while no loop is alive, what is stored stays."""
    row = overview.runtime
    return {
        "fleet_id": overview.fleet_id,
        "configured": row is not None,
        "live": overview.live,
        "monitor_member_id": overview.monitor_member_id,
        "pid": row.pid if row and overview.live else None,
        "started_at": row.started_at if row and overview.live else None,
        "last_tick_at": row.last_tick_at if row and overview.live else None,
        "tick_seconds": row.tick_seconds if row else None,
        "wake_interval_seconds": row.wake_interval_seconds if row else None,
        "last_wake_at": row.last_wake_at if row else None,
        "wake_requested_at": row.wake_requested_at if row else None,
        "pending": [
            {"member_id": member_id, "name": names.get(member_id), "pending": count}
            for member_id, count in sorted(overview.pending.items())
        ],
    }
