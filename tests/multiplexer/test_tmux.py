"""The tmux backend's own cases: what real servers do that the contract does not know of."""

import contextlib
import json
import os
import pty
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tests.support.tmux_server import Recorder, TmuxServer
from tests.support.tmux_shim import TmuxShim
from tests.support.waiting import DEADLINE_SECONDS, has_ended, wait_until

from cafleet.errors import (
    MultiplexerError,
    MultiplexerTimeout,
    NotInMultiplexer,
    PaneBusy,
    PaneDead,
    PaneGone,
)
from cafleet.multiplexer.base import LEAST_COLUMNS, LEAST_ROWS, LaunchSpec, PaneAddress, PaneStatus
from cafleet.multiplexer.tmux import Tmux

REPORT = """
import json, os, signal, sys
report = {"argv": sys.argv[1:], "environ": dict(os.environ), "directory": os.getcwd(),
          "sigpipe": signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN,
          "descriptors": sorted(os.listdir("/proc/self/fd"))}
path = os.environ["REPORT"]
with open(path + ".new", "w") as file:
    json.dump(report, file)
os.rename(path + ".new", path)
signal.pause()
"""


class Reporter:
    """A launch whose program reports what it was given."""

    def __init__(self, launch: LaunchSpec, directory: Path) -> None:
        self.path = directory / "report"
        program = directory / "reporter.py"
        # The default handling of SIGPIPE shows only in a program that does not change it itself.
        program.write_text(REPORT)
        self.launch = launch._replace(
            argv=[sys.executable, "-S", str(program)], environ={**launch.environ, "REPORT": str(self.path)}
        )

    def read(self) -> dict[str, object]:
        wait_until(self.path.exists, what="the report")
        found: dict[str, object] = json.loads(self.path.read_text())
        return found


@pytest.fixture
def reporter(launch: LaunchSpec, tmp_path: Path) -> Reporter:
    return Reporter(launch, tmp_path)


def environ_with(server: TmuxServer, shim: TmuxShim) -> dict[str, str]:
    return {**server.environ("%0"), "PATH": shim.path()}


# -- which server, which pane ----------------------------------------------------------------------


def test_the_calling_pane_is_the_own_one_not_the_active_one(tmux_server: TmuxServer) -> None:
    tmux_server.run("new-window", "sleep", "1000")
    assert tmux_server.multiplexer("%0").current_pane().pane == "%0"


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"TMUX": "/tmp/x,1,0"},
        {"TMUX_PANE": "%1"},
        {"TMUX": "nonsense", "TMUX_PANE": "%1"},
        {"TMUX": "relative,1,0", "TMUX_PANE": "%1"},
        {"TMUX": "/tmp/x,one,0", "TMUX_PANE": "%1"},
        {"TMUX": "/tmp/x,1,0", "TMUX_PANE": "1"},
        {"TMUX": "/tmp/x,1,0", "TMUX_PANE": "%1;kill-server"},
    ],
)
def test_without_a_usable_environment_there_is_no_calling_pane(environ: Mapping[str, str]) -> None:
    with pytest.raises(NotInMultiplexer):
        Tmux({"PATH": os.environ["PATH"], **environ}).current_pane()


def test_an_inherited_environment_of_an_ended_server_is_noticed(tmux_server: TmuxServer) -> None:
    environ = tmux_server.environ("%0")
    tmux_server.kill_server()
    tmux_server.start()
    with pytest.raises(PaneGone, match="another one"):
        Tmux(environ).current_pane()


def test_a_pane_on_another_server_is_reached_from_anywhere(
    tmux_servers: Callable[..., TmuxServer], tmp_path: Path
) -> None:
    ours, theirs = tmux_servers().start(), tmux_servers().start()
    recorder = Recorder(theirs, tmp_path / "log")
    namesake = Recorder(ours, tmp_path / "other")
    assert namesake.pane == recorder.pane
    stale = {"PATH": os.environ["PATH"], "TMUX": "/nonexistent/default,1,0", "TMUX_PANE": "%0"}
    for multiplexer in (ours.multiplexer("%0"), ours.multiplexer(), Tmux(stale)):
        multiplexer.paste(recorder.address, "hello", settle_seconds=0.0)
    recorder.wait_for(b"\x1b[200~hello\x1b[201~" * 3)
    assert namesake.received() == b""


def test_a_name_with_commas_in_the_socket_path(tmux_servers: Callable[..., TmuxServer]) -> None:
    server = tmux_servers()
    server.socket = str(server.directory / "a,b|c d")
    server.start()
    multiplexer = server.multiplexer("%0")
    here = multiplexer.current_pane()
    assert here.server == f"{os.uname().nodename}|{server.socket}|{server.pid}"
    assert multiplexer.look(here).width == 120


