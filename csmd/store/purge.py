"""Every column that holds text, and the removal of purged text from them in passes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Literal

from csmd.knowledge import Memory
from csmd.privacy.fingerprints import PURGED, remove_purged
from csmd.privacy.redaction import KNOWN_AGAIN
from csmd.store import (
    checkpoints,
    curations,
    cursors,
    digests,
    failures,
    goals,
    journal,
    memories,
    memory_deletion,
    packet_rows,
    page_lines,
    stored_days,
    stored_pages,
    team,
    tombstones,
    vectors,
)
from csmd.store.sqlite import Rows, in_keys, secure_delete
from csmd.store.tombstones import ROWS_PER_PASS
from csmd.text import tokens

# --- every column that holds text: purge, scan, redaction and repair walk these; a test fails on one that is missing

#: What happens to a text that holds purged text. turn: it is rewritten, with what was made of it; drop: its row is
#: deleted; memory: the memory is deleted; rewrite: it is rewritten in place. For paths: hide
#: stores a keyed hash if the path identifies the row, empty clears it elsewhere.
Way = Literal["turn", "drop", "memory", "rewrite", "hide", "empty"]
#: The columns of each way. All hold redacted text; a transcript's path with a secret in it contains a hash, so that its
#: cursor is found again. A short candidate is its own fingerprint, so it is dropped, or it would be made again. What
#: could restore a text is dropped, never rewritten: no purge can be undone.
_COLUMNS: dict[Way, str] = {
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
#: (table, column) -> what happens to it.
TEXT_COLUMN_WAYS: dict[tuple[str, str], Way] = {
    (table, column): way for way, names in _COLUMNS.items() for table, column in re.findall(r"(\w+)\.(\w+)", names)
}
TEXT_COLUMNS = frozenset(TEXT_COLUMN_WAYS)
#: Columns that are walked by distinct value, not by row.
PATH_WAYS: frozenset[Way] = frozenset({"hide", "empty"})
#: Tables whose rows are keyed by a path; every other by `seq`.
KEYED_BY_PATH = frozenset({"files", "elsewhere"})
#: Prefixes of the tables and views whose content is derived from TEXT_COLUMNS and is deleted with it.
DERIVED = (
    "passages_fts", "memories_fts", "digests_fts", "symptoms_fts", "memory_text", "digest_text", "symptom_text",
    "vector_codes", "vec_passage_", "vec_memory_",
)  # fmt: skip

#: The key in `meta` of the time when an unfinished purge began.
UNFINISHED_KEY = "purge_begun"
#: Rows of turns and memories that one transaction changes at most.
MAX_CHANGED_ROWS = 100

#: (rows, key of the hashes, position, 0 at first) -> (next position, None at the end; rows changed).
Pass = Callable[[Rows, bytes, int], tuple[int | None, int]]


def apply_tombstones(rows: Rows, key: bytes) -> int:
    """Removes everything that the tombstones forbid, a transaction for each part; returns how many rows changed.

    For a database that was restored or rebuilt, once its tombstones are in place. Uses the caller's transaction if any.
    """
    total = 0
    for part in (*PASSES, _delete_forgotten, _expect_late_secrets):
        at: int | None = 0
        while at is not None:
            if rows.connection.in_transaction:
                at, changed = part(rows, key, at)
            else:
                with rows.transaction(write=True):
                    at, changed = part(rows, key, at)
            total += changed
    return total


def record_begin(rows: Rows, *, now: str) -> None:
    """Records that a purge has begun, in the transaction that writes its tombstones."""
    secure_delete(rows)
    curations.drop_answers(rows)
    rows.upsert("meta", "key", key=UNFINISHED_KEY, value=now)


def is_unfinished(rows: Rows) -> bool:
    """Whether a purge was begun and not finished."""
    return rows.has("meta", key=UNFINISHED_KEY)


def record_end(rows: Rows) -> None:
    """Records that the purge is finished."""
    rows.delete("meta", key=UNFINISHED_KEY)


# --- texts, wherever they stand


def _purge_column(table: str, column: str, rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """A pass over one part of a column, which changes each purged text as TEXT_COLUMN_WAYS says."""
    if TEXT_COLUMN_WAYS[table, column] in PATH_WAYS:
        return None, _hide_paths(rows, table, column, key)
    marks = tombstones.purged_marks(rows, key)
    if not marks:
        return None, 0
    part = texts_after(rows, table, column, after)
    total = 0
    for seq, text in part:
        cleaned, hits = remove_purged(text, marks)
        if hits:
            cleaned = page_lines.quote_purged(cleaned) if table == "pages" else cleaned
            change_row(rows, table, column, seq, cleaned, key)
            total += 1
    return (part[-1][0] if part else None), total


#: Table -> its column with the key of the row's turn.
TURN_KEY_COLUMNS = {"turns": "seq", "statements": "turn_seq", "passages": "turn_seq"}


def texts_after(
    rows: Rows, table: str, column: str, after: int, *, sessions: Sequence[int] | None = None
) -> list[tuple[int, str]]:
    """(row key, text) of the next rows of a column; `sessions` (row keys) limits turns and what was made of them."""
    of_turns = "true"
    if sessions is not None and table in TURN_KEY_COLUMNS:
        listed = f"select turn_seq from session_turn where {in_keys('session_seq', sessions)}"  # noqa: S608
        of_turns = f"{TURN_KEY_COLUMNS[table]} in ({listed})"
    sql = f"select seq, {column} from {table} where seq > :after and {of_turns} order by seq limit :limit"  # noqa: S608
    return rows.all(sql, after=after, limit=ROWS_PER_PASS)


def column_texts(rows: Rows, table: str, column: str) -> Iterator[tuple[int, str]]:
    """(row key, text) of a whole column, read in parts; the key is 0 for paths."""
    if TEXT_COLUMN_WAYS[table, column] in PATH_WAYS:
        yield from ((0, path) for path in rows.column(f"select {column} from {table}"))  # noqa: S608
        return
    after = 0
    while part := texts_after(rows, table, column, after):
        yield from part
        after = part[-1][0]


def change_row(rows: Rows, table: str, column: str, seq: int, new: str, key: bytes, *, in_place: bool = False) -> None:
    """Changes one row as TEXT_COLUMN_WAYS says; with `in_place` statements and memories are rewritten, too."""
    way = TEXT_COLUMN_WAYS[table, column]
    if way == "turn":
        rewrite_turn(rows, seq, new, key)
    elif way == "memory" and not in_place:
        _delete_memories(rows, [seq])
    elif table == "changed_rows":  # what could restore the text is deleted, and half an undo is useless
        for change_set in rows.column("select set_seq from changed_rows where seq = :seq", seq=seq):
            journal.erase_images(rows, change_set)
    elif way == "drop" and (not in_place or (table == "statements" and _is_stated_already(rows, seq, new, key))):
        rows.run(f"delete from {table} where seq = :seq", seq=seq)  # noqa: S608
    else:
        if way == "memory":
            vectors.reembed(rows, "memory", seq)
        hashes = {"text_hash": tokens.keyed_hash(new, key)} if table in ("memories", "statements") else {}
        rows.update(table, seq, **{column: new}, **hashes)


def _delete_memories(rows: Rows, seqs: Sequence[int]) -> None:
    for memory in memories.by_seqs(rows, seqs).values():
        memory_deletion.delete_memory(rows, memory)


def _is_stated_already(rows: Rows, seq: int, new: str, key: bytes) -> bool:
    """Whether another statement of the same turn will have the same text."""
    sql = (
        "select o.seq from statements x join statements o on o.turn_seq = x.turn_seq "
        "where x.seq = :seq and o.text_hash = :hash and o.seq <> x.seq"
    )
    return rows.exists(sql, seq=seq, hash=tokens.keyed_hash(new, key))


def _hide_paths(rows: Rows, table: str, column: str, key: bytes) -> int:
    """Removes purged paths from a column; a hidden one is replaced by a keyed hash, so that it stays distinct."""
    if not tombstones.purged_marks(rows, key) and not tombstones.has_kind(rows, "file"):
        return 0
    total = 0
    for path in rows.column(f"select distinct {column} from {table} where {column} <> ''"):  # noqa: S608
        name = tombstones.cursor_name(rows, path, key=key)
        if name == path:
            continue
        is_known = table in KEYED_BY_PATH and rows.value(f"select 1 from {table} where path = :name", name=name)  # noqa: S608
        if is_known:
            rows.run(f"delete from {table} where path = :path", path=path)  # noqa: S608
        else:
            new = name if TEXT_COLUMN_WAYS[table, column] == "hide" else ""
            rows.run(f"update {table} set {column} = :new where {column} = :path", new=new, path=path)  # noqa: S608
        total += 1
    return total


def _delete_forgotten(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """Deletes memories and statements that were forgotten one by one."""
    if not tombstones.has_kind(rows, "memory"):
        return None, 0
    total = 0
    sql = "select seq from memories where seq > :after order by seq limit :limit"
    part = rows.column(sql, after=after, limit=ROWS_PER_PASS)
    for memory in memories.by_seqs(rows, part).values():
        if memories.by_id(rows, memory.id) is not None and _is_forgotten(rows, memory, key):
            memory_deletion.delete_memory(rows, memory)
            total += 1
    if after == 0:
        for seq, text, gate, authority, project, at in rows.all(
            "select seq, text, gate, authority, project_seq, at from statements"
        ):
            is_correction = gate == "correction"
            if tombstones.is_statement_forgotten(
                rows, text, correction=is_correction, authority=authority, project=project, at=at, key=key
            ):
                total += rows.delete("statements", seq=seq)
    return (part[-1] if part else None), total


def _is_forgotten(rows: Rows, memory: Memory, key: bytes) -> bool:
    """Whether a memory was forgotten where it applies, or, for one of everywhere, wherever it was said.

    The latter because it may be older than the workspace in which it was said.
    """

    def is_out(project: int) -> bool:
        return tombstones.is_statement_forgotten(
            rows, memory.text, correction=memory.gate == "correction", authority=memory.authority, project=project,
            at=memory.created_at, key=key,
        )  # fmt: skip

    if is_out(memory.project_seq):
        return True
    said_in = memories.source_projects(rows, memory) if tombstones.is_everywhere(rows, memory.project_seq) else ()
    return bool(said_in) and all(map(is_out, said_in))


# --- turns, sessions and projects that go as a whole: emptied with everything that was made of them. Their rows stay
# where others refer to them, so that a line that is read again is known.


#: Columns that hold a session's id, or begin with it (`stream`, and a sub-agent's id).
SESSION_IDS = (
    "sessions.id sessions.parent events.session_id events.stream memories.session_id "
    "provenance.session_id candidate_evidence.session_id injections.session_id context_log.session_id goals.session_id"
).split()


def _ids_with_purged_text(rows: Rows, key: bytes) -> list[str]:
    """The sessions with purged text in their id, which a program may choose."""
    marks = tombstones.purged_marks(rows, key)
    return (
        [ident for ident in rows.column("select id from sessions where parent = ''") if marks.spans(ident)]
        if marks
        else []
    )


def _mark_sessions_by_id(rows: Rows, key: bytes, _: int) -> tuple[int | None, int]:
    """Purges every session with purged text in its id, which also names its file."""
    for ident in _ids_with_purged_text(rows, key):
        if not tombstones.purged_names(rows, "session", [ident], key=key):
            tombstones.purge_names(
                rows, "session", [ident], key=key, now=rows.find("meta", "value", key=UNFINISHED_KEY) or ""
            )
    return None, 0


def _hide_session_names(rows: Rows, key: bytes, _: int) -> tuple[int | None, int]:
    """Replaces the id of each such session by a keyed hash; a hook that reports it is recognized by its tombstone."""
    names = _ids_with_purged_text(rows, key)
    for ident in names:
        hidden = tombstones.hidden_name("session", ident, key)
        for table, column in (name.split(".") for name in SESSION_IDS):
            sql = (
                f"update {table} set {column} = :hidden || substr({column}, length(:id) + 1) "  # noqa: S608
                f"where {column} = :id or substr({column}, 1, length(:id) + 1) = :id || '/'"
            )
            rows.run(sql, hidden=hidden, id=ident)
    return None, len(names)


def _rename_workspaces(rows: Rows, key: bytes, _: int) -> tuple[int | None, int]:
    """Removes purged text from the keys of workspaces, which are their names; other keys are hashes."""
    marks, total = tombstones.purged_marks(rows, key), 0
    for seq, name in rows.all("select seq, key from projects where kind = 'workspace'") if marks else ():
        cleaned, hits = remove_purged(name, marks)
        if hits:
            is_taken = rows.has("projects", key=cleaned)
            tombstones.rename_project(rows, seq, f"{cleaned}-{seq}" if is_taken else cleaned, key=key)
            total += 1
    return None, total


def _purge_sessions(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    gone_projects = tombstones.purged_projects(rows, key)
    if not gone_projects and not tombstones.has_kind(rows, "session"):
        return None, 0
    sql = "select seq, id, parent, project_seq, started_at from sessions where seq > :after order by seq limit :limit"
    part = rows.all(sql, after=after, limit=ROWS_PER_PASS)
    names = [name for row in part for name in row[1:3] if name]
    gone = tombstones.purged_names(rows, "session", names, key=key)
    total = 0
    for seq, ident, parent, project, started in part:
        if ident in gone or parent in gone or started <= gone_projects.get(project, ""):
            changed, is_done = _purge_session(rows, seq, ident, key)
            total += changed
            if not is_done:
                return seq - 1, total
    return (part[-1][0] if part else None), total


def _purge_session(rows: Rows, seq: int, ident: str, key: bytes) -> tuple[int, bool]:
    """Empties a part of a session; returns (rows changed, whether it is empty)."""
    sql = (
        "select t.seq from session_turn st join turns t on t.seq = st.turn_seq "
        "where st.session_seq = :session and t.text <> :purged order by st.ordinal limit :limit"
    )
    listed = rows.column(sql, session=seq, purged=PURGED, limit=MAX_CHANGED_ROWS)
    for turn in listed:
        purge_turn(rows, turn, key)
    if len(listed) == MAX_CHANGED_ROWS:
        return len(listed), False
    changed = len(listed) + rows.run(
        "update sessions set path = '', cwd = '', title = '', version = '', model = '', unreported_at = '' "
        "where seq = :seq and path || cwd || title || version || model || unreported_at <> ''",
        seq=seq,
    )
    rows.run(
        "delete from injection_items where memory_id = :id or injection_seq in "
        "(select seq from injections where session_id = :id)",
        id=ident,
    )
    changed += rows.delete("usage", session_seq=seq) + rows.delete("stands", session_seq=seq)
    changed += checkpoints.delete_of_session(rows, seq) + goals.delete_session_goals(rows, ident)
    for table in ("injections", "events", "context_log"):
        changed += rows.run(f"delete from {table} where session_id = :id", id=ident)  # noqa: S608
    memory_deletion.drop_sources(rows, "session_id = :id", id=ident)
    return changed, True


def _purge_turns(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    gone_projects = tombstones.purged_projects(rows, key)
    if not gone_projects and not tombstones.has_kind(rows, "turn"):
        return None, 0
    sql = (
        "select t.seq, t.uuid, t.project_seq, t.at, s.id, t.text_hash from turns t join sessions s "
        "on s.seq = t.session_seq where t.seq > :after and t.text <> :purged order by t.seq limit :limit"
    )
    part = rows.all(sql, after=after, purged=PURGED, limit=MAX_CHANGED_ROWS)
    names = {seq: tombstones.turn_names(uuid, stream, hash_) for seq, uuid, _, _, stream, hash_ in part}
    gone = tombstones.purged_names(rows, "turn", [name for some in names.values() for name in some], key=key)
    total = 0
    for seq, _, project, at, *_ in part:
        if not gone.keys().isdisjoint(names[seq]) or at <= gone_projects.get(project, ""):
            purge_turn(rows, seq, key)
            total += 1
    return (part[-1][0] if part else None), total


def purge_turn(rows: Rows, seq: int, key: bytes) -> None:
    """Empties a turn and deletes everything made of it; it stays listed, so that its line is recognized."""
    uuid = rows.find("turns", "uuid", seq=seq)
    stored_days.take_back_days(rows, seq)
    rewrite_turn(rows, seq, PURGED, key)
    rows.update("turns", seq, searchable=0)
    rows.delete("statements", turn_seq=seq)
    packet_rows.take_back_packets(rows, uuid)
    failures.forget_turn(rows, seq, uuid)
    # Injected quotes of it: a passage's id is its turn's with an offset.
    sql = "delete from injection_items where memory_id = :uuid or substr(memory_id, 1, length(:passage)) = :passage"
    rows.run(sql, uuid=uuid, passage=f"{uuid}#")
    memory_deletion.drop_sources(rows, "uuid = :uuid", uuid=uuid)


def rewrite_turn(rows: Rows, seq: int, text: str, key: bytes) -> None:
    """Gives a turn another text; the hook events that reported the old one get the new one's hash."""
    old, stream = rows.first(
        "select t.text_hash, s.id from turns t join sessions s on s.seq = t.session_seq where t.seq = :seq", seq=seq
    ) or ("", "")
    new = tokens.keyed_hash(text, key)
    sql = (
        "update turns set text = :text, text_hash = :hash, "
        "searchable = case when cast(:text as text) = :purged then 0 else searchable end where seq = :seq"
    )
    rows.run(sql, text=text, hash=new, purged=PURGED, seq=seq)
    sql = "update events set text_hash = :new where stream = :stream and text_hash = :old"
    rows.run(sql, new=new, stream=stream, old=old)
    digests.clear_sessions_of_turn(rows, seq)
    curations.delete_notes_of_turn(rows, seq)
    checkpoints.delete_turn(rows, seq)


