"""A fleet's life with the installed program in a real tmux: what a newcomer does on the first day."""

import json
import re

from tests.end_to_end.conftest import World
from tests.support.waiting import wait_until

AT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00"


def test_from_an_empty_home_to_an_acknowledged_message(world: World) -> None:
    world.agent("ann")
    world.agent("bob")
    home = world.home / "fresh"
    home.mkdir()
    (home / ".config").symlink_to(world.home / ".config")
    script = f"""
        export HOME={home}
        cafleet setup &&
        cafleet fleet create --name team --coding-agent ann &&
        cafleet whoami &&
        cafleet member create --fleet-id 1 --name ann --description tests --coding-agent ann 'You are ann.' &&
        cafleet member create --fleet-id 1 --name bob --description reviews 'You are bob.' &&
        cafleet message send --from 1 --to 2 'please run the tests' &&
        cafleet message poll 2 &&
        cafleet message ack 1 &&
        cafleet member list 1
        echo "exit $?"
        exec sleep 1000
    """
    log = world.home / "log"
    world.server.add_pane("/bin/sh", "-c", f"({script}) > {log} 2>&1")
    wait_until(lambda: log.exists() and "exit " in log.read_text(), what="the end of the script")
    text = log.read_text()
    assert text.endswith("exit 0\n"), text
    assert "\n1 director=1\nfleet=1 member=1 name=director kind=director director=1\n" in text
    assert re.search(
        rf"2 ann backend=ann pane=%\d+\n3 bob backend=ann pane=%\d+\n"
        rf"Message sent\.\n\[1 \| from:1 \| {AT}\]\n"
        rf"  please run the tests\n\[1 \| from:1 \| {AT}\]\n  please run the tests\nMessage acknowledged\.\n",
        text,
    ), text
    assert "Warning" not in text
    (line,) = world.wait_for_submits("ann", 1)
    assert re.fullmatch(rf"\[cafleet msg 1 from 1 {AT}\] please run the tests", line)


def test_the_whole_of_a_message_through_a_pane(fleet: World) -> None:
    member_id, pane = fleet.member("ann")
    sent = json.loads(fleet.done("message", "send", "--from", "1", "--to", str(member_id), "hi", "--json"))
    assert sent["notification"] == {"state": "notified", "reason": None}
    (line,) = fleet.wait_for_submits("ann", 1)
    assert line == f"[cafleet msg 1 from 1 {sent['message']['created_at']}] hi"
    assert fleet.inbox(member_id) == [sent["message"]]
    assert fleet.done("whoami", pane=pane) == "fleet=1 member=2 name=ann kind=member director=1\n"
    assert fleet.done("message", "ack", "1").startswith("Message acknowledged.")
    assert fleet.inbox(member_id) == []
    # A second message is typed once, and so was the first.
    fleet.done("message", "send", "--from", "1", "--to", str(member_id), "again")
    assert len(fleet.wait_for_submits("ann", 2)) == 2
    assert [event for event in fleet.events("ann") if "esc" in event or "key" in event] == []


def test_agents_answer_each_other(fleet: World) -> None:
    ann, _ = fleet.member("ann", works=True)
    bob, _ = fleet.member("bob", works=True)
    fleet.done("message", "send", "--from", "1", "--to", str(ann), f"tell {bob}: reply: all is green")
    waited = json.loads(fleet.done("message", "wait", str(ann), "--timeout", "30", "--json"))
    assert waited or fleet.submitted("ann")
    wait_until(lambda: len(fleet.submitted("ann")) == 2, what="bob's answer")
    assert fleet.submitted("ann")[1].endswith("] all is green")
    assert fleet.submitted("bob")[0].endswith("] reply: all is green")


def test_the_director_reads_and_is_never_typed_at(fleet: World) -> None:
    ann, pane = fleet.member("ann")
    before = fleet.server.screen("%0")
    sent = json.loads(
        fleet.done("message", "send", "--from", str(ann), "--to", "1", "done", "--json", pane=pane)
    )
    assert sent["notification"]["state"] == "skipped"
    assert [message["text"] for message in json.loads(fleet.done("message", "wait", "1", "--json"))] == [
        "done"
    ]
    assert fleet.server.screen("%0") == before


def test_a_broadcast_reaches_every_pane(fleet: World) -> None:
    fleet.member("ann")
    fleet.member("bob")
    said = fleet.done("message", "broadcast", "--from", "1", "stop all work")
    assert said == "broadcast id=1 recipients=2 notified=2\n"
    for name in ("ann", "bob"):
        assert fleet.wait_for_submits(name, 1)[0].endswith("] stop all work")


