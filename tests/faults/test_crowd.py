"""Many senders at once, one pane (SPEC 14): every message stored, every line whole and typed once."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.faults.conftest import Team, expected_lines

SENDERS, MESSAGES = 32, 25


@pytest.mark.timeout(600)
def test_32_senders_of_25_messages_each(team: Team) -> None:
    def send_all(who: int) -> list[str]:
        done = [team.program.run(*team.send_words(f"sender {who} message {n}")) for n in range(MESSAGES)]
        return [result.stderr for result in done if result.code or "Error" in result.stderr]

    with ThreadPoolExecutor(SENDERS) as crowd:
        errors = [error for failed in crowd.map(send_all, range(SENDERS)) for error in failed]

    assert errors == []
    bodies = [row[0] for row in team.query("SELECT text FROM messages ORDER BY text")]
    assert bodies == sorted(f"sender {w} message {n}" for w in range(SENDERS) for n in range(MESSAGES))
    team.drain()
    assert sorted(team.lines()) == sorted(expected_lines(team).elements())
