"""Takes out of the database what tombstones forbid; what has to go is told by them alone.

So a purge is: write its tombstones, then honour all of them. One that was killed is finished by
honouring them again, and a restored backup is brought up to date in the same way. Every pass is a
function that does a bounded part in one transaction and says where to go on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

from csmd import text as texts
from csmd.model import Memory
from csmd.store import answers, dream_journal, memories, page_lines, purge_whole, reach, tombstones, vectors
from csmd.store.pages import secure_delete
from csmd.store.purge_whole import LOOKED_AT, rewrite_turn
from csmd.store.purged import clean
from csmd.store.sqlite import Rows

#: In `meta` while a purge is under way: when it began.
UNFINISHED = "purge_begun"

#: What becomes of a text that holds something purged. turn: rewritten, with what was made of it;
#: drop: its row goes; memory: it is removed whole; rewrite: in place; of paths that tell rows apart or are looked up
#: hide: a keyed hash takes its place, of those that do not empty: nothing does.
Way = Literal["turn", "drop", "memory", "rewrite", "hide", "empty"]
#: The ways of columns that are gone through by their values, not by rows.
OF_PATHS: frozenset[Way] = frozenset({"hide", "empty"})
#: Every column of holds.TEXT_COLUMNS and the key of its rows: a test fails on one that is missing.
WAYS: dict[tuple[str, str], tuple[Way, str]] = {
    ("turns", "text"): ("turn", "seq"),
    ("passages", "text"): ("drop", "seq"),
    ("statements", "text"): ("drop", "seq"),
    ("memories", "text"): ("memory", "seq"),
    ("scenes", "text"): ("drop", "seq"),
    ("candidates", "text"): ("rewrite", "seq"),
    ("candidates", "reason"): ("rewrite", "seq"),
    # What was said short enough is its own name: without it the row would be put there again.
    ("candidates", "fingerprint"): ("drop", "seq"),
    ("digests", "text"): ("rewrite", "seq"),
    ("digest_items", "text"): ("rewrite", "seq"),
    ("session_links", "about"): ("rewrite", "seq"),
    ("checkpoints", "note"): ("rewrite", "seq"),
    ("checkpoint_items", "text"): ("rewrite", "seq"),
    ("checkpoint_raw_captures", "text"): ("drop", "seq"),
    ("goals", "text"): ("rewrite", "seq"),
    ("self_capabilities", "why"): ("rewrite", "seq"),
    ("topics", "name"): ("drop", "seq"),
    ("packets", "subject"): ("drop", "seq"),
    ("belief_changes", "before"): ("rewrite", "seq"),
    ("belief_changes", "after"): ("rewrite", "seq"),
    ("belief_changes", "reason"): ("rewrite", "seq"),
    ("answer_befores", "text"): ("drop", "seq"),
    ("answer_befores", "more"): ("drop", "seq"),
    ("dreams", "error"): ("rewrite", "seq"),
    ("dream_changes", "reason"): ("rewrite", "seq"),
    # What is gone cannot be undone: nothing purged comes back.
    ("dream_rows", "text"): ("drop", "seq"),
    ("dream_rows", "more"): ("drop", "seq"),
    ("dream_rows", "text_after"): ("drop", "seq"),
    ("dream_rows", "more_after"): ("drop", "seq"),
    ("dream_files", "path"): ("drop", "seq"),
    ("dream_files", "before"): ("drop", "seq"),
    ("dream_files", "after"): ("drop", "seq"),
    ("pages", "path"): ("drop", "seq"),
    ("pages", "text"): ("rewrite", "seq"),
    ("pages", "also"): ("rewrite", "seq"),
    ("pages", "held"): ("rewrite", "seq"),
    ("errors", "command"): ("drop", "seq"),
    ("errors", "message"): ("drop", "seq"),
    ("error_fixes", "files"): ("drop", "seq"),
    ("error_fixes", "text"): ("drop", "seq"),
    ("symptoms", "text"): ("drop", "seq"),
    ("projects", "root"): ("rewrite", "seq"),
    ("projects", "name"): ("rewrite", "seq"),
    ("sessions", "cwd"): ("rewrite", "seq"),
    ("sessions", "title"): ("rewrite", "seq"),
    ("sessions", "path"): ("empty", "seq"),
    ("files", "path"): ("hide", "path"),
    ("elsewhere", "path"): ("hide", "path"),
    ("projects", "remote"): ("rewrite", "seq"),
    ("aliases", "path"): ("rewrite", "seq"),
    ("directories", "path"): ("hide", "seq"),
    ("instructions", "text"): ("rewrite", "seq"),
    ("instructions", "path"): ("hide", "seq"),
    ("instructions", "root"): ("rewrite", "seq"),
}

#: (rows, key of the hashes, where to begin: 0 at first) -> (where to go on, None at the end; rows that changed).
Pass = Callable[[Rows, bytes, int], tuple[int | None, int]]


def honour(rows: Rows, key: bytes) -> int:
    """Removes everything that the tombstones forbid, in a transaction for each part; how many rows changed.

    For a database that was restored or rebuilt, once the tombstones are in it. Inside a transaction it uses that one.
    """
    total = 0
    for part in (*PASSES, _forgotten):
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
    rows.run(
        "insert into meta (key, value) values (:name, :now) on conflict (key) do update set value = excluded.value",
        name=UNFINISHED,
        now=now,
    )


def is_unfinished(rows: Rows) -> bool:
    """Whether a purge was begun and not ended."""
    return rows.value("select 1 from meta where key = :name", name=UNFINISHED) is not None


def end(rows: Rows) -> None:
    """Notes that nothing of the purge is left to be done."""
    rows.run("delete from meta where key = :name", name=UNFINISHED)


# --- texts, wherever they stand


def _column(table: str, column: str, rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """A part of one column: what holds purged text is changed in the way of its column."""
    way, ident = WAYS[table, column]
    if way in OF_PATHS:
        return None, _hide(rows, table, column, way, ident, key)
    marks = tombstones.marks(rows, key)
    if not marks:
        return None, 0
    found = texts_after(rows, table, column, after)
    total = 0
    for seq, said in found:
        new, hits = clean(said, marks)
        if hits:
            change(rows, table, column, seq, new, key)
            total += 1
    return (found[-1][0] if found else None), total


def texts_after(rows: Rows, table: str, column: str, after: int) -> list[tuple[int, str]]:
    """(row key, text) of the next rows of a column that is keyed by number."""
    return [
        (int(seq), str(said))
        for seq, said in rows.all(
            f"select seq, {column} from {table} where seq > :after order by seq limit :limit",  # noqa: S608
            after=after,
            limit=LOOKED_AT,
        )
    ]


def change(rows: Rows, table: str, column: str, seq: int, new: str, key: bytes, *, in_place: bool = False) -> None:
    """Does to one row what its column's way says; with `in_place` statements and memories are rewritten, too."""
    way, _ = WAYS[table, column]
    if way == "turn":
        rewrite_turn(rows, seq, new, key)
    elif way == "memory" and not in_place:
        for memory in memories.by_seqs(rows, [seq]).values():
            memories.delete(rows, memory)
    elif table == "answer_befores":  # what could bring the text back goes, and half an undo is none
        rows.run(
            "delete from answer_befores where answer_seq in (select answer_seq from answer_befores where seq = :seq)",
            seq=seq,
        )
    elif table == "dream_rows":  # likewise, of one action
        for (one,) in rows.all("select change_seq from dream_rows where seq = :seq", seq=seq):
            dream_journal.take_away(rows, int(one))
    elif way == "drop" and (not in_place or (table == "statements" and _stated_already(rows, seq, new, key))):
        rows.run(f"delete from {table} where seq = :seq", seq=seq)  # noqa: S608
    elif table in ("memories", "statements"):
        if way == "memory":
            vectors.again(rows, "memory", seq)
        rows.run(
            f"update {table} set {column} = :text, text_hash = :hash where seq = :seq",  # noqa: S608
            text=new,
            hash=texts.keyed_hash(new, key),
            seq=seq,
        )
    else:
        rows.run(f"update {table} set {column} = :text where seq = :seq", text=new, seq=seq)  # noqa: S608


