"""A fleet with a monitor, panes in memory, and a loop whose clocks only move when the test says so."""

from pathlib import Path

from tests.support.fleet_builder import World
from tests.support.memory_multiplexer import ComposerProgram, MemoryPane

from cafleet.clock import format_timestamp
from cafleet.db import members, messages, monitor_runtime
from cafleet.models import Member, MonitorRuntime
from cafleet.monitor.journal import Journal
from cafleet.monitor.lease import Cadence, Lease, claim
from cafleet.monitor.loop import Loop

NO_WAKES = Cadence(wake_interval_seconds=0)


class WatchedFleet(World):
    """`World` with one fleet: a Director, a monitor `watch` and a member `ann`."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.director = self.fleet()
        self.fleet_id = self.director.fleet_id
        self.watch = self.member(self.fleet_id, "watch", monitor=True)
        self.ann = self.member(self.fleet_id, "ann")
        self.monotonic_seconds = 1000.0
        self.lines: list[str] = []
        self.journal = Journal(self.clock, self._note)

    def loop(self, cadence: Cadence = NO_WAKES) -> Loop:
        """A loop that has just claimed the fleet; by default without scheduled wakes."""
        return self.loop_of(claim(self.runtime, self.fleet_id, cadence))

    def loop_of(self, lease: Lease) -> Loop:
        return Loop(self.runtime, lease, self.journal, monotonic=lambda: self.monotonic_seconds)

    def pass_time(self, seconds: float) -> None:
        """On both clocks."""
        self.clock.advance(seconds)
        self.monotonic_seconds += seconds

    def ticks(self, loop: Loop, count: int, *, seconds: float = 5) -> None:
        """So many ticks, each followed by its pause."""
        for _ in range(count):
            loop.tick()
            self.pass_time(seconds)

    @property
    def said(self) -> list[str]:
        """What the loop said, without times."""
        return [line.split(" ", 1)[1] for line in self.lines]

    def store(self, member: Member, text: str = "hello") -> int:
        """A message that nobody was told of yet."""
        with self.database.write() as conn:
            return messages.insert(
                conn,
                from_member_id=self.director.member_id,
                to_member_id=member.member_id,
                text=text,
                created_at=format_timestamp(self.clock()),
            )

    def row(self) -> MonitorRuntime:
        """The fleet's runtime row."""
        with self.database.read() as conn:
            found = monitor_runtime.get(conn, self.fleet_id)
        assert found is not None
        return found

    def pane_now(self, member: Member) -> MemoryPane:
        """The pane that the member is placed in now."""
        with self.database.read() as conn:
            found = members.get(conn, member.member_id)
        assert found is not None
        return self.multiplexer.pane(self.pane(found))

    def submitted(self, member: Member) -> list[str]:
        """The turns of the member's agent."""
        program = self.pane_now(member).program
        assert isinstance(program, ComposerProgram)
        return program.submitted

    def looks_at(self, member: Member) -> int:
        """How often the member's pane was looked at."""
        return self.multiplexer.calls.count(("look", self.pane(member).pane))

    def _note(self, line: str) -> None:
        self.lines.append(line)
