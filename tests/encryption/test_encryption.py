"""Encryption at rest: what is in the files, what survives, what happens without the key."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import pytest
from encryption.conftest import PLANTED, Home
from machine import eventually
from terminal import Terminal

from csmd.errors import BadInput, ConfigError, Damaged, KeyMissing
from csmd.store import backup, cipher, integrity, keys, sqlite
from csmd.store.core import Store


def rows_of(home: Home) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table of the database, which nobody has open."""
    record = keys.read_record(home.machine.home)
    cipher.use_key(keys.parse_key(home.recovery_key) if record else None)
    try:
        with sqlite.open_rows(home.machine.paths.database, readonly=False, inspect_only=True) as rows:
            tables = rows.column("select name from sqlite_schema where type = 'table' and rootpage > 0 order by name")
            return {table: sorted(rows.all(f'select * from "{table}"'), key=repr) for table in tables}
    finally:
        cipher.use_key(None)


#: The paths that `.ci/run` leaves to `.ci/long`.
LONG = pytest.mark.long


@pytest.mark.invariant("An encrypted home holds no readable word in its database, log or copies")
def test_a_person_encrypts_a_home_with_a_running_daemon_and_no_planted_word_is_left(home: Home) -> None:
    machine = home.machine
    machine.csmd("start")
    home.talk("before")
    machine.csmd("backup", "--json")
    damaged = machine.home / "damaged-20260101T000000Z"
    damaged.mkdir(mode=0o700)
    (damaged / "csmd.db").write_bytes(machine.paths.database.read_bytes()[:9000] + PLANTED.encode() * 2000)
    assert machine.paths.database in home.files_with(PLANTED)

    terminal = Terminal("encrypt", "on", cwd=machine.project, environment=machine.environment())
    shown = terminal.sees("Encrypt now?")
    terminal.press("y\n")
    assert terminal.ends() == 0, terminal.said
    assert "pages below memory/" in " ".join(shown.split())
    key = next(line.strip() for line in shown.splitlines() if line.count("-") == 13)
    assert keys.parse_key(key) is not None

    home.talk("after")
    machine.csmd("backup", "--json")
    assert machine.call("csm_memory_search", query=PLANTED, project=str(machine.project))["hits"]
    assert machine.status()["encrypted"] and machine.status()["degraded"] == []
    assert home.files_with(PLANTED) == [] and not (damaged / "csmd.db").exists()
    assert home.files_with(key) == home.files_with(keys.parse_key(key).hex()) == []  # type: ignore[union-attr]
    machine.csmd("stop")
    assert home.files_with(PLANTED) == []
    status = machine.csmd("encrypt", "status", "--json")
    assert (status["state"], status["plain"], status["key_missing"]) == ("on", [], "") and len(status["encrypted"]) == 3


def test_nobody_but_a_person_switches_it(home: Home) -> None:
    for verb in ("on", "off", "recover"):
        assert "needs a person at a terminal" in home.machine.run("encrypt", verb).stderr
    assert home.machine.csmd("encrypt", "status", "--json")["state"] == "off"


def test_on_and_off_keep_every_row_and_what_is_said_in_between(home: Home) -> None:
    machine = home.machine
    daemon = machine.start()
    home.talk("before")
    machine.work("csm_backup_make")
    machine.stop(daemon)
    plain = rows_of(home)
    home.encrypt()
    assert rows_of(home) == plain
    daemon = machine.start()
    home.talk("between")
    machine.stop(daemon)
    encrypted = rows_of(home)
    assert sum(map(len, encrypted.values())) > sum(map(len, plain.values()))
    assert home.encrypt()["converted"] == []
    report = home.program("off")
    assert report["state"] == "off" and len(report["converted"]) == 2
    assert rows_of(home) == encrypted
    assert keys.read_record(machine.home) is None


