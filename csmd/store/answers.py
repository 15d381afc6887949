"""What people answered to what waited for them, and all that an answer changed as it was: undo is exact, or refused.

An answer and what is needed to undo it are written in the transaction that carries it out. A purge takes away what older
answers could bring back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from csmd import wire
from csmd.errors import CsmdError
from csmd.model import Candidate, Evidence, Link
from csmd.store import beliefs, candidates, memories
from csmd.store.sqlite import Rows

#: The columns of a memory that come back with it: all but its row key, its text and whose twin it is. With its version
#: the answer before can be undone, too: it is that very memory again.
COLUMNS = (
    "text_hash", "gate", "category", "type", "tier", "decay", "authority", "origin", "confidence", "scope", "project_seq",
    "session_id", "created_at", "confirmed_at", "used_at", "hot_until", "warm_until", "archive_at", "pinned",
    "superseded_by", "origin_seq", "version",
)  # fmt: skip

_READ = ", ".join(f"m.{name}" for name in COLUMNS)
_NAMES = ", ".join(COLUMNS)
_MARKS = ", ".join(f":{name}" for name in COLUMNS)
_PAIRS = ", ".join(f"{name} = :{name}" for name in COLUMNS)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """One memory or candidate as it was; `state` is JSON without words, "" where it was not there.

    `more` is JSON of the words besides its text: the audit of a memory's changes, the reason of a candidate.
    """

    memory_id: str
    text: str
    state: str
    more: str = ""
    version_after: int = 0

    @property
    def is_candidate(self) -> bool:
        """Whether it is a candidate of the queue."""
        return self.memory_id.startswith("c")


# --- what was


def touched_by(rows: Rows, act: Callable[[], object]) -> list[Before]:
    """Everything that an act changes, as it is now: the act is tried and taken back.

    What follows from a new memory (others that it amends, what waits because of it) is not known beforehand.
    """
    known = _versions(rows)
    with rows.tried():
        act()
        after = _versions(rows)
    return before(rows, [ident for ident in {**known, **after} if known.get(ident) != after.get(ident)])


def _versions(rows: Rows) -> dict[str, int]:
    found = rows.all("select id, version from memories union all select id, version from candidates")
    return {str(ident): int(version) for ident, version in found}


def before(rows: Rows, idents: Iterable[str]) -> list[Before]:
    """Memories and candidates as they are now, each once; of one that is not there, that."""
    asked = [Before(memory_id=ident, text="", state="") for ident in dict.fromkeys(idents) if ident]
    return [(_candidate if one.is_candidate else _before)(rows, one.memory_id) for one in asked]


def _candidate(rows: Rows, ident: str) -> Before:
    found = candidates.by_id(rows, ident)
    if found is None:
        return Before(memory_id=ident, text="", state="")
    state = {name: value for name, value in asdict(found).items() if name not in ("text", "reason")}
    return Before(memory_id=ident, text=found.text, state=wire.dumps(state), more=wire.dumps(found.reason))


def _before(rows: Rows, ident: str) -> Before:
    found = rows.one(
        f"select m.seq, m.text, coalesce(t.id, ''), {_READ} from memories m "  # noqa: S608
        "left join memories t on t.seq = m.twin_of and m.twin_of > 0 where m.id = :id",
        id=ident,
    )
    if found is None:
        return Before(memory_id=ident, text="", state="")
    seq = int(found[0])
    state = {
        "twin": found[2],
        "columns": dict(zip(COLUMNS, found[3:], strict=True)),
        "sources": rows.all(
            "select uuid, session_id, at, role from provenance where memory_seq = :seq order by uuid", seq=seq
        ),
        "links": rows.all(
            "select f.id, t.id, l.relationship, l.weight, l.created_at from links l join memories f on f.seq = l.from_seq "
            "join memories t on t.seq = l.to_seq where l.from_seq = :seq or l.to_seq = :seq order by 1, 2, 3",
            seq=seq,
        ),
        "told": rows.all(
            "select n.id, i.score, i.reason from injection_items i join injections n on n.seq = i.injection_seq "
            "where i.memory_id = :id order by n.seq",
            id=ident,
        ),
    }
    changes = wire.dumps([asdict(change) for change in beliefs.changes_of(rows, ident)])
    return Before(memory_id=ident, text=str(found[1]), state=wire.dumps(state), more=changes)


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
    befores_ = befores(rows, answer)
    touched = [one for one in befores_ if not one.is_candidate]
    if answer.undone_at or not (befores_ or answer.was):
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
    for one in touched:
        if not one.state:
            memories.delete(rows, memories.by_seqs(rows, [_seq(rows, one.memory_id)])[_seq(rows, one.memory_id)])
    states = [(one, wire.loads(one.state)) for one in touched if one.state]
    for one, state in states:
        _restore(rows, one, state)
    for one, state in states:
        _join(rows, one, state)
        beliefs.put_back(rows, one.memory_id, wire.loads(one.more), at=now)
    for one in befores_:
        if one.is_candidate:
            _ask_again(rows, one)
    rows.run("update answers set undone_at = :now where seq = :seq", now=now, seq=answer.seq)
    return touched


def _seq(rows: Rows, ident: str) -> int:
    return int(rows.value("select seq from memories where id = :id", id=ident) or 0)


def _restore(rows: Rows, one: Before, state: dict[str, Any]) -> None:
    """Gives a memory its columns and sources back; it is made again where it is gone."""
    values = dict(state["columns"])
    if _seq(rows, one.memory_id):
        rows.run(f"update memories set {_PAIRS} where id = :id", id=one.memory_id, **values)  # noqa: S608
    else:
        merged = rows.value("select merged_into from projects where seq = :seq", seq=values["project_seq"])
        values["project_seq"] = merged or values["project_seq"]
        rows.run(
            f"insert into memories (id, text, {_NAMES}) values (:id, :text, {_MARKS})",  # noqa: S608
            id=one.memory_id,
            text=one.text,
            **values,
        )
    seq = _seq(rows, one.memory_id)
    rows.run("delete from provenance where memory_seq = :seq", seq=seq)
    for uuid, session, at, role in state["sources"]:
        rows.run(
            "insert into provenance (memory_seq, uuid, session_id, at, role) values (:seq, :uuid, :session, :at, :role)",
            seq=seq,
            uuid=uuid,
            session=session,
            at=at,
            role=role,
        )


def _join(rows: Rows, one: Before, state: dict[str, Any]) -> None:
    """Gives a memory its links, its place in receipts and the one it is a twin of back.

    Of the links it has now only those go that an answer draws: others may have been found since.
    """
    seq = _seq(rows, one.memory_id)
    rows.run("delete from links where from_seq = :seq and relationship = 'superseded_by'", seq=seq)
    for origin, target, relationship, weight, at in state["links"]:
        link = Link(from_id=origin, to_id=target, relationship=relationship, weight=weight)
        memories.add_link(rows, link, now=at)
    for receipt, score, reason in state["told"]:
        rows.run(
            "insert into injection_items (injection_seq, memory_id, score, reason) "
            "select n.seq, :memory, :score, :reason from injections n where n.id = :receipt on conflict do nothing",
            memory=one.memory_id,
            score=score,
            reason=reason,
            receipt=receipt,
        )
    if state["twin"]:
        rows.run("update memories set twin_of = :twin where seq = :seq", twin=_seq(rows, state["twin"]), seq=seq)


def _ask_again(rows: Rows, one: Before) -> None:
    """Makes a candidate that an answer changed what it was, where nothing else came of it since."""
    known = candidates.by_id(rows, one.memory_id)
    if not one.state:
        if known is not None and known.status in candidates.WAITING:
            candidates.remove(rows, known)
        return
    state = wire.loads(one.state)
    evidence = tuple(Evidence(**row) for row in state.pop("evidence"))
    was = Candidate(
        **{**state, "memory_ids": tuple(state["memory_ids"])}, text=one.text, reason=wire.loads(one.more), evidence=evidence
    )
    if known is not None:
        candidates.renew(rows, known, was)
    elif not candidates.is_waiting(rows, was):
        candidates.put(rows, was)


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
