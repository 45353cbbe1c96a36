"""The stand-in agent at a real terminal, and as cafleet sees it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.standin import StandinPane, configuration_text
from tests.support.tmux_server import TmuxServer
from tests.support.waiting import has_ended, wait_until

from cafleet import config
from cafleet.agents import registry
from cafleet.agents.base import StartRequest
from cafleet.delivery.pane_state import PaneReading, classify
from cafleet.demo.standin.options import FAULTS, parse


@pytest.fixture
def server() -> Iterator[TmuxServer]:
    made = TmuxServer()
    made.start(width=80, height=24)
    yield made
    made.stop()


def seen(server: TmuxServer, pane: StandinPane, tmp_path: Path) -> PaneReading:
    """As the delivery sees it."""
    folder = tmp_path / ".config" / "cafleet"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(configuration_text(), encoding="utf-8")
    agent = registry.get("standin", config.load({"HOME": str(tmp_path)}))
    return classify(server.multiplexer().look(pane.address), agent)


@pytest.mark.parametrize(
    ("fault", "state", "composer"),
    [
        ("", "at rest", ""),
        ("ghost", "at rest", ""),
        ("busy", "working", ""),
        ("draft=half typed", "draft", "half typed"),
        ("dialog", "awaiting the user", None),
    ],
)
def test_each_state_is_recognised(
    server: TmuxServer, tmp_path: Path, fault: str, state: str, composer: str | None
) -> None:
    pane = StandinPane(server, tmp_path / "log", *([fault] if fault else [])).wait_until_ready()
    reading = seen(server, pane, tmp_path)
    assert (reading.state.value, reading.composer) == (state, composer)


def test_a_long_text_is_read_whole(server: TmuxServer, tmp_path: Path) -> None:
    text = "words that are wrapped into several rows 日本語 " * 8
    pane = StandinPane(server, tmp_path / "log", f"draft={text}").wait_until_ready()
    reading = seen(server, pane, tmp_path)
    assert "".join((reading.composer or "").split()) == "".join(text.split())


def test_words_on_the_screen_do_not_pass_for_cues(server: TmuxServer, tmp_path: Path) -> None:
    cues = "∙ esc to interrupt\n∙ Enter to confirm · Esc to cancel\n> quoted\n" + "─" * 80
    pane = StandinPane(server, tmp_path / "log", prompt=cues).wait_until_ready()
    reading = seen(server, pane, tmp_path)
    assert (reading.state.value, reading.composer) == ("at rest", "")


def test_a_turn_shows_work_and_then_rest(server: TmuxServer, tmp_path: Path) -> None:
    pane = StandinPane(server, tmp_path / "log").wait_until_ready()
    pane.type("work: 60")
    pane.press("Enter")
    pane.wait_for_text("esc to interrupt")
    assert pane.submits() == ["work: 60"]
    pane.type("queued words")
    pane.press("Enter")
    pane.wait_for_text("1 queued")
    pane.press("Escape")
    pane.wait_for_text("Interrupted.")
    assert {"esc": 1} in pane.events()


def test_a_question_of_a_turn_is_answered_by_the_person(server: TmuxServer, tmp_path: Path) -> None:
    pane = StandinPane(server, tmp_path / "log", prompt="question: Shall I delete it?")
    pane.wait_for_text("Shall I delete it?")
    assert seen(server, pane, tmp_path).state.value == "awaiting the user"
    pane.press("n")
    pane.wait_for_text("The person said no.")
    assert pane.events() == [{"key": "n"}]


@pytest.mark.parametrize("key", ["1", "y", "Enter"])
def test_a_key_at_a_question_approves(server: TmuxServer, tmp_path: Path, key: str) -> None:
    pane = StandinPane(server, tmp_path / "log", "dialog").wait_until_ready()
    pane.press(key)
    wait_until(lambda: {"approved": 1} in pane.events(), what="the approval")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_its_tools(tmp_path: Path, number: int) -> None:
    tool = tmp_path / "bin" / "cafleet"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/tool\nexec sleep 1000\n")
    tool.chmod(0o755)
    path = f"{tool.parent}{os.pathsep}{os.environ['PATH']}"
    server = TmuxServer(environ={**os.environ, "PATH": path})
    try:
        server.start()
        pane = StandinPane(server, tmp_path / "log", prompt="tell 2: x", member_id=1)
        wait_until(lambda: (tmp_path / "tool").exists() and (tmp_path / "tool").read_text(), what="the tool")
        os.kill(int(server.show("#{pane_pid}", pane.pane)), number)
        wait_until(lambda: pane.pane not in server.panes(), what="the end of the pane")
        tool_pid = int((tmp_path / "tool").read_text())
        wait_until(lambda: has_ended(tool_pid), what="the tool has ended, too")
    finally:
        server.stop()


def test_it_leaves_the_terminal_as_it_was(server: TmuxServer, tmp_path: Path) -> None:
    program = f"{sys.executable} -m cafleet.demo.standin; stty -a | grep -o '[-]*icanon'; sleep 1000"
    pane = server.add_pane("sh", "-c", program)
    server.wait_for_text(pane, "∙ ready")
    server.run("send-keys", "-t", pane, "/exit", "Enter")
    assert "-icanon" not in server.wait_for_text(pane, "icanon")
    assert server.show("#{alternate_on}", pane) == "0"


def test_a_resized_pane_is_drawn_anew(server: TmuxServer, tmp_path: Path) -> None:
    pane = StandinPane(server, tmp_path / "log", "draft=still here").wait_until_ready()
    server.run("resize-window", "-t", pane.pane, "-x", "50", "-y", "12")
    wait_until(lambda: server.screen(pane.pane).count("─" * 50) == 2, what="rules of the new width")
    assert "> still here" in server.screen(pane.pane)


def test_an_unknown_fault_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--fault", "gremlins"], {})
    assert "unknown fault 'gremlins'" in capfd.readouterr().err
    assert dict(parse(["--fault", "slow=2", "--fault", "busy"], {}).faults) == {"slow": "2", "busy": ""}


def test_its_help_names_every_fault() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cafleet.demo.standin", "--help"], capture_output=True, text=True, check=True
    )
    assert all(fault in done.stdout for fault in FAULTS)


def test_the_configuration_starts_it(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "cafleet"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(configuration_text("--fault=draft={x}"), encoding="utf-8")
    agent = registry.get("standin", config.load({"HOME": str(tmp_path)}))
    request = StartRequest("-do {this}", "ada", 3, 1, False, None, None)
    argv = agent.start_argv(request, "/python")
    options = parse(argv[3:], {})
    assert argv[:3] == ["/python", "-m", "cafleet.demo.standin"]
    assert (options.member_id, options.prompt, options.faults) == (3, "-do {this}", {"draft": "{x}"})
