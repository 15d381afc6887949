"""The store's promises: acknowledged means on the disk, one failure is one failure, nobody waits for ever."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

import csmd
from csmd.daemon.server import Exchange, WaitingRoom
from csmd.errors import Damaged, DeadlineExceeded, Refused, StoreError
from csmd.store import activity, core, fulltext, sqlite, vectors
from csmd.store.core import HookPriority, Store, within_short_write
from csmd.store.integrity import check_database
from csmd.store.sqlite import Rows
from csmd.wire import Reply, Request

PACKAGE = str(Path(csmd.__file__).parent.parent)
FOR_EVER = "with recursive c (x) as (select 1 union all select x + 1 from c) select count(*) from c"
PATIENCE_S = 30.0


def bump(name: str) -> Callable[[Rows], None]:
    return lambda rows: activity.increment_counters(rows, [(name, 1)])


def running(statement: str) -> Callable[[Rows], int]:
    return lambda rows: rows.run(statement)


@contextmanager
def held(store: Store, *, lane: core.Lane | None = None) -> Iterator[None]:
    """Keeps the writer, or a lane's reader, inside one task while the block runs."""
    inside, release = threading.Event(), threading.Event()

    def wait(rows: Rows) -> None:
        inside.set()
        assert release.wait(PATIENCE_S)

    done = store.submit(wait) if lane is None else store.submit_read(wait, lane=lane)
    assert inside.wait(PATIENCE_S)
    try:
        yield
    finally:
        release.set()
        done.result(PATIENCE_S)


@pytest.mark.invariant("A write is whole, and returns after its commit; one that fails is undone alone")
def test_a_write_is_visible_to_other_connections_when_it_returns(store: Store, path: Path) -> None:
    store.write(bump("a"))
    other = Rows(sqlite.connect(path, readonly=True))
    assert activity.read_counters(other) == {"a": 1}
    assert store.read(activity.read_counters) == {"a": 1}
    other.connection.close()


def test_waiting_writes_share_one_commit(store: Store) -> None:
    with held(store):
        waiting = [store.submit(bump("a")) for _ in range(50)]
    assert [future.result(PATIENCE_S) for future in waiting] == [None] * 50
    assert store.commits == 2
    assert store.read(activity.read_counters) == {"a": 50}


def test_more_writes_than_a_group_holds_are_all_performed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "GROUP_LIMIT", 3)
    with held(store):
        waiting = [store.submit(bump("a")) for _ in range(10)]
    for future in waiting:
        future.result(PATIENCE_S)
    assert store.read(activity.read_counters) == {"a": 10}


@pytest.mark.invariant("A write is whole, and returns after its commit; one that fails is undone alone")
def test_a_failing_write_is_rolled_back_alone(store: Store) -> None:
    def half(rows: Rows) -> None:
        bump("half")(rows)
        raise ValueError("in the middle")

    with held(store):
        before = store.submit(bump("before"))
        failing = store.submit(half)
        breaking = store.submit(running("insert into nowhere values (1)"))
        after = store.submit(bump("after"))
    assert before.result(PATIENCE_S) is None and after.result(PATIENCE_S) is None
    with pytest.raises(ValueError, match="in the middle"):
        failing.result(PATIENCE_S)
    with pytest.raises(StoreError, match="nowhere"):
        breaking.result(PATIENCE_S)
    assert store.read(activity.read_counters) == {"before": 1, "after": 1}


@pytest.mark.invariant("A write is whole, and returns after its commit; one that fails is undone alone")
def test_a_failing_commit_fails_every_write_of_its_group(store: Store) -> None:
    def refused_at_commit(rows: Rows) -> None:
        rows.run("pragma defer_foreign_keys = on")
        rows.run("insert into session_turn (session_seq, ordinal, turn_seq) values (999, 1, 999)")

    with held(store):
        group = [store.submit(bump("a")), store.submit(refused_at_commit), store.submit(bump("b"))]
    for future in group:
        with pytest.raises(StoreError, match="FOREIGN KEY"):
            future.result(PATIENCE_S)
    store.write(bump("c"))
    assert store.read(activity.read_counters) == {"c": 1}


