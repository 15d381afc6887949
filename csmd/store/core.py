"""The store: one writer with group commit, readers with deadlines.

A write is a function that reads, decides and writes on the writer's connection; it returns after its commit, so an
acknowledged write is on the disk. Waiting writes share one transaction and one fsync; a failing one is undone alone.
Readers cannot write. The lane "hook" is for hooks only, so that no long search delays them, and "status" for the
daemon's state, which is requested when something else takes long. Every accepted request is answered, whatever fails or
closes. A file that is damaged, or was deleted or replaced while open, takes no more writes, so that hooks keep their
events; csmd never silently starts a new one.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import apsw

from csmd.errors import Damaged, Displaced, IndexDamaged, Refused, SchemaTooNew, StoreError
from csmd.paths import is_there
from csmd.store import backup, schema_migrations
from csmd.store.cipher import has_key
from csmd.store.sqlite import (
    BUSY_TIMEOUT_MS,
    REPAIR_HINT,
    Rows,
    as_store_error,
    cleanse,
    close_quietly,
    connect,
    open_rows,
    store_errors,
)

T = TypeVar("T")
Lane = Literal["hook", "main", "status"]
#: What happened to the file at the path of the open one; "" if it is the same.
Displacement = Literal["", "gone", "replaced"]

LANES: tuple[Lane, ...] = ("hook", "main", "status")
QUEUE_LIMIT = 2000
GROUP_LIMIT = 256
#: A truncating checkpoint blocks the writer while it waits for readers, so it may not wait long.
CHECKPOINT_PATIENCE_MS = 20
#: The largest write-ahead log at the start of a background write: with hooks and one long write it stays below 256 MB.
LOG_LIMIT_BYTES = 64 << 20
#: Seconds that reads wait while the log is emptied.
MAX_READ_WAIT_S = 0.5
#: Seconds between two attempts to empty the log.
EMPTYING_RETRY_S = 0.02
#: Seconds that reads run before they wait again.
READ_WINDOW_S = 0.1
#: Seconds that the background tries to empty the log.
MAX_EMPTYING_S = 30.0
#: Seconds that one write of several items takes at most; a single item may take longer.
SHORT_WRITE_S = 0.003
#: Seconds that the background pauses at most, and never longer than it worked before.
MAX_PAUSE_S = 0.02
#: Seconds of work below which the background does not pause: so many pauses would cost more than they help.
MIN_WORK_S = 0.002
#: Seconds that others wait for, plus the longest step.
BRIEF_RUN_S = 0.01


@dataclass(slots=True)
class _Task:
    run: Callable[[Rows], Any]
    future: Future[Any]
    deadline_at: float | None = None


class _Mailbox:
    """Owns the tasks for one thread: `close` refuses new ones, and every accepted task is still delivered."""

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._tasks: deque[_Task] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def _is_full(self) -> bool:
        return self._limit is not None and len(self._tasks) >= self._limit

    def add(self, task: _Task, *, wait: bool = False) -> None:
        """Adds a task; raises Refused when closed, or when full unless it is to `wait`."""
        with self._changed:
            if wait:
                self._changed.wait_for(lambda: self._closed or not self._is_full())
            if self._closed:
                raise Refused("the store is closing")
            if self._is_full():
                raise Refused(f"{self._limit} writes are waiting already")
            self._tasks.append(task)
            self._changed.notify_all()

    def next_tasks(self, limit: int) -> list[_Task]:
        """Returns the next tasks, at least one; [] when closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or bool(self._tasks))
            tasks = [self._tasks.popleft() for _ in range(min(limit, len(self._tasks)))]
            self._changed.notify_all()
            return tasks

    def close(self) -> None:
        """Refuses tasks from now on."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class Store:
    """Owns the database file's connections and threads; `close` finishes the queued work and joins them."""

    def __init__(self, path: Path, *, now: str, vfs: str = "") -> None:
        self.path = path
        self.commits = 0
        self.hook_priority = HookPriority()
        #: What a read or a write found wrong with the file; "" for nothing.
        self.damage = ""
        #: Whether writes are refused because of that damage.
        self.is_read_only = False
        #: The disk's error at the latest write; "" if the write succeeded.
        self.last_write_error = ""
        backup.refuse_lost_database(path)
        _make_private(path)
        if path.stat().st_size:
            # Before any write: a newer csmd's or another program's database is not touched.
            with open_rows(path, readonly=False, vfs=vfs, inspect_only=True) as present:
                _refuse_newer(present, path)
        with contextlib.ExitStack() as cleanup:

            def open_connection(*, readonly: bool) -> apsw.Connection:
                connection = connect(path, readonly=readonly, vfs=vfs)
                cleanup.callback(close_quietly, connection)
                return connection

            writer = open_connection(readonly=False)
            rows = Rows(writer)
            self.is_encrypted = has_key(writer)
            self.migrated = schema_migrations.migrate(rows, now=now, backup=backup.make_pre_migration_path(path))
            self.hash_key = _hash_key(rows, path)
            self._maintenance = open_connection(readonly=False)
            self._maintenance.set_busy_timeout(CHECKPOINT_PATIENCE_MS)
            self._maintaining = threading.Lock()
            self._is_reading = threading.Event()
            self._is_reading.set()
            self._writes = _Mailbox(QUEUE_LIMIT)
            self._writer = threading.Thread(target=self._write_loop, args=(writer,), name="csmd-writer")
            self._reads = {lane: _Mailbox() for lane in LANES}
            self._readers = {
                lane: threading.Thread(
                    target=self._read_loop,
                    args=(open_connection(readonly=True), tasks, lane),
                    name=f"csmd-reader-{lane}",
                )
                for lane, tasks in self._reads.items()
            }
            cleanup.pop_all()
        self._identity = _read_file_identity(path)
        self._is_rescue_noted = False
        self._rescued_commits = -1
        """The number of commits in the copy of a deleted or replaced database; -1 if there is no copy."""
        for thread in (self._writer, *self._readers.values()):
            thread.start()

    @property
    def takes_writes(self) -> bool:
        """Whether a write would be kept: the file is sound and still at its path. Reads the disk."""
        return not self.is_read_only and not self.displacement()

    def displacement(self) -> Displacement:
        """Whether the open file is still at its path; "" if it is. Reads the disk; may be called from any thread."""
        try:
            return "" if _read_file_identity(self.path) == self._identity else "replaced"
        except OSError:
            return "gone"

    def rescue(self, *, now: str) -> Path | None:
        """Copies a database that was deleted or replaced while open into the backups, once; None if not needed.

        Raises StoreError if the disk refuses. If the directory was replaced too (its disk was unmounted), the copy is
        made only in a directory that belongs to the user and holds no database.
        """
        if not self.displacement():
            self._forget_rescue()
            return None
        target = backup.make_backup_path(self.path, now=now)
        if self.is_rescued or not (self._is_directory_unchanged() or self._is_directory_free()):
            return None
        with self._maintaining:
            commits = self.commits
            self._is_rescue_noted = True
            # First: a kill before the copy leaves a note without a copy, which is harmless.
            backup.record_rescue(self.path, target)
            backup.make_backup(self.path, target, rows=Rows(self._maintenance))
        self._rescued_commits = commits
        return target

    @property
    def is_rescued(self) -> bool:
        """Whether the database was deleted or replaced while open and a copy of everything in it was made."""
        return self._rescued_commits == self.commits

    def _forget_rescue(self) -> None:
        """Deletes the note of a copy once the database is at its path again."""
        if not self._is_rescue_noted:
            return
        with self._maintaining:  # waits for a note that is being written
            backup.record_open_files(self.path)
            self._is_rescue_noted = False
            self._rescued_commits = -1

    def _is_directory_unchanged(self) -> bool:
        try:
            return _read_file_identity(self.path.parent)[:2] == self._identity[2:]
        except OSError:
            return False

    def _is_directory_free(self) -> bool:
        """Whether the directory now at the path belongs to the user and has no database."""
        try:
            return self.path.parent.lstat().st_uid == os.getuid() and not is_there(self.path)
        except OSError:
            return False

    def submit(self, run: Callable[[Rows], T], *, wait: bool = False) -> Future[T]:
        """Queues a write; the future resolves after its commit.

        Raises Refused when the store is closing, or when the queue or the write-ahead log is full and the caller does
        not `wait`.
        """
        self._refuse_when_damaged()
        if wait and threading.current_thread() not in self._readers.values():  # a reader would wait for its own read
            self._bound_log()
        future: Future[T] = Future()
        self._writes.add(_Task(run, future), wait=wait)
        return future

    def write(self, run: Callable[[Rows], T]) -> T:
        """Runs a write and waits for its commit; background callers wait for room in the queue.

        Raises Refused if the store closes before the commit, and inside another write, which would wait for itself.
        """
        if threading.current_thread() is self._writer:
            raise Refused("a write cannot wait for another write", hint="use the rows that the write was given")
        self.hook_priority.give_way()
        return self.submit(run, wait=True).result()

    def submit_read(self, run: Callable[[Rows], T], *, lane: Lane, deadline_s: float | None = None) -> Future[T]:
        """Queues a read on `lane`; it sees one snapshot and is interrupted after `deadline_s`."""
        future: Future[T] = Future()
        deadline_at = None if deadline_s is None else time.monotonic() + deadline_s
        self._reads[lane].add(_Task(run, future, deadline_at))
        return future

    def read(self, run: Callable[[Rows], T], *, lane: Lane = "main", deadline_s: float | None = None) -> T:
        """Runs a read and waits for it; raises Refused inside another read of the lane, which would wait for itself."""
        if threading.current_thread() is self._readers[lane]:
            raise Refused("a read cannot wait for another read", hint="use the rows that the read was given")
        if lane == "main":
            self.hook_priority.give_way()
        return self.submit_read(run, lane=lane, deadline_s=deadline_s).result()

    def checkpoint(self, *, truncate: bool = False) -> int:
        """Moves the write-ahead log into the database, off the writer's thread, and returns the pages left in the log.

        -1 if a reader or the writer blocked part of it.
        """
        with store_errors(self.path), self._maintaining:
            try:
                pages, moved = self._maintenance.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
                if truncate:  # blocks the writer, so only for the pages added since
                    pages, moved = self._maintenance.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            except apsw.BusyError:
                return -1
        return int(max(0, pages - moved))

    def _bound_log(self) -> None:
        """Empties the write-ahead log if it has grown too large; raises StoreError if the disk refuses.

        Continuous reads would keep the log for ever, so reads wait for a moment each time, except those of hooks.
        """
        patience = time.monotonic() + MAX_EMPTYING_S
        while self._log_bytes() > LOG_LIMIT_BYTES and time.monotonic() < patience:
            until = time.monotonic() + MAX_READ_WAIT_S
            self._is_reading.clear()
            try:
                while self.checkpoint(truncate=True) < 0 and time.monotonic() < until:
                    time.sleep(EMPTYING_RETRY_S)
            finally:
                self._is_reading.set()
            time.sleep(READ_WINDOW_S if self._log_bytes() > LOG_LIMIT_BYTES else 0)

    def _log_bytes(self) -> int:
        try:
            return self.path.with_name(f"{self.path.name}-wal").stat().st_size
        except OSError:
            return 0

    def shrink(self) -> None:
        """Frees the memory that every connection caches."""
        self.write(_shrink)
        for lane in LANES:
            self.read(_shrink, lane=lane)

    def cleanse(self) -> bool:
        """Rewrites the database file without what was deleted from it; False if the log could not be emptied.

        Writes wait until it is done, at most for SQLite's busy timeout.
        """
        with store_errors(self.path), self._maintaining:
            try:
                return cleanse(self._maintenance, self.path.parent, patience_ms=BUSY_TIMEOUT_MS)
            finally:
                self._maintenance.set_busy_timeout(CHECKPOINT_PATIENCE_MS)

    def close(self) -> None:
        """Finishes the queued work, then ends every thread and connection; raises Refused on a store's thread."""
        threads = (self._writer, *self._readers.values())
        if threading.current_thread() in threads:
            raise Refused("the store cannot be closed from inside a read or a write")
        self._writes.close()
        for tasks in self._reads.values():
            tasks.close()
        for thread in threads:
            thread.join()
        with self._maintaining:
            close_quietly(self._maintenance)

    def _write_loop(self, connection: apsw.Connection) -> None:
        rows = Rows(connection)
        while group := self._writes.next_tasks(GROUP_LIMIT):
            # Tasks cancelled before their turn are left out; from here on none can be cancelled.
            self._commit_group(rows, [task for task in group if task.future.set_running_or_notify_cancel()])
        close_quietly(connection)

    def _commit_group(self, rows: Rows, group: list[_Task]) -> None:
        outcomes: list[tuple[_Task, Any, BaseException | None]] = []
        try:
            self._refuse_displaced()
            self._forget_rescue()
            with rows.transaction(write=True):
                for task in group:
                    rows.run("savepoint task")
                    try:
                        result = task.run(rows)
                    except BaseException as error:
                        # The disk may have ended the whole transaction; then no write of the group happened.
                        if not rows.connection.in_transaction:
                            raise
                        rows.run("rollback to task")
                        outcomes.append((task, None, error))
                    else:
                        outcomes.append((task, result, None))
                    rows.run("release task")
            self._refuse_displaced()  # a commit into a file that is no longer at its path is not acknowledged
            self.commits += 1
            self.last_write_error = ""
        except BaseException as error:  # noqa: BLE001 - the waiting callers get it
            failure = self._record_failure(error)
            for task in group:
                task.future.set_exception(failure)
            return
        for task, result, raised in outcomes:
            if raised is None:
                task.future.set_result(result)
            else:
                task.future.set_exception(self._record_failure(raised))

    def _read_loop(self, connection: apsw.Connection, tasks: _Mailbox, lane: Lane) -> None:
        rows = Rows(connection)
        while taken := tasks.next_tasks(1):
            if lane != "hook":
                self._is_reading.wait(MAX_READ_WAIT_S)
            for task in taken:
                if task.future.set_running_or_notify_cancel():
                    self._perform_read(rows, task)
        close_quietly(connection)

    def _perform_read(self, rows: Rows, task: _Task) -> None:
        remaining_s = None if task.deadline_at is None else task.deadline_at - time.monotonic()
        try:
            # The deadline is inside: an interrupted rollback would leave the lane in this transaction.
            with rows.transaction(write=False), rows.deadline(remaining_s):
                result = task.run(rows)
        except BaseException as error:  # noqa: BLE001 - given to whoever waits for it
            task.future.set_exception(self._record_failure(error))
        else:
            task.future.set_result(result)

    def _record_failure(self, error: BaseException) -> BaseException:
        """Records what an error says about the file or the disk, and returns the error for the caller of the task."""
        failure = as_store_error(error, self.path) if isinstance(error, apsw.Error) else error
        is_from_disk = isinstance(failure.__cause__ or error, apsw.Error)
        if is_from_disk and type(failure) is StoreError and failure.hint:  # no other write would succeed either
            self.last_write_error = failure.what
        if isinstance(failure, Damaged):
            self.damage = self.damage or failure.what
            self.is_read_only = self.is_read_only or not isinstance(failure, IndexDamaged)
        return failure

    def _refuse_when_damaged(self) -> None:
        if self.is_read_only:
            raise Damaged(self.damage, hint=REPAIR_HINT)

    def _refuse_displaced(self) -> None:
        if displacement := self.displacement():
            what = "is gone" if displacement == "gone" else "is another file now"
            raise Displaced(
                f"{self.path} {what}; new captures wait in the spool",
                hint="`csmd status` says what to do",
            )


