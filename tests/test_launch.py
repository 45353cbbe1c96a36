import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.fleet_builder import World, claude_screen

from cafleet.agents import registry
from cafleet.agents.base import StartRequest
from cafleet.errors import (
    AgentDidNotStart,
    BinaryNotFound,
    InvalidInput,
    MultiplexerError,
    UnknownAgent,
    UsageError,
)
from cafleet.launch import (
    MAX_PROMPT_BYTES,
    Program,
    PromptValues,
    StartState,
    check_directory,
    check_prompt,
    check_survived,
    open_pane,
    pane_environment,
    path_with_cafleet,
    prepare,
    render_prompt,
    watch_start,
)

VALUES = PromptValues(1, 22, 333, "claude")
REQUEST = StartRequest("go", "worker", 2, 1, monitor=False, model=None, effort=None)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.stand_in()
    yield made
    made.close()


@pytest.fixture
def program(world: World) -> Program:
    return prepare(world.runtime.config, "claude", REQUEST)


# -- prompts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "prompt"),
    [
        ("plain", "plain"),
        ("{fleet_id}-{member_id}-{director_member_id}-{coding_agent}", "1-22-333-claude"),
        ("{{member_id}}", "{member_id}"),
        ("{{{member_id}}}", "{22}"),
        ("{{}}{{", "{}{"),
        ("{member_id}{member_id}", "2222"),
        ("$(id) `id` ; -x 'a' \"b\"\n\t\x1b[31m", "$(id) `id` ; -x 'a' \"b\"\n\t\x1b[31m"),
    ],
)  # fmt: skip
def test_placeholders_are_filled_in_and_double_braces_are_braces(template: str, prompt: str) -> None:
    assert render_prompt(template, VALUES) == prompt


@given(st.text().filter(str.strip).filter(lambda text: "\0" not in text))
def test_any_text_survives_with_its_braces_doubled(text: str) -> None:
    assert render_prompt(text.replace("{", "{{").replace("}", "}}"), VALUES) == text


@pytest.mark.parametrize("template", ["{name}", "{ member_id }", "{}", "{member_id!r}", "{0}", "a\n{x\ny}"])
def test_an_unknown_placeholder_is_named(template: str) -> None:
    with pytest.raises(UsageError) as caught:
        render_prompt(template, VALUES)
    placeholder = repr(template[template.index("{") :])
    assert placeholder in str(caught.value)
    assert "{fleet_id}, {member_id}, {director_member_id}, {coding_agent}" in str(caught.value)


@pytest.mark.parametrize(
    ("template", "brace", "line"),
    [("{", "{", 1), ("a\nb }", "}", 2), ("{fleet_id}}", "}", 1), ("{{{", "{", 1), ("{fleet_id{", "{", 1)],
)
def test_a_stray_brace_is_named_with_its_line(template: str, brace: str, line: int) -> None:
    with pytest.raises(UsageError) as caught:
        check_prompt(template)
    assert str(caught.value) == (
        f"stray '{brace}' in line {line} of the prompt; '{brace * 2}' stands for a brace"
    )


def test_a_long_unknown_placeholder_is_cut_in_the_message() -> None:
    with pytest.raises(UsageError) as caught:
        check_prompt("{" + "x" * 5000 + "}")
    assert len(str(caught.value)) < 200