def test_another_hosts_pane_says_so(tmux_server: TmuxServer) -> None:
    here = tmux_server.address("%0")
    assert here.server is not None
    far = here._replace(server="far.example" + here.server[here.server.index("|") :])
    with pytest.raises(PaneGone, match=r"another host \(far\.example\)"):
        tmux_server.multiplexer().look(far)


def test_a_read_starts_no_server(tmux_server: TmuxServer) -> None:
    here, multiplexer = tmux_server.address("%0"), tmux_server.multiplexer("%0")
    tmux_server.kill_server()
    for act in (multiplexer.look, multiplexer.focus, lambda pane: multiplexer.capture(pane, lines=1)):
        with pytest.raises(PaneGone, match="is gone"):
            act(here)
    assert multiplexer.list_panes(here.server) == {}
    assert multiplexer.kill_pane(here) is False
    assert tmux_server.run("list-sessions", check=False) == ""


def test_a_socket_that_may_not_be_reached_is_not_called_gone(
    tmux_server: TmuxServer, tmux_shim: TmuxShim
) -> None:
    here = tmux_server.address("%0")
    multiplexer = Tmux(environ_with(tmux_server, tmux_shim), timeout_seconds=DEADLINE_SECONDS)
    tmux_shim.fail("", message=f"error connecting to {tmux_server.socket} (Operation not permitted)")
    with pytest.raises(MultiplexerError, match="Operation not permitted") as caught:
        multiplexer.list_panes(here.server)
    assert not isinstance(caught.value, PaneGone)


def test_renumbered_windows_and_the_third_of_three(
    tmux_servers: Callable[..., TmuxServer], tmp_path: Path
) -> None:
    server = tmux_servers(
        configuration="set -g base-index 1\nset -g pane-base-index 1\nset -g renumber-windows on"
    )
    server.start()
    first, second, third = (Recorder(server, tmp_path / name) for name in ("1", "2", "3"))
    address = third.address
    multiplexer = server.multiplexer("%0")
    multiplexer.kill_pane(first.address)
    multiplexer.paste(address, "for the third", settle_seconds=0.0)
    third.wait_for(b"\x1b[200~for the third\x1b[201~")
    assert second.received() == b""


# -- typing ----------------------------------------------------------------------------------------


def test_the_exact_bytes_of_a_paste_and_of_enter(tmux_server: TmuxServer, tmp_path: Path) -> None:
    recorder = Recorder(tmux_server, tmp_path / "log")
    multiplexer = tmux_server.multiplexer("%0")
    multiplexer.paste(recorder.address, "日本 -x;", settle_seconds=0.0)
    multiplexer.press_enter(recorder.address, settle_seconds=0.0)
    assert recorder.wait_for(b"\r") == b"\x1b[200~" + "日本 -x;".encode() + b"\x1b[201~\r"


def test_a_caller_in_the_c_locale(tmux_server: TmuxServer, tmp_path: Path) -> None:
    recorder = Recorder(tmux_server, tmp_path / "log", "--title", "題 é")
    multiplexer = Tmux({"PATH": os.environ["PATH"], "LC_ALL": "C"}, timeout_seconds=DEADLINE_SECONDS)
    view = multiplexer.paste(recorder.address, "日本語 👩‍👩‍👧 é", settle_seconds=0.3)
    assert "日本語" in "".join(view.rows)
    assert view.title == "題 é"
    assert "日本語" in multiplexer.capture(recorder.address, lines=20)
    assert multiplexer.list_panes(recorder.address.server)


@pytest.mark.parametrize("keys", ["copy-mode", "choose-tree", "clock-mode", "copy-mode clock-mode"])
def test_a_mode_is_named_and_stays(tmux_server: TmuxServer, tmp_path: Path, keys: str) -> None:
    recorder = Recorder(tmux_server, tmp_path / "log")
    multiplexer = tmux_server.multiplexer("%0")
    for key in keys.split():
        tmux_server.run(key, "-t", recorder.pane)
    mode = multiplexer.look(recorder.address).mode
    assert mode.endswith("-mode")
    with pytest.raises(PaneBusy, match=mode):
        multiplexer.paste(recorder.address, "text", settle_seconds=0.0)
    with pytest.raises(PaneBusy, match=mode):
        multiplexer.press_enter(recorder.address, settle_seconds=0.0)
    assert multiplexer.look(recorder.address).mode == mode
    tmux_server.run("send-keys", "-t", recorder.pane, "-X", "cancel", check=False)
    assert recorder.received() == b""


