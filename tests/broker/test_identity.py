import os
import threading

import pytest
from tests.support.fake_herdr import listening_here
from tests.support.fleet_builder import SERVER, World
from tests.support.waiting import DEADLINE_SECONDS

from cafleet.broker import caller, fleets, identity
from cafleet.broker.member_deletion import delete_member
from cafleet.db.database import Database
from cafleet.errors import NotAMember, NotInMultiplexer
from cafleet.multiplexer.base import PaneAddress
from cafleet.multiplexer.server_name import server_name


def test_the_calling_pane_says_who_one_is(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    world.stand_in(world.pane(worker))
    found = identity.whoami(world.runtime)
    assert (found.member, found.director_member_id) == (worker, director.member_id)


def test_a_pane_of_another_server_with_the_same_id_is_a_stranger(world: World) -> None:
    director = world.fleet()
    pane = world.pane(director).pane
    world.stand_in(world.multiplexer.add_pane(server="host|/tmp/other|7", pane=pane))
    with pytest.raises(NotAMember, match=r"^this pane belongs to no active member$"):
        identity.whoami(world.runtime)


def test_a_pane_with_two_fleets_answers_with_the_newer_one(world: World) -> None:
    first = world.fleet("first")
    second = fleets.create_fleet(world.runtime, "second", "claude").director
    assert identity.whoami(world.runtime).member.member_id == second.member_id
    fleets.delete_fleet(world.runtime, second.fleet_id)
    assert identity.whoami(world.runtime).member.member_id == first.member_id


def test_a_monitor_that_asks_before_its_fleet_is_committed_is_told_who_it_is(world: World) -> None:
    """It runs before it is a member: the whole fleet is one transaction."""
    world.stand_in()
    answers: list[int] = []
    asked = threading.Event()

    def ask(pane: PaneAddress) -> None:
        database = Database(world.database.path, busy_timeout_seconds=DEADLINE_SECONDS)
        runtime = world.runtime_with(database)
        world.stand_in(pane)
        asked.set()
        answers.append(identity.whoami(runtime).member.member_id)
        database.close()

    threads: list[threading.Thread] = []

    def start(method: str, pane: str) -> None:
        if method == "look" and pane != world.here.pane and not threads:
            made = world.multiplexer.panes(world.here.server or "")[-1]
            threads.append(threading.Thread(target=ask, args=(made.address,)))
            threads[0].start()
            asked.wait(DEADLINE_SECONDS)

    world.multiplexer.before = start
    created = fleets.create_fleet(world.runtime, "team", "claude", world.monitor_wish(), start_wait_seconds=0)
    threads[0].join(DEADLINE_SECONDS)
    assert created.monitor is not None
    assert answers == [created.monitor.member_id]


def test_a_member_that_was_deleted_is_nobody(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    delete_member(world.runtime, worker.member_id)
    world.stand_in(world.multiplexer.add_pane(server=SERVER, pane=world.pane(worker).pane))
    with pytest.raises(NotAMember):
        identity.whoami(world.runtime)


def test_the_own_pane_is_known_by_its_server_too(world: World) -> None:
    """Field cases D1 and E5: a deletion that takes a stranger's pane for its own leaves that one open."""
    worker = world.member(world.fleet().fleet_id)
    assert worker.placement is not None
    assert not identity.is_calling_pane(world.runtime, worker.placement)
    pane = world.pane(worker)
    world.stand_in(world.multiplexer.add_pane(server="host|/tmp/other|7", pane=pane.pane))
    assert not identity.is_calling_pane(world.runtime, worker.placement)
    world.stand_in(pane)
    assert identity.is_calling_pane(world.runtime, worker.placement)
    assert not identity.is_calling_pane(world.runtime, worker.placement._replace(backend="herdr"))


def test_outside_a_multiplexer_nobody_can_be_told(world: World) -> None:
    del world.environ["TMUX"]
    with pytest.raises(NotInMultiplexer):
        identity.whoami(world.runtime)
    assert caller.caller_mismatch(world.runtime, 1) is None


def test_a_sender_in_another_members_pane_is_noticed_without_asking_the_multiplexer(world: World) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)
    world.stand_in(world.pane(worker))
    asked = len(world.multiplexer.calls)
    assert caller.caller_mismatch(world.runtime, director.member_id) == worker.member_id
    assert caller.caller_mismatch(world.runtime, worker.member_id) is None
    assert caller.caller_mismatch(world.runtime, 99) == worker.member_id
    world.stand_in()
    assert caller.caller_mismatch(world.runtime, director.member_id) is None
    assert len(world.multiplexer.calls) == asked


def test_a_sender_in_another_members_herdr_pane_is_noticed(world: World) -> None:
    world.multiplexer.name = "herdr"
    del world.environ["TMUX"]
    with listening_here() as path:
        world.environ |= {"HERDR_ENV": "1", "HERDR_SOCKET_PATH": path}
        world.stand_in(world.multiplexer.add_pane(server=server_name(path, os.getpid())))
        director = fleets.create_fleet(world.runtime, "team", "claude").director
        worker = world.member(director.fleet_id)
        world.environ["HERDR_PANE_ID"] = world.pane(worker).pane
        assert caller.caller_mismatch(world.runtime, director.member_id) == worker.member_id
        assert caller.caller_mismatch(world.runtime, worker.member_id) is None
    assert caller.caller_mismatch(world.runtime, director.member_id) is None, "nobody listens there now"


def test_the_director_of_two_fleets_may_speak_as_either(world: World) -> None:
    first = world.fleet("first")
    second = fleets.create_fleet(world.runtime, "second", "claude").director
    for director in (first, second):
        assert caller.caller_mismatch(world.runtime, director.member_id) is None