@pytest.mark.invariant("Nothing captured is lost. An ack means committed; without one the event is in the spool")
def test_a_transaction_ended_by_the_disk_fails_every_write_of_its_group(store: Store) -> None:
    def lose_the_transaction(rows: Rows) -> None:
        rows.run("rollback")
        raise StoreError("the disk gave up")

    def lose_it_and_say_nothing(rows: Rows) -> None:
        rows.run("rollback")

    for losing in (lose_the_transaction, lose_it_and_say_nothing):
        with held(store):
            group = [store.submit(bump("a")), store.submit(losing), store.submit(bump("b"))]
        for future in group:
            with pytest.raises(StoreError):
                future.result(PATIENCE_S)
    store.write(bump("c"))
    assert store.read(activity.read_counters) == {"c": 1}


def test_on_a_full_disk_a_write_says_what_to_do_and_the_next_works_when_there_is_room(store: Store) -> None:
    fill = "insert into meta (key, value) values ('big', zeroblob(4000000))"
    store.write(running("pragma max_page_count = 150"))
    with held(store):
        group: list[Future[Any]] = [store.submit(bump("a")), store.submit(running(fill)), store.submit(bump("b"))]
    told = [future.exception(PATIENCE_S) for future in group]
    assert isinstance(told[1], StoreError)
    assert "free some space" in told[1].hint
    done = {name: 1 for name, error in zip("a-b", told, strict=True) if error is None}
    assert store.read(activity.read_counters) == done
    store.write(running("pragma max_page_count = 100000"))
    store.write(running(fill))
    assert store.write(check_database) == []


def test_a_full_queue_refuses_hooks_and_lets_the_background_wait(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "QUEUE_LIMIT", 2)
    store = Store(path, now="")
    with held(store):
        waiting = [store.submit(bump("a")), store.submit(bump("a"))]
        with pytest.raises(Refused, match="2 writes are waiting"):
            store.submit(bump("a"))
        patient = threading.Thread(target=store.write, args=(bump("patient"),))
        patient.start()
    patient.join(PATIENCE_S)
    assert not patient.is_alive()
    assert all(future.exception(PATIENCE_S) is None for future in waiting)
    assert store.read(activity.read_counters) == {"a": 2, "patient": 1}
    store.close()


def test_a_write_waiting_for_room_is_refused_when_the_store_closes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "QUEUE_LIMIT", 1)
    store = Store(path, now="")
    outcome: Future[None] = Future()

    def write() -> None:
        try:
            outcome.set_result(store.write(bump("late")))
        except StoreError as error:
            outcome.set_exception(error)

    with held(store):
        queued = store.submit(bump("queued"))
        writing = threading.Thread(target=write)
        writing.start()
        closing = threading.Thread(target=store.close)
        closing.start()
        error = outcome.exception(PATIENCE_S)
    assert isinstance(error, Refused)
    closing.join(PATIENCE_S)
    writing.join(PATIENCE_S)
    assert queued.result(PATIENCE_S) is None
    store.close()


def test_reads_and_writes_during_closing_all_complete_or_are_refused(tmp_path: Path) -> None:
    for attempt in range(5):
        path = tmp_path / f"{attempt}.db"
        store = Store(path, now="")
        futures: list[Future[None]] = []
        acknowledged: list[int] = []
        start = threading.Barrier(5)

        def submit(
            store: Store = store, futures: list[Future[None]] = futures, start: threading.Barrier = start
        ) -> None:
            start.wait(PATIENCE_S)
            try:
                while True:
                    futures.append(store.submit(bump("a")))
                    store.submit_read(activity.read_counters, lane="hook").add_done_callback(Future.result)
            except Refused:
                return

        def write(
            store: Store = store, acknowledged: list[int] = acknowledged, start: threading.Barrier = start
        ) -> None:
            start.wait(PATIENCE_S)
            try:
                while True:
                    store.write(bump("a"))
                    acknowledged.append(1)
            except Refused:
                return

        threads = [threading.Thread(target=target) for target in (submit, submit, write, write)]
        for thread in threads:
            thread.start()
        start.wait(PATIENCE_S)
        store.close()
        for thread in threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "somebody waits for ever"
        refused = sum(isinstance(future.exception(PATIENCE_S), Refused) for future in futures)
        kept = Rows(sqlite.connect(path, readonly=True))
        assert activity.read_counters(kept).get("a", 0) == len(acknowledged) + len(futures) - refused
        kept.connection.close()


