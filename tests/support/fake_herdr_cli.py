"""The `herdr` command of the stand-in: documented command lines to requests, answers to documented output.

Run as `python -S fake_herdr_cli.py ARGUMENT…`. Stand-alone, and quick to start.
"""

import json
import os
import socket
import sys
from typing import Any


def request(path: str, method: str, parameters: dict[str, object]) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(json.dumps({"id": "cli", "method": method, "params": parameters}).encode() + b"\n")
        answer = connection.makefile().readline()
    found: dict[str, Any] = json.loads(answer)
    return found


def cli(arguments: list[str]) -> int:
    method, parameters = parse(arguments)
    try:
        answer = request(os.environ["HERDR_SOCKET_PATH"], method, parameters)
    except (FileNotFoundError, ConnectionRefusedError):
        error = {"code": "server_not_running", "message": "no herdr server is running"}
        print(json.dumps({"id": "cli", "error": error}), file=sys.stderr)
        return 1
    if "error" in answer:
        print(json.dumps(answer), file=sys.stderr)
        return 1
    if method == "pane.read":
        sys.stdout.write(answer["result"]["read"]["text"])
    elif answer["result"]["type"] != "ok":
        print(json.dumps(answer))
    return 0


def parse(arguments: list[str]) -> tuple[str, dict[str, object]]:
    """A command line to a method and its parameters; exits with 2 where it is no such command."""
    group, command, *rest = arguments
    parameters: dict[str, object] = {}
    words: list[str] = []
    flags = {"--focus": ("focus", True), "--no-focus": ("focus", False), "--ansi": ("format", "ansi")}
    options = ("--direction", "--source", "--lines", "--format", "--workspace", "--pane", "--label", "--cwd")
    while rest:
        word = rest.pop(0)
        raw = command in ("send-text", "run") and words
        if word in flags and not raw:
            name, value = flags[word]
            parameters[name] = value
        elif word in options and not raw:
            name = {"--pane": "pane_id", "--workspace": "workspace_id"}.get(word, word[2:])
            parameters[name] = rest.pop(0)
        elif word.startswith("-") and not raw:
            print(f"unknown option: {word}", file=sys.stderr)
            sys.exit(2)
        else:
            words.append(word)
    if words:
        parameters["tab_id" if group == "tab" else "pane_id"] = words[0]
    if command in ("send-text", "run"):
        parameters["text"] = " ".join(words[1:])
    elif command == "send-keys":
        parameters["keys"] = words[1:]
    method = "pane.send_input" if command == "run" else f"{group}.{command.replace('-', '_')}"
    if command == "run":
        parameters["keys"] = ["Enter"]
    return method, parameters


if __name__ == "__main__":
    sys.exit(cli(sys.argv[1:]))
