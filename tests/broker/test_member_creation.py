import threading

import pytest
from tests.support.fleet_builder import World, claude_screen

from cafleet.broker import fleets, members
from cafleet.broker.member_creation import create_member, register_member
from cafleet.broker.member_deletion import delete_member
from cafleet.db.database import Database
from cafleet.db.members import by_pane
from cafleet.errors import (
    AgentDidNotStart,
    BinaryNotFound,
    CafleetError,
    DirectorPaneGone,
    FleetDeleted,
    FleetNotFound,
    FleetNotLive,
    InvalidInput,
    MemberNotActive,
    MonitorExists,
    MultiplexerError,
    UnknownAgent,
    UsageError,
)
from cafleet.launch import StartState
from cafleet.models import MemberKind, MemberStatus


def member_rows(world: World) -> list[tuple[str, bool]]:
    with world.database.read() as conn:
        return conn.execute(
            """SELECT m.status, p.member_id IS NOT NULL FROM members m LEFT JOIN member_placements p
            ON p.member_id = m.member_id ORDER BY m.member_id"""
        ).fetchall()


def test_a_member_gets_a_pane_beside_the_directors_and_is_told_who_it_is(world: World) -> None:
    director = world.fleet()
    request = world.request(director.fleet_id)._replace(skills=("python", "日本語"), model="m", effort="high")
    member = create_member(world.runtime, request, start_wait_seconds=0).member

    assert member.kind is MemberKind.MEMBER
    assert members.skills(member) == ["python", "日本語"]
    pane = world.multiplexer.pane(world.pane(member))
    assert pane.address.window == world.pane(director).window
    launch = pane.launch
    assert launch is not None
    assert launch.argv[0] == str(world.directory / "bin" / "claude")
    assert (
        launch.argv[-1]
        == f"You are {member.member_id} of {director.fleet_id}; report to {director.member_id}."
    )
    assert launch.title == "worker"
    assert launch.directory == str(world.directory)
    assert set(launch.environ) == {"PATH", "CAFLEET_DATABASE_URL"}
    assert "CLAUDECODE" in launch.scrub


def test_an_agent_is_known_by_its_pane_before_it_has_survived_its_start(world: World) -> None:
    """Field case F9: some ask who they are with their first command."""
    director = world.fleet()
    known: list[int | None] = []

    def ask(method: str, pane: str) -> None:
        if method == "look" and pane != world.pane(director).pane:
            database = Database(world.database.path)
            with database.read() as conn:
                found = by_pane(conn, world.pane(director).server, pane)
            database.close()
            known.append(found and found.member_id)

    world.multiplexer.before = ask
    member = create_member(world.runtime, world.request(director.fleet_id), start_wait_seconds=0).member
    assert known
    assert set(known) == {member.member_id}


def test_another_agent_than_the_directors_can_be_chosen(world: World) -> None:
    director = world.fleet()
    request = world.request(director.fleet_id)._replace(coding_agent="codex")
    member = create_member(world.runtime, request, start_wait_seconds=0).member
    assert member.placement is not None
    assert member.placement.coding_agent == "codex"


def test_what_is_wrong_is_found_before_anything_is_written(world: World) -> None:
    director = world.fleet()
    good = world.request(director.fleet_id)
    bad: list[tuple[dict[str, object], type[CafleetError]]] = [
        ({"name": "all"}, InvalidInput),
        ({"description": "a\nb"}, InvalidInput),
        ({"skills": ("",)}, InvalidInput),
        ({"prompt": "  "}, InvalidInput),
        ({"prompt": "{who}"}, UsageError),
        ({"prompt": "stray }"}, UsageError),
        ({"directory": str(world.directory / "none")}, InvalidInput),
        ({"coding_agent": "nobody"}, UnknownAgent),
        ({"effort": "heroic"}, UsageError),
        ({"coding_agent": "opencode"}, BinaryNotFound),
        ({"fleet_id": 99}, FleetNotFound),
    ]
    for change, error in bad:
        with pytest.raises(error):
            create_member(world.runtime, good._replace(**change))  # type: ignore[arg-type]
    assert member_rows(world) == [("active", True)]
    assert len(world.multiplexer.panes(world.here.server or "")) == 1


