"""Time as the file keeps it: UTC text that orders as strings (SPEC 2.5)."""

from collections.abc import Callable
from datetime import UTC, datetime

Now = Callable[[], datetime]
"""A clock: returns an aware datetime in UTC. Tests hand in their own."""
_UNITS = ((86400, "d"), (3600, "h"), (60, "m"))
"""Seconds and sign, the largest first."""


def utc_now() -> datetime:
    """The current time, aware, in UTC."""
    return datetime.now(UTC)


def format_timestamp(moment: datetime) -> str:
    """`2026-11-29T10:00:00.000000+00:00`: always microseconds, always `+00:00`."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def span(seconds: int | None) -> str:
    """A span in its largest unit, rounded down: `45s`, `12m`, `3h`, `2d`; a dash where it is not known."""
    if seconds is None:
        return "-"
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def parse_timestamp(text: str | None) -> datetime | None:
    """The moment that a stored timestamp names, or None where it is absent or does not parse.

    Lenient: a missing offset is read as UTC, since other implementations wrote such rows.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        # An extreme stored year overflows on conversion: that, too, does not parse.
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