def test_enter_never_reaches_the_other_panes_of_a_synchronized_window(
    tmux_server: TmuxServer, tmp_path: Path
) -> None:
    recorder = Recorder(tmux_server, tmp_path / "one")
    other = Recorder(tmux_server, tmp_path / "two", in_window_of=recorder.pane)
    tmux_server.run("set-option", "-w", "-t", recorder.pane, "synchronize-panes", "on")
    multiplexer = tmux_server.multiplexer("%0")
    assert multiplexer.look(recorder.address).mode == "synchronize-panes"
    with pytest.raises(PaneBusy, match="synchronize-panes"):
        multiplexer.press_enter(recorder.address, settle_seconds=0.0)
    tmux_server.run("set-option", "-w", "-t", recorder.pane, "synchronize-panes", "off")
    multiplexer.press_enter(recorder.address, settle_seconds=0.0)
    recorder.wait_for(b"\r")
    assert other.received() == b""


def test_a_pane_whose_input_is_switched_off(tmux_server: TmuxServer, tmp_path: Path) -> None:
    recorder = Recorder(tmux_server, tmp_path / "log")
    tmux_server.run("select-pane", "-d", "-t", recorder.pane)
    with pytest.raises(PaneBusy, match="input-off"):
        tmux_server.multiplexer().paste(recorder.address, "text", settle_seconds=0.0)


def test_no_paste_buffer_is_left(tmux_server: TmuxServer, tmp_path: Path) -> None:
    recorder = Recorder(tmux_server, tmp_path / "log")
    multiplexer = tmux_server.multiplexer()
    tmux_server.run("set-buffer", "-b", "the-users", "own")
    multiplexer.paste(recorder.address, "text", settle_seconds=0.0)
    tmux_server.run("copy-mode", "-t", recorder.pane)
    with pytest.raises(PaneBusy):
        multiplexer.paste(recorder.address, "text", settle_seconds=0.0)
    tmux_server.run("set-option", "-g", "remain-on-exit", "on")
    tmux_server.run("respawn-pane", "-k", "-t", recorder.pane, "true")
    wait_until(lambda: tmux_server.show("#{pane_dead}", recorder.pane) == "1")
    with pytest.raises(PaneDead):
        multiplexer.paste(recorder.address, "text", settle_seconds=0.0)
    assert tmux_server.run("list-buffers", "-F", "#{buffer_name}") == "the-users"


def test_the_settling_time_passes_before_the_look(tmux_server: TmuxServer, tmp_path: Path) -> None:
    script = (
        "import sys, time; sys.stdin.readline(); time.sleep(0.2); print('LATE', flush=True); time.sleep(1000)"
    )
    pane = tmux_server.add_pane(sys.executable, "-S", "-u", "-c", script)
    wait_until(lambda: tmux_server.show("#{pane_current_command}", pane).startswith("python"))
    view = tmux_server.multiplexer().press_enter(tmux_server.address(pane), settle_seconds=2.0)
    assert any("LATE" in row for row in view.rows)


def test_each_step_of_a_notification_is_one_process(
    tmux_server: TmuxServer, tmux_shim: TmuxShim, tmp_path: Path
) -> None:
    pane = Recorder(tmux_server, tmp_path / "log").address
    multiplexer = Tmux(environ_with(tmux_server, tmux_shim), timeout_seconds=DEADLINE_SECONDS)
    multiplexer.look(pane, settle_seconds=0.01)
    multiplexer.paste(pane, "secret text", settle_seconds=0.01)
    multiplexer.press_enter(pane, settle_seconds=0.01)
    calls = tmux_shim.calls()
    assert len(calls) == 3
    assert all(call.arguments[:3] == ["-u", "-S", tmux_server.socket] for call in calls)
    assert "secret" not in json.dumps([call.arguments for call in calls])


# -- the screen ------------------------------------------------------------------------------------


def show(server: TmuxServer, text: str, *, until: str) -> PaneAddress:
    """A pane that shows `text`, once `until` can be seen."""
    script = f"import sys, time; sys.stdout.write({text!r}); sys.stdout.flush(); time.sleep(1000)"
    pane = server.add_pane(sys.executable, "-S", "-X", "utf8", "-c", script)
    server.wait_for_text(pane, until)
    return server.address(pane)


def test_each_row_carries_its_own_style(tmux_server: TmuxServer) -> None:
    pane = show(tmux_server, "\x1b[2mdim\nstill\x1b[0m plain\n\x1b[31mred\n", until="red")
    rows = tmux_server.multiplexer().look(pane).rows
    assert rows[0] == "\x1b[2mdim"
    assert rows[1].startswith("\x1b[2mstill\x1b[0m")
    assert rows[2].endswith("\x1b[31mred")
    assert "\x1b[2m" not in rows[2]


