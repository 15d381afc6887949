"""Starts the daemon's parts in order, runs them and ends them."""

from __future__ import annotations

import logging
import os
import secrets
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import csmd
from csmd import wire
from csmd.capture import markdown_imports
from csmd.config import Config, boot_id, child_environment, started_by, take_notify_socket
from csmd.daemon import dreaming, logs, provider_tasks
from csmd.daemon.context import now_iso
from csmd.daemon.instance import hold_instance_lock
from csmd.daemon.jobs import Background
from csmd.daemon.purge_task import resume_purge
from csmd.daemon.server import Server, WakePipe
from csmd.daemon.service_manager import Watchdog, list_watched_parts, notify_manager
from csmd.daemon.status_report import build_status
from csmd.daemon.transcript_watch import Watch
from csmd.embedding import installed_models, worker_client
from csmd.errors import ConfigError, CsmdError, Damaged, KeyMissing
from csmd.machine import Meter, limit_memory_pools, start_token
from csmd.paths import Paths, mark_of
from csmd.privacy.redaction import choose_words
from csmd.store import backup, files, keys
from csmd.store.core import Store

log = logging.getLogger(__name__)
#: A socket's path may be this long on Linux (107) and macOS (103).
MAX_SOCKET_PATH_BYTES = 103
#: A thread that runs Python code gives way after this time. Each of the 40 statements of a hook's write waits for its
#: turn: the write takes 10 ms with the default of 5 ms while a stage or a dream is planning, 2 to 5 ms with 1 ms.
SWITCH_INTERVAL_S = 0.0002
#: How often the main thread looks for directories of transcripts that appeared or were replaced.
DIRECTORY_CHECK_S = 60.0
#: First and longest rest between two requests for a key that is not available. The times of a key are less than a service
#: manager's patience.
MIN_KEY_RETRY_S = 1.0
MAX_KEY_RETRY_S = 15.0
#: One request for the key; the keyring may ask a person.
KEY_TIMEOUT_S = 40.0
KEY_POLL_S = 0.2


def choose_socket_path(home: Path) -> Path:
    """Returns the path of the socket: in the home, or in a short private directory if that path is too long."""
    path = home / "run" / "csmd.sock"
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
        return path
    return files.make_private(Path(f"/tmp/csmd-{os.getuid()}")) / f"{mark_of(home)}.sock"  # noqa: S108


def run(config: Config) -> None:
    """Runs the daemon until SIGTERM, SIGINT or SIGHUP; AlreadyRunning when another one serves this home."""
    os.umask(0o077)
    limit_memory_pools()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    address, patience_s = take_notify_socket()
    with closing(StopPipe()) as stop, _ignore_missing_key(stop):
        restarts = True
        while restarts:
            restarts = False
            with hold_instance_lock(config.paths, partial(await_key, config.paths, stop, address)) as rescued:
                logs.configure(config)
                if rescued is not None:
                    log.warning("the database's file was missing; csmd continues with the copy %s", rescued.name)
                choose_words(config.settings.privacy_redact)
                try:
                    restarts = _serve(config, address, patience_s, stop) and not stop.take_signal()
                except Damaged:
                    log.error("the database is damaged: nothing is captured until `csmd repair`, hooks spool")
                    raise
                finally:
                    if not restarts:  # removed last, because `csmd stop` waits for it
                        config.paths.instance.unlink(missing_ok=True)


@contextmanager
def _ignore_missing_key(stop: StopPipe) -> Iterator[None]:
    """Ends a daemon without an error if a signal comes while it waits for its key."""
    try:
        yield
    except KeyMissing:
        if not stop.has_signal:
            raise


