"""Every column that holds text, and the reads that walk them.

Purge, scan, redaction and repair walk these columns; a test fails if one is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from csmd.store.sqlite import Rows, in_keys
from csmd.store.tombstones import ROWS_PER_PASS

#: What a purge does to a text. turn: rewrite it and delete what is derived from it; drop: delete its row; memory: delete
#: the memory; rewrite: rewrite it in place. To a path: hide: store a keyed hash, because the path identifies the row;
#: empty: clear it.
PurgeAction = Literal["turn", "drop", "memory", "rewrite", "hide", "empty"]
#: The columns of each action. All hold redacted text; a transcript's path with a secret in it contains a hash, so that its
#: cursor is found again. A short candidate is its own fingerprint, so it is dropped, or it would be made again. What
#: could restore a text is dropped, never rewritten: no purge can be undone.
_COLUMNS: dict[PurgeAction, str] = {
    "turn": "turns.text",
    "memory": "memories.text",
    "drop": "passages.text statements.text scenes.text candidates.fingerprint checkpoint_raw_captures.text "
    "topics.name lens_topics.name packets.subject changed_rows.text changed_rows.more "
    "changed_rows.text_after changed_rows.more_after changed_files.path changed_files.before "
    "changed_files.after pages.path errors.command errors.message error_fixes.files error_fixes.text "
    "symptoms.text kept_answers.text",
    "rewrite": "candidates.text candidates.reason digests.text digest_items.text session_links.about "
    "checkpoints.note checkpoint_items.text goals.text self_capabilities.why belief_changes.before "
    "belief_changes.after belief_changes.reason dreams.error change_sets.reason pages.text pages.also "
    "pages.held projects.root projects.name projects.remote sessions.cwd sessions.title aliases.path "
    "instructions.text instructions.root",
    "hide": "files.path elsewhere.path directories.path instructions.path",
    "empty": "sessions.path",
}
#: (table, column) -> what a purge does to it.
PURGE_ACTIONS: dict[tuple[str, str], PurgeAction] = {
    (table, column): action
    for action, names in _COLUMNS.items()
    for table, column in (name.split(".") for name in names.split())
}
TEXT_COLUMNS = frozenset(PURGE_ACTIONS)
#: Columns that are walked by distinct value, not by row.
PATH_ACTIONS: frozenset[PurgeAction] = frozenset({"hide", "empty"})
#: Tables whose rows are keyed by a path; every other by `seq`.
KEYED_BY_PATH = frozenset({"files", "elsewhere"})
#: Prefixes of tables and views that are derived from TEXT_COLUMNS and are deleted with them.
DERIVED_PREFIXES = (
    "passages_fts", "memories_fts", "digests_fts", "symptoms_fts", "memory_text", "digest_text", "symptom_text",
    "vector_codes", "vec_passage_", "vec_memory_",
)  # fmt: skip
#: Table -> its column with the key of the row's turn.
TURN_KEY_COLUMNS = {"turns": "seq", "statements": "turn_seq", "passages": "turn_seq"}


def read_texts_after(
    rows: Rows, table: str, column: str, after: int, *, sessions: Sequence[int] | None = None
) -> list[tuple[int, str]]:
    """Returns (row key, text) of the next rows of a column; `sessions` limits turns and their derived rows."""
    of_turns = "true"
    if sessions is not None and table in TURN_KEY_COLUMNS:
        turn_seqs = f"select turn_seq from session_turn where {in_keys('session_seq', sessions)}"  # noqa: S608
        of_turns = f"{TURN_KEY_COLUMNS[table]} in ({turn_seqs})"
    sql = f"select seq, {column} from {table} where seq > :after and {of_turns} order by seq limit :limit"  # noqa: S608
    return rows.all(sql, after=after, limit=ROWS_PER_PASS)


def read_column_texts(rows: Rows, table: str, column: str) -> Iterator[tuple[int, str]]:
    """Yields (row key, text) of a whole column, read in parts; the key is 0 for paths."""
    if PURGE_ACTIONS[table, column] in PATH_ACTIONS:
        yield from ((0, path) for path in rows.column(f"select {column} from {table}"))  # noqa: S608
        return
    after = 0
    while part := read_texts_after(rows, table, column, after):
        yield from part
        after = part[-1][0]
