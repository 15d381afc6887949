"""Every column that holds text, and removing purged text from them: planned, counted, carried out in passes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Literal

from csmd import wire
from csmd.errors import BadInput
from csmd.privacy.fingerprints import PURGED, Needle, check_text, clean, words
from csmd.privacy.redaction import KNOWN_AGAIN
from csmd.store import (
    candidates,
    checkpoints,
    curations,
    cursors,
    digests,
    failures,
    journal,
    markdown_pages,
    memories,
    memory_deletion,
    projects,
    team,
    tombstones,
    vectors,
    workspaces,
)
from csmd.store.sqlite import Rows, in_keys, secure_delete
from csmd.store.tombstones import LOOKED_AT
from csmd.text import similarity, tokens
from csmd.text.display import ARROW, amount
from csmd.values import Memory

# --- every column that holds text: purge, scan, redaction and repair walk these; a test fails on one that is missing

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
    "lens_topics.name packets.subject changed_rows.text changed_rows.more changed_rows.text_after "
    "changed_rows.more_after changed_files.path changed_files.before changed_files.after pages.path errors.command "
    "errors.message error_fixes.files error_fixes.text symptoms.text kept_answers.text",
    "rewrite": "candidates.text candidates.reason digests.text digest_items.text session_links.about checkpoints.note "
    "checkpoint_items.text goals.text self_capabilities.why belief_changes.before belief_changes.after "
    "belief_changes.reason dreams.error change_sets.reason pages.text pages.also pages.held projects.root projects.name "
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
#: How the names of tables and views begin that derive their content from TEXT_COLUMNS and go with it.
DERIVED = (
    "passages_fts", "memories_fts", "digests_fts", "symptoms_fts", "memory_text", "digest_text", "symptom_text",
    "vector_codes", "vec_passage_", "vec_memory_",
)  # fmt: skip

#: In `meta` while a purge is under way: when it began.
UNFINISHED = "purge_begun"
#: Rows of turns and memories that one transaction may change.
CHANGED = 100

#: (rows, key of the hashes, where to begin: 0 at first) -> (where to go on, None at the end; rows that changed).
Pass = Callable[[Rows, bytes, int], tuple[int | None, int]]


def apply_tombstones(rows: Rows, key: bytes) -> int:
    """Removes everything that the tombstones forbid, in a transaction for each part; how many rows changed.

    For a database that was restored or rebuilt, once the tombstones are in it. Inside a transaction it uses that one.
    """
    total = 0
    for part in (*PASSES, _forgotten, _expect_late_secrets):
        at: int | None = 0
        while at is not None:
            if rows.connection.in_transaction:
                at, changed = part(rows, key, at)
            else:
                with rows.transaction(write=True):
                    at, changed = part(rows, key, at)
            total += changed
    return total


def begin(rows: Rows, *, now: str) -> None:
    """Notes that a purge is under way, in the transaction that writes its tombstones."""
    secure_delete(rows)
    curations.drop_answers(rows)
    rows.upsert("meta", "key", key=UNFINISHED, value=now)


def is_unfinished(rows: Rows) -> bool:
    """Whether a purge was begun and not ended."""
    return rows.exists("select 1 from meta where key = :name", name=UNFINISHED)


def end(rows: Rows) -> None:
    """Notes that nothing of the purge is left to be done."""
    rows.delete("meta", key=UNFINISHED)


# --- texts, wherever they stand


def _column(table: str, column: str, rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """A part of one column: what holds purged text is changed in the way of its column."""
    if WAYS[table, column] in OF_PATHS:
        return None, _hide(rows, table, column, key)
    marks = tombstones.marks(rows, key)
    if not marks:
        return None, 0
    part = texts_after(rows, table, column, after)
    total = 0
    for seq, text in part:
        cleaned, hits = clean(text, marks)
        if hits:
            cleaned = markdown_pages.quote_purged(cleaned) if table == "pages" else cleaned
            change(rows, table, column, seq, cleaned, key)
            total += 1
    return (part[-1][0] if part else None), total


#: Table -> its column with the turn that a row belongs to.
OF_TURNS = {"turns": "seq", "statements": "turn_seq", "passages": "turn_seq"}


def texts_after(
    rows: Rows, table: str, column: str, after: int, *, sessions: Sequence[int] | None = None
) -> list[tuple[int, str]]:
    """(row key, text) of the next rows of a column that is keyed by number; of turns only those of `sessions` (row keys)."""
    of_turns = "true"
    if sessions is not None and table in OF_TURNS:
        listed = f"select turn_seq from session_turn where {in_keys('session_seq', sessions)}"  # noqa: S608
        of_turns = f"{OF_TURNS[table]} in ({listed})"
    sql = f"select seq, {column} from {table} where seq > :after and {of_turns} order by seq limit :limit"  # noqa: S608
    return rows.all(sql, after=after, limit=LOOKED_AT)


def _texts(rows: Rows, table: str, column: str) -> Iterator[tuple[int, str]]:
    """(row key, text) of a whole column, read in parts; 0 is the key of every path."""
    if WAYS[table, column] in OF_PATHS:
        yield from ((0, path) for path in rows.column(f"select {column} from {table}"))  # noqa: S608
        return
    after = 0
    while part := texts_after(rows, table, column, after):
        yield from part
        after = part[-1][0]


def change(rows: Rows, table: str, column: str, seq: int, new: str, key: bytes, *, in_place: bool = False) -> None:
    """Does to one row what its column's way says; with `in_place` statements and memories are rewritten, too."""
    way = WAYS[table, column]
    if way == "turn":
        rewrite_turn(rows, seq, new, key)
    elif way == "memory" and not in_place:
        _delete_memories(rows, [seq])
    elif table == "changed_rows":  # what could bring the text back goes, and half an undo is none
        for change_set in rows.column("select set_seq from changed_rows where seq = :seq", seq=seq):
            journal.erase(rows, change_set)
    elif way == "drop" and (not in_place or (table == "statements" and _stated_already(rows, seq, new, key))):
        rows.run(f"delete from {table} where seq = :seq", seq=seq)  # noqa: S608
    else:
        if way == "memory":
            vectors.reembed(rows, "memory", seq)
        hashes = {"text_hash": tokens.keyed_hash(new, key)} if table in ("memories", "statements") else {}
        rows.update(table, seq, **{column: new}, **hashes)