def test_a_fleet_with_a_monitor(world: World) -> None:
    world.agent("standin")
    prompt = world.home / "monitor.md"
    prompt.write_text("Watch fleet {fleet_id} for {director_member_id} as {member_id}.")
    created = json.loads(
        world.done(
            *("fleet", "create", "--name", "watched", "--coding-agent", "standin"),
            *("--monitor-file", str(prompt), "--json"),
        )
    )
    assert created["director"]["placement"]["mux_pane_id"] == "%0"
    assert created["monitor"]["kind"] == "monitor"
    monitor_pane = created["monitor"]["placement"]["mux_pane_id"]
    world.server.wait_for_text(monitor_pane, "Watch fleet 1 for 1 as 2.")

    second = world.run(*world.creation("standin"), "--role", "monitor")
    assert second == (1, "", "Error: fleet 1 already has an active monitor (member 2)\n")

    deleted = world.done("fleet", "delete", "1", "--kill-panes")
    assert deleted == "Deleted fleet 1. Deregistered 2 members.\n"
    wait_until(lambda: world.server.panes() == ["%0"], what="the monitor's pane to close")


def test_deleting_a_member_closes_its_pane(fleet: World) -> None:
    ann, pane = fleet.member("ann")
    assert fleet.done("member", "delete", str(ann)) == f"Closed pane {pane}.\nDeregistered member {ann}.\n"
    wait_until(lambda: fleet.server.panes() == ["%0"], what="the pane to close")


def test_a_member_that_deletes_itself_gets_its_reply(fleet: World) -> None:
    reply, leave = fleet.home / "reply", fleet.home / "leave"
    fleet.script_agent(
        "leaver",
        f'until [ -e {leave} ]; do sleep 0.1; done; cafleet member delete "$1" > {reply} 2>&1; sleep 1000',
    )
    created = fleet.run(*fleet.creation("leaver"))
    assert created.code == 0, created
    pane = created.stdout.split()[-1].removeprefix("pane=")
    leave.touch()
    wait_until(lambda: fleet.server.panes() == ["%0"], what="the pane to close")
    assert reply.read_text() == f"Closing pane {pane}, the caller's own.\nDeregistered member 2.\n"


def test_outside_tmux(fleet: World) -> None:
    ann, _ = fleet.member("ann")
    assert fleet.run("fleet", "create", "--name", "x", "--coding-agent", "ann", pane=None) == (
        1,
        "",
        "Error: cafleet fleet create must run inside a tmux or herdr pane\n",
    )
    # A person's shell outside tmux can send: the pane's server is recorded.
    fleet.done("message", "send", "--from", "1", "--to", str(ann), "from outside", pane=None)
    assert fleet.wait_for_submits("ann", 1)[0].endswith("] from outside")
    assert fleet.run("whoami", pane=None).code == 1
    stranger = fleet.server.add_pane()
    nobody = fleet.run("whoami", pane=stranger)
    assert nobody == (1, "", "Error: this pane belongs to no active member\n")


def test_creations_that_fail_leave_nothing_behind(fleet: World) -> None:
    fleet.script_agent("broken", "echo cannot start; exit 3")
    fleet.define('[agents.missing]\ncommand = ["no-such-binary", "{prompt}"]\n', "missing")
    fleet.agent("ann")
    panes, roster = fleet.server.panes(), fleet.done("member", "list", "1")

    failed = fleet.run(*fleet.creation("broken"))
    assert failed.code == 1
    assert failed.stderr.startswith("Error: ")
    assert "cleanup failed" not in failed.stderr
    assert fleet.run(*fleet.creation("missing")) == (
        1,
        "",
        "Error: binary no-such-binary not found on PATH\n",
    )
    unknown = fleet.run(*fleet.creation("nobody"))
    assert unknown.code == 2
    assert unknown.stderr.startswith("Error: unknown coding agent 'nobody'; known: ")
    for prompt in ("Hello {name}", "a } b", " "):
        refused = fleet.run(*fleet.creation("ann", prompt))
        assert refused.code in (1, 2), refused
    assert fleet.run(*fleet.creation("ann"), "--cwd", "/nonexistent").code == 1

    wait_until(lambda: fleet.server.panes() == panes, what="the panes of failed creations to close")
    assert [row.split("\t")[:6] for row in fleet.done("member", "list", "1").splitlines()] == [
        row.split("\t")[:6] for row in roster.splitlines()
    ]


def test_a_question_at_the_start_is_reported_and_not_answered(fleet: World) -> None:
    fleet.agent("ann", "--fault", "dialog")
    created = fleet.run(*fleet.creation("ann"))
    assert created.code == 0
    assert created.stderr.startswith("Warning: member 2 in pane %")
    assert "needs attention" in created.stderr
    assert [event for event in fleet.events("ann") if "approved" in event or "key" in event] == []


def test_prompts_of_any_length_and_text_arrive(fleet: World) -> None:
    out = fleet.home / "prompt"
    fleet.script_agent("reader", f'printf %s "$2" > {out}.part; mv {out}.part {out}; sleep 1000')
    prompt = "-- $(touch X) `id` \\ 'é' \"日本\" ;\n" + "x" * 90_000 + ";"
    file = fleet.home / "prompt.md"
    file.write_text(prompt)
    result = fleet.run(*fleet.creation("reader")[:-1], "--file", str(file))
    assert result.code == 0, result
    wait_until(out.exists, what="the prompt")
    assert out.read_text() == prompt
