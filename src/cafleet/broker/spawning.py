"""What creating a fleet's monitor, creating a member and respawning one have in common."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from cafleet.agents.base import StartRequest
from cafleet.broker.cleanup import undo
from cafleet.errors import AgentDidNotStart
from cafleet.launch import (
    Program,
    PromptValues,
    Start,
    StartState,
    check_directory,
    open_pane,
    prepare,
    render_prompt,
    watch_start,
)
from cafleet.models import Member, MemberKind
from cafleet.multiplexer.base import Multiplexer, PaneAddress
from cafleet.runtime import Runtime


class Wish(NamedTuple):
    """How an agent shall be started, before there is a member for it."""

    prompt: str
    """With its placeholders."""
    directory: str
    model: str | None = None
    effort: str | None = None


class Plan(NamedTuple):
    """A wish that can be fulfilled, as far as that can be known before anything is written."""

    program: Program
    wish: Wish
    """With the absolute path of its folder."""
    name: str
    """The member's."""
    monitor: bool


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


def plan(runtime: Runtime, coding_agent: str, wish: Wish, name: str, *, monitor: bool) -> Plan:
    """Find everything that the start will need; the prompt has been checked.

    Raises:
        InvalidInput: there is no such folder, or it may not be entered.
        UnknownAgent, UsageError, BinaryNotFound, CafleetError: as for `launch.prepare`.
    """
    wish = wish._replace(directory=check_directory(wish.directory))
    rehearsal = _start_request(wish, name, None, monitor=monitor)
    return Plan(prepare(runtime.config, coding_agent, rehearsal), wish, name, monitor)


@contextmanager
def opened_pane(
    runtime: Runtime, multiplexer: Multiplexer, plan: Plan, values: PromptValues, beside: PaneAddress
) -> Iterator[PaneAddress]:
    """A new pane in which the planned agent starts; it is closed again where the block fails, as it does
    where the program ends at once (`launch.check_survived`).

    Raises:
        MultiplexerError: no pane could be opened.
        CafleetError: its start needs something that is missing.
    """
    told = _start_request(plan.wish, plan.name, values, monitor=plan.monitor)
    directory = plan.wish.directory
    pane = open_pane(runtime, multiplexer, plan.program, told, beside=beside, directory=directory)
    try:
        yield pane
    except BaseException as error:
        undo(error, f"pane {pane.pane}", lambda: multiplexer.kill_pane(pane))
        raise


def _start_request(wish: Wish, name: str, values: PromptValues | None, *, monitor: bool) -> StartRequest:
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
