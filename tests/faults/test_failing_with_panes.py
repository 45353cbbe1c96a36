"""Commands that touch panes, failing at every one of their steps: what they say is what is stored and what
became of the pane (SPEC 4.4, 14). Creations are in `test_killed_with_panes.py`."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest
from tests.faults.broken_panes import CREATE, FAILING, Rows, broken_runs, quick_agent, second_fleet
from tests.faults.conftest import DIRECTOR, MEMBER, Team, expected_lines
from tests.support.breaking import Breaker, Broken


@contextmanager
def failing(team: Team) -> Iterator[Breaker]:
    with Breaker(team.program, fail=True) as breaker:
        yield breaker
    team.check_file()


def assert_told(run: Broken) -> None:
    """An error is one clear line, and the only thing that is said."""
    if run.code:
        assert re.fullmatch(r"Error: (?!internal).+\n", run.stderr), run
        assert run.stdout == "", run


def test_a_failing_send_tells_what_is_stored_and_what_is_typed(team: Team) -> None:
    codes, untold, messages = set(), 0, 0
    with failing(team) as breaker:
        run = broken_runs(breaker, *team.send_words("hello"), only=FAILING)
        while broken := run():
            assert_told(broken)
            messages += broken.code == 0
            assert team.query("SELECT count(*) FROM messages") == [(messages,)], broken
            assert team.pending() == (" not notified: " in broken.stderr), broken
            codes.add(broken.code)
            untold += team.pending()
            team.drain(breaker)
    assert codes == {0, 1}
    assert untold > 5
    typed, wanted = team.lines(), expected_lines(team)
    assert set(typed) == set(wanted)
    assert max(map(typed.count, wanted)) <= 2


@pytest.mark.parametrize("what", ["member", "fleet"])
def test_a_failing_deletion_can_be_repeated(team: Team, what: str) -> None:
    rows, agent = Rows(team), quick_agent(team)
    codes, target = set(), ""
    with failing(team) as breaker:
        for at in count(1):
            if not target and what == "member":
                target = breaker.run(*CREATE, agent, "Go").stdout.split()[0]
            target = target or second_fleet(breaker, agent)
            words = (what, "delete", target, *(["--kill-panes"] if what == "fleet" else []))
            run = breaker.run(*words, at=at, only=FAILING)
            codes.add(run.code)
            assert_told(run)
            assert bool(rows.active()) == (run.code != 0), run
            if run.code == 0:
                # A pane that could not be closed is told, even if it goes by itself in the end.
                assert len(rows.panes()) <= run.stderr.count("Warning: pane "), run
                rows.close_panes()
                target = ""
            if run.step is None:
                break
    assert codes == {0, 1}
    assert (rows.active(), rows.panes()) == ([], set())


def test_a_failing_respawn_leaves_no_second_pane(team: Team) -> None:
    pane = team.server.panes()[-1]
    team.server.run("kill-pane", "-t", pane)
    rows, codes = Rows(team), set()
    with failing(team) as breaker:
        run = broken_runs(breaker, "member", "respawn", str(MEMBER), "Again", only=FAILING)
        while broken := run():
            codes.add(broken.code)
            assert_told(broken)
            assert len(rows.panes()) == (broken.code == 0), broken
            if broken.code == 0:
                ((placed,),) = team.query(
                    f"SELECT mux_pane_id FROM member_placements WHERE member_id = {MEMBER}"  # noqa: S608
                )
                assert rows.panes() == {placed}, broken
            rows.close_panes()
    assert codes == {0, 1}


@pytest.mark.parametrize("words", [("prompt", "go on"), ("ping",)], ids=["prompt", "ping"])
def test_a_failing_prompt_or_ping_tells_whether_it_was_submitted(team: Team, words: tuple[str, ...]) -> None:
    verb, *text = words
    pane, codes = team.server.panes()[-1], set()
    with failing(team) as breaker:
        run = broken_runs(breaker, "member", verb, str(MEMBER), *text, only=FAILING)
        while broken := run():
            codes.add(broken.code)
            assert_told(broken)
            submitted = team.lines()
            assert len(submitted) == (broken.code == 0), broken
            team.log.write_text("")
            team.server.run("send-keys", "-t", pane, "C-u")
    assert codes == {0, 1}
    assert team.cafleet("message", "poll", str(DIRECTOR)) == "No messages found.\n"
