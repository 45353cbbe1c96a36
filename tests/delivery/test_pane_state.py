import pytest
from tests.support.drawn import QUESTION, RULE, standin_screen
from tests.support.standin import BLIND
from tests.support.team import Team

from cafleet.agents import registry
from cafleet.delivery.pane_state import FREE, PaneState, classify, why_not
from cafleet.multiplexer.base import PaneView


def view(rows: list[str], *, mode: str = "", at_prompt: bool = False) -> PaneView:
    return PaneView(
        rows=tuple(rows),
        command="sh" if at_prompt else "python3",
        shell=at_prompt,
        mode=mode,
        title="",
        width=40,
        height=len(rows),
        cursor_x=0,
        cursor_y=0,
    )


GHOST = ["", RULE, "> \x1b[2mAsk anything\x1b[0m", RULE, " ∙ ready"]


@pytest.mark.parametrize(
    ("seen", "state", "composer"),
    [
        (view(standin_screen("")), PaneState.AT_REST, ""),
        (view(GHOST), PaneState.AT_REST, ""),
        (view(standin_screen("", working=True)), PaneState.WORKING, ""),
        (view(standin_screen("half typed")), PaneState.DRAFT, "half typed"),
        (view(standin_screen("half typed", working=True)), PaneState.DRAFT, "half typed"),
        (view(QUESTION), PaneState.AWAITING_USER, None),
        (view(["$ ", ""]), PaneState.NOT_RECOGNISED, None),
        (view(standin_screen(""), mode="copy-mode"), PaneState.MODE, None),
        (view(standin_screen(""), at_prompt=True), PaneState.SHELL, None),
        (view(QUESTION, mode="copy-mode", at_prompt=True), PaneState.MODE, None),
    ],
)
def test_every_state_of_the_table(team: Team, seen: PaneView, state: PaneState, composer: str | None) -> None:
    reading = classify(seen, registry.get("standin", team.runtime.config))
    assert (reading.state, reading.composer) == (state, composer)
    assert (why_not(reading, seen, 3) is None) == (state in FREE)


def test_an_agent_without_cues_is_not_recognised(team: Team) -> None:
    reading = classify(view(standin_screen("draft")), registry.get(BLIND, team.runtime.config))
    assert reading.state is PaneState.NOT_RECOGNISED


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (view([], mode="tree-mode"), "pane is in tree-mode"),
        (view([], at_prompt=True), "its agent has exited (a shell is there)"),
        (view(QUESTION), "member 3 is at a question"),
        (view(standin_screen("x")), "a draft stands in its composer"),
    ],
)
def test_a_reason_is_one_clause(team: Team, seen: PaneView, reason: str) -> None:
    assert why_not(classify(seen, registry.get("standin", team.runtime.config)), seen, 3) == reason
