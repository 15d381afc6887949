"""A Messages API that answers by a script: what the client sends is what the model would have seen.

Every request is written to the log directory *before* it is answered, so that a test can act while a
turn is still waiting. Only the requests of the main conversation take replies from the script; titles,
warm-ups and token counts get a constant answer and never use up a reply.

    Scenario  {"prompt": text that marks the main conversation, "replies": [Reply, ...], "log": directory}
    Reply     "text" or {"text": "...", "tool": "Bash", "input": {...}, "hold": path, "context": 195000}
              hold: the answer waits until that file exists; context: the tokens that it says it was made from
    Log file  NNNN-KIND.json with the request's body; KIND is main, other, count or unknown
"""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CONSTANT_REPLY = "Fine."
SCRIPT_IS_OVER = "The script is over."
HOLD_LIMIT_S = 60.0
USAGE = {"input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 5}


def strings(value: Any) -> Iterator[str]:
    """Every string inside a JSON value, keys left out, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def seen_by_model(body: dict[str, Any]) -> str:
    """The text of a request that the model would read as conversation: its system prompt and its messages."""
    return "\n".join([*strings(body.get("system")), *strings(body.get("messages"))])


class Script:
    """The replies that are left, and the log."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.prompt: str = scenario["prompt"]
        self.log = Path(scenario["log"])
        self.log.mkdir(parents=True, exist_ok=True)
        self._replies = iter(scenario["replies"])
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def take(self, path: str, body: dict[str, Any]) -> tuple[str, Any, int]:
        """The kind of this request, the reply to it and its number; the request is in the log afterwards."""
        with self._lock:
            kind, reply = self._choose(path, body)
            number = next(self._numbers)
            target = self.log / f"{number:04d}-{kind}.json"
            partial = target.with_suffix(".partial")
            partial.write_text(json.dumps(body))
            os.replace(partial, target)
        return kind, reply, number

    def _choose(self, path: str, body: dict[str, Any]) -> tuple[str, Any]:
        if path == "/v1/messages/count_tokens":
            return "count", None
        if path != "/v1/messages":
            return "unknown", None
        users = [message for message in body.get("messages", []) if message.get("role") == "user"]
        if body.get("tools") and any(self.prompt in text for text in strings(users)):
            return "main", next(self._replies, SCRIPT_IS_OVER)
        return "other", CONSTANT_REPLY


def message_for(reply: str | dict[str, Any], number: int, model: str) -> dict[str, Any]:
    """The API's message for a scripted reply."""
    reply = {"text": reply} if isinstance(reply, str) else reply
    content: list[dict[str, Any]] = []
    if reply.get("text"):
        content.append({"type": "text", "text": reply["text"]})
    if reply.get("tool"):
        tool_use = {"type": "tool_use", "id": f"toolu_{number:04d}", "name": reply["tool"], "input": reply["input"]}
        content.append(tool_use)
    return {
        "id": f"msg_{os.getpid()}_{number:04d}", "type": "message", "role": "assistant", "model": model,
        "content": content, "stop_reason": "tool_use" if reply.get("tool") else "end_turn", "stop_sequence": None,
        "usage": {**USAGE, "input_tokens": reply.get("context", USAGE["input_tokens"])},
    }  # fmt: skip


def stream_of(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The server-sent events that carry `message`, in order."""
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty: dict[str, Any] = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": message["usage"]}
    yield {"type": "message_stop"}


class Handler(BaseHTTPRequestHandler):
    """One connection of the client; `script` is set by `serve`."""

    protocol_version = "HTTP/1.1"
    script: Script

    def log_message(self, *_: Any) -> None:
        """Standard error stays the client's."""

    def do_GET(self) -> None:
        self._send(404, {"type": "error", "error": {"type": "not_found_error", "message": "not scripted"}})

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        body = json.loads(raw or b"{}")
        kind, reply, number = self.script.take(self.path.split("?")[0], body)
        if kind == "unknown":
            self.do_GET()
        elif kind == "count":
            self._send(200, {"input_tokens": len(raw) // 4})
        else:
            if isinstance(reply, dict) and reply.get("hold"):
                wait_for(Path(reply["hold"]))
            message = message_for(reply, number, body.get("model", ""))
            if body.get("stream"):
                self._stream(message)
            else:
                self._send(200, message)

    def _send(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _stream(self, message: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for event in stream_of(message):
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()
        self.close_connection = True


def wait_for(path: Path) -> None:
    """Returns when `path` exists, at the latest after HOLD_LIMIT_S."""
    limit = time.monotonic() + HOLD_LIMIT_S
    while not path.exists() and time.monotonic() < limit:
        time.sleep(0.02)


def serve(scenario: dict[str, Any]) -> ThreadingHTTPServer:
    """A server for `scenario` on a free port of 127.0.0.1, already answering in threads of its own."""
    handler = type("ScriptedHandler", (Handler,), {"script": Script(scenario)})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