def test_a_closed_store_refuses_and_closing_twice_is_harmless(store: Store) -> None:
    store.close()
    store.close()
    for attempt in (store.submit, store.write, store.read):
        with pytest.raises(Refused, match="closing"):
            attempt(activity.read_counters)
    with pytest.raises(StoreError):
        store.checkpoint()


def test_close_performs_the_queued_writes(store: Store, path: Path) -> None:
    with held(store):
        waiting = [store.submit(bump("a")) for _ in range(600)]
        closing = threading.Thread(target=store.close)
        closing.start()
    closing.join(PATIENCE_S)
    assert all(future.exception(PATIENCE_S) is None for future in waiting)
    again = Store(path, now="")
    assert again.read(activity.read_counters) == {"a": 600}
    again.close()


def test_a_write_inside_a_write_is_refused_instead_of_waiting_for_itself(store: Store) -> None:
    with pytest.raises(Refused, match="wait for another"):
        store.write(lambda rows: store.write(bump("a")))
    with pytest.raises(Refused, match="wait for another"):
        store.read(lambda rows: store.read(activity.read_counters, lane="main"), lane="main")
    with pytest.raises(Refused, match="inside"):
        store.write(lambda rows: store.close())
    assert store.read(lambda rows: store.read(activity.read_counters, lane="main"), lane="hook") == {}


def test_what_follows_a_commit_may_queue_a_write_but_not_wait_for_one(store: Store) -> None:
    """Callbacks run on the writer's thread."""
    outcome: Future[str] = Future()
    queued: list[Future[None]] = []

    def after(_: Future[None]) -> None:
        queued.append(store.submit(bump("next")))
        try:
            store.write(bump("never"))
        except Refused as error:
            outcome.set_result(error.what)

    with held(store):
        store.submit(bump("a")).add_done_callback(after)
    assert "wait" in outcome.result(PATIENCE_S)
    queued[0].result(PATIENCE_S)
    assert store.read(activity.read_counters) == {"a": 1, "next": 1}


def test_a_cancelled_read_or_write_is_skipped(store: Store) -> None:
    with held(store):
        assert store.submit(bump("gone")).cancel()
        kept = store.submit(bump("kept"))
    with held(store, lane="main"):
        assert store.submit_read(activity.read_counters, lane="main").cancel()
    kept.result(PATIENCE_S)
    assert store.read(activity.read_counters) == {"kept": 1}


@pytest.mark.invariant("Readers cannot write, see one moment, end at their deadline, and never stand before a hook")
@pytest.mark.parametrize("lane", ["hook", "main"])
def test_a_read_is_stopped_at_its_deadline_and_the_next_one_works(store: Store, lane: core.Lane) -> None:
    for _ in range(3):
        with pytest.raises(DeadlineExceeded):
            store.read(lambda rows: rows.all(FOR_EVER), lane=lane, deadline_s=0.02)
        assert store.read(lambda rows: rows.value("select 7"), lane=lane, deadline_s=5.0) == 7
    assert store.read(lambda rows: rows.connection.in_transaction, lane=lane)


def test_a_deadline_that_passes_between_two_statements_stops_the_next(store: Store) -> None:
    def slow(rows: Rows) -> None:
        rows.value("select 1")
        end = time.monotonic() + 0.03
        while time.monotonic() < end:
            pass
        rows.all(FOR_EVER)

    with pytest.raises(DeadlineExceeded):
        store.read(slow, deadline_s=0.01)


