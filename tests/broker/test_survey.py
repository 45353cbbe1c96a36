import pytest
from tests.support.fleet_builder import SERVER, World, claude_screen
from tests.support.memory_multiplexer import ComposerProgram

from cafleet.broker import members, panes
from cafleet.broker.member_respawn import RespawnRequest, respawn_member
from cafleet.broker.messages import send
from cafleet.broker.survey import PaneCondition, PaneReport, survey
from cafleet.clock import format_timestamp
from cafleet.db import messages
from cafleet.delivery.pane_state import PaneState
from cafleet.errors import CafleetError, MultiplexerError, MultiplexerTimeout
from cafleet.models import Member, NotificationState


def _hold(world: World, member: Member) -> None:
    """A message that nobody was told of yet."""
    with world.database.write() as conn:
        messages.insert(
            conn,
            from_member_id=1,
            to_member_id=member.member_id,
            text="hello",
            created_at=format_timestamp(world.clock()),
        )


def _survey(world: World, fleet_id: int) -> dict[int, PaneReport]:
    roster = [entry.member for entry in members.list_members(world.runtime, fleet_id)]
    return survey(world.runtime, fleet_id, roster)


def test_a_survey_tells_alive_exited_gone_and_pending_apart(world: World) -> None:
    fleet_id = world.fleet().fleet_id
    alive, dead, shell, gone, pending = (world.member(fleet_id, name) for name in "abcde")
    world.multiplexer.end_program(world.pane(dead), 3)
    world.multiplexer.pane(world.pane(shell)).shell = True
    world.multiplexer.remove_pane(world.pane(gone))
    world.unplace(pending)
    world.multiplexer.calls.clear()
    found = _survey(world, fleet_id)
    assert found[alive.member_id] == (PaneCondition.ALIVE, None, None, 0, None, None)
    assert found[dead.member_id] == (PaneCondition.EXITED, 3, None, 0, None, None)
    assert found[shell.member_id] == (PaneCondition.EXITED, None, "a shell is there", 0, None, None)
    assert found[gone.member_id] == (PaneCondition.GONE, None, None, 0, None, None)
    assert found[pending.member_id] == (PaneCondition.PENDING, None, None, 0, None, None)
    assert world.multiplexer.calls == [("list_panes", SERVER)], "one call for all"


def test_a_director_who_is_a_person_in_a_shell_has_lost_nothing(world: World) -> None:
    director = world.fleet()
    world.multiplexer.pane(world.pane(director)).shell = True
    for closely in (False, True):
        found = survey(world.runtime, director.fleet_id, [director], closely=closely)
        assert found[director.member_id] == (PaneCondition.ALIVE, None, "a shell is there", 0, None, None)
    world.multiplexer.end_program(world.pane(director), 3)
    assert survey(world.runtime, director.fleet_id, [director])[director.member_id].condition is (
        PaneCondition.EXITED
    )


def test_a_survey_says_what_is_held_and_why(world: World) -> None:
    fleet_id = world.fleet().fleet_id
    free, reading, gone, dead = (world.member(fleet_id, name) for name in "abcd")
    for member in (free, reading, gone, dead, dead):
        _hold(world, member)
    world.multiplexer.pane(world.pane(reading)).mode = "copy-mode"
    world.multiplexer.remove_pane(world.pane(gone))
    world.multiplexer.end_program(world.pane(dead))
    found = _survey(world, fleet_id)
    assert found[free.member_id][3:5] == (1, "nobody has typed it yet; its pane is free")
    assert found[reading.member_id][3:5] == (1, "pane is in copy-mode")
    assert found[gone.member_id][3:5] == (1, "its pane is gone")
    assert found[dead.member_id][3:5] == (2, "its agent has exited")
    assert not any(world.multiplexer.pane(world.pane(one)).touched for one in (free, reading))


def test_a_survey_tells_a_prompt_that_was_not_submitted_from_a_persons_words(world: World) -> None:
    fleet_id = world.fleet().fleet_id
    stuck = world.member(fleet_id, "stuck")
    pane = world.multiplexer.pane(world.pane(stuck))
    pane.program = ComposerProgram(claude_screen, eat_enters=3)
    pane.program.show(pane)
    typed = panes.prompt_member(world.runtime, stuck.member_id, "go on")
    assert typed.notification.state is NotificationState.FAILED
    _hold(world, stuck)
    why = "a line of cafleet's stands in its composer, not submitted yet"
    assert _survey(world, fleet_id)[stuck.member_id].why_held == why
    pane.program.composer = "go on with"
    pane.program.show(pane)
    assert _survey(world, fleet_id)[stuck.member_id].why_held == "a draft stands in its composer"


