"""SIGKILL around every tmux call, and before every statement, of the commands that touch panes
(SPEC 14; field case P3); and the same commands failing at every one of their steps.

A call is met twice: the process dies before tmux is started, and right after, while tmux goes on alone.
"""

import json
import re
from itertools import count

import pytest
from tests.faults.broken_panes import (
    CREATE,
    FAILING,
    STEPS,
    Rows,
    broken_runs,
    quick_agent,
    second_fleet,
)
from tests.faults.conftest import DIRECTOR, MEMBER, Team, expected_lines
from tests.support.breaking import Breaker


def test_a_killed_sender(team: Team) -> None:
    sent = []
    with Breaker(team.program) as breaker:
        run = broken_runs(breaker, *team.send_words("hello"))
        while broken := run():
            sent += re.findall(r"^\[(\d+) ", broken.stdout, re.MULTILINE)
            team.drain(breaker)
        team.drain(breaker)
    team.check_file()
    stored = {str(row[0]) for row in team.query("SELECT message_id FROM messages")}
    assert set(sent) <= stored
    wanted, typed = expected_lines(team), team.lines()
    assert set(typed) == set(wanted)
    assert max(map(typed.count, wanted)) <= 2, "a line was more than doubled"


def test_a_killed_creation_leaves_a_member_that_can_be_deleted(team: Team) -> None:
    rows = Rows(team)
    found: set[str] = set()
    with Breaker(team.program) as breaker:
        run = broken_runs(breaker, *CREATE, quick_agent(team), "Go")
        while broken := run():
            team.check_file()
            left, panes = rows.active(), rows.panes()
            assert len(left) <= 1, broken.step
            assert len(panes) <= len(left), f"{broken.step}: a pane that nobody knows of"
            found.update("pending" if pane is None else "placed" for _, pane in left)
            for member_id, pane in left:
                assert pane is None or {pane} == panes, broken.step
                team.cafleet("member", "delete", str(member_id))
                assert rows.active() == []
                assert pane is None or rows.panes() == set()
            rows.close_panes()
    assert found == {"pending", "placed"}


def test_a_killed_bootstrap_left_a_whole_fleet_or_none(team: Team) -> None:
    prompt = team.program.home / "monitor.md"
    prompt.write_text("Watch {fleet_id}.")
    rows = Rows(team)
    found: set[int] = set()
    words = ("fleet", "create", "--name", "second", "--coding-agent", quick_agent(team))
    with Breaker(team.program) as breaker:
        run = broken_runs(breaker, *words, "--monitor-file", str(prompt))
        while broken := run():
            team.check_file()
            fleets = json.loads(team.cafleet("fleet", "list", "--json"))
            kinds = [
                [
                    entry["kind"]
                    for entry in json.loads(team.cafleet("member", "list", str(one["fleet_id"]), "--json"))
                ]
                for one in fleets
                if one["name"] == "second"
            ]
            assert kinds in ([], [["director", "monitor"]]), broken.step
            assert len(rows.panes()) <= 1, broken.step
            found.add(len(kinds))
            for one in fleets:
                if one["name"] == "second":
                    team.cafleet("fleet", "delete", str(one["fleet_id"]), "--kill-panes")
                    assert rows.panes() == set()
            rows.close_panes()
    assert found == {0, 1}


def test_a_killed_deletion_is_finished_by_the_next(team: Team) -> None:
    rows, agent = Rows(team), quick_agent(team)
    found, member_id = set(), ""
    with Breaker(team.program) as breaker:
        for at in count(1):
            member_id = member_id or breaker.run(*CREATE, agent, "Go").stdout.split()[0]
            broken = breaker.run("member", "delete", member_id, at=at, only=STEPS)
            team.check_file()
            left, panes = len(rows.active()), len(rows.panes())
            found.add((left, panes))
            assert not left or "Deleted" not in broken.stdout, f"{broken.step}: reported but not stored"
            if broken.step is not None and (left, panes) == (1, 1):
                continue  # Nothing has happened: the next one is the same member's.
            if left:
                assert breaker.run("member", "delete", member_id).code == 0
            assert (rows.active(), rows.panes()) == ([], set()), broken.step
            member_id = ""
            if broken.step is None:
                break
    assert {(1, 1), (0, 0)} <= found


