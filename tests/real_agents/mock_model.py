"""A model that does what it is told, on loopback, in the three dialects that the real programs speak.

    python mock_model.py [--log FILE] [--port N]

Prints its port. What the "model" answers is in the user's text, one order a line:

    order: wait 5                 think for five seconds first
    order: shell ls -l            call the program's own shell tool
    order: tool NAME {"a": 1}     call any tool of the program
    order: say hello              answer with this text
    order: I am member 7          remembered for the whole conversation

A notification line (`[cafleet msg 12 from 3 …]`) is answered by polling the inbox of that member and
acknowledging message 12, in one shell call. Anything else is answered with `understood`. Every request
is one JSON line in the log: what was new in it, and what was answered.
"""

import argparse
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

Json = dict[str, Any]

_ORDER = re.compile(r"order: (wait|shell|tool|say) (.+)")
_MEMBER = re.compile(r"order: I am member (\d+)")
_NOTICE = re.compile(r"\[cafleet msg (\d+) from ")
_SHELLS = {"Bash": "command", "bash": "command", "exec_command": "cmd", "shell_command": "command"}
"""The programs' shell tools, and the argument that holds the command."""


class Turn(NamedTuple):
    """What a request asks, whatever its dialect."""

    said: list[str]
    """Every user text of the conversation, oldest first."""
    new: list[str]
    """Those after the model's last answer."""
    results: list[str]
    """Tool results after the model's last answer."""
    tools: list[str]


class Call(NamedTuple):
    tool: str
    arguments: Json


class Answer(NamedTuple):
    wait_seconds: float
    text: str
    calls: list[Call]


def decide(turn: Turn) -> Answer:
    """The answer that the orders in the new text ask for."""
    if not turn.tools:  # A title or a summary.
        return Answer(0.0, "a conversation", [])
    wait_seconds, texts, calls = 0.0, [], []
    shell = next((name for name in _SHELLS if name in turn.tools), None)
    commands: list[str] = []
    for line in "\n".join(turn.new).splitlines():
        notice = _NOTICE.search(line)
        order = None if notice else _ORDER.search(line)
        if notice:
            member = (_MEMBER.findall("\n".join(turn.said)) or ["0"])[-1]
            commands.append(f"cafleet message poll {member} && cafleet message ack {notice[1]}")
        elif order and order[1] == "wait":
            wait_seconds += float(order[2])
        elif order and order[1] == "shell":
            commands.append(order[2])
        elif order and order[1] == "tool":
            name, _, arguments = order[2].partition(" ")
            calls.append(Call(name, json.loads(arguments or "{}")))
        elif order:
            texts.append(order[2])
    if shell:
        calls += [Call(shell, {_SHELLS[shell]: command, "description": "as ordered"}) for command in commands]
    return Answer(wait_seconds, " ".join(texts) or ("" if calls else "understood"), calls)


# -- reading a request -------------------------------------------------------------------------


def _texts(content: object) -> list[str]:
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]


def _turn(items: Sequence[tuple[str, list[str]]], tools: list[str]) -> Turn:
    """`items`: (who, texts) in order, who being `user`, `model` or `tool`."""
    said = [text for who, texts in items if who == "user" for text in texts]
    last = max((at for at, (who, _) in enumerate(items) if who == "model"), default=-1)
    new = [text for who, texts in items[last + 1 :] if who == "user" for text in texts]
    results = [text for who, texts in items[last + 1 :] if who == "tool" for text in texts]
    return Turn(said, new, results, tools)


def read_messages(body: Json) -> Turn:
    """Anthropic's Messages API."""
    items: list[tuple[str, list[str]]] = []
    for message in body.get("messages", []):
        content = message.get("content")
        if message.get("role") == "assistant":
            items.append(("model", []))
            continue
        parts = content if isinstance(content, list) else []
        results = [part for part in parts if part.get("type") == "tool_result"]
        items.extend(("tool", _texts(part.get("content"))) for part in results)
        items.append(("user", _texts(content)))
    return _turn(items, [str(tool.get("name")) for tool in body.get("tools") or []])


def read_responses(body: Json) -> Turn:
    """OpenAI's Responses API."""
    items: list[tuple[str, list[str]]] = []
    for item in body.get("input", []):
        kind = item.get("type", "message")
        if kind.endswith("_output"):
            items.append(("tool", _texts(item.get("output"))))
        elif kind.endswith("_call") or item.get("role") == "assistant":
            items.append(("model", []))
        elif item.get("role") == "user":
            items.append(("user", _texts(item.get("content"))))
    return _turn(items, [str(tool.get("name")) for tool in body.get("tools") or []])


def read_chat(body: Json) -> Turn:
    """OpenAI's chat completions."""
    roles = {"user": "user", "assistant": "model", "tool": "tool"}
    items = [
        (roles[message["role"]], _texts(message.get("content")))
        for message in body.get("messages", [])
        if message.get("role") in roles
    ]
    return _turn(items, [str(tool["function"]["name"]) for tool in body.get("tools") or []])


# -- writing an answer: (event name, data) -----------------------------------------------------

Event = tuple[str | None, Json | str]


