"""`message send|broadcast|poll|ack|show`, as the installed program answers (SPEC 7)."""

import hashlib
import json
import re
from pathlib import Path

import pytest
from tests.support.program import SERVER_PID, SOCKET, Program, Result, Team, seed_messages, seed_team

AT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00"


def _send(program: Program, *arguments: str | bytes, stdin: bytes = b"") -> Result:
    return program.run("message", "send", "--from", "1", "--to", "2", *arguments, stdin=stdin)


def _stored(program: Program, member_id: int = 2) -> list[str]:
    """The texts in an inbox, oldest first."""
    result = program.run("message", "poll", str(member_id), "--json")
    assert (result.code, result.stderr) == (0, "")
    return [message["text"] for message in reversed(json.loads(result.stdout))]


def test_send_poll_ack_show(program: Program, team: Team) -> None:
    sent = _send(program, "hello\nthere")
    assert (sent.code, sent.stderr) == (0, "")
    assert re.fullmatch(rf"Message sent\.\n\[1 \| from:1 \| {AT}\]\n  hello\n  there\n", sent.stdout)

    envelope = sent.stdout.removeprefix("Message sent.\n")
    assert program.run("message", "poll", "2") == (0, envelope, "")
    assert program.run("message", "show", "1") == (0, envelope, "")

    acked = program.run("message", "ack", "1")
    assert re.fullmatch(rf"Message acknowledged\.\n\[1 \| from:1 \| {AT}\]\n  hello\n  there\n", acked.stdout)
    assert program.run("message", "poll", "2") == (0, "No messages found.\n", "")
    assert program.run("message", "ack", "1") == (1, "", "Error: message 1 is already acknowledged\n")


def test_json_records(program: Program, team: Team) -> None:
    sent = json.loads(_send(program, "hi", "--json").stdout)
    assert list(sent) == ["message", "notification"]
    assert sent["notification"] == {"state": "skipped", "reason": "member 2 has no pane"}
    message = sent["message"]
    assert (message["from_member_id"], message["to_member_id"], message["owner_member_id"]) == (1, 2, 2)
    assert (message["status_state"], message["type"], message["text"]) == ("input_required", "unicast", "hi")

    assert json.loads(program.run("message", "show", "1", "--json").stdout) == {"message": message}
    assert json.loads(program.run("message", "poll", "2", "--json").stdout) == [message]
    acked = json.loads(program.run("message", "ack", "1", "--json").stdout)
    assert acked["message"]["status_state"] == "completed"
    assert program.run("message", "poll", "2", "--json").stdout == "[]\n"


def test_global_options_are_accepted_before_and_after(program: Program, team: Team) -> None:
    for arguments in (
        ("--json", "message", "poll", "2"),
        ("message", "--json", "poll", "2"),
        ("message", "poll", "--json", "2"),
        ("message", "poll", "2", "--json"),
    ):
        assert program.run(*arguments) == (0, "[]\n", "")


HOSTILE = [
    "--help",
    "--to=3",
    "-",
    "--",
    "-----BEGIN KEY-----",
    "$(touch X); touch Y",
    "`id`",
    'it\'s "quoted" \\ and ; ends with ;',
    "a\x1b[201~\rrm -rf x\x07",
    "a\r\nb\r\n  \n",
    "\tindented\n\n\n",
    "\u2028[9 | from:1 | now]\u2029\x85\x0b\x0c",
    "\u00a0\u3000\ufeffx",
    "שלום \u202e עולם",
    "日本語 👩‍👩‍👧 é",
    "'",
    "%s %n {0} {member_id}",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_body_is_stored_exactly(program: Program, team: Team, text: str, tmp_path: Path) -> None:
    file = tmp_path / "body"
    file.write_bytes(text.encode())
    assert _send(program, "--", text).code == 0
    assert _send(program, "--file", str(file)).code == 0
    assert _send(program, "--file", "-", stdin=text.encode()).code == 0
    assert _send(program, "--file=-", stdin=text.encode()).code == 0
    assert _stored(program) == [text] * 4
    shown = program.run("message", "poll", "2").stdout
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]", shown)
    assert len(re.findall(r"^\S", shown, re.MULTILINE)) == 4, "only the headers start a line"


