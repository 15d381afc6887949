"""Builds the daemon's parts in order, runs them and ends them."""

from __future__ import annotations

import logging
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import filelock

import csmd
from csmd import wire
from csmd.capture import markdown_imports
from csmd.config import (
    Config,
    boot_id,
    child_environment,
    default_paths,
    load,
    recorded_hosts,
    started_by,
    take_notify_socket,
)
from csmd.daemon import curating, dreaming, logs, pipeline
from csmd.daemon.context import now_iso
from csmd.daemon.jobs import Background
from csmd.daemon.purge_task import resume_purge
from csmd.daemon.reading import Watch
from csmd.daemon.server import Server, WakePipe
from csmd.daemon.status_report import status
from csmd.embedding import models
from csmd.errors import (
    DISK_ERRORS,
    AlreadyRunning,
    ConfigError,
    CsmdError,
    Damaged,
    KeyMissing,
    Refused,
    explain_disk_error,
)
from csmd.machine import Meter, start_token
from csmd.paths import Paths, mark_of
from csmd.privacy.redaction import choose_words, redact
from csmd.store import backup, files, keys
from csmd.store.core import Store

log = logging.getLogger(__name__)

#: A write that takes longer than this is stuck.
WRITER_PATIENCE_S = 600.0
#: Of the service manager's patience: how often it is told, and how long the socket's thread may take to answer.
NOTIFY_SHARE, ANSWER_SHARE = 1 / 4, 1 / 2
#: A socket's path may be this long on Linux (107) and macOS (103).
SOCKET_PATH_LIMIT = 103
#: A thread that works in Python gives way after this. With 5 ms, as it is by default, a hook's write of 40 statements takes
#: 10 ms beside a stage or a dream that plans, with 1 ms 2-5, with this less: each statement waits for its turn anew.
GIVE_WAY_S = 0.0002
#: How often the main thread looks for directories of the assistant that appeared or were made anew.
LOOK_S = 60.0
#: Seconds between two questions for a key that cannot be had, at first and at most; how long one may take, as a person may
#: be asked meanwhile, and how often it is looked after. All of them are less than a service manager's patience.
KEY_AGAIN_S, KEY_PATIENCE_S, LOOK_AT_KEY_S = (1.0, 15.0), 40.0, 0.2


def configuration() -> Config:
    """The configuration in force, with the assistant's directories that `csmd install` recorded."""
    paths = default_paths()
    record = files.read_json(paths.install_record) or {}
    recorded = record.get("assistant_dirs")
    extra = tuple(Path(str(folder)) for folder in recorded) if isinstance(recorded, list) else ()
    return load(paths=paths, extra_dirs=extra, host_dirs=recorded_hosts(record.get("hosts")))


def run_explained(work: Callable[[], None], *, complaint: Path | None = None) -> int:
    """Does what a process is for; its exit code. An error is explained on stderr and in the file `complaint`.

    A service manager has our stderr for itself: `csmd start` finds in that file why the daemon ended.
    """
    try:
        work()
        return 0
    except CsmdError as error:
        failure = error
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        failure = explain_disk_error(error, "the home")
    explained = f"csmd: {redact(failure.what, Counter())}\n" + (f"  try: {failure.hint}\n" if failure.hint else "")
    sys.stderr.write(explained)
    if complaint is not None:
        with suppress(OSError, CsmdError):  # that no file can be written is often what is explained
            files.write_atomic(complaint, explained.encode("utf-8", "replace"))
    return failure.exit_code


def notify_manager(address: str, *state: str) -> None:
    """Sends assignments to the service manager as sd_notify(3) does; nothing where it is gone.

    `address` is its socket: a path, @ and an abstract name, or "" for none.
    """
    if address:
        place = "\0" + address[1:] if address.startswith("@") else address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.settimeout(1.0)
            out.connect(place)
            out.send("\n".join(state).encode("utf-8", "replace"))


@dataclass(slots=True)
class Part:
    """A thread that must not get stuck: `ask` has it call back, which may take `patience_s`."""

    ask: Callable[[Callable[[], None]], None]
    patience_s: float
    asked_at: float | None = None
    """When the question that is still open was put; monotonic."""

    def _answered(self) -> None:
        self.asked_at = None

    def is_stuck(self, now: float) -> bool:
        """Whether the open question is older than it may be; where none is open, one is put."""
        if self.asked_at is None:
            self.asked_at = now
            self.ask(self._answered)
        asked_at = self.asked_at  # it may have answered at once, on this thread or its own
        return asked_at is not None and now - asked_at > self.patience_s


