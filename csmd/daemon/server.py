"""The ROUTER socket: requests in, each answered once, hooks before their deadline.

A hook without an answer takes the daemon for hung, and hooks are then silent for a while. So one that is about to leave
is told how it stands: what is stored is acknowledged, what is not it is to spool; a replay is known by its id.
"""

from __future__ import annotations

import json
import logging
import math
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zmq

from csmd import wire
from csmd.capture import ingest
from csmd.capture.ingest import Decoded
from csmd.config import Config
from csmd.daemon import injection
from csmd.daemon.context import LookupLog, now_iso
from csmd.daemon.injection import Injection
from csmd.daemon.jobs import Background
from csmd.embedding.supervisor import Embedder
from csmd.errors import BadInput, CsmdError, DeadlineExceeded, StoreError
from csmd.hosts.claude import hooks
from csmd.model import Event, Project
from csmd.store import activity, files
from csmd.store.core import Ended, Lane, Precedence, Store, run_briefly, run_to_end
from csmd.store.sqlite import Rows
from csmd.tools import TOOLS, named
from csmd.tools.registry import ToolContext
from csmd.wire import Reply, Request

#: A hook is sent off so long before its deadline.
LAST_S = 0.008


@dataclass(slots=True)
class Waiting:
    """A request whose answer is not ready yet; `until` is monotonic, `stored` says that its event is on the disk."""

    identity: bytes
    request: Request
    until: float
    stored: bool = False
    answered: bool = False


class WaitingRoom:
    """Owns who waits; for the socket's thread alone. The background gives way while a hook is inside."""

    def __init__(self, send: Callable[[bytes, Reply], None], precedence: Precedence) -> None:
        self._send = send
        self._precedence = precedence
        self._inside: dict[int, Waiting] = {}
        self._next_leaves = math.inf

    def __len__(self) -> int:
        return len(self._inside)

    def take_in(self, waiting: Waiting) -> None:
        """Has a request wait, unless it was answered already."""
        if not waiting.answered:
            self._inside[id(waiting)] = waiting
            if waiting.request.verb == "event":
                self._precedence.say(answering=True)

    def answer(self, waiting: Waiting, reply: Reply) -> None:
        """Sends a request its one answer; one that is made after a hook was sent off goes nowhere."""
        self._inside.pop(id(waiting), None)
        if not waiting.answered:
            waiting.answered = True
            self._send(waiting.identity, reply)
            if waiting.request.verb == "event":
                self._precedence.say(answering=any(one.request.verb == "event" for one in self._inside.values()))

    def patience_ms(self) -> int | None:
        """Until the first hook has to be sent off; None while none waits."""
        hooks = [one.until for one in self._inside.values() if one.request.verb == "event"]
        self._next_leaves = min(hooks, default=math.inf) - LAST_S
        return max(0, math.ceil((self._next_leaves - time.monotonic()) * 1000)) if hooks else None

    def send_off(self, now: float) -> None:
        """Answers the hooks that are about to leave at the monotonic time `now`."""
        if now < self._next_leaves:
            return
        for waiting in list(self._inside.values()):
            if waiting.request.verb == "event" and now >= waiting.until - LAST_S:
                self.answer(waiting, Reply(status="ok" if waiting.stored else "retry"))

    def turn_away(self) -> None:
        """Answers everybody with `retry`."""
        for waiting in list(self._inside.values()):
            self.answer(waiting, Reply(status="retry"))


log = logging.getLogger(__name__)

#: Kept back from a hook's deadline for the way home, and of what is left for the commit of what it is told.
MARGIN_S, RECEIPT_S = 0.015, 0.01
#: Requests that are still answered, with `retry`, by a daemon that stops.
LATE_LIMIT = 10_000
#: A longer payload is decoded on a reader's thread, so that the other hooks are served meanwhile.
DECODED_HERE_BYTES = 256 * 1024