def test_only_a_live_fleet_gets_members(world: World) -> None:
    director = world.fleet()
    with world.database.write() as conn:
        conn.execute("UPDATE members SET status = 'deregistered'")
    with pytest.raises(FleetNotLive):
        create_member(world.runtime, world.request(director.fleet_id))
    fleets.delete_fleet(world.runtime, director.fleet_id)
    with pytest.raises(FleetDeleted):
        create_member(world.runtime, world.request(director.fleet_id))


def test_a_directors_pane_that_is_gone_is_said_so(world: World) -> None:
    director = world.fleet()
    world.multiplexer.remove_pane(world.pane(director))
    with pytest.raises(DirectorPaneGone, match=rf"fleet {director.fleet_id}'s Director \(member") as caught:
        create_member(world.runtime, world.request(director.fleet_id))
    assert caught.value.cleanup_failures == []
    assert str(caught.value).endswith(
        f"; 'cafleet member respawn {director.member_id} PROMPT' opens a new one"
    )
    assert member_rows(world) == [("active", True)]


# -- the monitor's slot ------------------------------------------------------------------------


def test_a_fleet_has_one_active_monitor(world: World) -> None:
    director = world.fleet()
    monitor = world.member(director.fleet_id, "mon", monitor=True)
    text = rf"^fleet {director.fleet_id} already has an active monitor \(member {monitor.member_id}\)$"
    with pytest.raises(MonitorExists, match=text):
        world.member(director.fleet_id, "second", monitor=True)
    assert len(member_rows(world)) == 2
    delete_member(world.runtime, monitor.member_id)
    assert world.member(director.fleet_id, "third", monitor=True).kind is MemberKind.MONITOR
    other = world.fleet("other")
    assert world.member(other.fleet_id, "mon", monitor=True).kind is MemberKind.MONITOR


