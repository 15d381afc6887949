"""The daemon's life: lock, open, migrate, listen, wait for a signal, drain.

The instance lock is taken before the socket is bound: a second bind on the same path succeeds
and silently steals it (facts: dependencies section 3). Signal handlers set a flag only.
"""

from __future__ import annotations

import logging
import os
import secrets
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import filelock

import csmd
from csmd import wire
from csmd.capture.redact import choose_words
from csmd.config import Config, boot_id, child_environment, started_by, take_notify_socket
from csmd.daemon import dreaming, easing, logs, purging
from csmd.daemon.machine import start_token
from csmd.daemon.notify import Notify, watching
from csmd.daemon.now import now_iso
from csmd.daemon.server import Server
from csmd.daemon.status import status
from csmd.daemon.steward import Steward
from csmd.daemon.tools import Tools
from csmd.daemon.usage import Meter
from csmd.daemon.watch import Watch
from csmd.errors import AlreadyRunning, ConfigError, CsmdError, Damaged
from csmd.paths import Paths
from csmd.store import embed, files, models
from csmd.store.core import Store

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
    import hashlib

    mark = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    return files.make_private(Path(f"/tmp/csmd-{os.getuid()}")) / f"{mark}.sock"  # noqa: S108


def run(config: Config) -> None:
    """Runs the daemon until SIGTERM or SIGINT; AlreadyRunning when another one serves this home."""
    os.umask(0o077)
    easing.few_arenas()
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
        directory = models.installed(paths.models, config.settings.embed_model)
        embedder = embed.Embedder(directory, idle_s=config.settings.embed_idle_s, environment=child_environment())
        ending.callback(embedder.close)
        started, meter = time.monotonic(), Meter()

        steward = Steward(store, config, embedder)
        purging.resume(steward.context)
        dreaming.resume(steward.context)
        watch = Watch(steward.hint, steward.instructed.touch)
        steward.is_watched = lambda: not watch.trouble and watch.roots == sorted(steward.context.roots())
        path = socket_path(paths.home)
        tools = Tools(steward, lambda rows: status(rows, steward, watch, meter, started))
        server = Server(path, store, config, embedder, steward, tools, ended=stop.set)
        steward.ask_server = server.ask
        server.start()
        server.ready.wait()
        if server.failure:
            server.join()
            raise ConfigError(server.failure)
        ending.callback(files.clear_stale_socket, path)
        ending.callback(_end_threads, server, steward, watch)
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
        watch.follow(steward.context.roots(), alone=steward.instructed.folders())
        steward.start()
        words = "search by words and meaning" if steward.context.model_name() else "search by words: no embedding model"
        on = steward.context.pauses().current(now_iso())
        log.info(
            "listening, directories of transcripts: %d, %s%s",
            len(steward.context.roots()),
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
                steward.context.roots(), alone=steward.instructed.folders()
            ):  # a directory that appeared: its transcripts are read at once
                steward.sweep_soon()
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


def _end_threads(server: Server, steward: Steward, watch: Watch) -> None:
    server.stop()
    steward.context.stop()
    server.join()
    watch.close()
    if steward.ident is not None:
        steward.join()
    steward.clients.close()


def _last_checkpoint(store: Store) -> None:
    try:
        store.checkpoint(truncate=True)
    except CsmdError as error:
        log.warning("the last checkpoint failed: %s", type(error).__name__)  # the next start reads the write-ahead log
