"""Captured rows: only text and styles come through."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cafleet.multiplexer import screen_text

SEQUENCES = (
    *(
        "\x1b[2m",
        "\x1b[0;31m",
        "\x1b[m",
        "\x1b[2J",
        "\x1b]0;t\x07",
        "\x1b]8;;u\x1b\\",
        "\x0e",
        "\x0f",
        "\x1b",
    ),
    *("\x1b(0", "\x1bP1;2|x\x1b\\", "\x9b31m", "\x1b[38;5;12m", "\x1b[", "\x1b]", "\x07"),
)
PIECES = st.lists(st.one_of(st.text(max_size=5), st.sampled_from(SEQUENCES)), max_size=8).map("".join)


@pytest.mark.parametrize(
    ("rows", "styled"),
    [
        (["plain"], ["plain"]),
        (["\x1b[2ma", "b\x1b[0m", "c"], ["\x1b[2ma", "\x1b[2mb\x1b[0m", "c"]),
        (
            ["\x1b[1m\x1b[31ma", "b\x1b[0;2mc", "d"],
            ["\x1b[1m\x1b[31ma", "\x1b[1m\x1b[31mb\x1b[0;2mc", "\x1b[2md"],
        ),
        (["a\x1b[m", "b"], ["a\x1b[m", "b"]),
        (["\x0eqx\x0fqx"], ["─│qx"]),
        (["a\x1b[2Kb\x1b[?25lc"], ["abc"]),
        (["a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b"], ["alinkb"]),
        (["a\x1b]52;c;AAAA\x07b\x9b31mc\x07"], ["ab31mc"]),
        (["tab\tstays"], ["tab\tstays"]),
    ],
)
def test_styled_rows(rows: list[str], styled: list[str]) -> None:
    assert screen_text.styled_rows(rows) == styled


@given(st.lists(PIECES, max_size=4))
def test_no_control_character_survives(rows: list[str]) -> None:
    for row in screen_text.plain_rows(rows):
        assert not re.search(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]", row)
    for row in screen_text.styled_rows(rows):
        assert not re.search(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]", re.sub(r"\x1b\[[0-9;:]*m", "", row))


@given(st.lists(PIECES, max_size=4))
def test_plain_rows_are_the_styled_ones_without_style(rows: list[str]) -> None:
    styled = [re.sub(r"\x1b\[[0-9;:]*m", "", row).rstrip() for row in screen_text.styled_rows(rows)]
    assert screen_text.plain_rows(rows) == styled


def test_printable() -> None:
    assert screen_text.printable("a\tb\x1b]0;x\x07\u2028é 日") == "ab]0;xé 日"
