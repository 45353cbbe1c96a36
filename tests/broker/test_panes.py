import pytest
from tests.support.fleet_builder import World
from tests.support.memory_multiplexer import ComposerProgram

from cafleet.broker import fleets, panes
from cafleet.broker.member_deletion import delete_member
from cafleet.errors import (
    DirectorNotTyped,
    FleetDeleted,
    InvalidInput,
    MemberNotActive,
    MemberNotFound,
    MultiplexerError,
    MultiplexerTimeout,
    NoPane,
    PaneGone,
)
from cafleet.models import Member, NotificationState
from cafleet.multiplexer.pane_lock import pane_lock


def _submitted(world: World, member: Member) -> list[str]:
    program = world.multiplexer.pane(world.pane(member)).program
    assert isinstance(program, ComposerProgram)
    return program.submitted


# -- typing ------------------------------------------------------------------------------------


def test_a_prompt_is_a_turn_of_its_own(world: World) -> None:
    worker = world.member(world.fleet().fleet_id)
    for text in ("go on", "--help", "/compact", "日本語 👩‍👩‍👧 é", "ends;", "$(touch x)"):
        typed = panes.prompt_member(world.runtime, worker.member_id, text)
        assert typed.notification.state is NotificationState.NOTIFIED
        assert typed.line == text
        assert _submitted(world, worker)[-1].rstrip() == text


def test_a_ping_is_one_fixed_line(world: World) -> None:
    worker = world.member(world.fleet().fleet_id)
    typed = panes.ping_member(world.runtime, worker.member_id)
    assert typed.line == f"[cafleet ping] Poll your inbox: cafleet message poll {worker.member_id}"
    assert _submitted(world, worker) == [typed.line]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\u200b",
        "two\nlines",
        "a\rb",
        "esc \x1b[201~",
        "bell\x07",
        "nul\0",
        "\x9b31m",
        "x" * 700,
        "👩" * 350,
    ],
)
def test_what_no_line_can_be(world: World, text: str) -> None:
    worker = world.member(world.fleet().fleet_id)
    with pytest.raises(InvalidInput, match="prompt"):
        panes.prompt_member(world.runtime, worker.member_id, text)
    assert not world.multiplexer.pane(world.pane(worker)).touched


def test_the_longest_line(world: World) -> None:
    worker = world.member(world.fleet().fleet_id)
    panes.prompt_member(world.runtime, worker.member_id, "x" * 699)
    assert _submitted(world, worker) == ["x" * 699]


def test_what_a_reader_could_not_see_is_left_out_and_shown_so(world: World) -> None:
    worker = world.member(world.fleet().fleet_id)
    typed = panes.prompt_member(world.runtime, worker.member_id, "a\u202eb")
    assert typed.line == "ab"
    assert _submitted(world, worker) == ["ab"]


@pytest.mark.parametrize("verb", ["prompt", "ping"])
def test_who_cannot_be_typed_at(world: World, verb: str) -> None:
    director = world.fleet()
    worker = world.member(director.fleet_id)

    def act(member_id: int) -> None:
        if verb == "prompt":
            panes.prompt_member(world.runtime, member_id, "hello")
        else:
            panes.ping_member(world.runtime, member_id)

    with pytest.raises(DirectorNotTyped):
        act(director.member_id)
    with pytest.raises(MemberNotFound):
        act(99)
    world.unplace(worker)
    with pytest.raises(NoPane, match="has no pane yet"):
        act(worker.member_id)
    delete_member(world.runtime, worker.member_id)
    with pytest.raises(MemberNotActive):
        act(worker.member_id)
    fleets.delete_fleet(world.runtime, director.fleet_id, kill_panes=False)
    with pytest.raises(FleetDeleted):
        act(worker.member_id)
    assert not world.multiplexer.pane(world.pane(director)).touched


