"""Files of somebody else's: written whole through their links, with what they had of owner, mode and attributes."""

from __future__ import annotations

import os
import stat
import subprocess
import threading
import time
from pathlib import Path

import pytest

from csmd.errors import ConfigError
from csmd.hosts.host_files import Registration
from csmd.installer import foreign_files, plan

# --- writing


def test_a_new_file_is_private_and_an_old_ones_mode_stays(tmp_path: Path) -> None:
    path = tmp_path / "new" / "settings.json"
    foreign_files.apply(path, None, b"one")
    assert path.read_bytes() == b"one"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    foreign_files.apply(path, b"one", b"two")
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [entry.name for entry in path.parent.iterdir()] == ["settings.json"]


def test_a_symlink_stays_one_and_its_target_is_written(tmp_path: Path) -> None:
    target = tmp_path / "dotfiles" / "claude.json"
    target.parent.mkdir()
    target.write_bytes(b"one")
    path = tmp_path / "settings.json"
    path.symlink_to("dotfiles/claude.json")
    foreign_files.apply(path, foreign_files.read(path), b"two")
    assert path.is_symlink()
    assert target.read_bytes() == b"two"
    assert [entry.name for entry in target.parent.iterdir()] == ["claude.json"]


def test_a_place_that_cannot_be_written_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError) as caught:
        foreign_files.apply(tmp_path / "file" / "settings.json", None, b"one")
    assert "settings.json" in caught.value.what
    (tmp_path / "settings.json").mkdir()
    with pytest.raises(ConfigError):
        foreign_files.read(tmp_path / "settings.json")


def test_a_deletion_deletes_and_no_change_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    foreign_files.apply(path, None, None)
    assert not path.exists()
    path.write_bytes(b"one")
    inode = path.stat().st_ino
    foreign_files.apply(path, b"one", b"one")
    assert path.stat().st_ino == inode
    foreign_files.apply(path, b"one", None)
    assert not path.exists()


def test_a_symlinked_directory_and_a_chain_of_links_lead_to_the_file(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "claude"
    real.mkdir(parents=True)
    (real / "settings.json").write_bytes(b"one")
    (tmp_path / ".claude").symlink_to("dotfiles/claude")
    (tmp_path / "also").symlink_to(".claude/settings.json")
    foreign_files.apply(tmp_path / ".claude" / "settings.json", b"one", b"two")
    foreign_files.apply(tmp_path / "also", b"two", b"three")
    assert (real / "settings.json").read_bytes() == b"three"
    assert (tmp_path / ".claude").is_symlink() and (tmp_path / "also").is_symlink()
    foreign_files.apply(tmp_path / ".claude" / "new.json", None, b"new")
    assert (real / "new.json").read_bytes() == b"new"


def test_a_link_to_nothing_and_a_link_to_itself_are_explained_and_nothing_is_made(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to(tmp_path / "away" / "settings.json")
    (tmp_path / "cycle").symlink_to("cycle")
    with pytest.raises(ConfigError, match=r"symbolic link to .*away.*not there"):
        foreign_files.read(tmp_path / "dangling")
    with pytest.raises(ConfigError, match="cannot be read"):
        foreign_files.read(tmp_path / "cycle")
    for name in ("dangling", "cycle"):
        with pytest.raises(ConfigError):
            foreign_files.apply(tmp_path / name, None, b"one")
    assert not (tmp_path / "away").exists()


def test_a_file_that_somebody_made_read_only_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b"one")
    path.chmod(0o444)
    with pytest.raises(ConfigError, match="is read-only"):
        foreign_files.check(path)
    with pytest.raises(ConfigError, match="is read-only"):
        foreign_files.apply(path, b"one", b"two")
    assert path.read_bytes() == b"one"
    (tmp_path / "pipe").mkdir()
    with pytest.raises(ConfigError, match="not a regular file"):
        foreign_files.check(tmp_path / "pipe")


def test_whose_file_it_is_does_not_change(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b"one")
    if os.geteuid() == 0:
        os.chown(path, 12345, 54321)
        path.chmod(0o2640)
        foreign_files.apply(path, b"one", b"two")
        info = path.stat()
        assert (info.st_uid, info.st_gid, stat.S_IMODE(info.st_mode)) == (12345, 54321, 0o2640)
        os.seteuid(12346)
        try:
            with pytest.raises(ConfigError, match=r"belongs to another user|cannot be read"):
                foreign_files.check(path)
        finally:
            os.seteuid(0)
    else:
        with pytest.raises(ConfigError, match="belongs to another user"):
            foreign_files.check(Path("/etc/hosts"))


def test_extended_attributes_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b"one")
    try:
        os.setxattr(path, "user.csmd.test", b"value")
    except (OSError, AttributeError):
        pytest.skip("this file system keeps no extended attributes")
    foreign_files.apply(path, b"one", b"two")
    assert (path.read_bytes(), os.getxattr(path, "user.csmd.test")) == (b"two", b"value")


