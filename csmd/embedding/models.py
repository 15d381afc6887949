"""Installed embedding models, and the worker process that runs one."""

from __future__ import annotations

import contextlib
import hashlib
import os
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import csmd
from csmd import wire
from csmd.config import SILENT
from csmd.embedding import worker as worker_side
from csmd.embedding.worker import MODEL_FILES, put_in_place
from csmd.errors import BadInput, ConfigError, EmbeddingUnavailable
from csmd.paths import model_folder
from csmd.text.token_weights import weigh_tokens

IDENTITY_FILE = "csmd-model.txt"
#: In a model's folder instead of MODEL_FILES: the endpoint that makes its vectors, and their dimension.
ENDPOINT_FILE = "endpoint.json"
#: Next to the models' folders: the name of the model that was chosen instead of the configuration's.
CHOSEN_FILE = "chosen"


def check_model_dir(folder: Path) -> None:
    """Raises ConfigError naming the missing files unless `folder` holds all of MODEL_FILES."""
    missing = [name for name in MODEL_FILES if not (folder / name).is_file()]
    if missing:
        hint = f"name a folder that holds {', '.join(MODEL_FILES)}"
        raise ConfigError(f"{folder}: no {', '.join(missing)}", hint=hint)


def installed_model(models: Path, name: str) -> Path | None:
    """Returns the folder of the chosen model, else of `name`; None if it is missing or incomplete."""
    for candidate in (chosen_model(models), name):
        folder = models / _folder_name(candidate) if candidate else None
        if folder is not None and (is_endpoint(folder) or all((folder / file).is_file() for file in MODEL_FILES)):
            return folder
    return None


def is_endpoint(folder: Path) -> bool:
    """Whether an endpoint makes the vectors of this model."""
    return (folder / ENDPOINT_FILE).is_file()


def write_endpoint(models: Path, name: str, endpoint: Mapping[str, Any]) -> None:
    """Creates or updates the folder of a model whose vectors (`dim` numbers each) an endpoint makes."""
    folder = models / _folder_name(name)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = folder / f".{ENDPOINT_FILE}"
    part.write_text(wire.dumps(endpoint), encoding="utf-8")
    part.chmod(0o600)
    part.replace(folder / ENDPOINT_FILE)


def read_endpoint(folder: Path) -> dict[str, Any]:
    """Returns the endpoint that `write_endpoint` wrote."""
    return dict(wire.loads((folder / ENDPOINT_FILE).read_bytes()))


def move_endpoints(models: Path, provider: str, **changed: str) -> None:
    """Changes the address or the key for the models whose vectors this provider makes."""
    for file in models.glob(f"{provider}__*/{ENDPOINT_FILE}"):
        write_endpoint(models, file.parent.name.replace("__", "/"), read_endpoint(file.parent) | changed)


def remove_endpoints(models: Path, provider: str) -> None:
    """Removes the models whose vectors this provider makes: nothing more is sent to it."""
    for file in models.glob(f"{provider}__*/{ENDPOINT_FILE}"):
        shutil.rmtree(file.parent)


def chosen_model(models: Path) -> str:
    """Returns the name of the model that was chosen instead of the configuration's; "" if none was."""
    try:
        return (models / CHOSEN_FILE).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def choose_model(models: Path, name: str) -> None:
    """Chooses the model `name` instead of the configuration's; "" chooses that one again."""
    if not name:
        (models / CHOSEN_FILE).unlink(missing_ok=True)
        return
    _folder_name(name)
    part = models / f".{CHOSEN_FILE}"
    part.write_text(f"{name}\n", encoding="utf-8")
    part.chmod(0o600)
    part.replace(models / CHOSEN_FILE)


def add_model(source: Path, models: Path, *, name: str) -> Path:
    """Copies the model in `source` to its folder in `models`, replacing an older one, and returns the folder.

    It is readable by the user alone, and complete or not there. ConfigError if `source` is not a model's folder.
    """
    check_model_dir(source)
    models.mkdir(parents=True, exist_ok=True, mode=0o700)
    dest = models / _folder_name(name)
    with tempfile.TemporaryDirectory(prefix=".add-", dir=models) as scratch:
        staged = Path(scratch) / dest.name
        staged.mkdir(mode=0o700)
        for file in MODEL_FILES:
            with (source / file).open("rb") as old, (staged / file).open("xb") as new:
                shutil.copyfileobj(old, new, 1 << 20)
                os.fchmod(new.fileno(), 0o600)
                os.fsync(new.fileno())
        model_identity(staged)
        put_in_place(staged, dest)
    return dest


