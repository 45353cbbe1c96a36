import os
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType

import pytest
from tests.support.fleet_builder import World
from tests.support.interrupted import Interrupted

from cafleet.broker import fleets, inbox, members, messages
from cafleet.broker.spawning import Wish
from cafleet.db import members as stored
from cafleet.db.database import Database, Writing
from cafleet.errors import (
    BinaryNotFound,
    DatabaseFull,
    FleetNotFound,
    InvalidInput,
    MultiplexerError,
    NotInMultiplexer,
    PaneBusy,
    UnknownAgent,
    UsageError,
)
from cafleet.launch import StartState
from cafleet.models import MemberKind, MemberStatus
from cafleet.multiplexer.pane_lock import lock_path, pane_lock


def counts(world: World) -> dict[str, int]:
    tables = ("fleets", "members", "member_placements", "messages")
    with world.database.read() as conn:
        return {t: conn.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in tables}  # noqa: S608


NOTHING = {"fleets": 0, "members": 0, "member_placements": 0, "messages": 0}

# -- creating ----------------------------------------------------------------------------------


def test_a_fleet_has_its_creators_pane_as_director(world: World) -> None:
    pane = world.stand_in()
    made = fleets.create_fleet(world.runtime, "team", "codex")
    assert (made.fleet.name, made.fleet.deleted_at) == ("team", None)
    assert made.fleet.director_member_id == made.director.member_id
    assert made.director.kind is MemberKind.DIRECTOR
    assert made.director.card_json == "{}"
    assert made.monitor is None
    assert made.director.placement is not None
    assert world.pane(made.director) == pane
    assert (made.director.placement.backend, made.director.placement.coding_agent) == ("tmux", "codex")


def test_a_monitor_comes_with_its_pane(world: World) -> None:
    world.stand_in()
    made = fleets.create_fleet(world.runtime, "team", "claude", world.monitor_wish(), start_wait_seconds=0)
    assert made.monitor is not None
    assert made.monitor.kind is MemberKind.MONITOR
    launch = world.multiplexer.pane(world.pane(made.monitor)).launch
    assert launch is not None
    assert launch.argv[-1] == f"Watch fleet {made.fleet.fleet_id} as {made.monitor.member_id}."
    assert "Bash(cafleet monitor scan *)" in launch.argv
    assert made.start is not None
    assert made.start.state is StartState.NOT_RECOGNISED


def test_outside_a_multiplexer_there_is_no_fleet(world: World) -> None:
    text = r"^cafleet fleet create must run inside a tmux or herdr pane$"
    with pytest.raises(NotInMultiplexer, match=text):
        fleets.create_fleet(world.runtime, "team", "claude")
    del world.environ["TMUX"]
    with pytest.raises(NotInMultiplexer, match=text):
        fleets.create_fleet(world.runtime, "team", "claude")
    assert counts(world) == NOTHING


def test_what_is_wrong_is_found_before_anything_is_done(world: World) -> None:
    world.stand_in()
    wish = world.monitor_wish()
    with pytest.raises(InvalidInput):
        fleets.create_fleet(world.runtime, "all", "claude")
    with pytest.raises(UnknownAgent):
        fleets.create_fleet(world.runtime, "team", "nobody")
    with pytest.raises(UsageError, match="effort"):
        fleets.create_fleet(world.runtime, "team", "claude", wish._replace(effort="heroic"))
    with pytest.raises(UsageError, match="role"):
        fleets.create_fleet(world.runtime, "team", "claude", wish._replace(prompt="{role}"))
    with pytest.raises(InvalidInput, match="no such directory"):
        fleets.create_fleet(world.runtime, "team", "claude", wish._replace(directory="/does/not/exist"))
    (world.directory / "bin" / "claude").unlink()
    with pytest.raises(BinaryNotFound, match=r"^binary claude not found on PATH$"):
        fleets.create_fleet(world.runtime, "team", "claude", wish)
    assert counts(world) == NOTHING
    assert [method for method, _ in world.multiplexer.calls if method == "open_pane"] == []


def test_a_pane_that_cannot_be_opened_leaves_no_fleet(world: World) -> None:
    world.stand_in()
    world.multiplexer.fail("open_pane", MultiplexerError("no space for new pane"))
    with pytest.raises(MultiplexerError, match="no space") as caught:
        fleets.create_fleet(world.runtime, "team", "claude", world.monitor_wish())
    assert caught.value.cleanup_failures == []
    assert counts(world) == NOTHING


def test_a_failure_after_the_pane_exists_closes_it_again(world: World) -> None:
    world.stand_in()
    world.multiplexer.fail("look", MultiplexerError("tmux: odd answer"))
    with pytest.raises(MultiplexerError, match="odd answer"):
        fleets.create_fleet(world.runtime, "team", "claude", world.monitor_wish())
    assert counts(world) == NOTHING
    assert [pane.address for pane in world.multiplexer.panes(world.here.server or "")] == [world.here]


