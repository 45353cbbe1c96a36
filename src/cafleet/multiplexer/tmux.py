"""The tmux backend: the only file that runs tmux (SPEC 5.2).

Every call names its server by socket path and process id, and every command that changes a pane is
guarded inside tmux itself, in the same step. Text never is a tmux argument.
"""

import contextlib
import os
import time
from collections.abc import Mapping, Sequence

from cafleet.errors import MultiplexerError, NotInMultiplexer, PaneBusy, PaneDead, PaneGone
from cafleet.multiplexer import child, launch_file, own_pane, processes, screen_text
from cafleet.multiplexer.base import (
    LEAST_COLUMNS,
    LEAST_ROWS,
    ROOMY_COLUMNS,
    LaunchSpec,
    PaneAddress,
    PaneStatus,
    PaneView,
    is_one_line,
)

CALL_TIMEOUT_SECONDS = 5.0
KILL_GRACE_SECONDS = 2.0
LONGEST_CAPTURE_LINES = 100_000
_CLOSE_DELAY_SECONDS = 0.5
_REFUSED = "cafleet:refused"
_OUTER_HERDR = "HERDR_*"
"""A tmux server that was started in a herdr pane hands that pane's variables on; they are not true here."""

_LOOK_FORMAT = (
    "#{pid} #{pane_id} #{pane_dead} #{pane_pid} #{pane_width} #{pane_height} #{cursor_x} #{cursor_y}"
    " #{pane_synchronized} #{pane_input_off} #{?pane_in_mode,#{pane_mode},-}"
    "\n#{pane_current_command}\n#{pane_title}"
)
_WHERE_FORMAT = (
    "#{pid} #{pane_pid} #{pane_dead} #{window_zoomed_flag} #{pane_width} #{pane_height}"
    " #{window_width} #{window_height} #{window_panes} #{session_id} #{window_id} #{session_name}"
)
_OPENED_FORMAT = "#{pid} #{pane_id} #{window_id} #{session_name}"
_LIST_FORMAT = (
    "#{pid} #{pane_id} #{pane_pid} #{pane_dead} s#{pane_dead_status} g#{pane_dead_signal}"
    " #{pane_current_command}"
)

_PANE_MISSING = ("can't find pane", "can't find window", "can't find session")
_SERVER_MISSING = ("no server running", "lost server", "server exited")
_SOCKET_MISSING = ("No such file or directory", "Connection refused", "Not a directory")


class _Server:
    """A server that can be reached from here, if it still is the one that was recorded."""

    def __init__(self, socket: str, pid: int) -> None:
        self.socket, self.pid = socket, pid


class _Target:
    """A pane of which every part was checked: safe inside a tmux command string."""

    def __init__(self, server: _Server, pane: str) -> None:
        self.server, self.pane = server, pane


