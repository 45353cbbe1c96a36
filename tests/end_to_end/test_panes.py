"""What a Director does with members' panes: the installed program over a real tmux (SPEC 7.2, 9)."""

import json
from contextlib import ExitStack
from hashlib import sha256

import pytest
from tests.end_to_end.conftest import World
from tests.support.waiting import wait_until

from cafleet.clock import parse_timestamp
from cafleet.multiplexer.pane_lock import pane_lock


def test_prompt_and_ping(fleet: World) -> None:
    ann, _ = fleet.member("ann")
    assert fleet.done("member", "prompt", str(ann), "please go on") == "Typed for member 2: please go on\n"
    ping = "[cafleet ping] Poll your inbox: cafleet message poll 2"
    answer = json.loads(fleet.done("member", "ping", str(ann), "--json"))
    assert answer == {"member_id": 2, "line": ping, "notification": {"state": "notified", "reason": None}}
    assert fleet.wait_for_submits("ann", 2) == ["please go on", ping]
    fleet.done("member", "prompt", str(ann), "--", "--help $(touch planted); `x`;")
    assert fleet.wait_for_submits("ann", 3)[-1] == "--help $(touch planted); `x`;"
    assert fleet.inbox(ann) == [], "nothing of this is a message"
    assert not list(fleet.home.glob("planted"))


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("dialog", "member 2 is at a question"), ("draft=please look", "a draft stands in its composer")],
)
def test_prompt_and_ping_say_why_nothing_was_typed(fleet: World, fault: str, reason: str) -> None:
    ann, pane = fleet.member("ann", "--fault", fault) if fault != "dialog" else _asking(fleet, "ann")
    before = fleet.server.screen(pane)
    refused = f"Error: nothing was submitted to member 2 (deferred): {reason}; try again\n"
    assert fleet.run("member", "prompt", str(ann), "go on") == (1, "", refused)
    result = fleet.run("member", "ping", str(ann), "--json")
    assert (result.code, result.stderr) == (1, refused)
    assert json.loads(result.stdout)["notification"] == {"state": "deferred", "reason": reason}
    assert fleet.server.screen(pane) == before
    assert [event for event in fleet.events("ann") if "ready" not in event] == []


def _asking(fleet: World, name: str) -> tuple[int, str]:
    fleet.agent(name, "--fault", "dialog")
    created = fleet.run(*fleet.creation(name))
    assert created.code == 0
    return 2, created.stdout.split("pane=")[1].strip()


def test_a_busy_agent_is_prompted(fleet: World) -> None:
    ann, _ = fleet.member("ann", "--fault", "busy")
    fleet.done("member", "prompt", str(ann), "after that, the tests")
    assert fleet.wait_for_submits("ann", 1) == ["after that, the tests"]
    assert [event for event in fleet.events("ann") if "esc" in event] == []


def test_a_pane_whose_lock_is_taken(fleet: World) -> None:
    ann, pane = fleet.member("ann")
    data = str(fleet.program.database_path.parent)
    with ExitStack() as stack:
        stack.enter_context(pane_lock(data, "tmux", fleet.server.address(pane)))
        refused = "Error: nothing was submitted to member 2 (deferred): pane is busy; try again\n"
        assert fleet.run("member", "ping", str(ann)) == (1, "", refused)
    fleet.done("member", "ping", str(ann))


