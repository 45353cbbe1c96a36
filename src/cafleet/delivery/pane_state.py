"""What a pane is doing, as far as typing into it is concerned (SPEC 4.3)."""

from enum import StrEnum
from typing import NamedTuple

from cafleet.agents import screen
from cafleet.agents.base import Agent, AgentState, Extent
from cafleet.multiplexer.base import PaneView


class PaneState(StrEnum):
    """The rows of the table in SPEC 4.3; a dead or gone pane is an exception of the multiplexer."""

    AT_REST = "at rest"
    WORKING = "working"
    NOT_RECOGNISED = "not recognised"
    AWAITING_USER = "awaiting the user"
    DRAFT = "draft"
    MODE = "mode"
    SHELL = "shell"


FREE = frozenset({PaneState.AT_REST, PaneState.WORKING, PaneState.NOT_RECOGNISED})
"""The states in which a line may be typed."""

_OF_AGENT = {
    AgentState.AT_REST: PaneState.AT_REST,
    AgentState.WORKING: PaneState.WORKING,
    AgentState.AWAITING_USER: PaneState.AWAITING_USER,
    AgentState.UNKNOWN: PaneState.NOT_RECOGNISED,
}


class PaneReading(NamedTuple):
    """One classified look at a pane."""

    state: PaneState
    composer: str | None
    """What stands in the composer; empty: nothing; None: no composer can be read."""
    extent: Extent = Extent.WHOLE
    """How much of it the screen shows."""
    texts: tuple[str, ...] = ()
    """Every text that the composer can hold, where it cannot be seen where that ends."""


def classify(view: PaneView, agent: Agent) -> PaneReading:
    """The state of a live pane. What the multiplexer knows for certain comes before what the screen
    seems to say; a question comes before everything else on the screen, since Enter would answer it."""
    if view.mode:
        return PaneReading(PaneState.MODE, None)
    if view.shell:
        return PaneReading(PaneState.SHELL, None)
    reading = agent.read(screen.parse(view.rows, title=view.title, cursor_y=view.cursor_y, width=view.width))
    state = _OF_AGENT[reading.state]
    if state is not PaneState.AWAITING_USER and reading.composer and reading.composer.strip():
        state = PaneState.DRAFT
    return PaneReading(state, reading.composer, reading.extent, tuple(reading.texts()))


def why_not(reading: PaneReading, view: PaneView, member_id: int) -> str | None:
    """One clause for people: why nothing is typed in this state; None where a line may be typed."""
    if reading.state is PaneState.MODE:
        return f"pane is in {view.mode}"
    return _REASONS[reading.state].format(member_id=member_id) if reading.state in _REASONS else None


_REASONS = {
    PaneState.AWAITING_USER: "member {member_id} is at a question",
    PaneState.DRAFT: "a draft stands in its composer",
    PaneState.SHELL: "its agent has exited (a shell is there)",
}