def test_line_drawing_links_and_titles(tmux_server: TmuxServer) -> None:
    link, clipboard, title = (
        "\x1b]8;;http://x\x07link\x1b]8;;\x07",
        "\x1b]52;c;AAAA\x07",
        "\x1b]2;ti\ttle #(x)\x07",
    )
    text = f"\x1b(0lqqk\x1b(B {link} {clipboard}{title}done\n"
    pane = show(tmux_server, text, until="done")
    view = tmux_server.multiplexer().look(pane)
    assert view.rows[0] == "┌──┐ link done"
    assert "\t" not in view.title
    captured = tmux_server.multiplexer().capture(pane, lines=5)
    assert captured == "┌──┐ link done"


def test_a_capture_joins_wrapped_lines_and_reaches_into_the_history(tmux_server: TmuxServer) -> None:
    tmux_server.run("set-option", "-g", "history-limit", "2000")
    long = "x" * 250 + "日本"
    pane = show(tmux_server, "".join(f"line {n}\n" for n in range(100)) + long + "\nend\n\n\n", until="end")
    multiplexer = tmux_server.multiplexer()
    assert multiplexer.capture(pane, lines=2).split("\n") == [long, "end"]
    assert multiplexer.capture(pane, lines=60).split("\n")[0] == "line 42"
    assert multiplexer.capture(pane, lines=10**9).split("\n")[0] == "line 0"


def test_colours_are_captured_only_on_request(tmux_server: TmuxServer) -> None:
    pane = show(tmux_server, "\x1b[31mred\x1b[0m end\n", until="end")
    multiplexer = tmux_server.multiplexer()
    assert multiplexer.capture(pane, lines=3) == "red end"
    coloured = multiplexer.capture(pane, lines=3, ansi=True)
    assert "\x1b[31mred" in coloured
    assert coloured.endswith("\x1b[0m")


def test_the_alternate_screen_is_captured(tmux_server: TmuxServer) -> None:
    pane = show(tmux_server, "before\n\x1b[?1049h\x1b[Hinside", until="inside")
    assert tmux_server.multiplexer().capture(pane, lines=100).endswith("inside")


def test_a_dead_pane_can_still_be_read(tmux_server: TmuxServer) -> None:
    tmux_server.run("set-option", "-g", "remain-on-exit", "on")
    pane = tmux_server.address(tmux_server.add_pane("echo last words; exit 4"))
    multiplexer = tmux_server.multiplexer()
    wait_until(lambda: multiplexer.list_panes(pane.server)[pane.pane].dead)
    assert "last words" in multiplexer.capture(pane, lines=50)


# -- is an agent running here ----------------------------------------------------------------------


def command_of(server: TmuxServer, pane: str) -> str:
    return server.show("#{pane_current_command}", pane)


@pytest.mark.parametrize("command", ["exec sh", "exec bash --norc", "exec -a -bash bash", "exec bash -i"])
def test_a_shell_at_its_prompt(tmux_server: TmuxServer, command: str) -> None:
    pane = tmux_server.add_pane("bash", "-c", command)
    wait_until(lambda: tmux_server.screen(pane).endswith(("#", "$")))
    assert tmux_server.multiplexer().look(tmux_server.address(pane)).shell


@pytest.mark.parametrize("shell", ["zsh -f", "fish", "dash -i"])
def test_other_shells_at_their_prompts(tmux_server: TmuxServer, tmp_path: Path, shell: str) -> None:
    """Field case C5: a line that is typed there would run."""
    program, *options = shell.split()
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    pane = tmux_server.add_pane("env", f"HOME={tmp_path}", program, *options)
    multiplexer, address = tmux_server.multiplexer(), tmux_server.address(pane)
    wait_until(lambda: multiplexer.look(address).shell, what="the shell")
    tmux_server.run("send-keys", "-t", pane, "-l", "sleep 1000")
    tmux_server.run("send-keys", "-t", pane, "Enter")
    wait_until(lambda: not multiplexer.look(address).shell, what="its command")


def test_a_shell_with_only_background_work_is_at_its_prompt(tmux_server: TmuxServer) -> None:
    pane = tmux_server.add_pane("bash", "--norc")
    tmux_server.run("send-keys", "-t", pane, "sleep 1000 & echo star''ted", "Enter")
    tmux_server.wait_for_text(pane, "started")
    assert tmux_server.multiplexer().look(tmux_server.address(pane)).shell


