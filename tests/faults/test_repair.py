"""A damaged database: told and never begun anew, brought back from what can be read, a backup and the transcripts.

Each case is a way to damage a home that was really used. Whatever it is: the files of before are set aside,
what comes out is sound, and every turn of a transcript and every turn and memory of the backup is in it.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from machine import Machine, temporary_directory

from csmd.believe import stage as believe
from csmd.capture import stage as capture
from csmd.config import Config, Settings, child_environment, default_paths
from csmd.daemon import repair
from csmd.daemon.now import now_iso
from csmd.daemon.steward import Steward
from csmd.errors import BadInput, Damaged, SchemaTooNew
from csmd.model import Provenance, Statement
from csmd.store import backup, counts, files, memories, sqlite, vectors
from csmd.store.core import Store, integrity
from csmd.store.embed import Embedder
from csmd.store.sqlite import Rows

PAGE = 4096
SESSIONS, LINES = 6, 40
REMEMBERED = "Releases are signed with the key of the build machine"
FORGOTTEN = "The staging password rotates on mondays"
SAID_LATER = "I always want the changelog written before the tag"
Turns = dict[str, str]


@dataclass(kw_only=True)
class Used:
    """A home that was really used, and what is known to be in it."""

    machine: Machine
    turns: Turns = field(default_factory=dict)
    order: dict[str, list[str]] = field(default_factory=dict)
    backed_up: Turns = field(default_factory=dict)

    def copy(self, place: Path) -> Config:
        """The configuration of a copy of it, with the same transcripts."""
        shutil.copytree(self.machine.home, place)
        paths = default_paths({"CSMD_HOME": str(place)})
        return Config(paths=paths, settings=Settings(), assistant_dirs=(self.machine.assistant,))


def everything(rows: Rows) -> Turns:
    return dict(rows.all("select uuid, text from turns"))


def order(rows: Rows) -> dict[str, list[str]]:
    listed = rows.all(
        "select s.id, t.uuid from session_turn st join sessions s on s.seq = st.session_seq "
        "join turns t on t.seq = st.turn_seq order by s.id, st.ordinal"
    )
    found: dict[str, list[str]] = {}
    for session, uuid in listed:
        found.setdefault(session, []).append(uuid)
    return found


def remember(store: Store, said: str) -> str:
    source = Provenance(uuid=f"cli:{said[:9]}", session_id="cli", at=now_iso())
    statement = Statement(text=said, gate="epistemic", category="fact", confidence=0.9, authority="user", reasons=())
    return store.write(
        lambda rows: believe.remember(rows, statement, source, project=0, origin="stated", key=store.hash_key)
    )[0]


def read_transcripts(store: Store, config: Config) -> None:
    for path in capture.transcripts(config.assistant_dirs[0] / "projects"):
        capture.tail(store, path, now=now_iso, tool_limit=8192, quarantine=config.paths.quarantine)


@pytest.fixture(scope="module")
def used() -> Iterator[Used]:
    machine = Machine(root=temporary_directory())
    files.make_private(machine.home)
    config, made = machine.config(backup_every_h=0), Used(machine=machine)
    store = Store(machine.paths.database, now=now_iso())
    embedder = Embedder(None, idle_s=1, environment=child_environment())
    steward = Steward(store, config, embedder, model_name=lambda: None)

    clock = itertools.count(1e9, 1e4)

    def talk(first: int, last: int) -> None:
        for session in range(SESSIONS):
            lines = [
                machine.line(
                    "user" if number % 2 else "assistant", f"Word{session}x{number} is what we speak of. " + "Go on. " * 90,
                    session=f"s{session}",
                )
                for number in range(first, last)
            ]  # fmt: skip
            machine.transcript(*lines, session=f"s{session}")
        machine.conversation(f"c{first}")
        while steward.step(next(clock)):
            pass

    talk(0, LINES // 2)
    remember(store, REMEMBERED)
    forgotten = remember(store, FORGOTTEN)
    model = store.write(lambda rows: vectors.ensure_model(rows, "m", 4, now=""))
    waiting = store.read(lambda rows: vectors.backlog(rows, "turn", model, limit=999))
    passages = [(seq, project, 0, 9, seq.to_bytes(4, "big")) for seq, project, _ in waiting]
    store.write(lambda rows: vectors.add(rows, "turn", model, passages, reached=waiting[-1][0]))
    backup.make(machine.paths.database, backup.place_of(machine.paths.database, now="2026-01-02T03:04:05.000Z"))
    made.backed_up = store.read(everything)

    def forget(rows: Rows) -> None:
        memory = memories.by_id(rows, forgotten)
        assert memory
        believe.forget(rows, memory, key=store.hash_key, now=now_iso())

    store.write(forget)
    talk(LINES // 2, LINES)
    made.turns, made.order = store.read(everything), store.read(order)
    assert store.write(integrity) == []
    embedder.close()
    store.close()
    assert machine.paths.database.stat().st_size > 80 * PAGE
    yield made
    machine.end()


# --- ways to damage it: each takes the database's path and a source of chance

Damage = Callable[[Path, random.Random], None]


def overwrite(database: Path, at: int, data: bytes) -> None:
    with database.open("r+b") as file:
        file.seek(at)
        file.write(data)


def pages(number: int) -> Damage:
    def damage(database: Path, chance: random.Random) -> None:
        for page in chance.sample(range(1, database.stat().st_size // PAGE), number):
            overwrite(database, page * PAGE, chance.randbytes(PAGE))

    return damage


def root_of(table: str) -> Damage:
    def damage(database: Path, chance: random.Random) -> None:
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
            (root,) = connection.execute("select rootpage from sqlite_schema where name = ?", (table,)).fetchone()
        connection.close()
        overwrite(database, (root - 1) * PAGE, chance.randbytes(PAGE))

    return damage


def sql(*statements: str) -> Damage:
    def damage(database: Path, chance: random.Random) -> None:
        connection = sqlite.connect(database, readonly=False)
        for statement in statements:
            connection.execute(statement)
        connection.close()

    return damage


def truncated(database: Path, chance: random.Random) -> None:
    os.truncate(database, database.stat().st_size // 2 // PAGE * PAGE + 100)


def letters(database: Path, chance: random.Random) -> None:
    """Words of people in a page, so that it still looks like one of SQLite's."""
    data = database.read_bytes()
    places = [at for at in range(PAGE, len(data), PAGE) if b"is what we speak of" in data[at : at + PAGE]]
    for at in chance.sample(places, 3):
        page = data[at : at + PAGE].replace(b"is what we speak of", b"is what we shout of")
        overwrite(database, at, page)


