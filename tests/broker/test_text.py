import pytest
from hypothesis import given
from hypothesis import strategies as st

from cafleet.broker.text import MAX_BODY_BYTES, MAX_KEY_LENGTH, check_body, check_key
from cafleet.errors import InvalidInput


@given(st.text(min_size=1))
def test_a_body_is_given_back_unchanged_or_refused(text: str) -> None:
    acceptable = bool(text.strip()) and "\0" not in text
    if acceptable:
        assert check_body(text) == text
    else:
        with pytest.raises(InvalidInput):
            check_body(text)


@pytest.mark.parametrize("text", ["", " ", "\n\t \r\n", "\u3000\xa0"])
def test_an_empty_body_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="empty"):
        check_body(text)


@pytest.mark.parametrize(
    "text", ["-n", "--help", "$(rm x)", "a\r\nb\r\n  \n", "\x1b[201~", ";", "\u202ertl", "👩‍👩‍👧"]
)
def test_hostile_bodies_are_bodies(text: str) -> None:
    assert check_body(text) == text


def test_the_size_limit_counts_bytes_not_characters() -> None:
    assert check_body("é" * (MAX_BODY_BYTES // 2))
    with pytest.raises(InvalidInput, match="1 MiB"):
        check_body("é" * (MAX_BODY_BYTES // 2) + "x")


def test_nul_and_lone_surrogates_are_refused() -> None:
    with pytest.raises(InvalidInput, match="NUL"):
        check_body("a\0b")
    with pytest.raises(InvalidInput, match="surrogate"):
        check_body("a\ud800b")


@pytest.mark.parametrize("key", ["", "x" * (MAX_KEY_LENGTH + 1), "a\nb", "\x1b", "\ud800", "a\u200bb"])
def test_unprintable_or_too_long_keys_are_refused(key: str) -> None:
    with pytest.raises(InvalidInput):
        check_key(key)


@pytest.mark.parametrize("key", ["k", "x" * MAX_KEY_LENGTH, "order 7 — überall"])
def test_printable_keys_are_accepted(key: str) -> None:
    assert check_key(key) == key
