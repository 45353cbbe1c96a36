"""The herdr backend: the only file that runs herdr, by its command line (docs/multiplexers.md).

Written from herdr's published documentation of its commands and JSON answers. Two things are unlike
tmux: a new pane always starts with a shell, so the launcher is handed to that shell; and look and
type are separate calls, so a guard and its action are not one step.
"""

import contextlib
import json
import shlex
import time
from collections.abc import Mapping
from typing import Any

from cafleet.errors import MultiplexerError, MultiplexerTimeout, NotInMultiplexer, PaneBusy, PaneGone
from cafleet.multiplexer import child, launch_file, processes, screen_text
from cafleet.multiplexer.base import (
    CALL_TIMEOUT_SECONDS,
    CLOSE_DELAY_SECONDS,
    KILL_GRACE_SECONDS,
    LaunchSpec,
    PaneAddress,
    PaneStatus,
    PaneView,
    SplitSide,
    check_pasted,
    split_side,
)
from cafleet.multiplexer.own_pane import herdr_pane, is_herdr_pane
from cafleet.multiplexer.server_name import expect_same, recorded_server, server_name
from cafleet.multiplexer.socket_listener import listening_pid

PROMPT_TIMEOUT_SECONDS = 10.0
"""How long the shell of a new pane may take to its first prompt."""
LONGEST_CAPTURE_LINES = 1000
_POLL_SECONDS = 0.05
_PASTE_START, _PASTE_END = "\x1b[200~", "\x1b[201~"
_GONE_CODES = frozenset(("pane_not_found", "not_found", "tab_not_found", "server_not_running"))
_OUTER_TMUX = ("TMUX", "TMUX_PANE")


