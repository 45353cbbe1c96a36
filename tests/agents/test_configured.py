"""Agents of config.toml (SPEC 6, docs/agents.md)."""

import textwrap
from pathlib import Path

import pytest
from tests.support.agent_screens import holds

from cafleet import config
from cafleet.agents import registry, screen
from cafleet.agents.base import Agent, AgentState, StartRequest
from cafleet.errors import CafleetError, ConfigFileError, UnknownAgent, UsageError

GEMINI = """\
[agents.gemini]
command = ["gemini", "--yolo", "-m", "{model}", "-i", "{prompt}"]
composer = '^> (?P<draft>.*)$'
awaiting_user = ["Allow execution"]
working = ["esc to cancel"]
"""
WIDTH = 60
LINE = "[cafleet msg 12 from 3 2026-11-29T10:00:00.000000+00:00] look at the parser, then say what you think"


def settings(folder: Path, text: str) -> config.Config:
    path = folder / "cafleet" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return config.load({"HOME": str(folder), "XDG_CONFIG_HOME": str(folder)})


def gemini(folder: Path, extra: str = "") -> Agent:
    return registry.get("gemini", settings(folder, GEMINI + extra))


def request(model: str | None = None, effort: str | None = None) -> StartRequest:
    return StartRequest(
        "do {it}", name="ada", member_id=4, fleet_id=2, monitor=False, model=model, effort=effort
    )


# -- the registry ------------------------------------------------------------------------------


def test_a_built_in_agent_needs_no_file(tmp_path: Path) -> None:
    broken = settings(tmp_path, "this is = not [ toml")
    assert registry.get("codex", broken).name == "codex"
    with pytest.raises(ConfigFileError):
        registry.get("gemini", broken)


def test_known_and_unknown_names(tmp_path: Path) -> None:
    here = settings(tmp_path, GEMINI)
    assert registry.known(here) == ["claude", "codex", "opencode", "gemini"]
    with pytest.raises(UnknownAgent) as caught:
        registry.get("gemma", here)
    assert str(caught.value) == "unknown coding agent 'gemma'; known: claude, codex, opencode, gemini"


def test_without_a_file_only_the_built_in_ones_are_known(tmp_path: Path) -> None:
    here = config.load({"HOME": str(tmp_path)})
    assert registry.known(here) == list(registry.BUILT_IN)


# -- the command -------------------------------------------------------------------------------


def test_a_missing_model_takes_its_flag_with_it(tmp_path: Path) -> None:
    agent = gemini(tmp_path)
    assert agent.binary == "gemini"
    assert agent.start_argv(request(), "/bin/gemini") == ["/bin/gemini", "--yolo", "-i", "do {it}"]
    with_model = agent.start_argv(request(model="pro"), "/bin/gemini")
    assert with_model == ["/bin/gemini", "--yolo", "-m", "pro", "-i", "do {it}"]


def test_groups_and_every_placeholder(tmp_path: Path) -> None:
    text = """\
[agents.own]
command = ["own", ["--use", "{model}", "--effort={effort}"], "{{{name}}}-{member_id}@{fleet_id}", "{prompt}"]
"""
    agent = registry.get("own", settings(tmp_path, text))
    assert agent.start_argv(request(), "/own") == ["/own", "{ada}-4@2", "do {it}"]
    full = agent.start_argv(request(model="m", effort="low"), "/own")
    assert full == ["/own", "--use", "m", "--effort=low", "{ada}-4@2", "do {it}"]


def test_models_and_efforts_are_checked(tmp_path: Path) -> None:
    agent = gemini(tmp_path, 'models = ["pro", "flash"]\n')
    agent.check("pro", None)
    with pytest.raises(UsageError, match="gemini has no model 'ultra'; known: pro, flash"):
        agent.check("ultra", None)
    with pytest.raises(UsageError, match="gemini has no effort setting: its command holds no"):
        agent.check(None, "high")


def test_a_command_without_a_prompt_starts_nobody(tmp_path: Path) -> None:
    text = '[agents.mute]\ncommand = ["mute", "--for", "{{prompt}}"]\n'
    mute = registry.get("mute", settings(tmp_path, text))
    with pytest.raises(UsageError, match="mute cannot be given its prompt: its command holds no"):
        mute.start_argv(request(), "/bin/mute")


# -- the screen --------------------------------------------------------------------------------


def read(agent: Agent, *rows: str, width: int = WIDTH) -> tuple[AgentState, str | None]:
    reading = agent.read(screen.parse(rows, width=width))
    return reading.state, reading.composer


