import pytest
from hypothesis import given
from hypothesis import strategies as st

from cafleet.agents.screen import columns
from cafleet.demo.standin.screen import Key, Keys, Kind, wrap

PASTE = b"\x1b[200~two\rlines \xe6\x97\xa5\x1b[31m\x1b[201~"


def pressed(*reads: bytes) -> list[Key]:
    keys = Keys()
    return [key for data in reads for key in keys.feed(data)]


def test_typed_pasted_and_pressed_keys_are_told_apart() -> None:
    assert pressed(b"ab\r" + PASTE + b"\n\x7f\x15\x03\x04\x01") == [
        Key(Kind.TEXT, "ab"),
        Key(Kind.ENTER),
        Key(Kind.PASTE, "two\nlines 日\x1b[31m"),
        Key(Kind.NEWLINE),
        Key(Kind.BACKSPACE),
        Key(Kind.CLEAR),
        Key(Kind.INTERRUPT),
        Key(Kind.END),
        Key(Kind.OTHER),
    ]


@given(st.integers(1, 5))
def test_reads_may_cut_anywhere(size: int) -> None:
    data = "é日".encode() + PASTE + b"\x1b[A\x1bOB\r"
    found = pressed(*(data[at : at + size] for at in range(0, len(data), size)))
    assert "".join(key.text for key in found if key.kind is Kind.TEXT) == "é日"
    assert [key for key in found if key.kind is Kind.PASTE] == [Key(Kind.PASTE, "two\nlines 日\x1b[31m")]
    assert [key.kind for key in found if key.kind is not Kind.TEXT][1:] == [
        Kind.OTHER,
        Kind.OTHER,
        Kind.ENTER,
    ]


def test_a_lone_escape_is_a_key_once_nothing_follows() -> None:
    keys = Keys()
    assert list(keys.feed(b"\x1b")) == []
    assert keys.undecided is True
    assert list(keys.settle()) == [Key(Kind.ESCAPE)]
    assert list(keys.settle()) == []


def test_an_escape_before_a_character_is_a_key() -> None:
    assert pressed(b"\x1bx") == [Key(Kind.ESCAPE), Key(Kind.TEXT, "x")]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", ["> "]),
        ("one three", ["> one", "  three"]),
        ("longerthanarow", ["> longerth", "  anarow"]),
        ("日本語日本語", ["> 日本語日", "  本語"]),
        ("a\nb", ["> a", "  b"]),
    ],
)
def test_text_is_wrapped_at_blanks_where_it_can_be(text: str, rows: list[str]) -> None:
    assert [row.rstrip() for row in wrap(text, 10, "> ")] == [row.rstrip() for row in rows]


@given(st.text(alphabet=st.sampled_from("ab 日é\n👩"), max_size=80), st.integers(6, 30))
def test_no_row_is_too_wide_and_no_character_is_lost(text: str, width: int) -> None:
    rows = wrap(text, width, "> ")
    assert all(columns(row) <= width for row in rows)
    assert "".join("".join(row[2:].split()) for row in rows) == "".join(text.split())
