"""A damaged database: told and never begun anew, brought back from what can be read, a backup and the transcripts.

Each case is a way to damage a home that was really used. Whatever it is: the files of before are set aside,
what comes out is sound, and every turn of a transcript and every turn and memory of the backup is in it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from machine import Machine, temporary_directory
from transcript_home import latest_transcripts

from csmd.capture import transcripts
from csmd.config import Config, Settings, child_environment, default_paths
from csmd.conversation import Project, Turn
from csmd.daemon import repair
from csmd.daemon.context import now_iso
from csmd.daemon.instance import hold_instance_lock
from csmd.daemon.jobs import Background
from csmd.embedding.worker_client import Embedder
from csmd.errors import BadInput, Damaged, SchemaTooNew
from csmd.knowledge import Provenance, Statement
from csmd.memory import remember
from csmd.store import backup, files, fulltext, memories, passages, projects, recovery, sqlite, turns, vectors
from csmd.store.core import Store
from csmd.store.integrity import check_database
from csmd.store.sqlite import Rows
from csmd.text import tokens

PAGE = 4096
SESSIONS, LINES = 6, 40
REMEMBERED = "Releases are signed with the key of the build machine"
FORGOTTEN = "The staging password rotates on mondays"
Turns = dict[str, str]
#: The long form: CSMD_TEST_FAULTS=all.
ROUNDS = 20 if os.environ.get("CSMD_TEST_FAULTS") == "all" else 1


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


def save_memory(store: Store, said: str) -> str:
    source = Provenance(uuid=f"cli:{said[:9]}", session_id="cli", at=now_iso())
    statement = Statement(text=said, gate="epistemic", category="fact", confidence=0.9, authority="user", reasons=())
    return store.write(
        lambda rows: remember.remember(rows, statement, source, project=0, origin="stated", key=store.hash_key)
    )[0]


def read_transcripts(store: Store, config: Config) -> None:
    for path in latest_transcripts(config.assistant_dirs[0] / "projects"):
        options = transcripts.ReadOptions(now=now_iso, tool_limit=8192, quarantine=config.paths.quarantine)
        transcripts.read_transcript(store, path, options)


@pytest.fixture(scope="module")
def used() -> Iterator[Used]:
    machine = Machine(root=temporary_directory())
    files.make_private(machine.home)
    config, made = machine.config(backup_every_h=0), Used(machine=machine)
    store = Store(machine.paths.database, now=now_iso())
    embedder = Embedder(None, idle_s=1, environment=child_environment())
    background = Background(store, config, embedder)

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
        while background.step(next(clock)):
            pass

    talk(0, LINES // 2)
    save_memory(store, REMEMBERED)
    forgotten = save_memory(store, FORGOTTEN)
    model = store.write(lambda rows: vectors.ensure_model(rows, "m", 4, now=""))
    waiting = store.read(lambda rows: vectors.read_backlog(rows, "passage", model, limit=999))
    passages = [(seq, project, 0, 9, seq.to_bytes(4, "big")) for seq, project, _ in waiting]
    store.write(lambda rows: vectors.add_vectors(rows, "passage", model, passages, reached=waiting[-1][0]))
    backup.make_backup(
        machine.paths.database, backup.make_backup_path(machine.paths.database, now="2026-01-02T03:04:05.000Z")
    )
    made.backed_up = store.read(everything)

    def forget(rows: Rows) -> None:
        memory = memories.by_id(rows, forgotten)
        assert memory
        remember.forget(rows, memory, key=store.hash_key, now=now_iso(), by_person=True)

    store.write(forget)
    talk(LINES // 2, LINES)
    made.turns, made.order = store.read(everything), store.read(order)
    assert store.write(check_database) == []
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


def a_page_of_the_schema(database: Path, chance: random.Random) -> None:
    pages = sorted(recovery.read_schema_pages(database))
    assert pages, "the schema takes more than the first page"
    overwrite(database, (chance.choice(pages) - 1) * PAGE, chance.randbytes(PAGE))


def sql(*statements: str) -> Damage:
    def damage(database: Path, chance: random.Random) -> None:
        connection = sqlite.connect(database, readonly=False)
        for statement in statements:
            connection.execute(statement)
        connection.close()

    return damage


def flipped(database: Path, chance: random.Random) -> None:
    size = database.stat().st_size
    for _ in range(chance.choice((3, 30, 300))):
        overwrite(database, chance.randrange(PAGE, size), chance.randbytes(1))


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
    """What the repair does; "" where chance decides: bytes that no page uses are no damage."""
    says: str = ""
    """A part of what the report names as lost or found."""
    seeds: int = 1
    short: bool = True
    """Whether it is in the short form as well."""


CASES: dict[str, Case] = {
    "header zeroed": Case(damage=lambda db, _: overwrite(db, 0, bytes(100)), refused=True, says="not a database"),
    "first page random": Case(damage=lambda db, chance: overwrite(db, 0, chance.randbytes(PAGE)), refused=True),
    "a page of the schema random": Case(damage=a_page_of_the_schema),
    "truncated to half": Case(damage=truncated),
    "one page random": Case(damage=pages(1), state="", seeds=2),
    "a tenth of the pages random": Case(damage=pages(20), seeds=2),
    "bytes changed here and there": Case(damage=flipped, state="", seeds=2),
    "root of the turns random": Case(damage=root_of("turns")),
    "root of the order random": Case(damage=root_of("session_turn")),
    "root of the sessions random": Case(damage=root_of("sessions"), short=False),
    "root of the projects random": Case(damage=root_of("projects"), short=False),
    "root of the provenance random": Case(damage=root_of("provenance")),
    "root of the memories random": Case(damage=root_of("memories"), short=False),
    "root of the tombstones random": Case(damage=root_of("tombstones"), short=False),
    "other words in a page": Case(damage=letters, says="altered since stored"),
    "zero length": Case(damage=lambda db, _: os.truncate(db, 0), refused=True, says="empty"),
    "gone": Case(damage=lambda db, _: db.unlink(), refused=True, says="gone"),
    "a directory in its place": Case(damage=a_directory, refused=True, says="directory"),
    "another program's": Case(damage=another_program, refused=True, says="another program"),
    "the key of the hashes gone": Case(
        damage=sql("delete from meta where key = 'hash_key'"), refused=True, says="key of the hashes"
    ),
    "a turn that no session lists": Case(damage=sql("delete from session_turn where ordinal = 7"), says="order"),
    "a memory that rests on nothing": Case(damage=sql("delete from provenance"), says="without a source turn"),
    "full text emptied": Case(damage=sql("delete from passages_fts_data where id > 9"), state="indexes"),
    "full text of other words": Case(
        damage=sql("update passages_fts_data set block = randomblob(200) where id > 9"), state="indexes"
    ),
    "full text of memories emptied": Case(
        damage=sql("delete from memories_fts_data where id > 9"), state="indexes", short=False
    ),
    "a vector of nothing": Case(
        damage=sql(
            "insert into vectors (model_seq, kind, row_seq, start_at, end_at) values (1, 'passage', 99999, 0, 1)"
        ),
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
        assert ("csmd repair" in refusal.value.hint and str(database.name) in str(refusal.value)) or "program" in str(
            refusal.value
        )
        assert {path.name: path.read_bytes() for path in config.paths.home.glob("csmd.db*") if path.is_file()} == before
        assert repair.repair(config, dry_run=True)["state"] == case.state
        assert {path.name: path.read_bytes() for path in config.paths.home.glob("csmd.db*") if path.is_file()} == before
    report = repair.repair(config)
    assert report["state"] == case.state or (not case.state and report["state"] != "none"), report
    assert not case.says or case.says in json.dumps(report), report
    if report["state"] != "sound":
        aside = Path(report["set_aside"])
        assert {path.name: path.read_bytes() for path in aside.iterdir() if path.is_file()} == before
    assert not (config.paths.home / backup.WORKSHOP).exists()
    store = Store(database, now=now_iso())
    try:
        assert store.write(check_database) == []
        found = store.read(everything)
        # As far as the keyed hash can tell: white space and case are the same to it.
        one, other = ({uuid: tokens.normalise(said) for uuid, said in turns.items()} for turns in (found, used.turns))
        differs = one.items() ^ other.items()
        assert not differs, "what was said differs"
        assert [name for name, listed in store.read(order).items() if listed != used.order[name]] == []
        texts = {memory.text for memory in store.read(lambda rows: memories.list_memories(rows, projects=None))}
        assert REMEMBERED in texts
        # Forgotten after the backup: known as such wherever the damaged file's own tombstones can be read.
        assert FORGOTTEN not in texts or not (report["state"] in ("indexes", "sound") or report["read"]["tombstones"])
        assert store.read(lambda rows: len(search_words(rows, "Word3x5"))) == 1
    finally:
        store.close()
    assert repair.repair(config)["state"] == "sound"


def search_words(rows: Rows, word: str) -> list[Any]:
    return fulltext.text_hits(rows, "passage", [word], projects=None, limit=9)


@pytest.mark.invariant(
    "Whatever is damaged, what transcripts and backups hold is there again; what is sound, newer or of no use is left alone"
)
@pytest.mark.parametrize(
    ("name", "seed"),
    [
        (name, seed)
        for name, case in CASES.items()
        for seed in range(case.seeds * ROUNDS if case.seeds > 1 else 1)
        if case.short or ROUNDS > 1
    ],
)
def test_whatever_is_damaged_what_was_said_is_there_again(used: Used, tmp_path: Path, name: str, seed: int) -> None:
    check(CASES[name], used, used.copy(tmp_path / "home"), seed)


# --- without a backup, without transcripts


def repaired(config: Config) -> tuple[dict[str, Any], Turns, set[str]]:
    """The report, the turns and the memories' texts after a repair; what came out is sound."""
    report = repair.repair(config)
    store = Store(config.paths.database, now=now_iso())
    try:
        assert store.write(check_database) == []
        known = store.read(lambda rows: memories.list_memories(rows, projects=None))
        return report, store.read(everything), {memory.text for memory in known}
    finally:
        store.close()


