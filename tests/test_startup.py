"""What the hot commands load: a start-up is paid by every message (SPEC 13)."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.program import Program, seed_team

PROBE = """
import sys
before = set(sys.modules)
from cafleet.cli.main import main
code = main(sys.argv[1:])
sys.stderr.write(repr([code, sorted(set(sys.modules) - before)]))
"""

ALL = {
    "cafleet",
    "cafleet.agents",
    "cafleet.agents.locations",
    "cafleet.agents.registry",
    "cafleet.assets",
    "cafleet.assets.guard",
    "cafleet.cli",
    "cafleet.cli.arguments",
    "cafleet.cli.commands",
    "cafleet.cli.envelope",
    "cafleet.cli.escapes",
    "cafleet.cli.main",
    "cafleet.cli.output",
    "cafleet.cli.parsing",
    "cafleet.clock",
    "cafleet.config",
    "cafleet.broker",
    "cafleet.db",
    "cafleet.db.asset_installs",
    "cafleet.db.connections",
    "cafleet.db.database",
    "cafleet.db.diagnosis",
    "cafleet.db.failures",
    "cafleet.db.head_schema",
    "cafleet.db.members",
    "cafleet.db.messages",
    "cafleet.db.records",
    "cafleet.db.turns",
    "cafleet.errors",
    "cafleet.light_typing",
    "cafleet.models",
    "cafleet.runtime",
}
READING = ALL | {"cafleet.broker.inbox", "cafleet.cli.inbox"}
SENDING = ALL | {
    "cafleet.broker.caller",
    "cafleet.broker.liveness",
    "cafleet.broker.messages",
    "cafleet.broker.text",
    "cafleet.cli.bodies",
    "cafleet.cli.message",
    "cafleet.db.fleets",
    "cafleet.db.notifications",
    "cafleet.delivery",
    "cafleet.delivery.drain",
    "cafleet.delivery.eligibility",
    "cafleet.multiplexer",
    "cafleet.multiplexer.own_pane",
    "cafleet.multiplexer.server_name",
}
HOT = {
    ("message", "send", "--from", "1", "--to", "1", "hi"): SENDING,
    ("message", "poll", "1"): READING,
    ("message", "ack", "1"): READING,
}
"""Command line to exactly the modules of ours that it loads. One more costs a tenth of a millisecond."""

STANDARD = {
    "__future__",
    "_collections",
    "_collections_abc",
    "_datetime",
    "_functools",
    "_opcode",
    "_operator",
    "_sqlite3",
    "_types",
    "annotationlib",
    "collections",
    "datetime",
    "enum",
    "errno",
    "functools",
    "gc",
    "importlib",
    "itertools",
    "keyword",
    "math",
    "operator",
    "reprlib",
    "sqlite3",
    "types",
    "warnings",
}
"""Packages of the standard library that they may load, in any Python that we run on."""

SLOW = {
    "argparse": "half of a bare start",
    "asyncio": "several bare starts",
    "contextlib": "only for what a few lines do as well",
    "dataclasses": "as much as a bare start, with inspect",
    "hashlib": "loads the cryptography library",
    "importlib.metadata": "three bare starts",
    "inspect": "a bare start",
    "json": "only for --json",
    "locale": "only for translations, which there are none of",
    "logging": "more than a bare start",
    "pathlib": "paths are strings here",
    "re": "a tenth of a hot command",
    "shutil": "loads every compression library",
    "socket": "waiters are told without Python's wrapper, or not by these commands",
    "subprocess": "only for what runs a multiplexer",
    "tempfile": "loads random and hashlib",
    "threading": "there is one thread",
    "traceback": "only when debugging",
    "typing": "a sixth of a hot command; see `light_typing`",
    "unicodedata": "only for tables on a terminal",
}
"""What an innocent import would bring in: why not."""


def _loaded(program: Program, *arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments], capture_output=True, env=program.environ, check=True
    )
    code, modules = ast.literal_eval(done.stderr.decode())
    assert code == 0, done.stdout
    return set(modules)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    made = Program(tmp_path)
    made.run("setup")
    seed_team(made)
    made.run("message", "send", "--from", "1", "--to", "1", "waiting")
    return made


@pytest.mark.parametrize("arguments", HOT, ids=lambda arguments: arguments[1])
def test_a_hot_command_loads_exactly_what_it_needs(program: Program, arguments: tuple[str, ...]) -> None:
    loaded = _loaded(program, *arguments)
    assert {name for name in loaded if name.split(".")[0] == "cafleet"} == HOT[arguments]
    assert {f"{name}: {SLOW[name]}" for name in loaded if name in SLOW} == set()
    others = {name.split(".")[0] for name in loaded} - {"cafleet"}
    assert others <= STANDARD


def test_json_is_loaded_when_it_is_asked_for(program: Program) -> None:
    loaded = _loaded(program, "message", "poll", "1", "--json")
    assert "json" in loaded
    assert {name for name in loaded if name.split(".")[0] == "cafleet"} == READING | {"cafleet.cli.json_line"}


def test_help_loads_no_command(program: Program) -> None:
    loaded = _loaded(program, "--help")
    assert not [name for name in loaded if name.startswith(("cafleet.db", "cafleet.broker"))]
