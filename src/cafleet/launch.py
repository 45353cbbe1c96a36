"""Start an agent in a new pane: its prompt, its command line, its environment, its first screen (SPEC 6).

What can be known to be wrong is found before anything is written (`prepare`, `check_prompt`,
`check_directory`). Whoever opens a pane closes it again where a later step fails.
"""

import os
import re
import sys
import time
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from cafleet.agents import registry, screen
from cafleet.agents.base import Agent, AgentState, StartRequest, find_binary
from cafleet.config import Config
from cafleet.errors import (
    AgentDidNotStart,
    BinaryNotFound,
    InvalidInput,
    MultiplexerError,
    PaneDead,
    PaneGone,
    UsageError,
)
from cafleet.folders import absolute_path
from cafleet.multiplexer.base import LaunchSpec, Multiplexer, PaneAddress, PaneView
from cafleet.runtime import Runtime

MAX_PROMPT_BYTES = 96 * 1024
"""Of the rendered prompt as UTF-8."""
SURVIVAL_SECONDS = 0.3
"""A program that cannot start at all has mostly ended by then."""
_LOOK_SECONDS = 0.25
_EXIT_STATUS_LOOKS = 5
_EXIT_STATUS_PAUSE_SECONDS = 0.05
_LONGEST_QUOTE = 40
_LAST_WORDS_LINES = 20
_PLACEHOLDERS = ("fleet_id", "member_id", "director_member_id", "coding_agent")
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


class Program(NamedTuple):
    """An agent that can be started here."""

    agent: Agent
    path: str
    """Absolute path of its binary."""


class PromptValues(NamedTuple):
    """What the placeholders of a spawn prompt stand for."""

    fleet_id: int
    member_id: int
    director_member_id: int
    coding_agent: str


class StartState(StrEnum):
    """What a new pane's first screens show."""

    READY = "ready"
    NEEDS_ATTENTION = "needs attention"
    """A question (trust, login, permission) that nobody but its user may answer."""
    NOT_RECOGNISED = "not recognised yet"
    ENDED = "ended"
    """The program has ended after a good start."""


class Start(NamedTuple):
    """How a start went."""

    state: StartState
    detail: str | None
    """One clause for people; None when ready."""


# -- before anything is written ----------------------------------------------------------------


def prepare(config: Config, coding_agent: str, request: StartRequest) -> Program:
    """Find an agent and check all that can be checked; `request` may still hold the raw prompt.

    Raises:
        UnknownAgent, UsageError: the agent, its model or its effort.
        BinaryNotFound: its program is not on PATH.
        CafleetError: something else that its start needs is missing.
    """
    agent = registry.get(coding_agent, config)
    agent.check(request.model, request.effort)
    path = find_binary(agent.binary, config.environ.get("PATH", os.defpath))
    if path is None:
        raise BinaryNotFound(agent.binary)
    agent.start_argv(request, path)
    return Program(agent, path)


def check_directory(directory: str) -> str:
    """The absolute path of a folder in which an agent can start.

    Raises:
        InvalidInput: there is no such folder, or no current one, or it may not be entered.
    """
    path = absolute_path(directory)
    if "\0" in path or not os.path.isdir(path):
        raise InvalidInput(f"no such directory: {path}")
    if not os.access(path, os.X_OK):
        raise InvalidInput(f"directory may not be entered: {path}")
    return path


def check_prompt(template: str) -> str:
    """`template` itself.

    Raises:
        UsageError: an unknown placeholder or a stray brace.
        InvalidInput: as for `render_prompt`.
    """
    render_prompt(template, PromptValues(0, 0, 0, ""))
    return template


def render_prompt(template: str, values: PromptValues) -> str:
    """Fill in `{fleet_id}`, `{member_id}`, `{director_member_id}`, `{coding_agent}`; `{{`, `}}` are braces.

    Raises:
        UsageError: an unknown placeholder or a stray brace, named.
        InvalidInput: an empty prompt, one with a NUL or a lone surrogate, or more than 96 KiB.
    """
    known = {name: str(value) for name, value in zip(_PLACEHOLDERS, values, strict=True)}

    def fill(found: re.Match[str]) -> str:
        text, name = found.group(), found.group(1)
        if text in ("{{", "}}"):
            return text[0]
        line = template.count("\n", 0, found.start()) + 1
        if name is None:
            raise UsageError(f"stray '{text}' in line {line} of the prompt; '{text * 2}' stands for a brace")
        if name not in known:
            names = ", ".join(f"{{{one}}}" for one in known)
            raise UsageError(
                f"unknown placeholder {_quote(text)} in line {line} of the prompt; known: {names}"
            )
        return known[name]

    prompt = _BRACES.sub(fill, template)
    if not prompt or prompt.isspace():
        raise InvalidInput("the prompt is empty")
    if "\0" in prompt:
        raise InvalidInput("the prompt contains a NUL character")
    try:
        size = len(prompt.encode())
    except UnicodeEncodeError:
        raise InvalidInput("the prompt is not valid UTF-8 (it holds a lone surrogate)") from None
    if size > MAX_PROMPT_BYTES:
        raise InvalidInput(f"the prompt has {size} bytes; at most {MAX_PROMPT_BYTES} (96 KiB) are allowed")
    return prompt


def _quote(text: str) -> str:
    short = text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"
    return repr(short)


# -- the pane ----------------------------------------------------------------------------------


