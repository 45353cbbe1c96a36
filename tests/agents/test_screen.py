"""Escape sequences, faint text and columns."""

import pytest

from cafleet.agents.screen import columns, cut_columns, last_inked, parse


def ink_of(*rows: str) -> tuple[str, ...]:
    return parse(rows).ink


def test_colours_and_other_sequences_leave_the_text_alone() -> None:
    link = "\x1b]8;;https://example.org\x1b\\here\x1b]8;;\x1b\\"
    rows = parse([f"\x1b[1;38;5;174ma\x1b[0m \x1b[Kb\x0e\x0f {link} \x1b(B日本  "]).rows
    assert rows == ("a b here 日本",)


@pytest.mark.parametrize(
    ("row", "ink"),
    [
        ("typed \x1b[2mhint", "typed"),
        ("\x1b[2mhint\x1b[22m typed", "     typed"),
        ("\x1b[2mhint\x1b[0m typed", "     typed"),
        ("\x1b[2mhint\x1b[m typed", "     typed"),
        ("\x1b[2;1mhint\x1b[0;1m typed", "     typed"),
        ("\x1b[90mhint\x1b[39m typed", "     typed"),
        ("\x1b[38;5;8mhint\x1b[38;5;255m typed", "     typed"),
        ("\x1b[38;5;246mhint\x1b[31m typed", "     typed"),
        ("\x1b[38;2;128;128;128mhint\x1b[38;2;238;238;238m typed", "     typed"),
        ("\x1b[38;5;140mtyped", "typed"),
        ("\x1b[38;2;100;160;100mtyped", "typed"),
        ("\x1b[48;5;8mtyped on grey", "typed on grey"),
        ("\x1b[38;5mbroken", "broken"),
    ],
)
def test_faint_text_is_no_ink(row: str, ink: str) -> None:
    assert ink_of(row) == (ink,)


def test_a_style_goes_on_in_the_next_row() -> None:
    assert ink_of("a \x1b[2mb", "c", "\x1b[0md") == ("a", "", "d")


def test_a_cursor_drawn_on_a_placeholder_belongs_to_it() -> None:
    """Some programs draw the cursor themselves: the first character is reversed and not dim."""
    assert ink_of("❯ \x1b[7mP\x1b[0;2mress up") == ("❯",)


def test_a_cursor_drawn_in_typed_text_hides_nothing() -> None:
    assert ink_of("❯ ty\x1b[7mp\x1b[27med \x1b[7m \x1b[0m") == ("❯ typed",)


def test_ink_has_the_places_of_the_text() -> None:
    screen = parse(["日\x1b[2m本\x1b[0m語"])
    assert (screen.rows, screen.ink) == (("日本語",), ("日 語",))


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("", 0), ("┃ x", 3)])
def test_columns(text: str, width: int) -> None:
    assert columns(text) == width


def test_cutting_leaves_out_a_wide_character_on_the_edge() -> None:
    assert cut_columns("日本語", 0, 5) == "日本"
    assert cut_columns("日本語", 1, 6) == "本語"
    assert cut_columns("plain", 1, 3) == "la"


def test_last_inked() -> None:
    assert last_inked(["a", "b", "", "  "]) == 1
    assert last_inked([]) == -1
