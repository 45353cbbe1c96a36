"""Many senders at once, one pane (SPEC 14): every message stored, every line whole and typed once.

`make test-crowd` makes it 32 times 25 messages (a minute or two); by default there are fewer.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.faults.conftest import Team, expected_lines

SENDERS = 32
MESSAGES = int(os.environ.get("CROWD_MESSAGES", "3"))


@pytest.mark.timeout(900)
def test_32_senders_at_once(team: Team) -> None:
    def send_all(who: int) -> list[str]:
        errors = []
        for number in range(MESSAGES):
            sender = team.program.start(*team.send_words(f"sender {who} message {number}"))
            _, complaint = sender.communicate()
            if sender.returncode or b"Error" in complaint:
                errors.append(complaint.decode())
        return errors

    with ThreadPoolExecutor(SENDERS) as crowd:
        errors = [error for failed in crowd.map(send_all, range(SENDERS)) for error in failed]

    assert errors == []
    bodies = [row[0] for row in team.query("SELECT text FROM messages ORDER BY text")]
    assert bodies == sorted(f"sender {w} message {n}" for w in range(SENDERS) for n in range(MESSAGES))
    team.drain()
    assert sorted(team.lines()) == sorted(expected_lines(team).elements())
