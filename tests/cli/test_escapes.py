"""Hostile text on its way to a terminal (SPEC 7.2; field cases B7, K1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cafleet.cli.escapes import escape, escape_lines


def test_ordinary_text_of_any_script_stays_as_it_is() -> None:
    for text in ("plain", "日本語 é", "שלום", "👩‍👩‍👧", "a\u3000b"):
        assert escape_lines(text) == text


def test_newline_and_tab_stay_in_a_body_and_are_shown_in_a_line() -> None:
    assert escape_lines("a\n\tb") == "a\n\tb"
    assert escape("a\n\tb") == "a\\x0a\\x09b"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[201~", "\\x1b[201~"),
        ("a\r\nb", "a\\x0d\nb"),
        ("\x07\x00\x7f", "\\x07\\x00\\x7f"),
        ("\x85\x9b", "\\x85\\x9b"),
        ("a\u2028b\u2029", "a\\u2028b\\u2029"),
        ("a\x0bb\x0c", "a\\x0bb\\x0c"),
    ],
)
def test_controls_are_shown_as_escapes(text: str, shown: str) -> None:
    assert escape_lines(text) == shown


def test_a_name_shows_its_invisible_characters() -> None:
    assert escape("a\u202eb\u200bc\U000e0041") == "a\\u202eb\\u200bc\\U000e0041"
    assert escape("田中\u3000太郎") == "田中\u3000太郎"


@given(st.text())
def test_no_control_character_is_left(text: str) -> None:
    for character in escape_lines(text):
        assert character in "\n\t" or not (ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0)
    assert len(escape(text).splitlines()) <= 1