def wrapped(line: str, width: int = WIDTH) -> list[str]:
    """As a terminal wraps: a wide character that does not fit goes into the next row."""
    rows = [""]
    for character in line:
        if screen.columns(rows[-1] + character) > width:
            rows.append("")
        rows[-1] += character
    return rows


def test_an_empty_composer(tmp_path: Path) -> None:
    agent = gemini(tmp_path)
    assert read(agent, "hello", "", "> ") == (AgentState.AT_REST, "")
    assert read(agent, "hello", "", ">", "status: fine") == (AgentState.AT_REST, "")
    assert read(agent, "> \x1b[2mtype here\x1b[0m") == (AgentState.AT_REST, "")


def test_a_draft(tmp_path: Path) -> None:
    assert read(gemini(tmp_path), "hello", "> half typed") == (AgentState.AT_REST, "half typed")


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
@pytest.mark.parametrize("length", [60, 100, 200, 270, 400, 700])
@pytest.mark.parametrize("footer", ["", "status: fine"])
def test_a_wrapped_line_is_read_whole(tmp_path: Path, width: int, length: int, footer: str) -> None:
    line = (LINE + " and 日本語 too " * 60)[:length].strip()
    rows = wrapped(f"> {line}", width)
    reading = gemini(tmp_path).read(screen.parse(["hello", "", *rows, footer], width=width))
    assert holds(reading, line, just_pasted=False)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_line_that_is_wrapped_between_words_is_read_whole(tmp_path: Path, width: int) -> None:
    rows = textwrap.wrap(f"> {LINE * 5}", width - 2, subsequent_indent="  ")
    reading = gemini(tmp_path).read(screen.parse(["hello", "", *rows, "─" * width, "status"], width=width))
    assert holds(reading, LINE * 5, just_pasted=False)


def test_a_wrapped_row_that_looks_like_a_composer_belongs_to_the_text(tmp_path: Path) -> None:
    line = "x" * 58 + "> quoted text goes on here"
    reading = gemini(tmp_path).read(screen.parse(wrapped(f"> {line}"), width=WIDTH))
    assert holds(reading, line, just_pasted=False)


def test_a_wrapped_row_that_looks_like_a_question_is_none(tmp_path: Path) -> None:
    line = "y" * 55 + " Allow execution of everything"
    reading = gemini(tmp_path).read(screen.parse(wrapped(f"> {line}"), width=WIDTH))
    assert (reading.state, holds(reading, line, just_pasted=False)) == (AgentState.AT_REST, True)


def test_working(tmp_path: Path) -> None:
    agent = gemini(tmp_path)
    assert read(agent, "thinking (esc to cancel)", "> ") == (AgentState.WORKING, "")
    assert read(agent, "thinking (esc to cancel)") == (AgentState.WORKING, None)


def test_a_question_below_the_composer_or_without_one(tmp_path: Path) -> None:
    agent = gemini(tmp_path)
    assert read(agent, "> old words", "Allow execution of: rm?", "1. yes") == (AgentState.AWAITING_USER, None)
    assert read(agent, "Allow execution of: rm?", "1. yes") == (AgentState.AWAITING_USER, None)


def test_a_question_in_the_text_above_the_composer_is_none(tmp_path: Path) -> None:
    rows = ("he wrote: Allow execution of: rm?", "", "> ")
    assert read(gemini(tmp_path), *rows) == (AgentState.AT_REST, "")


def test_something_else(tmp_path: Path) -> None:
    assert read(gemini(tmp_path), "$ ls", "README") == (AgentState.UNKNOWN, None)
    assert read(gemini(tmp_path)) == (AgentState.UNKNOWN, None)


def test_placeholder_and_composer_end(tmp_path: Path) -> None:
    agent = gemini(tmp_path, "placeholder = 'Type your message'\ncomposer_end = '^status:'\n")
    assert read(agent, "> Type your message", "status: fine") == (AgentState.AT_REST, "")
    state, composer = read(agent, "> first", "second", "status: fine")
    assert (state, composer) == (AgentState.AT_REST, "first\nsecond")


def test_an_agent_whose_composer_cannot_be_read(tmp_path: Path) -> None:
    agent = registry.get("own", settings(tmp_path, '[agents.own]\ncommand = ["own", "{prompt}"]\n'))
    assert read(agent, "> whatever") == (AgentState.UNKNOWN, None)


# -- assets ------------------------------------------------------------------------------------


