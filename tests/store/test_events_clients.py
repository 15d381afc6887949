"""Which clients wrote lately and which directories are not read: the latest stay, and there are never many."""

from __future__ import annotations

from pathlib import Path

import pytest

from csmd.store import client_versions
from csmd.store.core import Store


def test_of_each_version_the_latest_line_counts(store: Store) -> None:
    store.write(lambda rows: client_versions.record_versions(rows, {"2.1.329": "2026-05-04", "2.0.77": "2026-05-02"}))
    store.write(lambda rows: client_versions.record_versions(rows, {"2.1.329": "2026-05-01", "2.0.77": "2026-05-03"}))
    assert store.read(lambda rows: client_versions.list_versions_since(rows, "2026-05-03")) == {
        "2.1.329": "2026-05-04", "2.0.77": "2026-05-03",
    }  # fmt: skip
    assert list(store.read(lambda rows: client_versions.list_versions_since(rows, "2026-05-04"))) == ["2.1.329"]


@pytest.mark.invariant("A hook cannot lead csmd to a foreign directory")
def test_however_many_are_named_the_tables_stay_small(store: Store) -> None:
    many = {f"9.9.{number}": f"2026-01-01T00:00:{number:03d}" for number in range(200)}
    store.write(lambda rows: client_versions.record_versions(rows, many))
    kept = store.read(lambda rows: client_versions.list_versions_since(rows, ""))
    assert len(kept) == client_versions.MAX_VERSIONS and "9.9.199" in kept
    for number in range(50):
        path, at = f"/h/{number}", f"2026-01-01T00:00:{number:03d}"
        store.write(lambda rows, path=path, at=at: client_versions.record_other_directory(rows, path, at=at))  # type: ignore[misc]
    found = store.read(client_versions.list_other_directories)
    assert len(found) == client_versions.MAX_DIRECTORIES and "/h/49" in found and Path("/h/0") not in map(Path, found)
