"""SIGKILL of a sender at any point (SPEC 14): what it reported is stored, and no line is lost."""

import random
import re
import signal
import time

import pytest
from tests.faults.conftest import Team, expected_lines
from tests.support.breaking import Breaker
from tests.support.waiting import wait_until

KILLS, ROUNDS = 200, 4
"""In rounds, so that they can run side by side."""


def typical_seconds(team: Team, breaker: Breaker) -> float:
    """How long an undisturbed send takes here, at best."""
    took = []
    for number in range(3):
        started = time.monotonic()
        assert breaker.run(*team.send_words(f"undisturbed {number}")).code == 0
        took.append(time.monotonic() - started)
    return min(took)


@pytest.mark.parametrize("_round", range(ROUNDS))
def test_a_killed_sender_loses_nothing_that_it_reported(team: Team, _round: int) -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    killed, reported, tries = 0, [], 0
    with Breaker(team.program) as breaker:
        longest = typical_seconds(team, breaker)
        while killed < KILLS // ROUNDS:
            tries += 1
            words = team.send_words(f"message {tries}")
            run = breaker.run(*words, after_seconds=chance.uniform(0, longest))
            in_time = run.code == -signal.SIGKILL
            # The machine's speed changes; most kills shall hit a send that is still at work.
            longest *= 1.03 if in_time else 0.9
            killed += in_time
            if "Message sent." in run.stdout:
                reported += re.findall(r"^\[(\d+) ", run.stdout, re.MULTILINE)
            # Somebody drains before the next one comes, so that each message meets one kill at most.
            team.drain(breaker)

    team.check_file()
    stored = {str(row[0]) for row in team.query("SELECT message_id FROM messages")}
    assert set(reported) <= stored, f"seed {seed}"
    wanted = expected_lines(team)
    typed = team.lines()
    assert set(typed) == set(wanted), f"seed {seed}: a line was lost, mangled or joined with another"
    assert max(typed.count(line) for line in wanted) <= 2, f"seed {seed}: a line was more than doubled"


def test_a_sender_killed_while_it_types_leaves_the_rest_to_the_next(team: Team) -> None:
    """The line that it pasted stands in the composer; the next one finishes it before its own."""
    (member_pane,) = set(team.server.panes()) - {team.program.environ["TMUX_PANE"]}
    sender = team.program.start(*team.send_words("first"))
    wait_until(lambda: "first" in team.server.screen(member_pane) or sender.poll() is not None)
    sender.send_signal(signal.SIGKILL)
    sender.communicate()
    team.cafleet(*team.send_words("second"))
    team.drain()
    assert set(team.lines()) == set(expected_lines(team))
    assert team.lines()[-1].endswith("] second")
