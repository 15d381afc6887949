"""kill -9 at each step of `csmd encrypt on` and `off`: the database is whole, old or new, and the verb run again ends."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import forked_process
import pytest
from encryption.conftest import PLANTED
from machine import LIMIT_S, Machine

from csmd.config import Config
from csmd.daemon import encrypt
from csmd.daemon.instance import hold_instance_lock
from csmd.store import backup, keys, sqlite
from csmd.store.core import Store

#: Runs csmd.daemon.encrypt, and dies before the step of that number: a file opened for writing, renamed or removed, a
#: directory made or removed.
PROGRAM = """
import os, runpy, signal, sys
left, words = int(sys.argv[1]), sys.argv[2:]
def step(event, arguments):
    global left
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    if writes or event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir"):
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(step)
sys.argv = ["encrypt", *words]
runpy.run_module("csmd.daemon.encrypt", run_name="__main__")
"""
KEY = bytes(range(32))


def rows_of(path: Path) -> list[Any]:
    with sqlite.open_rows(path, readonly=False, inspect_only=True) as rows:
        tables = rows.column("select name from sqlite_schema where type = 'table' and rootpage > 0 order by name")
        return [(table, sorted(rows.all(f'select * from "{table}"'), key=repr)) for table in tables]


def run_until(machine: Machine, step: int, *words: str) -> int:
    child = forked_process.run(
        "-c", PROGRAM, str(step), *words, cwd=machine.root, env=machine.environment(), stdin=subprocess.DEVNULL,
        timeout=LIMIT_S,
    )  # fmt: skip
    assert child.returncode in (0, -signal.SIGKILL), child.stderr
    return child.returncode


@pytest.fixture
def plain(machine: Machine) -> Path:
    """A plain home with a backup, kept beside the one that is used; its key is in a file."""
    config = machine.config()
    with hold_instance_lock(config.paths):
        store = Store(config.paths.database, now="2026-05-04T00:00:00Z")
        store.write(lambda rows: rows.insert("meta", key="planted", value=PLANTED))
        backup.make_backup(store.path, backup.make_backup_path(store.path, now="2026-05-04T00:00:00Z"))
        store.close()
    (machine.root / "key").write_text(keys.format_key(KEY))
    return shutil.copytree(machine.home, machine.root / "plain")


@pytest.mark.invariant(
    "Killed at any step, encrypting or undoing it leaves a whole database, and goes on when it is repeated"
)
@pytest.mark.parametrize(
    ("verb", "stride"), [("on", 12), *(pytest.param(verb, 1, marks=pytest.mark.long) for verb in ("on", "off"))]
)
def test_a_kill_at_each_step_leaves_the_database_whole(machine: Machine, plain: Path, verb: str, stride: int) -> None:
    """At every twelfth step, from another one each time; at all of them in the long form."""
    config, record = machine.config(), keys.EncryptionRecord(str(machine.root / "key"), keys.digest_key(KEY))
    before = rows_of(config.paths.database)
    if verb == "off":
        encrypt.switch(config, record)
        plain = shutil.copytree(machine.home, machine.root / "encrypted")
    step = random.randrange(1 - stride, 1)
    words = ("on", record.location, record.digest) if verb == "on" else ("off",)
    while True:
        step += stride
        shutil.rmtree(machine.home)
        shutil.copytree(plain, machine.home)
        if run_until(machine, step, *words) == 0:
            break
        with hold_instance_lock(config.paths):  # as the next daemon does
            assert rows_of(config.paths.database) == before, step
            for copy in backup.list_backups(config.paths.database):
                assert backup.examine(copy), step
        assert_whole(config, record, verb, step)
        assert rows_of(config.paths.database) == before, step
    assert step > 20
    assert_whole(config, record, verb, step)


def assert_whole(config: Config, record: keys.EncryptionRecord, verb: str, step: int) -> None:
    """What the verb does when it is run again, and what is in the files then."""
    report = encrypt.switch(config, record if verb == "on" else None)
    assert (report["state"], report["removed"], report["left"]) == (verb, [], []), step
    held = [path for path in config.paths.home.rglob("*") if path.is_file() and PLANTED.encode() in path.read_bytes()]
    assert len(held) == (0 if verb == "on" else 2), (step, held)
    assert not list(config.paths.home.glob(f"{backup.WORKSHOP}/**/*")), step