def model_identity(folder: Path) -> str:
    """Returns `name@12 hex` of a model: its name and the SHA-256 of model.onnx; every vector is stored with it.

    Cached in IDENTITY_FILE with the size and time of the model.onnx.
    """
    if is_endpoint(folder):
        return f"{folder.name.replace('__', '/')}@endpoint-{read_endpoint(folder)['dim']}"
    identity_path = folder / IDENTITY_FILE
    model = folder / "model.onnx"
    state = model.stat()
    stamp = f"{state.st_size} {state.st_mtime_ns}"
    with contextlib.suppress(OSError, ValueError):
        identity, of = identity_path.read_text(encoding="utf-8").split("\n")[:2]
        if of == stamp:
            return identity
    with model.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    identity = f"{folder.name.replace('__', '/')}@{digest[:12]}"
    with contextlib.suppress(OSError):  # a folder that cannot be written only costs time
        identity_path.write_text(f"{identity}\n{stamp}\n", encoding="utf-8")
        identity_path.chmod(0o600)
    return identity


def _folder_name(name: str) -> str:
    folder = model_folder(name)
    if not folder or folder.startswith(".") or "\0" in folder:
        hint = "write e.g. sentence-transformers/all-MiniLM-L6-v2"
        raise ConfigError(f"{name!r} cannot be the name of a model", hint=hint)
    return folder


#: Bounds of one request, for each core: larger ones are not faster, take more memory, and delay a hook's query.
REQUEST_TEXTS = 4
REQUEST_CHARS = 1_000
#: A caller with less time than this waits neither for the model to load nor for an earlier caller's answer.
PATIENT_S = 1.0
#: Seconds for an answer after which a worker is ended.
STUCK_S = 120.0
MAX_CRASHES = 3
#: Seconds that close() waits for the worker to end by itself.
END_S = 2.0
INSTALL_HINT = "`csmd model fetch` installs one; without the hub `csmd model add`"


