"""The built-in agents against screens of the real programs (SPEC 4.3)."""

import pytest
from tests.support.agent_screens import Taken, built_in, holds, load

from cafleet.agents import screen
from cafleet.agents.base import AgentState, Extent

TAKEN = load()
SCENES = {
    "start",
    "draft",
    "idle",
    "pasted-400",
    "pasted-690",
    "working",
    "queued",
    "working-draft",
    "permission",
}
DIALOGS = [name for name, one in TAKEN.items() if one.state == AgentState.AWAITING_USER]
COMPOSERS = [name for name, one in TAKEN.items() if one.composer is not None]


def of_agent(agent: str, scene: str, width: int = 80) -> Taken:
    return next(one for one in TAKEN.values() if (one.agent, one.scene, one.width) == (agent, scene, width))


@pytest.mark.parametrize("agent", ["claude", "codex", "opencode"])
@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_every_scene_was_taken_at_every_size(agent: str, width: int) -> None:
    assert {one.scene for one in TAKEN.values() if (one.agent, one.width) == (agent, width)} >= SCENES


@pytest.mark.parametrize("name", TAKEN)
def test_the_state_is_recognised(name: str) -> None:
    taken = TAKEN[name]
    assert built_in(taken.agent).read(taken.screen()).state == taken.state


@pytest.mark.parametrize("name", DIALOGS)
def test_a_dialog_has_no_composer(name: str) -> None:
    taken = TAKEN[name]
    assert built_in(taken.agent).read(taken.screen()).composer is None


@pytest.mark.parametrize("name", [name for name in COMPOSERS if not TAKEN[name].composer])
def test_an_empty_composer_is_empty_whatever_its_placeholder(name: str) -> None:
    taken = TAKEN[name]
    assert built_in(taken.agent).read(taken.screen()).composer == ""


@pytest.mark.parametrize("name", [name for name in COMPOSERS if TAKEN[name].composer])
def test_a_composer_holds_exactly_what_was_put_into_it(name: str) -> None:
    taken = TAKEN[name]
    text = taken.composer or ""
    reading = built_in(taken.agent).read(taken.screen())
    assert holds(reading, text, just_pasted=True)
    if reading.extent is Extent.WHOLE:
        assert not holds(reading, f"{text}x", just_pasted=True)
        assert not holds(reading, text.rstrip()[:-1], just_pasted=True)
        assert not holds(reading, f"x{text}", just_pasted=True)
    elif reading.extent is Extent.TAIL:
        assert not holds(reading, text.rstrip()[:-1], just_pasted=True)


@pytest.mark.parametrize("name", [name for name in COMPOSERS if TAKEN[name].scene.startswith("pasted")])
def test_a_line_within_the_limit_is_known_again_by_the_next_drain(name: str) -> None:
    taken = TAKEN[name]
    agent, text = built_in(taken.agent), taken.composer or ""
    reading = agent.read(taken.screen())
    assert holds(reading, text, just_pasted=False) is (len(text) <= agent.line_limit)


@pytest.mark.parametrize("agent", ["claude", "codex", "opencode"])
def test_a_question_that_has_scrolled_up_does_not_count(agent: str) -> None:
    """Message text, or a transcript, can hold any of the cues: only the bottom of the screen says."""
    idle = of_agent(agent, "idle")
    for scene in {taken.scene for taken in TAKEN.values() if taken.state == AgentState.AWAITING_USER}:
        dialogs = [taken for taken in TAKEN.values() if (taken.agent, taken.scene) == (agent, scene)]
        for dialog in dialogs:
            for own_rows in (8, 12):
                reading = built_in(agent).read(idle.over(dialog, own_rows))
                assert (reading.state, reading.composer) == (AgentState.AT_REST, ""), scene


@pytest.mark.parametrize("name", DIALOGS)
def test_a_composer_that_has_scrolled_up_does_not_count(name: str) -> None:
    dialog = TAKEN[name]
    for scene in ("idle", "draft", "working"):
        above = of_agent(dialog.agent, scene)
        reading = built_in(dialog.agent).read(dialog.over(above, len(dialog.rows)))
        assert (reading.state, reading.composer) == (AgentState.AWAITING_USER, None)


@pytest.mark.parametrize("agent", ["claude", "codex", "opencode"])
def test_the_recorded_transcripts_are_hostile(agent: str) -> None:
    """The test above would prove nothing if the real screens did not hold the cues as mere text."""
    text = "\n".join(of_agent(agent, "idle").screen().rows)
    assert all(cue in text for cue in ("Do you want to proceed?", "esc to interrupt", "Permission required"))


@pytest.mark.parametrize("name", TAKEN)
def test_no_screen_is_misread_where_it_has_lost_its_colours(name: str) -> None:
    """A terminal without dim text: a dialog stays a dialog, typed words stay typed words."""
    taken = TAKEN[name]
    plain = screen.parse(taken.screen().rows, title=taken.title, width=taken.width)
    reading = built_in(taken.agent).read(plain)
    assert (reading.state == AgentState.AWAITING_USER) is (taken.state == AgentState.AWAITING_USER)
    if taken.composer:
        assert reading.composer


@pytest.mark.parametrize("agent", ["claude", "codex", "opencode"])
@pytest.mark.parametrize("rows", [(), ("",), ("$ ",), ("─" * 80,), ("─" * 80, "─" * 80), ("›",), ("╹▀▀▀",)])
def test_a_screen_of_something_else_is_not_recognised(agent: str, rows: tuple[str, ...]) -> None:
    reading = built_in(agent).read(screen.parse(rows))
    assert reading.state in (AgentState.UNKNOWN, AgentState.AT_REST)
    assert not reading.composer