def _stated_already(rows: Rows, seq: int, new: str, key: bytes) -> bool:
    """Whether another statement of the same turn reads as this one will."""
    other = rows.value(
        "select o.seq from statements x join statements o on o.turn_seq = x.turn_seq "
        "where x.seq = :seq and o.text_hash = :hash and o.seq <> x.seq",
        seq=seq,
        hash=texts.keyed_hash(new, key),
    )
    return other is not None


def _hide(rows: Rows, table: str, column: str, way: Way, ident: str, key: bytes) -> int:
    """Takes purged paths out of a column; a hidden one stays known, and another than its neighbours, by a keyed hash."""
    total = 0
    if not tombstones.marks(rows, key) and not tombstones.has(rows, "file"):
        return total
    found = [str(path) for (path,) in rows.all(f"select distinct {column} from {table} where {column} <> ''")]  # noqa: S608
    for path in found:
        name = tombstones.listed_path(rows, path, key=key)
        if name == path:
            continue
        known = column == ident and rows.value(
            f"select 1 from {table} where {column} = :name",  # noqa: S608
            name=name,
        )
        if known:
            rows.run(f"delete from {table} where {column} = :path", path=path)  # noqa: S608
        else:
            new = name if way == "hide" else ""
            rows.run(f"update {table} set {column} = :new where {column} = :path", new=new, path=path)  # noqa: S608
        total += 1
    return total


