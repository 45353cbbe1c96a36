"""What tmux is asked for, by its formats, and how its answers are read. Nothing is run here."""

from typing import NamedTuple

from cafleet.errors import MultiplexerError, PaneDead, PaneGone
from cafleet.multiplexer import child, processes, screen_text
from cafleet.multiplexer.base import PaneAddress, PaneStatus, PaneView
from cafleet.multiplexer.own_pane import is_tmux_pane
from cafleet.multiplexer.server_name import Server, expect_same, is_number, recorded_server

LOOK_FORMAT = (
    "#{pid} #{pane_id} #{pane_dead} #{pane_pid} #{pane_width} #{pane_height} #{cursor_x} #{cursor_y}"
    " #{pane_synchronized} #{pane_input_off} #{?pane_in_mode,#{pane_mode},-}"
    "\n#{pane_current_command}\n#{pane_title}"
)
WHERE_FORMAT = (
    "#{pid} #{pane_pid} #{pane_dead} #{window_zoomed_flag} #{pane_width} #{pane_height}"
    " #{window_width} #{window_height} #{window_panes} #{session_id} #{window_id} #{session_name}"
)
OPENED_FORMAT = "#{pid} #{pane_id} #{window_id} #{session_name}"
LIST_FORMAT = (
    "#{pid} #{pane_id} #{pane_pid} #{pane_dead} s#{pane_dead_status} g#{pane_dead_signal}"
    " #{pane_current_command}"
)

_PANE_MISSING = ("can't find pane", "can't find window", "can't find session")
_SERVER_MISSING = ("no server running", "lost server", "server exited")
_SOCKET_MISSING = ("No such file or directory", "Connection refused", "Not a directory")


class Target(NamedTuple):
    """A pane of which every part was checked: safe inside a tmux command string."""

    server: Server
    pane: str


def target(address: PaneAddress) -> Target:
    """The pane that an address names. Raises PaneGone where it can name none that is reached from here."""
    if not is_tmux_pane(address.pane):
        raise PaneGone(f"'{address.pane}' is no tmux pane id")
    return Target(recorded_server(address.server, "tmux"), address.pane)


class Where:
    """What is known of a pane before something is done about it. Sizes are in cells."""

    def __init__(self, line: str) -> None:
        fields = _fields(line, 12)
        self.server_pid, self.pane_pid = fields[0], int(fields[1])
        self.dead, self.zoomed = fields[2] == "1", fields[3] == "1"
        self.width, self.height, self.window_width, self.window_height = map(int, fields[4:8])
        self.window_panes = int(fields[8])
        self.session, self.window, self.session_name = fields[9:]


class Opened:
    """What tmux says of a pane that it just opened."""

    def __init__(self, output: str) -> None:
        self.server_pid, self.pane, self.window, self.session_name = _fields(lines(output)[-1], 4)


def same_server(server: Server) -> str:
    """A condition that holds on that very server only."""
    return f"#{{==:#{{pid}},{server.pid}}}"


def listed(target: Target, fields: str) -> tuple[str, ...]:
    """A command that prints `fields` for each window that shows the pane; nothing where it is gone."""
    return "list-panes", "-a", "-f", f"#{{==:#{{pane_id}},{target.pane}}}", "-F", fields, ";"


def look(target: Target) -> tuple[str, ...]:
    """Commands that print what `view` reads."""
    return *listed(target, LOOK_FORMAT), "capture-pane", "-p", "-e", "-t", target.pane


def settle(seconds: float) -> tuple[str, ...]:
    """A pause inside tmux, between two commands of one process."""
    return ("run-shell", "-d", f"{seconds:.3f}", ";")


def view(target: Target, output: str) -> PaneView:
    """Read what `look` printed: a head of three lines per window that shows the pane, the screen.

    Raises PaneGone, PaneDead.
    """
    head, *rest = lines(output)
    pid, _, dead, pane_pid, width, height, x, y, synchronized, input_off, mode = _fields(head, 11)
    expect_same(target.server, pid, "tmux")
    if dead == "1":
        raise PaneDead(target.pane)
    command, title = map(screen_text.printable, rest[:2])
    rows = rest[-int(height) :]
    return PaneView(
        rows=tuple(screen_text.styled_rows(rows)),
        command=command,
        shell=processes.shell_waits(command, int(pane_pid)),
        mode=_mode(mode, synchronized == "1", input_off == "1"),
        title=title,
        width=int(width),
        height=int(height),
        cursor_x=int(x),
        cursor_y=int(y),
    )


def statuses(server: Server, output: str) -> dict[str, PaneStatus]:
    """Read what `LIST_FORMAT` asked for, by pane id; empty where it was another server that answered."""
    panes = {}
    for line in lines(output):
        pid, pane, pane_pid, dead, status, signal, command = _fields(line, 7)
        if pid != str(server.pid):
            return {}
        name = screen_text.printable(command)
        panes[pane] = PaneStatus(
            pane=pane,
            dead=dead == "1",
            exit_status=_exit_status(status[1:], signal[1:]),
            command=name,
            shell=dead != "1" and processes.shell_waits(name, int(pane_pid)),
        )
    return panes


def _mode(mode: str, synchronized: bool, input_off: bool) -> str:
    """What keeps a typed key from reaching this program, and no other, or empty."""
    if mode != "-":
        return mode or "a mode"
    if synchronized:
        return "synchronize-panes"
    return "input-off" if input_off else ""


def lines(output: str) -> list[str]:
    """The lines of an answer; one empty line where it is empty."""
    return output.removesuffix("\n").split("\n")


def _fields(line: str, count: int) -> list[str]:
    """The blank-separated fields that a format asked for; only the last may hold blanks."""
    fields = line.split(" ", count - 1)
    if len(fields) != count:
        raise MultiplexerError(f"tmux gave an answer that cannot be read: {screen_text.printable(line)!r}")
    return fields


def _exit_status(status: str, signal: str) -> int | None:
    """As a shell would say it: 128 and the signal's number for a program that a signal ended."""
    if is_number(status):
        return int(status)
    return 128 + int(signal) if is_number(signal) else None


def error_of(server: Server, finished: child.Finished) -> MultiplexerError:
    """What a tmux process that failed has said: PaneGone where pane or server are no more."""
    said = [line.strip() for line in finished.errors.splitlines() if line.strip()]
    words = screen_text.printable(said[-1]) if said else f"exit status {finished.status}"
    if not said and finished.status == 0:
        words = _SERVER_MISSING[-1]  # It was told to end, and its clients then end without a word.
    if words.startswith(_PANE_MISSING):
        return PaneGone(f"pane {words.rpartition(' ')[2]} is gone")
    missing_socket = words.startswith("error connecting to") and any(why in words for why in _SOCKET_MISSING)
    if missing_socket or words.startswith(_SERVER_MISSING):
        return PaneGone(f"its tmux server ({server.socket}, pid {server.pid}) is gone")
    return MultiplexerError(f"tmux: {words}")