@pytest.mark.invariant("Without its key an encrypted database is neither begun anew nor called damaged")
@pytest.mark.parametrize(
    "amiss", ["gone", *(pytest.param(amiss, marks=LONG) for amiss in ("locked", "another", "no record"))]
)
def test_a_daemon_without_its_key_waits_says_so_and_goes_on_by_itself(home: Home, amiss: str) -> None:
    machine = home.machine
    daemon = machine.start()
    home.talk("before")
    machine.stop(daemon)
    home.encrypt()
    before, ring = machine.paths.database.read_bytes(), machine.root / "keyring.json"
    held = ring.read_text()
    record = (machine.home / keys.RECORD_FILE).read_bytes()
    if amiss == "locked":
        home.lock_keyring(True)
    elif amiss == "gone":
        ring.unlink()
    elif amiss == "another":
        ring.write_text(json.dumps(dict.fromkeys(json.loads(held), keys.format_key(bytes(32)))))
    else:
        (machine.home / keys.RECORD_FILE).unlink()
    machine._install_hooks()
    daemon = machine.spawn()
    eventually(machine.paths.waits_mark.exists)
    eventually(machine.paths.instance.exists)
    assert b"waits for the key" in machine.hook("SessionStart", source="startup")
    machine.hook("UserPromptSubmit", prompt="Said while it waits.")
    assert machine.spooled() and daemon.poll() is None
    for verb in ("status", "start"):
        done = machine.run(verb)
        assert done.returncode != 0 and "the daemon waits" in done.stderr, done.stderr
    assert "waits" in machine.run("doctor").stdout
    assert machine.paths.database.read_bytes() == before

    if amiss == "locked":
        home.lock_keyring(False)
    elif amiss == "no record":
        (machine.home / keys.RECORD_FILE).write_bytes(record)
    else:
        ring.write_text(held)
    eventually(machine.paths.endpoint.exists)
    eventually(lambda: not machine.spooled())
    assert machine.instance() == daemon.pid and not machine.paths.waits_mark.exists()
    assert machine.call("csm_memory_search", query="Said while it waits", project=str(machine.project))["hits"]
    assert machine.stop(daemon) == 0


@LONG
def test_a_daemon_that_waits_ends_when_it_is_stopped(home: Home) -> None:
    home.encrypt()
    home.lock_keyring(True)
    daemon = home.machine.spawn()
    eventually(home.machine.paths.instance.exists)
    home.machine.csmd("stop")
    assert daemon.wait(60) == 0
    assert not home.machine.paths.waits_mark.exists() and not home.machine.paths.instance.exists()
    assert not home.machine.paths.database.exists()


@LONG
def test_a_recovery_key_brings_a_lost_key_and_a_lost_record_back(home: Home) -> None:
    machine = home.machine
    machine.stop(machine.start())
    home.encrypt()
    (machine.root / "keyring.json").unlink()
    (machine.home / keys.RECORD_FILE).unlink()

    def typed(key: str) -> Terminal:
        terminal = Terminal("encrypt", "recover", cwd=machine.project, environment=machine.environment())
        terminal.sees("recovery key")
        terminal.press(f"{key}\n")
        return terminal

    for wrong, why in (("AAAA-BBBB", "not a recovery key"), (keys.format_key(bytes(32)), "does not open the database")):
        terminal = typed(wrong)
        assert terminal.ends() == 1 and why in terminal.said
    terminal = typed(home.recovery_key.lower().replace("-", " "))
    assert terminal.ends() == 0, terminal.said
    assert home.recovery_key not in terminal.said
    assert machine.csmd("encrypt", "status", "--json")["state"] == "on"
    machine.stop(machine.start())


@LONG
def test_a_key_file_does_instead_of_a_keyring_but_not_in_the_home(home: Home) -> None:
    machine, place = home.machine, home.machine.root / "key"
    assert "is inside csmd's home" in home.program("prepare", str(machine.home / "key"), code=1)
    place.write_text("something else\n")
    assert "does not contain a csmd key" in home.program("prepare", str(place), code=1)
    place.unlink()
    prepared = home.program("prepare", str(place))
    assert place.stat().st_mode & 0o777 == 0o600 and place.read_text().strip() == prepared["recovery_key"]
    assert home.program("on", prepared["place"], prepared["digest"])["state"] == "on"
    daemon = machine.start()
    home.talk("s1")
    machine.stop(daemon)
    assert home.files_with(PLANTED) == [] and home.files_with(prepared["recovery_key"]) == []