def _delete_memories(rows: Rows, seqs: Sequence[int]) -> None:
    for memory in memories.by_seqs(rows, seqs).values():
        memory_deletion.delete_memory(rows, memory)


def _stated_already(rows: Rows, seq: int, new: str, key: bytes) -> bool:
    """Whether another statement of the same turn reads as this one will."""
    sql = (
        "select o.seq from statements x join statements o on o.turn_seq = x.turn_seq "
        "where x.seq = :seq and o.text_hash = :hash and o.seq <> x.seq"
    )
    return rows.exists(sql, seq=seq, hash=tokens.keyed_hash(new, key))


def _hide(rows: Rows, table: str, column: str, key: bytes) -> int:
    """Takes purged paths out of a column; a hidden one stays known, and another than its neighbours, by a keyed hash."""
    if not tombstones.marks(rows, key) and not tombstones.has(rows, "file"):
        return 0
    total = 0
    for path in rows.column(f"select distinct {column} from {table} where {column} <> ''"):  # noqa: S608
        name = tombstones.listed_path(rows, path, key=key)
        if name == path:
            continue
        is_known = table in KEYED_BY_PATH and rows.value(f"select 1 from {table} where path = :name", name=name)  # noqa: S608
        if is_known:
            rows.run(f"delete from {table} where path = :path", path=path)  # noqa: S608
        else:
            new = name if WAYS[table, column] == "hide" else ""
            rows.run(f"update {table} set {column} = :new where {column} = :path", new=new, path=path)  # noqa: S608
        total += 1
    return total


