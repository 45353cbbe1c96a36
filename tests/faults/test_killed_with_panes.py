"""SIGKILL around every tmux call, and before every writing statement, of the commands that touch panes
(SPEC 14; field case P3); and the same commands failing at every one of their steps.

A call is met twice: the process dies before tmux is started, and right after, while tmux goes on alone.
"""

import json
import re
from collections.abc import Callable
from itertools import count

import pytest
from tests.faults.conftest import DIRECTOR, MEMBER, Team, expected_lines
from tests.support.breaking import Breaker, Broken

STEPS = r"^(spawn|file|end)|^sql (BEGIN IMMEDIATE|INSERT|UPDATE|DELETE|COMMIT)"
"""Where a kill leaves something else behind than at the step before."""

FAILING = "^(sql|spawn|file (?!os.remove))"
"""What can fail before there is something to clean up."""

CREATE = ("member", "create", "--fleet-id", "1", "--name", "new", "--description", "d", "--coding-agent")


def broken_runs(breaker: Breaker, *command: str, only: str = STEPS) -> Callable[[], Broken | None]:
    """A function that runs the command once more, broken one step later; None: it was not broken."""
    numbers = count(1)

    def run() -> Broken | None:
        done = breaker.run(*command, at=next(numbers), only=only)
        return done if done.step is not None else None

    return run


class Rows:
    """What the file and the server hold besides the team that every test starts with."""

    def __init__(self, team: Team) -> None:
        self.team, self._panes = team, set(team.server.panes())
        ((self._last_member,),) = team.query("SELECT max(member_id) FROM members")

    def active(self) -> list[tuple[int, str | None]]:
        """New active members and their panes."""
        found = self.team.query(
            f"""SELECT m.member_id, p.mux_pane_id FROM members m LEFT JOIN member_placements p
            ON p.member_id = m.member_id WHERE m.status = 'active' AND m.member_id > {self._last_member}"""  # noqa: S608
        )
        return [(int(str(member)), None if pane is None else str(pane)) for member, pane in found]

    def panes(self) -> set[str]:
        """New panes."""
        return set(self.team.server.panes()) - self._panes

    def close_panes(self) -> None:
        for pane in self.panes():
            self.team.server.run("kill-pane", "-t", pane, check=False)


def quick_agent(team: Team) -> str:
    """An agent that only lives, and needs no time to start."""
    config = team.program.home / ".config" / "cafleet" / "config.toml"
    table = '[agents.quick]\ncommand = ["sh", "-c", "exec sleep 1000", "{prompt}"]\nstart_seconds = 0\n'
    config.write_text(config.read_text() + "\n" + table)
    return "quick"


def test_a_killed_sender(team: Team) -> None:
    sent = []
    with Breaker(team.program) as breaker:
        run = broken_runs(breaker, *team.send_words("hello"))
        while broken := run():
            sent += re.findall(r"^\[(\d+) ", broken.stdout, re.MULTILINE)
            team.drain()
        team.drain()
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
    found = set()
    with Breaker(team.program) as breaker:
        for at in count(1):
            member_id, *_ = team.cafleet(*CREATE, agent, "Go").split()
            broken = breaker.run("member", "delete", member_id, at=at, only=STEPS)
            team.check_file()
            left = rows.active()
            found.add((len(left), len(rows.panes())))
            if left:
                team.cafleet("member", "delete", member_id)
            assert (rows.active(), rows.panes()) == ([], set()), broken.step
            if broken.step is None:
                break
    assert {(1, 1), (0, 0)} <= found


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
