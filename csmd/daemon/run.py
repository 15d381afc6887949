"""Builds the daemon's parts in order, runs them and ends them."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import secrets
import select
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import filelock

import csmd
from csmd import wire
from csmd.config import Config, boot_id, child_environment, default_paths, load, started_by, take_notify_socket
from csmd.daemon import dreaming, logs, stages, tasks
from csmd.daemon.context import now_iso
from csmd.daemon.jobs import Background
from csmd.daemon.server import Server
from csmd.daemon.state import status
from csmd.daemon.watch import Watch
from csmd.embedding import supervisor
from csmd.errors import AlreadyRunning, ConfigError, CsmdError, Damaged, Refused
from csmd.machine import Meter, start_token
from csmd.paths import Paths, mark_of
from csmd.privacy.redaction import choose_words, redact
from csmd.store import files
from csmd.store.core import Store

#: What a disk says that is full, broken or not to be written: no fault of ours.
DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)


def configuration() -> Config:
    """The configuration in force, with the assistant's directories that `csmd install` recorded."""
    paths = default_paths()
    record = files.read_json(paths.install_record) or {}
    recorded = record.get("assistant_dirs")
    extra = tuple(Path(str(folder)) for folder in recorded) if isinstance(recorded, list) else ()
    return load(paths=paths, extra_dirs=extra)


def explaining(work: Callable[[], None], *, also: Path | None = None) -> int:
    """Does what a process is for; the exit code. What stops it is said on stderr, and to the file `also`.

    A service manager has our stderr for itself: there `csmd start` finds in that file why the daemon ended.
    """
    try:
        work()
    except CsmdError as error:
        _say(redact(error.what, Counter()), error.hint, also)
        return error.exit_code
    except OSError as error:
        if error.errno not in DISK:
            raise
        place = error.filename or "the home"
        _say(
            f"{place}: {error.strerror}",
            "free some space, or make that directory writable; hooks spool meanwhile",
            also,
        )
        return 1
    return 0


def _say(what: str, hint: str, also: Path | None) -> None:
    said = f"csmd: {what}\n" + (f"  try: {hint}\n" if hint else "")
    sys.stderr.write(said)
    if also is not None:
        with suppress(OSError, CsmdError):  # that no file can be written is often what is told
            files.write_atomic(also, said.encode("utf-8", "replace"))


#: A write that takes longer than this is no write any more.
WRITER_PATIENCE_S = 600.0
#: Of the manager's patience: how often it is told, and how long the socket's thread may take to answer.
TELL, ANSWER = 1 / 4, 1 / 2


@dataclass(frozen=True, slots=True)
class Notify:
    """The manager's socket (a path, or @ and an abstract name); "" for none."""

    address: str

    def tell(self, *state: str) -> None:
        """Sends assignments as sd_notify(3) has them; a manager that is gone hears nothing, and that harms nobody."""
        if not self.address:
            return
        place = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.settimeout(1.0)
            out.connect(place)
            out.send("\n".join(state).encode("utf-8", "replace"))


@dataclass(slots=True)
class Part:
    """Something that must not stand still: `ask` has it call back, `patience_s` is how long that may take."""

    ask: Callable[[Callable[[], None]], None]
    patience_s: float
    asked_at: float | None = None
    """When the question that is still open was put; monotonic."""

    def _answered(self) -> None:
        self.asked_at = None

    def stands_still(self, now: float) -> bool:
        """Whether the open question is older than it may be; where none is open, one is put."""
        if self.asked_at is None:
            self.asked_at = now
            self.ask(self._answered)
        # It may have answered at once, on this thread or its own.
        since = self.asked_at
        return since is not None and now - since > self.patience_s


def ask_writer(store: Store, answered: Callable[[], None]) -> None:
    """Has the store's writer call back when it comes by; one that refuses for damage is as it should be."""
    try:
        store.submit(lambda _: None).add_done_callback(lambda _: answered())
    except Damaged:
        answered()
    except Refused:
        return  # its queue is full: asked already, and not answered