def await_key(paths: Paths, stop: StopPipe, address: str) -> None:
    """Waits until SQLite has the key of an encrypted database; KeyMissing if a signal comes first.

    Until then nothing is opened or created, and without an endpoint hooks spool.
    """
    poll, wait_s = select.poll(), MIN_KEY_RETRY_S
    poll.register(stop, select.POLLIN)
    try:
        while True:
            try:
                return keys.use_stored_key(paths.home, partial(_ask_for_key, stop))
            except KeyMissing as error:
                if stop.has_signal:
                    raise
                explained = f"csmd: {error.what}\n  try: {error.hint}\n"
                if explained != files.read_small(str(paths.waits_mark)):
                    sys.stderr.write(f"{explained}")
                    # The mark tells hooks not to start the daemon again.
                    files.write_atomic(paths.waits_mark, explained.encode("utf-8", "replace"))
                    _record_instance(paths, "")
                # For a service manager it has started.
                notify_manager(address, "READY=1", "STATUS=waits for the key of the database", "WATCHDOG=1")
            poll.poll(wait_s * 1000)
            wait_s = min(wait_s * 2, MAX_KEY_RETRY_S)
    except BaseException:
        paths.instance.unlink(missing_ok=True)
        raise
    finally:
        paths.waits_mark.unlink(missing_ok=True)


def _ask_for_key(stop: StopPipe, record: keys.EncryptionRecord) -> bytes:
    """Reads the key in a process of its own: a keyring may ask the user first, and its libraries are large."""
    until = time.monotonic() + KEY_TIMEOUT_S
    command = [sys.executable, "-P", "-m", "csmd.daemon.encrypt", "key"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=child_environment()
    ) as child:
        while True:
            with suppress(subprocess.TimeoutExpired):
                answer = wire.loads(child.communicate(timeout=KEY_POLL_S)[0] or b'{"report": {}}')["report"]
                break
            if stop.has_signal or time.monotonic() > until:
                child.kill()
    key = keys.parse_key(str(answer.get("key", "")))
    if key is None or keys.digest_key(key) != record.digest:
        what = answer.get("what") or "the keyring or file with the key of the database did not answer"
        raise KeyMissing(what, hint=answer.get("hint") or "unlock the keyring; `csmd encrypt status` asks it again")
    return key


class StopPipe(WakePipe):
    """Owns the pipe that wakes the main thread to end the daemon, and the handlers of the signals that end it."""

    def __init__(self) -> None:
        super().__init__()
        self.has_signal = False
        """Whether a signal has come."""
        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        self._handlers = {number: signal.signal(number, self._record_signal) for number in numbers}
        # The kernel may deliver a signal to any thread (after SIGCONT it does), which would not interrupt the main
        # thread's poll.
        self._wakeup_fd = signal.set_wakeup_fd(self.wakeup_fd(), warn_on_full_buffer=False)

    def _record_signal(self, *_: object) -> None:
        self.has_signal = True
        self.wake()

    def take_signal(self) -> bool:
        """Empties the pipe; returns whether a signal came. A later signal makes it readable again."""
        self.drain()
        return self.has_signal

    def close(self) -> None:
        """Restores the handlers and closes both ends."""
        signal.set_wakeup_fd(self._wakeup_fd)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        super().close()


def _serve(config: Config, address: str, patience_s: float, stop: StopPipe) -> bool:
    """Serves until `stop` is woken; returns whether to start again, because the database's file is gone."""
    paths = config.paths
    with ExitStack() as ending:  # ends every part that was begun, whatever fails
        background = _begin_background(config, ending)
        context, store = background.context, background.context.store
        meter = Meter()
        watch, server = _begin_server(background, meter, stop, ending)
        _record_instance(paths, str(server.path))
        # Hooks that come while csmd ends find no endpoint and spool at once.
        ending.callback(paths.endpoint.unlink, missing_ok=True)
        ending.callback(log.info, "stopping")
        ending.callback(_notify_stopping, background, stop, address)
        # Before the endpoint is written: a mark that a hook makes from now on concerns this daemon.
        for mark in (paths.stopped_mark, paths.hung_mark, paths.missing_mark):
            mark.unlink(missing_ok=True)
        files.write_atomic(paths.endpoint, f"{server.path}\n".encode())
        watch.follow(context.list_roots(), alone=background.instructions.list_folders())
        background.start()
        search = "search by words and meaning" if context.model_name() else "search by words: no embedding model"
        pause = ", paused" if server.tools.paused() else ""
        log.info("listening, directories of transcripts: %d, %s%s", len(context.list_roots()), search, pause)
        if started_by() != "detached":  # else the file is our stderr
            paths.complaint.unlink(missing_ok=True)
        notify_manager(address, "READY=1", f"STATUS=csmd {csmd.__version__} captures sessions")
        if patience_s:
            watchdog = Watchdog(address, patience_s, list_watched_parts(server.ping, store, patience_s))
            ending.callback(watchdog.stop)
            watchdog.start()
        _watch_directories(stop, background, watch, meter)
        if server.failure:
            raise CsmdError(server.failure, hint="`csmd restart`; `csmd logs` may say why")
        return background.restarts