def test_a_read_whose_deadline_passed_while_it_waited_is_never_begun(store: Store) -> None:
    begun: list[int] = []
    with held(store, lane="hook"):
        late = store.submit_read(lambda rows: begun.append(1), lane="hook", deadline_s=0.0)
    assert isinstance(late.exception(PATIENCE_S), DeadlineExceeded)
    assert not begun


@pytest.mark.invariant("Readers cannot write, see one moment, end at their deadline, and never stand before a hook")
def test_a_long_read_does_not_delay_a_hooks_read(store: Store) -> None:
    with held(store, lane="main"):
        assert store.read(lambda rows: rows.value("select 1"), lane="hook", deadline_s=5.0) == 1


def test_the_nearer_of_two_deadlines_counts_and_the_read_continues_after_the_inner_one(store: Store) -> None:
    def search(rows: Rows) -> list[object]:
        with pytest.raises(DeadlineExceeded), rows.deadline(0.01):
            rows.all(FOR_EVER)
        with rows.deadline(None):
            found = [rows.value("select 1")]
        with rows.deadline(10.0), pytest.raises(DeadlineExceeded):
            rows.all(FOR_EVER)
        with pytest.raises(DeadlineExceeded), rows.deadline(0.0):
            raise AssertionError("begun without time")
        return found

    found: list[object] = []

    def read(rows: Rows) -> None:
        found.extend(search(rows))
        rows.value("select 2")

    with pytest.raises(DeadlineExceeded):
        store.read(read, deadline_s=0.1)
    assert found == [1]


def test_a_deadline_never_stops_the_read_after_it(store: Store) -> None:
    """Deadlines that pass just as their read ends: an interrupt that comes late would hit the next read."""
    count = "with recursive c (x) as (select 1 union all select x + 1 from c where x < 300) select count(*) from c"
    chance = random.Random(4)
    for _ in range(200):
        first = store.submit_read(lambda rows: rows.all(count), lane="main", deadline_s=chance.uniform(0.0001, 0.0004))
        second = store.submit_read(lambda rows: rows.value(count), lane="main")
        assert first.exception(PATIENCE_S) is None or isinstance(first.exception(), DeadlineExceeded)
        assert second.result(PATIENCE_S) == 300


@pytest.mark.invariant("Readers cannot write, see one moment, end at their deadline, and never stand before a hook")
def test_a_reader_cannot_write(store: Store) -> None:
    for statement in (
        "insert into counters (name, value) values ('a', 1)",
        "create table mine (a)",
        "delete from meta",
        "drop table turns",
        "insert into passages_fts (passages_fts) values ('optimize')",
        "pragma user_version = 7",
    ):
        for lane in core.LANES:
            with pytest.raises(StoreError):
                store.read(running(statement), lane=lane)
    assert store.write(check_database) == []


@pytest.mark.invariant("Readers cannot write, see one moment, end at their deadline, and never stand before a hook")
def test_a_read_sees_one_snapshot(store: Store) -> None:
    def look(rows: Rows) -> list[dict[str, int]]:
        first = activity.read_counters(rows)
        store.write(bump("a"))
        return [first, activity.read_counters(rows)]

    assert store.read(look) == [{}, {}]
    assert store.read(activity.read_counters) == {"a": 1}


def test_a_read_that_handles_damage_still_returns(store: Store, path: Path) -> None:
    store.checkpoint(truncate=True)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(random.Random(1).randbytes(path.stat().st_size - 4096))

    def copes(rows: Rows) -> str:
        try:
            return str(rows.value("select count(*) from turns"))
        except Damaged:
            return "unknown"

    assert store.read(copes) == "unknown"


def test_a_value_that_cannot_be_stored_fails_its_own_write_alone(store: Store) -> None:
    with held(store):
        bad = [
            store.submit(bump("\ud800")),
            store.submit(lambda rows: activity.increment_counters(rows, [("a", 1 << 70)])),
        ]
        good = store.submit(bump("good"))
    assert all(future.exception(PATIENCE_S) is not None for future in bad)
    assert good.exception(PATIENCE_S) is None