def test_a_survey_tells_a_line_that_was_not_submitted_from_a_persons_words(world: World) -> None:
    """Field case A3: whoever looks must not look for a person who typed this."""
    fleet_id = world.fleet().fleet_id
    stuck, drafting = world.member(fleet_id, "stuck"), world.member(fleet_id, "drafting")
    for member, before in ((stuck, ""), (drafting, "please look at ")):
        pane = world.multiplexer.pane(world.pane(member))
        pane.program = ComposerProgram(claude_screen, draft=before, eat_enters=3)
        pane.program.show(pane)
        sent = send(world.runtime, 1, member.member_id, "hello")
        assert sent.notification.state is not NotificationState.NOTIFIED
    found = _survey(world, fleet_id)
    why = "a line of cafleet's stands in its composer, not submitted yet"
    assert found[stuck.member_id][3:5] == (1, why)
    assert found[drafting.member_id][3:5] == (1, "a draft stands in its composer")


def test_a_close_survey_says_what_every_live_pane_shows(world: World) -> None:
    fleet_id = world.fleet().fleet_id
    free, reading, gone = (world.member(fleet_id, name) for name in "abc")
    world.multiplexer.pane(world.pane(reading)).mode = "copy-mode"
    world.multiplexer.remove_pane(world.pane(gone))
    roster = [entry.member for entry in members.list_members(world.runtime, fleet_id)]
    found = survey(world.runtime, fleet_id, roster, closely=True)
    shown = [found[member.member_id].state for member in (free, reading, gone)]
    assert shown == [PaneState.AT_REST, PaneState.MODE, None]
    assert {report.why_held for report in found.values()} == {None}, "nothing is held"


@pytest.mark.parametrize("error", [MultiplexerTimeout("tmux", 5), MultiplexerError("tmux not found on PATH")])
def test_a_survey_never_fails_because_of_a_multiplexer(world: World, error: CafleetError) -> None:
    fleet_id = world.fleet().fleet_id
    workers = [world.member(fleet_id, name) for name in "abc"]
    _hold(world, workers[0])
    assert isinstance(error, MultiplexerError)
    world.multiplexer.fail("list_panes", error, times=None)
    world.multiplexer.calls.clear()
    found = _survey(world, fleet_id)
    assert {report.condition for report in found.values()} == {PaneCondition.UNKNOWN}
    assert {report.detail for report in found.values()} == {str(error)}
    assert found[workers[0].member_id].why_held == str(error)
    assert len(world.multiplexer.calls) == 1, "a silent server is asked once"


def test_a_server_that_falls_silent_in_between(world: World) -> None:
    fleet_id = world.fleet().fleet_id
    workers = [world.member(fleet_id, name) for name in "abc"]
    for worker in workers:
        _hold(world, worker)
    world.multiplexer.fail("look", MultiplexerTimeout("tmux", 5), times=None)
    world.multiplexer.calls.clear()
    found = _survey(world, fleet_id)
    assert [found[one.member_id].why_held for one in workers] == ["tmux did not answer within 5 s"] * 3
    assert len([call for call in world.multiplexer.calls if call[0] == "look"]) == 1


def test_after_a_restart_everything_is_gone_also_where_numbers_are_taken_again(world: World) -> None:
    fleet_id = world.fleet().fleet_id
    worker = world.member(fleet_id)
    pane = world.pane(worker)
    world.multiplexer.stop_server(SERVER)
    world.multiplexer.add_pane(server="host|/run/memory/default|999", pane=pane.pane)
    assert {one.condition for one in _survey(world, fleet_id).values()} == {PaneCondition.GONE}


def test_a_respawned_agent_is_given_time_to_start(world: World) -> None:
    worker = world.member(world.fleet().fleet_id)
    world.multiplexer.remove_pane(world.pane(worker))
    world.clock.advance(3600)
    request = RespawnRequest(worker.member_id, "Again.", str(world.directory))
    again = respawn_member(world.runtime, request, start_wait_seconds=0).member
    told = panes.ping_member(world.runtime, again.member_id).notification
    assert told == (NotificationState.DEFERRED, "its agent is still starting")
    pane = world.multiplexer.pane(world.pane(again))
    pane.program = ComposerProgram(claude_screen)
    pane.program.show(pane)
    told = panes.ping_member(world.runtime, again.member_id).notification
    assert told.state is NotificationState.NOTIFIED