# --- showing


def test_the_diff_is_one_that_patch_understands(tmp_path: Path) -> None:
    for before in (b'{\n  "model": "opus"\n}', b'{"a": 1}', b'{\n "\xc3\xa9": 1\n}\n'):
        merged = (
            plan.add_entries(
                before, plan.KINDS, Registration(home=Path("/h/csmd"), interpreter="/usr/bin/python3"), "x"
            )
            or b""
        )
        path = tmp_path / "settings.json"
        path.write_bytes(before)
        text = foreign_files.diff(before, merged, path)
        command = ["git", "apply", "--unsafe-paths", "-p1", f"--directory={os.sep}", "-"]
        subprocess.run(command, input=text.encode(), cwd=tmp_path, check=True, capture_output=True)
        assert path.read_bytes() == merged
    assert foreign_files.diff(b"a\n", b"a\n", Path("x")) == ""
    assert foreign_files.diff(None, b"a\n", Path("/x")).startswith("--- /dev/null\n+++ /x\n")
    assert foreign_files.diff(b"a\n", None, Path("/x")).startswith("--- /x\n+++ /dev/null\n")


# --- the assistant's lock


@pytest.mark.invariant("Of the assistant's own configuration only our entry comes and goes, under its lock")
def test_the_lock_is_the_assistants_own_and_is_gone_afterwards(tmp_path: Path) -> None:
    (tmp_path / "real.json").touch()
    (tmp_path / "link.json").symlink_to("real.json")
    with foreign_files.assistant_lock(tmp_path / "link.json"):
        assert (tmp_path / "real.json.lock").is_dir()
    assert not (tmp_path / "real.json.lock").exists()
    with foreign_files.assistant_lock(tmp_path / "no" / "folder.json"):
        assert not (tmp_path / "no").exists()


def test_somebody_elses_lock_is_waited_for_and_one_left_behind_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, lock = tmp_path / "f.json", tmp_path / "f.json.lock"
    lock.mkdir()
    released: list[float] = []

    def release() -> None:
        released.append(time.monotonic())
        lock.rmdir()

    timer = threading.Timer(0.1, release)
    timer.start()
    with foreign_files.assistant_lock(path):
        assert released
    timer.join()
    lock.mkdir()
    long_ago = time.time() - foreign_files.STALE_S - 5
    os.utime(lock, (long_ago, long_ago))
    with foreign_files.assistant_lock(path):
        assert time.time() - lock.stat().st_mtime < 5, "it is a new one"
    lock.mkdir()
    monkeypatch.setattr(foreign_files, "PATIENCE_S", 0.05)
    with pytest.raises(ConfigError, match="being written by another program"), foreign_files.assistant_lock(path):
        raise AssertionError("the lock is held by somebody else")
    assert lock.is_dir()
