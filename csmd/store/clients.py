"""Which versions of the assistant wrote transcripts lately, and which of its directories csmd is not told to read.

Both tables are small whatever transcripts and hooks say: the latest rows stay, the others go.
"""

from __future__ import annotations

from collections.abc import Mapping

from csmd.store.sqlite import Rows

MOST_VERSIONS = 40
MOST_DIRECTORIES = 8


def note_versions(rows: Rows, latest: Mapping[str, str]) -> None:
    """Remembers of each version the time of its latest line."""
    for version, at in latest.items():
        rows.run(
            "insert into clients (version, last_at) values (:version, :at) on conflict (version) do update "
            "set last_at = case when clients.last_at < excluded.last_at then excluded.last_at else clients.last_at end",
            version=version,
            at=at,
        )
    if int(rows.value("select count(*) from clients")) > MOST_VERSIONS:
        rows.run(
            "delete from clients where version not in "
            "(select version from clients order by last_at desc, version limit :most)",
            most=MOST_VERSIONS,
        )


def versions_since(rows: Rows, at: str) -> dict[str, str]:
    """The versions that wrote a line since a time, and when they last did, the latest first."""
    found = rows.all("select version, last_at from clients where last_at >= :at order by last_at desc, version", at=at)
    return {str(version): str(last) for version, last in found}


def note_elsewhere(rows: Rows, path: str, *, at: str) -> None:
    """Remembers a configuration directory that a hook named and that is not read."""
    rows.run(
        "insert into elsewhere (path, last_at) values (:path, :at) "
        "on conflict (path) do update set last_at = excluded.last_at",
        path=path,
        at=at,
    )
    rows.run(
        "delete from elsewhere where path not in (select path from elsewhere order by last_at desc, path limit :most)",
        most=MOST_DIRECTORIES,
    )


def elsewhere(rows: Rows) -> dict[str, str]:
    """The directories that hooks named and that were not read then, and when they last did, the latest first."""
    found = rows.all("select path, last_at from elsewhere order by last_at desc, path")
    return {str(path): str(at) for path, at in found}
