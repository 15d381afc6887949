"""The key of an encrypted home in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from csmd.errors import BadInput
from csmd.store import files, keys

KEY = bytes(range(32))


@pytest.mark.parametrize(
    "content", ["something else\n", f"{keys.format_key(bytes(32))}\n"], ids=["text", "another key"]
)
def test_a_key_file_with_other_content_is_refused_and_kept(tmp_path: Path, content: str) -> None:
    path = tmp_path / "key"
    path.write_text(content)
    with pytest.raises(BadInput) as refused:
        keys.store_key(KEY, str(path), tmp_path / "home")
    assert refused.value.hint == keys.NEW_FILE_HINT
    assert path.read_text() == content


def test_a_stored_key_is_read_back_and_stored_once(tmp_path: Path) -> None:
    path = tmp_path / "key"
    record = keys.store_key(KEY, str(path), tmp_path / "home")
    assert keys.fetch_key(record) == KEY
    written = path.stat().st_mtime_ns
    assert keys.store_key(KEY, str(path), tmp_path / "home") == record
    assert path.stat().st_mtime_ns == written
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_new_key_file_is_flushed_with_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr(files, "flush_to_disk", flushed.append)
    keys.store_key(KEY, str(tmp_path / "key"), tmp_path / "home")
    assert flushed == [tmp_path]


def test_a_key_inside_the_home_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="inside csmd's home"):
        keys.store_key(KEY, str(tmp_path / "home" / "key"), tmp_path / "home")