def test_a_killed_deletion_of_a_fleet_is_finished_by_the_next(team: Team) -> None:
    rows, agent = Rows(team), quick_agent(team)
    found, fleet_id = set(), ""
    with Breaker(team.program) as breaker:
        for at in count(1):
            fleet_id = fleet_id or second_fleet(breaker, agent)
            words = ("fleet", "delete", fleet_id, "--kill-panes")
            broken = breaker.run(*words, at=at, only=STEPS)
            team.check_file()
            left, panes = len(rows.active()), len(rows.panes())
            found.add((left, panes))
            assert not left or "Deleted" not in broken.stdout, f"{broken.step}: reported but not stored"
            if broken.step is not None and (left, panes) == (2, 1):
                continue
            assert left or not panes, f"{broken.step}: a pane that nobody knows of"
            assert breaker.run(*words).code == 0
            assert (rows.active(), rows.panes()) == ([], set()), broken.step
            fleet_id = ""
            if broken.step is None:
                break
    assert found == {(2, 1), (2, 0), (0, 0)}


def test_a_killed_respawn_can_be_repeated(team: Team) -> None:
    (member_pane,) = set(team.server.panes()) - {team.program.environ["TMUX_PANE"]}
    team.server.run("kill-pane", "-t", member_pane)
    rows = Rows(team)
    with Breaker(team.program) as breaker:
        run = broken_runs(breaker, "member", "respawn", str(MEMBER), "Again")
        while broken := run():
            team.check_file()
            assert len(rows.panes()) <= 1, broken.step
            ((placed,),) = team.query(f"SELECT mux_pane_id FROM member_placements WHERE member_id = {MEMBER}")  # noqa: S608
            if placed in rows.panes():
                assert rows.panes() == {placed}, broken.step
            rows.close_panes()
    assert len(rows.panes()) == 1
    team.cafleet(*team.send_words("welcome back"))


@pytest.mark.parametrize("what", ["member", "fleet with a monitor"])
def test_a_creation_that_fails_at_any_step_leaves_nothing(team: Team, what: str) -> None:
    prompt = team.program.home / "monitor.md"
    prompt.write_text("Watch {fleet_id}.")
    agent = quick_agent(team)
    member = (*CREATE, agent, "Go")
    fleet = ("fleet", "create", "--name", "second", "--coding-agent", agent, "--monitor-file", str(prompt))
    rows = Rows(team)
    launches = team.program.database_path.parent / "launch"
    failed = 0
    with Breaker(team.program, fail=True) as breaker:
        run = broken_runs(breaker, *(member if what == "member" else fleet), only=FAILING)
        while broken := run():
            assert "internal error" not in broken.stderr, (broken.step, broken)
            left, panes = rows.active(), rows.panes()
            assert not launches.exists() or not list(launches.iterdir()), broken.step
            if broken.code == 0:  # What failed was not needed.
                assert len(panes) == 1, broken
                assert len(left) == (1 if what == "member" else 2), broken
                if what == "member":
                    team.cafleet("member", "delete", str(left[0][0]))
                else:
                    ((fleet_id,),) = team.query("SELECT max(fleet_id) FROM fleets")
                    team.cafleet("fleet", "delete", str(fleet_id), "--kill-panes")
                continue
            failed += 1
            assert broken.stderr.startswith("Error: "), broken
            assert (left, panes) == ([], set()), broken
            assert "cleanup failed" not in broken.stderr, broken
    assert failed > 10
    team.check_file()
    assert team.cafleet("message", "poll", str(DIRECTOR)) == "No messages found.\n"


@pytest.mark.parametrize("words", [("prompt", "go on {at}"), ("ping",)], ids=["prompt", "ping"])
def test_a_killed_prompt_or_ping_is_joined_with_nothing(team: Team, words: tuple[str, ...]) -> None:
    """What it pasted is finished by whoever types next, and counts as nobody's draft."""
    typed: list[str] = []
    with Breaker(team.program) as breaker:
        for at in count(1):
            verb, *text = (word.format(at=at) for word in words)
            broken = breaker.run("member", verb, str(MEMBER), *text, at=at, only=STEPS)
            typed += re.findall(r"^Typed for member 2: (.+)", broken.stdout, re.MULTILINE)
            if broken.step is None:
                break
            if broken.step.startswith("sql"):
                continue  # It had typed nothing.
            after = breaker.run(*team.send_words(f"after step {at}"))
            assert after.code == 0, after
            assert "draft" not in after.stderr, broken.step
            team.drain(breaker)
    own = [line for line in team.lines() if line not in expected_lines(team)]
    assert set(typed) <= set(own), "reported but not submitted"
    assert all(line.startswith("[cafleet ping]" if words == ("ping",) else "go on ") for line in own)
    assert len(own) == len(set(own)) or words == ("ping",), "a prompt was doubled"
    assert len(own) > len(typed), "some were finished by others"
