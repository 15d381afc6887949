"""Every column and file that holds text, and how a purge treats it.

Purge, scan, redaction and repair walk these tables; tests fail on a column or a file that is missing here.
"""

from __future__ import annotations

import re
from typing import Literal

#: What becomes of a text that holds something purged. turn: rewritten, with what was made of it; drop: its row goes;
#: memory: it is removed whole; rewrite: in place. Of paths that tell rows apart or are looked up, hide: a keyed hash
#: takes its place; of those that do not, empty: nothing does.
Way = Literal["turn", "drop", "memory", "rewrite", "hide", "empty"]
#: The columns of each way. All hold redacted text; of a transcript's path with a secret in it a hash is part, so that
#: its cursor is found again. What is short enough is its own fingerprint: its candidate is dropped, or the row would be
#: made again. What could bring a text back is dropped, never rewritten: nothing purged is undone.
_COLUMNS: dict[Way, str] = {
    "turn": "turns.text",
    "memory": "memories.text",
    "drop": "passages.text statements.text scenes.text candidates.fingerprint checkpoint_raw_captures.text topics.name "
    "packets.subject answer_befores.text answer_befores.more dream_rows.text dream_rows.more dream_rows.text_after "
    "dream_rows.more_after dream_files.path dream_files.before dream_files.after pages.path errors.command "
    "errors.message error_fixes.files error_fixes.text symptoms.text",
    "rewrite": "candidates.text candidates.reason digests.text digest_items.text session_links.about checkpoints.note "
    "checkpoint_items.text goals.text self_capabilities.why belief_changes.before belief_changes.after "
    "belief_changes.reason dreams.error dream_changes.reason pages.text pages.also pages.held projects.root projects.name "
    "projects.remote sessions.cwd sessions.title aliases.path instructions.text instructions.root",
    "hide": "files.path elsewhere.path directories.path instructions.path",
    "empty": "sessions.path",
}
#: (table, column) -> its way.
WAYS: dict[tuple[str, str], Way] = {
    (table, column): way for way, names in _COLUMNS.items() for table, column in re.findall(r"(\w+)\.(\w+)", names)
}
TEXT_COLUMNS = frozenset(WAYS)
#: The ways of columns that are gone through by their values, not by rows.
OF_PATHS: frozenset[Way] = frozenset({"hide", "empty"})
#: Tables whose rows are known by a path; those of every other by `seq`.
KEYED_BY_PATH = frozenset({"files", "elsewhere"})
#: Rows that one transaction of a walk looks at.
LOOKED_AT = 400

#: How the names of tables and views begin that derive their content from TEXT_COLUMNS and go with it.
DERIVED = (
    "turns_fts", "passages_fts", "memories_fts", "digests_fts", "symptoms_fts", "turn_text", "memory_text", "digest_text",
    "symptom_text", "vector_codes", "vec_turn_", "vec_passage_", "vec_memory_",
)  # fmt: skip

#: What becomes of a file that holds something purged. database: rewritten by the store itself; copy: a database nobody
#: has open, removed when it holds or may hold it; remove: when it holds it; rewrite: in place, as somebody appends to
#: it; lines: each line's JSON, in place; page: in place, with the lines of memories that are no more; keep: csmd needs
#: it to undo its installation.
FileWay = Literal["database", "copy", "remove", "rewrite", "lines", "page", "keep"]
#: Files in the home that may hold text, as globs below it.
TEXT_FILES: dict[str, FileWay] = {
    "csmd.db": "database",
    "csmd.db-wal": "database",
    "csmd.db-shm": "database",
    "csmd.before-migration.db": "copy",
    "csmd.db.before-restore": "copy",
    "csmd.db.before-restore-*": "copy",
    "backups/*": "copy",
    "damaged-*/*": "copy",
    "repairing/*": "copy",
    "sessions/*/*.jsonl": "lines",
    "memory/**/*": "page",
    "spool/*.event": "remove",
    "spool/.tmp-*": "remove",
    "quarantine/*": "remove",
    "log/csmd.log*": "rewrite",
    "log/crash.txt": "remove",
    "run/*.stderr": "remove",
    "install.json": "keep",
}
#: Files in the home that hold none.
STRUCTURE_FILES: tuple[str, ...] = (
    "endpoint", "config.yaml", "pauses.json", "hook/*", "hook/__pycache__/*", "run/*.lock", "run/daemon.json", "run/stopped-by-user",
    "run/hung", "run/told-*", "run/noticed-*", "run/passed-by", "run/*.sock", "models/**/*", "README.txt",
    "log/report.txt",
)  # fmt: skip
