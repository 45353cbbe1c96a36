"""What a command line may look like, and what it may not (SPEC 7.1)."""

import pytest
from tests.support.sample_command import SEND, nothing

from cafleet.cli.arguments import Command, Values, count, integer, option, positional
from cafleet.cli.parsing import nearest, parse
from cafleet.errors import UsageError

ACK = Command(
    nothing,
    positional("ids", "ID", "messages", integer, many=True),
    option("--limit", "N", "at most", count),
    examples=("cafleet ack 1 2",),
)


def _send(*words: str) -> Values:
    return parse("send", SEND, words)


def test_values_have_their_types() -> None:
    values = _send("--from", "1", "--to", "2", "--to=3", "--ansi", "hello there")
    assert values.integer("from") == 1
    assert values.integers("to") == [2, 3]
    assert values.text("body") == "hello there"
    assert values.flag("ansi")
    assert values.optional_text("name") is None


def test_positionals_and_options_may_be_mixed() -> None:
    values = parse("ack", ACK, ["1", "--limit", "5", "2", "3"])
    assert values.integers("ids") == [1, 2, 3]
    assert values.integer("limit") == 5


def test_both_spellings_name_one_argument() -> None:
    assert _send("--from-member-id", "7", "--to", "1").integer("from") == 7
    with pytest.raises(UsageError, match="--from-member-id is given twice"):
        _send("--from", "7", "--from-member-id", "8", "--to", "1")


@pytest.mark.parametrize("text", ["--help", "--to=9", "-", "--", "-1", "--json", ""])
def test_text_after_two_dashes_is_taken_as_it_is(text: str) -> None:
    values = _send("--from", "1", "--to", "2", "--", text)
    assert values.text("body") == text
    assert values.integers("to") == [2]


def test_a_single_dash_is_a_value_not_an_option() -> None:
    assert _send("--from", "1", "--to", "2", "--name", "-").text("name") == "-"


@pytest.mark.parametrize("value", ["-x", "--ansi", "a=b", ""])
def test_any_value_may_be_given_after_an_equals_sign(value: str) -> None:
    assert _send("--from", "1", "--to", "2", f"--name={value}").text("name") == value


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "missing --from, --to"),
        (["--from", "1"], "missing --to"),
        (["--from"], "--from needs a value"),
        (["--from", "--to", "2"], "--from needs a value"),
        (
            ["--from", "1", "--to", "2", "a", "b"],
            "unexpected argument 'b'; a text of several words must be quoted",
        ),
        (["--from", "1", "--to", "2", "-x"], "unknown option '-x'"),
        (["--fro", "1", "--to", "2"], "did you mean --from"),
        (["--from", "1", "--to", "2", "--ansi=yes"], "--ansi takes no value"),
        (["--from", "x", "--to", "2"], r"--from must be a whole number \(got 'x'\)"),
    ],
)
def test_a_wrong_command_line_is_refused(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        _send(*words)


def test_a_command_that_takes_no_text_does_not_speak_of_quoting() -> None:
    show = Command(nothing, positional("id", "ID", "which", integer), examples=())
    with pytest.raises(UsageError, match=r"^unexpected argument '2'$"):
        parse("show", show, ["1", "2"])


def test_near_names() -> None:
    known = ["message", "member", "fleet", "monitor"]
    assert nearest("mesage", known) == "message"
    assert nearest("mem", known) == "member"
    assert nearest("flet", known) == "fleet"
    assert nearest("zebra", known) is None
    assert nearest("x", known) is None
    assert nearest("anything", []) is None
