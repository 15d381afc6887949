"""The store: one writer thread with group commit, two read-only readers with deadlines.

A write is a function that reads, decides and writes on the writer's connection; it returns
after its commit, so that an acknowledgement means it is on the disk. Writes that wait
together share one transaction and one fsync; one that fails is undone alone. Readers cannot
write. The lane "hook" is for hooks only, so that no long search stands before them.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import apsw

from csmd.errors import Refused, StoreError
from csmd.store import migrate
from csmd.store.sqlite import Rows, connect, explained

T = TypeVar("T")
Lane = Literal["hook", "main"]

QUEUE_LIMIT = 2000
GROUP_LIMIT = 256


@dataclass(slots=True)
class _Task:
    run: Callable[[Rows], Any]
    future: Future[Any]
    deadline_at: float | None = None


class Store:
    """Owns the database file's connections and threads; `close` drains and joins them."""

    def __init__(self, path: Path, *, now: str) -> None:
        self.path = path
        writer = connect(path, readonly=False)
        os.chmod(path, 0o600)  # noqa: PTH101
        rows = Rows(writer)
        self.migrated = migrate.migrate(rows, now=now, backup=path.with_suffix(".before-migration.db"))
        if not rows.value("select count(*) from meta where key = 'hash_key'"):
            with rows.transaction(write=True):
                rows.run("insert into meta (key, value) values ('hash_key', :key)", key=os.urandom(32))
        self.hash_key: bytes = rows.value("select value from meta where key = 'hash_key'")
        self.commits = 0
        self._closing = False
        self._writes: queue.Queue[_Task | None] = queue.Queue(QUEUE_LIMIT)
        self._maintenance = connect(path, readonly=False)
        self._threads = [threading.Thread(target=self._write_loop, args=(writer,), name="csmd-writer")]
        self._reads: dict[Lane, queue.Queue[_Task | None]] = {"hook": queue.Queue(), "main": queue.Queue()}
        for lane, tasks in self._reads.items():
            reader = connect(path, readonly=True)
            self._threads.append(
                threading.Thread(target=self._read_loop, args=(reader, tasks), name=f"csmd-reader-{lane}")
            )
        for thread in self._threads:
            thread.start()

    def submit(self, run: Callable[[Rows], T]) -> Future[T]:
        """Queues a write; the future resolves after its commit. Refused when the queue is full or closing."""
        if self._closing:
            raise Refused("the store is closing")
        future: Future[T] = Future()
        try:
            self._writes.put_nowait(_Task(run, future))
        except queue.Full:
            raise Refused(f"{QUEUE_LIMIT} writes are waiting already") from None
        return future

    def write(self, run: Callable[[Rows], T]) -> T:
        """Performs a write and waits for its commit; background callers wait for room in the queue."""
        if self._closing:
            raise Refused("the store is closing")
        future: Future[T] = Future()
        self._writes.put(_Task(run, future))
        return future.result()

    def submit_read(self, run: Callable[[Rows], T], *, lane: Lane, deadline_s: float | None = None) -> Future[T]:
        """Queues a read on `lane`; it sees one snapshot and is interrupted `deadline_s` from now."""
        if self._closing:
            raise Refused("the store is closing")
        future: Future[T] = Future()
        deadline_at = None if deadline_s is None else time.monotonic() + deadline_s
        self._reads[lane].put(_Task(run, future, deadline_at))
        return future

    def read(self, run: Callable[[Rows], T], *, lane: Lane = "main", deadline_s: float | None = None) -> T:
        """Performs a read and waits for it."""
        return self.submit_read(run, lane=lane, deadline_s=deadline_s).result()

    def checkpoint(self, *, truncate: bool = False) -> int:
        """Moves the write-ahead log into the database, off the writer's thread; the pages left in the log."""
        try:
            mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate else apsw.SQLITE_CHECKPOINT_PASSIVE
            pages, moved = self._maintenance.wal_checkpoint(mode=mode)
        except apsw.BusyError:
            return -1
        except apsw.Error as error:
            raise explained(error, self.path) from error
        return max(0, pages - moved)

    def close(self) -> None:
        """Performs what is queued, then ends every thread and connection."""
        if self._closing:
            return
        self._closing = True
        self._writes.put(None)
        for tasks in self._reads.values():
            tasks.put(None)
        for thread in self._threads:
            thread.join()
        self._maintenance.close()

    def _write_loop(self, connection: apsw.Connection) -> None:
        rows = Rows(connection)
        ending = False
        while not ending:
            group: list[_Task] = []
            task = self._writes.get()
            while True:
                if task is None:
                    ending = True
                else:
                    group.append(task)
                if len(group) >= GROUP_LIMIT:
                    break
                try:
                    task = self._writes.get_nowait()
                except queue.Empty:
                    break
            if group:
                self._commit_group(rows, group)
        connection.close()

    def _commit_group(self, rows: Rows, group: list[_Task]) -> None:
        outcomes: list[tuple[_Task, Any, BaseException | None]] = []
        try:
            with rows.transaction(write=True):
                for task in group:
                    rows.run("savepoint task")
                    try:
                        result = task.run(rows)
                    except BaseException as error:
                        # The disk may have ended the whole transaction: then nobody's write has happened.
                        if not rows.connection.in_transaction:
                            raise
                        rows.run("rollback to task")
                        outcomes.append((task, None, error))
                    else:
                        outcomes.append((task, result, None))
                    rows.run("release task")
            self.commits += 1
        except BaseException as error:  # noqa: BLE001 - given to whoever waits for it
            failure = explained(error, self.path) if isinstance(error, apsw.Error) else error
            for task in group:
                task.future.set_exception(failure)
            return
        for task, result, raised in outcomes:
            if raised is None:
                task.future.set_result(result)
            else:
                task.future.set_exception(explained(raised) if isinstance(raised, apsw.Error) else raised)

    def _read_loop(self, connection: apsw.Connection, tasks: queue.Queue[_Task | None]) -> None:
        rows = Rows(connection)
        while (task := tasks.get()) is not None:
            left = None if task.deadline_at is None else task.deadline_at - time.monotonic()
            try:
                with rows.within(left), rows.transaction(write=False):
                    result = task.run(rows)
            except BaseException as error:  # noqa: BLE001 - given to whoever waits for it
                task.future.set_exception(explained(error) if isinstance(error, apsw.Error) else error)
            else:
                task.future.set_result(result)
        connection.close()


def integrity(rows: Rows) -> list[str]:
    """What is wrong with the database's structure and its full-text indexes; empty when sound."""
    problems = [str(text) for (text,) in rows.all("pragma quick_check(5)") if text != "ok"]
    for table in ("turns_fts", "memories_fts"):
        try:
            rows.run(f"insert into {table} ({table}, rank) values ('integrity-check', 1)")  # noqa: S608
        except StoreError as error:
            problems.append(f"{table}: {error.what}")
    return problems