def ask_writer(store: Store, answered: Callable[[], None]) -> None:
    """Has the store's writer call back when it comes by; one that refuses for damage is as it should be."""
    try:
        store.submit(lambda _: None).add_done_callback(lambda _: answered())
    except Damaged:
        answered()
    except Refused:
        return  # its queue is full: asked already, and not answered


class Watchdog(threading.Thread):
    """Owns the thread that tells the service manager that csmd is alive, as long as no part is stuck."""

    def __init__(self, address: str, patience_s: float, parts: Mapping[str, Part]) -> None:
        super().__init__(name="csmd-watchdog")
        self._address = address
        self._every_s = patience_s * NOTIFY_SHARE
        self._parts = parts
        self._stopping = threading.Event()

    def run(self) -> None:
        self.step(time.monotonic())
        while not self._stopping.wait(self._every_s):
            self.step(time.monotonic())

    def step(self, now: float) -> str:
        """Tells the manager how csmd is at the monotonic time `now`; the parts that are stuck, by name."""
        stuck = ", ".join([name for name, part in self._parts.items() if part.is_stuck(now)])
        notify_manager(self._address, f"STATUS={stuck} stands still" if stuck else "WATCHDOG=1")
        return stuck

    def stop(self) -> None:
        """Ends the thread and waits for it."""
        self._stopping.set()
        self.join()


def watched_parts(server: Callable[[Callable[[], None]], None], store: Store, patience_s: float) -> dict[str, Part]:
    """The parts of a daemon that must not get stuck, for a manager of that patience."""
    return {
        "the socket's thread": Part(server, patience_s * ANSWER_SHARE),
        "the writer": Part(partial(ask_writer, store), WRITER_PATIENCE_S),
    }


def socket_path(home: Path) -> Path:
    """Where the socket goes: in the home, or in a short private directory when that path is too long."""
    chosen = home / "run" / "csmd.sock"
    if len(os.fsencode(chosen)) <= SOCKET_PATH_LIMIT:
        return chosen
    return files.make_private(Path(f"/tmp/csmd-{os.getuid()}")) / f"{mark_of(home)}.sock"  # noqa: S108


def run(config: Config) -> None:
    """Runs the daemon until SIGTERM, SIGINT or SIGHUP; AlreadyRunning when another one serves this home."""
    os.umask(0o077)
    pipeline.limit_pools()
    sys.setswitchinterval(GIVE_WAY_S)
    address, patience_s = take_notify_socket()
    with closing(StopPipe()) as stop, _ending_while_it_waits(stop):
        begins_anew = True
        while begins_anew:
            begins_anew = False
            with hold_instance_lock(config.paths, partial(await_key, config.paths, stop, address)) as rescued:
                logs.configure(config)
                if rescued is not None:
                    log.warning(
                        "the database was gone; csmd goes on with the copy that was made of it, %s", rescued.name
                    )
                choose_words(config.settings.privacy_redact)
                try:
                    begins_anew = _serve(config, address, patience_s, stop) and not stop.take_signal()
                except Damaged:
                    log.error("the database is damaged: nothing is taken in until `csmd repair`, hooks spool")
                    raise
                finally:
                    if not begins_anew:  # the last: until then `csmd stop` waits for us
                        config.paths.instance.unlink(missing_ok=True)


@contextmanager
def _ending_while_it_waits(stop: StopPipe) -> Iterator[None]:
    """Ends a daemon that waits for its key as any other when a signal comes."""
    try:
        yield
    except KeyMissing:
        if not stop.has_signal:
            raise


def await_key(paths: Paths, stop: StopPipe, address: str) -> None:
    """Waits until SQLite has the key of an encrypted database; KeyMissing when a signal comes first.

    Nothing is opened or made meanwhile, and there is no endpoint: hooks spool.
    """
    poll, wait_s = select.poll(), KEY_AGAIN_S[0]
    poll.register(stop, select.POLLIN)
    try:
        while True:
            try:
                keys.unlock(paths.home, partial(_ask_for_key, stop))
                return
            except KeyMissing as error:
                if stop.has_signal:
                    raise
                explained = f"csmd: {error.what}\n  try: {error.hint}\n"
                if explained != files.read_small(str(paths.waits_mark)):
                    sys.stderr.write(f"{explained}")  # a hook that would bring the daemon back sees that it has
                    files.write_atomic(paths.waits_mark, explained.encode("utf-8", "replace"))
                    _note_instance(paths, "")
                # It has started, as far as a service manager is concerned.
                notify_manager(address, "READY=1", "STATUS=waits for the key of the database", "WATCHDOG=1")
            poll.poll(wait_s * 1000)
            wait_s = min(wait_s * 2, KEY_AGAIN_S[1])
    except BaseException:
        paths.instance.unlink(missing_ok=True)
        raise
    finally:
        paths.waits_mark.unlink(missing_ok=True)