def test_a_skills_folder(tmp_path: Path) -> None:
    home = gemini(tmp_path, 'skills = "~/.gemini/skills"\n').asset_home()
    assert home is not None
    assert home.skills_directory == str(tmp_path / ".gemini" / "skills")
    assert gemini(tmp_path).asset_home() is None


# -- mistakes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "where", "detail"),
    [
        ("[agents.own\n", ":1", "Expected ']'"),
        ("[agents.own]\ncommand = ['x',\n\n", ":2: ", "Invalid value"),
        ("x = '", ":1: ", "Expected"),
        ("x = 1\n", ":1: x", "unknown key"),
        ("agents = 3\n", ":1: agents", "must be a table"),
        ('\n[agents.codex]\ncommand = ["x"]\n', ":2: agents.codex", "is built in"),
        ("[agents.own]\nworking = []\n", ":1: agents.own", "has no 'command'"),
        ("[agents.'o n']\ncommand = ['x']\n", ":1: agents.o n", "is not a name"),
        ("[agents.-x]\ncommand = ['x']\n", ":1: agents.-x", "a letter or digit, then"),
        ('[agents.own]\n\ncommand = "own"\n', ":3: agents.own.command", "must be an array"),
        ("[agents.own]\ncommand = []\n", ":2: agents.own.command", "must be an array"),
        ('[agents.own]\ncommand = ["{prompt}"]\n', ":2: agents.own.command", "must start with"),
        ('[agents.own]\ncommand = ["x", 3]\n', ":2: agents.own.command", "must hold strings"),
        ('[agents.own]\ncommand = ["x", "{who}"]\n', ":2: agents.own.command", "unknown placeholder '{who}'"),
        ('[agents.own]\ncommand = ["x", "{prompt"]\n', ":2: agents.own.command", "stray '{'"),
        ("[agents.own]\ncommand = ['x']\ncomposer = '('\n", ":3: agents.own.composer", "not a regular"),
        ("[agents.own]\ncommand = ['x']\ncomposer = '^> '\n", ":3: agents.own.composer", "must have a group"),
        ("[agents.own]\ncommand = ['x']\nworking = [1]\n", ":3: agents.own.working", "must be a regular"),
        ("[agents.own]\ncommand = ['x']\nworking = ['']\n", ":3: agents.own.working", "matches every line"),
        (
            "[agents.own]\ncommand = ['x']\nwoking = []\n",
            ":3: agents.own.woking",
            "unknown key; known: command",
        ),
        (
            "[agents.own]\ncommand = ['x']\nsettle_seconds = true\n",
            ":3: agents.own.settle_seconds",
            "a number",
        ),
        ("[agents.own]\ncommand = ['x']\nstart_seconds = 999\n", ":3: agents.own.start_seconds", "0 to 120"),
        ("[agents.own]\ncommand = ['x']\nline_limit = 10\n", ":3: agents.own.line_limit", "80 to 700"),
        ("[agents.own]\ncommand = ['x']\nline_limit = 99.5\n", ":3: agents.own.line_limit", "whole number"),
        (
            "[agents.own]\ncommand = ['x']\nskills = 'rel'\n",
            ":3: agents.own.skills",
            "absolute path (got 'rel')",
        ),
        (
            "[agents.a]\ncommand = ['x']\n[agents.b]\ncommand = 1\n",
            ":4: agents.b.command",
            "must be an array",
        ),
        ("[agents]\nown = 3\n", "agents.own", "must be a table"),
    ],
)
def test_a_mistake_is_named_with_line_and_key(tmp_path: Path, text: str, where: str, detail: str) -> None:
    here = settings(tmp_path, text)
    with pytest.raises(ConfigFileError) as caught:
        registry.known(here)
    message = str(caught.value)
    assert message.startswith(here.config_path)
    assert where in message
    assert detail in message


def test_a_file_that_is_nested_too_deeply(tmp_path: Path) -> None:
    here = settings(tmp_path, "x = " + "[" * 100_000)
    with pytest.raises(ConfigFileError, match="is nested too deeply"):
        registry.known(here)


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    here = settings(tmp_path, "")
    Path(here.config_path).write_bytes(b"\xff\xfe")
    with pytest.raises(CafleetError, match="is not UTF-8"):
        registry.known(here)


def test_a_file_that_is_a_folder(tmp_path: Path) -> None:
    here = settings(tmp_path, "")
    Path(here.config_path).unlink()
    Path(here.config_path).mkdir()
    with pytest.raises(CafleetError, match="Is a directory"):
        registry.known(here)
