"""Every column and file of csmd that holds what people or tools said; a test fails on one that is missing.

Purge, scan and redaction walk these tables: a place that is not named here would keep what
the user made csmd forget. STRUCTURE names the rest: keys, words of a fixed vocabulary, times, hashes.
"""

from __future__ import annotations

#: (table, column) that hold text of people, tools or the machine; full-text indexes and vectors derive from them.
#: All redacted; a transcript's path with a secret in it is stored with a hash, so that its cursor is found again.
TEXT_COLUMNS: frozenset[tuple[str, str]] = frozenset(
    {
        ("projects", "root"),
        ("projects", "name"),
        ("projects", "remote"),
        ("aliases", "path"),
        ("directories", "path"),
        ("sessions", "path"),
        ("sessions", "cwd"),
        ("sessions", "title"),
        ("turns", "text"),
        ("passages", "text"),
        ("statements", "text"),
        ("memories", "text"),
        ("scenes", "text"),
        ("topics", "name"),
        ("packets", "subject"),
        ("candidates", "text"),
        ("candidates", "reason"),
        ("candidates", "fingerprint"),
        ("digests", "text"),
        ("digest_items", "text"),
        ("session_links", "about"),
        ("checkpoints", "note"),
        ("checkpoint_items", "text"),
        ("checkpoint_raw_captures", "text"),
        ("goals", "text"),
        ("self_capabilities", "why"),
        ("belief_changes", "before"),
        ("belief_changes", "after"),
        ("belief_changes", "reason"),
        ("answer_befores", "text"),
        ("answer_befores", "more"),
        ("dreams", "error"),
        ("dream_changes", "reason"),
        ("dream_rows", "text"),
        ("dream_rows", "more"),
        ("dream_rows", "text_after"),
        ("dream_rows", "more_after"),
        ("dream_files", "path"),
        ("dream_files", "before"),
        ("dream_files", "after"),
        ("pages", "path"),
        ("pages", "text"),
        ("pages", "also"),
        ("pages", "held"),
        ("errors", "command"),
        ("errors", "message"),
        ("error_fixes", "files"),
        ("error_fixes", "text"),
        ("symptoms", "text"),
        ("belief_changes", "before"),
        ("belief_changes", "after"),
        ("belief_changes", "reason"),
        ("files", "path"),
        ("elsewhere", "path"),
        ("instructions", "path"),
        ("instructions", "root"),
        ("instructions", "text"),
    }
)

#: Tables that derive their content from TEXT_COLUMNS and must be purged with them.
DERIVED_TABLES: frozenset[str] = frozenset(
    {
        "turns_fts",
        "passages_fts",
        "memories_fts",
        "digests_fts",
        "symptoms_fts",
        "turn_text",
        "memory_text",
        "digest_text",
        "symptom_text",
        "vector_codes",
    }
)
DERIVED_PREFIXES: tuple[str, ...] = (
    "turns_fts_",
    "passages_fts_",
    "memories_fts_",
    "digests_fts_",
    "symptoms_fts_",
    "vec_turn_",
    "vec_passage_",
    "vec_memory_",
)