def test_what_no_transcript_holds_is_said_to_be_lost_when_nothing_could_be_read(used: Used, tmp_path: Path) -> None:
    config = used.copy(tmp_path / "home")
    shutil.rmtree(config.paths.home / "backups")
    a_page_of_the_schema(config.paths.database, random.Random(1))
    report, turns, texts = repaired(config)
    assert turns == used.turns and REMEMBERED not in texts
    assert any("workspaces" in lost and "forgotten" in lost for lost in report["lost"]), report


def test_a_repair_keeps_out_what_the_user_has_left_out(used: Used, tmp_path: Path) -> None:
    config = used.copy(tmp_path / "home")
    shutil.rmtree(config.paths.home / "backups")
    config.paths.database.write_bytes(b"\0" * 8192)
    left_out = replace(config, settings=Settings(privacy_exclude=(str(used.machine.project),)))
    _, turns, _ = repaired(left_out)
    assert not set(turns) & set(used.turns)


@pytest.mark.parametrize(
    "name", ["header zeroed", pytest.param("first page random", marks=pytest.mark.long), "zero length"]
)
def test_without_a_backup_the_file_itself_or_the_transcripts_bring_back_what_was_said(
    used: Used, tmp_path: Path, name: str
) -> None:
    config = used.copy(tmp_path / "home")
    CASES[name].damage(config.paths.database, random.Random(1))
    if name != "zero length":
        shutil.rmtree(config.paths.home / "backups")
        report, turns, texts = repaired(config)
        assert report["backup"] == "" and (REMEMBERED in texts) == (name == "header zeroed")
        assert turns == used.turns
        return
    for path in backup.list_backups(config.paths.database):
        path.write_bytes(path.read_bytes()[:5000])
    report, turns, texts = repaired(config)
    assert report["backup"] == "" and REMEMBERED not in texts
    assert turns == used.turns


