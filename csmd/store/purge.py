"""The removal of purged text from every column in passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial

from csmd.knowledge import Memory
from csmd.privacy.fingerprints import PURGED, remove_purged
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
from csmd.store.sqlite import Row, Rows, enable_secure_delete
from csmd.store.text_columns import KEYED_BY_PATH, PATH_ACTIONS, PURGE_ACTIONS, read_texts_after
from csmd.store.tombstones import ROWS_PER_PASS
from csmd.text import tokens

#: The key in `meta` of the time when an unfinished purge began.
UNFINISHED_KEY = "purge_begun"
#: Rows of turns and memories that one transaction changes at most.
MAX_CHANGED_ROWS = 100
#: The stage whose cursors count how often a session had secrets that became known later.
LATE_SECRETS_STAGE = "late secrets"

#: (rows, key of the hashes, position, 0 at first) -> (next position, None at the end; rows changed).
Pass = Callable[[Rows, bytes, int], tuple[int | None, int]]
#: Columns that hold a session's id, or begin with it (`stream`, and a sub-agent's id).
SESSION_IDS = (
    "sessions.id sessions.parent events.session_id events.stream memories.session_id "
    "provenance.session_id candidate_evidence.session_id injections.session_id context_log.session_id goals.session_id"
).split()


def apply_tombstones(rows: Rows, key: bytes) -> int:
    """Removes everything that the tombstones forbid, a transaction for each part; returns how many rows changed.

    For a database that was restored or rebuilt, once its tombstones are in place. Uses the caller's transaction if any.
    """
    total = 0
    for run_pass in (*PASSES, _delete_forgotten, _schedule_late_secrets):
        after: int | None = 0
        while after is not None:
            with nullcontext() if rows.connection.in_transaction else rows.transaction(write=True):
                after, changed = run_pass(rows, key, after)
            total += changed
    return total


def record_begin(rows: Rows, *, now: str) -> None:
    """Records that a purge has begun, in the transaction that writes its tombstones."""
    enable_secure_delete(rows)
    curations.drop_answers(rows)
    rows.upsert("meta", "key", key=UNFINISHED_KEY, value=now)


def is_unfinished(rows: Rows) -> bool:
    """Whether a purge was begun and not finished."""
    return rows.has("meta", key=UNFINISHED_KEY)


def record_end(rows: Rows) -> None:
    """Records that the purge is finished."""
    rows.delete("meta", key=UNFINISHED_KEY)


# --- texts in every column


def _purge_column(table: str, column: str, rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """Returns a pass over one part of a column, which changes each purged text as PURGE_ACTIONS says."""
    if PURGE_ACTIONS[table, column] in PATH_ACTIONS:
        return None, _hide_paths(rows, table, column, key)
    marks = tombstones.purged_marks(rows, key)
    part = read_texts_after(rows, table, column, after) if marks else []
    total = 0
    for seq, text in part:
        cleaned, hits = remove_purged(text, marks)
        if hits:
            cleaned = page_lines.quote_purged(cleaned) if table == "pages" else cleaned
            change_row(rows, table, column, seq, cleaned, key)
            total += 1
    return _next_position(part), total


def _next_position(part: Sequence[Row]) -> int | None:
    """Returns the position after a part of a table; None at the end."""
    return part[-1][0] if part else None


def change_row(rows: Rows, table: str, column: str, seq: int, new: str, key: bytes, *, in_place: bool = False) -> None:
    """Changes one row as PURGE_ACTIONS says; with `in_place` statements and memories are rewritten, too."""
    action = PURGE_ACTIONS[table, column]
    if action == "turn":
        rewrite_turn(rows, seq, new, key)
    elif action == "memory" and not in_place:
        _delete_memories(rows, [seq])
    elif table == "changed_rows":  # an undo could restore the text, and half an undo is useless
        for change_set in rows.column("select set_seq from changed_rows where seq = :seq", seq=seq):
            journal.erase_images(rows, change_set)
    elif action == "drop" and (not in_place or (table == "statements" and _is_stated_already(rows, seq, new, key))):
        rows.run(f"delete from {table} where seq = :seq", seq=seq)  # noqa: S608
    else:
        if action == "memory":
            vectors.reembed(rows, "memory", seq)
        hashes = {"text_hash": tokens.keyed_hash(new, key)} if table in ("memories", "statements") else {}
        rows.update(table, seq, **{column: new}, **hashes)


def _delete_memories(rows: Rows, seqs: Sequence[int]) -> None:
    for memory in memories.by_seqs(rows, seqs).values():
        memory_deletion.delete_memory(rows, memory)


def _is_stated_already(rows: Rows, seq: int, new: str, key: bytes) -> bool:
    """Whether another statement of the same turn will have the same text."""
    sql = """select o.seq from statements x
        join statements o on o.turn_seq = x.turn_seq where x.seq = :seq and o.text_hash = :hash and o.seq <> x.seq"""
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
        if table in KEYED_BY_PATH and rows.has(table, path=name):
            rows.run(f"delete from {table} where path = :path", path=path)  # noqa: S608
        else:
            new = name if PURGE_ACTIONS[table, column] == "hide" else ""
            rows.run(f"update {table} set {column} = :new where {column} = :path", new=new, path=path)  # noqa: S608
        total += 1
    return total


def _delete_forgotten(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """Deletes memories and statements that were forgotten one by one."""
    if not tombstones.has_kind(rows, "memory"):
        return None, 0
    total = 0
    part = rows.all(
        "select seq from memories where seq > :after order by seq limit :limit", after=after, limit=ROWS_PER_PASS
    )
    for memory in memories.by_seqs(rows, [seq for (seq,) in part]).values():
        if rows.has("memories", id=memory.id) and _is_forgotten(rows, memory, key):
            memory_deletion.delete_memory(rows, memory)
            total += 1
    statements = "select seq, text, gate, authority, project_seq, at from statements"
    for seq, text, gate, authority, project, at in rows.all(statements) if after == 0 else ():
        if tombstones.is_statement_forgotten(
            rows, text, correction=gate == "correction", authority=authority, project=project, at=at, key=key
        ):
            total += rows.delete("statements", seq=seq)
    return _next_position(part), total


def _is_forgotten(rows: Rows, memory: Memory, key: bytes) -> bool:
    """Whether a memory was forgotten in its project.

    A general memory counts as forgotten only if every project that stated it forgot it, because it may be older than
    its workspace.
    """

    def is_forgotten_in(project: int) -> bool:
        return tombstones.is_statement_forgotten(
            rows, memory.text, correction=memory.gate == "correction", authority=memory.authority, project=project,
            at=memory.created_at, key=key,
        )  # fmt: skip

    if is_forgotten_in(memory.project_seq):
        return True
    is_general = tombstones.is_everywhere(rows, memory.project_seq)
    stating_projects = memories.list_source_projects(rows, memory) if is_general else ()
    return bool(stating_projects) and all(map(is_forgotten_in, stating_projects))


# --- whole turns, sessions and projects: emptied, with what is derived from them deleted. Their rows stay if others refer
# to them, so that a line that is read again is recognized.


def _list_ids_with_purged_text(rows: Rows, key: bytes) -> list[str]:
    """Returns the sessions with purged text in their id, which a program may choose."""
    marks = tombstones.purged_marks(rows, key)
    session_ids = rows.column("select id from sessions where parent = ''") if marks else []
    return [session_id for session_id in session_ids if marks.spans(session_id)]


def _mark_sessions_by_id(rows: Rows, key: bytes, _: int) -> tuple[int | None, int]:
    """Purges every session with purged text in its id, which also names its file."""
    since = rows.text("select value from meta where key = :key", key=UNFINISHED_KEY)
    for session_id in _list_ids_with_purged_text(rows, key):
        if not tombstones.purged_names(rows, "session", [session_id], key=key):
            tombstones.purge_names(rows, "session", [session_id], key=key, now=since)
    return None, 0


def _hide_session_names(rows: Rows, key: bytes, _: int) -> tuple[int | None, int]:
    """Replaces the id of each such session by a keyed hash; a hook that reports it is recognized by its tombstone."""
    names = _list_ids_with_purged_text(rows, key)
    for session_id in names:
        hidden = tombstones.make_hidden_name("session", session_id, key)
        for table, column in (name.split(".") for name in SESSION_IDS):
            sql = f"""update {table} set {column} = :hidden || substr({column}, length(:id) + 1)
                where {column} = :id or substr({column}, 1, length(:id) + 1) = :id || '/'"""  # noqa: S608
            rows.run(sql, hidden=hidden, id=session_id)
    return None, len(names)


def _rename_workspaces(rows: Rows, key: bytes, _: int) -> tuple[int | None, int]:
    """Removes purged text from the keys of workspaces, which are their names; other keys are hashes."""
    marks = tombstones.purged_marks(rows, key)
    total = 0
    for seq, name in rows.all("select seq, key from projects where kind = 'workspace'") if marks else ():
        cleaned, hits = remove_purged(name, marks)
        if hits:
            is_taken = rows.has("projects", key=cleaned)
            tombstones.rename_project(rows, seq, f"{cleaned}-{seq}" if is_taken else cleaned, key=key)
            total += 1
    return None, total


def _purge_sessions(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    purged_projects = tombstones.find_purged_projects(rows, key)
    if not purged_projects and not tombstones.has_kind(rows, "session"):
        return None, 0
    sql = "select seq, id, parent, project_seq, started_at from sessions where seq > :after order by seq limit :limit"
    part = rows.all(sql, after=after, limit=ROWS_PER_PASS)
    names = [name for row in part for name in row[1:3] if name]
    purged = tombstones.purged_names(rows, "session", names, key=key)
    total = 0
    for seq, session_id, parent, project, started in part:
        if session_id in purged or parent in purged or started <= purged_projects.get(project, ""):
            changed, is_done = _purge_session(rows, seq, session_id, key)
            total += changed
            if not is_done:
                return seq - 1, total
    return _next_position(part), total


def _purge_session(rows: Rows, seq: int, session_id: str, key: bytes) -> tuple[int, bool]:
    """Empties a part of a session; returns (rows changed, whether it is empty)."""
    sql = """select t.seq from session_turn st join turns t on t.seq = st.turn_seq
        where st.session_seq = :session and t.text <> :purged order by st.ordinal limit :limit"""
    turn_seqs = rows.column(sql, session=seq, purged=PURGED, limit=MAX_CHANGED_ROWS)
    for turn in turn_seqs:
        purge_turn(rows, turn, key)
    if len(turn_seqs) == MAX_CHANGED_ROWS:
        return len(turn_seqs), False
    changed = len(turn_seqs) + rows.run(
        """update sessions set path = '', cwd = '', title = '', version = '', model = '', unreported_at = ''
            where seq = :seq and path || cwd || title || version || model || unreported_at <> ''""",
        seq=seq,
    )
    sql = """delete from injection_items where memory_id = :id
        or injection_seq in (select seq from injections where session_id = :id)"""
    rows.run(sql, id=session_id)
    changed += rows.delete("usage", session_seq=seq) + rows.delete("stands", session_seq=seq)
    changed += checkpoints.delete_of_session(rows, seq) + goals.delete_session_goals(rows, session_id)
    for table in ("injections", "events", "context_log"):
        changed += rows.run(f"delete from {table} where session_id = :id", id=session_id)  # noqa: S608
    memory_deletion.drop_sources(rows, "session_id = :id", id=session_id)
    return changed, True


def _purge_turns(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    purged_projects = tombstones.find_purged_projects(rows, key)
    if not purged_projects and not tombstones.has_kind(rows, "turn"):
        return None, 0
    sql = """select t.seq, t.uuid, t.project_seq, t.at, s.id, t.text_hash from turns t
        join sessions s on s.seq = t.session_seq where t.seq > :after and t.text <> :purged order by t.seq limit :limit"""
    part = rows.all(sql, after=after, purged=PURGED, limit=MAX_CHANGED_ROWS)
    names = {seq: tombstones.list_turn_names(uuid, stream, hash_) for seq, uuid, _, _, stream, hash_ in part}
    purged = tombstones.purged_names(rows, "turn", [name for some in names.values() for name in some], key=key)
    total = 0
    for seq, _, project, at, *_ in part:
        if not purged.keys().isdisjoint(names[seq]) or at <= purged_projects.get(project, ""):
            purge_turn(rows, seq, key)
            total += 1
    return _next_position(part), total


def purge_turn(rows: Rows, seq: int, key: bytes) -> None:
    """Empties a turn and deletes everything derived from it; it stays listed, so that its line is recognized."""
    uuid = rows.find("turns", "uuid", seq=seq)
    stored_days.take_back_days(rows, seq)
    rewrite_turn(rows, seq, PURGED, key)
    rows.update("turns", seq, searchable=0)
    rows.delete("statements", turn_seq=seq)
    packet_rows.take_back_packets(rows, uuid)
    failures.delete_turn(rows, seq, uuid)
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
    sql = """update turns set text = :text, text_hash = :hash,
        searchable = case when cast(:text as text) = :purged then 0 else searchable end where seq = :seq"""
    rows.run(sql, text=text, hash=new, purged=PURGED, seq=seq)
    sql = "update events set text_hash = :new where stream = :stream and text_hash = :old"
    rows.run(sql, new=new, stream=stream, old=old)
    digests.clear_sessions_of_turn(rows, seq)
    curations.delete_notes_of_turn(rows, seq)
    checkpoints.delete_turn(rows, seq)


def _purge_projects(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """Returns the last pass over a project: deletes its memories, name and key, unless it has newer rows."""
    total = 0
    for seq, since in tombstones.find_purged_projects(rows, key).items():
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
    name, created_at = rows.first("select key, created_at from projects where seq = :seq", seq=seq) or ("", "")
    newer = "select 1 from sessions where project_seq = :seq and started_at > :since limit 1"
    if created_at > since or rows.exists(newer, seq=seq, since=since):
        return 0
    for table in ("aliases", "instructions", "candidates"):
        rows.run(f"delete from {table} where project_seq = :seq", seq=seq)  # noqa: S608
    journal.erase_project(rows, seq)
    for directory, path in rows.all("select seq, path from directories where project_seq = :seq", seq=seq):
        hidden = tombstones.make_hidden_name("file", path, key)
        rows.update("directories", directory, path=hidden)
    # With the row key: a project that was purged twice has two rows.
    hidden = f"{tombstones.make_hidden_name('project', name, key)}:{seq}"
    team.unshare_project(rows, seq)
    rows.update("projects", seq, key=hidden, root=PURGED, name=PURGED, remote="", fingerprint="")
    return 1


def _purge_links(rows: Rows, key: bytes, _: int) -> tuple[int | None, int]:
    """Deletes the links whose relationship, named by a person, holds purged text."""
    marks = tombstones.purged_marks(rows, key)
    names = rows.column("select distinct relationship from links order by relationship")
    return None, sum(rows.delete("links", relationship=name) for name in names if marks.spans(name.replace("_", " ")))


#: In this order: whole sessions, turns and projects before columns, and pages after memories, whose lines they repeat.
PASSES: tuple[Pass, ...] = (
    journal.purge_answers, journal.purge_actions, _purge_links, _mark_sessions_by_id, _purge_sessions, _purge_turns, _purge_projects,
    *(partial(_purge_column, table, column) for table, column in sorted(PURGE_ACTIONS)), stored_pages.purge_pages, _hide_session_names, _rename_workspaces,
)  # fmt: skip


def _schedule_late_secrets(rows: Rows, key: bytes, _: int) -> tuple[int | None, int]:
    """Schedules every session with known secrets for a search: a restored state may predate them."""
    for session in tombstones.list_sessions_with_secrets(rows, key):
        cursors.move_cursor(rows, LATE_SECRETS_STAGE, session, 1)
    return None, 0