class Herdr:
    """Panes of herdr servers, reached through their sockets. Fulfils `base.Multiplexer`."""

    name = "herdr"

    def __init__(self, environ: Mapping[str, str], *, timeout_seconds: float = CALL_TIMEOUT_SECONDS) -> None:
        """`environ`: gives `HERDR_SOCKET_PATH`, `HERDR_PANE_ID` and the `PATH` of herdr."""
        self._environ = environ
        self._timeout_seconds = timeout_seconds
        self._program: str | None = None

    def current_pane(self) -> PaneAddress:
        """The pane that this process was started in."""
        own = herdr_pane(self._environ)
        if own is None:
            raise NotInMultiplexer(
                "not inside a herdr pane: HERDR_ENV, HERDR_SOCKET_PATH or HERDR_PANE_ID is not set"
            )
        server = server_name(own.socket, self._server_pid(own.socket))
        return _address(server, self._call(own.socket, "pane", "get", own.pane)["pane"])

    def open_pane(self, beside: PaneAddress, launch: LaunchSpec) -> PaneAddress:
        """A new pane beside another one; the focus stays. Its shell becomes the launcher."""
        path = self._prove(beside)
        launch = launch._replace(scrub=[*launch.scrub, *_OUTER_TMUX])
        with launch_file.LaunchFile(launch) as handed_over:
            made = self._new_pane(path, beside.pane)
            address = _address(beside.server, made)
            try:
                self._wait_for_prompt(path, address.pane)
                # A leading blank keeps the line out of most shells' histories.
                self._call(path, "pane", "run", address.pane, " exec " + shlex.join(handed_over.argv))
                handed_over.wait_until_started(lambda: address.pane in self.list_panes(beside.server))
            except BaseException:
                with contextlib.suppress(MultiplexerError):
                    self.kill_pane(address)
                raise
        return address

    def look(self, pane: PaneAddress, *, settle_seconds: float = 0.0) -> PaneView:
        """Prove the pane's identity and read its screen."""
        time.sleep(settle_seconds)
        return self._view(self._prove(pane), pane.pane)

    def paste(self, pane: PaneAddress, text: str, *, settle_seconds: float) -> PaneView:
        """One bracketed paste of one line. `send-text` passes bytes on as they are, so the paste's
        own marks go with the text."""
        check_pasted(text)
        path = self._ready(pane)
        self._call(path, "pane", "send-text", pane.pane, _PASTE_START + text + _PASTE_END)
        time.sleep(settle_seconds)
        return self._view(path, pane.pane)

    def press_enter(self, pane: PaneAddress, *, settle_seconds: float) -> PaneView:
        """Enter, once."""
        path = self._ready(pane)
        self._call(path, "pane", "send-keys", pane.pane, "enter")
        time.sleep(settle_seconds)
        return self._view(path, pane.pane)

    def capture(self, pane: PaneAddress, *, lines: int, ansi: bool = False) -> str:
        """The last lines, history included, at most 1000. Blank rows at the end are cut."""
        path = self._prove(pane)
        count = max(1, min(lines, LONGEST_CAPTURE_LINES))
        # Read with styles: a plain read of an idle agent's history makes herdr scroll the agent.
        how = ("--source", "recent-unwrapped", "--lines", str(LONGEST_CAPTURE_LINES), "--format", "ansi")
        rows = self._run(path, "pane", "read", pane.pane, *how).split("\n")
        return screen_text.last_rows(rows, count, ansi=ansi)

    def list_panes(self, server: str | None) -> dict[str, PaneStatus]:
        """Every pane by id; empty where the server is gone, another one now, or on another host.

        The command is the agent that herdr recognised; a pane closes with its program, so none is
        dead."""
        try:
            panes = self._call(self._prove_server(server), "pane", "list")["panes"]
        except PaneGone:
            return {}
        return {
            pane["pane_id"]: PaneStatus(
                pane["pane_id"], dead=False, exit_status=None, command=pane.get("agent") or ""
            )
            for pane in panes
        }

    def kill_pane(self, pane: PaneAddress) -> bool:
        """End the pane's processes, then close it; a pane that the caller runs in closes later."""
        try:
            path = self._prove(pane)
            shell = self._processes(path, pane.pane).get("shell_pid")
        except PaneGone:
            return False
        inside = shell is not None and processes.end_pane_processes(int(shell), KILL_GRACE_SECONDS)
        close = ("pane", "close", pane.pane)
        if inside:
            child.run_later(CLOSE_DELAY_SECONDS, self._found(), close, self._environ_for(path))
            return True
        with contextlib.suppress(PaneGone):  # It closes by itself when its program ends.
            self._call(path, *close)
        return True

    def focus(self, pane: PaneAddress) -> None:
        """Show the pane's tab, and the pane in it where herdr knows an agent there."""
        path = self._prove(pane)
        self._call(path, "tab", "focus", self._call(path, "pane", "get", pane.pane)["pane"]["tab_id"])
        with contextlib.suppress(MultiplexerError):  # Only panes with an agent can be focused by id.
            self._call(path, "agent", "focus", pane.pane)

    # -- steps -----------------------------------------------------------------------------------

    def _prove_server(self, name: str | None) -> str:
        """The socket of the server that a placement names, if that very server still answers there."""
        server = recorded_server(name, "herdr")
        expect_same(server, str(self._server_pid(server.socket)), "herdr")
        return server.socket

    def _prove(self, pane: PaneAddress) -> str:
        """The socket of the pane's server. Whether the pane is there the next command tells.

        A restarted server has panes of the same ids, with new shells in them: its process id tells.
        """
        if not is_herdr_pane(pane.pane):
            raise PaneGone(f"'{pane.pane}' is no herdr pane id")
        return self._prove_server(pane.server)

    def _ready(self, pane: PaneAddress) -> str:
        """Like `_prove`; and the pane is there, and nobody reads back in it."""
        path = self._prove(pane)
        mode = _mode(self._call(path, "pane", "get", pane.pane)["pane"])
        if mode:
            raise PaneBusy(f"pane is in {mode}")
        return path

    def _view(self, path: str, pane: str) -> PaneView:
        info = self._call(path, "pane", "get", pane)["pane"]
        width, height = self._size(path, pane)
        running = self._processes(path, pane)
        text = self._run(path, "pane", "read", pane, "--source", "visible", "--format", "ansi")
        rows = screen_text.styled_rows(text.removesuffix("\n").split("\n"))[-height:]
        rows += [""] * (height - len(rows))
        drawn = [number for number, row in enumerate(screen_text.plain_rows(rows)) if row]
        command, shell = _foreground(running)
        return PaneView(
            rows=tuple(rows),
            command=command,
            shell=shell,
            mode=_mode(info),
            title=screen_text.printable(info.get("terminal_title") or info.get("title") or ""),
            width=width,
            height=height,
            cursor_x=0,
            cursor_y=drawn[-1] if drawn else 0,
        )

    def _size(self, path: str, pane: str) -> tuple[int, int]:
        """Columns and rows."""
        for entry in self._call(path, "pane", "layout", "--pane", pane)["layout"]["panes"]:
            if entry["pane_id"] == pane:
                return int(entry["rect"]["width"]), int(entry["rect"]["height"])
        raise PaneGone(f"pane {pane} is gone")

    def _processes(self, path: str, pane: str) -> dict[str, Any]:
        answer = self._call(path, "pane", "process-info", "--pane", pane)
        found: dict[str, Any] = answer["process_info"]
        return found

    def _new_pane(self, path: str, beside: str) -> dict[str, Any]:
        """The record of a new pane, or of a new tab's pane where a split would be too small."""
        width, height = self._size(path, beside)
        workspace = self._call(path, "pane", "get", beside)["pane"]["workspace_id"]
        side = split_side(width, height)
        if side is not SplitSide.NONE:
            made = self._call(path, "pane", "split", beside, "--direction", side.value, "--no-focus")["pane"]
        else:
            made = self._call(path, "tab", "create", "--workspace", workspace, "--no-focus")["root_pane"]
        record: dict[str, Any] = made
        return record

    def _wait_for_prompt(self, path: str, pane: str) -> None:
        """What is typed before a shell is ready can be lost."""
        deadline = time.monotonic() + PROMPT_TIMEOUT_SECONDS
        while not (_foreground(self._processes(path, pane))[1] and self._has_drawn(path, pane)):
            if time.monotonic() >= deadline:
                raise MultiplexerTimeout("the new pane's shell", PROMPT_TIMEOUT_SECONDS)
            time.sleep(_POLL_SECONDS)

    def _has_drawn(self, path: str, pane: str) -> bool:
        return bool(self._run(path, "pane", "read", pane, "--source", "visible").strip())

    def _server_pid(self, path: str) -> int:
        return listening_pid(path, "herdr", self._timeout_seconds)

    def _call(self, path: str, *command: str) -> dict[str, Any]:
        """One herdr command: the `result` of its JSON answer."""
        output = self._run(path, *command)
        try:
            answer = json.loads(output) if output.strip() else {}
            result: dict[str, Any] = answer.get("result", {})
        except (ValueError, AttributeError) as error:
            words = screen_text.printable(output)[:200]
            raise MultiplexerError(f"herdr gave an answer that cannot be read: {words!r}") from error
        return _Answer(result)

    def _run(self, path: str, *command: str) -> str:
        """The gate: one herdr process, its standard output."""
        environ = self._environ_for(path)
        finished = child.run(self._found(), command, environ, timeout_seconds=self._timeout_seconds)
        if finished.status != 0:
            raise _error(finished)
        return finished.output

    def _found(self) -> str:
        if self._program is None:
            self._program = child.find_program("herdr", self._environ)
        return self._program

    def _environ_for(self, path: str) -> dict[str, str]:
        """The server is named by its socket; a session's name would say something else."""
        kept = {name: value for name, value in self._environ.items() if name != "HERDR_SESSION"}
        return {**kept, "HERDR_SOCKET_PATH": path}