def test_of_many_that_register_a_monitor_at_once_one_wins_and_no_loser_leaves_a_row(world: World) -> None:
    director = world.fleet()
    assert director.placement is not None
    pending = director.placement._replace(mux_pane_id=None)
    outcomes: list[str] = []
    together = threading.Barrier(6)

    def register(number: int) -> None:
        database = Database(world.database.path)
        runtime = world.runtime_with(database)
        request = world.request(director.fleet_id, f"m{number}", monitor=True)
        together.wait()
        try:
            register_member(runtime, request, pending)
            outcomes.append("won")
        except MonitorExists:
            outcomes.append("lost")
        finally:
            database.close()

    threads = [threading.Thread(target=register, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["lost"] * 5 + ["won"]
    assert len(member_rows(world)) == 2


# -- a failure at every step -------------------------------------------------------------------


def assert_nothing_left(world: World) -> None:
    """The member is deregistered without placement, and only the Director's pane is open."""
    assert member_rows(world) in ([("active", True)], [("active", True), ("deregistered", False)])
    panes = [pane.address for pane in world.multiplexer.panes(world.here.server or "")]
    assert panes == [world.here]


STEPS = ("look at the Director", "open the pane", "look whether it lives", "watch it come up")
"""What a creation asks of the multiplexer, in order."""


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("error", [MultiplexerError("it failed"), KeyboardInterrupt(), RuntimeError("a bug")])
def test_a_creation_that_fails_at_any_step_leaves_nothing(
    world: World, step: str, error: BaseException
) -> None:
    director = world.fleet()
    done: list[str] = []

    def fail(method: str, pane: str) -> None:
        if method in ("look", "open_pane"):
            done.append(method)
            if len(done) == STEPS.index(step) + 1:
                raise error

    world.multiplexer.before = fail
    request = world.request(director.fleet_id)
    if step == STEPS[-1] and isinstance(error, MultiplexerError):
        # What cannot be seen is no failure: the agent runs.
        started = create_member(world.runtime, request, start_wait_seconds=0)
        assert started.start == (StartState.NOT_RECOGNISED, "it failed")
        return
    with pytest.raises(type(error)) as caught:
        create_member(world.runtime, request, start_wait_seconds=0)
    assert caught.value is error
    assert_nothing_left(world)


def refuse_updates(world: World, of: str, trouble: str) -> None:
    """The database fails with `trouble` whenever that column is written."""
    with world.database.write() as conn:
        conn.execute(
            f"CREATE TRIGGER no_{of.split()[0]} BEFORE UPDATE OF {of}"
            f" BEGIN SELECT RAISE(ABORT, '{trouble}'); END"
        )


def test_a_database_that_fails_while_the_pane_is_recorded_leaves_nothing(world: World) -> None:
    director = world.fleet()
    refuse_updates(world, "mux_pane_id ON member_placements", "disk trouble")
    with pytest.raises(CafleetError, match="disk trouble"):
        create_member(world.runtime, world.request(director.fleet_id), start_wait_seconds=0)
    assert_nothing_left(world)


def test_a_member_that_is_deleted_while_its_pane_opens_does_not_come_back(world: World) -> None:
    director = world.fleet()

    def delete(method: str, pane: str) -> None:
        if method == "open_pane":
            delete_member(world.runtime, director.member_id + 1)

    world.multiplexer.before = delete
    with pytest.raises(MemberNotActive):
        create_member(world.runtime, world.request(director.fleet_id), start_wait_seconds=0)
    assert_nothing_left(world)


def test_what_could_not_be_undone_is_told_after_the_primary_error(world: World) -> None:
    director = world.fleet()
    refuse_updates(world, "mux_pane_id ON member_placements", "disk trouble")
    refuse_updates(world, "status ON members", "more trouble")
    world.multiplexer.fail("kill_pane", MultiplexerError("no answer"))
    with pytest.raises(CafleetError, match="disk trouble") as caught:
        create_member(world.runtime, world.request(director.fleet_id), start_wait_seconds=0)
    pane, member = caught.value.cleanup_failures
    assert pane == "cleanup failed for pane %1: no answer"
    assert member.startswith(f"cleanup failed for member {director.member_id + 1}: ")
    assert "more trouble" in member


# -- how the agent comes up --------------------------------------------------------------------


def test_an_agent_that_ends_at_once_is_a_failed_creation_with_its_last_words(world: World) -> None:
    director = world.fleet()

    def end(method: str, pane: str) -> None:
        if method == "look" and pane != world.here.pane:
            made = world.multiplexer.panes(world.here.server or "")[-1]
            made.rows = ["", "error: unknown option", ""]
            world.multiplexer.end_program(made.address, exit_status=2)

    world.multiplexer.before = end
    with pytest.raises(AgentDidNotStart) as caught:
        create_member(world.runtime, world.request(director.fleet_id))
    assert str(caught.value) == (
        "claude ended right after it was started: exit status 2: error: unknown option"
    )
    assert_nothing_left(world)


@pytest.mark.parametrize(
    ("rows", "state"),
    [
        (claude_screen(""), StartState.READY),
        (["Do you trust the files in this folder?", "", "❯ 1. Yes", "  2. No", "", "Enter to confirm"],
         StartState.NEEDS_ATTENTION),
        (["loading…"], StartState.NOT_RECOGNISED),
    ],
)  # fmt: skip
def test_the_first_recognisable_screen_says_how_it_went_and_nothing_is_pressed(
    world: World, rows: list[str], state: StartState
) -> None:
    director = world.fleet()

    def draw(method: str, pane: str) -> None:
        if method == "look" and pane != world.here.pane:
            world.multiplexer.panes(world.here.server or "")[-1].rows = rows

    world.multiplexer.before = draw
    wait = 5.0 if state is not StartState.NOT_RECOGNISED else 0.0
    made = create_member(world.runtime, world.request(director.fleet_id), start_wait_seconds=wait)
    assert made.start.state is state
    assert (made.start.detail is None) == (state is StartState.READY)
    assert made.member.status is MemberStatus.ACTIVE
    assert not world.multiplexer.pane(world.pane(made.member)).touched