class _Worker:
    """One worker process and the two pipes to it; not thread-safe.

    Waiting methods raise TimeoutError at `until` (monotonic seconds), EOFError if the worker has ended and
    BadInput if it sends something malformed.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing, bufsize=0, env=environment)
        assert self.process.stdin is not None and self.process.stdout is not None
        self._to, self._from = self.process.stdin, self.process.stdout
        os.set_blocking(self._to.fileno(), False)
        os.set_blocking(self._from.fileno(), False)
        self._received = bytearray()
        self.dim = 0
        self.failure = ""
        self.owed = 1  # the ready frame
        self.owed_since = time.monotonic()

    def receive_pending(self, until: float) -> None:
        """Reads the frames that are still due: the ready frame, and answers that no caller waits for."""
        while self.owed:
            kind, body = self._receive(until)
            self.owed -= 1
            if kind == worker_side.READY:
                self.dim = int.from_bytes(body, "big")
            elif kind == worker_side.FAILED and not self.dim:
                self.failure = body.decode("utf-8", "replace")

    def ask(self, kind: bytes, body: bytes, until: float) -> tuple[bytes, bytes]:
        """Sends a request and returns the kind and body of the reply; call receive_pending() first."""
        rest = memoryview(worker_side.frame(kind, body))
        self.owed, self.owed_since = 1, time.monotonic()
        while rest:
            try:
                self._wait(self._to.fileno(), select.POLLOUT, until)
                rest = rest[os.write(self._to.fileno(), rest) :]
            except BrokenPipeError as error:
                raise EOFError from error
            except TimeoutError as error:
                # A part of the frame was sent, so the worker cannot be used any more.
                raise BadInput("the embedding worker does not read its requests") from error
        reply = self._receive(until)
        self.owed = 0
        return reply

    def end(self, grace_s: float) -> int:
        """Ends and reaps the process; returns its exit code, negative for a signal."""
        self._to.close()
        try:
            self.process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._from.close()
        return self.process.returncode

    def _receive(self, until: float) -> tuple[bytes, bytes]:
        size = worker_side.HEAD.size
        while True:
            if len(self._received) >= size:
                kind, length = worker_side.HEAD.unpack_from(self._received)
                if length > worker_side.MAX_FRAME_BYTES or kind not in b"RVNF":
                    raise BadInput("the embedding worker sent something that is not a frame")
                if len(self._received) >= size + length:
                    body = bytes(self._received[size : size + length])
                    del self._received[: size + length]
                    return kind, body
            self._wait(self._from.fileno(), select.POLLIN, until)
            part = os.read(self._from.fileno(), 1 << 20)
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
        self._command = [python, "-P", "-m", "csmd.embedding.worker", str(model_dir), "--idle-s", str(idle_s)]
        package = str(Path(csmd.__file__).parent.parent)  # the worker must have our version, wherever we run from
        self._environment = {**environment, **SILENT, "PYTHONPATH": package, "HF_HUB_OFFLINE": "1"}
        self._endpoint_command = endpoint_command
        self._sent = 0
        # A caller holds `_queue` while it waits for `_busy`: a background loop cannot take its next turn before it.
        self._queue, self._busy = threading.Lock(), threading.Lock()
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
            for place, index in enumerate(group):
                vectors[index] = reply[place * dim : (place + 1) * dim]
        if self._model_dir is not None and is_endpoint(self._model_dir):
            self._sent += sum(map(weigh_tokens, cut))
        return vectors

    def take_sent(self) -> int:
        """Returns the estimated tokens that were sent to an endpoint since the last call."""
        sent, self._sent = self._sent, 0
        return sent

    def count_tokens(self, texts: Sequence[str], *, deadline_s: float = PATIENT_S) -> list[int] | None:
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
        worker = self._look()
        return worker is not None and worker.dim > 0

    @property
    def pid(self) -> int | None:
        """The worker's process id, None if none runs; reaps one that has ended."""
        worker = self._look()
        return worker.process.pid if worker is not None else None

    @property
    def dim(self) -> int | None:
        """The dimension of the vectors; None until the worker is ready."""
        worker = self._look()
        return (worker.dim or None) if worker is not None else None

    def use(self, model_dir: Path) -> None:
        """Switches to another model: the running worker ends, and its crashes are forgotten."""
        with self._turn(time.monotonic() + STUCK_S):
            self._end_worker(END_S)
            self._model_dir = model_dir
            self._command[4] = str(model_dir)
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

    # --- under the lock ---

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
        patient = until - time.monotonic() >= PATIENT_S
        with self._turn(until):
            while True:
                worker = self._ensure_worker(start)
                try:
                    worker.receive_pending(until if patient else 0.0)
                    answer, reply = worker.ask(kind, body, until)
                    break
                except TimeoutError:
                    self._raise_timeout(worker)
                except EOFError:
                    if self._bury(worker) != 0:
                        raise self._unavailable("the embedding worker died") from None
                    # It had just ended after its idle time: a new worker answers.
                except BadInput as error:
                    worker.process.kill()
                    self._bury(worker)
                    raise EmbeddingUnavailable(error.what) from error
            self._crashes = 0
            if answer == worker_side.FAILED:
                raise EmbeddingUnavailable(f"the embedding worker could not do it: {reply.decode('utf-8', 'replace')}")
            return reply, worker.dim

    def _ensure_worker(self, start: bool) -> _Worker:
        if self._closed:
            raise EmbeddingUnavailable("the embedder is closed")
        if self._model_dir is None:
            raise EmbeddingUnavailable("no embedding model is installed", hint=INSTALL_HINT)
        if self._worker is not None and self._worker.process.poll() is not None:
            self._bury(self._worker)
        if self._worker is None:
            if self._crashes >= MAX_CRASHES:
                raise self._unavailable(f"the embedding worker failed {MAX_CRASHES} times in a row and is given up")
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
        """Returns the command of the worker, and its environment."""
        if self._endpoint_command is not None and is_endpoint(model_dir):
            return self._endpoint_command(model_dir)
        return self._command, self._environment

    def _raise_timeout(self, worker: _Worker) -> None:
        if time.monotonic() - worker.owed_since >= STUCK_S:
            worker.process.kill()
            self._bury(worker)
            raise EmbeddingUnavailable(f"the embedding worker was stuck for {STUCK_S:.0f} s and was ended")
        doing = "answer before the deadline" if worker.dim else "finish loading its model before the deadline"
        raise EmbeddingUnavailable(f"the embedding worker did not {doing}")

    def _bury(self, worker: _Worker) -> int:
        """Reaps an ended worker, notes why it crashed if it did, and returns its exit code."""
        with contextlib.suppress(EOFError, TimeoutError, BadInput):
            worker.receive_pending(0.0)  # an error that it sent before it ended
        code = worker.end(END_S)
        self._worker = None
        if code:
            self._crashes += 1
            self._failure = worker.failure or (f"signal {-code}" if code < 0 else f"exit code {code}")
        return code

    def _look(self) -> _Worker | None:
        """Returns the worker after reading its pending frames, or reaping it; during a request it is not touched."""
        if self._busy.acquire(blocking=False):
            try:
                worker = self._worker
                if worker is not None and self._has_ended(worker):
                    self._bury(worker)
            finally:
                self._busy.release()
        return self._worker

    @staticmethod
    def _has_ended(worker: _Worker) -> bool:
        try:
            worker.receive_pending(0.0)
        except TimeoutError:
            return False
        except EOFError:
            return True
        except BadInput:
            worker.process.kill()
            return True
        return worker.process.poll() is not None

    def _unavailable(self, what: str) -> EmbeddingUnavailable:
        return EmbeddingUnavailable(f"{what} ({self._failure})" if self._failure else what, hint=INSTALL_HINT)