def test_without_a_cipher_an_encrypted_home_is_refused_and_not_called_damaged(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.machine.stop(home.machine.start())
    home.encrypt()
    monkeypatch.delattr(apsw, "mc_version")
    with pytest.raises(ConfigError, match="apsw-sqlite3mc"):
        keys.use_stored_key(home.machine.home)


@LONG
def test_a_plain_backup_that_is_restored_is_encrypted(home: Home) -> None:
    machine = home.machine
    daemon = machine.start()
    home.talk("before")
    machine.work("csm_backup_make")
    elsewhere = machine.root / "elsewhere.db"
    elsewhere.write_bytes(backup.list_backups(machine.paths.database)[0].read_bytes())
    machine.stop(daemon)
    home.encrypt()
    machine.csmd("restore", str(elsewhere), "--yes")
    assert home.files_with(PLANTED) == []
    daemon_knows = machine.call("csm_memory_search", query=PLANTED, project=str(machine.project))
    assert daemon_knows["hits"]
    machine.csmd("stop")
    assert machine.csmd("encrypt", "status", "--json")["state"] == "on"


@LONG
def test_a_purge_a_repair_and_a_lost_database_do_under_a_key(home: Home) -> None:
    machine = home.machine
    home.encrypt()
    daemon = machine.start()
    home.talk("s1")
    machine.work("csm_backup_make")
    done = machine.work("csm_privacy_purge", what=PLANTED, kind="text", by_person=True)
    assert done["left"] == []
    cipher.use_key(keys.parse_key(home.recovery_key))
    with sqlite.open_rows(machine.paths.database, readonly=True) as rows:
        assert not rows.exists("select 1 from turns where text like :word", word=f"%{PLANTED}%")
        assert rows.exists("select 1 from turns")
    machine.work("csm_backup_make")
    machine.stop(daemon)
    page = 8
    with machine.paths.database.open("r+b") as file:
        file.seek(4096 * page + 500)
        file.write(b"\xff" * 100)
    report = machine.csmd("repair", "--json")
    assert report["state"] in ("rebuilt", "indexes")
    assert cipher.is_encrypted_file(machine.paths.database)
    machine.csmd("start")
    assert machine.call("csm_store_check") == {"problems": []}
    machine.csmd("stop")
    assert machine.csmd("encrypt", "status", "--json")["plain"] == []


def test_full_text_vectors_log_and_integrity_are_as_in_a_plain_database(tmp_path: Path) -> None:
    cipher.use_key(bytes(range(32)))
    path = tmp_path / "csmd.db"
    store = Store(path, now="2026-05-04T00:00:00Z")
    assert store.is_encrypted
    store.write(lambda rows: rows.run("create virtual table v using vec0(e int8[4])"))
    store.write(lambda rows: rows.run("insert into v (rowid, e) values (7, vec_int8(:e))", e=b"\1\2\3\4"))
    store.write(lambda rows: rows.run("create virtual table f using fts5(t)"))
    store.write(lambda rows: rows.run("insert into f values (:t)", t=PLANTED))
    log = path.with_name("csmd.db-wal").read_bytes()
    assert len(log) > 4096 and PLANTED.encode() not in log and b"lighthouse" not in log
    nearest = "select rowid from v where e match vec_int8(:e) order by distance limit 1"
    assert store.read(lambda rows: rows.value(nearest, e=b"\1\2\3\5")) == 7
    assert store.read(lambda rows: rows.value("select count(*) from f where f match 'vermilion'")) == 1
    assert store.cleanse()
    copied = backup.make_backup(path, tmp_path / "copy.db")
    store.close()
    for file in (path, copied.path):
        assert cipher.is_encrypted_file(file) and b"lighthouse" not in file.read_bytes()
        with sqlite.open_rows(file, readonly=False) as rows:
            assert integrity.check_structure(rows) == []
    cipher.use_key(bytes(32))
    with pytest.raises(Damaged):
        backup.examine(copied.path)
    cipher.use_key(None)
    with pytest.raises(KeyMissing):
        backup.examine(copied.path)


def test_a_key_is_read_as_people_type_it_and_a_mistake_is_found() -> None:
    key = bytes(range(100, 132))
    text = keys.format_key(key)
    assert keys.parse_key(f" {text.lower()} \n") == keys.parse_key(text.replace("-", "").replace("O", "0")) == key
    for at in range(0, len(text), 5):
        wrong = "A" if text[at] != "A" else "C"
        assert keys.parse_key(text[:at] + wrong + text[at + 1 :]) is None
    assert keys.parse_key("") is keys.parse_key("é" * 56) is keys.parse_key(text[:-5]) is None


def test_a_copy_that_fails_does_not_name_the_key(tmp_path: Path) -> None:
    key = bytes(range(32))
    cipher.use_key(key)
    with sqlite.open_rows(tmp_path / "a.db", readonly=False) as rows:
        rows.run("create table t (a)")
        with pytest.raises(Exception, match="could not be made") as failed:
            cipher.copy_into(rows.connection, tmp_path / "no" / "b.db", encrypted=True)
    assert key.hex() not in repr(failed.value) + repr(failed.value.__context__.__class__)
    assert failed.value.__suppress_context__
    with pytest.raises(BadInput):
        keys.read_key_file(__file__)