def open_pane(
    runtime: Runtime,
    multiplexer: Multiplexer,
    program: Program,
    request: StartRequest,
    *,
    beside: PaneAddress,
    directory: str,
) -> PaneAddress:
    """Start the program in a new pane. Leaves nothing behind when it raises.

    Raises:
        MultiplexerError: no pane could be opened.
        CafleetError: the program's start needs something that is missing.
    """
    config = runtime.config
    environ = pane_environment(config)
    scrub = [name for agent in registry.BUILT_IN for name in registry.get(agent, config).scrub]
    scrub += [*program.agent.scrub, *_other_ways(environ)]
    spec = LaunchSpec(
        argv=program.agent.start_argv(request, program.path),
        environ=environ,
        scrub=tuple(dict.fromkeys(scrub)),
        directory=directory,
        title=request.name,
        private_directory=os.path.join(config.data_directory, "launch"),
    )
    return multiplexer.open_pane(beside, spec)


def check_survived(multiplexer: Multiplexer, pane: PaneAddress, program: Program) -> None:
    """Look at a new pane once, a moment after its start.

    Raises:
        AgentDidNotStart: the program has ended already; with its last words where they can be had.
        MultiplexerError: the pane could not be looked at.
    """
    _look(multiplexer, pane, program.agent, SURVIVAL_SECONDS)


def watch_start(
    multiplexer: Multiplexer, pane: PaneAddress, program: Program, wait_seconds: float | None = None
) -> Start:
    """Wait for the first screen that the agent's module recognises; presses nothing.

    `wait_seconds`: at most so long; None: as long as the agent may take (`Agent.start_seconds`).

    Raises:
        AgentDidNotStart: the program ended meanwhile.
    """
    seconds = program.agent.start_seconds if wait_seconds is None else wait_seconds
    deadline = time.monotonic() + seconds
    while True:
        left = deadline - time.monotonic()
        try:
            view = _look(multiplexer, pane, program.agent, max(0.0, min(_LOOK_SECONDS, left)))
        except MultiplexerError as error:  # A busy server says nothing about the agent.
            return Start(StartState.NOT_RECOGNISED, str(error))
        state = _state(program.agent, view)
        if state in (AgentState.AT_REST, AgentState.WORKING):
            return Start(StartState.READY, None)
        if state is AgentState.AWAITING_USER:
            return Start(
                StartState.NEEDS_ATTENTION,
                "its screen asks a question, which only its user may answer, in its pane",
            )
        if left <= 0:
            waited = f"no known screen of {program.agent.name} within {seconds:g} s"
            return Start(StartState.NOT_RECOGNISED, waited)


def pane_environment(config: Config) -> dict[str, str]:
    """What a new pane is given: a PATH on which this cafleet is found, and the way to the same file."""
    path = config.environ.get("PATH", os.defpath)
    environ = {"PATH": path_with_cafleet(path, sys.argv[0], sys.executable)}
    if config.database_url is not None:
        environ["CAFLEET_DATABASE_URL"] = config.database_url
    elif config.environ.get("XDG_DATA_HOME"):
        # The multiplexer's server may have been started with another one: the file must be the same.
        environ["CAFLEET_DATABASE_URL"] = f"sqlite:///{config.database_path}"
    return environ


def _other_ways(environ: Mapping[str, str]) -> tuple[str, ...]:
    """What would lead a pane to another file than the caller's, if the multiplexer's server has it from
    the shell that it was started in. `environ`: what the pane is given."""
    return () if "CAFLEET_DATABASE_URL" in environ else ("CAFLEET_DATABASE_URL", "XDG_DATA_HOME")


def path_with_cafleet(path: str, program: str, interpreter: str) -> str:
    """`path`, with the folder of the running `cafleet` in front where `path` finds another or none.

    `program`, `interpreter`: `sys.argv[0]` and `sys.executable` of the running process.
    """
    own = [program] if os.path.basename(program) == "cafleet" else []
    own.append(os.path.join(os.path.dirname(interpreter), "cafleet"))
    for candidate in own:
        script = find_binary(os.path.abspath(candidate), "")
        if script is None:
            continue
        found = find_binary("cafleet", path)
        if found is not None and os.path.realpath(found) == os.path.realpath(script):
            return path
        return os.path.dirname(script) + os.pathsep + path if path else os.path.dirname(script)
    return path


# -- looking -----------------------------------------------------------------------------------


def _look(multiplexer: Multiplexer, pane: PaneAddress, agent: Agent, settle_seconds: float) -> PaneView:
    try:
        return multiplexer.look(pane, settle_seconds=settle_seconds)
    except PaneGone:
        raise AgentDidNotStart(agent.binary, "its pane has closed; run it by hand to see why") from None
    except PaneDead:
        raise AgentDidNotStart(agent.binary, _last_words(multiplexer, pane)) from None


def _state(agent: Agent, view: PaneView) -> AgentState:
    return agent.read(screen.parse(view.rows, title=view.title, cursor_y=view.cursor_y)).state


def _last_words(multiplexer: Multiplexer, pane: PaneAddress) -> str:
    """Exit status and last line of a dead pane, as far as they can be had."""
    words = "its program has ended"
    try:
        status = _exit_status(multiplexer, pane)
        if status is not None:
            words = f"exit status {status}"
        lines = multiplexer.capture(pane, lines=_LAST_WORDS_LINES).split("\n")
    except MultiplexerError:
        return words
    said = [line.strip() for line in lines if line.strip() and not line.startswith("Pane is dead")]
    return f"{words}: {said[-1]}" if said else words


def _exit_status(multiplexer: Multiplexer, pane: PaneAddress) -> int | None:
    """A multiplexer can see a program's terminal close before it has its exit status."""
    for _ in range(_EXIT_STATUS_LOOKS):
        found = multiplexer.list_panes(pane.server).get(pane.pane)
        if found is None or found.exit_status is not None:
            return None if found is None else found.exit_status
        time.sleep(_EXIT_STATUS_PAUSE_SECONDS)
    return None
