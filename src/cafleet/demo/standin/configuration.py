"""The `config.toml` by which cafleet knows the stand-in agent: an example of a configured agent, too."""

import json
import os
import sys
from collections.abc import Sequence

AGENT = "standin"


def agent_configuration(*options: str, name: str = AGENT, python: str | None = None) -> str:
    """The text of a `config.toml` with one agent, `name`: the stand-in with `options`.

    `python`: the interpreter that can import cafleet; by default the running one.
    """
    program = os.path.abspath(python or sys.executable)
    return agent_table([program, "-m", "cafleet.demo.standin", *options], name)


def agent_table(program: Sequence[str], name: str = AGENT) -> str:
    """The table of one agent that is started by `program` and looks like the stand-in."""
    command = [*(part.replace("{", "{{").replace("}", "}}") for part in program)]
    command += ["--member-id", "{member_id}", "--", "{prompt}"]
    return f"""\
[agents.{name}]
command = {json.dumps(command)}
composer = '^> (?P<draft>.*)$'
composer_end = '^─+$'
awaiting_user = ['^ ∙ Enter to confirm · Esc to cancel$']
working = ['^ ∙ esc to interrupt']
settle_seconds = 0.02
start_seconds = 5
"""