#: Text and blob columns that hold no text of anybody's.
STRUCTURE: dict[str, frozenset[str]] = {
    "meta": frozenset({"key", "value"}),
    "migrations": frozenset({"name", "applied_at"}),
    "projects": frozenset({"key", "kind", "created_at", "fingerprint"}),
    "aliases": frozenset({"key", "why", "created_at"}),
    "sessions": frozenset({"id", "parent", "host", "version", "model", "started_at", "last_at", "settled_at"}),
    "turns": frozenset({"uuid", "kind", "text_hash", "at", "parent_uuid", "message_id", "tool_name", "tool_id", "source"}),
    "queued": frozenset({"key", "at", "left_at"}),
    "events": frozenset({"id", "host", "name", "session_id", "stream", "text_hash", "payload_hash", "source", "at"}),
    "unheard": frozenset({"session_id", "at"}),
    "statements": frozenset({"text_hash", "gate", "category", "authority", "reasons", "also", "at"}),
    "memories": frozenset(
        {"id", "text_hash", "gate", "category", "type", "tier", "decay", "authority", "origin", "scope", "session_id",
         "created_at", "confirmed_at", "superseded_by", "used_at"}
    ),
    "provenance": frozenset({"uuid", "session_id", "at", "role"}),
    "links": frozenset({"relationship", "created_at"}),
    "memory_topics": frozenset({"by_whom"}),
    "belief_changes": frozenset({"memory_id", "change", "by_whom", "at", "undone_at"}),
    "packets": frozenset({"uuid", "kind", "outcome", "at", "stance"}),
    "candidates": frozenset(
        {"id", "kind", "source", "gate", "category", "status", "memory_ids", "created_at", "updated_at"}
    ),
    "candidate_evidence": frozenset({"uuid", "session_id", "at"}),
    "digests": frozenset({"why", "at", "outcome"}),
    "digest_items": frozenset({"kind", "uuid", "state"}),
    "session_links": frozenset({"kind", "rule"}),
    "session_link_evidence": frozenset({"uuid"}),
    "checkpoints": frozenset(
        {"id", "why", "summary_uuid", "asked_at", "at", "awaits", "restored_at", "restored_for"}
    ),
    "checkpoint_items": frozenset({"kind", "uuid", "state"}),
    "checkpoint_raw_captures": frozenset({"uuid", "kind", "tool", "at"}),
    "goals": frozenset({"id", "session_id", "authority", "created_at", "done_at"}),
    "self_capabilities": frozenset({"capability", "outcome", "uuid", "at"}),
    "self_continuity": frozenset({"host", "version", "model", "since", "until"}),
    "answers": frozenset({"id", "item", "answer", "made", "was", "at", "undone_at"}),
    "answer_befores": frozenset({"memory_id", "state"}),
    "dreams": frozenset({"id", "why", "state", "begun_at", "ended_at", "undone_at"}),
    "dream_changes": frozenset({"kind", "evidence", "at", "undone_at"}),
    "dream_rows": frozenset({"item", "state", "state_after", "kept"}),
    "dream_files": frozenset({"kept"}),
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
    "tampered": frozenset({"name_hash", "at"}),
    "instructions": frozenset({"kind", "text_hash", "read_at"}),
    "clients": frozenset({"version", "last_at"}),
    "elsewhere": frozenset({"last_at"}),
    "counters": frozenset({"name"}),
    "sizes": frozenset({"day"}),
    "tallies": frozenset({"name"}),
    "vector_models": frozenset({"name", "created_at"}),
    "vectors": frozenset({"kind"}),
    "embed_again": frozenset({"kind"}),
}  # fmt: skip

#: Files in the home that may hold text, as globs below it.
TEXT_FILES: tuple[str, ...] = (
    "csmd.db",
    "csmd.db-wal",
    "csmd.db-shm",
    "csmd.before-migration.db",
    "csmd.db.before-restore",
    "csmd.db.before-restore-*",
    "backups/*",
    "damaged-*/*",
    "repairing/*",
    "spool/*.event",
    "spool/.tmp-*",
    "quarantine/*",
    "sessions/*/*.jsonl",
    "memory/**/*",
    "log/csmd.log*",
    "log/crash.txt",
    "run/*.stderr",
    "install.json",
)
#: Files in the home that hold none.
STRUCTURE_FILES: tuple[str, ...] = (
    "endpoint", "config.yaml", "pauses.json", "hook/*", "hook/__pycache__/*", "run/*.lock", "run/daemon.json", "run/stopped-by-user",
    "run/hung", "run/told-*", "run/noticed-*", "run/passed-by", "run/*.sock", "models/**/*", "README.txt",
    "log/report.txt",
)  # fmt: skip
