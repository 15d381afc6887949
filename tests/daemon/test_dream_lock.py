"""The dream lock: one holds it, a dead or silent one gives it up, and of all that try at once one wins."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine import PACKAGE

from csmd.daemon import dream_lock
from csmd.daemon.context import to_iso
from csmd.daemon.dream_lock import MARK_TIMEOUT_S, DreamLock, Holder
from csmd.errors import ConfigError
from csmd.machine import started

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOLDING = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from csmd.daemon.dream_lock import DreamLock
print(DreamLock(Path(sys.argv[1])).acquire(datetime.now(UTC)), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory" / ".dream.lock"


def left_by(path: Path, **changed: Any) -> bytes:
    """A lock that somebody left."""
    values = {"host": "here", "boot": "b1", "pid": 1, "start": 1.0, "beat": to_iso(NOW), "token": "t", **changed}
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_bytes(dream_lock.encode_holder(Holder(**values)))
    return path.read_bytes()


def lock(path: Path, host: str = "here", boot: str = "b1") -> DreamLock:
    return DreamLock(path, host=host, boot=boot)


def test_one_process_holds_it_until_it_is_killed(path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": PACKAGE},
    )  # fmt: skip
    try:
        assert child.stdout is not None and child.stdout.readline() == "None\n", "it is the child's"
        mine, now = DreamLock(path), datetime.now(UTC)
        held = mine.acquire(now)
        assert held is not None and held.pid == child.pid
        assert mine.acquire(now + timedelta(days=9)) == held, "a living one of this host may take as long as it likes"
        assert started(child.pid) is not None
    finally:
        child.kill()
    # Not waited for yet: a zombie is dead, too.
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert started(child.pid) is None and mine.holder(now) is None
    assert mine.acquire(now) is None and mine.is_mine()
    mine.release()
    assert list(path.parent.iterdir()) == []
    child.communicate()


def test_it_is_private_and_whoever_shares_the_directory_sees_it(path: Path, tmp_path: Path) -> None:
    other_home = tmp_path / "other"
    other_home.mkdir()
    path.parent.mkdir()
    (other_home / "memory").symlink_to(path.parent)
    mine, other = lock(path), lock(other_home / "memory" / ".dream.lock")
    assert other.acquire(NOW) is None
    held = mine.acquire(NOW)
    assert held is not None and held.pid == os.getpid()
    assert [stat.S_IMODE(place.stat().st_mode) for place in (path.parent, path)] == [0o700, 0o600]
    other.release()
    assert mine.acquire(NOW) is None
    mine.release()


@pytest.mark.invariant("A dream lock is taken over when its holder is dead or silent, not before, and by one alone")
def test_two_hosts_on_a_shared_folder_go_by_the_heartbeat(path: Path) -> None:
    mine, theirs = lock(path), lock(path, "there", "b9")
    assert theirs.acquire(NOW) is None
    for minutes in (0, 59):
        held = mine.acquire(NOW + timedelta(minutes=minutes))
        assert held is not None and held.host == "there"
    assert theirs.beat(NOW + timedelta(minutes=50))
    assert mine.acquire(NOW + timedelta(minutes=100)) is not None, "it was heard of"
    assert mine.acquire(NOW + timedelta(minutes=111)) is None, "and then not for an hour: it was asleep, say"
    assert not theirs.is_mine() and not theirs.beat(NOW + timedelta(minutes=112))
    theirs.release()
    held = lock(path, "third").acquire(NOW + timedelta(minutes=113))
    assert held is not None and held.host == "here", "who lost it removes nothing and writes nothing into it"
    assert mine.is_mine()
    mine.release()


@pytest.mark.parametrize(
    "changed", [{"boot": "b0", "pid": os.getpid()}, {"pid": os.getpid(), "start": 5.0}, {"pid": 2**30}]
)
def test_after_a_reboot_with_another_process_of_its_number_and_without_one_it_is_taken_over(
    path: Path, changed: dict[str, Any]
) -> None:
    left_by(path, **changed)
    mine = lock(path)
    assert mine.holder(NOW) is None
    assert mine.acquire(NOW) is None and mine.is_mine()
    mine.release()


@pytest.mark.invariant("A dream lock is taken over when its holder is dead or silent, not before, and by one alone")
def test_of_all_that_take_a_stale_one_over_at_once_one_wins(path: Path) -> None:
    for number in range(15):
        left_by(path, pid=2**30, token=str(number))
        locks = [lock(path, boot="b1") for _ in range(6)]
        ready = threading.Barrier(len(locks))
        found: list[tuple[DreamLock, Holder | None]] = []

        def take(one: DreamLock, ready: threading.Barrier = ready, found: list[Any] = found) -> None:
            ready.wait()
            found.append((one, one.acquire(NOW)))

        threads = [threading.Thread(target=take, args=(one,)) for one in locks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [one.is_mine() for one, held in found if held is None] == [True]
        for one in locks:
            one.release()
        assert list(path.parent.iterdir()) == [], "neither a mark nor half a file is left"


def test_a_takeover_that_was_killed_half_way_is_finished_by_the_next(path: Path) -> None:
    said = left_by(path, pid=2**30)
    mark = path.with_name(f".dream.lock.over-{hashlib.sha256(said).hexdigest()[:12]}")
    mark.mkdir()
    mine = lock(path)
    assert mine.acquire(NOW) is not None, "somebody is at it"
    old = mark.stat().st_mtime - 2 * MARK_TIMEOUT_S
    os.utime(mark, (old, old))
    assert mine.acquire(NOW) is None
    mine.release()


def test_what_is_not_whole_yet_is_somebodys_and_rubbish_only_for_an_hour(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    path.write_bytes(b"")
    written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    mine = lock(path)
    assert mine.acquire(written) is not None
    assert mine.acquire(written + timedelta(minutes=61)) is None
    mine.release()


def _linked(path: Path) -> None:
    path.symlink_to(path.parent / "elsewhere")


@pytest.mark.parametrize("make", [_linked, Path.mkdir, os.mkfifo])
def test_what_is_no_file_of_ones_own_is_refused_and_left_there(path: Path, make: Any) -> None:
    path.parent.mkdir(mode=0o700)
    make(path)
    with pytest.raises(ConfigError, match="not a file of yours"):
        lock(path).acquire(NOW)
    assert os.path.lexists(path) and not (path.parent / "elsewhere").exists()


def test_a_directory_that_is_somebody_elses_or_no_directory_is_refused(path: Path) -> None:
    path.parent.write_text("a file")
    with pytest.raises(ConfigError, match="not a directory of yours"):
        lock(path).acquire(NOW)


# --- when it is stale: on one host by its holder's process, on another by its heartbeat


HELD = Holder(host="here", boot="b1", pid=41, start=1000.0, beat=to_iso(NOW - timedelta(minutes=3)), token="t")
OLD = to_iso(NOW - timedelta(days=3))


@pytest.mark.invariant("A dream lock is taken over when its holder is dead or silent, not before, and by one alone")
@pytest.mark.parametrize(
    ("held", "began", "why"),
    [
        ({}, 1000.0, ""),
        ({}, 1000.004, ""),
        ({"beat": OLD}, 1000.0, ""),
        ({}, None, "its process ended"),
        ({}, 1002.0, "its process ended and its PID was reused"),
        ({"boot": "b0"}, 1000.0, "it was taken before the machine was restarted"),
        ({"host": "there", "boot": "b9"}, None, ""),
        ({"host": "there", "beat": to_iso(NOW - timedelta(minutes=59))}, None, ""),
        ({"host": "there", "beat": to_iso(NOW - timedelta(minutes=61))}, 1000.0, "it was not renewed for an hour"),
        ({"host": "there", "beat": to_iso(NOW + timedelta(minutes=20))}, None, ""),
        ({"host": "there", "beat": to_iso(NOW + timedelta(days=900))}, None, "it was not renewed for an hour"),
        ({"host": "there", "beat": "soon"}, None, "it was not renewed for an hour"),
        ({"host": "there", "beat": "2026-06-01T12:00:00"}, None, "it was not renewed for an hour"),
    ],
)
def test_a_lock_is_stale_only_when_its_holder_is_dead_or_its_heartbeat_timed_out(
    held: dict[str, Any], began: float | None, why: str
) -> None:
    assert (
        dream_lock.explain_stale(replace(HELD, **held), host="here", boot="b1", started=lambda _: began, now=NOW) == why
    )


def test_every_heartbeat_writes_a_record_of_the_same_length() -> None:
    later = replace(HELD, beat=to_iso(NOW + timedelta(hours=2, milliseconds=7)))
    assert dream_lock.decode_holder(dream_lock.encode_holder(later)) == later
    assert len(dream_lock.encode_holder(later)) == len(dream_lock.encode_holder(HELD))


@given(st.one_of(st.binary(max_size=300), st.text(max_size=100).map(lambda said: f'{{"host": "{said}"}}'.encode())))
def test_an_invalid_lock_file_names_no_holder(said: bytes) -> None:
    assert dream_lock.decode_holder(said) is None
