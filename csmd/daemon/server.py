"""The ROUTER socket: answers each request once, and hooks before their deadline.

A hook without an answer assumes that the daemon hangs, and hooks then stay silent for a while. So a hook whose deadline
is near gets whatever answer is ready: `ok` if its event is stored, else `retry`, after which it spools the event. A
replayed event is recognised by its id.
"""

from __future__ import annotations

import json
import logging
import math
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import zmq

from csmd import wire
from csmd.capture import ingest
from csmd.capture.ingest import Decoded
from csmd.conversation import Event
from csmd.daemon import injection
from csmd.daemon.context import LookupLog, now_iso
from csmd.daemon.injection import Injection
from csmd.daemon.jobs import Background
from csmd.errors import BadInput, CsmdError, DeadlineExceeded, StoreError
from csmd.hook_events import EVENTS
from csmd.hosts.adapters import ADAPTERS
from csmd.privacy.redaction import withhold
from csmd.store import activity, files
from csmd.store.core import Finished, HookPriority, Lane, run_briefly, run_to_end
from csmd.store.sqlite import Rows
from csmd.tools.declaration import ToolContext
from csmd.tools.registry import TOOLS, find_tool
from csmd.wire import Reply, Request

log = logging.getLogger(__name__)

#: The error for a hook that has no time left for an injection.
LATE_ERROR = "the hook has left"
#: How long before its deadline a hook gets whatever answer is ready.
EARLY_ANSWER_S = 0.008
#: The part of a hook's deadline that is reserved for sending the answer.
SEND_MARGIN_S = 0.015
#: The part that is reserved for the commit of the receipt.
RECEIPT_S = 0.01
#: The longest deadline that a caller can set.
MAX_DEADLINE_MS = 3_600_000
#: Requests that are received before waiting ones are continued.
MAX_RECEIVED = 200
#: Requests that a stopping daemon still answers with `retry`.
MAX_TURNED_AWAY = 10_000
DRAIN_BYTES = 4096
#: A longer payload is decoded on a reader's thread, so that other hooks are served meanwhile.
MAX_INLINE_BYTES = 256 * 1024
#: The longest answer that is redacted on the socket's thread: a hook's or an error. Longer ones were redacted in `_call`.
MAX_INLINE_ANSWER_BYTES = 65_536
INTERNAL_ERROR = b'{"error":"internal error, see the log"}'

#: An exchange in steps: yields each future that it waits for, is sent the result, and returns the body of the answer.
Steps = Generator[Future[Any], Any, bytes]


@dataclass(slots=True, eq=False)
class Exchange:
    """A request, and whether it was answered; `until` is monotonic, `stored` says that its event is committed."""

    identity: bytes
    request: Request
    until: float
    stored: bool = False
    answered: bool = False

    @property
    def is_hook(self) -> bool:
        """Whether a hook waits for the answer."""
        return self.request.verb == "event"


class WaitingRoom:
    """Owns the waiting exchanges; only for the socket's thread. The background gives way while a hook is among them."""

    def __init__(self, send: Callable[[bytes, Reply], None], hook_priority: HookPriority) -> None:
        self._send = send
        self._hook_priority = hook_priority
        self._exchanges: set[Exchange] = set()

    def __len__(self) -> int:
        return len(self._exchanges)

    def admit(self, exchange: Exchange) -> None:
        """Adds an exchange, unless it was answered already."""
        if not exchange.answered:
            self._exchanges.add(exchange)
            if exchange.is_hook:
                self._hook_priority.set_answering(True)

    def answer(self, exchange: Exchange, reply: Reply) -> None:
        """Answers a request; any further answer is dropped."""
        self._exchanges.discard(exchange)
        if not exchange.answered:
            exchange.answered = True
            self._send(exchange.identity, reply)
            if exchange.is_hook:
                self._hook_priority.set_answering(any(other.is_hook for other in self._exchanges))

    def timeout_ms(self) -> int | None:
        """Milliseconds until a hook must get whatever answer is ready; None while no hook waits."""
        ends = [exchange.until for exchange in self._exchanges if exchange.is_hook]
        return max(0, math.ceil((min(ends) - EARLY_ANSWER_S - time.monotonic()) * 1000)) if ends else None

    def answer_late(self, now: float) -> None:
        """Answers the hooks whose deadline is near at the monotonic time `now`."""
        for exchange in [each for each in self._exchanges if each.is_hook and now >= each.until - EARLY_ANSWER_S]:
            self.answer(exchange, Reply(status="ok" if exchange.stored else "retry"))

    def refuse_all(self) -> None:
        """Answers all exchanges with `retry`."""
        for exchange in list(self._exchanges):
            self.answer(exchange, Reply(status="retry"))