def test_a_pane_that_is_not_free_is_left_alone(world: World) -> None:
    worker = world.member(world.fleet().fleet_id)
    pane = world.multiplexer.pane(world.pane(worker))
    pane.mode = "copy-mode"
    told = panes.prompt_member(world.runtime, worker.member_id, "go on").notification
    assert told == (NotificationState.DEFERRED, "pane is in copy-mode")
    pane.mode = ""
    pane.shell = True
    told = panes.ping_member(world.runtime, worker.member_id).notification
    assert told.state is NotificationState.DEFERRED
    world.multiplexer.end_program(world.pane(worker))
    told = panes.ping_member(world.runtime, worker.member_id).notification
    assert told.state is NotificationState.FAILED
    assert not pane.touched


def test_a_pane_that_somebody_types_into(world: World) -> None:
    worker = world.member(world.fleet().fleet_id)
    with pane_lock(str(world.directory), "tmux", world.pane(worker)):
        told = panes.prompt_member(world.runtime, worker.member_id, "go on", lock_seconds=0.05).notification
    assert told == (NotificationState.DEFERRED, "pane is busy")


# -- looking -----------------------------------------------------------------------------------


def test_a_capture(world: World) -> None:
    worker = world.member(world.fleet().fleet_id)
    world.multiplexer.pane(world.pane(worker)).rows = ["one", "two", "three", ""]
    captured = panes.capture_member(world.runtime, worker.member_id, 2)
    assert captured.content == "two\nthree"
    assert captured.captured_at.startswith("2026-03-01T12:00:")
    world.multiplexer.remove_pane(world.pane(worker))
    again = f"; 'cafleet member respawn {worker.member_id} PROMPT' opens a new one"
    with pytest.raises(PaneGone, match=f"{again}$"):
        panes.capture_member(world.runtime, worker.member_id, 2)


def test_a_scan_shows_the_director_first_and_aborts_for_nothing(world: World) -> None:
    director = world.fleet()
    shown, pending, gone, silent = (world.member(director.fleet_id, name) for name in "abcd")
    delete_member(world.runtime, world.member(director.fleet_id, "e").member_id)
    with world.database.write() as conn:
        conn.execute("UPDATE fleets SET director_member_id = ?", (shown.member_id,))
    world.unplace(pending)
    world.multiplexer.remove_pane(world.pane(gone))
    world.multiplexer.pane(world.pane(shown)).rows = ["its screen"]

    def fail(method: str, pane: str) -> None:
        if method == "capture" and pane == world.pane(silent).pane:
            raise MultiplexerError("told to fail")

    world.multiplexer.before = fail
    found = panes.scan_fleet(world.runtime, director.fleet_id, 40)
    assert [one.member.member_id for one in found] == [
        shown.member_id,
        director.member_id,
        pending.member_id,
        gone.member_id,
        silent.member_id,
    ]
    assert found[0].capture is not None
    assert found[0].capture.content == "its screen"
    assert [one.problem for one in found[2:]] == [
        "it has no pane yet",
        f"pane {world.pane(gone).pane} is gone",
        "told to fail",
    ]
    assert [one.capture for one in found[2:]] == [None] * 3


def test_a_server_that_is_silent_is_asked_once_in_a_scan(world: World) -> None:
    director = world.fleet()
    for name in "abc":
        world.member(director.fleet_id, name)
    world.multiplexer.fail("capture", MultiplexerTimeout("tmux", 5), times=None)
    world.multiplexer.calls.clear()
    found = panes.scan_fleet(world.runtime, director.fleet_id, 40)
    assert [one.problem for one in found] == ["tmux did not answer within 5 s"] * 4
    assert len(world.multiplexer.calls) == 1


def test_focus(world: World) -> None:
    worker = world.member(world.fleet().fleet_id)
    panes.focus_member(world.runtime, worker.member_id)
    assert world.multiplexer.focused == world.pane(worker)
    world.unplace(worker)
    with pytest.raises(NoPane):
        panes.focus_member(world.runtime, worker.member_id)
