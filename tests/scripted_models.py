"""Servers of language models that answer by a script, in the forms of Ollama and of OpenAI; not a test.

    with ScriptedModels(script) as server:
        server.url            http://127.0.0.1:PORT, with /v1 behind it for the OpenAI form
        server.asked          the bodies of all requests, in order
        server.counted        tokens (in, out) of all answers that said so

`script` gives an Answer to each question, by its number (from 0) and body; the last one of a list is repeated.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the server does with one request."""

    text: str = "Fine."
    status: int = 200
    usage: bool = True
    """Whether it says how many tokens it counted."""
    raw: bytes | None = None
    """Sent instead of JSON: broken JSON, a stream, an empty body."""
    breaks_off: bool = False
    """Closes the connection after the head."""
    waits: bool = False
    """Never answers, until the server ends."""
    refuses: bool = False
    """OpenAI's own way to refuse."""
    newer: bool = False
    """Refuses `max_tokens` as OpenAI's newer models do."""
    counts: int = 0
    """The tokens of the question that it says it counted, instead of those that it did."""
    dim: int = 8


Script = Callable[[int, dict[str, Any]], Answer]


def count(text: str) -> int:
    """The tokens of a text as this server counts them."""
    return len(text) // 4 + 1


class ScriptedModels:
    """A server in threads of its own; `with` it."""

    def __init__(self, script: Script | Sequence[Answer] = (Answer(),)) -> None:
        self._script = script
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.paths: list[str] = []
        self.counted = (0, 0)
        handler = type("Bound", (_Handler,), {"models": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        """Where it listens, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> ScriptedModels:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, path: str, key: str, body: dict[str, Any]) -> Answer:
        """The answer to a request, which is noted."""
        with self._lock:
            number = len(self.asked)
            self.asked.append(body)
            self.keys.append(key)
            self.paths.append(path)
        if callable(self._script):
            return self._script(number, body)
        return self._script[min(number, len(self._script) - 1)]

    def count(self, tokens_in: int, tokens_out: int) -> None:
        """Adds what an answer said it counted."""
        with self._lock:
            self.counted = self.counted[0] + tokens_in, self.counted[1] + tokens_out

    def wait(self) -> None:
        """Waits until the server ends."""
        self._ending.wait(60)


class _Handler(BaseHTTPRequestHandler):
    models: ScriptedModels

    def log_message(self, *_: Any) -> None:
        """Standard error stays the test's."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = self.models.answer(self.path, self.headers.get("authorization", ""), body)
        if answer.waits:
            self.models.wait()
            return
        if answer.newer and "max_tokens" in body:
            self._send(400, b'{"error": {"message": "use max_completion_tokens"}}')
        elif answer.status != 200 or answer.breaks_off:
            self._send(answer.status, b'{"error": {"message": "as scripted"}}', breaks_off=answer.breaks_off)
        elif answer.raw is not None:
            self._send(200, answer.raw)
        else:
            sent = sum(count(message["content"]) for message in body.get("messages", ()))
            made = count(answer.text) if "messages" in body else 0
            sent = answer.counts or sent or sum(map(count, body.get("input", ())))
            if answer.usage:
                self.models.count(sent, made)
            self._send(200, json.dumps(self._form(answer, body, sent, made)).encode())

    def _form(self, answer: Answer, body: dict[str, Any], sent: int, made: int) -> dict[str, Any]:
        vectors = [[float(len(text) % 7 + place) for place in range(answer.dim)] for text in body.get("input", ())]
        ollama = {"prompt_eval_count": sent, "eval_count": made} if answer.usage else {}
        openai = {"usage": {"prompt_tokens": sent, "completion_tokens": made}} if answer.usage else {}
        message: dict[str, Any] = {"role": "assistant", "content": answer.text}
        if answer.refuses:
            message = {"role": "assistant", "content": None, "refusal": "No."}
        forms: dict[str, dict[str, Any]] = {
            "/api/chat": {"message": message, "done": True, "done_reason": "stop", **ollama},
            "/api/embed": {"embeddings": vectors, **ollama},
            "/v1/chat/completions": {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **openai},
            "/v1/embeddings": {"data": [{"index": i, "embedding": row} for i, row in enumerate(vectors)], **openai},
        }
        return forms[self.path]

    def _send(self, status: int, data: bytes, *, breaks_off: bool = False) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if not breaks_off:
            self.wfile.write(data)