def test_what_could_not_be_undone_is_told_after_the_primary_error(world: World) -> None:
    world.stand_in()
    world.multiplexer.fail("look", MultiplexerError("tmux: odd answer"))
    world.multiplexer.fail("kill_pane", MultiplexerError("tmux: no answer"))
    with pytest.raises(MultiplexerError, match="odd answer") as caught:
        fleets.create_fleet(world.runtime, "team", "claude", world.monitor_wish())
    assert caught.value.cleanup_failures == ["cleanup failed for pane %1: tmux: no answer"]
    assert counts(world) == NOTHING


class FullDisk(Database):
    """Whose every transaction fails when it commits."""

    def write(self) -> Writing:
        return FailingCommit(self)


class FailingCommit(Writing):
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        full = DatabaseFull("team.db")
        super().__exit__(DatabaseFull, full, trace)
        raise full


def test_a_commit_that_fails_closes_the_pane_too(world: World) -> None:
    world.stand_in()
    database = FullDisk(world.database.path)
    with pytest.raises(DatabaseFull):
        fleets.create_fleet(world.runtime_with(database), "team", "claude", world.monitor_wish())
    database.close()
    assert counts(world) == NOTHING
    assert len(world.multiplexer.killed) == 1


def test_an_agent_that_ends_at_once_is_a_failed_creation(world: World) -> None:
    world.stand_in()

    def end(method: str, pane: str) -> None:
        if method == "look":
            made = world.multiplexer.panes(world.here.server or "")[-1]
            made.rows = ["error: not logged in", ""]
            world.multiplexer.end_program(made.address, exit_status=3)

    world.multiplexer.before = end
    with pytest.raises(
        Exception, match=r"claude ended right after it was started: exit status 3: error: not"
    ):
        fleets.create_fleet(world.runtime, "team", "claude", world.monitor_wish())
    assert counts(world) == NOTHING
    assert len(world.multiplexer.killed) == 1


def test_one_pane_may_direct_several_fleets(world: World) -> None:
    world.stand_in()
    ids = [fleets.create_fleet(world.runtime, name, "claude").fleet.fleet_id for name in ("a", "b")]
    assert [one.fleet.fleet_id for one in fleets.list_fleets(world.runtime)] == ids[::-1]


# -- reading -----------------------------------------------------------------------------------


def test_lists_have_live_fleets_newest_first_with_their_size(world: World) -> None:
    first = world.fleet("first")
    world.member(first.fleet_id)
    second = world.fleet("second")
    lost = world.fleet("lost")
    with world.database.write() as conn:
        conn.execute("DELETE FROM member_placements WHERE member_id = ?", (lost.member_id,))
    gone = world.fleet("gone")
    fleets.delete_fleet(world.runtime, gone.fleet_id)

    found = fleets.list_fleets(world.runtime)

    assert [(one.fleet.name, one.member_count) for one in found] == [("second", 1), ("first", 2)]
    assert fleets.get_fleet(world.runtime, gone.fleet_id).deleted_at is not None
    assert fleets.get_fleet(world.runtime, second.fleet_id).name == "second"
    with pytest.raises(FleetNotFound, match=r"^fleet 99 not found$"):
        fleets.get_fleet(world.runtime, 99)


# -- deleting ----------------------------------------------------------------------------------