def _ask_for_key(stop: StopPipe, record: keys.Record) -> bytes:
    """Has a process of its own read the key: a keyring may ask the user first, and its libraries are large."""
    until = time.monotonic() + KEY_PATIENCE_S
    command = [sys.executable, "-P", "-m", "csmd.daemon.encrypt", "key"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=child_environment()
    ) as child:
        while True:
            with suppress(subprocess.TimeoutExpired):
                answer = wire.loads(child.communicate(timeout=LOOK_AT_KEY_S)[0] or b'{"report": {}}')["report"]
                break
            if stop.has_signal or time.monotonic() > until:
                child.kill()
    key = keys.from_text(str(answer.get("key", "")))
    if key is None or keys.digest_of(key) != record.digest:
        what = answer.get("what") or "what holds the key of the database did not answer"
        raise KeyMissing(what, hint=answer.get("hint") or "unlock the keyring; `csmd encrypt status` asks it again")
    return key


class StopPipe(WakePipe):
    """Owns the pipe that wakes the main thread to end the daemon's parts, and the handlers of the signals that end it."""

    def __init__(self) -> None:
        super().__init__()
        self.has_signal = False
        """Whether one came, at any time since."""
        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        self._handlers = {number: signal.signal(number, self._note_signal) for number in numbers}
        # The kernel may give a signal to any thread (behind SIGCONT it does): then nothing interrupts the main thread's poll.
        self._wakeup_fd = signal.set_wakeup_fd(self.wakeup_fd(), warn_on_full_buffer=False)

    def _note_signal(self, *_: object) -> None:
        self.has_signal = True
        self.wake()

    def take_signal(self) -> bool:
        """Empties the pipe; whether a signal came. One that comes from here on makes it readable again."""
        self.drain()
        return self.has_signal

    def close(self) -> None:
        """Restores the handlers and closes both ends."""
        signal.set_wakeup_fd(self._wakeup_fd)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        super().close()


@contextmanager
def hold_instance_lock(paths: Paths, unlock: Callable[[], None] | None = None) -> Iterator[Path | None]:
    """Holds the instance lock of a home; AlreadyRunning when another process has it.

    `unlock` gives SQLite the key of an encrypted home; by default KeyMissing where it cannot be had. Its directories are made, and a restore or repair that was killed while it replaced the database is finished. Where
    the database was deleted under its daemon, the copy takes its place that the daemon made then: that copy, else None.
    """
    lock = filelock.FileLock(paths.lock, mode=0o600)
    try:
        for directory in (paths.home, paths.run_dir, paths.spool, paths.models):
            files.make_private(directory)
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise AlreadyRunning(
            f"a csmd daemon is already running for {paths.home}", hint="`csmd status` shows it, `csmd stop` ends it"
        ) from None
    except OSError as error:
        raise ConfigError(
            f"{error.filename or paths.home}: {error.strerror or error}; hooks spool meanwhile",
            hint="make that directory writable and see that its disk has room",
        ) from error
    try:
        backup.finish_replacement(paths.database)
        (unlock or partial(keys.unlock, paths.home))()
        rescued = backup.put_rescued_back(paths.database)
        backup.set_stale_log_aside(paths.database, now=now_iso())
        yield rescued
    finally:
        lock.release()