def another_program(database: Path, chance: random.Random) -> None:
    database.unlink()
    connection = sqlite3.connect(database)
    connection.execute("create table bookmarks (url text)")
    connection.close()


def a_directory(database: Path, chance: random.Random) -> None:
    database.unlink()
    database.mkdir()
    (database / "mine.txt").write_text("somebody put this here")


@dataclass(frozen=True, kw_only=True)
class Case:
    damage: Damage
    refused: bool | None = None
    """Whether the store refuses to open it; None where that is seen only when the damaged place is read."""
    state: str = "rebuilt"
    says: str = ""
    """A part of what the report names as lost or found."""
    seeds: int = 1


CASES: dict[str, Case] = {
    "header zeroed": Case(damage=lambda db, _: overwrite(db, 0, bytes(100)), refused=True, says="not a database"),
    "first page random": Case(damage=lambda db, chance: overwrite(db, 0, chance.randbytes(PAGE)), refused=True),
    "truncated to half": Case(damage=truncated),
    "one page random": Case(damage=pages(1), seeds=4),
    "a tenth of the pages random": Case(damage=pages(20), seeds=3),
    "root of the turns random": Case(damage=root_of("turns")),
    "root of the order random": Case(damage=root_of("session_turn")),
    "root of the sessions random": Case(damage=root_of("sessions")),
    "root of the projects random": Case(damage=root_of("projects")),
    "root of the provenance random": Case(damage=root_of("provenance")),
    "root of the memories random": Case(damage=root_of("memories")),
    "root of the tombstones random": Case(damage=root_of("tombstones")),
    "other words in a page": Case(damage=letters, says="not what was stored"),
    "zero length": Case(damage=lambda db, _: os.truncate(db, 0), refused=True, says="empty"),
    "gone": Case(damage=lambda db, _: db.unlink(), refused=True, says="gone"),
    "a directory in its place": Case(damage=a_directory, refused=True, says="directory"),
    "another program's": Case(damage=another_program, refused=True, says="another program"),
    "the key of the hashes gone": Case(
        damage=sql("delete from meta where key = 'hash_key'"), refused=True, says="key of the hashes"
    ),
    "a turn that no session lists": Case(damage=sql("delete from session_turn where ordinal = 7"), says="order"),
    "a memory that rests on nothing": Case(damage=sql("delete from provenance"), says="rest on no turn"),
    "full text emptied": Case(damage=sql("delete from turns_fts_data where id > 9"), state="indexes"),
    "full text of other words": Case(
        damage=sql("update turns_fts_data set block = randomblob(200) where id > 9"), state="indexes"
    ),
    "full text of memories emptied": Case(damage=sql("delete from memories_fts_data where id > 9"), state="indexes"),
    "a vector of nothing": Case(
        damage=sql("insert into vectors (model_seq, kind, row_seq, start_at, end_at) values (1, 'turn', 99999, 0, 1)"),
        state="indexes",
    ),
    "vectors gone": Case(damage=sql("delete from vectors where seq % 2"), state="indexes"),
}