def _forgotten(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """Memories and statements that were forgotten one by one."""
    if not tombstones.has(rows, "memory"):
        return None, 0
    total = 0
    sql = "select seq from memories where seq > :after order by seq limit :limit"
    part = rows.column(sql, after=after, limit=LOOKED_AT)
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
    """Whether a memory was forgotten where it holds; one of everywhere also where it was forgotten wherever it was said:
    it may be from before the wall behind which it was.
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


#: Columns with a session's id; of `stream` and of a sub-agent's id it is the beginning.
SESSION_IDS = (
    "sessions.id sessions.parent events.session_id events.stream memories.session_id "
    "provenance.session_id candidate_evidence.session_id injections.session_id context_log.session_id goals.session_id"
).split()


def _sessions_named(rows: Rows, key: bytes) -> list[str]:
    """The sessions whose id, which a program may choose, holds purged text."""
    marks = tombstones.marks(rows, key)
    return (
        [ident for ident in rows.column("select id from sessions where parent = ''") if marks.spans(ident)]
        if marks
        else []
    )


def _sessions_so_named(rows: Rows, key: bytes, _: int) -> tuple[int | None, int]:
    """Has a session whose id holds purged text go as a whole: by its id it would be known, and its file named."""
    for ident in _sessions_named(rows, key):
        if not tombstones.purged_names(rows, "session", [ident], key=key):
            tombstones.purge_names(
                rows,
                "session",
                [ident],
                key=key,
                now=rows.value("select value from meta where key = :n", n=UNFINISHED) or "",
            )
    return None, 0


def _hide_session_names(rows: Rows, key: bytes, _: int) -> tuple[int | None, int]:
    """Puts a keyed hash in place of the id of each such session; a hook that reports it is known by its tombstone."""
    names = _sessions_named(rows, key)
    for ident in names:
        hidden = tombstones.hidden_name("session", ident, key)
        for table, column in (name.split(".") for name in SESSION_IDS):
            rows.run(
                f"update {table} set {column} = :hidden || substr({column}, length(:id) + 1) "  # noqa: S608
                f"where {column} = :id or substr({column}, 1, length(:id) + 1) = :id || '/'",
                hidden=hidden,
                id=ident,
            )
    return None, len(names)


def _rename_workspaces(rows: Rows, key: bytes, _: int) -> tuple[int | None, int]:
    """Takes purged text out of the keys of workspaces, which are their names; another's key is a hash."""
    marks, total = tombstones.marks(rows, key), 0
    for seq, name in rows.all("select seq, key from projects where kind = 'workspace'") if marks else ():
        cleaned, hits = clean(name, marks)
        if hits:
            is_taken = rows.exists("select 1 from projects where key = :name", name=cleaned)
            tombstones.rename_project(rows, seq, f"{cleaned}-{seq}" if is_taken else cleaned, key=key)
            total += 1
    return None, total


def _sessions(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    gone_projects = tombstones.purged_projects(rows, key)
    if not gone_projects and not tombstones.has(rows, "session"):
        return None, 0
    sql = "select seq, id, parent, project_seq, started_at from sessions where seq > :after order by seq limit :limit"
    part = rows.all(sql, after=after, limit=LOOKED_AT)
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
    """Empties a part of a session; (rows that changed, whether nothing of it is left)."""
    sql = (
        "select t.seq from session_turn st join turns t on t.seq = st.turn_seq "
        "where st.session_seq = :session and t.text <> :purged order by st.ordinal limit :limit"
    )
    listed = rows.column(sql, session=seq, purged=PURGED, limit=CHANGED)
    for turn in listed:
        purge_turn(rows, turn, key)
    if len(listed) == CHANGED:
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
    changed += checkpoints.clear(rows, seq) + checkpoints.clear_session_goals(rows, ident)
    for table in ("injections", "events", "context_log"):
        changed += rows.run(f"delete from {table} where session_id = :id", id=ident)  # noqa: S608
    memory_deletion.drop_sources(rows, "session_id = :id", id=ident)
    return changed, True


def _turns(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    gone_projects = tombstones.purged_projects(rows, key)
    if not gone_projects and not tombstones.has(rows, "turn"):
        return None, 0
    sql = (
        "select t.seq, t.uuid, t.project_seq, t.at, s.id, t.text_hash from turns t join sessions s "
        "on s.seq = t.session_seq where t.seq > :after and t.text <> :purged order by t.seq limit :limit"
    )
    part = rows.all(sql, after=after, purged=PURGED, limit=CHANGED)
    names = {seq: tombstones.turn_names(uuid, stream, hash_) for seq, uuid, _, _, stream, hash_ in part}
    gone = tombstones.purged_names(rows, "turn", [name for some in names.values() for name in some], key=key)
    total = 0
    for seq, _, project, at, *_ in part:
        if not gone.keys().isdisjoint(names[seq]) or at <= gone_projects.get(project, ""):
            purge_turn(rows, seq, key)
            total += 1
    return (part[-1][0] if part else None), total


def purge_turn(rows: Rows, seq: int, key: bytes) -> None:
    """Empties a turn with everything that was made of it; it stays listed, so that its line is known when read again."""
    uuid = rows.value("select uuid from turns where seq = :seq", seq=seq)
    markdown_pages.take_back_days(rows, seq)
    rewrite_turn(rows, seq, PURGED, key)
    rows.update("turns", seq, searchable=0)
    rows.delete("statements", turn_seq=seq)
    candidates.take_back_packets(rows, uuid)
    failures.forget_turn(rows, seq, uuid)
    # What was quoted of it: a passage is known by its turn and where it begins there.
    sql = "delete from injection_items where memory_id = :uuid or substr(memory_id, 1, length(:passage)) = :passage"
    rows.run(sql, uuid=uuid, passage=f"{uuid}#")
    memory_deletion.drop_sources(rows, "uuid = :uuid", uuid=uuid)


def rewrite_turn(rows: Rows, seq: int, text: str, key: bytes) -> None:
    """Gives a turn another text; the hook's events that reported the old one are known by the new one's hash."""
    old, stream = rows.one(
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
    digests.take_back(rows, seq)
    curations.take_back(rows, seq)
    checkpoints.take_back(rows, seq)


def _projects(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """The last part of a project: its memories, its name and its key, unless something newer lives in it."""
    total = 0
    for seq, since in tombstones.purged_projects(rows, key).items():
        sql = "select seq from memories where project_seq = :seq and created_at <= :since limit :limit"
        part = rows.column(sql, seq=seq, since=since, limit=CHANGED)
        _delete_memories(rows, part)
        total += len(part) + checkpoints.clear_goals(rows, project=seq, until=since)
        if len(part) == CHANGED:
            return after, total
        total += _purge_name(rows, seq, since, key)
    return None, total


def _purge_name(rows: Rows, seq: int, since: str, key: bytes) -> int:
    """Takes what a project is known by and told, unless something newer lives in it: that is another one from then on."""
    name, made = rows.one("select key, created_at from projects where seq = :seq", seq=seq) or ("", "")
    newer = rows.value("select 1 from sessions where project_seq = :seq and started_at > :since", seq=seq, since=since)
    if made > since or newer is not None:
        return 0
    for table in ("aliases", "instructions", "candidates"):
        rows.run(f"delete from {table} where project_seq = :seq", seq=seq)  # noqa: S608
    journal.erase_project(rows, seq)
    for directory, path in rows.all("select seq, path from directories where project_seq = :seq", seq=seq):
        hidden = tombstones.hidden_name("file", path, key)
        rows.update("directories", directory, path=hidden)
    # With its own number: a project that was purged twice has had two rows.
    hidden = f"{tombstones.hidden_name('project', name, key)}:{seq}"
    team.unshare(rows, seq)
    rows.update("projects", seq, key=hidden, root=PURGED, name=PURGED, remote="", fingerprint="")
    return 1


def _links(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """Removes the links whose name, given by a person, holds something purged."""
    del after
    marks = tombstones.marks(rows, key)
    named = rows.column("select distinct relationship from links order by relationship")
    purged = [name for name in named if marks.spans(name.replace("_", " "))]
    return None, sum(rows.delete("links", relationship=name) for name in purged)


#: In this order: what goes as a whole before what is looked through, and pages when it is known which memories are left.
PASSES: tuple[Pass, ...] = (
    journal.purge_answers, journal.purge_actions, _links, _sessions_so_named, _sessions, _turns, _projects,
    *(partial(_column, table, column) for table, column in sorted(WAYS)), markdown_pages.purge_pages, _hide_session_names, _rename_workspaces,
)  # fmt: skip


# --- secrets that were known as such only after something was stored

#: The stage whose cursor says that a session holds what has been known as a secret since, and how often that was found.
LATE_SECRETS = "late secrets"
#: In `meta`: the state of the rules by which all that is stored was looked through, and what they found then.
RULES_SEEN, SECRETS_FOUND = "secret_rules", "secrets_found"
#: A kind that hits fewer than one turn in so many is rare: hardly any of it can be something else.
RARE_TURNS = 1000


def keep_secrets_out(rows: Rows, session: str, secrets: Collection[str], *, key: bytes, now: str) -> None:
    """Keeps secrets out of a session from now on, also where they stand alone.

    What its hooks reported is mended at once: a transcript's line is known by the same words. The rest is left to
    the pass over LATE_SECRETS.
    """
    if not tombstones.note_secrets(rows, session, secrets, key=key, now=now):
        return
    secure_delete(rows)
    marks = tombstones.secrets_of(rows, [session], key)
    sql = (
        "select t.seq, t.text from sessions s join session_turn st on st.session_seq = s.seq "
        "join turns t on t.seq = st.turn_seq where (s.id = :id or s.parent = :id) and t.provisional = 1"
    )
    for seq, text in rows.all(sql, id=session):
        cleaned, hits = clean(text, marks, hole=KNOWN_AGAIN)
        if hits:
            rewrite_turn(rows, seq, cleaned, key)
    if rows.exists("select 1 from sessions where id = :id", id=session):
        cursors.move_cursor(rows, LATE_SECRETS, session, cursors.cursor(rows, LATE_SECRETS, session) + 1)


def late_secrets(rows: Rows) -> dict[str, int]:
    """The sessions (ids) that hold what has been known as a secret since, and how often that was found."""
    return dict(rows.all("select subject, position from cursors where stage = :stage", stage=LATE_SECRETS))


def end_late_secrets(rows: Rows, seen: Mapping[str, int]) -> None:
    """Notes that sessions were gone through, as they were when `late_secrets` gave them."""
    for session, position in seen.items():
        rows.delete("cursors", stage=LATE_SECRETS, subject=session, position=position)


def session_keys(rows: Rows, ids: Iterable[str]) -> list[int]:
    """The row keys of sessions and of their sub-agents."""
    sql = "select seq from sessions where id = :id or parent = :id"
    return [seq for ident in ids for seq in rows.column(sql, id=ident)]


def _expect_late_secrets(rows: Rows, key: bytes, _: int) -> tuple[int | None, int]:
    """Has every session gone through in which a secret was known as one: what is restored may be from before."""
    for session in tombstones.sessions_with_secrets(rows, key):
        cursors.move_cursor(rows, LATE_SECRETS, session, 1)
    return None, 0


@dataclass(frozen=True, slots=True)
class FoundSecrets:
    """What newer rules found in what was stored: how many by kind, since when, and the kinds that hardly any turn holds."""

    kinds: dict[str, int]
    rare: list[str]
    since: dict[str, str]

    def rare_before(self, at: str) -> list[str]:
        """The rare kinds that were found before a time."""
        return [kind for kind in self.rare if self.since[kind] < at]


def found_secrets(rows: Rows) -> FoundSecrets | None:
    """What the latest look through everything found and has not been taken out; None for nothing."""
    value = rows.value("select value from meta where key = :name", name=SECRETS_FOUND)
    if not value:
        return None
    noted = wire.loads(value)
    if isinstance(noted["since"], str):  # as it was noted before each kind had its own
        noted["since"] = dict.fromkeys(noted["kinds"], noted["since"])
    return FoundSecrets(**noted)


def looked_through(rows: Rows) -> str:
    """The keyed hash of the rules by which all that is stored was looked through; "" for none."""
    return str(rows.value("select value from meta where key = :name", name=RULES_SEEN) or "")


def holds_text(rows: Rows) -> bool:
    """Whether anything is stored that could be looked through."""
    return rows.exists("select 1 from turns") or rows.exists("select 1 from memories")


def note_looked_through(
    rows: Rows, rules: str, kinds: Mapping[str, int], in_turns: Mapping[str, int], *, key: bytes, now: str
) -> None:
    """Notes what a look through everything found, how many of it in turns, and left where it is."""
    before = found_secrets(rows)
    rows.upsert("meta", "key", key=RULES_SEEN, value=tokens.keyed_hash(rules, key))
    rows.delete("meta", key=SECRETS_FOUND)
    if kinds:
        turns = rows.number("select count(*) from turns")
        rare = sorted(kind for kind in kinds if in_turns.get(kind, 0) * RARE_TURNS < turns)
        since = before.since if before else {}
        secrets = FoundSecrets(dict(kinds), rare, {kind: since.get(kind, now) for kind in kinds})
        rows.upsert("meta", "key", key=SECRETS_FOUND, value=wire.dumps(asdict(secrets)))


# --- plans

What = Literal["memory", "turn", "session", "project", "text"]
WHATS: tuple[What, ...] = ("memory", "turn", "session", "project", "text")
#: Fewer characters of a session's id begin too many words.
LEAST_OF_SESSION = 6
#: Texts of purged turns that are searched for afterwards, and how many words of each: enough to know it by.
PROBES, PROBE_WORDS = 20, 12


@dataclass(slots=True)
class Plan:
    """A purge: texts that go wherever they stand; turns, sessions (ids) and projects (keys) that go as a whole."""

    what: What
    about: str
    texts: list[str] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    projects: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    #: Statements to be kept out in nearly the same words, and whether each is a correction.
    forgotten: list[tuple[str, bool]] = field(default_factory=list)
    #: Texts that nothing may hold any more, searched for in the end; for a text the text itself.
    probes: list[str] = field(default_factory=list)

    def named(self) -> dict[tombstones.Kind, list[str]]:
        """What goes as a whole, by kind."""
        return {"turn": self.turns, "session": self.sessions, "project": self.projects, "file": self.files}


def resolve_plan(rows: Rows, typed: str, *, key: bytes, kind: str = "", project_key: str = "") -> Plan:
    """What a typed argument means. It is tried as: a memory's id, a turn's uuid, a session's id or the beginning
    of one, a project's path (its key is given), else a text. `kind` tries one only. BadInput for nothing.
    """
    if kind and kind not in WHATS:
        raise BadInput(f"a purge is of a {', '.join(WHATS[:-1])} or {WHATS[-1]}, not of {kind!r}")
    ways: dict[What, Callable[[], Plan | None]] = {
        "memory": lambda: _plan_memory(rows, typed),
        "turn": lambda: _plan_turn(rows, typed),
        "session": lambda: _plan_session(rows, typed),
        "project": lambda: _plan_project(rows, project_key, key),
        "text": lambda: Plan("text", "this text wherever it occurs", texts=[check_text(typed)], probes=[typed]),
    }
    for name, way in ways.items():
        if kind in ("", name) and (plan := way()) is not None:
            return plan
    raise BadInput(f"there is no such {kind}", hint="`csmd search` and `csmd memories` show ids")


def _plan_memory(rows: Rows, typed: str) -> Plan | None:
    memory = memories.by_id(rows, typed)
    if memory is None:
        return None
    texts = [memory.text.rstrip("…")]
    sql = "select x.text from statements x join turns t on t.seq = x.turn_seq where t.uuid = :uuid"
    for source in memory.provenance:
        stated = rows.column(sql, uuid=source.uuid)
        texts += [text.rstrip("…") for text in stated if similarity.repeats(text, memory.text)]
    # What was asked or proposed stands in the assistant's turn, without the answer.
    texts += [before for text in texts for before, arrow, _ in [text.partition(ARROW)] if arrow]
    plan = Plan("memory", f"the memory {memory.id} and the sentences it came from")
    plan.texts = [check_text(text) for text in dict.fromkeys(texts)]
    plan.forgotten = [(text, memory.gate == "correction") for text in plan.texts]
    needles = [Needle(text) for text in plan.texts]
    for source in memory.provenance:
        for seq, text in rows.all("select seq, text from turns where uuid = :uuid", uuid=source.uuid):
            if not _holds(text, needles):  # said in other words
                plan.turns += _names_of_turn(rows, seq)
                plan.probes += _probes(rows, [seq])
    plan.probes += plan.texts
    return plan


def _plan_turn(rows: Rows, typed: str) -> Plan | None:
    seqs = rows.column("select seq from turns where uuid = :uuid", uuid=typed)
    if not seqs:
        return None
    sql = "select seq from turns where substr(uuid, 1, :size) = :line"
    seqs += rows.column(sql, size=len(typed) + 1, line=f"{typed}/")
    names = [name for seq in seqs for name in _names_of_turn(rows, seq)]
    texts = [text for seq in seqs for text in _accepted_from(rows, seq)]
    return Plan(
        "turn", f"the turn {typed} and what was made of it", texts=texts, turns=names, probes=_probes(rows, seqs)
    )


def _accepted_from(rows: Rows, seq: int) -> list[str]:
    """The statements of later turns of its session that took what a turn proposed, and hold its words."""
    sql = (
        "select distinct x.text, t.text from session_turn here join session_turn there "
        "on there.session_seq = here.session_seq and there.ordinal > here.ordinal "
        "join statements x on x.turn_seq = there.turn_seq join turns t on t.seq = here.turn_seq "
        "where here.turn_seq = :seq and x.text like :picked"
    )
    accepted = rows.all(sql, seq=seq, picked=f"%{ARROW}%")
    return [text for text, statement in accepted if Needle(text.partition(ARROW)[0].rstrip("…")).spans(statement)]


def _names_of_turn(rows: Rows, seq: int) -> list[str]:
    """The names by which a turn is kept out: its uuid, and its words in its session, as a hook may report it again."""
    sql = "select t.uuid, s.id, t.text_hash from turns t join sessions s on s.seq = t.session_seq where t.seq = :seq"
    names = tombstones.turn_names(*(rows.one(sql, seq=seq) or ("", "", "")))
    return [names[0], names[-1]]


def _plan_session(rows: Rows, typed: str) -> Plan | None:
    if len(typed) < LEAST_OF_SESSION:
        return None
    sql = "select id from sessions where substr(id, 1, :size) = :typed and (parent = '' or id = :typed) order by id"
    idents = rows.column(sql, size=len(typed), typed=typed)
    if typed in idents:
        idents = [typed]
    if len(idents) > 1:
        raise BadInput(f"{typed!r} begins {len(idents)} sessions", hint="type some more of the id")
    if not idents:
        return None
    turns = _of_sessions(rows, idents)
    return Plan("session", f"the session {idents[0]} and everything that was said in it", sessions=idents,
                turns=list(turns.values()), probes=_probes(rows, list(turns)))  # fmt: skip


def _of_sessions(rows: Rows, sessions: Sequence[str]) -> dict[int, str]:
    """Row key -> uuid of every turn that is listed in these sessions or their sub-agents': a fork has them, too."""
    sql = (
        "select t.seq, t.uuid from sessions s join session_turn st on st.session_seq = s.seq "
        "join turns t on t.seq = st.turn_seq where s.id = :id or s.parent = :id"
    )
    return dict(row for ident in sessions for row in rows.all(sql, id=ident))


def _plan_project(rows: Rows, project_key: str, key: bytes) -> Plan | None:
    """Also one that was purged: its row is known by a keyed hash."""
    row = project_key and rows.one(
        "select seq, root, merged_into, key from projects where key = :key or substr(key, 1, :size) = :hidden "
        "order by seq desc",
        key=project_key,
        hidden=(hidden := f"{tombstones.hidden_name('project', project_key, key)}:"),
        size=len(hidden),
    )
    if not row:
        return None
    seq, root, into, now_key = row
    if into and now_key == project_key:
        other = workspaces.root_of(rows, into)
        raise BadInput(
            f"{root} was merged into {other}, and what was said in it is that project's now",
            hint=f"csmd project split '{other}' '{root}' takes it out again",
        )
    tree = sorted(projects.with_merged(rows, seq))
    keys = [projects.key_of(rows, project) for project in tree if project != seq]
    keys += [key for project in tree for key in projects.worktrees_of(rows, project) if key not in keys]
    paths: dict[str, str] = dict(rows.all("select id, path from sessions where project_seq = :seq", seq=seq))
    here = rows.all("select seq, uuid from turns where project_seq = :seq", seq=seq)  # a session may have come by
    turns = {**_of_sessions(rows, list(paths)), **dict(here)}
    return Plan("project", f"the project {root} and its {amount(len(paths), 'session')}", projects=[project_key, *keys],
                sessions=list(paths), files=[path for path in paths.values() if path],
                turns=list(turns.values()), probes=_probes(rows, list(turns)))  # fmt: skip


def _probes(rows: Rows, seqs: Sequence[int]) -> list[str]:
    """Beginnings of what people and assistants said in these turns and nowhere else, the longest."""
    texts: list[str] = []
    for start in range(0, len(seqs), 500):
        texts += rows.column(
            f"select t.text from turns t where {in_keys('t.seq', seqs[start : start + 500])} and t.kind in ('user', 'relayed', 'assistant') "  # noqa: S608
            "and not exists (select 1 from turns o where o.text_hash = t.text_hash and o.seq <> t.seq)"
        )
    beginnings = [" ".join(words(text)[:PROBE_WORDS]) for text in sorted(texts, key=len, reverse=True)[:PROBES]]
    return [text for text in dict.fromkeys(beginnings) if len(text.split(" ")) >= PROBE_WORDS // 2]


def _holds(text: str, needles: Sequence[Needle]) -> bool:
    return any(needle.spans(text) for needle in needles)


def plan_counts(rows: Rows, plan: Plan) -> dict[str, int]:
    """How many rows of each column hold what is to go, and how many turns and sessions go as a whole."""
    counts = {"turns as a whole": len(plan.turns), "sessions as a whole": len(plan.sessions)}
    needles = [Needle(text) for text in plan.texts]
    for table, column in WAYS if needles else ():
        counts[f"{table}.{column}"] = sum(_holds(text, needles) for _, text in _texts(rows, table, column))
    return {name: count for name, count in counts.items() if count}


def plan_places(rows: Rows, plan: Plan, *, seen: Collection[int] | None = None) -> list[dict[str, Any]]:
    """The projects (of `seen`; None: all) that hold a text to purge: how many memories and turns of each, the most first."""
    needles = [Needle(text) for text in plan.texts]
    places: dict[int, Counter[str]] = {}
    for table in ("memories", "turns") if needles else ():
        for seq, text in _texts(rows, table, "text"):
            if _holds(text, needles):
                project = rows.value(f"select project_seq from {table} where seq = :seq", seq=seq)  # noqa: S608
                places.setdefault(project, Counter())[table] += 1
    return [
        {"project": workspaces.root_of(rows, project), "memories": counts["memories"], "turns": counts["turns"]}
        for project, counts in sorted(places.items(), key=lambda item: (-item[1].total(), item[0]))
        if seen is None or project in seen
    ]


def variants(rows: Rows, needles: Sequence[Needle], table: str, column: str, after: int) -> tuple[int | None, set[str]]:
    """A part of a column: the texts as they stand there, in whole words; where to go on, None at the end."""
    if WAYS[table, column] in OF_PATHS:
        part, follows = list(_texts(rows, table, column)), None
    else:
        part = texts_after(rows, table, column, after)
        follows = part[-1][0] if part else None
    return follows, {text[a:b] for _, text in part for needle in needles for a, b in needle.spans(text)}


def add_tombstones(rows: Rows, plan: Plan, texts_found: Sequence[str], *, key: bytes, now: str) -> None:
    """Writes a plan's tombstones and that the purge has begun: from here on nothing of it is stored any more."""
    begin(rows, now=now)
    for text in plan.texts:
        tombstones.purge_text(rows, text, key=key, now=now)
    needles = [(text, Needle(text)) for text in plan.texts]
    for text_found in texts_found:
        for finder in [text for text, needle in needles if needle.spans(text_found)] or [""]:
            tombstones.purge_text(rows, text_found, key=key, now=now, found_by=finder)
    for text, correction in plan.forgotten:
        tombstones.forget(rows, text, correction=correction, by="user", key=key, now=now)
    for kind, names in plan.named().items():
        tombstones.purge_names(rows, kind, names, key=key, now=now)


def remove_tombstones(rows: Rows, plan: Plan, *, key: bytes) -> int:
    """Takes a plan's tombstones away; how many there were."""
    gone = sum(tombstones.remove_text(rows, text, key=key) for text in plan.texts)
    return gone + sum(
        tombstones.remove_name(rows, kind, name, key=key) for kind, names in plan.named().items() for name in names
    )