def test_a_body_of_a_mebibyte_is_stored_and_no_more(program: Program, team: Team) -> None:
    text = "é" * (1 << 19)
    sent = _send(program, "--file", "-", stdin=text.encode())
    assert (sent.code, sent.stderr) == (0, "")
    stored = _stored(program)[0]
    assert hashlib.sha256(stored.encode()).hexdigest() == hashlib.sha256(text.encode()).hexdigest()

    for more in (b"x", "é".encode(), b"x" * (3 << 20)):
        refused = _send(program, "--file", "-", stdin=text.encode() + more)
        assert refused.code == 1
        assert "1 MiB" in refused.stderr
    assert len(_stored(program)) == 1


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (("",), b"", "message text is empty"),
        ((" \n\t\u3000",), b"", "message text is empty"),
        (("--file", "-"), b"", "message text is empty"),
        (("--file", "-"), b"a\0b", "message text contains a NUL character"),
        (("--file", "-"), b"a\xff", "standard input is not valid UTF-8 (byte 1)"),
        (("--file", "-"), b"\xed\xa0\x80", "standard input is not valid UTF-8 (byte 0)"),
        ((b"a\xffb",), b"", "message text is not valid UTF-8"),
        (("--file", "/nonexistent"), b"", "cannot read /nonexistent: No such file or directory"),
        (("--file", "/"), b"", "cannot read /: Is a directory"),
    ],
)
def test_a_body_that_cannot_be_stored(
    program: Program, team: Team, arguments: tuple[str | bytes, ...], stdin: bytes, message: str
) -> None:
    result = _send(program, *arguments, stdin=stdin)
    assert (result.code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: {message}")
    assert result.stderr.count("\n") == 1
    assert _stored(program) == []


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("text", "--file", "-"),
        ("two", "texts"),
        ("--file",),
    ],
)
def test_exactly_one_body(program: Program, team: Team, arguments: tuple[str, ...]) -> None:
    result = _send(program, *arguments)
    assert (result.code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    assert _stored(program) == []


@pytest.mark.parametrize("locale", ["C", "POSIX", "en_US.ISO-8859-1", "C.UTF-8", ""])
def test_any_locale_gives_the_same_text(program: Program, team: Team, locale: str) -> None:
    text = "日本語 👩‍👩‍👧 é"
    environ = {"LC_ALL": locale, "LANG": locale, "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    sent = program.run("message", "send", "--from", "1", "--to", "2", text.encode(), environ=environ)
    assert (sent.code, sent.stderr) == (0, "")
    assert text in sent.stdout
    assert text in program.run("message", "poll", "2", environ=environ).stdout
    assert _stored(program) == [text]


def test_several_recipients_each_on_its_own(program: Program, team: Team) -> None:
    arguments = ("message", "send", "--from", "1", "--to", "2", "--to", "99", "--to-member-id", "3", "hi")
    result = program.run(*arguments, "--json")
    assert result.code == 1
    assert result.stderr == "Error: member 99 not found\n"
    first, second, third = json.loads(result.stdout)
    assert first["message"]["to_member_id"] == 2
    assert second == {"message": None, "notification": None, "error": "member 99 not found"}
    assert third["message"]["to_member_id"] == 3

    text = program.run(*arguments)
    assert (text.code, text.stderr) == (1, "Error: member 99 not found\n")
    assert text.stdout.count("Message sent.\n[") == 2
    assert len(_stored(program, 2)) == len(_stored(program, 3)) == 2


def test_a_bad_body_to_several_is_one_error(program: Program, team: Team) -> None:
    result = program.run("message", "send", "--from", "1", "--to", "2", "--to", "3", " ")
    assert (result.code, result.stdout, result.stderr) == (1, "", "Error: message text is empty\n")


def test_a_repeated_send_stores_once(program: Program, team: Team) -> None:
    first = _send(program, "--key", "build-1", "hi", "--json")
    assert "repeated" not in json.loads(first.stdout)
    again = _send(program, "--key", "build-1", "hi", "--json")
    assert (again.code, again.stderr) == (0, "")
    repeated = json.loads(again.stdout)
    assert repeated["repeated"] is True
    assert repeated["message"] == json.loads(first.stdout)["message"]
    assert _send(program, "--key", "build-1", "hi").stdout.startswith("Message sent.")
    other = _send(program, "--key", "build-1", "other")
    assert (other.code, other.stderr) == (1, "Error: key 'build-1' was already used for message 1\n")
    assert _stored(program) == ["hi"]


def test_broadcast(program: Program, team: Team) -> None:
    text = program.run("message", "broadcast", "--from", "1", "all hands")
    assert text == (0, "broadcast id=1 recipients=2 notified=0\n", "")
    result = json.loads(program.run("message", "broadcast", "--from", "1", "again", "--json").stdout)
    assert list(result) == ["message", "recipients", "notified"]
    assert (result["recipients"], result["notified"]) == (2, 0)
    assert result["message"]["to_member_id"] is None
    assert result["message"]["type"] == "broadcast_summary"
    assert _stored(program, 2) == _stored(program, 3) == ["all hands", "again"]

    keyed = ("message", "broadcast", "--from", "1", "--key", "k", "once", "--json")
    first = json.loads(program.run(*keyed).stdout)
    assert json.loads(program.run(*keyed).stdout) == {**first, "repeated": True}
    assert _stored(program, 2)[2:] == ["once"]
    for number in (8, 9):
        program.run("message", "ack", str(number))

    delivery = program.run("message", "poll", "3", "--limit", "1").stdout
    assert re.match(rf"\[6 \| from:1 \| {AT} \| origin:4\]\n", delivery)
    summary = program.run("message", "show", "1").stdout
    assert re.match(rf"\[1 \| from:1 \| {AT} \| kind:broadcast_summary \| origin:1\]\n", summary)


def test_text_shows_fifty_and_counts_the_rest(program: Program, team: Team) -> None:
    seed_messages(program, 60, from_id=1, to_id=2)
    lines = program.run("message", "poll", "2").stdout.splitlines()
    headers = [line.split()[0] for line in lines if line.startswith("[")]
    assert headers == [f"[{number}" for number in range(60, 10, -1)]
    assert lines[-1] == "… 10 more; use --limit or --json"
    assert program.run("message", "wait", "2").stdout.splitlines() == lines

    limited = program.run("message", "poll", "2", "--limit", "55").stdout.splitlines()
    assert len([line for line in limited if line.startswith("[")]) == 55
    assert "more" not in limited[-1]
    assert len(json.loads(program.run("message", "poll", "2", "--json").stdout)) == 60
    assert len(json.loads(program.run("message", "poll", "2", "--limit", "3", "--json").stdout)) == 3


def test_acknowledging_several(program: Program, team: Team) -> None:
    for _ in range(3):
        _send(program, "x")
    assert program.run("message", "ack", "2").code == 0
    result = program.run("message", "ack", "1", "2", "99", "3", "--json")
    assert result.code == 1
    errors = ["message 2 is already acknowledged", "message 99 not found"]
    assert result.stderr == "".join(f"Error: {error}\n" for error in errors)
    first, second, third, fourth = json.loads(result.stdout)
    assert [first["message"]["message_id"], fourth["message"]["message_id"]] == [1, 3]
    assert second == {"message": None, "error": errors[0]}
    assert third == {"message": None, "error": errors[1]}
    assert _stored(program) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("message", "poll", "99"), "member 99 not found"),
        (("message", "wait", "99", "--timeout", "0"), "member 99 not found"),
        (("message", "listen", "99"), "member 99 not found"),
        (("message", "ack", "99"), "message 99 not found"),
        (("message", "show", "99"), "message 99 not found"),
        (("message", "send", "--from", "1", "--to", "99", "x"), "member 99 not found"),
        (("message", "send", "--from", "99", "--to", "1", "x"), "member 99 not found"),
        (("message", "send", "--from", "1", "--to", "5", "x"), "members 1 and 5 are not in the same fleet"),
        (("message", "broadcast", "--from", "99", "x"), "member 99 not found"),
        (("member", "show", "99"), "member 99 not found"),
        (("member", "delete", "99"), "member 99 not found"),
        (
            ("member", "delete", "1"),
            "member 1 is fleet 1's Director; use 'cafleet fleet delete 1'",
        ),
        (("member", "list", "99"), "fleet 99 not found"),
        (("fleet", "show", "99"), "fleet 99 not found"),
        (("fleet", "delete", "99"), "fleet 99 not found"),
    ],
)
def test_pinned_errors(program: Program, team: Team, arguments: tuple[str, ...], message: str) -> None:
    seed_team(program, "eve", fleet="other")
    result = program.run(*arguments)
    assert result == (1, "", f"Error: {message}\n")
    assert program.run(*arguments, "--json") == (1, "", f"Error: {message}\n")


