from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from cafleet.broker.activity import activity_of, idle_seconds
from cafleet.clock import format_timestamp
from cafleet.db.messages import ActivityRow

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
MOMENTS = st.datetimes(min_value=datetime(2020, 1, 1), max_value=datetime(2030, 1, 1), timezones=st.just(UTC))


@given(st.lists(MOMENTS, min_size=1, max_size=3))
def test_idle_counts_from_the_newest_in_whole_seconds_and_is_never_negative(moments: list[datetime]) -> None:
    idle = idle_seconds(tuple(format_timestamp(moment) for moment in moments), NOW)
    assert idle == max(0, (NOW - max(moments)) // timedelta(seconds=1))


def test_without_any_activity_idle_is_unknown() -> None:
    assert idle_seconds((None, None, None), NOW) is None


def test_a_newest_that_does_not_parse_is_not_replaced_by_an_older_one() -> None:
    assert idle_seconds(("2026-05-01T11:59:00+00:00", "zzz", None), NOW) is None


def test_the_greatest_is_chosen_as_a_string() -> None:
    # Text that begins with a letter sorts after every timestamp, one with a blank before it.
    assert idle_seconds((" not a time", "2026-05-01T11:59:00.000000+00:00"), NOW) == 60


def test_a_record_shows_what_the_file_holds() -> None:
    row = ActivityRow(3, "2026-05-01T11:00:00.000000+00:00", None, "2026-05-01T11:59:30.500000+00:00")
    assert activity_of(row, NOW) == (row.last_sent, None, row.last_ack, 29)