def _forgotten(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """Memories and statements that were forgotten one by one."""
    if not tombstones.has(rows, "memory"):
        return None, 0
    total = 0
    found = rows.all(
        "select seq from memories where seq > :after order by seq limit :limit", after=after, limit=LOOKED_AT
    )
    for memory in memories.by_seqs(rows, [int(seq) for (seq,) in found]).values():
        if memories.by_id(rows, memory.id) is not None and _is_forgotten(rows, memory, key):
            memories.delete(rows, memory)
            total += 1
    if after == 0:
        for seq, said, gate, authority, project, at in rows.all(
            "select seq, text, gate, authority, project_seq, at from statements"
        ):
            if tombstones.keeps_out(
                rows, str(said), correction=gate == "correction", authority=authority, project=project, at=at, key=key
            ):
                total += rows.run("delete from statements where seq = :seq", seq=seq)
    return (int(found[-1][0]) if found else None), total


def _is_forgotten(rows: Rows, memory: Memory, key: bytes) -> bool:
    """Whether a memory was forgotten where it holds; one of everywhere also where it was forgotten wherever it was said:
    it may be from before the wall behind which it was.
    """

    def is_out(project: int) -> bool:
        return tombstones.keeps_out(
            rows, memory.text, correction=memory.gate == "correction", authority=memory.authority, project=project,
            at=memory.created_at, key=key,
        )  # fmt: skip

    if is_out(memory.project_seq):
        return True
    said_in = memories.said_in(rows, memory) if reach.is_everywhere(rows, memory.project_seq) else ()
    return bool(said_in) and all(map(is_out, said_in))


#: In this order: what goes as a whole before what is looked through, and pages when it is known which memories are left.
PASSES: tuple[Pass, ...] = (
    answers.without_undo, dream_journal.without_purged, purge_whole.sessions, purge_whole.turns, purge_whole.projects,
    *(partial(_column, table, column) for table, column in sorted(WAYS)), page_lines.without_gone,
)  # fmt: skip