class Tmux:
    """Panes of tmux servers, reached through their sockets. Fulfils `base.Multiplexer`."""

    name = "tmux"

    def __init__(self, environ: Mapping[str, str], *, timeout_seconds: float = CALL_TIMEOUT_SECONDS) -> None:
        """`environ`: gives `TMUX`, `TMUX_PANE` and the `PATH` on which tmux is found."""
        self._environ = environ
        self._timeout_seconds = timeout_seconds
        self._program: str | None = None

    def current_pane(self) -> PaneAddress:
        """The pane that this process runs in, which need not be the active one."""
        own = own_pane.own_pane(self._environ)
        if own is None:
            raise NotInMultiplexer("not inside a tmux pane: TMUX or TMUX_PANE is not set")
        where = self._where(_Target(_server(own.server), own.pane))
        return PaneAddress(own.server, where.session_name, where.window, own.pane)

    def open_pane(self, beside: PaneAddress, launch: LaunchSpec) -> PaneAddress:
        """A new pane beside another one; the focus and a zoomed pane stay as they are."""
        target = _target(beside)
        where = self._where(target)
        launch = launch._replace(scrub=[*launch.scrub, _OUTER_HERDR])
        with launch_file.LaunchFile(launch) as handed_over:
            opened = self._split(target, where, handed_over.argv)
            try:
                _expect_server(target.server, opened.server_pid)
                handed_over.wait_until_started(lambda: self._lives(target.server, opened.pane))
            except BaseException:
                self._discard(target.server, opened.pane)
                raise
        return PaneAddress(beside.server, opened.session_name, opened.window, opened.pane)

    def look(self, pane: PaneAddress, *, settle_seconds: float = 0.0) -> PaneView:
        """Prove the pane's identity and read its screen."""
        target = _target(pane)
        output = self._run(
            target.server, *_settle(settle_seconds), *_look(target), extra_seconds=settle_seconds
        )
        return _view(target, output)

    def paste(self, pane: PaneAddress, text: str, *, settle_seconds: float) -> PaneView:
        """One bracketed paste of one line; nothing is pasted into a pane that could not take it."""
        if not is_one_line(text):
            raise MultiplexerError("only one line without control characters can be pasted")
        target = _target(pane)
        buffer = f"cafleet-{os.getpid()}-{time.monotonic_ns()}"
        return self._type(
            target,
            before=f"load-buffer -b {buffer} - ; ",
            action=f"paste-buffer -p -r -d -b {buffer} -t {target.pane}",
            otherwise=f"delete-buffer -b {buffer} ; ",
            text=text,
            settle_seconds=settle_seconds,
        )

    def press_enter(self, pane: PaneAddress, *, settle_seconds: float) -> PaneView:
        """Enter, once."""
        target = _target(pane)
        return self._type(target, action=f"send-keys -t {target.pane} Enter", settle_seconds=settle_seconds)

    def capture(self, pane: PaneAddress, *, lines: int, ansi: bool = False) -> str:
        """The last lines, history included; a dead pane's too. Blank rows at the end are cut."""
        target = _target(pane)
        count = max(1, min(lines, LONGEST_CAPTURE_LINES))
        output = self._run(
            target.server,
            *_listed(target, "#{pid}"),
            *("capture-pane", "-p", "-e", "-J", "-S", str(-count), "-t", target.pane),
        )
        pid, *rows = _lines(output)
        _expect_server(target.server, pid)
        plain = screen_text.plain_rows(rows)
        while plain and not plain[-1]:
            plain.pop()
        shown = screen_text.styled_rows(rows)[: len(plain)] if ansi else plain
        return "\n".join(f"{row}\x1b[0m" if "\x1b" in row else row for row in shown[-count:])

    def list_panes(self, server: str | None) -> dict[str, PaneStatus]:
        """Every pane by id; empty where the server is gone, another one now, or on another host."""
        try:
            named = _server(server)
            output = self._run(named, "list-panes", "-a", "-F", _LIST_FORMAT)
        except PaneGone:
            return {}
        panes = {}
        for line in _lines(output):
            pid, pane, pane_pid, dead, status, signal, command = _fields(line, 7)
            if pid != str(named.pid):
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

    def kill_pane(self, pane: PaneAddress) -> bool:
        """End the pane's processes, then close it. From inside that very pane: everything but the
        caller and what it runs in ends now, and the pane closes half a second later."""
        try:
            target = _target(pane)
            where = self._where(target)
        except PaneGone:
            return False
        inside = processes.end_pane_processes(where.pane_pid, KILL_GRACE_SECONDS, ended=where.dead)
        close = f"kill-pane -t {target.pane}"
        if inside:
            close = f"run-shell -b -d {_CLOSE_DELAY_SECONDS} -C '{close}'"
        with contextlib.suppress(PaneGone):  # It closes by itself when its program ends.
            self._run(target.server, "if-shell", "-F", _same_server(target.server), close)
        return True

    def focus(self, pane: PaneAddress) -> None:
        """Make the pane the active one, and show it where a client is attached."""
        target = _target(pane)
        self._where(target)
        at = ("-t", target.pane)
        self._run(target.server, "select-window", *at, ";", "select-pane", *at)
        try:
            self._run(target.server, "switch-client", *at)
        except PaneGone:
            raise
        except MultiplexerError:
            pass  # No client is attached: whoever attaches to the session sees the pane.

    # -- steps -----------------------------------------------------------------------------------

    def _type(
        self,
        target: _Target,
        *,
        action: str,
        settle_seconds: float,
        before: str = "",
        otherwise: str = "",
        text: str = "",
    ) -> PaneView:
        """Do `action` if, in the same step, the pane can take it; then wait and look.

        The guard is one comparison: whatever a tmux version does not know of it makes the action
        not happen. It matters beyond politeness, as some servers die of a paste into a dead pane.
        """
        ready = (
            "#{==:#{pid} #{pane_id} #{pane_dead} #{pane_in_mode} #{pane_synchronized} #{pane_input_off},"
            f"{target.server.pid} {target.pane} 0 0 0 0}}"
        )
        settle = " ".join(_settle(settle_seconds))
        guarded = (
            f"{before}if-shell -F -t {target.pane} '{ready}'"
            f" '{action} ; {settle.removesuffix(' ;')}'"
            f" '{otherwise}display-message -p {_REFUSED}'"
        )
        output = self._run(
            target.server,
            *("if-shell", "-F", _same_server(target.server), guarded, f"display-message -p {_REFUSED}", ";"),
            *_look(target),
            text=text,
            extra_seconds=settle_seconds,
        )
        refused, output = output.startswith(_REFUSED), output.removeprefix(_REFUSED).removeprefix("\n")
        view = _view(target, output)
        if refused:
            raise PaneBusy(f"pane is in {view.mode}" if view.mode else None)
        return view

    def _where(self, target: _Target) -> "_Where":
        """Prove that the pane exists on the server that it was recorded on. Raises PaneGone."""
        line = self._run(target.server, *_listed(target, _WHERE_FORMAT))
        if not line:
            raise PaneGone(f"pane {target.pane} is gone")
        where = _Where(_lines(line)[0])
        _expect_server(target.server, where.server_pid)
        return where

    def _split(self, target: _Target, where: "_Where", argv: Sequence[str]) -> "_Opened":
        *first, last = _placings(target, where, argv)
        for attempt in first:
            try:
                return _Opened(self._run(target.server, *attempt))
            except MultiplexerError as error:
                if "no space" not in str(error):
                    raise
        return _Opened(self._run(target.server, *last))

    def _lives(self, server: _Server, pane: str) -> bool:
        status = self.list_panes(_server_name(server)).get(pane)
        return status is not None and not status.dead

    def _discard(self, server: _Server, pane: str) -> None:
        """Close a pane whose start failed; the first error is the one to report."""
        with contextlib.suppress(MultiplexerError):
            self.kill_pane(PaneAddress(_server_name(server), "", "", pane))

    def _run(self, server: _Server, *command: str, text: str = "", extra_seconds: float = 0.0) -> str:
        """The gate: one tmux process, its standard output."""
        if self._program is None:
            self._program = child.find_program("tmux", self._environ)
        finished = child.run(
            self._program,
            ("-u", "-S", server.socket, *command),
            self._environ,
            timeout_seconds=self._timeout_seconds + extra_seconds,
            text=text,
        )
        if finished.status != 0:
            raise _error(server, finished)
        return finished.output


