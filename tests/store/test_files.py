"""Private, whole or not at all, and nothing of anybody else's is taken for csmd's own."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from csmd import wire
from csmd.config import spool_places
from csmd.errors import BadInput, ConfigError, StoreError, TooLarge
from csmd.store import files

HEAD = b"csmd-spool 1 e1 claude prompt 1700000000000000000\n"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    made = files.make_private(tmp_path / "home")
    files.make_private(made / "spool")
    yield made
    shutil.rmtree(spool_places(made)[-1], ignore_errors=True)


def spool(home: Path, name: str = "e1", data: bytes = HEAD + b'{"a":1}') -> Path:
    path = home / "spool" / f"{name}.event"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_a_directory_is_its_owners_alone_whatever_the_umask_and_its_past(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        assert files.make_private(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    finally:
        os.umask(before)
    (tmp_path / "open").mkdir(mode=0o755)
    files.make_private(tmp_path / "open")
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in ("a/b", "open")} == {0o700}


@pytest.mark.parametrize("kind", ["file", "link to a directory", "dangling link"])
def test_what_is_no_directory_of_ours_is_refused_with_advice(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    if kind == "file":
        place.touch()
    else:
        place.symlink_to(tmp_path if kind == "link to a directory" else tmp_path / "nowhere")
    with pytest.raises(ConfigError) as error:
        files.make_private(place)
    assert "CSMD_HOME" in error.value.hint


def test_a_file_appears_whole_private_and_without_leftovers(tmp_path: Path) -> None:
    path = tmp_path / "file"
    before = os.umask(0)
    try:
        files.write_atomic(path, b"one")
        files.write_atomic(path, b"two")
        files.write_atomic(tmp_path / "script", b"#!", mode=0o700)
    finally:
        os.umask(before)
    assert path.read_bytes() == b"two"
    assert (path.stat().st_mode & 0o777, (tmp_path / "script").stat().st_mode & 0o777) == (0o600, 0o700)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "script"]


def test_a_write_that_fails_leaves_what_was_there_and_no_leftovers(tmp_path: Path) -> None:
    (tmp_path / "taken" / "inside").mkdir(parents=True)
    with pytest.raises(OSError):
        files.write_atomic(tmp_path / "taken", b"x")
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]


def test_a_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_bytes(b"theirs")
    (tmp_path / "file").symlink_to(tmp_path / "theirs")
    files.write_atomic(tmp_path / "file", b"ours")
    assert (tmp_path / "theirs").read_bytes() == b"theirs"
    assert not (tmp_path / "file").is_symlink()


def test_two_threads_may_write_one_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "file"
    contents = [bytes([number]) * 5000 for number in range(4)]
    trouble: list[BaseException] = []

    def write(data: bytes) -> None:
        try:
            for _ in range(15):
                files.write_atomic(path, data)
                assert path.read_bytes() in contents
        except (OSError, AssertionError) as error:
            trouble.append(error)

    threads = [threading.Thread(target=write, args=(data,)) for data in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert trouble == []
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_json_file_of_ours_is_read_or_the_reason_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert files.read_json(path) is None
    path.write_text('{"a": 1}')
    assert files.read_json(path) == {"a": 1}
    for wrong in ("[1]", "{", "\0"):
        path.write_text(wrong)
        with pytest.raises(ConfigError) as error:
            files.read_json(path)
        assert str(path) in error.value.hint


def test_spooled_events_are_read_oldest_first_from_both_places(home: Path) -> None:
    second = spool_places(home)[-1]
    files.make_private(second.parent)
    files.make_private(second)
    spool(home, "002-b")
    (second / "001-a.event").write_bytes(HEAD)
    (home / "spool" / ".tmp-003").write_bytes(HEAD)
    (home / "spool" / "notes.txt").touch()
    assert [path.name for path in files.spooled_paths(home)] == ["001-a.event", "002-b.event"]


def test_the_second_place_is_one_homes_alone(tmp_path: Path) -> None:
    one, other = (spool_places(tmp_path / name)[-1] for name in ("a/b", "a%2Fb"))
    assert one != other
    assert one.parent == other.parent == Path(f"/tmp/csmd-{os.getuid()}")


def test_a_spool_that_others_could_have_written_is_not_read(home: Path) -> None:
    spool(home)
    (home / "spool").chmod(0o777)
    assert files.spooled_paths(home) == []
    (home / "spool").chmod(0o700)
    assert len(files.spooled_paths(home)) == 1
    (home / "spool").rename(home / "real")
    (home / "spool").symlink_to(home / "real")
    assert files.spooled_paths(home) == []
    assert files.spooled_paths(home / "nowhere") == []


def test_a_spooled_event_comes_back_byte_for_byte(home: Path) -> None:
    body = b"\xff\n\n\0{}\r\n"
    found = files.read_spooled(spool(home, data=HEAD + body))
    assert (found.id, found.host, found.name, found.at_ns, found.body) == (
        "e1",
        "claude",
        "prompt",
        1700000000000000000,
        body,
    )


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", HEAD[:-1], HEAD[:-3] + b"x\n", b"csmd-spool two e1 claude prompt 1\n", b"csmd-spool 1 e1 claude prompt\n",
     b"csmd-spool 1 e1 claude prompt " + b"1" * 5000 + b"\n", b"csmd-spool " + b"1" * 5000 + b" e1\n",
     b"csmd-spool 1 e1 claude prompt 1 more\n", b"csmd-spool 1 e1 claude prompt -5\n", "csmd-spool 1 e1 claude prompt \u00b2\n".encode()],
)  # fmt: skip
def test_what_is_no_spooled_event_is_refused(home: Path, data: bytes) -> None:
    with pytest.raises(BadInput):
        files.read_spooled(spool(home, data=data))


@pytest.mark.parametrize("data", [b"csmd-spool 2 e1 claude prompt 1\n", b"csmd-spool 17 of which we know nothing\n{}"])
def test_an_event_of_a_newer_spool_is_refused_but_not_as_bad_input(home: Path, data: bytes) -> None:
    with pytest.raises(StoreError, match="spooled by a newer csmd"):
        files.read_spooled(spool(home, data=data))


def test_a_link_a_pipe_a_socket_a_directory_and_a_stranger_are_no_events(home: Path) -> None:
    real = home / "real"
    real.write_bytes(HEAD)
    link, pipe, folder, gone = (home / "spool" / f"{name}.event" for name in ("link", "pipe", "folder", "gone"))
    link.symlink_to(real)
    os.mkfifo(pipe)
    folder.mkdir()
    for path in (link, pipe, folder):
        with pytest.raises(BadInput, match="not a file of yours"):
            files.read_spooled(path)
    with pytest.raises(OSError):
        files.read_spooled(gone)
    short = Path(f"/tmp/csmd-test-{os.getpid()}.sock")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(short))
        try:
            with pytest.raises((BadInput, OSError)):
                files.read_spooled(short)
        finally:
            short.unlink()
    foreign = real if os.getuid() == 0 else Path("/etc/passwd")
    if foreign == real:
        os.chown(real, 12345, -1)
    with pytest.raises(BadInput, match="not a file of yours"):
        files.read_spooled(foreign)


def test_a_huge_file_is_refused_unread(home: Path) -> None:
    path = spool(home)
    os.truncate(path, wire.MAX_BODY_BYTES + 2000)
    with pytest.raises(BadInput, match="limit"):
        files.read_spooled(path)
    os.truncate(path, len(HEAD) + wire.MAX_BODY_BYTES)
    assert len(files.read_spooled(path).body) == wire.MAX_BODY_BYTES


@pytest.mark.invariant("Every column and file that holds text is named; log and quarantine hold nobody's words")
def test_the_quarantine_notes_where_and_why_but_never_what(tmp_path: Path) -> None:
    secret = b"sk-live-very-secret"
    for _ in range(2):
        files.quarantine(tmp_path / "q", source="hook prompt", reason="not JSON", data=secret, offset=7, now="2026")
    (note,) = (tmp_path / "q").iterdir()
    assert secret not in note.read_bytes()
    assert json.loads(note.read_text()) == {
        "at": "2026", "source": "hook prompt", "offset": 7, "bytes": len(secret), "reason": "not JSON",
        "sha256": hashlib.sha256(secret).hexdigest(),
    }  # fmt: skip
    assert (note.stat().st_mode & 0o777, (tmp_path / "q").stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_small_file_is_read_and_what_could_block_is_not(tmp_path: Path) -> None:
    (tmp_path / "HEAD").write_bytes(b"ref: \xff" + b"x" * 100_000)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "HEAD")
    assert (files.read_small(str(tmp_path / "HEAD"), limit=6), files.read_small(str(tmp_path / "link"), limit=3)) == (
        "ref: \ufffd",
        "ref",
    )
    assert files.read_small(str(tmp_path)) == ""
    for nothing in (tmp_path / "nowhere", tmp_path / "HEAD" / "x", tmp_path / "pipe", "/dev/zero", "a\0b"):
        assert files.read_small(str(nothing)) is None


def test_only_a_regular_file_is_opened_and_nothing_is_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with files.open_regular(tmp_path / "link") as file:
        assert file.read() == b"text"
    for other in (tmp_path / "pipe", Path("/dev/zero"), tmp_path, tmp_path / "nowhere"):
        before = len(os.listdir("/dev/fd"))
        with pytest.raises(OSError):
            files.open_regular(other)
        assert len(os.listdir("/dev/fd")) == before


def test_a_note_that_is_not_durable_is_whole_all_the_same_and_one_note_stands_for_the_rest(tmp_path: Path) -> None:
    taken = files.QuarantineNotes(tmp_path / "q", source="/t.jsonl")
    for offset in range(0, 10 * (files.MAX_NOTES + 5), 10):
        taken.add(b"bad %d" % offset, offset, reason="not JSON", now="2026")
    assert len(list((tmp_path / "q").iterdir())) == files.MAX_NOTES
    taken.close()
    found = [json.loads(path.read_text()) for path in (tmp_path / "q").iterdir()]
    (rest,) = (note for note in found if "lines" in note)
    assert len(found) == files.MAX_NOTES + 1
    assert (rest["lines"], rest["first_offset"], rest["last_offset"], rest["source"]) == (
        5, 10 * files.MAX_NOTES, 10 * (files.MAX_NOTES + 4), "/t.jsonl",
    )  # fmt: skip


def test_what_a_killed_hook_left_half_written_goes_and_a_fresh_one_stays(tmp_path: Path) -> None:
    spool = files.make_private(tmp_path / "spool")
    old, fresh, event = spool / ".tmp-old", spool / ".tmp-fresh", spool / "0123.event"
    for path in (old, fresh, event):
        path.write_bytes(b"raw")
    os.utime(old, (1000, 1000))
    assert files.clear_unfinished(tmp_path, before_s=2000) == 1
    assert {path.name for path in spool.iterdir()} == {".tmp-fresh", "0123.event"}


# --- A session file is private, whole line by line whatever happens, and refuses clearly what it cannot take.


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


def test_a_file_and_its_folders_are_the_users_alone_whatever_the_umask(root: Path) -> None:
    old = os.umask(0)
    try:
        files.append_lines(root / "-p" / "one.jsonl", b'{"a":1}')
    finally:
        os.umask(old)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (root, root / "-p", root / "-p" / "one.jsonl")]
    assert modes == [0o700, 0o700, 0o600]


def test_a_line_is_put_at_the_end_and_a_torn_one_is_ended_first(root: Path) -> None:
    path = root / "-p" / "one.jsonl"
    files.append_lines(path, b'{"a":1}')
    files.append_lines(path, b'{"a":2}')
    with path.open("ab") as file:
        file.write(b'{"a":3,"tor')
    files.append_lines(path, b'{"a":4}')
    assert path.read_bytes() == b'{"a":1}\n{"a":2}\n{"a":3,"tor\n{"a":4}\n'
    assert [line.rstrip() for line in files.read_session_lines(path)] == [
        b'{"a":1}',
        b'{"a":2}',
        b'{"a":3,"tor',
        b'{"a":4}',
    ]


@pytest.mark.invariant(
    "A session file loads to what was written, whatever was withdrawn, summarised or torn; nobody forges the user in it"
)
def test_a_full_file_refuses_and_stays_as_it_is(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert files.SESSION_FILE_BYTES == 50 * 1024 * 1024
    monkeypatch.setattr(files, "SESSION_FILE_BYTES", 20)
    path = root / "-p" / "one.jsonl"
    files.append_lines(path, b"0123456789")
    files.append_lines(path, b"01234567")
    with pytest.raises(TooLarge, match="nothing was written"):
        files.append_lines(path, b"")
    assert path.read_bytes() == b"0123456789\n01234567\n"
    with path.open("ab") as file:
        file.write(b"x")
    with pytest.raises(TooLarge):
        list(files.read_session_lines(path))


def test_a_disk_that_is_full_leaves_the_file_as_it_was(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = root / "-p" / "one.jsonl"
    files.append_lines(path, b"first")
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    with pytest.raises(StoreError, match="a part"):
        files.append_lines(path, b"second")
    assert path.read_bytes() == b"first\n"


@pytest.mark.parametrize("ident", ["", "..", ".hidden", "a/b", "a\0b", "-x", "a" * 101, "a b", "ä"])
def test_what_is_no_plain_name_is_refused(root: Path, ident: str) -> None:
    with pytest.raises(BadInput, match="name"):
        files.find_session_file(root, ident)


def test_a_link_in_the_place_of_a_file_or_folder_is_not_followed(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_bytes(b"not ours")
    files.append_lines(root / "-p" / "one.jsonl", b"ours")
    (root / "-p" / "two.jsonl").symlink_to(other)
    with pytest.raises(StoreError):
        files.append_lines(root / "-p" / "two.jsonl", b"line")
    assert other.read_bytes() == b"not ours" and files.find_session_file(root, "two") is None
    (tmp_path / "folder").mkdir()
    (root / "-q").symlink_to(tmp_path / "folder")
    with pytest.raises(ConfigError):
        files.append_lines(root / "-q" / "one.jsonl", b"line")
    assert files.find_session_file(root, "one") == root / "-p" / "one.jsonl"