def write_messages(answer: Answer, model: object, serial: int) -> Iterator[Event]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message: Json = {
        "id": f"msg_{serial}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    yield "message_start", {"type": "message_start", "message": message}
    blocks: list[tuple[Json, Json]] = []
    if answer.text:
        blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": answer.text}))
    for at, call in enumerate(answer.calls):
        block = {"type": "tool_use", "id": f"toolu_{serial}_{at}", "name": call.tool, "input": {}}
        blocks.append((block, {"type": "input_json_delta", "partial_json": json.dumps(call.arguments)}))
    for at, (block, delta) in enumerate(blocks):
        yield "content_block_start", {"type": "content_block_start", "index": at, "content_block": block}
        yield "content_block_delta", {"type": "content_block_delta", "index": at, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": at}
    stop = {"stop_reason": "tool_use" if answer.calls else "end_turn", "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": stop, "usage": usage}
    yield "message_stop", {"type": "message_stop"}


def write_responses(answer: Answer, model: object, serial: int) -> Iterator[Event]:
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    response: Json = {"id": f"resp_{serial}", "object": "response", "model": model, "output": []}
    yield "response.created", {"type": "response.created", "response": {**response, "status": "in_progress"}}
    items: list[Json] = []
    if answer.text:
        content = [{"type": "output_text", "text": answer.text, "annotations": []}]
        items.append({"type": "message", "id": f"msg_{serial}", "role": "assistant", "content": content})
    for at, call in enumerate(answer.calls):
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{serial}_{at}",
                "call_id": f"call_{serial}_{at}",
                "name": call.tool,
                "arguments": json.dumps(call.arguments),
            }
        )
    for at, item in enumerate(items):
        added = {"type": "response.output_item.added", "output_index": at, "item": item}
        yield "response.output_item.added", {**added, "item": {**item, "status": "in_progress"}}
        done = {**item, "status": "completed"}
        yield (
            "response.output_item.done",
            {"type": "response.output_item.done", "output_index": at, "item": done},
        )
    whole = {**response, "status": "completed", "output": items, "usage": usage}
    yield "response.completed", {"type": "response.completed", "response": whole}


def write_chat(answer: Answer, model: object, serial: int) -> Iterator[Event]:
    def chunk(delta: Json, finish: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return None, {
            "id": f"chat-{serial}",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": model,
            "choices": [choice],
        }

    yield chunk({"role": "assistant", "content": answer.text})
    for at, call in enumerate(answer.calls):
        function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
        called = {"index": at, "id": f"call_{serial}_{at}", "type": "function", "function": function}
        yield chunk({"tool_calls": [called]})
    yield chunk({}, "tool_calls" if answer.calls else "stop")
    yield None, "[DONE]"


class Dialect(NamedTuple):
    read: Callable[[Json], Turn]
    write: Callable[[Answer, object, int], Iterator[Event]]


DIALECTS: Mapping[str, Dialect] = {
    "/v1/messages": Dialect(read_messages, write_messages),
    "/v1/responses": Dialect(read_responses, write_responses),
    "/v1/chat/completions": Dialect(read_chat, write_chat),
}


# -- the server --------------------------------------------------------------------------------


class MockModel(ThreadingHTTPServer):
    """Listens on loopback only; `server_address[1]` is its port."""

    daemon_threads = True

    def __init__(self, log_path: str | None, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self._log_path = log_path
        self._lock = threading.Lock()
        self._serial = 0

    def next_serial(self) -> int:
        with self._lock:
            self._serial += 1
            return self._serial

    def log(self, **entry: object) -> None:
        if self._log_path:
            with self._lock, open(self._log_path, "a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: MockModel

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: the log file has what matters."""

    def do_HEAD(self) -> None:
        self._send_json({})

    def do_GET(self) -> None:
        self._send_json({"object": "list", "data": [], "models": [], "has_more": False})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        dialect = DIALECTS.get(path)
        if dialect is None:
            self._send_json({"input_tokens": 1} if path.endswith("/count_tokens") else {})
            return
        body = json.loads(raw)
        turn = dialect.read(body)
        answer = decide(turn)
        self.server.log(path=path, new=turn.new, results=turn.results, text=answer.text, calls=answer.calls)
        time.sleep(answer.wait_seconds)
        events = dialect.write(answer, body.get("model"), self.server.next_serial())
        try:
            if body.get("stream"):
                self._stream(events)
            else:
                self._send_json(_unstreamed(path, answer, body.get("model")))
        except ConnectionError:  # The program was interrupted.
            self.close_connection = True

    def _stream(self, events: Iterator[Event]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for name, data in events:
            head = f"event: {name}\n" if name else ""
            text = data if isinstance(data, str) else json.dumps(data)
            self.wfile.write(f"{head}data: {text}\n\n".encode())
            self.wfile.flush()

    def _send_json(self, value: Json) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _unstreamed(path: str, answer: Answer, model: object) -> Json:
    """Only side requests (titles, summaries) ask for it: text alone will do."""
    usage = {
        "input_tokens": 1,
        "output_tokens": 1,
        "prompt_tokens": 1,
        "completion_tokens": 1,
        "total_tokens": 2,
    }
    if path == "/v1/messages":
        content = [{"type": "text", "text": answer.text}]
        return {"id": "msg", "type": "message", "role": "assistant", "model": model, "content": content,
                "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}  # fmt: skip
    if path == "/v1/responses":
        *_, (_, last) = write_responses(answer, model, 0)
        return dict(last)["response"] if isinstance(last, dict) else {}
    message = {"role": "assistant", "content": answer.text}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return {"id": "chat", "object": "chat.completion", "model": model, "choices": [choice], "usage": usage}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--log")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    server = MockModel(options.log, options.port)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
