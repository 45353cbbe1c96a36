"""The tmux backend: the only file that runs tmux (SPEC 5.2).

Every call names its server by socket path and process id, and every command that changes a pane is
guarded inside tmux itself, in the same step. Text never is a tmux argument.
"""

import contextlib
import os
import time
from collections.abc import Mapping, Sequence

from cafleet.errors import MultiplexerError, NotInMultiplexer, PaneBusy, PaneGone
from cafleet.multiplexer import child, launch_file, processes, screen_text
from cafleet.multiplexer import tmux_formats as formats
from cafleet.multiplexer.base import (
    CALL_TIMEOUT_SECONDS,
    CLOSE_DELAY_SECONDS,
    KILL_GRACE_SECONDS,
    LaunchSpec,
    PaneAddress,
    PaneStatus,
    PaneView,
    check_pasted,
)
from cafleet.multiplexer.own_pane import tmux_pane
from cafleet.multiplexer.server_name import Server, expect_same, recorded_server, server_name
from cafleet.multiplexer.tmux_formats import Opened, Target, Where
from cafleet.multiplexer.tmux_layout import placings

LONGEST_CAPTURE_LINES = 100_000
_REFUSED, _TYPED, _ANSWERED = "cafleet:refused", "cafleet:typed", "cafleet:answered"
"""Lines that tmux prints: a guard did not hold; it did, and the pane was typed into; every command of
the call was done. Its exit status does not tell: a hook of the user's that fails sets it, and a server that
ends in the middle of a call does not."""
_OUTER_HERDR = "HERDR_*"
"""A tmux server that was started in a herdr pane hands that pane's variables on; they are not true here."""


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
        own = tmux_pane(self._environ)
        if own is None:
            raise NotInMultiplexer("not inside a tmux pane: TMUX or TMUX_PANE is not set")
        where = self._where(Target(recorded_server(own.server, "tmux"), own.pane))
        return PaneAddress(own.server, where.session_name, where.window, own.pane)

    def open_pane(self, beside: PaneAddress, launch: LaunchSpec) -> PaneAddress:
        """A new pane beside another one; the focus and a zoomed pane stay as they are."""
        target = formats.target(beside)
        where = self._where(target)
        launch = launch._replace(scrub=[*launch.scrub, _OUTER_HERDR])
        with launch_file.LaunchFile(launch) as handed_over:
            opened = self._split(target, where, handed_over.argv)
            try:
                expect_same(target.server, opened.server_pid, "tmux")
                handed_over.wait_until_started(lambda: self._lives(target.server, opened.pane))
            except BaseException:
                self._discard(target.server, opened.pane)
                raise
        return PaneAddress(beside.server, opened.session_name, opened.window, opened.pane)

    def look(self, pane: PaneAddress, *, settle_seconds: float = 0.0) -> PaneView:
        """Prove the pane's identity and read its screen."""
        target = formats.target(pane)
        output = self._run(
            target.server,
            *formats.settle(settle_seconds),
            *formats.look(target),
            extra_seconds=settle_seconds,
        )
        return formats.view(target, output)

    def paste(self, pane: PaneAddress, text: str, *, settle_seconds: float) -> PaneView:
        """One bracketed paste of one line; nothing is pasted into a pane that could not take it."""
        check_pasted(text)
        target = formats.target(pane)
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
        target = formats.target(pane)
        return self._type(target, action=f"send-keys -t {target.pane} Enter", settle_seconds=settle_seconds)

    def capture(self, pane: PaneAddress, *, lines: int, ansi: bool = False) -> str:
        """The last lines, history included; a dead pane's too. Blank rows at the end are cut."""
        target = formats.target(pane)
        count = max(1, min(lines, LONGEST_CAPTURE_LINES))
        output = self._run(
            target.server,
            *formats.listed(target, "#{pid}"),
            *("capture-pane", "-p", "-e", "-J", "-S", str(-count), "-t", target.pane),
        )
        pid, *rows = formats.lines(output)
        expect_same(target.server, pid, "tmux")
        return screen_text.last_rows(rows, count, ansi=ansi)

    def list_panes(self, server: str | None) -> dict[str, PaneStatus]:
        """Every pane by id; empty where the server is gone, another one now, or on another host."""
        try:
            named = recorded_server(server, "tmux")
            output = self._run(named, "list-panes", "-a", "-F", formats.LIST_FORMAT)
        except PaneGone:
            return {}
        return formats.statuses(named, output)

    def kill_pane(self, pane: PaneAddress) -> bool:
        """End the pane's processes, then close it. From inside that very pane: everything but the
        caller and what it runs in ends now, and the pane closes half a second later."""
        try:
            target = formats.target(pane)
            where = self._where(target)
        except PaneGone:
            return False
        inside = processes.end_pane_processes(
            where.pane_pid, KILL_GRACE_SECONDS, parent=target.server.pid, ended=where.dead
        )
        close = f"kill-pane -t {target.pane}"
        if inside:
            close = f"run-shell -b -d {CLOSE_DELAY_SECONDS} -C '{close}'"
        with contextlib.suppress(PaneGone):  # It closes by itself when its program ends.
            self._run(target.server, "if-shell", "-F", formats.same_server(target.server), close)
        return True

    def focus(self, pane: PaneAddress) -> None:
        """Make the pane the active one, and show it where a client is attached."""
        target = formats.target(pane)
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
        target: Target,
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
        settle = " ".join(formats.settle(settle_seconds)).removesuffix(" ;")
        refuse, typed = (f"display-message -p {word}" for word in (_REFUSED, _TYPED))
        act = f"{action} ; {typed} ; {settle}"
        guarded = f"{before}if-shell -F -t {target.pane} '{ready}' '{act}' '{otherwise}{refuse}'"
        output = self._run(
            target.server,
            *("if-shell", "-F", formats.same_server(target.server), guarded, refuse, ";"),
            *formats.look(target),
            text=text,
            extra_seconds=settle_seconds,
            proofs=(_TYPED, _REFUSED),
        )
        proof, _, output = output.partition("\n")
        view = formats.view(target, output)
        if proof == _REFUSED:
            raise PaneBusy(f"pane is in {view.mode}" if view.mode else None)
        return view

    def _where(self, target: Target) -> Where:
        """Prove that the pane exists on the server that it was recorded on. Raises PaneGone."""
        line = self._run(target.server, *formats.listed(target, formats.WHERE_FORMAT))
        if not line:
            raise PaneGone(f"pane {target.pane} is gone")
        where = Where(formats.lines(line)[0])
        expect_same(target.server, where.server_pid, "tmux")
        return where

    def _split(self, target: Target, where: Where, argv: Sequence[str]) -> Opened:
        *first, last = placings(target, where, argv)
        for attempt in first:
            try:
                return Opened(self._run(target.server, *attempt))
            except MultiplexerError as error:
                if "no space" not in str(error):
                    raise
        return Opened(self._run(target.server, *last))

    def _lives(self, server: Server, pane: str) -> bool:
        status = self.list_panes(server_name(server.socket, server.pid)).get(pane)
        return status is not None and not status.dead

    def _discard(self, server: Server, pane: str) -> None:
        """Close a pane whose start failed; the first error is the one to report."""
        with contextlib.suppress(MultiplexerError):
            self.kill_pane(PaneAddress(server_name(server.socket, server.pid), "", "", pane))

    def _run(
        self,
        server: Server,
        *command: str,
        text: str = "",
        extra_seconds: float = 0.0,
        proofs: Sequence[str] = (),
    ) -> str:
        """The gate: one tmux process, its standard output.

        `proofs`: the answer begins with one of these lines, else the call has failed.
        """
        if self._program is None:
            self._program = child.find_program("tmux", self._environ)
        between = () if command[-1] == ";" else (";",)
        finished = child.run(
            self._program,
            ("-u", "-S", server.socket, *command, *between, "display-message", "-p", _ANSWERED),
            self._environ,
            timeout_seconds=self._timeout_seconds + extra_seconds,
            text=text,
        )
        output, answered, _ = finished.output.rpartition(f"{_ANSWERED}\n")
        if not answered or (proofs and output.partition("\n")[0] not in proofs):
            raise formats.error_of(server, finished)
        return output