def test_a_program_in_the_foreground_of_a_shell(tmux_server: TmuxServer) -> None:
    pane = tmux_server.add_pane("bash", "--norc")
    tmux_server.run("send-keys", "-t", pane, "sleep 1000", "Enter")
    wait_until(lambda: command_of(tmux_server, pane) == "sleep")
    view = tmux_server.multiplexer().look(tmux_server.address(pane))
    assert (view.shell, view.command) == (False, "sleep")


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_wrapper_script_is_no_shell_while_its_program_runs(
    tmux_server: TmuxServer, tmp_path: Path, shell: str
) -> None:
    script = tmp_path / "wrapper.sh"
    script.write_text("echo up; sleep 1000; echo after; read line\n")
    pane = tmux_server.add_pane(shell, str(script))
    tmux_server.wait_for_text(pane, "up")
    multiplexer, address = tmux_server.multiplexer(), tmux_server.address(pane)
    wait_until(lambda: not multiplexer.look(address).shell)
    assert multiplexer.look(address).command == shell  # as tmux has it
    subprocess.run(["pkill", "-P", tmux_server.show("#{pane_pid}", pane), "sleep"], check=True)
    tmux_server.wait_for_text(pane, "after")
    wait_until(lambda: multiplexer.look(address).shell)


# -- opening panes ---------------------------------------------------------------------------------


def test_what_the_new_process_is_given(tmux_servers: Callable[..., TmuxServer], reporter: Reporter) -> None:
    base = {
        "PATH": "/usr/bin:/bin",
        "HOME": os.environ["HOME"],
        "OUTER_SESSION": "1",
        "OUTER_ID": "7",
        "OUTERMOST": "stays",
        "PARENT": "1",
        "REPLACED": "old",
        **{name: value for name, value in os.environ.items() if name.startswith("CAFLEET_TEST")},
    }
    server = tmux_servers(environ=base).start()
    extra = {f"ENTRY_{n}": "v" * 100 for n in range(200)}
    launch = reporter.launch._replace(
        argv=[*reporter.launch.argv, "-x", "", "semi;", "#{pid}", "a b 'c'", "é" * 10_000, "p" * 98_304],
        environ={**reporter.launch.environ, **extra, "REPLACED": "new", "TMUX_PANE": "%99", "TERM": "dumb"},
        scrub=["OUTER_*", "PARENT", "REPLACED", "ABSENT"],
        title="the #(touch planted) ti\ntle",
    )
    made = server.multiplexer("%0").open_pane(server.address("%0"), launch)
    report = reporter.read()
    environ = report["environ"]
    assert isinstance(environ, dict)
    assert report["argv"] == launch.argv[3:]
    assert report["directory"] == launch.directory
    assert report["sigpipe"] is True  # python's own doing; the inherited value is checked below
    assert environ["PATH"] == launch.environ["PATH"]
    assert environ["REPLACED"] == "new"
    assert {name: environ.get(name) for name in extra} == extra
    assert environ["OUTERMOST"] == "stays"
    assert not {"OUTER_SESSION", "OUTER_ID", "PARENT"} & set(environ)
    assert environ["TMUX_PANE"] == made.pane
    assert environ["TERM"] != "dumb"
    assert report["descriptors"] == ["0", "1", "2", "3"]  # 3 is the listing itself
    assert server.show("#{pane_title}", made.pane) == "the #(touch planted) title"


def test_the_new_process_has_the_usual_signals(
    tmux_server: TmuxServer, launch: LaunchSpec, tmp_path: Path
) -> None:
    out = tmp_path / "status"
    launch = launch._replace(
        argv=["/bin/sh", "-c", f"grep SigIgn /proc/self/status > {out}.new; mv {out}.new {out}"]
    )
    tmux_server.run("set-option", "-g", "remain-on-exit", "on")
    tmux_server.multiplexer("%0").open_pane(tmux_server.address("%0"), launch)
    wait_until(out.exists)
    ignored = int(out.read_text().split()[1], 16)
    assert not ignored & (1 << 12)


