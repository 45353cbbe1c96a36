"""Fleets over a temporary database and a multiplexer in memory, without a process being started."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.support.database import fresh_database
from tests.support.memory_multiplexer import ComposerProgram, MemoryMultiplexer

from cafleet import config
from cafleet.broker import fleets, placements
from cafleet.broker.member_creation import MemberRequest, create_member
from cafleet.broker.spawning import Wish
from cafleet.db.database import Database
from cafleet.models import Member
from cafleet.multiplexer.base import Multiplexer, PaneAddress
from cafleet.multiplexer.server_name import server_name
from cafleet.runtime import Runtime

SOCKET = "/run/memory/default"
SERVER_PID = 100
SERVER = server_name(SOCKET, SERVER_PID)
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
PROGRAMS = ("claude", "codex")
"""Stand-ins that exist on the PATH of a world; they are never run."""


def claude_screen(composer: str) -> list[str]:
    """The bottom of an idle agent's screen, with `composer` typed into it."""
    rule = "─" * 80
    return ["● Ready.", "", rule, f"❯ {composer}", rule, "  ? for shortcuts"]


class Clock:
    """Time that moves by a millisecond with each look, and otherwise as the test says."""

    def __init__(self) -> None:
        self.moment = START
        self.step = timedelta(milliseconds=1)

    def __call__(self) -> datetime:
        self.moment += self.step
        return self.moment

    def advance(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


class World:
    """A runtime and what it stands on, below `directory`. Whoever makes it closes it."""

    def __init__(self, directory: Path, *, environ: dict[str, str] | None = None) -> None:
        self.directory = directory
        self.database: Database = fresh_database(directory)
        self.multiplexer = MemoryMultiplexer()
        self.clock = Clock()
        programs = directory / "bin"
        programs.mkdir()
        for name in PROGRAMS:
            (programs / name).write_text("#!/bin/false\n")
            os.chmod(programs / name, 0o755)
        self.environ = {
            "HOME": str(directory),
            "PATH": str(programs),
            "CAFLEET_DATABASE_URL": f"sqlite:///{self.database.path}",
            "TMUX": f"{SOCKET},{SERVER_PID},0",
        } | (environ or {})

    @property
    def runtime(self) -> Runtime:
        """The runtime of a process in the pane `multiplexer.here`."""
        return self.runtime_with(self.database)

    def runtime_with(self, database: Database) -> Runtime:
        """As another process in that pane has it, with a database object of its own."""
        environ = dict(self.environ)
        if self.multiplexer.here is not None:
            environ["TMUX_PANE"] = self.multiplexer.here.pane
        return Runtime(config.load(environ), database, self._multiplexer_for, self.clock)

    @property
    def here(self) -> PaneAddress:
        """The pane from which the calls come."""
        assert self.multiplexer.here is not None
        return self.multiplexer.here

    def stand_in(self, pane: PaneAddress | None = None) -> PaneAddress:
        """Let the calls that follow come from a pane: `pane`, or a new one."""
        self.multiplexer.here = pane or self.multiplexer.add_pane(server=SERVER)
        return self.here

    def fleet(self, name: str = "team", *, agent: str = "claude") -> Member:
        """A fleet whose Director runs in a new pane, from which the calls that follow come."""
        self.stand_in()
        return fleets.create_fleet(self.runtime, name, agent).director

    def request(self, fleet_id: int, name: str = "worker", *, monitor: bool = False) -> MemberRequest:
        """An ordinary request, to be varied with `_replace`."""
        return MemberRequest(
            fleet_id=fleet_id,
            name=name,
            description="Does what it is told",
            prompt="You are {member_id} of {fleet_id}; report to {director_member_id}.",
            directory=str(self.directory),
            monitor=monitor,
        )

    def member(self, fleet_id: int, name: str = "worker", *, monitor: bool = False) -> Member:
        """A member whose pane shows an idle agent."""
        request = self.request(fleet_id, name, monitor=monitor)
        member = create_member(self.runtime, request, start_wait_seconds=0).member
        pane = self.multiplexer.pane(self.pane(member))
        program = ComposerProgram(claude_screen)
        program.show(pane)
        pane.program = program
        return member

    def monitor_wish(self) -> Wish:
        """The monitor that a fleet may be created with."""
        return Wish("Watch fleet {fleet_id} as {member_id}.", str(self.directory))

    def pane(self, member: Member) -> PaneAddress:
        """The member's pane."""
        return placements.pane_of(member)[1]

    def unplace(self, member: Member) -> None:
        """Let the member's placement wait for a pane."""
        statement = "UPDATE member_placements SET mux_pane_id = NULL WHERE member_id = ?"
        with self.database.write() as conn:
            conn.execute(statement, (member.member_id,))

    def close(self) -> None:
        self.database.close()

    def _multiplexer_for(self, name: str) -> Multiplexer:
        assert name == self.multiplexer.name
        return self.multiplexer
