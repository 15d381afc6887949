"""Turns texts into vectors by a worker process that runs the model."""

from __future__ import annotations

import contextlib
import os
import select
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import csmd
from csmd.config import SILENT
from csmd.embedding import worker as worker_side
from csmd.embedding.installed_models import is_endpoint
from csmd.errors import BadInput, EmbeddingUnavailable
from csmd.text.token_weights import weigh_tokens

#: Texts of one request for each core: more are not faster, take more memory, and delay a hook's query.
REQUEST_TEXTS = 4
#: Characters of one request for each core, for the same reasons.
REQUEST_CHARS = 1_000
#: A caller with less time than this waits neither for the model to load nor for an earlier caller's answer.
MIN_WAIT_S = 1.0
#: Seconds for an answer after which a worker is ended.
STUCK_S = 120.0
#: Crashes in a row after which the worker is not started again.
MAX_CRASHES = 3
#: Seconds that close() waits for the worker to end by itself.
END_S = 2.0
INSTALL_HINT = "run `csmd model fetch`; offline: `csmd model add DIR`"


class _Worker:
    """One worker process and the two pipes to it; not thread-safe.

    Waiting methods raise TimeoutError at `until` (monotonic seconds), EOFError if the worker has ended and
    BadInput if it sends something malformed.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        pipe = subprocess.PIPE
        nothing = subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing, bufsize=0, env=environment)
        assert self.process.stdin is not None and self.process.stdout is not None
        self._requests = self.process.stdin
        self._replies = self.process.stdout
        os.set_blocking(self._requests.fileno(), False)
        os.set_blocking(self._replies.fileno(), False)
        self._received = bytearray()
        self.dim = 0
        self.failure = ""
        self.pending_replies = 1  # the ready frame
        self.pending_since = time.monotonic()

    def receive_pending(self, until: float) -> None:
        """Reads the frames that are still due: the ready frame, and answers that no caller waits for."""
        while self.pending_replies:
            kind, body = self._receive(until)
            self.pending_replies -= 1
            if kind == worker_side.READY:
                self.dim = int.from_bytes(body, "big")
            elif kind == worker_side.FAILED and not self.dim:
                self.failure = body.decode("utf-8", "replace")

    def ask(self, kind: bytes, body: bytes, until: float) -> tuple[bytes, bytes]:
        """Sends a request and returns the kind and body of the reply; call receive_pending() first."""
        rest = memoryview(worker_side.frame(kind, body))
        self.pending_replies = 1
        self.pending_since = time.monotonic()
        while rest:
            try:
                self._wait(self._requests.fileno(), select.POLLOUT, until)
                rest = rest[os.write(self._requests.fileno(), rest) :]
            except BrokenPipeError as error:
                raise EOFError from error
            except TimeoutError as error:
                # A part of the frame was sent, so the worker cannot be used any more.
                raise BadInput("the embedding worker does not read its requests") from error
        reply = self._receive(until)
        self.pending_replies = 0
        return reply

    def end(self, grace_s: float) -> int:
        """Ends and reaps the process; returns its exit code, negative for a signal."""
        self._requests.close()
        try:
            self.process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._replies.close()
        return self.process.returncode

    def _receive(self, until: float) -> tuple[bytes, bytes]:
        size = worker_side.HEAD.size
        while True:
            if len(self._received) >= size:
                kind, length = worker_side.HEAD.unpack_from(self._received)
                if length > worker_side.MAX_FRAME_BYTES or kind not in worker_side.REPLY_KINDS:
                    raise BadInput("the embedding worker sent something that is not a frame")
                if len(self._received) >= size + length:
                    body = bytes(self._received[size : size + length])
                    del self._received[: size + length]
                    return kind, body
            self._wait(self._replies.fileno(), select.POLLIN, until)
            part = os.read(self._replies.fileno(), 1 << 20)
            if not part:
                raise EOFError
            self._received += part

    @staticmethod
    def _wait(descriptor: int, event: int, until: float) -> None:
        poll = select.poll()
        poll.register(descriptor, event)
        if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
            raise TimeoutError


class Embedder:
    """Turns texts into int8 vectors by the model in `model_dir` (None: none is installed); safe to use from any thread.

    `endpoint_command` gives the command and the environment of a worker whose model is an endpoint's. `environment` is
    that of every other worker, `idle_s` the seconds without work after which it ends; the next use starts it again.
    Requests take turns in the order of their callers.
    """

    def __init__(
        self, model_dir: Path | None, *, idle_s: float, python: str = sys.executable, environment: Mapping[str, str],
        endpoint_command: Callable[[Path], tuple[list[str], dict[str, str]]] | None = None,
    ) -> None:  # fmt: skip
        self._model_dir = model_dir
        self._python = python
        self._idle_s = idle_s
        package = str(Path(csmd.__file__).parent.parent)  # the worker must have our version, wherever we run from
        self._environment = {**environment, **SILENT, "PYTHONPATH": package, "HF_HUB_OFFLINE": "1"}
        self._endpoint_command = endpoint_command
        self._sent_tokens = 0
        # A caller holds `_queue` while it waits for `_busy`: a background loop cannot take its next turn before it.
        self._queue = threading.Lock()
        self._busy = threading.Lock()
        self._worker: _Worker | None = None
        self._crashes = 0
        self._failure = ""
        self._closed = False

    def embed(
        self, texts: Sequence[str], *, deadline_s: float | None, start: bool = True, on_two_cores: bool = False
    ) -> list[bytes]:
        """Returns one vector for each of `texts`, in order: normalised, times 127/0.25, clipped; `dim` signed bytes.

        `deadline_s` counts from now (None: only a stuck worker is an error). With `start` False a worker that does not
        run is not started. Works in requests of at most REQUEST_TEXTS texts and REQUEST_CHARS characters for each core,
        between which other callers have their turn; a background caller that must not lose work at a deadline passes
        few texts at a time (8, say). Raises EmbeddingUnavailable; its `what` says whether no model is installed, the
        worker does not run, is busy or died, or the deadline passed.
        """
        until = time.monotonic() + (STUCK_S if deadline_s is None else deadline_s)
        cut = [text[: worker_side.TEXT_CHARS] for text in texts]
        vectors = [b""] * len(cut)
        lengths = [len(text) for text in cut]
        kind, cores = (worker_side.EMBED_BOTH, worker_side.MAX_PASSES) if on_two_cores else (worker_side.EMBED, 1)
        for group in worker_side.batches(lengths, texts=REQUEST_TEXTS * cores, chars=REQUEST_CHARS * cores):
            if deadline_s is None:
                until = time.monotonic() + STUCK_S
            body = worker_side.pack_texts([cut[index] for index in group])
            reply, dim = self._request(kind, body, until=until, start=start)
            if len(reply) != dim * len(group):
                raise EmbeddingUnavailable("the embedding worker answered with vectors of a wrong size")
            for number, index in enumerate(group):
                vectors[index] = reply[number * dim : (number + 1) * dim]
        if self._model_dir is not None and is_endpoint(self._model_dir):
            self._sent_tokens += sum(map(weigh_tokens, cut))
        return vectors

    def take_sent_tokens(self) -> int:
        """Returns the estimated tokens that were sent to an endpoint since the last call."""
        sent, self._sent_tokens = self._sent_tokens, 0
        return sent

    def count_tokens(self, texts: Sequence[str], *, deadline_s: float = MIN_WAIT_S) -> list[int] | None:
        """Returns the tokens of each text as cl100k counts them; None if the worker is not ready or cannot count."""
        body = worker_side.pack_texts(texts)
        if not self.ready or len(body) > worker_side.MAX_FRAME_BYTES:
            return None
        try:
            reply, _ = self._request(worker_side.COUNT, body, until=time.monotonic() + deadline_s, start=False)
        except EmbeddingUnavailable:
            return None
        counts = list(struct.unpack(f">{len(reply) // 4}i", reply))
        return counts if len(counts) == len(texts) and -1 not in counts else None

    def warm(self) -> None:
        """Starts the worker unless it runs, without waiting for it; if it fails, the next embed() raises the error."""
        if self._busy.acquire(blocking=False):
            try:
                with contextlib.suppress(EmbeddingUnavailable):
                    self._ensure_worker(start=True)
            finally:
                self._busy.release()

    @property
    def ready(self) -> bool:
        """Whether the worker runs and has loaded its model."""
        return self.dim is not None

    @property
    def pid(self) -> int | None:
        """The worker's process id, None if none runs; reaps one that has ended."""
        worker = self._poll_worker()
        return worker.process.pid if worker else None

    @property
    def dim(self) -> int | None:
        """The dimension of the vectors; None until the worker is ready."""
        worker = self._poll_worker()
        return worker.dim or None if worker else None

    def switch_model(self, model_dir: Path) -> None:
        """Switches to another model: the running worker ends, and its crashes are forgotten."""
        with self._turn(time.monotonic() + STUCK_S):
            self._end_worker(END_S)
            self._model_dir = model_dir
            self._crashes = 0

    def close(self) -> None:
        """Ends the worker and reaps it; later calls raise EmbeddingUnavailable."""
        self._closed = True
        worker = self._worker
        try:
            with self._turn(time.monotonic() + END_S):
                self._end_worker(END_S)
        except EmbeddingUnavailable:
            if worker is not None:  # a request is running, which the end of the worker ends
                worker.process.kill()
            with self._busy:
                self._end_worker(0)

    # --- under the lock

    @contextlib.contextmanager
    def _turn(self, until: float) -> Iterator[None]:
        def acquire(lock: threading.Lock) -> bool:
            return lock.acquire(timeout=max(0.0, until - time.monotonic()))

        taken = False
        if acquire(self._queue):
            taken = acquire(self._busy)
            self._queue.release()
        if not taken:
            raise EmbeddingUnavailable("the embedding worker was busy until the deadline")
        try:
            yield
        finally:
            self._busy.release()

    def _end_worker(self, grace_s: float) -> None:
        if self._worker is not None:
            self._worker.end(grace_s)
            self._worker = None

    def _request(self, kind: bytes, body: bytes, *, until: float, start: bool) -> tuple[bytes, int]:
        can_wait = until - time.monotonic() >= MIN_WAIT_S
        with self._turn(until):
            while True:
                worker = self._ensure_worker(start)
                try:
                    worker.receive_pending(until if can_wait else 0.0)
                    answer, reply = worker.ask(kind, body, until)
                    break
                except TimeoutError:
                    self._raise_timeout(worker)
                except EOFError:
                    if self._reap(worker) != 0:
                        raise self._unavailable("the embedding worker died") from None
                    # It had just ended after its idle time: a new worker answers.
                except BadInput as error:
                    worker.process.kill()
                    self._reap(worker)
                    raise EmbeddingUnavailable(error.what) from error
            self._crashes = 0
            if answer == worker_side.FAILED:
                raise EmbeddingUnavailable(f"the embedding worker failed: {reply.decode('utf-8', 'replace')}")
            return reply, worker.dim

    def _ensure_worker(self, start: bool) -> _Worker:
        if self._closed:
            raise EmbeddingUnavailable("the embedder is closed")
        if self._model_dir is None:
            raise EmbeddingUnavailable("no embedding model is installed", hint=INSTALL_HINT)
        if self._worker is not None and self._worker.process.poll() is not None:
            self._reap(self._worker)
        if self._worker is None:
            if self._crashes >= MAX_CRASHES:
                raise self._unavailable(
                    f"the embedding worker failed {MAX_CRASHES} times in a row and is not restarted"
                )
            if not start:
                raise EmbeddingUnavailable("the embedding worker is not running")
            try:
                self._worker = _Worker(*self._process(self._model_dir))
            except OSError as error:
                self._crashes += 1
                self._failure = str(error)
                raise self._unavailable("the embedding worker could not be started") from error
        return self._worker

    def _process(self, model_dir: Path) -> tuple[Sequence[str], Mapping[str, str]]:
        """Returns the command and the environment of the worker."""
        if self._endpoint_command is not None and is_endpoint(model_dir):
            return self._endpoint_command(model_dir)
        command = [self._python, "-P", "-m", "csmd.embedding.worker", str(model_dir), "--idle-s", str(self._idle_s)]
        return command, self._environment

    def _raise_timeout(self, worker: _Worker) -> None:
        if time.monotonic() - worker.pending_since >= STUCK_S:
            worker.process.kill()
            self._reap(worker)
            raise EmbeddingUnavailable(f"the embedding worker was stuck for {STUCK_S:.0f} s and was ended")
        doing = "answer before the deadline" if worker.dim else "finish loading its model before the deadline"
        raise EmbeddingUnavailable(f"the embedding worker did not {doing}")

    def _reap(self, worker: _Worker) -> int:
        """Reaps an ended worker, notes why it crashed if it did, and returns its exit code."""
        with contextlib.suppress(EOFError, TimeoutError, BadInput):
            worker.receive_pending(0.0)  # an error that it sent before it ended
        code = worker.end(END_S)
        self._worker = None
        if code:
            self._crashes += 1
            self._failure = worker.failure or (f"signal {-code}" if code < 0 else f"exit code {code}")
        return code

    def _poll_worker(self) -> _Worker | None:
        """Returns the running worker; reads its pending frames, or reaps it, unless a request is running."""
        worker = self._worker
        if worker is not None and self._busy.acquire(blocking=False):
            try:
                worker.receive_pending(0.0)
                if worker.process.poll() is not None:
                    self._reap(worker)
            except TimeoutError:
                pass  # it is still loading its model
            except EOFError:
                self._reap(worker)
            except BadInput:
                worker.process.kill()
                self._reap(worker)
            finally:
                self._busy.release()
        return self._worker

    def _unavailable(self, what: str) -> EmbeddingUnavailable:
        return EmbeddingUnavailable(f"{what} ({self._failure})" if self._failure else what, hint=INSTALL_HINT)