def test_the_launch_file_is_private_and_short_lived(tmux_server: TmuxServer, reporter: Reporter) -> None:
    folder = Path(reporter.launch.private_directory)
    before = os.umask(0)
    try:
        tmux_server.multiplexer("%0").open_pane(tmux_server.address("%0"), reporter.launch)
    finally:
        os.umask(before)
    reporter.read()
    assert list(folder.iterdir()) == []
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_planted_launch_folder_is_refused(
    tmux_server: TmuxServer, launch: LaunchSpec, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = Path(launch.private_directory)
    folder.parent.mkdir()
    folder.symlink_to(elsewhere)
    with pytest.raises(MultiplexerError, match="not a folder of this user"):
        tmux_server.multiplexer("%0").open_pane(tmux_server.address("%0"), launch)
    assert list(elsewhere.iterdir()) == []
    assert tmux_server.panes() == ["%0"]


def test_a_launch_folder_that_others_may_read_is_closed_to_them(
    tmux_server: TmuxServer, launch: LaunchSpec
) -> None:
    folder = Path(launch.private_directory)
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    tmux_server.multiplexer("%0").open_pane(tmux_server.address("%0"), launch)
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("remain", ["on", "off"])
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda launch: launch._replace(argv=["/absent/x"]),
            "No such file or directory: /absent/x",
        ),
        (lambda launch: launch._replace(argv=["/etc/passwd"]), "Permission denied: /etc/passwd"),
        (lambda launch: launch._replace(directory="/absent"), "No such file or directory: /absent"),
    ],
)
def test_a_program_that_cannot_start_leaves_nothing(
    tmux_server: TmuxServer,
    launch: LaunchSpec,
    remain: str,
    change: Callable[[LaunchSpec], LaunchSpec],
    reason: str,
) -> None:
    tmux_server.run("set-option", "-g", "remain-on-exit", remain)
    with pytest.raises(MultiplexerError, match=reason):
        tmux_server.multiplexer("%0").open_pane(tmux_server.address("%0"), change(launch))
    assert list(Path(launch.private_directory).iterdir()) == []
    wait_until(lambda: tmux_server.panes() == ["%0"])


def test_a_server_that_refuses_says_why(
    tmux_server: TmuxServer, tmux_shim: TmuxShim, launch: LaunchSpec
) -> None:
    tmux_shim.fail("split-window", message="create pane failed: fork failed: Cannot allocate memory")
    with pytest.raises(MultiplexerError, match="Cannot allocate memory"):
        Tmux(environ_with(tmux_server, tmux_shim), timeout_seconds=DEADLINE_SECONDS).open_pane(
            tmux_server.address("%0"), launch
        )
    assert list(Path(launch.private_directory).iterdir()) == []
    assert tmux_server.panes() == ["%0"]


def active(server: TmuxServer) -> str:
    return server.run("list-windows", "-a", "-F", "#{session_name} #{window_id} #{window_active} #{pane_id}")


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50), (40, 12)])
def test_new_panes_steal_no_focus_and_are_large_enough(
    tmux_servers: Callable[..., TmuxServer], launch: LaunchSpec, size: tuple[int, int]
) -> None:
    server = tmux_servers().start(width=size[0], height=size[1])
    here, multiplexer = server.address("%0"), server.multiplexer("%0")
    before = active(server)
    made = [multiplexer.open_pane(here, launch) for _ in range(6)]
    assert all(line in active(server) for line in before.splitlines())
    assert len({pane.pane for pane in made}) == 6
    assert all(pane == server.address(pane.pane) for pane in made)
    for pane in made:
        view = multiplexer.look(pane)
        assert view.width >= LEAST_COLUMNS
        assert view.height >= LEAST_ROWS


def test_a_wide_window_is_split_side_by_side(
    tmux_servers: Callable[..., TmuxServer], launch: LaunchSpec
) -> None:
    server = tmux_servers().start(width=200, height=50)
    made = server.multiplexer("%0").open_pane(server.address("%0"), launch)
    assert made.window == server.address("%0").window
    assert server.show("#{pane_height}", made.pane) == "50"


def test_a_zoomed_pane_stays_zoomed(tmux_server: TmuxServer, launch: LaunchSpec) -> None:
    tmux_server.run("split-window", "-d", "-t", "%0", "sleep", "1000")
    tmux_server.run("resize-pane", "-Z", "-t", "%0")
    multiplexer = tmux_server.multiplexer("%0")
    for _ in range(4):
        multiplexer.open_pane(tmux_server.address("%0"), launch)
    assert tmux_server.show("#{window_zoomed_flag} #{pane_active}", "%0") == "1 1"


def test_a_moved_neighbour_is_found_in_its_new_window(tmux_server: TmuxServer, launch: LaunchSpec) -> None:
    pane = tmux_server.add_pane()
    old = tmux_server.address(pane)
    tmux_server.run("new-session", "-d", "-s", "second", "-x", "120", "-y", "40", "sleep", "1000")
    tmux_server.run("join-pane", "-d", "-s", pane, "-t", "second:")
    made = tmux_server.multiplexer("%0").open_pane(old, launch)
    assert made.session == "second"
    assert made.window == tmux_server.address(pane).window


# -- ending panes ----------------------------------------------------------------------------------