def _purge_projects(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """The last pass over a project: deletes its memories, name and key, unless it has newer rows."""
    total = 0
    for seq, since in tombstones.purged_projects(rows, key).items():
        sql = "select seq from memories where project_seq = :seq and created_at <= :since limit :limit"
        part = rows.column(sql, seq=seq, since=since, limit=MAX_CHANGED_ROWS)
        _delete_memories(rows, part)
        total += len(part) + goals.delete_goals(rows, project=seq, until=since)
        if len(part) == MAX_CHANGED_ROWS:
            return after, total
        total += _erase_project_name(rows, seq, since, key)
    return None, total


def _erase_project_name(rows: Rows, seq: int, since: str, key: bytes) -> int:
    """Erases a project's name, paths, instructions and candidates, unless it is newer than the purge."""
    name, made = rows.first("select key, created_at from projects where seq = :seq", seq=seq) or ("", "")
    newer = rows.value("select 1 from sessions where project_seq = :seq and started_at > :since", seq=seq, since=since)
    if made > since or newer is not None:
        return 0
    for table in ("aliases", "instructions", "candidates"):
        rows.run(f"delete from {table} where project_seq = :seq", seq=seq)  # noqa: S608
    journal.erase_project(rows, seq)
    for directory, path in rows.all("select seq, path from directories where project_seq = :seq", seq=seq):
        hidden = tombstones.hidden_name("file", path, key)
        rows.update("directories", directory, path=hidden)
    # With the row key: a project that was purged twice has two rows.
    hidden = f"{tombstones.hidden_name('project', name, key)}:{seq}"
    team.unshare_project(rows, seq)
    rows.update("projects", seq, key=hidden, root=PURGED, name=PURGED, remote="", fingerprint="")
    return 1


def _purge_links(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """Deletes the links whose relationship, named by a person, holds purged text."""
    del after
    marks = tombstones.purged_marks(rows, key)
    named = rows.column("select distinct relationship from links order by relationship")
    purged = [name for name in named if marks.spans(name.replace("_", " "))]
    return None, sum(rows.delete("links", relationship=name) for name in purged)


#: In this order: what is purged as a whole first, and pages once it is known which memories are left.
PASSES: tuple[Pass, ...] = (
    journal.purge_answers, journal.purge_actions, _purge_links, _mark_sessions_by_id, _purge_sessions, _purge_turns, _purge_projects,
    *(partial(_purge_column, table, column) for table, column in sorted(TEXT_COLUMN_WAYS)), stored_pages.purge_pages, _hide_session_names, _rename_workspaces,
)  # fmt: skip


# --- secrets that were known as such only after something was stored

#: The stage whose cursors count how often a session had secrets that became known later.
LATE_SECRETS_STAGE = "late secrets"


def keep_secrets_out(rows: Rows, session: str, secrets: Collection[str], *, key: bytes, now: str) -> None:
    """Keeps secrets out of a session from now on, also where they appear alone.

    Its hook events are changed at once, because a transcript's line is matched by the same words. The rest is left to
    the pass over LATE_SECRETS_STAGE.
    """
    if not tombstones.record_secrets(rows, session, secrets, key=key, now=now):
        return
    secure_delete(rows)
    marks = tombstones.secrets_of(rows, [session], key)
    sql = (
        "select t.seq, t.text from sessions s join session_turn st on st.session_seq = s.seq "
        "join turns t on t.seq = st.turn_seq where (s.id = :id or s.parent = :id) and t.provisional = 1"
    )
    for seq, text in rows.all(sql, id=session):
        cleaned, hits = remove_purged(text, marks, placeholder=KNOWN_AGAIN)
        if hits:
            rewrite_turn(rows, seq, cleaned, key)
    if rows.has("sessions", id=session):
        cursors.move_cursor(
            rows, LATE_SECRETS_STAGE, session, cursors.read_cursor(rows, LATE_SECRETS_STAGE, session) + 1
        )


def sessions_with_late_secrets(rows: Rows) -> dict[str, int]:
    """The sessions (ids) with secrets that became known later, and the position of each cursor."""
    return dict(rows.all("select subject, position from cursors where stage = :stage", stage=LATE_SECRETS_STAGE))


def end_late_secrets(rows: Rows, seen: Mapping[str, int]) -> None:
    """Records that sessions were searched up to the positions that `sessions_with_late_secrets` returned."""
    for session, position in seen.items():
        rows.delete("cursors", stage=LATE_SECRETS_STAGE, subject=session, position=position)


def session_keys(rows: Rows, ids: Iterable[str]) -> list[int]:
    """The row keys of sessions and of their sub-agents."""
    sql = "select seq from sessions where id = :id or parent = :id"
    return [seq for ident in ids for seq in rows.column(sql, id=ident)]


def _expect_late_secrets(rows: Rows, key: bytes, _: int) -> tuple[int | None, int]:
    """Schedules every session with known secrets for a search: a restored state may predate them."""
    for session in tombstones.sessions_with_secrets(rows, key):
        cursors.move_cursor(rows, LATE_SECRETS_STAGE, session, 1)
    return None, 0