def test_who_is_not_active_any_more(program: Program, team: Team) -> None:
    assert program.run("member", "delete", "3").stdout == "There was no pane.\nDeregistered member 3.\n"
    inactive = (1, "", "Error: member 3 is not active\n")
    assert program.run("message", "send", "--from", "1", "--to", "3", "x") == inactive
    assert program.run("message", "send", "--from", "3", "--to", "1", "x") == inactive
    assert program.run("member", "delete", "3") == inactive
    gone = (1, "", "Error: member 3 is no longer active\n")
    assert program.run("message", "wait", "3") == gone
    assert program.run("message", "listen", "3") == gone

    deleted = program.run("fleet", "delete", "1")
    assert deleted == (0, "Deleted fleet 1. Deregistered 2 members.\n", "")
    refused = (1, "", "Error: fleet 1 is deleted\n")
    assert program.run("message", "send", "--from", "1", "--to", "2", "x") == refused
    assert program.run("member", "list", "1") == refused
    assert program.run("fleet", "delete", "1").stdout == "Deleted fleet 1. Deregistered 0 members.\n"
    assert json.loads(program.run("fleet", "show", "1", "--json").stdout)["deleted_at"] is not None


def test_a_pane_that_is_another_members_is_pointed_out(program: Program, team: Team) -> None:
    directors_pane = program.pane_environ(SOCKET, SERVER_PID, "%1")
    arguments = ("message", "send", "--to", "3", "hi", "--from")
    warned = program.run(*arguments, "2", environ=directors_pane)
    assert warned.code == 0
    assert warned.stderr == "Warning: this pane is member 1, but the message says it is from 2.\n"
    assert program.run(*arguments, "1", environ=directors_pane).stderr == ""
    elsewhere = program.pane_environ(SOCKET, SERVER_PID + 1, "%1")
    assert program.run(*arguments, "2", environ=elsewhere).stderr == ""