def _serve(config: Config, address: str, patience_s: float, stop: StopPipe) -> bool:
    """Serves until `stop` is woken; whether to begin anew instead of ending, because the database's file is gone."""
    paths = config.paths
    with ExitStack() as ending:  # whatever fails on the way, up or down: every part that was begun is ended
        log.info("csmd %s starts, pid %d", csmd.__version__, os.getpid())
        store = Store(paths.database, now=now_iso())
        ending.callback(log.info, "stopped")
        ending.callback(store.close)
        ending.callback(_last_checkpoint, store)
        ending.callback(_last_rescue, store)
        backup.note_opened(paths.database)
        if store.migrated:
            log.info("migrated: %s", ", ".join(store.migrated))
        directory = models.installed_model(paths.models, config.settings.embed_model)
        embedder = models.Embedder(
            directory, idle_s=config.settings.embed_idle_s, environment=child_environment(),
            endpoint_command=partial(curating.vectors_command, idle_s=config.settings.embed_idle_s),
        )  # fmt: skip
        ending.callback(embedder.close)
        markdown_imports.preload()
        started, meter = time.monotonic(), Meter()

        background = Background(store, config, embedder)
        context, instructions = background.context, background.instructions
        resume_purge(context)
        dreaming.resume_dreams(context)
        watch = Watch(background.hint, background.hint)
        background.begin_anew = stop.wake
        background.is_watched = lambda: not watch.trouble and watch.roots == sorted(context.roots())
        path = socket_path(paths.home)
        tools = background.tool_context(
            lambda rows, own: status(rows, own, watch, meter, started, paused=tools.paused())
        )
        server = Server(path, background, tools, ended=stop.wake)
        background.ask_server = server.ask
        server.start()
        server.ready.wait()
        if server.failure:
            server.join()
            raise ConfigError(server.failure)
        ending.callback(files.clear_stale_socket, path)
        ending.callback(_end_threads, server, background, watch)
        _note_instance(paths, str(path))
        # A hook that comes while we end finds no endpoint and spools at once.
        ending.callback(paths.endpoint.unlink, missing_ok=True)
        ending.callback(log.info, "stopping")
        ending.callback(
            lambda: notify_manager("" if background.begins_anew and not stop.has_signal else address, "STOPPING=1")
        )
        # Before anybody is told where to ask: a mark that a hook makes from now on is about this daemon.
        for mark in (paths.stopped_mark, paths.hung_mark, paths.missing_mark):
            mark.unlink(missing_ok=True)
        files.write_atomic(paths.endpoint, f"{path}\n".encode())
        watch.follow(context.roots(), alone=instructions.folders())
        background.start()
        log.info(
            "listening, directories of transcripts: %d, %s%s",
            len(context.roots()),
            "search by words and meaning" if context.model_name() else "search by words: no embedding model",
            ", paused" if tools.paused() else "",
        )
        if started_by() != "detached":  # else it is our stderr
            paths.complaint.unlink(missing_ok=True)
        notify_manager(address, "READY=1", f"STATUS=csmd {csmd.__version__} takes in what happens")
        if patience_s:
            watchdog = Watchdog(address, patience_s, watched_parts(server.ask, store, patience_s))
            ending.callback(watchdog.stop)
            watchdog.start()
        poll = select.poll()
        poll.register(stop, select.POLLIN)
        while not poll.poll(LOOK_S * 1000):
            meter.usage(os.getpid())  # so that `csmd status` can say what it cost lately
            # The transcripts of a directory that appeared are read at once.
            if watch.follow(context.roots(), alone=instructions.folders()):
                background.sweep_soon()
        if server.failure:
            raise CsmdError(server.failure, hint="`csmd restart`; `csmd logs` may say why")
        return background.begins_anew


def _note_instance(paths: Paths, socket_place: str) -> None:
    """Notes which process serves this home, and where; "" for nowhere yet."""
    instance = {
        "pid": os.getpid(),
        "start": start_token(os.getpid()),
        "boot": boot_id(),
        "token": secrets.token_hex(8),
        "version": csmd.__version__,
        "proto": wire.PROTO,
        "socket": socket_place,
        "service": started_by(),
    }
    files.write_atomic(paths.instance, wire.pretty(instance).encode() + b"\n")


def _end_threads(server: Server, background: Background, watch: Watch) -> None:
    server.stop()
    background.context.stop()
    server.join()
    watch.close()
    if background.ident is not None:
        background.join()
    background.clients.close()


def _last_rescue(store: Store) -> None:
    try:
        store.rescue(now=now_iso())
    except CsmdError as error:
        log.warning("the database could not be copied: %s", type(error).__name__)


def _last_checkpoint(store: Store) -> None:
    try:
        store.checkpoint(truncate=True)
    except CsmdError as error:
        log.warning("the last checkpoint failed: %s", type(error).__name__)  # the next start reads the write-ahead log