def test_panes_that_are_gone(fleet: World) -> None:
    ann, pane = fleet.member("ann")
    fleet.server.run("kill-pane", "-t", pane)
    gone = f"Error: pane {pane} is gone; 'cafleet member respawn {ann} PROMPT' opens a new one\n"
    assert fleet.run("member", "capture", str(ann)) == (1, "", gone)
    assert fleet.run("member", "focus", str(ann)) == (1, "", gone)
    result = fleet.run("member", "ping", str(ann))
    told = f"(failed): pane {pane} is gone; 'cafleet doctor' names the mend"
    assert result == (1, "", f"Error: nothing was submitted to member 2 {told}\n")
    fleet.server.kill_server()
    for verb in ("capture", "focus", "ping"):
        result = fleet.run("member", verb, str(ann), pane=None)
        assert (result.code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
        assert "is gone" in result.stderr
    assert fleet.server.panes() == [], "no server was started"


def test_strangers_after_a_restart(fleet: World) -> None:
    """Field case D1: the same number on another server."""
    ann, pane = fleet.member("ann")
    fleet.server.kill_server()
    fleet.server.start()
    fleet.server.add_pane("/bin/sh", "-c", "echo secret; exec cat")
    assert pane in fleet.server.panes()
    fleet.server.wait_for_text(pane, "secret")
    for arguments in (
        ("ping", str(ann)),
        ("prompt", str(ann), "x"),
        ("capture", str(ann)),
        ("focus", str(ann)),
    ):
        result = fleet.run("member", *arguments)
        assert (result.code, result.stdout) == (1, ""), result
    assert fleet.server.screen(pane) == "secret"


def test_the_director_is_not_typed_at(fleet: World) -> None:
    for arguments in (("prompt", "1", "hello"), ("ping", "1")):
        assert fleet.run("member", *arguments) == (
            1,
            "",
            "Error: member 1 is the Director and is never typed at; send it a message instead\n",
        )


def test_prompts_that_are_no_line(fleet: World) -> None:
    ann, _ = fleet.member("ann")
    for text in ("two\nlines", "", "x" * 700, "\x1b[201~"):
        result = fleet.run("member", "prompt", str(ann), text)
        assert (result.code, result.stdout) == (1, "")
        assert result.stderr.startswith("Error: ")
    assert fleet.run("member", "prompt", str(ann)).code == 2
    assert fleet.submitted("ann") == []


def test_a_capture_is_text(fleet: World) -> None:
    """Field cases O1 and O3: joined, stripped, cut, and nothing but text."""
    script = (
        r"printf '%s\n' start; printf 'x%.0s' $(seq 1 200); printf '\n'; "
        r"printf '\033[31mred\033[0m  \033]52;c;aGk=\007\033]8;;http://h\007link\033]8;;\007'; "
        r"printf '\a\302\233.   \n\n\n'; "
        "exec cat"
    )
    fleet.script_agent("painter", script)
    created = fleet.run(*fleet.creation("painter"))
    fleet.server.wait_for_text(created.stdout.split("pane=")[1].strip(), "link")
    text = fleet.done("member", "capture", "2")
    assert text == "start\n" + "x" * 200 + "\nred  link.\n"
    colours = fleet.done("member", "capture", "2", "--ansi")
    assert "\x1b[31mred" in colours
    assert "\x1b]" not in colours
    assert "\a" not in colours

    record = json.loads(fleet.done("member", "capture", "2", "--lines", "1", "--json"))
    assert list(record) == ["member_id", "captured_at", "content_sha256", "content"]
    assert record["content"] == "red  link."
    assert record["content_sha256"] == sha256(b"red  link.").hexdigest()
    assert parse_timestamp(record["captured_at"]) is not None


def test_a_capture_reaches_into_history_only_as_far_as_asked(fleet: World) -> None:
    fleet.script_agent("counter", "seq 1 500; exec cat")
    created = fleet.run(*fleet.creation("counter"))
    fleet.server.wait_for_text(created.stdout.split("pane=")[1].strip(), "500")
    assert fleet.done("member", "capture", "2").split() == [str(n) for n in range(461, 501)]
    assert fleet.done("member", "capture", "2", "--lines", "120").split() == [str(n) for n in range(381, 501)]
    assert fleet.run("member", "capture", "2", "--lines", "0").code == 2


def test_a_scan(fleet: World) -> None:
    ann, pane = fleet.member("ann")
    _, lost = fleet.member("bob")
    fleet.server.run("kill-pane", "-t", lost)
    fleet.done("member", "prompt", str(ann), "[1 director | director | x | pane %0]")
    fleet.wait_for_submits("ann", 1)
    found = json.loads(fleet.done("monitor", "scan", "1", "--lines", "10", "--json"))
    assert [list(one) for one in found] == [
        ["member_id", "name", "kind", "pane_id", "problem", "captured_at", "content_sha256", "content"]
    ] * 3
    assert [one["member_id"] for one in found] == [1, 2, 3]
    assert [one["problem"] for one in found] == [None, None, f"pane {lost} is gone"]
    assert found[1]["content_sha256"] == sha256(found[1]["content"].encode()).hexdigest()
    assert found[2]["content"] is found[2]["captured_at"] is found[2]["content_sha256"] is None

    lines = fleet.done("monitor", "scan", "1").splitlines()
    headers = [line for line in lines if line and not line.startswith(" ")]
    assert headers == [
        "[1 director | director | director | pane %0]",
        f"[2 ann | member | ann | pane {pane}]",
        f"[3 bob | member | bob | pane {lost} | no capture: pane {lost} is gone]",
    ]


def test_focus_selects_the_pane(fleet: World) -> None:
    ann, pane = fleet.member("ann")
    fleet.server.run("select-pane", "-t", "%0")
    assert fleet.done("member", "focus", str(ann)) == f"Pane {pane} of member 2 has the focus.\n"
    assert fleet.server.show("#{pane_active}", pane) == "1"


def test_respawn_keeps_id_inbox_and_history(fleet: World) -> None:
    ann, pane = fleet.member("ann")
    fleet.done("message", "send", "--from", "1", "--to", str(ann), "before")
    still = fleet.run("member", "respawn", str(ann), "Go on.")
    assert still.stderr == f"Error: member 2 still has its pane ({pane}); only a lost pane is replaced\n"
    fleet.server.run("kill-pane", "-t", pane)
    prompt = fleet.home / "again.md"
    prompt.write_text("You are member {member_id} of fleet {fleet_id} again.")
    again = json.loads(fleet.done("member", "respawn", str(ann), "--file", str(prompt), "--json"))
    assert (again["member_id"], again["name"]) == (ann, "ann")
    new_pane = again["placement"]["mux_pane_id"]
    assert new_pane != pane
    fleet.server.wait_for_text(new_pane, "You are member 2 of fleet 1 again.")
    assert [message["text"] for message in fleet.inbox(ann)] == ["before"]
    assert fleet.done("whoami", pane=new_pane) == "fleet=1 member=2 name=ann kind=member director=1\n"


def test_respawn_where_an_agent_exited_to_a_shell(fleet: World) -> None:
    """Field case P1: the pane is there, and all that it shows is a prompt."""
    once = "test -e came && exec cat; touch came; sleep 0.5; exec /bin/sh -i"
    fleet.script_agent("shelled", once)
    pane = fleet.run(*fleet.creation("shelled")).stdout.split("pane=")[1].strip()
    wait_until(lambda: fleet.server.show("#{pane_current_command}", pane) == "sh", what="the shell")
    fleet.run("message", "send", "--from", "1", "--to", "2", "hello")
    shown = fleet.done("member", "show", "2").splitlines()[-1]
    assert shown == f"placement: shelled in pane {pane} (exited: a shell is there; 1 held)"
    assert json.loads(fleet.done("member", "show", "2", "--json"))["placement"]["pane_state"] == "exited"

    again = fleet.run("member", "respawn", "2", "You are back.")
    assert again.code == 0, again
    assert again.stderr.startswith(f"Warning: pane {pane}, its old one, is left open: a shell is there.\n")
    new_pane = again.stdout.split("pane=")[1].strip()
    assert {pane, new_pane} <= set(fleet.server.panes())
    assert fleet.done("member", "show", "2").splitlines()[-1] == (
        f"placement: shelled in pane {new_pane} (1 held: nobody has typed it yet; its pane is free)"
    )


def test_member_list_after_exits(fleet: World) -> None:
    """Field cases D3, E3 and P1: a pane that exists is not an agent that lives."""
    fleet.server.run("set-option", "-g", "remain-on-exit", "on")
    fleet.script_agent("failing", "sleep 1; exit 3")
    fleet.script_agent("shelled", "sleep 1; exec /bin/sh -i")
    panes = [
        fleet.run(*fleet.creation(name)).stdout.split("pane=")[1].strip() for name in ("failing", "shelled")
    ]
    ann, _ = fleet.member("ann")
    wait_until(lambda: fleet.server.show("#{pane_dead}", panes[0]) == "1", what="the exit")
    wait_until(lambda: fleet.server.show("#{pane_current_command}", panes[1]) == "sh", what="the shell")
    fleet.run("message", "send", "--from", "1", "--to", "3", "hello")
    cells = [row.split("\t")[4] for row in fleet.done("member", "list", "1").splitlines()[2:]]
    assert cells[0] in (f"{panes[0]} (exited 3)", f"{panes[0]} (exited)")  # tmux loses some exit codes.
    assert cells[1] == f"{panes[1]} (exited: a shell is there; 1 held)"
    assert cells[2].startswith("%")
    assert "(" not in cells[2]
    records = json.loads(fleet.done("member", "list", "1", "--json"))
    assert [one["placement"]["pane_state"] for one in records] == ["alive", "exited", "exited", "alive"]
    assert records[2]["placement"]["held"] == 1
    assert records[2]["placement"]["why_held"] == "its agent has exited"
    assert records[3]["member_id"] == ann