class Server(threading.Thread):
    """Owns the ROUTER socket; `start` it, wait for `ready`, look at `failure`, `stop` it. Calls `ended` at its end."""

    def __init__(
        self,
        path: Path,
        store: Store,
        config: Config,
        embedder: Embedder,
        background: Background,
        tools: ToolContext,
        *,
        ended: Callable[[], None],
    ) -> None:
        super().__init__(name="csmd-server")
        self._ended = ended
        self.path = path
        self.store = store
        self.config = config
        self.embedder = embedder
        self.background = background
        self.tools = tools
        self.ready = threading.Event()
        self.failure: str = ""
        self._inbox: deque[Callable[[], None]] = deque()
        self._waiting = WaitingRoom(self._send, store.precedence)
        self._wake_out, self._wake_in = socket.socketpair()
        self._wake_out.setblocking(False)
        self._wake_in.setblocking(False)
        # Held while a byte is sent: a descriptor closed meanwhile may be somebody else's already.
        self._wake_lock = threading.Lock()
        self._stopping = threading.Event()
        self._router: zmq.Socket[bytes] | None = None
        self._warming: threading.Thread | None = None

    def stop(self) -> None:
        """Answers everybody who waits with `retry`, so that they spool at once, and ends."""
        self._stopping.set()
        self._wake()

    def ask(self, answered: Callable[[], None]) -> None:
        """Has the socket's thread call back when it comes by; from any thread."""
        self._inbox.append(answered)
        self._wake()

    def run(self) -> None:
        try:
            self._listen()
        except Exception as error:
            log.exception("the socket's thread failed")
            self.failure = f"the socket's thread failed: {type(error).__name__}"
        finally:
            with self._wake_lock:
                self._wake_in.close()
                self._wake_out.close()
            self.ready.set()
            self._ended()

    def _listen(self) -> None:
        ctx = zmq.Context()
        router: zmq.Socket[bytes] = ctx.socket(zmq.ROUTER)
        router.setsockopt(zmq.LINGER, 200)
        router.setsockopt(zmq.MAXMSGSIZE, wire.MAX_BODY_BYTES + 4096)
        router.setsockopt(zmq.RCVHWM, 10_000)
        try:
            files.clear_stale_socket(self.path)
            old = os.umask(0o077)
            try:
                router.bind(f"ipc://{self.path}")
            finally:
                os.umask(old)
            self.path.chmod(0o600)
        except (OSError, CsmdError, zmq.ZMQError) as error:
            self.failure = f"cannot listen on {self.path}: {error}"
            router.close(0)
            ctx.term()
            return
        self._router = router
        poller = zmq.Poller()
        poller.register(router, zmq.POLLIN)
        poller.register(self._wake_out, zmq.POLLIN)
        self.ready.set()
        try:
            while not self._stopping.is_set():
                for source, _ in poller.poll(self._waiting.patience_ms()):
                    if source is router:
                        self._receive(router)
                    else:
                        self._drain_wakes()
                self._work()
                self._waiting.send_off(time.monotonic())
            self._turn_away(router)
        finally:
            router.close()
            ctx.term()

    def _turn_away(self, router: zmq.Socket[bytes]) -> None:
        """The last answers: `retry` to who waits for the store, and to who came too late to be looked at."""
        self._waiting.turn_away()
        for _ in range(LATE_LIMIT):
            try:
                identity = router.recv_multipart(zmq.NOBLOCK)[0]
            except zmq.Again:
                return
            self._send(identity, Reply(status="retry"))

    def _receive(self, router: zmq.Socket[bytes]) -> None:
        for _ in range(200):
            try:
                frames = router.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            identity, rest = frames[0], frames[1:]
            # One of the four catch-alls: whatever one peer sends, the others are served.
            try:
                self._dispatch(identity, wire.decode_request(rest))
            except BadInput as error:
                log.warning("a malformed request: %s, %d frames", type(error).__name__, len(rest))
                self._send(identity, Reply(status="error", body=_problem(error)))
            except StoreError as error:
                self._send(identity, Reply(status="refused", body=_problem(error)))
            except Exception:
                log.exception("dispatch failed")
                self._send(identity, Reply(status="error", body=b'{"error":"internal error, see the log"}'))

    def _dispatch(self, identity: bytes, request: Request) -> None:
        if request.proto > wire.PROTO:
            self._send(identity, Reply(status="upgrade"))
            return
        patience = min(max(request.deadline_ms, 0), 3_600_000) / 1000
        waiting = Waiting(identity, request, time.monotonic() + patience)
        if request.verb == "event":
            self._event(waiting)
        elif request.verb == "call":
            self._call(waiting)
        else:
            raise BadInput(f"unknown verb {request.verb[:40]!r}")

    def _event(self, waiting: Waiting) -> None:
        request = waiting.request
        if not request.id:
            raise BadInput("an event has no id")  # it is what makes a replay known
        if request.host not in ingest.DECODERS:
            # Acknowledged: in the spool nobody would understand it either.
            counted = self.store.submit(lambda rows: activity.count(rows, [(ingest.UNKNOWN, 1)]))
            self._then(counted, waiting, lambda _: self._done(waiting))
            return
        at, left_out = now_iso(), self.background.context.excludes

        def decode(_: Rows | None = None) -> Decoded | BadInput:
            return ingest.decode(request.host, request.body, left_out, name=request.name, event_id=request.id, at=at)

        lane: Lane = "main" if len(request.body) > DECODED_HERE_BYTES else "hook"
        # Whether a project is left out, the disk tells; in a pause nobody asks.
        if lane == "hook" and (not left_out.ask_the_disk or left_out.pauses().covers(at)):
            self._decoded(waiting, decode())
        else:
            read = self.store.submit_read(decode, lane=lane)
            self._then(read, waiting, lambda decoded: self._decoded(waiting, decoded))

    def _decoded(self, waiting: Waiting, decoded: Decoded | BadInput) -> None:
        request = waiting.request
        if isinstance(decoded, BadInput):
            # Kept out, noted and acknowledged: a spool would only bring it back.
            reason = decoded.what
            self._then(
                self.store.submit(lambda rows: self._note_bad(rows, request, reason)),
                waiting,
                lambda _: self._done(waiting),
            )
            return
        event, redacted = decoded
        if event is None:
            if redacted:
                self.store.submit(lambda rows: activity.count(rows, list(redacted.items())))
            self._done(waiting)
            return
        key, room = self.store.hash_key, self.config.settings.capture_session_bytes

        def record(place: Project | None) -> None:
            write = self.store.submit(
                lambda rows: ingest.record(
                    rows, event, redacted=redacted, key=key, now=now_iso(), place=place, room=room
                )
            )
            self._then(write, waiting, lambda new: self._recorded(waiting, event, new, early))

        # Whose project a directory is, a disk tells that may be far away: neither this thread nor the writer waits.
        placed = self.store.submit_read(lambda rows: ingest.place_of(rows, event), lane="hook") if event.text else None
        # These answers do not depend on their own event: they are looked up while that is written.
        early = self._look_up(waiting, event) if event.name in ("prompt", "tool_failure") else None
        if placed is None:
            record(None)
        else:
            self._then(placed, waiting, record)

    def _look_up(self, waiting: Waiting, event: Event) -> Future[Injection] | None:
        """Starts composing what the event's answer may inject; None where nothing is to be injected."""
        left = waiting.until - time.monotonic() - MARGIN_S - RECEIPT_S
        if event.name not in hooks.INJECTING or not self.config.settings.stages_inject or left <= 0:
            return None
        if event.name == "prompt" and not event.by_user:
            return None
        return self.store.submit_read(
            lambda rows: injection.compose_injection(rows, self.config, self.background.context, event, left),
            lane="hook",
            deadline_s=left,
        )

    def _note_bad(self, rows: Rows, request: Request, reason: str) -> None:
        """Runs on the writer: the note is a file that is flushed to the disk."""
        files.quarantine(
            self.config.paths.quarantine,
            source=f"hook {request.name}",
            reason=reason,
            data=request.body,
            now=now_iso(),
        )
        activity.count(rows, [("bad events", 1)])

    def _recorded(self, waiting: Waiting, event: Event, new: bool, early: Future[Injection] | None) -> None:
        """The event is on the disk: now it may be answered."""
        waiting.stored = True
        self.background.context.hint_of_hook(event.transcript_path)
        if event.name in hooks.INJECTING and event.failure is None:
            self._warm()
            self.background.instructed.visit(event.cwd)
        if new and event.name == "session_start":
            self.background.context.owed.owe(event)
        # A start, a clearing or a compaction changes what the session has been told: composed after its commit.
        read = (early or self._look_up(waiting, event)) if new else None
        if read is None:
            self._done(waiting)
            return
        self._then(read, waiting, lambda made: self._composed(waiting, event, made), otherwise=Reply(status="ok"))

    def _warm(self) -> None:
        """Has the worker started for the prompts to come; on another thread: starting or burying one takes a while."""
        if self._warming is None or not self._warming.is_alive():
            self._warming = threading.Thread(target=self.embedder.warm, name="csmd-warm")
            self._warming.start()

    def _composed(self, waiting: Waiting, event: Event, made: Injection) -> None:
        """Notes what will be told and tells it; the hook may leave at any moment, and what nobody read is not noted."""
        if event.name == "session_start":
            self.background.expect(made.project)
        body = hooks.answer(event.name, made.text)

        def is_late() -> bool:
            return time.monotonic() > waiting.until - MARGIN_S

        def tell() -> None:
            self._done(waiting, body)
            if made.settles:
                self.background.context.owed.settle(event.session_id, by=event.id)

        if is_late():
            self._done(waiting)
            return
        if not body:
            tell()
            return

        def note(rows: Rows) -> None:
            if is_late():  # it stood behind others: raised, so that nothing of it is stored
                raise DeadlineExceeded("the hook has left")
            injection.note(rows, made, key=self.store.hash_key)

        def noted(_: None) -> None:
            if not is_late():
                tell()
                return
            # The commit took too long: without this the session would never be told what it did not read.
            undone = self.store.submit(lambda rows: injection.take_back(rows, event))
            self._then(undone, waiting, lambda _: self._done(waiting), otherwise=Reply(status="ok"))

        self._then(self.store.submit(note), waiting, noted, otherwise=Reply(status="ok"))

    def _call(self, waiting: Waiting) -> None:
        request = waiting.request
        params = wire.loads(request.body or b"{}")
        if not isinstance(params, dict):
            raise BadInput("a call's parameters are not a JSON object")
        lane, noted = named(request.name).lane, self.background.context.noted
        if lane is None:
            answer = run_to_end(answering(self.tools, noted, None, request.name, params))
            self._send(waiting.identity, Reply(status="ok", body=_json(answer)))
            return
        self._answer(waiting, lane, lambda rows: answering(self.tools, noted, rows, request.name, params))

    def _answer(self, waiting: Waiting, lane: Lane, begun: Callable[[Rows], Generator[None, None, Any]]) -> None:
        """A moment of answering, and the next one behind whoever came meanwhile."""

        def go_on(rows: Rows) -> tuple[Generator[None, None, Any], Ended[Any] | None]:
            steps = begun(rows)
            return steps, run_briefly(steps)

        def then(found: tuple[Generator[None, None, Any], Ended[Any] | None]) -> None:
            steps, ended = found
            if ended is None:
                self._answer(waiting, lane, lambda _: steps)
            else:
                self._done(waiting, _json(ended.value))

        # Nobody reads an answer after the caller's patience: a search that takes longer is stopped.
        left = waiting.until - time.monotonic()
        self._then(self.store.submit_read(go_on, lane=lane, deadline_s=left), waiting, then)

    def _then(
        self,
        future: Future[Any],
        waiting: Waiting,
        next_step: Callable[[Any], None],
        *,
        otherwise: Reply | None = None,
    ) -> None:
        """Goes on with `next_step` on this thread when `future` is done; a failure is answered."""
        self._waiting.take_in(waiting)

        def done(finished: Future[Any]) -> None:
            self._inbox.append(lambda: self._resume(finished, waiting, next_step, otherwise))
            self._wake()

        future.add_done_callback(done)

    def _resume(
        self, finished: Future[Any], waiting: Waiting, next_step: Callable[[Any], None], otherwise: Reply | None
    ) -> None:
        error = finished.exception()
        if error is None:
            # One of the four catch-alls: who asked gets an answer even when making it fails.
            try:
                next_step(finished.result())
                return
            except Exception as raised:  # noqa: BLE001 - logged below
                error = raised
        if otherwise is not None:
            log.warning("answered without an injection: %s", type(error).__name__)
            self._waiting.answer(waiting, otherwise)
        elif isinstance(error, CsmdError):
            refused = isinstance(error, StoreError) and waiting.request.verb == "event"
            self._waiting.answer(waiting, Reply(status="refused" if refused else "error", body=_problem(error)))
        else:
            log.error("%s failed", _what(waiting.request), exc_info=error)
            self._waiting.answer(waiting, Reply(status="error", body=b'{"error":"internal error, see the log"}'))

    def _done(self, waiting: Waiting, body: bytes = b"") -> None:
        self._waiting.answer(waiting, Reply(status="ok", body=body))

    def _work(self) -> None:
        while self._inbox:
            self._inbox.popleft()()

    def _send(self, identity: bytes, reply: Reply) -> None:
        if self._router is not None:
            try:
                self._router.send_multipart([identity, *wire.encode_reply(reply)], zmq.NOBLOCK)
            except zmq.ZMQError as error:
                log.warning("a peer went away before its answer: error %d", error.errno)

    def _wake(self) -> None:
        with self._wake_lock:
            try:
                self._wake_in.send(b"!")
            except OSError:
                return  # it is awake (the pipe is full), or it has ended

    def _drain_wakes(self) -> None:
        try:
            while self._wake_out.recv(4096):
                pass
        except BlockingIOError:
            return


def answering(
    ctx: ToolContext, noted: LookupLog, rows: Rows | None, name: str, params: Mapping[str, Any]
) -> Generator[None, None, Any]:
    """Runs a tool in steps, where its answer takes long: each may have a transaction of its own."""
    tool, began = named(name), time.monotonic()
    given = tool.check(params)
    result = yield from tool.answer(ctx, rows, given)
    noted.answered(name, given, result, time.monotonic() - began)
    return result


def _what(request: Request) -> str:
    """What was asked in words of ours; a peer can put anything there."""
    return request.name if request.name in TOOLS else "an event" if request.verb == "event" else "a call"


def _problem(error: CsmdError) -> bytes:
    return _json({"error": error.what, "hint": error.hint})


def _json(value: Any) -> bytes:
    """What a path or an argument holds that is not Unicode must not cost the answer."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
