import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cafleet.delivery.line import (
    MAX_LINE_UNITS,
    OwnLine,
    comparable,
    is_line_of,
    is_tail_of,
    own_line,
    own_line_id,
    ping_line,
    plain,
    plain_line,
    render_line,
    same_errand,
)
from cafleet.models import Message, MessageState, MessageType
from cafleet.multiplexer.base import is_one_line

CREATED = "2026-11-29T10:00:00.000000+00:00"
HEADER = f"[cafleet msg 12 from 3 {CREATED}]"


def message(text: str, message_id: int = 12, created_at: str = CREATED) -> Message:
    return Message(
        message_id,
        7,
        3,
        7,
        MessageType.UNICAST,
        created_at,
        MessageState.INPUT_REQUIRED,
        created_at,
        None,
        text,
    )


def test_a_line_names_the_message_its_sender_and_its_time_before_the_body() -> None:
    assert render_line(message("hi there"), 200) == f"{HEADER} hi there"


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("a\nb", "a⏎b"),
        ("a\r\nb", "a⏎b"),
        ("a\rb", "a⏎b"),
        ("a\u2028b\u2029c", "a⏎b⏎c"),
        ("a\x0bb\x0cc\x85d", "a⏎b⏎c⏎d"),
        ("a\n\nb\n", "a⏎⏎b⏎"),
        ("a\n\rb", "a⏎⏎b"),
        ("a\tb", "a b"),
        ("a\x1c\x1d\x1e\x1fb", "ab"),
    ],
)
def test_every_kind_of_line_end_is_one_mark_and_a_tab_a_blank(body: str, shown: str) -> None:
    assert plain(body, 200) == shown


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("a\x1b[201~\rrm -rf x\x07", "a⏎rm -rf x"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0;2;0\n0\x1b\\x", "x"),
        ("\x9b31mred\x9d0;t\x9cx", "redx"),
        ("\x1b(Bx\x1bcy\x1b#8z", "xyz"),
        ("\x1b]unfinished", "unfinished"),
        ("\x1b[12", "12"),
        ("\x1b\x1b[31mx", "x"),
        ("bell\x07 back\x08 nul\x00 del\x7f", "bell back nul del"),
        ("\x90\x91c1\x9f", "c1"),
    ],
)
def test_escape_sequences_and_controls_are_removed(body: str, shown: str) -> None:
    assert plain(body, 200) == shown


def test_what_a_reader_cannot_see_is_removed_but_joiners_stay() -> None:
    assert plain("a\u202eb\u2066c\u200bd\ufeffe\U000e0041f\u00ad", 200) == "abcdef"
    family = "👩\u200d👩\u200d👧 می\u200cخواهم é e\u0301 日本語\u3000x"
    assert plain(family, 200) == family


def test_a_body_of_the_wanted_length_is_whole_and_a_longer_one_is_cut() -> None:
    assert render_line(message("x" * 200), 200) == f"{HEADER} {'x' * 200}"
    assert render_line(message("x" * 201), 200) == f"{HEADER} {'x' * 200}…"


def test_length_counts_what_is_shown_not_what_was_removed() -> None:
    assert plain("\x1b[31m" * 50 + "abc", 3) == "abc"
    assert plain("ab\r\ncd", 3) == "ab⏎…"


def test_zero_shows_the_header_alone() -> None:
    assert render_line(message("rm -rf /"), 0) == HEADER


def test_a_body_without_anything_visible_leaves_the_header() -> None:
    assert render_line(message("\x1b[0m\x00"), 200) == HEADER


def test_the_whole_line_stays_short_in_the_unit_in_which_agents_count() -> None:
    for body in ("x" * 5000, "😀" * 5000, "😀x" * 2500):
        line = render_line(message(body), 100_000)
        assert len(line.encode("utf-16-le")) // 2 <= MAX_LINE_UNITS < 700
        assert line.endswith("…")
        assert len(line) > 300
    assert len(render_line(message("x" * 5000), 100_000)) == MAX_LINE_UNITS


def test_an_agent_can_have_a_smaller_limit() -> None:
    line = render_line(message("x" * 500), 200, units=149)
    assert len(line) == 149
    assert line.endswith("x…")


def test_a_timestamp_from_another_program_cannot_break_the_line() -> None:
    line = render_line(message("x", created_at="2026\n\x1b[2J" + "9" * 500), 200)
    assert "\n" not in line
    assert len(line) < 120


