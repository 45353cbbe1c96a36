"""The server of the herdr stand-in: panes are real ptys with a real shell.

Run as `python -S fake_herdr_server.py SOCKET`. Its screen is a simple one: lines and styles, no cursor
movement. Made from herdr's published documentation, not recorded from the program itself.
"""

import contextlib
import json
import os
import pty
import re
import selectors
import signal
import socket
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROWS, COLUMNS = 30, 100
_SEQUENCE = re.compile(r"\x1b\][^\x07]*\x07|\x1b\[[0-9;?]*[A-Za-z]|\x1b.|[\x00-\x08\x0b-\x1f]")


class Refused(Exception):
    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class Pane:
    """A pty with a shell, and what it has drawn."""

    def __init__(self, server: "Server", pane_id: str, tab_id: str) -> None:
        self.pane_id, self.tab_id = pane_id, tab_id
        self.rows = [""]
        self.title = ""
        self.scrolled = 0
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ.update(HERDR_ENV="1", HERDR_SOCKET_PATH=server.path, HERDR_PANE_ID=pane_id)
            os.environ.update(HERDR_TAB_ID=tab_id, HERDR_WORKSPACE_ID="w1", PS1="$ ")
            os.execv("/bin/sh", ["sh"])
        termios.tcsetwinsize(self.terminal, (ROWS, COLUMNS))

    def draw(self, data: str) -> None:
        position = 0
        for match in _SEQUENCE.finditer(data):
            self._put(data[position : match.start()])
            position = match.end()
            if match[0].startswith("\x1b]2;"):
                self.title = match[0][4:-1]
            elif match[0].endswith("m") and match[0].startswith("\x1b["):
                self.rows[-1] += match[0]
        self._put(data[position:])

    def _put(self, text: str) -> None:
        first, *rest = text.split("\n")
        self.rows[-1] += first
        self.rows += rest

    def info(self) -> dict[str, Any]:
        return {
            "pane_id": self.pane_id,
            "terminal_id": f"term_{self.pid}",
            "workspace_id": "w1",
            "tab_id": self.tab_id,
            "focused": self.pane_id == "w1:p1",
            "terminal_title": self.title,
            "agent_status": "unknown",
            "scroll": {
                "offset_from_bottom": self.scrolled,
                "max_offset_from_bottom": 9,
                "viewport_rows": ROWS,
            },
            "revision": 0,
        }

    def processes(self) -> dict[str, Any]:
        group = os.tcgetpgrp(self.terminal)
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{name}/stat").read_text()
                if int(text.rpartition(")")[2].split()[2]) == group:
                    found.append({"pid": int(name), "name": text[text.index("(") + 1 : text.rindex(")")]})
        return {
            "pane_id": self.pane_id,
            "shell_pid": self.pid,
            "foreground_process_group_id": group,
            "foreground_processes": found,
        }