def check(case: Case, used: Used, config: Config, seed: int) -> None:
    """Damages a copy and repairs it."""
    database = config.paths.database
    case.damage(database, random.Random(seed))
    before = {path.name: path.read_bytes() for path in config.paths.home.glob("csmd.db*") if path.is_file()}
    if case.refused:
        with pytest.raises(Damaged) as refusal:
            Store(database, now=now_iso())
        assert (
            "csmd repair" in refusal.value.hint
            and str(database.name) in str(refusal.value)
            or "program" in str(refusal.value)
        )
        assert {path.name: path.read_bytes() for path in config.paths.home.glob("csmd.db*") if path.is_file()} == before
    first = repair.repair(config, dry_run=True)
    assert {path.name: path.read_bytes() for path in config.paths.home.glob("csmd.db*") if path.is_file()} == before
    report = repair.repair(config)
    assert report["state"] == first["state"] == case.state, report
    assert not case.says or case.says in json.dumps(report), report
    aside = Path(report["set_aside"])
    assert {path.name: path.read_bytes() for path in aside.iterdir() if path.is_file()} == before
    assert not (config.paths.home / repair.WORKSHOP).exists()
    store = Store(database, now=now_iso())
    try:
        assert store.write(integrity) == []
        found = store.read(everything)
        assert not set(found.items()) ^ set(used.turns.items()), "what was said differs"
        assert [name for name, listed in store.read(order).items() if listed != used.order[name]] == []
        texts = {memory.text for memory in store.read(lambda rows: memories.listing(rows, projects=None))}
        assert REMEMBERED in texts
        if "tombstones" not in json.dumps(report.get("lost", "")) and case.damage is not CASES["gone"].damage:
            known = report["state"] == "indexes" or report["read"]["tombstones"]
            assert not known or FORGOTTEN not in texts
        assert store.read(lambda rows: len(search_words(rows, "Word3x5"))) == 1
    finally:
        store.close()
    assert repair.repair(config)["state"] == "sound"


def search_words(rows: Rows, word: str) -> list[Any]:
    return sqlite.text_hits(rows, "turn", [word], projects=None, limit=9)


@pytest.mark.parametrize(("name", "seed"), [(name, seed) for name, case in CASES.items() for seed in range(case.seeds)])
def test_whatever_is_damaged_what_was_said_is_there_again(used: Used, tmp_path: Path, name: str, seed: int) -> None:
    check(CASES[name], used, used.copy(tmp_path / "home"), seed)