@pytest.mark.parametrize(
    "body", ["\x1b]" * 300_000, "\x9d" + "a" * 900_000, "\x1b[" * 300_000, "\n" * 900_000]
)
def test_a_hostile_megabyte_is_a_line_like_any_other(body: str) -> None:
    assert is_one_line(render_line(message(body), 200))  # Quadratic: runs into the time limit.


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=400), st.integers(0, 400))
def test_any_body_gives_one_harmless_line(body: str, length: int) -> None:
    line = render_line(message(body), length)
    assert is_one_line(line)
    assert line.startswith(HEADER)
    assert len(line) <= len(HEADER) + 1 + length + 1
    assert not any(unicodedata.category(character) == "Cc" for character in line)


@given(st.text(alphabet=st.sampled_from("a \x1b[]P\\m3;1\x07\x9b\x9d\x9c\r\n\t\u2028"), max_size=60))
def test_removing_sequences_never_makes_a_new_one(body: str) -> None:
    line = plain(body, 400)
    assert plain(line, 400) == line
    assert "\x1b" not in line


@given(st.text(max_size=300), st.integers(0, 300), st.integers(1, 120))
def test_a_line_is_known_again_however_it_is_wrapped(body: str, length: int, width: int) -> None:
    line = render_line(message(body), length)
    wrapped = "\n".join(line[at : at + width] for at in range(0, len(line), width))
    found = own_line(wrapped)
    assert found is not None
    assert found.message_id == 12
    assert is_line_of(found, message(body))


@given(st.text(max_size=100), st.text(min_size=1, max_size=30))
def test_a_line_with_something_behind_it_is_not_ours_alone(body: str, typed: str) -> None:
    line = render_line(message(body), 200)
    found = own_line(line + typed)
    if comparable(line + typed) == comparable(line):
        return  # Nothing that could be told apart.
    assert found is None or not is_line_of(found, message(body))


def test_a_cut_line_is_known_under_another_length_setting() -> None:
    long = message("word " * 100)
    for length in (0, 1, 50, 200, 400):
        found = own_line(render_line(long, length))
        assert found is not None
        assert is_line_of(found, long)


@pytest.mark.parametrize(
    "text",
    [
        "please look at [cafleet msg 12 from 3 x] y",
        "[cafleet msg x from 3 y] z",
        "[cafleet msg 12]",
        "[cafleet tick] fleet 1: what is this",
        "",
        "hello",
    ],
)
def test_a_persons_words_are_not_ours(text: str) -> None:
    found = own_line(text)
    assert found is None or not is_line_of(found, message("z"))


def test_a_line_of_another_message_or_body_is_not_taken_for_this_one() -> None:
    found = own_line(render_line(message("one"), 200))
    assert found is not None
    assert not is_line_of(found, message("two"))
    assert not is_line_of(found, message("one", message_id=13))


def test_wakes_and_pings_are_known_again() -> None:
    tick = "[cafleet tick] fleet 1: 1 members: 2 ada (x, unread 0, idle 3). Follow your monitor role."
    for line in (tick, ping_line(7)):
        assert own_line(line) == OwnLine(None, comparable(line))
        assert own_line(line + " and more") is None
        assert own_line_id(line) is None


def test_the_id_of_a_line() -> None:
    assert own_line_id(render_line(message("x"), 200)) == 12
    assert own_line_id("words") is None


def test_a_scrolled_composer_is_known_by_the_end_of_the_line() -> None:
    line = render_line(message("a body that is long enough to be told from a coincidence, surely"), 200)
    assert is_tail_of("enough to be told from a coin\ncidence, surely", line)
    assert not is_tail_of("surely", line)
    assert not is_tail_of("enough to be told from a coincidence, surely not", line)


def test_a_plain_line_is_cleaned_and_not_cut() -> None:
    assert plain_line("do\nthis \x1b[31mnow" + "x" * 3000) == "do⏎this now" + "x" * 3000


@pytest.mark.parametrize(
    ("shown", "typed"),
    [
        ("│ abc │", "abc"),
        ("e\u0301", "é"),
        ("a 👩\u200d👩\u200d👧 b", "a 👩👩👧b"),
        ("a⏎b", "a b"),
        ("x\xa0y", "xy"),
    ],
)
def test_what_screens_change_does_not_count(shown: str, typed: str) -> None:
    assert comparable(shown) == comparable(typed)


def test_one_of_two_wakes_of_a_fleet_is_enough() -> None:
    def line(text: str) -> OwnLine:
        found = own_line(text)
        assert found is not None
        return found

    tick = "[cafleet tick] fleet {}: {} members: Director: 1 (unread 0). Follow your monitor role."
    wake, later = line(tick.format(1, 2)), line(tick.format(1, 3))
    assert same_errand(wake, later)
    assert not same_errand(wake, line(tick.format(2, 2)))
    ping = line(ping_line(3))
    assert same_errand(ping, line(ping_line(3)))
    assert not same_errand(ping, line(ping_line(4)))
    assert not same_errand(ping, wake)
    notification = line(f"{HEADER} hi")
    assert not same_errand(notification, notification)