class Server:
    """Requests come one a line; panes end with their programs."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.panes: dict[str, Pane] = {}
        self.made = 0
        self.tabs = 1
        self.methods: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "pane.list": lambda p: {"type": "pane_list", "panes": [x.info() for x in self.panes.values()]},
            "pane.get": lambda p: {"type": "pane_info", "pane": self.pane(p).info()},
            "pane.layout": self.layout,
            "pane.process_info": lambda p: {
                "type": "pane_process_info",
                "process_info": self.pane(p).processes(),
            },
            "pane.read": self.read,
            "pane.split": lambda p: {"type": "pane_info", "pane": self.open(self.pane(p).tab_id).info()},
            "tab.create": self.create_tab,
            "tab.focus": lambda p: {"type": "tab_info", "tab": {"tab_id": p["tab_id"], "focused": True}},
            "agent.focus": self.no_agent,
            "pane.send_text": lambda p: self.send(p, p["text"]),
            "pane.send_keys": lambda p: self.send(p, "".join(self.key(key) for key in p["keys"])),
            "pane.send_input": lambda p: self.send(p, p["text"] + "".join(map(self.key, p["keys"]))),
            "pane.close": self.close,
            "fake.scroll": self.scroll,
        }
        self.open("w1:t1")

    def pane(self, parameters: dict[str, Any]) -> Pane:
        name = parameters.get("pane_id", "")
        if name not in self.panes:
            raise Refused("pane_not_found", f"pane {name} not found")
        return self.panes[name]

    def open(self, tab_id: str) -> Pane:
        self.made += 1
        pane = Pane(self, f"w1:p{self.made}", tab_id)
        self.panes[pane.pane_id] = pane
        selector.register(pane.terminal, selectors.EVENT_READ, lambda: self.hear(pane))
        return pane

    def create_tab(self, parameters: dict[str, Any]) -> dict[str, Any]:
        self.tabs += 1
        pane = self.open(f"w1:t{self.tabs}")
        return {"type": "tab_created", "tab": {"tab_id": pane.tab_id}, "root_pane": pane.info()}

    def layout(self, parameters: dict[str, Any]) -> dict[str, Any]:
        tab = self.pane(parameters).tab_id
        inside = [pane for pane in self.panes.values() if pane.tab_id == tab]
        # Screens keep their size here; only the layout tells that there are more and more of them.
        rect = {"x": 0, "y": 0, "width": COLUMNS, "height": max(1, ROWS // len(inside))}
        panes = [{"pane_id": pane.pane_id, "focused": False, "rect": rect} for pane in inside]
        return {"type": "pane_layout", "layout": {"workspace_id": "w1", "tab_id": tab, "panes": panes}}

    def read(self, parameters: dict[str, Any]) -> dict[str, Any]:
        pane = self.pane(parameters)
        count = ROWS if parameters["source"] == "visible" else int(parameters.get("lines", 80))
        text = "\n".join(pane.rows[-count:]) + "\n"
        if parameters.get("format") != "ansi":
            text = _SEQUENCE.sub("", text)
        return {"type": "pane_read", "read": {"pane_id": pane.pane_id, "text": text}}

    def key(self, name: str) -> str:
        if name.lower() != "enter":
            raise Refused("invalid_key", f"unsupported key {name}")
        return "\r"

    def send(self, parameters: dict[str, Any], text: str) -> dict[str, Any]:
        os.write(self.pane(parameters).terminal, text.encode())
        return {"type": "ok"}

    def close(self, parameters: dict[str, Any]) -> dict[str, Any]:
        self.forget(self.pane(parameters))
        return {"type": "ok"}

    def scroll(self, parameters: dict[str, Any]) -> dict[str, Any]:
        self.pane(parameters).scrolled = parameters["offset"]
        return {"type": "ok"}

    def no_agent(self, parameters: dict[str, Any]) -> dict[str, Any]:
        raise Refused("agent_not_found", "no agent runs in this pane")

    def hear(self, pane: Pane) -> None:
        try:
            data = os.read(pane.terminal, 65536)
        except OSError:
            data = b""
        if data:
            pane.draw(data.decode("utf-8", "replace"))
        else:
            self.forget(pane)

    def forget(self, pane: Pane) -> None:
        if self.panes.pop(pane.pane_id, None) is not None:
            selector.unregister(pane.terminal)
            os.close(pane.terminal)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pane.pid, signal.SIGKILL)
            os.waitpid(pane.pid, 0)

    def answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile() as lines:
            line = lines.readline()
            if not line:
                return
            asked = json.loads(line)
            try:
                reply = {"id": asked["id"], "result": self.methods[asked["method"]](asked["params"])}
            except Refused as error:
                reply = {"id": asked["id"], "error": {"code": error.code, "message": str(error)}}
            connection.sendall(json.dumps(reply).encode() + b"\n")


selector = selectors.DefaultSelector()


def serve(path: str) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    server = Server(path)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    selector.register(listener, selectors.EVENT_READ, lambda: server.answer(listener.accept()[0]))
    print("ready", flush=True)
    try:
        while True:
            for key, _ in selector.select():
                if key.fd in selector.get_map():  # closed by an event before it
                    key.data()
    finally:
        for pane in list(server.panes.values()):
            server.forget(pane)


if __name__ == "__main__":
    serve(sys.argv[1])
