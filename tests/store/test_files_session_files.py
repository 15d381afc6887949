"""A session file is private, whole line by line whatever happens, and refuses clearly what it cannot take."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from csmd.errors import BadInput, ConfigError, StoreError, TooLarge
from csmd.store import files


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
    assert [line.rstrip() for line in files.session_lines(path)] == [b'{"a":1}', b'{"a":2}', b'{"a":3,"tor', b'{"a":4}']


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
        list(files.session_lines(path))


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
        files.session_file(root, ident)


def test_a_link_in_the_place_of_a_file_or_folder_is_not_followed(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_bytes(b"not ours")
    files.append_lines(root / "-p" / "one.jsonl", b"ours")
    (root / "-p" / "two.jsonl").symlink_to(other)
    with pytest.raises(StoreError):
        files.append_lines(root / "-p" / "two.jsonl", b"line")
    assert other.read_bytes() == b"not ours" and files.session_file(root, "two") is None
    (tmp_path / "folder").mkdir()
    (root / "-q").symlink_to(tmp_path / "folder")
    with pytest.raises(ConfigError):
        files.append_lines(root / "-q" / "one.jsonl", b"line")
    assert files.session_file(root, "one") == root / "-p" / "one.jsonl"