def test_a_missing_parameter_is_an_error_and_not_null(store: Store) -> None:
    with pytest.raises(KeyError):
        store.read(lambda rows: rows.value("select :given, :forgotten", given=1))


def test_a_checkpoint_empties_the_log_and_lets_nobody_wait_behind_a_reader(store: Store, path: Path) -> None:
    log = path.with_name("csmd.db-wal")
    store.write(bump("a"))
    assert store.checkpoint(truncate=True) == 0
    assert log.stat().st_size == 0
    inside, release = threading.Event(), threading.Event()

    def hold_a_snapshot(rows: Rows) -> None:
        activity.read_counters(rows)
        inside.set()
        assert release.wait(PATIENCE_S)

    reading = store.submit_read(hold_a_snapshot, lane="main")
    assert inside.wait(PATIENCE_S)
    store.write(bump("a"))
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(store.checkpoint, truncate=True) for _ in range(2)]
        store.write(bump("a"))
        assert all(future.result(PATIENCE_S) != 0 for future in waiting)
    release.set()
    reading.result(PATIENCE_S)
    assert store.checkpoint() == 0
    assert store.checkpoint(truncate=True) == 0
    assert store.read(activity.read_counters) == {"a": 3}


@pytest.mark.invariant("The write-ahead log is bounded, whatever is written and read, and no hook waits for that")
def test_the_log_is_bounded_while_readers_follow_one_another(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core, "LOG_LIMIT_BYTES", 1 << 20)
    log, over = path.with_name("csmd.db-wal"), threading.Event()

    def read_on(lane: core.Lane) -> None:
        def look(rows: Rows) -> None:
            activity.read_counters(rows)
            over.wait(0.03)

        futures = [store.submit_read(look, lane=lane), store.submit_read(look, lane=lane)]
        while not over.is_set():  # the next one is there before one ends
            futures.pop(0).result(PATIENCE_S)
            futures.append(store.submit_read(look, lane=lane))
        for future in futures:
            future.result(PATIENCE_S)

    def write(rows: Rows) -> None:
        activity.increment_counters(rows, [("x" * 100_000, 1)])
        rows.run("delete from counters where name like 'x%'")

    lanes: tuple[core.Lane, ...] = ("main", "status", "hook")
    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read_on, lane) for lane in lanes]
        try:
            sizes = []
            for _ in range(200):
                store.write(write)
                assert store.submit(bump("hooks")).result(PATIENCE_S) is None
                sizes.append(log.stat().st_size)
        finally:
            over.set()
        for reader in readers:
            reader.result(PATIENCE_S)
    assert max(sizes) < 2 << 20
    assert store.read(activity.read_counters) == {"hooks": 200}


