"""Versions of assistants that wrote transcripts, and configuration directories that csmd does not read."""

from __future__ import annotations

from collections.abc import Mapping

from csmd.store.sqlite import Rows

MAX_VERSIONS = 40
MAX_DIRECTORIES = 8


def record_versions(rows: Rows, latest: Mapping[str, str]) -> None:
    """Records the time of the latest line that each version wrote."""
    conflict = """on conflict (version) do update set last_at = case when clients.last_at < excluded.last_at
        then excluded.last_at else clients.last_at end"""
    for version, at in latest.items():
        rows.insert("clients", conflict, version=version, last_at=at)
    rows.keep_newest("clients", "version", "last_at", limit=MAX_VERSIONS)


def list_versions_since(rows: Rows, at: str) -> dict[str, str]:
    """Returns the time of the latest line by version, of versions with a line since a time, the latest first."""
    return dict(
        rows.all("select version, last_at from clients where last_at >= :at order by last_at desc, version", at=at)
    )


def record_other_directory(rows: Rows, path: str, *, at: str) -> None:
    """Records a configuration directory that a hook named and csmd does not read."""
    rows.upsert("elsewhere", "path", path=path, last_at=at)
    rows.keep_newest("elsewhere", "path", "last_at", limit=MAX_DIRECTORIES)


def list_other_directories(rows: Rows) -> dict[str, str]:
    """Returns when a hook last named each recorded directory, the latest first."""
    return dict(rows.all("select path, last_at from elsewhere order by last_at desc, path"))