def _begin_background(config: Config, ending: ExitStack) -> Background:
    """Opens the store and makes the embedder and the background thread, which is not started yet."""
    paths = config.paths
    log.info("csmd %s starts, pid %d", csmd.__version__, os.getpid())
    store = Store(paths.database, now=now_iso())
    ending.callback(log.info, "stopped")
    ending.callback(store.close)
    ending.callback(_checkpoint_database, store)
    ending.callback(_rescue_database, store)
    backup.record_open_files(paths.database)
    if store.migrated:
        log.info("migrated: %s", ", ".join(store.migrated))
    embedder = worker_client.Embedder(
        installed_models.installed_model(paths.models, config.settings.embed_model), idle_s=config.settings.embed_idle_s,
        environment=child_environment(),
        endpoint_command=partial(provider_tasks.build_endpoint_command, idle_s=config.settings.embed_idle_s),
    )  # fmt: skip
    ending.callback(embedder.close)
    markdown_imports.preload()
    background = Background(store, config, embedder)
    resume_purge(background.context)
    dreaming.resume_dreams(background.context)
    return background


def _begin_server(background: Background, meter: Meter, stop: StopPipe, ending: ExitStack) -> tuple[Watch, Server]:
    """Starts the socket's thread; ConfigError if it cannot listen. The watch follows no directory yet."""
    context, started = background.context, time.monotonic()
    watch = Watch(background.hint, background.hint)
    background.end_parts = stop.wake
    background.is_watched = lambda: not watch.trouble and watch.roots == sorted(context.list_roots())
    path = choose_socket_path(context.config.paths.home)
    report = partial(build_status, watch=watch, meter=meter, started=started)
    tools = background.tool_context(lambda rows, own: report(rows, own, paused=tools.paused()))
    server = Server(path, background, tools, ended=stop.wake)
    background.ping_server = server.ping
    server.start()
    server.ready.wait()
    if server.failure:
        server.join()
        raise ConfigError(server.failure)
    ending.callback(files.clear_stale_socket, path)
    ending.callback(_end_threads, server, background, watch)
    return watch, server


def _watch_directories(stop: StopPipe, background: Background, watch: Watch, meter: Meter) -> None:
    """Looks for new directories of transcripts until `stop` is woken."""
    poll = select.poll()
    poll.register(stop, select.POLLIN)
    while not poll.poll(DIRECTORY_CHECK_S * 1000):
        meter.usage(os.getpid())  # for the recent load in `csmd status`
        # The transcripts in a directory that appeared are read at once.
        if watch.follow(background.context.list_roots(), alone=background.instructions.list_folders()):
            background.sweep_soon()


def _record_instance(paths: Paths, socket_file: str) -> None:
    """Records which process serves this home, and its socket; "" if it has none yet."""
    instance = {
        "pid": os.getpid(), "start": start_token(os.getpid()), "boot": boot_id(), "token": secrets.token_hex(8),
        "version": csmd.__version__, "proto": wire.PROTO, "socket": socket_file, "service": started_by(),
    }  # fmt: skip
    files.write_atomic(paths.instance, wire.pretty(instance).encode() + b"\n")


def _notify_stopping(background: Background, stop: StopPipe, address: str) -> None:
    if not background.restarts or stop.has_signal:
        notify_manager(address, "STOPPING=1")


def _end_threads(server: Server, background: Background, watch: Watch) -> None:
    server.stop()
    background.context.stop()
    server.join()
    watch.close()
    if background.ident is not None:
        background.join()
    background.clients.close()


def _rescue_database(store: Store) -> None:
    try:
        store.rescue(now=now_iso())
    except CsmdError as error:
        log.warning("the database could not be copied: %s", type(error).__name__)


def _checkpoint_database(store: Store) -> None:
    try:
        store.checkpoint(truncate=True)
    except CsmdError as error:
        log.warning("the last checkpoint failed: %s", type(error).__name__)  # the next start reads the write-ahead log