def test_without_transcripts_a_page_that_is_gone_costs_only_what_no_backup_holds(used: Used, tmp_path: Path) -> None:
    config = used.copy(tmp_path / "home")
    gone = Config(paths=config.paths, settings=config.settings, assistant_dirs=(tmp_path / "nobody",))
    pages(6)(config.paths.database, random.Random(3))
    connection = sqlite.connect(backup.list_backups(config.paths.database)[0], readonly=True)
    connection.close()
    lost_paths = [path.rename(path.with_suffix(".away")) for path in used.machine.assistant.rglob("*.jsonl")]
    try:
        report, turns, texts = repaired(gone)
    finally:
        for path in lost_paths:
            path.rename(path.with_suffix(".jsonl"))
    assert report["state"] == "rebuilt" and REMEMBERED in texts
    assert used.backed_up.items() <= turns.items() <= used.turns.items()
    assert len(used.turns) - len(turns) < 30


def test_where_the_key_of_the_hashes_is_lost_for_good_that_is_said_and_texts_are_known_by_new_ones(
    used: Used, tmp_path: Path
) -> None:
    config = used.copy(tmp_path / "home")
    shutil.rmtree(config.paths.home / "backups")
    CASES["the key of the hashes gone"].damage(config.paths.database, random.Random(0))
    report, turns, _ = repaired(config)
    assert "can no longer be recognised" in " ".join(report["lost"])
    assert turns == used.turns
    assert repair.repair(config)["state"] == "sound"