class Watchdog(threading.Thread):
    """Owns the thread that tells the manager every few seconds that csmd is alive, as long as every part is."""

    def __init__(self, notify: Notify, patience_s: float, parts: Mapping[str, Part]) -> None:
        super().__init__(name="csmd-watchdog")
        self._notify = notify
        self._every_s = patience_s * TELL
        self._parts = parts
        self._stopping = threading.Event()

    def run(self) -> None:
        while not self._stopping.is_set():
            self.step(time.monotonic())
            self._stopping.wait(self._every_s)

    def step(self, now: float) -> str:
        """Tells the manager what is so at the monotonic time `now`; the parts that stand still, by name."""
        stuck = ", ".join([name for name, part in self._parts.items() if part.stands_still(now)])
        self._notify.tell(f"STATUS={stuck} stands still" if stuck else "WATCHDOG=1")
        return stuck

    def stop(self) -> None:
        """Ends the thread and waits for it."""
        self._stopping.set()
        self.join()


def watching(
    notify: Notify, patience_s: float, *, server: Callable[[Callable[[], None]], None], store: Store
) -> Watchdog:
    """The watchdog of a daemon, for a manager of that patience; not yet started."""
    return Watchdog(
        notify,
        patience_s,
        {
            "the socket's thread": Part(server, patience_s * ANSWER),
            "the writer": Part(lambda answered: ask_writer(store, answered), WRITER_PATIENCE_S),
        },
    )


log = logging.getLogger(__name__)

#: A socket's path may be this long on Linux (107) and macOS (103).
SOCKET_PATH_LIMIT = 103
#: A thread that works in Python gives way after this. With 5 ms, as it is by default, a hook's write of 40 statements takes
#: 10 ms beside a stage or a dream that plans, with 1 ms 2-5, with this less: each statement waits for its turn anew.
GIVE_WAY_S = 0.0002
#: How often the main thread looks for directories of the assistant that appeared or were made anew.
LOOK_S = 60.0


def socket_path(home: Path) -> Path:
    """Where the socket goes: in the home, or in a short private directory when that path is too long."""
    chosen = home / "run" / "csmd.sock"
    if len(os.fsencode(chosen)) <= SOCKET_PATH_LIMIT:
        return chosen
    return files.make_private(Path(f"/tmp/csmd-{os.getuid()}")) / f"{mark_of(home)}.sock"  # noqa: S108


def run(config: Config) -> None:
    """Runs the daemon until SIGTERM or SIGINT; AlreadyRunning when another one serves this home."""
    os.umask(0o077)
    stages.few_arenas()
    sys.setswitchinterval(GIVE_WAY_S)
    address, patience_s = take_notify_socket()
    with alone(config.paths):
        logs.configure(config)
        choose_words(config.settings.privacy_redact)
        try:
            _serve(config, Notify(address), patience_s)
        except Damaged:
            log.error("the database is damaged: nothing is taken in until `csmd repair`, hooks spool")
            raise


@contextmanager
def alone(paths: Paths) -> Iterator[None]:
    """Holds the instance lock of a home, its directories made; AlreadyRunning when another process has it."""
    try:
        for directory in (paths.home, paths.run_dir, paths.spool, paths.models):
            files.make_private(directory)
        lock = filelock.FileLock(paths.lock, mode=0o600)
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise AlreadyRunning(
            f"a csmd daemon is already running for {paths.home}", hint="`csmd status` shows it, `csmd stop` ends it"
        ) from None
    except OSError as error:
        raise ConfigError(
            f"{error.filename or paths.home}: {error.strerror or error}",
            hint="make that directory writable and see that its disk has room; hooks spool meanwhile",
        ) from error
    try:
        yield
    finally:
        lock.release()