class WakePipe:
    """Owns a pipe that wakes the thread that polls it; `wake` from any thread, and from a signal's handler."""

    def __init__(self) -> None:
        self._out, self._in = socket.socketpair()
        self._out.setblocking(False)
        self._in.setblocking(False)
        # A descriptor that another thread closes before the byte is sent may already be reused.
        self._lock = threading.RLock()

    def fileno(self) -> int:
        """Returns the descriptor to poll."""
        return self._out.fileno()

    def wakeup_fd(self) -> int:
        """Returns the descriptor whose writing wakes, for `signal.set_wakeup_fd`."""
        return self._in.fileno()

    def wake(self) -> None:
        """Makes the pipe readable; does nothing once it is closed."""
        with self._lock, suppress(OSError):  # a full pipe is readable
            self._in.send(b"!")

    def drain(self) -> None:
        """Empties the pipe."""
        with suppress(BlockingIOError):
            while self._out.recv(DRAIN_BYTES):
                pass

    def close(self) -> None:
        """Closes both ends."""
        with self._lock:
            self._in.close()
            self._out.close()


class Server(threading.Thread):
    """Owns the ROUTER socket; `start` it, wait for `ready`, look at `failure`, `stop` it. Calls `ended` at its end."""

    def __init__(self, path: Path, background: Background, tools: ToolContext, *, ended: Callable[[], None]) -> None:
        super().__init__(name="csmd-server")
        self.path = path
        self.background = background
        self.tools = tools
        self.store = background.context.store
        self.embedder = background.context.embedder
        self.ready = threading.Event()
        self.failure = ""
        self._ended = ended
        self._inbox: deque[Callable[[], None]] = deque()
        self._waiting = WaitingRoom(self._send, self.store.hook_priority)
        self._pipe = WakePipe()
        self._stopping = threading.Event()
        self._router: zmq.Socket[bytes] | None = None
        self._warming: threading.Thread | None = None

    def stop(self) -> None:
        """Answers all waiting hooks with `retry`, so that they spool at once, and ends."""
        self._stopping.set()
        self._pipe.wake()

    def ping(self, answered: Callable[[], None]) -> None:
        """Makes the socket's thread call `answered`; from any thread."""
        self._inbox.append(answered)
        self._pipe.wake()

    def run(self) -> None:
        """Serves requests until `stop`."""
        try:
            with zmq.Context() as ctx, ctx.socket(zmq.ROUTER) as router:
                self._serve(router)
        except Exception as error:
            # A catch-all: the main thread has to learn that requests are no longer answered.
            log.exception("the socket's thread failed")
            self.failure = f"the socket's thread failed: {type(error).__name__}"
        finally:
            self._pipe.close()
            self.ready.set()
            self._ended()

    def _serve(self, router: zmq.Socket[bytes]) -> None:
        router.setsockopt(zmq.LINGER, 200)
        router.setsockopt(zmq.MAXMSGSIZE, wire.MAX_BODY_BYTES + 4096)
        router.setsockopt(zmq.RCVHWM, 10_000)
        try:
            files.clear_stale_socket(self.path)
            router.bind(f"ipc://{self.path}")
            self.path.chmod(0o600)
        except (OSError, CsmdError, zmq.ZMQError) as error:
            self.failure = f"cannot listen on {self.path}: {error}"
            return
        self._router = router
        poller = zmq.Poller()
        poller.register(router, zmq.POLLIN)
        poller.register(self._pipe.fileno(), zmq.POLLIN)
        self.ready.set()
        while not self._stopping.is_set():
            for source, _ in poller.poll(self._waiting.timeout_ms()):
                if source is router:
                    self._receive(router)
                else:
                    self._pipe.drain()
            while self._inbox:
                self._inbox.popleft()()
            self._waiting.answer_late(time.monotonic())
        self._waiting.refuse_all()
        with suppress(zmq.Again):
            for _ in range(MAX_TURNED_AWAY):
                self._send(router.recv_multipart(zmq.NOBLOCK)[0], Reply(status="retry"))

    def _receive(self, router: zmq.Socket[bytes]) -> None:
        for _ in range(MAX_RECEIVED):
            try:
                identity, *frames = router.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            try:
                request = wire.decode_request(frames)
            except BadInput as error:
                log.warning("a malformed request: %s, %d frames", type(error).__name__, len(frames))
                self._send(identity, Reply(status="error", body=_encode_error(error)))
            else:
                self._dispatch(identity, request)

    def _dispatch(self, identity: bytes, request: Request) -> None:
        if request.proto > wire.PROTO:
            self._send(identity, Reply(status="upgrade"))
            return
        deadline_s = min(max(request.deadline_ms, 0), MAX_DEADLINE_MS) / 1000
        exchange = Exchange(identity, request, time.monotonic() + deadline_s)
        self._advance(exchange, self._run_exchange(exchange))

    def _advance(self, exchange: Exchange, steps: Steps, finished: Future[Any] | None = None) -> None:
        """Continues an exchange with the future that is `finished`; an error becomes its answer."""
        # A catch-all: whatever a peer sends, it gets an answer, and the others are served.
        try:
            if finished is None:
                future = next(steps)
            elif (error := finished.exception()) is not None:
                future = steps.throw(error)
            else:
                future = steps.send(finished.result())
        except StopIteration as end:
            self._waiting.answer(exchange, Reply(status="ok", body=end.value))
        except CsmdError as error:
            status: wire.Status = "refused" if isinstance(error, StoreError) and exchange.is_hook else "error"
            self._waiting.answer(exchange, Reply(status=status, body=_encode_error(error)))
        except Exception:
            log.exception("%s failed", _describe(exchange.request))
            self._waiting.answer(exchange, Reply(status="error", body=INTERNAL_ERROR))
        else:
            self._waiting.admit(exchange)
            future.add_done_callback(lambda result: self.ping(lambda: self._advance(exchange, steps, result)))

    def _run_exchange(self, exchange: Exchange) -> Steps:
        if exchange.request.verb == "call":
            return (yield from self._call(exchange))
        if not exchange.is_hook:
            raise BadInput(f"unknown verb {exchange.request.verb[:40]!r}")
        if not exchange.request.id:
            raise BadInput("an event has no id")  # which identifies a replay
        event = yield from self._store_event(exchange)
        if event is not None:
            # After the answer, because reading files and starting the worker would slow it down.
            self._follow_up(event)
        return b""

    def _store_event(self, exchange: Exchange) -> Generator[Future[Any], Any, Event | None]:
        """Stores a hook's event and answers the hook; returns the event, None for one that csmd does not need."""
        request, store = exchange.request, self.store
        if request.host not in ADAPTERS:
            # Acknowledged, because it would not be understood in the spool either.
            yield store.submit(lambda rows: activity.increment_counters(rows, [(ingest.UNKNOWN_HOSTS, 1)]))
            return None
        decoded = yield from self._decode(request)
        if isinstance(decoded, BadInput):
            # Quarantined and acknowledged, because the spool would send it again.
            reason = decoded.what
            yield store.submit(lambda rows: self._quarantine(rows, request, reason))
            return None
        event, redacted = decoded
        if event is None:
            if redacted:
                store.submit(lambda rows: activity.increment_counters(rows, list(redacted.items())))
            return None
        # Looking up a directory's project may touch a slow disk, so it runs as a read: neither this thread nor the
        # writer waits.
        placing = None
        if event.text:
            placing = store.submit_read(lambda rows: ingest.find_event_project(rows, event), lane="hook")
        # The answers to these events do not depend on the event itself, so they are composed while it is written.
        composing = self._compose(exchange, event) if event.name in ("prompt", "tool_failure") else None
        project = (yield placing) if placing is not None else None
        key, room = store.hash_key, self.background.context.config.settings.capture_session_bytes
        record = partial(ingest.record_event, redacted=redacted, key=key, place=project, max_session_bytes=room)
        is_new = yield store.submit(lambda rows: record(rows, event, now=now_iso()))
        exchange.stored = True
        if is_new and event.name == "session_start":
            self.background.context.starts.add(event)
        body = b""
        if is_new:
            try:
                # A start, a clearing or a compaction changes the session's receipts, so its answer is composed after
                # the commit.
                body = yield from self._inject(exchange, event, composing or self._compose(exchange, event))
            except DeadlineExceeded:
                self.background.context.lookups.log_late(event)
            except Exception as error:  # noqa: BLE001 - the event is stored, and its hook must know
                log.warning("answered without an injection: %s", type(error).__name__)
        self._waiting.answer(exchange, Reply(status="ok", body=body))
        return event

    def _decode(self, request: Request) -> Generator[Future[Any], Any, Decoded | BadInput]:
        """Decodes an event's payload; on a reader's thread if that takes long or reads the disk."""
        at, excludes = now_iso(), self.background.context.excludes

        def decode(_: Rows | None = None) -> Decoded | BadInput:
            host, body = request.host, request.body
            return ingest.decode_permitted(host, body, excludes, name=request.name, event_id=request.id, at=at)

        # Exclusions are looked up on the disk, except in a pause.
        is_asking = excludes.reads_disk and not excludes.pauses().covers(at)
        if len(request.body) > MAX_INLINE_BYTES or is_asking:
            lane: Lane = "main" if len(request.body) > MAX_INLINE_BYTES else "hook"
            decoded: Decoded | BadInput = yield self.store.submit_read(decode, lane=lane)
            return decoded
        return decode()

    def _quarantine(self, rows: Rows, request: Request, reason: str) -> None:
        """Notes and counts a malformed event; on the writer, because the note is a file that is flushed to the disk."""
        files.quarantine(
            self.background.context.config.paths.quarantine, source=f"hook {request.name}", reason=reason,
            data=request.body, now=now_iso(),
        )  # fmt: skip
        activity.increment_counters(rows, [(ingest.BAD_EVENTS, 1)])

    def _compose(self, exchange: Exchange, event: Event) -> Future[Injection] | None:
        """Starts composing the injection for an event's answer; None if it has none."""
        context, left_s = self.background.context, exchange.until - time.monotonic() - SEND_MARGIN_S - RECEIPT_S
        if not EVENTS[event.name].can_inject or not context.config.settings.stages_inject:
            return None
        if event.name == "prompt" and not event.by_user:
            return None
        if left_s <= 0:
            failed: Future[Injection] = Future()
            failed.set_exception(DeadlineExceeded(LATE_ERROR))
            return failed
        compose = partial(injection.compose_injection, context=context, event=event, left_s=left_s)
        return self.store.submit_read(compose, lane="hook", deadline_s=left_s)

    def _inject(self, exchange: Exchange, event: Event, composing: Future[Injection] | None) -> Steps:
        """Commits the receipt of an injection and returns the answer, b"" for none; DeadlineExceeded once the hook has
        left."""
        if composing is None:
            return b""
        injected: Injection = yield composing
        if event.name == "session_start":
            self.background.expect_prompt(injected.project)
        body = ADAPTERS[event.host].hooks.encode_answer(event.name, injected.text, injected.notice)

        def is_late() -> bool:
            return time.monotonic() > exchange.until - SEND_MARGIN_S

        def write_receipts(rows: Rows) -> None:
            if is_late():  # it waited behind other writes; raising rolls the transaction back
                raise DeadlineExceeded(LATE_ERROR)
            injection.write_receipts(rows, injected, key=self.store.hash_key)

        if is_late():
            raise DeadlineExceeded(LATE_ERROR)
        if body:
            yield self.store.submit(write_receipts)
            if is_late():
                # The commit took too long: with the receipt the session would not be given this later.
                yield self.store.submit(lambda rows: injection.delete_receipts(rows, event))
                raise DeadlineExceeded(LATE_ERROR)
        if injected.settles_start:
            self.background.context.starts.mark_answered(event.session_id, by=event.id)
        return body

    def _follow_up(self, event: Event) -> None:
        """Schedules the background work that an event calls for."""
        self.background.context.hint_from_hook(event.transcript_path, event.host)
        if EVENTS[event.name].can_inject and event.failure is None:
            self.background.instructions.visit(event.cwd)
            # For later prompts; on a thread of its own, because starting the worker takes a while.
            if self._warming is None or not self._warming.is_alive():
                self._warming = threading.Thread(target=self.embedder.warm, name="csmd-warm")
                self._warming.start()

    def _call(self, exchange: Exchange) -> Steps:
        """Answers a tool's call in short steps, between which other requests are served."""
        request, lookups = exchange.request, self.background.context.lookups
        params = wire.loads(request.body or b"{}")
        if not isinstance(params, dict):
            raise BadInput("a call's parameters are not a JSON object")
        lane = find_tool(request.name).lane
        if lane is None:
            answer = run_to_end(call_tool(self.tools, lookups, None, request.name, params))
            return _encode_json(withhold(answer) if self.background.context.withholds else answer)
        steps: Generator[None, None, Any] | None = None

        def continue_call(rows: Rows) -> Finished[Any] | None:
            nonlocal steps
            steps = steps or call_tool(self.tools, lookups, rows, request.name, params)
            return run_briefly(steps)

        ended: Finished[Any] | None = None
        while ended is None:
            # A search that takes longer than its caller waits is interrupted.
            left_s = exchange.until - time.monotonic()
            ended = yield self.store.submit_read(continue_call, lane=lane, deadline_s=left_s)
        value = ended.value
        if self.background.context.withholds:  # on the reader's thread: an export takes seconds
            value = yield self.store.submit_read(lambda _: withhold(value), lane=lane)
        return _encode_json(value)

    def _send(self, identity: bytes, reply: Reply) -> None:
        if 0 < len(reply.body) <= MAX_INLINE_ANSWER_BYTES and self.background.context.withholds:
            reply = replace(reply, body=_withhold_body(reply.body))
        if self._router is not None:
            try:
                self._router.send_multipart([identity, *wire.encode_reply(reply)], zmq.NOBLOCK)
            except zmq.ZMQError as error:
                log.warning("a peer went away before its answer: error %d", error.errno)


def _withhold_body(body: bytes) -> bytes:
    """Returns an answer, redacted by the present rules."""
    try:
        return wire.dumps(withhold(wire.loads(body))).encode()
    except BadInput:  # plain text
        return str(withhold(body.decode("utf-8", "replace"))).encode()


def call_tool(
    ctx: ToolContext, lookups: LookupLog, rows: Rows | None, name: str, params: Mapping[str, Any]
) -> Generator[None, None, Any]:
    """Runs a tool in steps, each with a transaction of its own, and logs lookups."""
    tool, began = find_tool(name), time.monotonic()
    checked = tool.check(params)
    result = yield from tool.answer(ctx, rows, checked)
    lookups.log_call(name, checked, result, time.monotonic() - began)
    return result


def _describe(request: Request) -> str:
    """Returns the request in csmd's words, because a peer can send anything as a name."""
    return request.name if request.name in TOOLS else "an event" if request.verb == "event" else "a call"


def _encode_error(error: CsmdError) -> bytes:
    return _encode_json({"error": error.what, "hint": error.hint})


def _encode_json(value: Any) -> bytes:
    """Returns JSON that can be encoded, even if a path or an argument holds lone surrogates."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
