"""What a tmux server does at the wrong moment, or has an odd name for (field cases D)."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.tmux_server import IDLE, Recorder, TmuxServer
from tests.support.tmux_shim import TmuxShim
from tests.support.waiting import DEADLINE_SECONDS, has_ended, wait_until

from cafleet.errors import MultiplexerError, PaneGone
from cafleet.multiplexer.base import LaunchSpec, PaneAddress
from cafleet.multiplexer.tmux import Tmux


@pytest.fixture
def multiplexer(tmux_server: TmuxServer, tmux_shim: TmuxShim) -> Tmux:
    """The backend as in the first pane, through the shim."""
    return Tmux({**tmux_server.environ("%0"), "PATH": tmux_shim.path()}, timeout_seconds=DEADLINE_SECONDS)


ACTS: dict[str, Callable[[Tmux, PaneAddress], object]] = {
    "kill-pane": Tmux.kill_pane,
    "paste-buffer": lambda tmux, pane: tmux.paste(pane, "text", settle_seconds=0.0),
    "send-keys": lambda tmux, pane: tmux.press_enter(pane, settle_seconds=0.0),
}


@pytest.mark.parametrize("step", ACTS)
def test_a_server_that_is_replaced_at_the_last_moment_is_not_touched(
    tmux_server: TmuxServer, tmux_shim: TmuxShim, multiplexer: Tmux, tmp_path: Path, step: str
) -> None:
    """After every look, before the very call: the panes of the next server have the same numbers."""
    pane = tmux_server.address(tmux_server.add_pane())
    restart = tmp_path / "restart.sh"
    tmux, idle = f"tmux -S {tmux_server.socket} -f /dev/null", " ".join(IDLE)
    restart.write_text(
        f"{tmux} kill-server; until {tmux} new-session -d {idle} 2>/dev/null; do sleep 0.01; done\n"
        f"{tmux} new-window -d {idle}; {tmux} set-buffer -b strangers own\n"
    )
    tmux_shim.run_before(step, "/bin/sh", str(restart))
    told = contextlib.nullcontext() if step == "kill-pane" else pytest.raises(PaneGone, match="another one")
    with told:
        ACTS[step](multiplexer, pane)
    assert tmux_server.panes() == ["%0", pane.pane]
    assert tmux_server.run("list-buffers", "-F", "#{buffer_name}") == "strangers"


def test_a_window_without_space_is_left_for_another(
    tmux_server: TmuxServer, tmux_shim: TmuxShim, multiplexer: Tmux, launch: LaunchSpec
) -> None:
    here = tmux_server.address("%0")
    tmux_shim.fail("split-window", message="create pane failed: no space for new pane")
    made = multiplexer.open_pane(here, launch)
    assert made == tmux_server.address(made.pane)
    assert made.window != here.window


@pytest.mark.parametrize("asked", ["api.v2:x", "=main", "-x", "$0", "@0", "%0", "a b", "semi;", "日本"])
def test_a_session_of_any_name_is_named_as_tmux_has_it(
    tmux_servers: Callable[..., TmuxServer], launch: LaunchSpec, asked: str
) -> None:
    """Names are changed by tmux, taken for ids, or matched by their beginning: ids decide."""
    server = tmux_servers().start()
    server.run("new-session", "-d", "-x", "40", "-y", "10", *IDLE)
    server.run("rename-session", "-t", "$1", "--", asked.replace(";", "\\;"))
    server.run("new-session", "-d", "-s", "main-two", *IDLE)
    multiplexer = server.multiplexer("%1")
    here = multiplexer.current_pane()
    made = multiplexer.open_pane(here, launch)
    assert made.window != here.window, "no room for a split"
    assert made.session == here.session == server.show("#{session_name}", "%1")
    assert server.show("#{session_id}", made.pane) == "$1"
    multiplexer.focus(made)
    assert multiplexer.kill_pane(made) is True
    assert multiplexer.kill_pane(made) is False
    assert server.panes() == ["%0", "%1", "%2"]


@pytest.mark.parametrize(
    "words",
    [
        "can't find pane: %9",
        "can't find window: @9",
        "can't find session: $9",
        "no server running on {socket}",
        "lost server",
        "server exited unexpectedly",
        "error connecting to {socket} (No such file or directory)",
        "error connecting to {socket} (Connection refused)",
        "error connecting to {socket} (Not a directory)",
    ],
)
def test_words_that_mean_gone(
    tmux_server: TmuxServer, tmux_shim: TmuxShim, multiplexer: Tmux, words: str
) -> None:
    """As releases of tmux say it; anything else is an error that is passed on."""
    here = tmux_server.address("%0")
    tmux_shim.fail("", message=words.format(socket=tmux_server.socket))
    with pytest.raises(PaneGone, match="is gone"):
        multiplexer.look(here)
    tmux_shim.fail("", message=f"cannot say {words}")
    with pytest.raises(MultiplexerError) as caught:
        multiplexer.look(here)
    assert not isinstance(caught.value, PaneGone)


def test_a_pane_is_not_found_by_the_beginning_of_its_number(
    tmux_server: TmuxServer, multiplexer: Tmux, tmp_path: Path
) -> None:
    others = [tmux_server.add_pane() for _ in range(9)]
    tenth = Recorder(tmux_server, tmp_path / "log")
    assert tenth.pane == "%10"
    first = tmux_server.address("%1")
    tmux_server.run("kill-pane", "-t", "%1")
    assert multiplexer.kill_pane(first) is False
    for step in ("paste-buffer", "send-keys"):
        with pytest.raises(PaneGone):
            ACTS[step](multiplexer, first)
    assert tenth.received() == b""
    assert tmux_server.panes() == ["%0", *others[1:], "%10"]


HOOKED = ["list-panes", "capture-pane", "load-buffer", "paste-buffer", "send-keys", "display-message"]
HOOKED += ["split-window", "new-window", "select-layout", "kill-pane", "select-window", "select-pane"]


@pytest.mark.parametrize("width", [100, 40])
def test_a_hook_of_the_users_that_fails_hides_nothing_that_was_done(
    tmux_servers: Callable[..., TmuxServer], launch: LaunchSpec, tmp_path: Path, width: int
) -> None:
    """tmux gives its own exit status to whoever caused it, whose commands all the same were done."""
    server = tmux_servers().start(width=width, height=24)
    recorder = Recorder(server, tmp_path / "log")
    multiplexer, pane = server.multiplexer("%0"), recorder.address
    for command in HOOKED:
        server.run("set-hook", "-g", f"after-{command}", "resize-pane -t %99")
    multiplexer.look(pane)
    multiplexer.paste(pane, "text", settle_seconds=0.0)
    multiplexer.press_enter(pane, settle_seconds=0.0)
    assert b"text" in recorder.wait_for(b"\r")
    made = multiplexer.open_pane(multiplexer.current_pane(), launch)
    multiplexer.focus(made)
    assert set(multiplexer.list_panes(made.server)) == {"%0", recorder.pane, made.pane}
    assert multiplexer.kill_pane(made) is True
    assert server.run("list-panes", "-a", "-F", "#{pane_id}", check=False).split() == ["%0", recorder.pane]


def test_a_hook_that_fails_as_well_hides_no_failure(
    tmux_server: TmuxServer, tmux_shim: TmuxShim, multiplexer: Tmux, tmp_path: Path
) -> None:
    """The buffer goes just before it is pasted: the guard holds, the paste does not happen."""
    recorder = Recorder(tmux_server, tmp_path / "log")
    pane = recorder.address
    tmux_server.run("set-hook", "-g", "after-load-buffer", "delete-buffer")
    with pytest.raises(MultiplexerError, match="no buffer"):
        multiplexer.paste(pane, "text", settle_seconds=0.0)
    assert recorder.received() == b""


@pytest.mark.parametrize(
    "act",
    [
        Tmux.focus,
        lambda tmux, pane: tmux.press_enter(pane, settle_seconds=0.0),
        Tmux.look,
        lambda tmux, pane: tmux.capture(pane, lines=1),
    ],
    ids=["focus", "press_enter", "look", "capture"],
)
def test_a_server_that_ends_in_the_middle_of_a_call_has_not_done_it(
    tmux_server: TmuxServer, multiplexer: Tmux, act: Callable[[Tmux, PaneAddress], object]
) -> None:
    """Its client then ends without a word, and with exit status 0."""
    for command in ("list-panes", "send-keys"):
        tmux_server.run("set-hook", "-g", f"after-{command}", "run-shell 'kill #{pid}; exec sleep 1'")
    pane, server_pid = tmux_server.address("%0"), tmux_server.pid
    with pytest.raises(PaneGone, match="server"):
        act(multiplexer, pane)
    wait_until(lambda: has_ended(server_pid))