def _serve(config: Config, notify: Notify, patience_s: float) -> None:
    paths = config.paths
    with ExitStack() as ending:  # whatever fails on the way, up or down: every part that was begun is ended
        stop = _StopMark(ending)
        ending.callback(paths.instance.unlink, missing_ok=True)  # the last: until then `csmd stop` waits for us
        log.info("csmd %s starts, pid %d", csmd.__version__, os.getpid())
        store = Store(paths.database, now=now_iso())
        ending.callback(log.info, "stopped")
        ending.callback(store.close)
        ending.callback(_last_checkpoint, store)
        if store.migrated:
            log.info("migrated: %s", ", ".join(store.migrated))
        directory = supervisor.installed(paths.models, config.settings.embed_model)
        embedder = supervisor.Embedder(directory, idle_s=config.settings.embed_idle_s, environment=child_environment())
        ending.callback(embedder.close)
        started, meter = time.monotonic(), Meter()

        background = Background(store, config, embedder)
        tasks.resume_purge(background.context)
        dreaming.resume_dreams(background.context)
        watch = Watch(background.hint, background.instructed.touch)
        background.is_watched = lambda: not watch.trouble and watch.roots == sorted(background.context.roots())
        path = socket_path(paths.home)
        tools = background.tool_context(
            lambda rows, own: status(rows, own, watch, meter, started, paused=tools.paused())
        )
        server = Server(path, store, config, embedder, background, tools, ended=stop.set)
        background.ask_server = server.ask
        server.start()
        server.ready.wait()
        if server.failure:
            server.join()
            raise ConfigError(server.failure)
        ending.callback(files.clear_stale_socket, path)
        ending.callback(_end_threads, server, background, watch)
        instance = {
            "pid": os.getpid(),
            "start": start_token(os.getpid()),
            "boot": boot_id(),
            "token": secrets.token_hex(8),
            "version": csmd.__version__,
            "proto": wire.PROTO,
            "socket": str(path),
            "service": started_by(),
        }
        files.write_atomic(paths.instance, wire.pretty(instance).encode() + b"\n")
        # A hook that comes while we end finds no endpoint and spools at once.
        ending.callback(paths.endpoint.unlink, missing_ok=True)
        ending.callback(log.info, "stopping")
        ending.callback(notify.tell, "STOPPING=1")
        # Before anybody is told where to ask: a mark that a hook makes from now on is about this daemon.
        paths.stopped_mark.unlink(missing_ok=True)
        paths.hung_mark.unlink(missing_ok=True)
        files.write_atomic(paths.endpoint, f"{path}\n".encode())
        watch.follow(background.context.roots(), alone=background.instructed.folders())
        background.scheduler.start()
        words = (
            "search by words and meaning" if background.context.model_name() else "search by words: no embedding model"
        )
        on = background.context.pauses().current(now_iso())
        log.info(
            "listening, directories of transcripts: %d, %s%s",
            len(background.context.roots()),
            words,
            ", paused" if on else "",
        )
        if started_by() != "detached":  # else it is our stderr
            paths.complaint.unlink(missing_ok=True)
        notify.tell("READY=1", f"STATUS=csmd {csmd.__version__} takes in what happens")
        if patience_s:
            watchdog = watching(notify, patience_s, server=server.ask, store=store)
            ending.callback(watchdog.stop)
            watchdog.start()
        while not stop.wait(LOOK_S):
            meter.usage(os.getpid())  # so that `csmd status` can say what it cost lately
            if watch.follow(
                background.context.roots(), alone=background.instructed.folders()
            ):  # a directory that appeared: its transcripts are read at once
                background.sweep_soon()
        if server.failure:
            raise CsmdError(server.failure, hint="look at the log and restart the daemon")


class _StopMark:
    """Owns a pipe that signal handlers and the server's end write to, and the main thread waits on.

    Not a threading.Event: its lock is not to be taken by a handler that interrupts the very wait that holds it.
    """

    def __init__(self, ending: ExitStack) -> None:
        self._out, self._in = os.pipe()
        ending.callback(os.close, self._out)
        ending.callback(os.close, self._in)
        os.set_blocking(self._in, False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            ending.callback(signal.signal, number, signal.signal(number, lambda *_: self.set()))

    def set(self) -> None:
        """Asks for the end; from any thread or signal handler."""
        with suppress(BlockingIOError):
            os.write(self._in, b"!")

    def wait(self, seconds: float) -> bool:
        """Whether the end was asked for within this time."""
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        return bool(poll.poll(seconds * 1000))


def _end_threads(server: Server, background: Background, watch: Watch) -> None:
    server.stop()
    background.context.stop()
    server.join()
    watch.close()
    if background.scheduler.ident is not None:
        background.scheduler.join()
    background.clients.close()


def _last_checkpoint(store: Store) -> None:
    try:
        store.checkpoint(truncate=True)
    except CsmdError as error:
        log.warning("the last checkpoint failed: %s", type(error).__name__)  # the next start reads the write-ahead log
