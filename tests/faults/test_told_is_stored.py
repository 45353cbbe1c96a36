"""What is stored is never told as an error: a database that cannot be read any more right after a write.

The web page, the MCP server and the dashboard store with the same broker calls as the command line, whose
every step is broken in `test_killed_at_every_step.py`; here is what they do around those calls.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

import pytest
from tests.support.database import held_by_another_process, rows
from tests.support.fleet_builder import World

from cafleet.broker import fleets, messages
from cafleet.broker.member_deletion import delete_member
from cafleet.db.database import Database, Reading, Writing
from cafleet.errors import DatabaseBusy
from cafleet.mcp_server import arguments, tools
from cafleet.models import Member
from cafleet.monitor.lease import Cadence, claim
from cafleet.runtime import Runtime
from cafleet.top import actions
from cafleet.web import messages as web_messages
from cafleet.web import monitor as web_monitor
from cafleet.web.requests import Call


class WritesOnce(Database):
    """Nothing can be read from it after its first write."""

    written = False

    def read(self) -> Reading:
        if self.written:
            raise DatabaseBusy
        return super().read()

    def write(self) -> Writing:
        return _Noting(self)


class _Noting(Writing):
    def __init__(self, database: WritesOnce) -> None:
        super().__init__(database)
        self._once = database

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._once.written = True


class Scene:
    """A fleet with a live loop and one message, and a runtime on a `WritesOnce`."""

    def __init__(self, directory: Path) -> None:
        self.world = World(directory)
        self.director = self.world.fleet()
        self.fleet_id = self.director.fleet_id
        self.member: Member = self.world.member(self.fleet_id)
        claim(self.world.runtime, self.fleet_id, Cadence())
        message = messages.send(
            self.world.runtime, self.member.member_id, self.director.member_id, "first"
        ).message
        self.message_id = message.message_id
        self.database = WritesOnce(self.world.database.path)
        self.runtime: Runtime = self.world.runtime_with(self.database)

    def web(self, body: object = None, path_id: int = 0) -> Call:
        return Call(self.fleet_id, path_id, {}, body)

    def mcp(self) -> tools.Call:
        return tools.Call(self.runtime, self.director.member_id, lambda: False)

    def words(self, recipient: object) -> dict[str, object]:
        return {"from_member_id": self.director.member_id, "to_member_id": recipient, "text": "hello"}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.database.close()
    made.world.close()


ACTIONS: dict[str, Callable[[Scene], object]] = {
    "web: send": lambda s: web_messages.send(s.runtime, s.web(s.words(s.member.member_id))),
    "web: broadcast": lambda s: web_messages.send(s.runtime, s.web(s.words("*"))),
    "web: ack": lambda s: web_messages.acknowledge(s.runtime, s.web(path_id=s.message_id)),
    "web: interval": lambda s: web_monitor.change(s.runtime, s.web({"wake_interval_seconds": 7})),
    "web: wake": lambda s: web_monitor.wake(s.runtime, s.web()),
    "mcp: send": lambda s: tools.send_message(
        s.mcp(), arguments.SendMessage(to_member_ids=[s.member.member_id], text="hello")
    ),
    "mcp: broadcast": lambda s: tools.broadcast(s.mcp(), arguments.Broadcast(text="hello")),
    "mcp: ack": lambda s: tools.ack_message(s.mcp(), arguments.AckMessage(message_ids=[s.message_id])),
    "top: wake": lambda s: actions.wake(s.fleet_id)(s.runtime),
}


def everything(scene: Scene) -> list[list[tuple[object, ...]]]:
    path = Path(scene.database.path)
    return [rows(path, "SELECT * FROM messages"), rows(path, "SELECT * FROM monitor_runtime")]


@pytest.mark.parametrize("name", ACTIONS)
def test_what_is_stored_is_told_as_stored(scene: Scene, name: str) -> None:
    before = everything(scene)
    ACTIONS[name](scene)
    assert scene.database.written
    assert everything(scene) != before


DELETIONS: dict[str, Callable[[Scene, Runtime], object]] = {
    "member": lambda s, runtime: delete_member(runtime, s.member.member_id),
    "fleet": lambda s, runtime: fleets.delete_fleet(runtime, s.fleet_id, kill_panes=True),
}


@pytest.mark.parametrize("what", DELETIONS)
def test_no_pane_is_closed_for_a_deletion_that_cannot_be_stored(scene: Scene, what: str) -> None:
    database = Database(scene.database.path, busy_timeout_seconds=0.05)
    runtime = scene.world.runtime_with(database)
    with held_by_another_process(Path(database.path), "BEGIN IMMEDIATE"), pytest.raises(DatabaseBusy):
        DELETIONS[what](scene, runtime)
    database.close()
    assert scene.world.multiplexer.killed == []
