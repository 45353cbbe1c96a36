"""Processes in different time zones agree on when something was (field case N1)."""

import json
from pathlib import Path

from tests.support.program import Program, seed_team

from cafleet.clock import parse_timestamp, utc_now


def test_ages_do_not_depend_on_where_a_process_thinks_it_is(tmp_path: Path) -> None:
    program = Program(tmp_path)
    assert program.run("setup").code == 0
    seed_team(program, "ann")
    before = utc_now()
    sent = program.run(
        *("message", "send", "--from", "2", "--to", "1", "hello", "--json"), environ={"TZ": "Asia/Shanghai"}
    )
    message = json.loads(sent.stdout)["message"]
    listed = program.run("member", "list", "1", "--json", environ={"TZ": "America/St_Johns"})
    (_, ann) = json.loads(listed.stdout)
    assert message["created_at"].endswith("+00:00")
    moment = parse_timestamp(message["created_at"])
    assert moment is not None
    assert before <= moment <= utc_now()
    assert ann["last_sent"] == message["created_at"]
    assert 0 <= ann["idle"] <= (utc_now() - before).total_seconds()
