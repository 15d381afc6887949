"""A model's API that answers by a script: what the client sends is what the model would have seen.

It speaks every API of `model_apis`. Every request is written to the log directory *before* it is answered, so that a
test can act while a turn is still waiting. Only the requests of the main conversation take replies from the script;
titles, warm-ups and token counts get a constant answer and never use up a reply.

    Scenario  {"prompt": text that marks the main conversation, "replies": [Reply, ...], "log": directory}
    Reply     "text" or {"text": "...", "tool": "Bash", "input": {...}, "hold": path, "context": 195000}
              tool: NAMESPACE/NAME for one in a namespace (Responses only)
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

from e2e import model_apis

CONSTANT_REPLY = "Fine."
SCRIPT_IS_OVER = "The script is over."
HOLD_LIMIT_S = 60.0
#: The model that is there for clients that ask which there are.
MODEL = "scripted-model"


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
    """The text of a request that the model would read as conversation: its instructions and its messages."""
    return "\n".join(text for name in model_apis.CONVERSATION for text in strings(body.get(name)))


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
        if path.endswith(model_apis.COUNTING):
            return "count", None
        api = model_apis.api_of(path)
        if api is None:
            return "unknown", None
        if body.get("tools") and any(self.prompt in text for text in strings(api.user_messages(body))):
            return "main", next(self._replies, SCRIPT_IS_OVER)
        return "other", CONSTANT_REPLY


def message_for(reply: str | dict[str, Any], number: int, model: str) -> model_apis.Message:
    """The message of a scripted reply."""
    reply = {"text": reply} if isinstance(reply, str) else reply
    return model_apis.Message(
        number=number, model=model, text=reply.get("text", ""), tool=reply.get("tool", ""), input=reply.get("input", {}),
        tokens=reply.get("context", model_apis.TOKENS_IN),
    )  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    """One connection of the client; `script` is set by `serve`."""

    protocol_version = "HTTP/1.1"
    script: Script

    def log_message(self, *_: Any) -> None:
        """Standard error stays the client's."""

    def do_GET(self) -> None:
        if self.path.split("?")[0].endswith("/models"):
            self._send(200, {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0}], "models": []})
        else:
            self._refuse()

    def do_HEAD(self) -> None:
        self._refuse()

    def do_POST(self) -> None:
        raw = self._body()
        path, body = self.path.split("?")[0], json.loads(raw or b"{}")
        kind, reply, number = self.script.take(path, body)
        api = model_apis.api_of(path)
        if kind == "count":
            self._send(200, {"input_tokens": len(raw) // 4, "totalTokens": len(raw) // 4})
        elif api is None:
            self._refuse()
        else:
            if isinstance(reply, dict) and reply.get("hold"):
                wait_for(Path(reply["hold"]))
            whole = api.whole(message_for(reply, number, body.get("model", MODEL)))
            if body.get("stream") or "stream" in path.rpartition("/")[2]:
                self._stream(api.stream(whole))
            else:
                self._send(200, whole)

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        raw = b""
        while size := int(self.rfile.readline().split(b";")[0] or b"0", 16):
            raw += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return raw

    def _refuse(self) -> None:
        self._send(404, {"type": "error", "error": {"type": "not_found_error", "message": "not scripted"}})

    def _send(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _stream(self, events: model_apis.Events) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for kind, data in events:
            name = f"event: {kind}\n" if kind else ""
            text = data if isinstance(data, str) else json.dumps(data)
            self.wfile.write(f"{name}data: {text}\n\n".encode())
            self.wfile.flush()
        self.close_connection = True


def wait_for(path: Path) -> None:
    """Returns when `path` exists, at the latest after HOLD_LIMIT_S."""
    limit = time.monotonic() + HOLD_LIMIT_S
    while not path.exists() and time.monotonic() < limit:
        time.sleep(0.02)


def serve(scenario: dict[str, Any], port: int = 0) -> ThreadingHTTPServer:
    """A server for `scenario` on 127.0.0.1, on a free port or this one, already answering in threads of its own."""
    handler = type("ScriptedHandler", (Handler,), {"script": Script(scenario)})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