def _read_file_identity(path: Path) -> tuple[int, int, int, int]:
    """Returns (device, inode) of a file and of its directory; raises OSError if it is missing."""
    file, folder = path.stat(), path.parent.stat()
    return file.st_dev, file.st_ino, folder.st_dev, folder.st_ino


def _refuse_newer(rows: Rows, path: Path) -> None:
    """Raises SchemaTooNew, naming a usable backup, for a newer csmd's database; otherwise as `schema_migrations.find_pending`."""
    try:
        schema_migrations.find_pending(rows)
    except SchemaTooNew as error:
        copy = backup.find_newest_compatible(path)
        if copy is None:
            what = f"{error.what}; it has no backup of this version"
            raise SchemaTooNew(what, hint="upgrade csmd") from error
        raise SchemaTooNew(error.what, hint=f"upgrade csmd, or run `csmd restore {copy}`") from error


def _hash_key(rows: Rows, path: Path) -> bytes:
    """Returns the key of the hashes, created with the database; raises Damaged if a used database lacks it."""
    if not rows.value("select count(*) from meta where key = 'hash_key'"):
        if rows.value("select count(*) from turns") or rows.value("select count(*) from tombstones"):
            raise Damaged(f"{path} is damaged: the key of its hashes is missing", hint=REPAIR_HINT)
        with rows.transaction(write=True):
            rows.run("insert into meta (key, value) values ('hash_key', :key)", key=os.urandom(32))
    return bytes(rows.value("select value from meta where key = 'hash_key'"))