def test_wait_returns_what_is_there_and_times_out_empty(program: Program, team: Team) -> None:
    assert program.run("message", "wait", "2", "--timeout", "0") == (0, "No messages found.\n", "")
    assert program.run("message", "wait", "2", "--timeout", "0.1", "--json") == (0, "[]\n", "")
    _send(program, "hi")
    waited = program.run("message", "wait", "2")
    assert waited == program.run("message", "poll", "2")


def test_lists_and_records(program: Program, team: Team) -> None:
    _send(program, "hi")
    listed = program.run("member", "list", "1").stdout.splitlines()
    assert listed[0].split("\t") == ["member_id", "name", "kind", "backend", "pane_id", "unread", "idle"]
    assert listed[1].split("\t")[:6] == ["1", "director", "director", "claude", "%1 (gone)", "0"]
    assert listed[2].split("\t")[:6] == ["2", "ann", "member", "-", "-", "1"]

    records = json.loads(program.run("member", "list", "1", "--json").stdout)
    assert list(records[0]) == [
        "member_id",
        "name",
        "kind",
        "unread",
        "idle",
        "last_sent",
        "last_recv",
        "last_ack",
        "placement",
    ]
    assert records[2]["idle"] is None
    assert records[2]["placement"] is None
    assert records[0]["placement"]["mux_pane_id"] == "%1"

    member = json.loads(program.run("member", "show", "2", "--json").stdout)
    assert {"kind", "skills", "placement"} <= set(member)
    assert "card_json" not in member
    assert "name: ann\n" in program.run("member", "show", "2").stdout

    seed_team(program, fleet="second")
    rows = program.run("fleet", "list").stdout.splitlines()
    assert [row.split("\t")[:4] for row in rows] == [
        ["fleet_id", "name", "director", "members"],
        ["2", "second", "4", "1"],
        ["1", "team", "1", "3"],
    ]
    fleets = json.loads(program.run("fleet", "list", "--json").stdout)
    assert [fleet["member_count"] for fleet in fleets] == [1, 3]
