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
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import filelock
import psutil

import csmd
from csmd import wire
from csmd.config import Config, child_environment
from csmd.daemon import logs
from csmd.daemon.now import now_iso
from csmd.daemon.server import Server
from csmd.daemon.steward import Steward
from csmd.daemon.tools import Tools
from csmd.daemon.watch import Watch
from csmd.errors import AlreadyRunning, ConfigError, CsmdError
from csmd.store import counts, embed, files, models, vectors
from csmd.store.core import Store
from csmd.store.sqlite import Rows

log = logging.getLogger(__name__)

#: A socket's path may be this long on Linux (107) and macOS (103).
SOCKET_PATH_LIMIT = 103
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


def start_token(pid: int) -> float:
    """When a process began: with its pid it names one process for good."""
    return float(psutil.Process(pid).create_time())


def run(config: Config) -> None:
    """Runs the daemon until SIGTERM or SIGINT; AlreadyRunning when another one serves this home."""
    os.umask(0o077)
    paths = config.paths
    for directory in (paths.home, paths.run_dir, paths.spool, paths.models):
        files.make_private(directory)
    lock = filelock.FileLock(paths.lock, mode=0o600)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise AlreadyRunning(
            f"a csmd daemon is already running for {paths.home}", hint="`csmd status` shows it, `csmd stop` ends it"
        ) from None
    try:
        logs.configure(config)
        _serve(config)
    finally:
        lock.release()


def _serve(config: Config) -> None:
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
        started = time.time()

        def model_name() -> str | None:
            return tools.model_name()

        steward = Steward(store, config, embedder, model_name=model_name)
        watch = Watch(steward.hint)
        path = socket_path(paths.home)
        tools = Tools(
            store,
            config,
            embedder,
            steward,
            lambda rows: status(rows, config, store, embedder, steward, watch, tools, started),
        )
        server = Server(path, store, config, embedder, steward, tools, ended=stop.set)
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
            "token": secrets.token_hex(8),
            "version": csmd.__version__,
            "proto": wire.PROTO,
            "socket": str(path),
        }
        files.write_atomic(paths.instance, wire.pretty(instance).encode() + b"\n")
        # A hook that comes while we end finds no endpoint and spools at once.
        ending.callback(paths.endpoint.unlink, missing_ok=True)
        ending.callback(log.info, "stopping")
        files.write_atomic(paths.endpoint, f"{path}\n".encode())
        paths.stopped_mark.unlink(missing_ok=True)
        paths.hung_mark.unlink(missing_ok=True)
        watch.follow(steward.roots())
        steward.start()
        log.info("listening")
        while not stop.wait(LOOK_S):
            if watch.follow(steward.roots()):  # a directory that appeared: its transcripts are read at once
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
    steward.stop()
    server.join()
    watch.close()
    if steward.ident is not None:
        steward.join()


def _last_checkpoint(store: Store) -> None:
    try:
        store.checkpoint(truncate=True)
    except CsmdError as error:
        log.warning("the last checkpoint failed: %s", type(error).__name__)  # the next start reads the write-ahead log


def status(
    rows: Rows,
    config: Config,
    store: Store,
    embedder: embed.Embedder,
    steward: Steward,
    watch: Watch,
    tools: Tools,
    started: float,
) -> dict[str, Any]:
    """Everything `csmd status` shows."""
    name = tools.model_name()
    model = vectors.model_seq(rows, name) if name else None
    spooled = files.spooled_paths(config.paths.home)
    degraded = [f"{what}: {trouble}" for what, trouble in sorted(steward.trouble.items())]
    if name is None:
        degraded.append("vectors: no embedding model is installed, search is by words alone (csmd model fetch)")
    if watch.trouble:
        degraded.append(watch.trouble)
    database = config.paths.database
    return {
        "version": csmd.__version__,
        "proto": wire.PROTO,
        "home": str(config.paths.home),
        "daemon": {"pid": os.getpid(), "uptime_s": round(time.time() - started, 1), **_usage(os.getpid())},
        "worker": {"pid": embedder.pid, **(_usage(embedder.pid) if embedder.pid else {})},
        "model": {"name": name, "waiting": vectors.left(rows, model) if name else 0},
        "counts": counts.counts(rows),
        "counters": counts.counters(rows),
        "last_event": counts.last_event(rows),
        "spool": {"files": len(spooled), "oldest": spooled[0].name[:16] if spooled else ""},
        "jobs": [
            {"kind": job.kind, "state": job.state, **job.progress}
            for job in list(steward.jobs.values())
            if job.state in ("waiting", "running")
        ],
        "projects": [
            {"root": root, "name": title, "sessions": sessions, "memories": count, "last": last}
            for _, root, title, sessions, count, last in counts.projects(rows)
        ],
        "watching": [str(root) for root in watch.roots],
        "storage": {
            "database_bytes": database.stat().st_size,
            "wal_bytes": _size(database.with_name(database.name + "-wal")),
            "commits": store.commits,
        },
        "log": str(config.paths.log_file),
        "degraded": degraded,
    }


def _usage(pid: int) -> dict[str, float]:
    try:
        process = psutil.Process(pid)
        times = process.cpu_times()
        return {
            "rss_mb": round(process.memory_info().rss / 1e6, 1),
            "cpu_s": round(times.user + times.system, 2),
        }
    except psutil.Error:
        return {}


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