class _Where:
    """What is known of a pane before something is done about it. Sizes are in cells."""

    def __init__(self, line: str) -> None:
        fields = _fields(line, 12)
        self.server_pid, self.pane_pid = fields[0], int(fields[1])
        self.dead, self.zoomed = fields[2] == "1", fields[3] == "1"
        self.width, self.height, self.window_width, self.window_height = map(int, fields[4:8])
        self.window_panes = int(fields[8])
        self.session, self.window, self.session_name = fields[9:]


class _Opened:
    """What tmux says of a pane that it just opened."""

    def __init__(self, output: str) -> None:
        self.server_pid, self.pane, self.window, self.session_name = _fields(_lines(output)[-1], 4)


# -- names of servers and panes ------------------------------------------------------------------


def _server_name(server: _Server) -> str:
    return own_pane.tmux_server_name(server.socket, server.pid)


def _server(name: str | None) -> _Server:
    """The server that a placement names. Raises PaneGone where it cannot be reached from here."""
    if name is None:
        raise PaneGone("its tmux server was not recorded")
    host, _, rest = name.partition("|")
    socket, _, pid = rest.rpartition("|")
    if not (os.path.isabs(socket) and _is_number(pid)):
        raise PaneGone(f"'{name}' names no tmux server")
    if host != os.uname().nodename:
        raise PaneGone(f"its tmux server is on another host ({host})")
    return _Server(socket, int(pid))


def _target(address: PaneAddress) -> _Target:
    if not _is_id(address.pane, "%"):
        raise PaneGone(f"'{address.pane}' is no tmux pane id")
    return _Target(_server(address.server), address.pane)


def _expect_server(server: _Server, pid: str) -> None:
    if pid != str(server.pid):
        raise PaneGone(f"its tmux server is gone: another one (pid {pid}) listens at {server.socket}")