STUBBORN = """
import os, signal, subprocess, sys, time
for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
sleep = [sys.executable, "-S", "-c", "import time; time.sleep(100000)"]
children = [
    subprocess.Popen(sleep),
    subprocess.Popen(sleep, start_new_session=True),
    subprocess.Popen(sleep, process_group=0),
]
orphan = "import os, subprocess, sys; print(subprocess.Popen(sys.argv[1:], process_group=0, stdout=-3).pid)"
lost = int(subprocess.check_output([sys.executable, "-S", "-c", orphan, "sleep", "100000"]))
pids = [os.getpid(), *(child.pid for child in children), lost]
with open(sys.argv[1] + ".new", "w") as file:
    file.write(" ".join(map(str, pids)))
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(100000)
"""


def test_everything_that_runs_in_a_pane_is_ended(tmux_server: TmuxServer, tmp_path: Path) -> None:
    program, pids = tmp_path / "stubborn.py", tmp_path / "pids"
    program.write_text(STUBBORN)
    pane = tmux_server.add_pane(sys.executable, "-S", str(program), str(pids))
    neighbour = tmux_server.add_pane()
    neighbour_pid = int(tmux_server.show("#{pane_pid}", neighbour))
    wait_until(pids.exists)
    running = [int(pid) for pid in pids.read_text().split()]
    assert len(running) == 5
    assert not any(map(has_ended, running))
    assert tmux_server.multiplexer("%0").kill_pane(tmux_server.address(pane)) is True
    assert all(map(has_ended, running))
    assert not has_ended(neighbour_pid)
    assert set(tmux_server.panes()) == {"%0", neighbour}


def test_a_dead_pane_is_closed(tmux_server: TmuxServer) -> None:
    tmux_server.run("set-option", "-g", "remain-on-exit", "on")
    pane = tmux_server.address(tmux_server.add_pane("exit 0"))
    wait_until(lambda: tmux_server.show("#{pane_dead}", pane.pane) == "1")
    assert tmux_server.multiplexer("%0").kill_pane(pane) is True
    assert tmux_server.panes() == ["%0"]


@pytest.mark.parametrize(
    ("command", "status"), [("exit 0", 0), ("exit 1", 1), ("kill -KILL $$", 137), ("kill -TERM $$", 143)]
)
def test_how_a_program_ended(tmux_server: TmuxServer, command: str, status: int) -> None:
    tmux_server.run("set-option", "-g", "remain-on-exit", "on")
    multiplexer = tmux_server.multiplexer()
    panes = [tmux_server.address(tmux_server.add_pane("sh", "-c", command)) for _ in range(10)]
    listed = wait_until(lambda: _when_all_are_dead(multiplexer.list_panes(panes[0].server), panes))
    # tmux 3.3 misses a status now and then, but it never makes one up.
    assert status in {entry.exit_status for entry in listed} <= {status, None}


def _when_all_are_dead(listed: Mapping[str, PaneStatus], panes: list[PaneAddress]) -> list[PaneStatus]:
    entries = [listed[pane.pane] for pane in panes]
    known = any(entry.exit_status is not None for entry in entries)
    return entries if known and all(entry.dead for entry in entries) else []


def test_a_pane_closes_with_its_program(tmux_server: TmuxServer, launch: LaunchSpec) -> None:
    multiplexer = tmux_server.multiplexer("%0")
    pane = multiplexer.open_pane(tmux_server.address("%0"), launch._replace(argv=["/bin/true"]))
    wait_until(lambda: pane.pane not in multiplexer.list_panes(pane.server))


def test_a_caller_that_ends_its_own_pane_can_still_reply(tmux_server: TmuxServer, tmp_path: Path) -> None:
    script = (
        "import os, sys; from cafleet.multiplexer.tmux import Tmux;"
        "t = Tmux(dict(os.environ)); here = t.current_pane(); done = t.kill_pane(here);"
        "open(sys.argv[1], 'w').write(f'replied {done}')"
    )
    reply = tmp_path / "reply"
    # The caller has a parent in the pane, as when an agent runs a command, and that one a helper.
    caller = shlex.join([sys.executable, "-c", script, str(reply)])
    line = f"sleep 100000 & echo $! > {tmp_path}/helper; {caller}; wait"
    pane = tmux_server.add_pane("bash", "-c", line)
    wait_until(lambda: reply.exists() and reply.read_text() == "replied True")
    assert has_ended(int((tmp_path / "helper").read_text()))
    wait_until(lambda: pane not in tmux_server.panes())


# -- focus -----------------------------------------------------------------------------------------