def _make_private(path: Path) -> None:
    """Creates the database and SQLite's files next to it with mode 0600 from the first byte."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        # By name: closing a descriptor of the file would drop this process's locks on it.
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.chmod(f"{path}{suffix}", 0o600)  # noqa: PTH101
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}", hint="check that the directory exists and is yours") from error


def _shrink(rows: Rows) -> None:
    rows.all("pragma shrink_memory")


def within_short_write(items: Iterable[T]) -> Iterator[T]:
    """Yields items, at least one, until SHORT_WRITE_S have passed; the rest is left to the next write."""
    began = time.thread_time()
    for item in items:
        yield item
        if time.thread_time() - began > SHORT_WRITE_S:
            return


class HookPriority:
    """Pauses background work while a hook is answered: the socket's thread sets it, the background checks it."""

    def __init__(self) -> None:
        self._free = threading.Event()
        self._free.set()
        self._resumed = time.monotonic()

    def set_answering(self, is_answering: bool) -> None:
        """Sets whether a hook is being answered."""
        if is_answering == self._free.is_set():
            (self._free.clear if is_answering else self._free.set)()

    def give_way(self) -> None:
        """Waits while a hook is answered, at most MAX_PAUSE_S."""
        if self._free.is_set():
            return
        worked = time.monotonic() - self._resumed
        if worked >= MIN_WORK_S:
            self._free.wait(min(worked, MAX_PAUSE_S))
            self._resumed = time.monotonic()

    def giving_way(self, items: Iterable[T]) -> Iterator[T]:
        """Yields the items, and pauses for hooks before each."""
        for item in items:
            self.give_way()
            yield item


@dataclass(frozen=True, slots=True)
class Finished(Generic[T]):
    """The result of long work."""

    value: T


def run_briefly(steps: Generator[None, None, T]) -> Finished[T] | None:
    """Runs steps for BRIEF_RUN_S, at least one; returns None while there are more."""
    until = time.monotonic() + BRIEF_RUN_S
    try:
        next(steps)
        while time.monotonic() < until:
            next(steps)
    except StopIteration as end:
        return Finished(end.value)
    return None


def run_to_end(steps: Generator[None, None, T]) -> T:
    """Runs all steps without pausing, for a connection that nothing else waits for."""
    while (ended := run_briefly(steps)) is None:
        pass
    return ended.value
