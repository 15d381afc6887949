"""Every place that can hold what people said is named, so that forgetting and scanning miss none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from csmd.cli import main
from csmd.paths import Paths
from csmd.store import cursors, files, purge_files, text_columns, vectors
from csmd.store.core import Store
from csmd.store.sqlite import Rows

#: Text and blob columns that hold no text of anybody's.
STRUCTURE: dict[str, frozenset[str]] = {
    "meta": frozenset({"key", "value"}),
    "migrations": frozenset({"name", "applied_at"}),
    "projects": frozenset({"key", "kind", "created_at", "fingerprint"}),
    "aliases": frozenset({"key", "why", "created_at"}),
    "sessions": frozenset({"id", "parent", "host", "version", "model", "started_at", "last_at", "settled_at", "emptied_at", "unreported_at"}),
    "turns": frozenset({"uuid", "kind", "text_hash", "at", "parent_uuid", "message_id", "tool_name", "tool_id", "source", "mode"}),
    "compactions": frozenset({"outcome", "cause"}),
    "queued": frozenset({"key", "at", "left_at"}),
    "events": frozenset({"id", "host", "name", "session_id", "stream", "text_hash", "payload_hash", "source", "at"}),
    "statements": frozenset({"text_hash", "gate", "category", "authority", "reasons", "also", "at"}),
    "memories": frozenset(
        {"id", "text_hash", "gate", "category", "type", "tier", "decay", "authority", "origin", "scope", "session_id",
         "created_at", "confirmed_at", "superseded_by", "used_at"}
    ),
    "provenance": frozenset({"uuid", "session_id", "at", "role"}),
    "links": frozenset({"relationship", "created_at"}),
    "memory_topics": frozenset({"by_whom"}),
    "graph_counted": frozenset({"project_seq", "memories", "topics", "sessions", "tagged", "produced"}),
    "graph_shift": frozenset({"memory_seq", "project_seq", "by"}),
    "link_counts": frozenset({"relationship"}),
    "links_counted": frozenset({"relationship", "number"}),
    "belief_changes": frozenset({"memory_id", "change", "by_whom", "at", "undone_at"}),
    "memory_events": frozenset({"at", "act", "about", "memory_id", "by_whom"}),
    "packets": frozenset({"uuid", "kind", "outcome", "at", "stance"}),
    "candidates": frozenset(
        {"id", "kind", "source", "gate", "category", "status", "memory_ids", "created_at", "updated_at"}
    ),
    "candidate_evidence": frozenset({"uuid", "session_id", "at"}),
    "digests": frozenset({"why", "at", "outcome"}),
    "digest_items": frozenset({"kind", "uuid", "state"}),
    "session_links": frozenset({"kind", "rule", "evidence"}),
    "checkpoints": frozenset(
        {"id", "why", "summary_uuid", "asked_at", "at", "awaits", "restored_at", "restored_for"}
    ),
    "checkpoint_items": frozenset({"kind", "uuid", "state"}),
    "checkpoint_raw_captures": frozenset({"uuid", "kind", "tool", "at"}),
    "goals": frozenset({"id", "session_id", "authority", "created_at", "done_at"}),
    "self_capabilities": frozenset({"capability", "outcome", "uuid", "at"}),
    "curations": frozenset({"at", "dropped"}),
    "kept_answers": frozenset({"question_hash", "at"}),
    "judgements": frozenset({"uuid", "tell", "at"}),
    "stands": frozenset({"uuid", "at"}),
    "dreams": frozenset({"id", "why", "state", "begun_at", "ended_at", "undone_at"}),
    "change_sets": frozenset({"id", "by_whom", "item", "made", "kind", "evidence", "at", "undone_at"}),
    "changed_rows": frozenset({"item", "state", "state_after", "kept"}),
    "changed_files": frozenset({"kept"}),
    "dreamt_scopes": frozenset({"digest"}),
    "told_days": frozenset({"day", "due", "last_at"}),
    "pages": frozenset({"at", "problem", "left_out"}),
    "errors": frozenset({"fingerprint"}),
    "error_seen": frozenset({"at"}),
    "error_fixes": frozenset({"uuid", "at"}),
    "symptoms": frozenset({"uuid", "at", "fingerprint"}),
    "refutations": frozenset({"uuid", "at", "reason"}),
    "scenes": frozenset({"uuid"}),
    "cursors": frozenset({"stage", "subject"}),
    "files": frozenset({"head", "foot", "read_at"}),
    "injections": frozenset({"id", "session_id", "event", "at", "text_hash"}),
    "injection_items": frozenset({"memory_id", "reason", "used_by"}),
    "usage": frozenset({"message_id"}),
    "context_log": frozenset({"at", "session_id", "event"}),
    "memory_recall_events": frozenset({"at", "kind", "query_hash"}),
    "activity": frozenset({"day"}),
    "tombstones": frozenset({"kind", "hash", "part_of", "authority", "created_at", "place", "again_at"}),
    "instructions": frozenset({"hosts", "kind", "text_hash", "read_at"}),
    "clients": frozenset({"version", "last_at"}),
    "elsewhere": frozenset({"last_at"}),
    "counters": frozenset({"name"}),
    "sizes": frozenset({"day"}),
    "tallies": frozenset({"name"}),
    "vector_models": frozenset({"name", "created_at"}),
    "vectors": frozenset({"kind"}),
    "embed_again": frozenset({"kind"}),
    "providers": frozenset(
        {"name", "place", "model", "key_from", "added_at", "answered_at", "failed_at", "failing_since", "failure"}
    ),
    # The server's address, roles and the remotes that projects are shared under: `csmd team unshare` and `leave` remove them.
    "team": frozenset({"url", "author", "epoch", "joined_at", "reached_at", "failing_since", "failure"}),
    "team_shares": frozenset({"name", "readers", "shared_at"}),
    "team_outbox": frozenset({"kind", "id"}),
    "team_places": frozenset({"author"}),
    "team_memories": frozenset({"author", "remote_id"}),
    "calls": frozenset({"at", "day", "purpose", "provider", "model", "state"}),
}  # fmt: skip
NAMED_STRUCTURE = {(table, name) for table, names in STRUCTURE.items() for name in names}


@dataclass(frozen=True)
class Shape:
    """The columns of a database by table, with their declared types; derived and internal tables apart."""

    columns: dict[str, dict[str, str]]
    derived: frozenset[str]


def shape(rows: Rows) -> Shape:
    tables = [name for (name,) in rows.all("select name from sqlite_schema where type in ('table', 'view')")]
    derived = {name for name in tables if name.startswith(text_columns.DERIVED_PREFIXES)}
    return Shape(
        columns={
            table: {row[1]: row[2].lower() for row in rows.all(f"pragma table_info({table})")}
            for table in tables
            if table not in derived and not table.startswith("sqlite_")
        },
        derived=frozenset(derived),
    )


def unnamed(found: Shape) -> set[tuple[str, str]]:
    """Columns that could hold text and are in neither table of holds.py."""
    could = {
        (table, name)
        for table, columns in found.columns.items()
        for name, kind in columns.items()
        if kind not in ("integer", "real")
    }
    return could - text_columns.TEXT_COLUMNS - NAMED_STRUCTURE


@pytest.mark.invariant("Every column and file that holds text is named; log and quarantine hold nobody's words")
def test_every_column_that_could_hold_text_is_named(store: Store) -> None:
    store.write(lambda rows: vectors.ensure_model(rows, "m", 4, now=""))
    assert unnamed(store.read(shape)) == set()


def test_every_name_stands_for_a_column_that_exists(store: Store) -> None:
    store.write(lambda rows: vectors.ensure_model(rows, "m", 4, now=""))
    found = store.read(shape)
    named = text_columns.TEXT_COLUMNS | NAMED_STRUCTURE
    assert {pair for pair in named if pair[1] not in found.columns.get(pair[0], {})} == set()
    assert all(any(name.startswith(prefix) for name in found.derived) for prefix in text_columns.DERIVED_PREFIXES)
    assert not text_columns.TEXT_COLUMNS & NAMED_STRUCTURE


def test_a_column_that_nobody_named_is_caught(store: Store) -> None:
    def plant(rows: Rows) -> set[tuple[str, str]]:
        rows.run("create table diary (seq integer primary key, entry text, note, rank real)")
        rows.run("alter table sessions add column mood text")
        return unnamed(shape(rows))

    assert store.write(plant) == {("diary", "entry"), ("diary", "note"), ("sessions", "mood")}


FILES = (*purge_files.TEXT_FILES, *purge_files.STRUCTURE_FILES)


def matches(path: str, patterns: Iterable[str]) -> bool:
    for pattern in patterns:
        folder, deep, _ = pattern.partition("**")
        if path.startswith(folder) if deep else PurePosixPath(path).match(pattern):
            return True
    return False


@pytest.mark.invariant("Every column and file that holds text is named; log and quarantine hold nobody's words")
def test_every_file_of_the_home_is_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    paths = Paths(home=home, config_file=home / "config.yaml", log_dir=home / "log")
    for folder in (home, paths.run_dir, paths.spool, paths.quarantine, paths.hook_dir, paths.models, paths.log_dir):
        files.make_private(folder)
    store = Store(paths.database, now="")
    store.write(lambda rows: cursors.move_cursor(rows, "a", "b", 1))
    for path in (paths.endpoint, paths.lock, paths.instance, paths.stopped_mark, paths.hung_mark, paths.hook_script,
                 paths.install_record, paths.log_file, paths.config_file, paths.spool / "a.event", paths.spool / ".tmp-a",
                 paths.log_dir / "csmd.log.1", paths.models / "name" / "model.onnx"):  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomic(path, b"")
    files.quarantine(paths.quarantine, source="x", reason="y", data=b"z", now="")
    paths.database.with_suffix(".before-migration.db").touch()
    found = {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}
    assert {name for name in found if not matches(name, FILES)} == set()
    text = {name for name in found if matches(name, purge_files.TEXT_FILES)}
    assert {
        "csmd.db",
        "csmd.db-wal",
        "csmd.before-migration.db",
        "spool/a.event",
        "spool/.tmp-a",
        "install.json",
    } <= text
    assert not {name for name in text if matches(name, purge_files.STRUCTURE_FILES)}
    store.close()
    assert not matches("diary.txt", FILES)


def test_every_file_of_a_home_that_was_really_used_is_named_once(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CSMD_HOME", str(machine.home))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(machine.assistant))
    machine.csmd("start")
    path = machine.conversation()
    machine.transcript("not JSON\n")
    machine.csmd("import", str(path))
    machine.event("UserPromptSubmit", prompt="hello", transcript_path=str(path))
    machine.call("csm_session_write_user", id="mine", text="kept in a file", project=str(machine.project))
    machine.csmd("stop")
    machine.hook("UserPromptSubmit", prompt="while nobody listens")
    main._crash_report(ValueError("a bug"))
    found = {str(path.relative_to(machine.home)) for path in machine.home.rglob("*") if path.is_file()}
    text = {name for name in found if matches(name, purge_files.TEXT_FILES)}
    structure = {name for name in found if matches(name, purge_files.STRUCTURE_FILES)}
    assert found - text - structure == set()
    assert text & structure == set()
    assert {"csmd.db", "log/csmd.log", "log/crash.txt", "run/start.stderr"} <= text
    assert any(name.startswith("sessions/") for name in text)
    assert any(name.startswith("spool/") for name in text) and any(name.startswith("quarantine/") for name in text)
