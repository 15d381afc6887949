"""What people answered to what waited for them, and all that an answer changed as it was: undo is exact, or refused.

An answer and what is needed to undo it are written in the transaction that carries it out. A purge takes away what older
answers could bring back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from csmd.errors import CsmdError
from csmd.store import given_back
from csmd.store.before import Before
from csmd.store.sqlite import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer; `made` is the memory that came of it, `was` the status of the candidate it settled ("" for neither)."""

    id: str
    item: str
    answer: str
    made: str
    was: str
    project_seq: int
    at: str
    undone_at: str = ""
    seq: int = 0


# --- answers


def put(
    rows: Rows, *, item: str, answer: str, made: str, was: str, project: int, touched: Sequence[Before], now: str
) -> Answer:
    """Notes an answer that was just carried out, with what undoing it needs."""
    number = int(rows.value("select coalesce(max(seq), 0) from answers")) + 1
    ident = "a" + hashlib.sha256(f"{number}:{item}:{answer}:{now}".encode()).hexdigest()[:10]
    seq = int(
        rows.value(
            "insert into answers (id, item, answer, made, was, project_seq, at) "
            "values (:id, :item, :answer, :made, :was, :project, :now) returning seq",
            id=ident,
            item=item,
            answer=answer,
            made=made,
            was=was,
            project=project,
            now=now,
        )
    )
    for one in touched:
        version = rows.value("select version from memories where id = :id", id=one.memory_id)
        rows.run(
            "insert into answer_befores (answer_seq, memory_id, text, state, more, version_after) "
            "values (:seq, :memory, :text, :state, :more, :version)",
            seq=seq,
            memory=one.memory_id,
            text=one.text,
            state=one.state,
            more=one.more,
            version=int(version or 0),
        )
    return Answer(id=ident, item=item, answer=answer, made=made, was=was, project_seq=project, at=now, seq=seq)


def last(rows: Rows, *, projects: Sequence[int] | None, ident: str = "") -> Answer | None:
    """The latest answer of these projects (None: all) that stands, or the one that is named; None for none."""
    among = "" if projects is None else f"and t.project_seq in ({', '.join(str(int(one)) for one in projects)})"
    found = rows.one(
        "select t.id, t.item, t.answer, t.made, t.was, t.project_seq, t.at, t.undone_at, t.seq from answers t "  # noqa: S608
        f"where ((:id = '' and t.undone_at = '') or t.id = :id) {among} order by t.seq desc limit 1",
        id=ident,
    )
    if found is None:
        return None
    return Answer(
        id=found[0], item=found[1], answer=found[2], made=found[3], was=found[4], project_seq=int(found[5]), at=found[6],
        undone_at=found[7], seq=int(found[8]),
    )  # fmt: skip


def befores(rows: Rows, answer: Answer) -> list[Before]:
    """What an answer touched, as it was."""
    return [
        Before(memory_id=a, text=b, state=c, more=d, version_after=int(e))
        for a, b, c, d, e in rows.all(
            "select memory_id, text, state, more, version_after from answer_befores where answer_seq = :seq order by seq",
            seq=answer.seq,
        )
    ]


def undo(rows: Rows, answer: Answer, *, now: str) -> list[Before]:
    """Makes everything that an answer changed what it was before; CsmdError where a memory has changed since.

    The audit of what was changed is back, too; what the answer added to it is marked as taken back.
    """
    found = befores(rows, answer)
    touched = [one for one in found if not one.is_candidate]
    if answer.undone_at or not found:
        why = (
            "it is undone already"
            if answer.undone_at
            else "something was purged since, and undo brings nothing back then"
        )
        raise CsmdError(f"the answer {answer.id} cannot be undone: {why}")
    for one in touched:
        version = int(rows.value("select version from memories where id = :id", id=one.memory_id) or 0)
        if version != one.version_after:
            raise CsmdError(
                f"the answer {answer.id} cannot be undone: {one.memory_id} has changed since",
                hint=f"csmd show {one.memory_id}",
            )
    given_back.give_back(rows, found, at=now)
    rows.run("update answers set undone_at = :now where seq = :seq", now=now, seq=answer.seq)
    return touched


def without_undo(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """A pass of a purge: what was answered before the latest purge can bring nothing back."""
    del key, after
    gone = rows.run(
        "delete from answer_befores where answer_seq in (select seq from answers where at <= (select max(created_at) "
        "from tombstones where kind in ('text', 'turn', 'session', 'project', 'file')))"
    )
    return None, gone


# --- what waits


def unreviewed(rows: Rows, *, projects: Sequence[int] | None, below: float, since: str, limit: int) -> list[int]:
    """Row keys of memories that wait for a person: saved by a model alone, or new and hardly sure; the least sure first.

    What a person has kept is stated; of an assistant's and of others' words, `below` a confidence and said `since` then.
    """
    among = "" if projects is None else f"and t.project_seq in ({', '.join(str(int(one)) for one in projects)})"
    found = rows.all(
        "select t.seq from memories t where t.superseded_by = '' and t.twin_of = 0 and t.pinned = 0 "  # noqa: S608
        "and (t.origin = 'model_saved' or (t.confidence < :below and t.created_at >= :since and t.authority <> 'user')) "
        f"{among} order by case t.origin when 'model_saved' then 0 else 1 end, t.confidence, t.seq desc limit :limit",
        below=below,
        since=since,
        limit=limit,
    )
    return [int(seq) for (seq,) in found]