def test_deleting_a_fleet_deregisters_everybody_keeps_messages_and_panes(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    other = world.fleet("other")
    sent = messages.send(world.runtime, director.member_id, worker.member_id, "x").message
    with world.database.write() as conn:
        conn.execute("INSERT INTO monitor_runtime (fleet_id, pid) VALUES (?, 1)", (director.fleet_id,))

    done = fleets.delete_fleet(world.runtime, director.fleet_id)

    assert (done.deregistered, done.panes) == (2, ())
    assert done.fleet.deleted_at is not None
    for member_id in (director.member_id, worker.member_id):
        member = members.get_member(world.runtime, member_id)
        assert (member.status, member.placement) == (MemberStatus.DEREGISTERED, None)
    assert inbox.show(world.runtime, sent.message_id) == sent
    assert world.multiplexer.killed == []
    assert members.get_member(world.runtime, other.member_id) == other
    with world.database.read() as conn:
        assert conn.execute("SELECT count(*) FROM monitor_runtime").fetchone() == (0,)


def test_deleting_again_changes_nothing(world: World) -> None:
    director = world.fleet()
    first = fleets.delete_fleet(world.runtime, director.fleet_id)
    again = fleets.delete_fleet(world.runtime, director.fleet_id, kill_panes=True)
    assert (again.fleet, again.deregistered, again.panes) == (first.fleet, 0, ())
    with pytest.raises(FleetNotFound):
        fleets.delete_fleet(world.runtime, 99)


def test_panes_are_closed_on_request_but_for_the_directors_and_the_callers(world: World) -> None:
    director = world.fleet()
    a, b, caller = (world.member(director.fleet_id, name) for name in ("a", "b", "caller"))
    bystander = world.multiplexer.add_pane(server=world.here.server or "")
    world.stand_in(world.pane(caller))

    done = fleets.delete_fleet(world.runtime, director.fleet_id, kill_panes=True)

    assert [closing.member_id for closing in done.panes] == [a.member_id, b.member_id]
    assert world.multiplexer.killed == [world.pane(a), world.pane(b)]
    assert not world.multiplexer.pane(bystander).dead


def test_a_pane_that_cannot_be_closed_does_not_save_the_others(world: World) -> None:
    director = world.fleet()
    a, b = (world.member(director.fleet_id, name) for name in ("a", "b"))
    world.multiplexer.fail("kill_pane", MultiplexerError("no answer"))
    done = fleets.delete_fleet(world.runtime, director.fleet_id, kill_panes=True)
    assert [closing.problem for closing in done.panes] == ["no answer", None]
    assert world.multiplexer.killed == [world.pane(b)]
    assert members.get_member(world.runtime, a.member_id).status is MemberStatus.DEREGISTERED


def test_fleets_can_be_deleted_from_outside_a_multiplexer_and_after_its_end(world: World) -> None:
    director = world.fleet()
    world.member(director.fleet_id)
    world.multiplexer.stop_server(world.here.server or "")
    del world.environ["TMUX"]
    world.multiplexer.here = None
    done = fleets.delete_fleet(world.runtime, director.fleet_id, kill_panes=True)
    assert (done.deregistered, len(done.panes)) == (2, 1)


def test_a_fleet_is_deleted_under_the_locks_of_its_panes(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    data = world.runtime.config.data_directory
    seen = []

    def look(method: str, pane: str) -> None:
        if method == "kill_pane":
            for member in (director, worker):
                with pytest.raises(PaneBusy), pane_lock(data, "tmux", world.pane(member), timeout_seconds=0):
                    pass
                seen.append(member.member_id)

    world.multiplexer.before = look
    fleets.delete_fleet(world.runtime, director.fleet_id, kill_panes=True)
    assert seen == [director.member_id, worker.member_id]


def test_a_member_that_moves_while_its_fleet_is_deleted_is_closed_where_it_is(world: World) -> None:
    """Under the lock of its new pane; the old one may be somebody else's by now."""
    director = world.fleet()
    worker = world.member(director.fleet_id)
    old, new = world.pane(worker), world.multiplexer.add_pane(server=world.here.server or "")
    data, unlocked = world.runtime.config.data_directory, []

    def move() -> None:
        assert worker.placement is not None
        with world.database.write() as conn:
            stored.move_placement(conn, worker.placement._replace(mux_pane_id=new.pane))

    def look(method: str, pane: str) -> None:
        if method == "kill_pane":
            with suppress(PaneBusy), pane_lock(data, "tmux", new, timeout_seconds=0):
                unlocked.append(pane)

    world.multiplexer.before = look
    with closing(Interrupted(world.database.path, 1, move)) as database:
        fleets.delete_fleet(world.runtime_with(database), director.fleet_id, kill_panes=True)
        assert database.interrupted
    assert world.multiplexer.killed == [new]
    assert not world.multiplexer.pane(old).dead
    assert unlocked == []


def test_a_member_that_goes_while_its_fleet_is_deleted_takes_its_pane_out_of_it(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)

    def go() -> None:
        with world.database.write() as conn:
            stored.deregister(conn, worker.member_id, "t")
            stored.delete_placement(conn, worker.member_id)

    with closing(Interrupted(world.database.path, 1, go)) as database:
        fleets.delete_fleet(world.runtime_with(database), director.fleet_id, kill_panes=True)
        assert database.interrupted
    assert world.multiplexer.killed == []


def test_deleting_a_fleet_sweeps_the_locks_of_panes_long_gone(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    data = world.runtime.config.data_directory
    old, new = (lock_path(data, "tmux", world.pane(worker)._replace(pane=pane)) for pane in ("%98", "%99"))
    os.makedirs(os.path.dirname(old), exist_ok=True)
    for path, age_days in ((old, 8), (new, 6)):
        seconds = world.clock().timestamp() - age_days * 24 * 3600
        Path(path).touch()
        os.utime(path, (seconds, seconds))
    fleets.delete_fleet(world.runtime, director.fleet_id)
    assert not Path(old).exists()
    assert Path(new).exists()


@pytest.mark.parametrize("step", ["open_pane", "look"])
def test_an_interrupted_creation_leaves_nothing(world: World, step: str) -> None:
    world.stand_in()

    def interrupt(method: str, pane: str) -> None:
        if method == step:
            raise KeyboardInterrupt

    world.multiplexer.before = interrupt
    with pytest.raises(KeyboardInterrupt):
        fleets.create_fleet(world.runtime, "team", "claude", world.monitor_wish())
    assert counts(world) == NOTHING
    assert len(world.multiplexer.panes(world.here.server or "")) == 1


def test_a_relative_directory_is_the_callers(world: World) -> None:
    world.stand_in()
    made = fleets.create_fleet(world.runtime, "team", "claude", Wish("Watch.", "."), start_wait_seconds=0)
    assert made.monitor is not None
    launch = world.multiplexer.pane(world.pane(made.monitor)).launch
    assert launch is not None
    assert launch.directory == os.getcwd()