def test_focus_selects_window_and_pane(tmux_server: TmuxServer) -> None:
    pane = tmux_server.add_pane()
    other = tmux_server.run("split-window", "-t", pane, "-P", "-F", "#{pane_id}", "sleep", "1000")
    assert other != pane
    tmux_server.multiplexer("%0").focus(tmux_server.address(pane))
    assert tmux_server.show("#{window_active} #{pane_active}", pane) == "1 1"


@pytest.fixture
def client(tmux_server: TmuxServer) -> Iterator[str]:
    """A terminal that is attached to the server's first session; its tty."""
    terminal, inside = pty.openpty()
    command = ["tmux", "-S", tmux_server.socket, "attach-session", "-t", "main"]
    environ = {**os.environ, "TERM": "xterm"}
    attached = subprocess.Popen(command, env=environ, stdin=inside, stdout=inside, start_new_session=True)
    os.close(inside)
    drain = threading.Thread(target=_drain, args=(terminal,))
    drain.start()
    yield wait_until(lambda: tmux_server.run("list-clients", "-F", "#{client_tty}"))
    tmux_server.kill_server()
    attached.wait(timeout=DEADLINE_SECONDS)
    drain.join()
    os.close(terminal)


def _drain(terminal: int) -> None:
    """A terminal that nobody reads would block its client."""
    with contextlib.suppress(OSError):
        while os.read(terminal, 65536):
            pass


def test_focus_shows_the_pane_of_another_session_to_the_client(tmux_server: TmuxServer, client: str) -> None:
    tmux_server.run("new-session", "-d", "-s", "second", "sleep", "1000")
    pane = tmux_server.add_pane(target="second:")
    tmux_server.multiplexer().focus(tmux_server.address(pane))
    shown = tmux_server.run("list-clients", "-F", "#{client_tty} #{session_name} #{pane_id}")
    assert shown == f"{client} second {pane}"


def test_an_attached_client_keeps_seeing_what_it_saw(
    tmux_server: TmuxServer, client: str, launch: LaunchSpec
) -> None:
    multiplexer = tmux_server.multiplexer("%0")
    for _ in range(5):
        multiplexer.open_pane(tmux_server.address("%0"), launch)
    shown = tmux_server.run("list-clients", "-F", "#{client_tty} #{session_name} #{pane_id}")
    assert shown == f"{client} main %0"


# -- a tmux that fails or hangs --------------------------------------------------------------------


def test_a_frozen_server_is_a_timeout(tmux_server: TmuxServer) -> None:
    here = tmux_server.address("%0")
    multiplexer = Tmux(tmux_server.environ("%0"), timeout_seconds=1.5)
    tmux_server.freeze()
    try:
        for act in (
            multiplexer.look,
            lambda pane: multiplexer.paste(pane, "text", settle_seconds=0.0),
            multiplexer.kill_pane,
            lambda pane: multiplexer.list_panes(pane.server),
        ):
            with pytest.raises(MultiplexerTimeout, match="tmux did not answer"):
                act(here)
    finally:
        tmux_server.thaw()
    assert multiplexer.look(here).command


def test_a_hanging_client_is_killed_and_reaped(tmux_server: TmuxServer, tmux_shim: TmuxShim) -> None:
    here = tmux_server.address("%0")
    tmux_shim.hang("capture-pane")
    for patience_seconds in (0.5, 5, 25):  # A busy machine may not even have started it in the shortest.
        with pytest.raises(MultiplexerTimeout):
            Tmux(environ_with(tmux_server, tmux_shim), timeout_seconds=patience_seconds).look(here)
        if tmux_shim.calls():
            break
    (call,) = tmux_shim.calls()
    assert not Path(f"/proc/{call.pid}").exists()


def test_tmuxs_own_words_are_passed_on(tmux_server: TmuxServer, tmux_shim: TmuxShim) -> None:
    multiplexer = Tmux(environ_with(tmux_server, tmux_shim), timeout_seconds=DEADLINE_SECONDS)
    tmux_shim.fail("send-keys", message="some new \x1b[31mtrouble", times=1)
    with pytest.raises(MultiplexerError, match=r"tmux: some new \[31mtrouble") as caught:
        multiplexer.press_enter(tmux_server.address("%0"), settle_seconds=0.0)
    assert not isinstance(caught.value, PaneGone | PaneBusy | PaneDead)
    multiplexer.press_enter(tmux_server.address("%0"), settle_seconds=0.0)


def test_no_tmux_on_the_path(tmux_server: TmuxServer) -> None:
    multiplexer = Tmux({**tmux_server.environ("%0"), "PATH": "/nonexistent"})
    with pytest.raises(MultiplexerError, match="tmux not found on PATH"):
        multiplexer.look(tmux_server.address("%0"))
