from datetime import UTC, datetime

from cafleet.monitor.journal import Journal

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


def _journal() -> tuple[Journal, list[str]]:
    lines: list[str] = []
    return Journal(lambda: NOW, lines.append), lines


def test_a_line_has_its_time() -> None:
    journal, lines = _journal()
    journal.say("woken")
    assert lines == ["2026-03-01T12:00:00+00:00 woken"]


def test_a_state_is_said_once_per_change() -> None:
    journal, lines = _journal()
    for text in ("a draft", "a draft", "a question", "a draft"):
        journal.state("member 3", text)
    journal.state("member 4", "a draft")
    assert [line.split(" ", 1)[1] for line in lines] == ["a draft", "a question", "a draft", "a draft"]


def test_details_are_no_change() -> None:
    journal, lines = _journal()
    journal.state("member 3", "message 1: a draft", "a draft")
    journal.state("member 3", "message 2: a draft", "a draft")
    assert len(lines) == 1


def test_the_end_of_a_state_is_said_where_there_was_one() -> None:
    journal, lines = _journal()
    journal.over("database", "it answers again")
    journal.state("database", "busy")
    journal.over("database", "it answers again")
    journal.over("database", "it answers again")
    journal.state("database", "busy")
    journal.over("database")
    assert [line.split(" ", 1)[1] for line in lines] == ["busy", "it answers again", "busy"]