@pytest.mark.parametrize("table", ["projects", "sessions"])
def test_projects_and_sessions_whose_rows_are_lost_get_their_names_back(used: Used, tmp_path: Path, table: str) -> None:
    config = used.copy(tmp_path / "home")
    shutil.rmtree(config.paths.home / "backups")
    columns = "key, root, name" if table == "projects" else "id, parent, host"
    ask = f"select {columns} from {table} where {'seq > 0' if table == 'projects' else '1'} order by 1"
    with sqlite.open_rows(config.paths.database, readonly=True) as rows:
        before = rows.all(ask)
    root_of(table)(config.paths.database, random.Random(0))
    report, turns, texts = repaired(config)
    assert report["stubs"] and turns == used.turns and REMEMBERED in texts
    with sqlite.open_rows(config.paths.database, readonly=True) as rows:
        assert rows.all(ask) == before and before


# --- the write-ahead log, and what is not damaged


@pytest.mark.parametrize(
    "damage",
    [
        lambda log, shm: log.unlink(),
        lambda log, shm: log.write_bytes(random.Random(1).randbytes(90_000)),
        lambda log, shm: os.truncate(log, log.stat().st_size // 2),
        lambda log, shm: overwrite(log, log.stat().st_size // 2, random.Random(2).randbytes(5000)),
        lambda log, shm: shm.write_bytes(random.Random(3).randbytes(32_768)),
        lambda log, shm: shm.unlink(),
    ],
    ids=["gone", "garbage", "truncated", "a page random", "index garbage", "index gone"],
)
def test_a_log_that_is_damaged_costs_nothing_that_a_transcript_holds(used: Used, tmp_path: Path, damage: Any) -> None:
    config = used.copy(tmp_path / "home")
    database = config.paths.database
    assistant = tmp_path / "assistant"
    shutil.copytree(used.machine.assistant, assistant)
    config = Config(paths=config.paths, settings=config.settings, assistant_dirs=(assistant,))
    store = Store(database, now=now_iso())
    Machine.transcript(used.machine, *[used.machine.line("user", f"afterwards {n}", session="late") for n in range(40)],
                       session="late", folder=assistant / "projects" / "-late")  # fmt: skip
    read_transcripts(store, config)
    expected = store.read(everything)
    left = {path.name: path.read_bytes() for path in database.parent.glob("csmd.db*")}
    store.close()
    for name, data in left.items():  # as a daemon that was killed leaves it
        (database.parent / name).write_bytes(data)
    assert len(expected) == len(used.turns) + 40 and left["csmd.db-wal"]
    damage(database.with_name("csmd.db-wal"), database.with_name("csmd.db-shm"))
    repair.repair(config)
    store = Store(database, now=now_iso())
    read_transcripts(store, config)
    assert store.write(check_database) == []
    assert store.read(everything) == expected
    store.close()


@pytest.mark.invariant(
    "Whatever is damaged, what transcripts and backups hold is there again; what is sound, newer or of no use is left alone"
)
def test_a_sound_database_stays_as_it_is_to_the_byte(used: Used, tmp_path: Path) -> None:
    config = used.copy(tmp_path / "home")
    before = {path: path.read_bytes() for path in config.paths.home.rglob("*") if path.is_file()}
    assert repair.repair(config) == {"state": "sound", "problems": []}
    after = {path: path.read_bytes() for path in config.paths.home.rglob("*") if path.is_file()}
    assert {path: data for path, data in after.items() if path.name != "daemon.lock"} == before
    empty = Config(paths=default_paths({"CSMD_HOME": str(tmp_path / "none")}), settings=Settings(), assistant_dirs=())
    assert repair.repair(empty)["state"] == "none"


def test_a_database_of_a_newer_csmd_is_not_damaged_and_left_alone(used: Used, tmp_path: Path) -> None:
    config = used.copy(tmp_path / "home")
    sql("insert into migrations values ('9999_later', '')")(config.paths.database, random.Random(0))
    before = config.paths.database.read_bytes()
    with pytest.raises(SchemaTooNew):
        repair.repair(config)
    assert config.paths.database.read_bytes() == before
    assert not list(config.paths.home.glob("damaged-*"))


# --- restoring


@pytest.mark.invariant("A backup is of one moment; a restore keeps forgotten what is forgotten")
def test_a_backup_is_put_back_and_what_was_forgotten_since_stays_forgotten(used: Used, tmp_path: Path) -> None:
    config = used.copy(tmp_path / "home")
    database = config.paths.database
    before = database.read_bytes()
    assert repair.restore(config, "latest", dry_run=True)["forgotten_again"] == 1
    assert database.read_bytes() == before
    report = repair.restore(config, "latest")
    assert report["counts"]["turns"] == len(used.backed_up) and report["tombstones"] >= 1
    assert (
        Path(report["set_aside"]).read_bytes() == before and Path(report["set_aside"]).stat().st_mode & 0o777 == 0o600
    )
    store = Store(database, now=now_iso())
    texts = {memory.text for memory in store.read(lambda rows: memories.list_memories(rows, projects=None))}
    assert REMEMBERED in texts and FORGOTTEN not in texts
    read_transcripts(store, config)
    assert store.read(everything) == used.turns
    assert store.write(check_database) == []
    store.close()
    repair.restore(config, report["set_aside"])  # and back again
    store = Store(database, now=now_iso())
    assert store.read(everything) == used.turns
    store.close()


@pytest.mark.invariant(
    "Whatever is damaged, what transcripts and backups hold is there again; what is sound, newer or of no use is left alone"
)
@pytest.mark.parametrize("name", ["header zeroed", "one page random", "another program's", "zero length", "newer"])
def test_a_file_that_is_of_no_use_is_refused_and_nothing_changes(used: Used, tmp_path: Path, name: str) -> None:
    config = used.copy(tmp_path / "home")
    source = tmp_path / "source.db"
    shutil.copy(config.paths.database, source)
    damage = sql("insert into migrations values ('9999_later', '')") if name == "newer" else CASES[name].damage
    damage(source, random.Random(0))
    before = config.paths.database.read_bytes()
    with pytest.raises((BadInput, Damaged, SchemaTooNew)) as refusal:
        repair.restore(config, str(source))
    assert refusal.value.what
    assert config.paths.database.read_bytes() == before
    assert not list(config.paths.home.glob("*before-restore*"))
    with pytest.raises(BadInput, match=f"{tmp_path}/nothing.db: no such"):
        repair.restore(config, str(tmp_path / "nothing.db"))


class KilledError(BaseException):
    """Stands for a kill: no handler of errors takes it."""


@pytest.mark.invariant("A restore or repair that is killed at any moment leaves the old database or the new one, whole")
@pytest.mark.parametrize("step", range(1, 16))
def test_a_restore_that_is_killed_at_any_step_leaves_the_old_database_or_the_new_one_whole(
    used: Used, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    config = used.copy(tmp_path / "home")
    home, database = config.paths.home, config.paths.database
    with sqlite.open_rows(database, readonly=False) as rows:  # its last write is in the log alone
        rows.run("insert into meta (key, value) values ('mark', 'old')")
        left = {path: path.read_bytes() for path in home.glob("csmd.db*")}
    for path, data in left.items():  # as a daemon that was killed leaves it
        path.write_bytes(data)
    steps = itertools.count(1)

    def kill(call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        if next(steps) >= step:
            raise KilledError
        return call(*args, **named)

    for name in ("fsync", "replace", "rename", "unlink", "rmdir", "link"):
        monkeypatch.setattr(os, name, partial(kill, getattr(os, name)))
    with contextlib.suppress(KilledError):
        repair.restore(config, "latest")
    monkeypatch.undo()
    with hold_instance_lock(config.paths), sqlite.open_rows(database, readonly=True) as rows:
        is_old = bool(rows.value("select count(*) from meta where key = 'mark'"))
        assert is_old or rows.column("select uuid from turns order by uuid") == sorted(used.backed_up)
    aside = [path.read_bytes() for path in sorted(home.glob("csmd.db.before-restore-*")) if "-shm" not in path.name]
    assert aside == [] if is_old else aside == [left[database], left[database.with_name("csmd.db-wal")]]
    assert not (home / "repairing").exists()


def test_each_restore_sets_its_database_aside_under_a_name_of_its_own(used: Used, tmp_path: Path) -> None:
    config = used.copy(tmp_path / "home")
    original = config.paths.database.read_bytes()
    first, second = (Path(repair.restore(config, "latest")["set_aside"]) for _ in range(2))
    assert first != second and first.read_bytes() == original and second.exists()
    assert all(path.name.startswith("csmd.db.before-restore-2") for path in (first, second))


# --- with a real daemon


@pytest.mark.invariant("A database is never begun anew in silence, and a damaged one takes no writes")
def test_a_daemon_does_not_begin_anew_and_says_why_until_the_repair(machine: Machine) -> None:
    child = machine.start()
    path = machine.conversation()
    machine.sync()
    known = machine.call("csm_memory_list")
    machine.stop(child)
    overwrite(machine.paths.database, 0, bytes(100))
    damaged = machine.paths.database.read_bytes()
    done = machine.run("start")
    assert done.returncode == 1 and "not a database" in done.stderr and "csmd repair" in done.stderr
    done = machine.run("status")
    assert done.returncode == 3 and "not a database" in done.stderr and "csmd repair" in done.stderr
    machine.hook("UserPromptSubmit", prompt="said while it was damaged", transcript_path=str(path))
    assert len(machine.spooled()) == 1 and machine.paths.database.read_bytes() == damaged
    shown = machine.csmd("repair", "--dry-run")
    assert "not a database" in shown and machine.paths.database.read_bytes() == damaged
    report = machine.csmd("repair", "--json")
    assert report["state"] == "rebuilt" and Path(report["set_aside"]).joinpath("csmd.db").read_bytes() == damaged
    assert machine.call("csm_memory_list") == known
    assert not machine.spooled() and machine.call("csm_store_check") == {"problems": []}
    assert (
        machine.csmd("repair") == "nothing to repair\ndaemon   stopped for this, and started again\n"
        and not machine.status()["degraded"]
    )
    assert all(len(line) <= 80 for line in shown.splitlines() if "/" not in line)


@pytest.mark.invariant("A database is never begun anew in silence, and a damaged one takes no writes")
def test_damage_that_shows_itself_later_stops_writing_and_is_told(machine: Machine) -> None:
    child = machine.start()
    machine.conversation()
    machine.sync()
    machine.status()
    size = machine.paths.database.stat().st_size
    overwrite(machine.paths.database, PAGE, random.Random(1).randbytes(size - PAGE))
    machine.run("search", "postgres")
    status, _ = machine.event("UserPromptSubmit", prompt="first")
    status, _ = machine.event("UserPromptSubmit", prompt="second")
    assert status == "refused"
    told = machine.status()
    assert any("damaged" in text and "csmd repair" in text for text in told["degraded"]), told["degraded"]
    machine.hook("UserPromptSubmit", prompt="third")
    assert machine.spooled()
    assert child.poll() is None
    repaired = machine.run("repair")
    assert repaired.returncode == 1 and "lost" in repaired.stdout, repaired  # done, and told what is gone for good
    assert machine.call("csm_store_check") == {"problems": []} and not machine.spooled()
    assert machine.status()["counts"]["turns"] >= 6


def test_a_running_daemon_makes_backups_and_one_is_put_back(machine: Machine) -> None:
    machine.start()
    machine.conversation()
    machine.sync()
    said = machine.csmd("backup")
    assert "turns" in said and "backups/csmd-" in said.replace("\n", "").replace(" ", "")
    made = machine.csmd("backup", "--to", "mine.db", "--json")
    assert Path(made["path"]) == machine.project / "mine.db" and backup.examine(Path(made["path"])) == made["counts"]
    again = machine.run("backup", "--to", "mine.db")
    assert again.returncode == 1 and "exists already" in again.stderr
    assert machine.csmd("backup", "list").count("csmd-") == machine.status()["storage"]["backups"] == 1
    memory = machine.call("csm_memory_list")["memories"][0]
    machine.call("csm_memory_delete", id=memory["id"], by_person=True)
    machine.conversation("later")
    machine.sync()
    before = machine.status()["counts"]
    report = machine.csmd("restore", "latest", "--yes", "--json")
    assert report["came_back"]["turns"] == 6 and report["forgotten_again"] >= 1
    after = machine.status()["counts"]
    assert {**after, "vectors": 0} == {**before, "vectors": 0}
    assert machine.call("csm_store_check") == {"problems": []}


def test_a_repair_reads_what_the_daemon_would_and_believes_nobody_more(machine: Machine) -> None:
    """Projects that the user leaves out stay out; csmd's own session files speak for nobody without their mark."""
    kept_out = machine.root / "secret"
    kept_out.mkdir()
    machine.transcript(machine.line("user", "Heron one.", session="open"), session="open")
    machine.transcript(
        machine.line("user", "Heron two.", session="hidden", cwd=str(kept_out)),
        session="hidden",
        folder=machine.assistant / "projects" / "-secret",
    )
    own = machine.paths.sessions / "-p"
    own.mkdir(parents=True)
    lines = [
        machine.line("user", said, session="mine", uuid=uuid)
        for said, uuid in (("Heron three.", "u3"), ("Heron four.", "u4"))
    ]
    lines.append({**machine.line("user", "", session="mine"), "type": "tombstone", "tombstones": ["u4"]})
    (own / "mine.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    machine.paths.database.write_bytes(b"no database at all" * 999)
    repair.repair(machine.config(privacy_exclude=(str(kept_out),)))
    with sqlite.open_rows(machine.paths.database, readonly=True) as rows:
        said = dict(rows.all("select text, kind from turns"))
    assert said == {"Heron one.": "user", "Heron three.": "relayed"}


def key_of(rows: Rows) -> bytes:
    return bytes(rows.value("select value from meta where key = 'hash_key'"))


def rebuilt(store: Store, path: Path, given: Callable[[Rows], None]) -> None:
    """Makes `store` of a database that holds what `given` puts there, as if only its rows could be read."""
    Store(path, now=now_iso()).close()
    with sqlite.open_rows(path, readonly=False) as rows:
        rows.run("pragma foreign_keys = off")
        given(rows)
        key = key_of(rows)
    with sqlite.open_rows(path, readonly=True) as damaged:
        store.write(lambda rows: recovery.rebuild(rows, damaged=damaged, copy=None, key=key, new_key=key))


@pytest.fixture
def anew(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "new.db", now=now_iso())
    yield store
    store.close()


def project(rows: Rows, name: str, **columns: Any) -> int:
    seq = rows.value(
        "insert into projects (key, root, name, kind, created_at) values (:name, '/' || :name, :name, 'path', '') returning seq",
        name=name,
    )
    for column, value in columns.items():
        rows.run(f"update projects set {column} = :value where seq = :seq", value=value, seq=seq)
    return int(seq)


def test_the_words_of_a_call_whose_input_is_gone_are_taken_over_and_found(anew: Store, tmp_path: Path) -> None:
    def given(rows: Rows) -> None:
        place = project(rows, "shop")
        call = Turn(uuid="c1", session_id="s", kind="tool_call", text='{"plan": "x"}', at=now_iso(), cwd="/shop")
        talk = Turn(uuid="u1", session_id="s", kind="user", text="Herons nest here.", at=now_iso(), cwd="/shop")
        for turn in (call, talk):
            hashed = tokens.keyed_hash(turn.text, key_of(rows))
            turns.add_turn(rows, turn, text_hash=hashed, host="claude", project=place, path="")
        seq = int(rows.value("select seq from turns where uuid = 'c1'"))
        assert passages.store_call_words(rows, seq, "Kestrels take the eastern tower.", source=call.text) == 1

    rebuilt(anew, tmp_path / "old.db", given)

    def look(rows: Rows) -> None:
        shown = passages.by_seqs(rows, [int(seq) for (seq,) in rows.all("select seq from passages")]).values()
        assert {one.text for one in shown} == {"Kestrels take the eastern tower.", "Herons nest here."}
        for word in ("kestrels", "herons"):
            assert len(fulltext.text_hits(rows, "passage", [word], projects=None, limit=5)) == 1

    anew.read(look)


def test_what_names_a_row_that_is_lost_does_not_lead_into_nothing(anew: Store, tmp_path: Path) -> None:
    def given(rows: Rows) -> None:
        project(rows, "merged", merged_into=77)
        project(rows, "part", part_of=78)
        project(rows, "walled", workspace_seq=79)
        gone = project(rows, "gone", merged_into=project(rows, "whole"))
        for ident, scope, twin in (("m1", 0, 990), ("m2", 79, 0), ("m3", gone, 991)):
            rows.run(
                "insert into memories (id, text, text_hash, gate, category, type, tier, decay, authority, origin, confidence, "
                "scope, project_seq, session_id, created_at, confirmed_at, hot_until, warm_until, archive_at, twin_of) values "
                "(:id, :id, :hash, 'epistemic', 'fact', 'semantic', 'hot', 'slow', 'user', 'stated', 0.9, 'project', "
                ":scope, '', '', '', 1, 1, 1, :twin)",
                id=ident, hash=tokens.keyed_hash(ident, key_of(rows)), scope=scope, twin=twin,
            )  # fmt: skip

    rebuilt(anew, tmp_path / "old.db", given)

    def look(rows: Rows) -> None:
        for name in ("merged", "part"):
            place = Project(key=name, root=f"/{name}", name=name, kind="path")
            assert projects.seq_of(rows, place) == rows.value("select seq from projects where key = :k", k=name)
        inside = projects.everywhere_of(rows, int(rows.value("select seq from projects where key = 'walled'")))
        assert inside == 79 and rows.value("select kind from projects where seq = 79") == "workspace"
        outside = {
            memory.id
            for memory in memories.list_memories(rows, projects=projects.list_visible_projects(rows, inside=0))
        }
        behind = {
            memory.id
            for memory in memories.list_memories(rows, projects=projects.list_visible_projects(rows, inside=inside))
        }
        assert (outside, behind) == ({"m1", "m3"}, {"m1", "m2", "m3"})

    anew.read(look)


def test_a_range_of_keys_for_which_the_backup_has_no_row_is_counted_as_lost_whatever_fills_another(
    anew: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged_projects(rows: Rows, table: recovery.Table, gaps: list[tuple[int, int]]) -> Iterator[Any]:
        if table.name == "projects":
            gaps += [(1, 1000), (2000, 2000)]
        return iter(())

    monkeypatch.setattr(recovery, "read_readable", damaged_projects)
    Store(tmp_path / "old.db", now=now_iso()).close()
    with sqlite.open_rows(tmp_path / "old.db", readonly=False) as copy:
        for name in ("one", "two", "three"):
            project(copy, name)
        key = key_of(copy)
        made = anew.write(lambda rows: recovery.rebuild(rows, damaged=copy, copy=copy, key=key, new_key=key))
    assert made.filled["projects"] == 3 and made.unfilled["projects"] == 1
    assert not any(number for table, number in made.unfilled.items() if table != "projects")
    assert any("projects: 1 range" in lost for lost in repair._describe_losses(made, is_key_lost=False))


def test_a_session_whose_row_is_lost_gives_its_queue_to_the_one_that_lists_its_turns_again(
    anew: Store, tmp_path: Path
) -> None:
    def given(rows: Rows) -> None:
        turn = rows.value(
            "insert into turns (uuid, session_seq, project_seq, kind, text, text_hash, at, source) values "
            "('q', 55, 0, 'user', 'said', 'h', '2026-01-01T00:00:00.000Z', 'transcript') returning seq"
        )
        turns.add_to_queue(rows, "k", session=55, turn=int(turn), at="2026-01-01T00:00:00.000Z")

    rebuilt(anew, tmp_path / "old.db", given)

    def listed_again(rows: Rows) -> int:
        session = rows.value(
            "insert into sessions (id, host, project_seq, started_at, last_at, turns) values "
            "('real', 'claude', 0, '2026', '2026', 1) returning seq"
        )
        turn = rows.value("select seq from turns where uuid = 'q'")
        rows.run("insert into session_turn (session_seq, ordinal, turn_seq) values (:s, 1, :t)", s=session, t=turn)
        assert recovery.empty_stub_sessions(rows) == 1
        return int(rows.value("select session_seq from queued") == session)

    assert anew.write(listed_again) == 1
    assert anew.write(check_database) == []


def test_of_a_tombstone_that_the_backup_has_too_the_stronger_and_later_one_counts(anew: Store) -> None:
    def tombstone(authority: str, at: str) -> dict[str, Any]:
        return {"kind": "project", "hash": "h", "part_of": "", "words": 0, "anchor": 0, "anchor_at": 0,
                "authority": authority, "created_at": at}  # fmt: skip

    def put(rows: Rows) -> list[Any]:
        for authority, at in (("assistant", "2026-02"), ("user", "2026-03"), ("assistant", "2026-01")):
            recovery.merge_tombstones(rows, [tombstone(authority, at)], key=anew.hash_key)
        return rows.all("select authority, created_at from tombstones")

    assert anew.write(put) == [("user", "2026-03")]
