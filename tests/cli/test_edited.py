"""Files of somebody else's: written whole through their links, with what they had of owner, mode and attributes."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.cli import edited, json_text, settings
from csmd.errors import BadInput, ConfigError

# --- writing


def test_a_new_file_is_private_and_an_old_ones_mode_stays(tmp_path: Path) -> None:
    path = tmp_path / "new" / "settings.json"
    edited.apply(path, None, b"one")
    assert path.read_bytes() == b"one"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    edited.apply(path, b"one", b"two")
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [entry.name for entry in path.parent.iterdir()] == ["settings.json"]


def test_a_symlink_stays_one_and_its_target_is_written(tmp_path: Path) -> None:
    target = tmp_path / "dotfiles" / "claude.json"
    target.parent.mkdir()
    target.write_bytes(b"one")
    path = tmp_path / "settings.json"
    path.symlink_to("dotfiles/claude.json")
    edited.apply(path, edited.read(path), b"two")
    assert path.is_symlink()
    assert target.read_bytes() == b"two"
    assert [entry.name for entry in target.parent.iterdir()] == ["claude.json"]


@pytest.mark.parametrize(
    ("before", "now", "after"),
    [(b"one", b"two", b"mine"), (b"one", None, b"mine"), (None, b"two", b"mine"), (b"one", b"two", None)],
)
def test_a_file_that_changed_meanwhile_is_not_touched(
    tmp_path: Path, before: bytes | None, now: bytes | None, after: bytes | None
) -> None:
    path = tmp_path / "settings.json"
    if now is not None:
        path.write_bytes(now)
    with pytest.raises(ConfigError):
        edited.apply(path, before, after)
    assert edited.read(path) == now
    assert len(list(tmp_path.iterdir())) == (now is not None)


def test_a_place_that_cannot_be_written_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError) as caught:
        edited.apply(tmp_path / "file" / "settings.json", None, b"one")
    assert "settings.json" in caught.value.what
    (tmp_path / "settings.json").mkdir()
    with pytest.raises(ConfigError):
        edited.read(tmp_path / "settings.json")


def test_a_deletion_deletes_and_no_change_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    edited.apply(path, None, None)
    assert not path.exists()
    path.write_bytes(b"one")
    inode = path.stat().st_ino
    edited.apply(path, b"one", b"one")
    assert path.stat().st_ino == inode
    edited.apply(path, b"one", None)
    assert not path.exists()


# --- showing


def test_the_diff_is_one_that_patch_understands(tmp_path: Path) -> None:
    for before in (b'{\n  "model": "opus"\n}', b'{"a": 1}', b'{\n "\xc3\xa9": 1\n}\n'):
        merged = settings.plan_merge(before, "/usr/bin/python3", Path("/h/csmd"))
        path = tmp_path / "settings.json"
        path.write_bytes(before)
        text = edited.diff(before, merged, path)
        command = ["git", "apply", "--unsafe-paths", "-p1", f"--directory={os.sep}", "-"]
        subprocess.run(command, input=text.encode(), cwd=tmp_path, check=True, capture_output=True)
        assert path.read_bytes() == merged
    assert edited.diff(b"a\n", b"a\n", Path("x")) == ""
    assert edited.diff(None, b"a\n", Path("/x")).startswith("--- /dev/null\n+++ /x\n")
    assert edited.diff(b"a\n", None, Path("/x")).startswith("--- /x\n+++ /dev/null\n")


# --- one member of an object

CASES = [
    ("", ("a", "b"), 1, '{\n  "a": {\n    "b": 1\n  }\n}\n'),
    ('{"x":1}', ("a", "b"), {"c": 2}, '{"x":1,"a":{"b":{"c":2}}}'),
    ('{"a": {"x": [1]}}', ("a", "b"), 2, '{"a": {"x": [1], "b": 2}}'),
    ('{\n\t"a": {}\n}', ("a", "b"), 2, '{\n\t"a": {\n\t\t"b": 2\n\t}\n}'),
    ('{"a": {"b": 1,   "x": 2}}', ("a", "b"), 3, '{"a": {"b": 3,   "x": 2}}'),
    ('{"a": {"b":   1.0}}', ("a", "b"), 1, '{"a": {"b":   1.0}}'),
]


@pytest.mark.parametrize(("before", "path", "value", "after"), CASES)
def test_a_member_is_put_into_the_files_own_form(before: str, path: tuple[str, ...], value: Any, after: str) -> None:
    assert json_text.with_member(before, path, value) == after
    assert json_text.with_member(after, path, value) == after
    assert json_text.value_at(after, path) == value


def test_a_member_goes_with_what_held_nothing_else() -> None:
    for before, after in [
        ('{"x":1,"a":{"b":1}}', '{"x":1}'),
        ('{"a": {"b": 1, "x": 2}}', '{"a": {"x": 2}}'),
        ('{"a": {"b": 1}}', "{}"),
        ('{"a": {"x": 2}}', '{"a": {"x": 2}}'),
        ('{"a": [1]}', '{"a": [1]}'),
        ('{"a": 1}', '{"a": 1}'),
        ("", ""),
    ]:
        assert json_text.without_path(before, ("a", "b")) == after
    with pytest.raises(BadInput):
        json_text.with_member('{"a": []}', ("a", "b"), 1)


members = st.dictionaries(
    st.sampled_from(["a", "b", "mcpServers", 'q"']), st.integers() | st.text(max_size=3), max_size=3
)


@given(
    st.dictionaries(st.sampled_from(["a", "servers", "z"]), members | st.lists(members, max_size=2), max_size=3),
    st.sampled_from([None, 1, 2, "\t"]),
)
def test_putting_a_member_in_and_taking_it_out_changes_nothing_of_others(value: Any, indent: Any) -> None:
    if not isinstance(value.get("servers", {}), dict):
        value.pop("servers")
    before = json.dumps(value, indent=indent)
    merged = json_text.with_member(before, ("servers", "csmd"), {"command": "x"})
    found = json.loads(merged)
    assert found.pop("servers") == {**value.get("servers", {}), "csmd": {"command": "x"}}
    assert found == {key: one for key, one in value.items() if key != "servers"}
    left = json_text.without_path(merged, ("servers", "csmd"))
    assert left == before if value.get("servers") or ("servers" not in value and value) else json.loads(left) == found