def _is_id(text: str, mark: str) -> bool:
    return text[:1] == mark and _is_number(text[1:])


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


# -- commands and their output -------------------------------------------------------------------


def _same_server(server: _Server) -> str:
    return f"#{{==:#{{pid}},{server.pid}}}"


def _listed(target: _Target, fields: str) -> tuple[str, ...]:
    return "list-panes", "-a", "-f", f"#{{==:#{{pane_id}},{target.pane}}}", "-F", fields, ";"


def _look(target: _Target) -> tuple[str, ...]:
    return *_listed(target, _LOOK_FORMAT), "capture-pane", "-p", "-e", "-t", target.pane


def _placings(target: _Target, where: _Where, argv: Sequence[str]) -> list[tuple[str, ...]]:
    """The commands that open a pane, best place first; the last one needs no space.

    A pane that is too small for an agent's screen is no place: its state could not be read.
    """
    made = ("-d", "-P", "-F", _OPENED_FORMAT)
    sideways = where.width > 2 * ROOMY_COLUMNS
    split = ("split-window", *made, *(("-h",) if sideways else ()), "-t", target.pane, "--", *argv)
    tile = ("select-layout", "-t", target.pane, "tiled")
    placings = []
    if where.zoomed:
        pass  # Whoever zoomed a pane wants to see it alone: a split would end that.
    elif sideways or (where.height > 2 * LEAST_ROWS and where.width >= LEAST_COLUMNS):
        placings.append(split)
    elif _tiles_are_usable(where):
        placings.append((*tile, ";", *split, ";", *tile))
    placings.append(("new-window", *made, "-t", f"{where.session}:", "--", *argv))
    return placings


def _tiles_are_usable(where: _Where) -> bool:
    """Whether the window's panes and one more, tiled, each have the least size."""
    rows = columns = 1
    while rows * columns < where.window_panes + 1:  # as tmux lays out its tiles
        rows += 1
        if rows * columns < where.window_panes + 1:
            columns += 1
    height = (where.window_height - (rows - 1)) // rows
    width = (where.window_width - (columns - 1)) // columns
    return height >= LEAST_ROWS and width >= LEAST_COLUMNS


def _settle(seconds: float) -> tuple[str, ...]:
    """A pause inside tmux, between two commands of one process."""
    return ("run-shell", "-d", f"{seconds:.3f}", ";")


def _view(target: _Target, output: str) -> PaneView:
    """Read what `_look` printed: a head of three lines per window that shows the pane, the screen."""
    head, *rest = _lines(output)
    pid, _, dead, pane_pid, width, height, x, y, synchronized, input_off, mode = _fields(head, 11)
    _expect_server(target.server, pid)
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


def _mode(mode: str, synchronized: bool, input_off: bool) -> str:
    """What keeps a typed key from reaching this program, and no other, or empty."""
    if mode != "-":
        return mode or "a mode"
    if synchronized:
        return "synchronize-panes"
    return "input-off" if input_off else ""


def _lines(output: str) -> list[str]:
    return output.removesuffix("\n").split("\n")


def _fields(line: str, count: int) -> list[str]:
    """The blank-separated fields that a format asked for; only the last may hold blanks."""
    fields = line.split(" ", count - 1)
    if len(fields) != count:
        raise MultiplexerError(f"tmux gave an answer that cannot be read: {screen_text.printable(line)!r}")
    return fields


def _exit_status(status: str, signal: str) -> int | None:
    """As a shell would say it: 128 and the signal's number for a program that a signal ended."""
    if _is_number(status):
        return int(status)
    return 128 + int(signal) if _is_number(signal) else None


def _error(server: _Server, finished: child.Finished) -> MultiplexerError:
    lines = [line.strip() for line in finished.errors.splitlines() if line.strip()]
    words = screen_text.printable(lines[-1]) if lines else f"exit status {finished.status}"
    if words.startswith(_PANE_MISSING):
        return PaneGone(f"pane {words.rpartition(' ')[2]} is gone")
    missing_socket = words.startswith("error connecting to") and any(why in words for why in _SOCKET_MISSING)
    if missing_socket or words.startswith(_SERVER_MISSING):
        return PaneGone(f"its tmux server ({server.socket}, pid {server.pid}) is gone")
    return MultiplexerError(f"tmux: {words}")
