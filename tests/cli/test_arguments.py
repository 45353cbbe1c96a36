"""From the text of an argument to its value (SPEC 7.1)."""

import pytest

from cafleet.cli.arguments import count, integer, seconds


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("7", 7), ("007", 7), ("9223372036854775807", 2**63 - 1)]
)
def test_integers(text: str, value: int) -> None:
    assert integer(text) == value


@pytest.mark.parametrize(
    "text",
    ["", " 1", "1 ", "+1", "-1", "1_0", "1.0", "0x1", "１", "²", "9223372036854775808", "9" * 5000, "\n1"],
)
def test_not_integers(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        integer(text)


def test_a_count_is_at_least_one() -> None:
    assert count("1") == 1
    with pytest.raises(ValueError, match="at least 1"):
        count("0")


@pytest.mark.parametrize(("text", "value"), [("0", 0.0), ("2", 2.0), ("0.25", 0.25), ("100.5", 100.5)])
def test_seconds(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", ".", "1.", ".5", "-1", "1e3", "nan", "inf", "1.2.3", "1" * 10, "１"])
def test_not_seconds(text: str) -> None:
    with pytest.raises(ValueError, match="number of seconds"):
        seconds(text)
