"""What is SQLite's own: durable pragmas, private readers, errors that say what to do."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest

from csmd.errors import DeadlineExceeded, StoreError
from csmd.store import fulltext, row_values, sqlite
from csmd.store.sqlite import Rows


@pytest.fixture
def rows(path: Path) -> Rows:
    return Rows(sqlite.connect(path, readonly=False))


def test_a_commit_is_on_the_disk_and_no_checkpoint_stands_in_its_way(rows: Rows) -> None:
    found = {
        name: rows.value(f"pragma {name}")
        for name in ("journal_mode", "synchronous", "fullfsync", "wal_autocheckpoint", "foreign_keys")
    }
    assert found == {
        "journal_mode": "wal",
        "synchronous": 2,
        "fullfsync": 1,
        "wal_autocheckpoint": 0,
        "foreign_keys": 1,
    }


def test_nobody_can_load_an_extension_through_sql(rows: Rows) -> None:
    with pytest.raises(StoreError, match="authorized"):
        rows.run("select load_extension('/tmp/x')")


def test_the_vector_extension_is_found_without_importing_numpy() -> None:
    code = "import sys; from csmd.store import core, sqlite; sqlite.find_vector_extension(); print('numpy' in sys.modules, 'sqlite_vec' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == [
        "False",
        "False",
    ]


@pytest.mark.parametrize("kind", [kind for kind, *_ in sqlite.ERROR_HINTS], ids=lambda kind: kind.__name__)
def test_an_error_of_the_disk_says_what_to_do(kind: type[Exception]) -> None:
    error = sqlite.as_store_error(kind("it failed"), "/home/me/csmd.db")  # type: ignore[arg-type]
    assert error.hint
    assert "/home/me/csmd.db: it failed" in error.what


def test_an_interrupt_is_a_deadline_and_any_other_error_a_store_error() -> None:
    assert isinstance(sqlite.as_store_error(apsw.InterruptError("x")), DeadlineExceeded)
    assert type(sqlite.as_store_error(apsw.SQLError("x"))) is StoreError


def test_a_statement_tells_how_many_rows_it_changed(rows: Rows) -> None:
    rows.run("create table t (a integer)")
    rows.many("insert into t (a) values (:a)", [{"a": 1}, {"a": 2}, {"a": 3}])
    assert rows.run("update t set a = a + 1 where a > :a", a=1) == 2
    assert rows.all("select a from t order by a") == [(1,), (3,), (4,)]
    assert (rows.first("select a from t where a = 9"), rows.value("select a from t where a = 9")) == (None, None)
    with pytest.raises(StoreError):
        rows.many("insert into nowhere (a) values (:a)", [{"a": 1}])


class Pair(NamedTuple):
    seq: int
    name: str


@dataclass(frozen=True, kw_only=True)
class Described:
    name: str
    words: tuple[str, ...]
    is_open: bool
    used: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slotted:
    name: str
    words: tuple[str, ...]
    is_open: bool
    used: bool | None = True


def test_rows_are_read_as_values_and_written_by_name(rows: Rows) -> None:
    rows.run("create table t (seq integer primary key, name text unique, words text default '', is_open integer)")
    assert rows.insert_keyed("t", name="a", words="b c", is_open=1) == 1
    assert not rows.insert("t", "on conflict do nothing", name="a")
    assert rows.insert_keyed("t", "on conflict do nothing", name="a") == 0
    rows.upsert("t", "name", name="a", is_open=0)
    assert rows.read(Pair, "select seq, name from t") == [Pair(1, "a")]
    described = f"select {row_values.columns(Described, 't', used='1')} from t"
    assert rows.read_one(Described, described) == Described(name="a", words=("b", "c"), is_open=False, used=True)
    assert rows.read_one(Described, "select name, words, is_open from t where seq = 2") is None
    assert rows.read(Slotted, "select 'a', 'b c', 0") == [Slotted(name="a", words=("b", "c"), is_open=False, used=True)]
    assert rows.read(Slotted, "select 'a', '', 1, null") == [Slotted(name="a", words=(), is_open=True, used=None)]
    for keys, found in ((None, [1]), ([1, 2], [1]), ([2], []), ([], [])):
        assert rows.column(f"select seq from t where {sqlite.in_keys('seq', keys)}") == found


def test_a_transaction_is_undone_when_anything_is_raised_or_its_commit_fails(rows: Rows) -> None:
    rows.run("create table t (a integer primary key, b integer references t (a) deferrable initially deferred)")
    with pytest.raises(KeyboardInterrupt), rows.transaction(write=True):
        rows.run("insert into t (a) values (1)")
        raise KeyboardInterrupt
    with pytest.raises(StoreError, match="FOREIGN KEY"), rows.transaction(write=True):
        rows.run("insert into t (a, b) values (1, 99)")
    assert not rows.connection.in_transaction
    with rows.transaction(write=True):
        rows.run("insert into t (a) values (1)")
        with pytest.raises(StoreError, match="within a transaction"), rows.transaction(write=True):
            raise AssertionError("begun inside another")
    assert rows.all("select a from t") == [(1,)]


@pytest.mark.invariant("A read that is stopped at its deadline says so, and leaves time for the next")
def test_one_of_several_reads_has_half_of_what_is_left(rows: Rows) -> None:
    assert rows.limit_seconds(1.5) == 1.5
    with rows.deadline(0.2):
        assert 0 < rows.limit_seconds(1.5) <= 0.1
        assert rows.limit_seconds(0.05) == 0.05


@pytest.mark.invariant("A read that is stopped at its deadline says so, and leaves time for the next")
def test_a_vector_table_that_is_stopped_at_a_deadline_says_so(rows: Rows) -> None:
    """Interrupted between two of its own reads it says only that one failed."""

    def stopped() -> None:
        while rows.limit_seconds(1.0) > 0:
            pass
        raise apsw.SQLError("chunks iter error")

    rows.connection.create_scalar_function("stopped", stopped, 0)
    with pytest.raises(DeadlineExceeded), rows.deadline(0.02):
        rows.all("select stopped()")
    with pytest.raises(StoreError, match="no such table"), rows.deadline(5):
        rows.all("select * from nowhere")


def test_phrases_are_quoted_and_blank_ones_left_out() -> None:
    assert fulltext.match_expression(['say "hi"', " ", "", "a\0b", "x OR y"]) == '"say ""hi""" OR "a b" OR "x OR y"'
    assert fulltext.match_expression([]) == fulltext.match_expression(["", "\0"]) == ""
