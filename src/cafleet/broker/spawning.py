"""What creating a fleet's monitor, creating a member and respawning one have in common."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from cafleet.agents.base import StartRequest
from cafleet.errors import AgentDidNotStart
from cafleet.launch import Program as Program
from cafleet.launch import PromptValues, Start, StartState, render_prompt, watch_start
from cafleet.models import Member, MemberKind
from cafleet.multiplexer.base import Multiplexer, PaneAddress


class Wish(NamedTuple):
    """How an agent shall be started, before there is a member for it."""

    prompt: str
    """With its placeholders."""
    directory: str
    model: str | None = None
    effort: str | None = None


class MemberStarted(NamedTuple):
    """A member with a new pane."""

    member: Member
    start: Start
    """How its agent came up."""
    left_open: str | None = None
    """A respawned member's old pane, where it still exists: its agent had exited to a shell."""


def card_json(skills: Sequence[str], *, monitor: bool) -> str:
    """The card of a new member; only a monitor's carries the marker (SPEC 2.3)."""
    card: dict[str, object] = {"skills": list(skills)}
    if monitor:
        card["cafleet"] = {"kind": MemberKind.MONITOR.value}
    return json.dumps(card, ensure_ascii=False, separators=(",", ":"))


def start_request(wish: Wish, name: str, values: PromptValues | None, *, monitor: bool) -> StartRequest:
    """What the agent is told; `values` None: a rehearsal, with the prompt as it came."""
    return StartRequest(
        prompt=wish.prompt if values is None else render_prompt(wish.prompt, values),
        name=name,
        member_id=0 if values is None else values.member_id,
        fleet_id=0 if values is None else values.fleet_id,
        monitor=monitor,
        model=wish.model,
        effort=wish.effort,
    )


def watch(multiplexer: Multiplexer, pane: PaneAddress, program: Program, wait_seconds: float | None) -> Start:
    """Like `launch.watch_start`, for a member that stays: an end is an outcome, not an error."""
    try:
        return watch_start(multiplexer, pane, program, wait_seconds)
    except AgentDidNotStart as error:
        return Start(StartState.ENDED, str(error))