@pytest.mark.invariant("The database is readable by its owner alone")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_the_database_and_its_neighbours_are_private_whatever_the_umask(path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        store = Store(path, now="")
        store.write(bump("a"))
        modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
        store.close()
    finally:
        os.umask(before)
    assert modes == {"csmd.db": 0o600, "csmd.db-wal": 0o600, "csmd.db-shm": 0o600}


def test_a_database_that_others_could_read_is_closed_to_them(path: Path) -> None:
    Store(path, now="").close()
    path.chmod(0o644)
    Store(path, now="").close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_database_that_cannot_be_opened_says_what_to_do_and_leaves_nothing_open(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as error:
        Store(tmp_path / "nowhere" / "csmd.db", now="")
    assert "directory" in error.value.hint
    (tmp_path / "other.db").write_bytes(b"this is a letter, not a database" * 200)
    before = len(os.listdir("/dev/fd"))
    with pytest.raises(StoreError) as error:
        Store(tmp_path / "other.db", now="")
    assert "csmd repair" in error.value.hint
    assert len(os.listdir("/dev/fd")) == before


def test_two_stores_of_one_file_share_the_hash_key_and_see_each_others_writes(store: Store, path: Path) -> None:
    other = Store(path, now="")
    assert other.hash_key == store.hash_key
    assert len(store.hash_key) == 32
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(one.write, bump("a")) for _ in range(20) for one in (store, other)]:
            done.result(PATIENCE_S)
    assert store.read(activity.read_counters) == other.read(activity.read_counters) == {"a": 40}
    other.close()


def test_a_write_waits_for_another_program_and_says_so_when_that_takes_too_long(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = sqlite.connect(path, readonly=False)
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 300)
    store = Store(path, now="")
    other.execute("begin immediate")
    waiting = store.submit(bump("patient"))
    other.execute("commit")
    assert waiting.result(PATIENCE_S) is None
    other.execute("begin immediate")
    with pytest.raises(StoreError) as error:
        store.write(bump("late"))
    assert "another program" in error.value.what and error.value.hint.startswith("close")
    assert store.read(activity.read_counters) == {"patient": 1}
    other.execute("rollback")
    store.write(bump("after"))
    assert store.read(activity.read_counters) == {"patient": 1, "after": 1}
    store.close()
    other.close()


def test_integrity_reports_index_entries_and_vectors_without_a_row(store: Store) -> None:
    assert store.write(check_database) == []
    store.write(lambda rows: rows.run("insert into memories_fts (rowid, text) values (5, 'planted')"))
    assert [problem.split(":")[0] for problem in store.write(check_database)] == ["memories_fts"]
    store.write(lambda rows: rows.run("insert into memories_fts (memories_fts) values ('rebuild')"))

    def plant(rows: Rows) -> None:
        model = vectors.ensure_model(rows, "m", 4, now="")
        rows.run("insert into vectors (model_seq, kind, row_seq, start_at, end_at) values (1, 'passage', 9, 0, 1)")
        vectors.insert_vector(rows, "memory", model, 77, 0, b"\1\2\3\4")

    store.write(plant)
    assert len(store.write(check_database)) == 3


#: Writes until it is killed; says each row that was acknowledged.
WRITER = """
import sys, threading
from pathlib import Path
from csmd.conversation import Project, Turn
from csmd.store import projects, turns, vectors
from csmd.store.core import Store
store = Store(Path(sys.argv[1]), now="")
first = int(sys.argv[2])
def work(worker):
    number = first + worker
    while True:
        def write(rows):
            project = projects.ensure(rows, Project(key="k", root="/p", name="p", kind="path"), now="")
            model = vectors.ensure_model(rows, "m", 4, now="")
            turn = Turn(uuid=f"u{number}", session_id=f"s{worker}", kind="user", text=f"word{number} and more", at="2026-01-01T00:00:00.000Z")
            turns.add_turn(rows, turn, text_hash=str(number), host="claude", project=project, path="")
            seq = rows.value("select seq from turns where uuid = :uuid", uuid=turn.uuid)
            vectors.add_vectors(rows, "passage", model, [(seq, project, 0, 5, b"abcd")], reached=seq)
        store.write(write)
        sys.stdout.write(f"{number}\\n"); sys.stdout.flush()
        if number % 50 == 0:
            store.checkpoint()
        number += 2
for worker in (0, 1):
    threading.Thread(target=work, args=(worker,)).start()
"""


@pytest.mark.invariant("Nothing captured is lost. An ack means committed; without one the event is in the spool")
def test_a_writer_killed_at_any_point_loses_nothing_that_it_acknowledged(path: Path) -> None:
    chance = random.Random(11)
    acknowledged: set[int] = set()
    for killed in range(5):
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(killed * 1_000_000)],
            stdout=subprocess.PIPE, env={"PYTHONPATH": PACKAGE, "PATH": os.environ["PATH"]},
        )  # fmt: skip
        assert child.stdout is not None
        said = [int(child.stdout.readline()) for _ in range(chance.randint(1, 60))]
        end = time.monotonic() + chance.uniform(0, 0.004)
        while time.monotonic() < end:
            pass
        child.kill()
        said += [int(line) for line in child.stdout if line.endswith(b"\n")]
        child.stdout.close()
        child.wait(PATIENCE_S)
        acknowledged.update(said)
        store = Store(path, now="")
        assert store.write(check_database) == []
        stored = {int(uuid[1:]) for (uuid,) in store.read(lambda rows: rows.all("select uuid from turns"))}
        assert acknowledged <= stored
        reader = Rows(sqlite.connect(path, readonly=True))
        assert len(fulltext.text_hits(reader, "passage", [f"word{said[-1]}"], projects=None, limit=3)) == 1
        reader.connection.close()
        store.close()
    assert len(acknowledged) > 50


