"""Spans as people read them."""

import pytest

from cafleet.clock import span


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0, "0s"),
        (59, "59s"),
        (60, "1m"),
        (3599, "59m"),
        (3600, "1h"),
        (86400, "1d"),
        (10**6, "11d"),
    ],
)
def test_a_span_in_its_largest_unit(seconds: int | None, text: str) -> None:
    assert span(seconds) == text