class _Answer(dict[str, Any]):
    """A JSON object in which a missing field is one clear error."""

    def __missing__(self, key: str) -> Any:
        raise MultiplexerError(f"herdr's answer lacks '{key}': is this version supported?")


def _address(server: str | None, info: Mapping[str, Any]) -> PaneAddress:
    return PaneAddress(server, info["workspace_id"], info["tab_id"], info["pane_id"])


def _mode(info: Mapping[str, Any]) -> str:
    scroll = info.get("scroll") or {}
    return "scroll-back" if scroll.get("offset_from_bottom") else ""


def _foreground(running: Mapping[str, Any]) -> tuple[str, bool]:
    """Name of the foreground process, and whether it is a shell that waits at its prompt."""
    found = running.get("foreground_processes") or []
    group = running.get("foreground_process_group_id")
    names = [process["name"] for process in found if process["pid"] == group]
    names += [process["name"] for process in found]
    if not names:
        return "", False
    command = screen_text.printable(names[0])
    shell = running.get("shell_pid")
    if shell is None:
        return command, processes.is_shell(command)
    return command, processes.shell_waits(command, int(shell))


def _error(finished: child.Finished) -> MultiplexerError:
    """Errors are JSON on standard error: the object itself or an answer that has it."""
    code, message = "", screen_text.printable(finished.errors.strip())[:200]
    try:
        answer = json.loads(finished.errors)
        body = answer.get("error", answer)
        code, message = str(body["code"]), screen_text.printable(str(body["message"]))
    except (ValueError, KeyError, AttributeError, TypeError):
        pass
    if code in _GONE_CODES:
        return PaneGone(message)
    return MultiplexerError(f"herdr: {message or f'exit status {finished.status}'}")