# --- Who goes first: a hook before the background, which has half of the time at least and whose writes are short.


class Stood(threading.Event):
    """An event that keeps for how long it was waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[float] = []
        self.answered_meanwhile = False

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None, "for ever"
        self.asked.append(timeout)
        if self.answered_meanwhile:
            self.set()
        return super().wait(timeout)


@pytest.fixture
def stood(monkeypatch: pytest.MonkeyPatch) -> Stood:
    """How a new `HookPriority` stands still."""
    found = Stood()
    monkeypatch.setattr(core.threading, "Event", lambda: found)
    return found


def busy(seconds: float) -> None:
    """Takes so much of the processor's time."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


@pytest.mark.invariant(
    "A write that looks long for each of its rows ends when its time is over; the rest is the next one's"
)
def test_within_short_write_yields_what_fits_and_at_least_one_item(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "SHORT_WRITE_S", 0.05)
    left, writes = list(range(7)), []
    while left:
        taken = []
        for one in within_short_write(left):
            taken.append(one)
            busy(0.06 if one == 3 else 0)
        writes.append(taken)
        left = left[len(taken) :]
    assert writes == [[0, 1, 2, 3], [4, 5, 6]]
    assert list(within_short_write([])) == []


def test_the_background_does_not_wait_while_no_hook_is_answered(stood: Stood) -> None:
    first = HookPriority()
    busy(core.MIN_WORK_S)
    assert list(first.giving_way("abc")) == ["a", "b", "c"]
    assert stood.asked == []


@pytest.mark.invariant("The background stands still while a hook is answered, and has half of the time at least")
def test_the_background_waits_until_the_hook_is_answered(stood: Stood) -> None:
    first = HookPriority()
    first.set_answering(True)
    stood.answered_meanwhile = True
    for _ in first.giving_way(range(5)):
        busy(core.MIN_WORK_S * 1.5)
    assert len(stood.asked) == 1


@pytest.mark.invariant("The background stands still while a hook is answered, and has half of the time at least")
def test_the_background_gets_half_of_the_time_during_endless_hooks(stood: Stood) -> None:
    began = time.monotonic()
    first = HookPriority()
    first.set_answering(True)
    for _ in first.giving_way(range(20)):
        busy(core.MIN_WORK_S * 1.5)
    first.give_way()
    assert stood.asked and max(stood.asked) <= core.MAX_PAUSE_S
    assert 2 * sum(stood.asked) <= time.monotonic() - began


@pytest.mark.invariant("The background stands still while a hook is answered, and has half of the time at least")
def test_the_background_waits_for_hooks_and_not_for_calls(stood: Stood) -> None:
    first = HookPriority()
    room = WaitingRoom(lambda _, __: None, first)

    def inside(verb: Literal["event", "call"]) -> Exchange:
        one = Exchange(b"", Request(id="1", verb=verb, deadline_ms=1, host="claude", name="Stop", body=b""), 1.0)
        room.admit(one)
        return one

    call = inside("call")
    assert stood.is_set()
    hooks = [inside("event"), inside("event")]
    assert not stood.is_set()
    room.answer(hooks[0], Reply(status="ok"))
    assert not stood.is_set()
    room.answer(hooks[1], Reply(status="ok"))
    assert stood.is_set()
    room.admit(hooks[1])  # answered already
    assert stood.is_set()
    room.answer(call, Reply(status="ok"))
    inside("event")
    room.refuse_all()
    assert stood.is_set()
