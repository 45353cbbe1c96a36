"""When a member last did something (SPEC 3); pure."""

from datetime import datetime

from cafleet.clock import parse_timestamp
from cafleet.db.messages import ActivityRow
from cafleet.models import Activity


def activity_of(row: ActivityRow, now: datetime) -> Activity:
    """The record that faces show, idle counted to `now` (one `now` for a whole list)."""
    return Activity(
        last_sent=row.last_sent,
        last_recv=row.last_recv,
        last_ack=row.last_ack,
        idle=idle_seconds((row.last_sent, row.last_recv, row.last_ack), now),
    )


def idle_seconds(timestamps: tuple[str | None, ...], now: datetime) -> int | None:
    """Whole seconds from the greatest of `timestamps` to `now`, never negative.

    The greatest is chosen as a string; where that one does not parse the answer is None, an older
    one is not fallen back to. None too where there are no timestamps.
    """
    known = [text for text in timestamps if text is not None]
    moment = parse_timestamp(max(known)) if known else None
    return None if moment is None else max(0, int((now - moment).total_seconds()))