def test_prompts_of_96_kib_work_and_larger_ones_are_refused() -> None:
    assert check_prompt("é" * (MAX_PROMPT_BYTES // 2))
    with pytest.raises(InvalidInput, match="96 KiB"):
        check_prompt("é" * (MAX_PROMPT_BYTES // 2) + "x")


@pytest.mark.parametrize("template", ["", " \n", "a\0b", "a\ud800b"])
def test_prompts_that_no_program_can_be_given_are_refused(template: str) -> None:
    with pytest.raises(InvalidInput):
        check_prompt(template)


# -- preparation -------------------------------------------------------------------------------


def test_an_agent_is_prepared_with_the_absolute_path_of_its_program(world: World) -> None:
    found = prepare(world.runtime.config, "claude", REQUEST)
    assert (found.agent.name, found.path) == ("claude", str(world.directory / "bin" / "claude"))


def test_what_cannot_be_started_is_found_early(world: World) -> None:
    config = world.runtime.config
    with pytest.raises(UnknownAgent, match=r"^unknown coding agent 'x'; known: claude, codex, opencode"):
        prepare(config, "x", REQUEST)
    with pytest.raises(BinaryNotFound, match=r"^binary opencode not found on PATH$"):
        prepare(config, "opencode", REQUEST)
    with pytest.raises(UsageError):
        prepare(config, "claude", REQUEST._replace(effort="heroic"))
    (world.directory / "bin" / "opencode").write_text("#!/bin/false\n")
    (world.directory / "bin" / "opencode").chmod(0o755)
    with pytest.raises(Exception, match="preset not found"):
        prepare(config, "opencode", REQUEST)


def test_directories_are_made_absolute_and_checked(tmp_path: Path) -> None:
    assert check_directory(str(tmp_path)) == str(tmp_path)
    assert check_directory(".") == os.getcwd()
    (tmp_path / "file").touch()
    for bad in (tmp_path / "none", tmp_path / "file"):
        with pytest.raises(InvalidInput, match=f"^no such directory: {bad}"):
            check_directory(str(bad))
    with pytest.raises(InvalidInput):
        check_directory("a\0b")


# -- environment -------------------------------------------------------------------------------


def executable(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/false\n")
    path.chmod(0o755)
    return str(path)


def test_a_path_that_finds_this_cafleet_stays_as_it_is(tmp_path: Path) -> None:
    script = executable(tmp_path / "venv" / "bin" / "cafleet")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "cafleet").symlink_to(script)
    for folder in ("venv/bin", "links"):
        path = f"/nowhere:{tmp_path / folder}"
        assert path_with_cafleet(path, script, "/usr/bin/python3") == path


def test_another_cafleet_or_none_on_the_path_is_preceded_by_this_one(tmp_path: Path) -> None:
    script = executable(tmp_path / "venv" / "bin" / "cafleet")
    other = executable(tmp_path / "other" / "cafleet")
    own = os.path.dirname(script)
    for path in ("/nowhere", os.path.dirname(other)):
        assert path_with_cafleet(path, script, "/usr/bin/python3") == f"{own}:{path}"
    assert path_with_cafleet("", script, "/usr/bin/python3") == own


def test_a_module_run_finds_the_script_beside_its_interpreter(tmp_path: Path) -> None:
    script = executable(tmp_path / "venv" / "bin" / "cafleet")
    interpreter = os.path.join(os.path.dirname(script), "python")
    main = str(tmp_path / "src" / "cafleet" / "__main__.py")
    assert path_with_cafleet("/nowhere", main, interpreter) == f"{os.path.dirname(script)}:/nowhere"
    assert path_with_cafleet("/nowhere", main, "/usr/bin/none/python") == "/nowhere"


def test_a_pane_is_given_a_path_the_way_to_the_file_and_nothing_else(world: World) -> None:
    assert set(pane_environment(world.runtime.config)) == {"PATH", "CAFLEET_DATABASE_URL"}
    url = world.environ.pop("CAFLEET_DATABASE_URL")
    assert url.startswith("sqlite:////")
    assert set(pane_environment(world.runtime.config)) == {"PATH"}


def test_a_data_home_of_the_callers_own_reaches_the_pane_as_a_url(world: World) -> None:
    del world.environ["CAFLEET_DATABASE_URL"]
    world.environ["XDG_DATA_HOME"] = str(world.directory / "data")
    config = world.runtime.config
    assert pane_environment(config)["CAFLEET_DATABASE_URL"] == f"sqlite:///{config.database_path}"


@pytest.mark.parametrize(
    ("name", "scrubbed"),
    [
        (None, {"CAFLEET_DATABASE_URL", "XDG_DATA_HOME"}),
        ("XDG_DATA_HOME", set()),
        ("CAFLEET_DATABASE_URL", set()),
    ],
)
def test_a_servers_own_way_to_a_file_does_not_reach_the_pane(
    world: World, program: Program, name: str | None, scrubbed: set[str]
) -> None:
    """Field case F9: the server keeps what it was started with; a caller without it means the default."""
    url = world.environ.pop("CAFLEET_DATABASE_URL")
    if name is not None:
        world.environ[name] = url if name == "CAFLEET_DATABASE_URL" else str(world.directory / "data")
    pane = open_pane(
        world.runtime, world.multiplexer, program, REQUEST, beside=world.here, directory=str(world.directory)
    )
    launch = world.multiplexer.pane(pane).launch
    assert launch is not None
    assert {"CAFLEET_DATABASE_URL", "XDG_DATA_HOME"} & set(launch.scrub) == scrubbed
    assert ("CAFLEET_DATABASE_URL" in launch.environ) == (name is not None)


def test_marks_of_every_built_in_product_are_scrubbed(world: World, program: Program) -> None:
    pane = open_pane(
        world.runtime, world.multiplexer, program, REQUEST, beside=world.here, directory=str(world.directory)
    )
    launch = world.multiplexer.pane(pane).launch
    assert launch is not None
    for name in registry.BUILT_IN:
        assert set(registry.get(name, world.runtime.config).scrub) <= set(launch.scrub)
    assert launch.private_directory == os.path.join(world.runtime.config.data_directory, "launch")


# -- watching ----------------------------------------------------------------------------------


def test_a_pane_that_closed_did_not_start(world: World, program: Program) -> None:
    pane = world.multiplexer.add_pane(server=world.here.server or "")
    world.multiplexer.remove_pane(pane)
    with pytest.raises(
        AgentDidNotStart, match=r"^claude ended right after it was started: its pane has closed"
    ):
        check_survived(world.multiplexer, pane, program)


def test_last_words_are_optional(world: World, program: Program) -> None:
    pane = world.multiplexer.add_pane(server=world.here.server or "")
    world.multiplexer.end_program(pane, exit_status=None)
    world.multiplexer.fail("capture", MultiplexerError("no answer"))
    with pytest.raises(AgentDidNotStart, match="its program has ended"):
        check_survived(world.multiplexer, pane, program)


def test_watching_ends_with_the_first_screen_that_is_known(world: World, program: Program) -> None:
    pane = world.multiplexer.add_pane(server=world.here.server or "")
    looks = 0

    def come_up(method: str, _: str) -> None:
        nonlocal looks
        looks += 1
        if looks == 4:
            world.multiplexer.pane(pane).rows = claude_screen("")

    world.multiplexer.before = come_up
    assert watch_start(world.multiplexer, pane, program, 60.0).state is StartState.READY
    assert looks == 4


def test_an_unknown_screen_is_reported_after_the_wait(world: World, program: Program) -> None:
    pane = world.multiplexer.add_pane(server=world.here.server or "")
    start = watch_start(world.multiplexer, pane, program, 0.0)
    assert start == (StartState.NOT_RECOGNISED, "no known screen of claude within 0 s")


def test_a_program_that_ends_while_it_is_watched_is_noticed(world: World, program: Program) -> None:
    pane = world.multiplexer.add_pane(server=world.here.server or "")
    world.multiplexer.before = lambda method, _: world.multiplexer.end_program(pane, 1)
    with pytest.raises(AgentDidNotStart, match="exit status 1"):
        watch_start(world.multiplexer, pane, program, 60.0)
