"""Memories and candidates as they were before something changed them, and how they become that again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from csmd import wire
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

#: What others said of a memory, which goes with it and comes back with it: how it was reported, what speaks against it.
#: Name -> how it is read, and how a row of that is written.
BESIDE = {
    "symptoms": (
        "select uuid, at, text, fingerprint from symptoms where memory_seq = :seq order by uuid",
        (
            "insert into symptoms (memory_seq, uuid, at, text, fingerprint) values (:seq, :a, :b, :c, :d) "
            "on conflict (memory_seq, uuid) do nothing"
        ),
    ),
    "tags": (
        (
            "select t.name, x.by_whom, x.weight, t.project_seq from memory_topics x join topics t on t.seq = x.topic_seq "
            "where x.memory_seq = :seq order by t.name"
        ),
        (
            "insert into memory_topics (memory_seq, topic_seq, by_whom, weight) select :seq, t.seq, :b, :c from topics t "
            "where t.name = :a and t.project_seq = :d on conflict (memory_seq, topic_seq) do nothing"
        ),
    ),
    "refutations": (
        "select uuid, at, reason, lowered from refutations where memory_seq = :seq order by uuid",
        (
            "insert into refutations (memory_seq, uuid, at, reason, lowered) values (:seq, :a, :b, :c, :d) "
            "on conflict (memory_seq, uuid) do nothing"
        ),
    ),
}

_READ = ", ".join(f"m.{name}" for name in COLUMNS)
_NAMES = ", ".join(COLUMNS)
_MARKS = ", ".join(f":{name}" for name in COLUMNS)
_PAIRS = ", ".join(f"{name} = :{name}" for name in COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """One memory or candidate as it was; `state` is JSON without words, "" where it was not there.

    `more` is JSON of the words besides its text: of a memory the audit of its changes and what others said of it, the
    reason of a candidate.
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


def changed_by(rows: Rows, act: Callable[[], object]) -> list[Before]:
    """Everything that an act changes, as it is now: the act is tried and taken back.

    What follows from a new memory (others that it amends, what waits because of it) is not known beforehand.
    """
    known = _versions(rows)
    with _tried(rows):
        act()
        after = _versions(rows)
    return of(rows, [ident for ident in {**known, **after} if known.get(ident) != after.get(ident)])


@contextmanager
def _tried(rows: Rows) -> Iterator[None]:
    """Inside a transaction: what runs here can be looked at, and is taken back at the end."""
    rows.connection.execute("savepoint tried")
    try:
        yield
    finally:
        rows.connection.execute("rollback to savepoint tried")
        rows.connection.execute("release savepoint tried")


def _versions(rows: Rows) -> dict[str, int]:
    found = rows.all("select id, version from memories") + rows.all("select id, version from candidates")
    return {str(ident): int(version) for ident, version in found}


def of(rows: Rows, idents: Iterable[str]) -> list[Before]:
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
    more: dict[str, Any] = {"changes": [asdict(change) for change in beliefs.changes_of(rows, ident)]}
    more |= {name: rows.all(read, seq=seq) for name, (read, _) in BESIDE.items()}
    return Before(memory_id=ident, text=str(found[1]), state=wire.dumps(state), more=wire.dumps(more))


def differs(one: Before, other: Before) -> bool:
    """Whether something was done to a memory or candidate between two looks; who was told it, or links to it, is nothing."""
    return (one.text, one.more, _own(one)) != (other.text, other.more, _own(other))


def _own(one: Before) -> dict[str, Any]:
    """The state of one without what others do with it."""
    if not one.state or one.is_candidate:
        return {"state": one.state}
    state: dict[str, Any] = wire.loads(one.state)
    links = [link for link in state["links"] if link[0] == one.memory_id]
    return {**state, "told": [], "links": links}


# --- back


def give_back(rows: Rows, found: Sequence[Before], *, at: str) -> None:
    """Makes everything what it was; the audit of memories, too: what was noted since is marked as taken back."""
    touched = [one for one in found if not one.is_candidate]
    for one in touched:
        if not one.state:
            memories.delete(rows, memories.by_seqs(rows, [_seq(rows, one.memory_id)])[_seq(rows, one.memory_id)])
    states = [(one, wire.loads(one.state)) for one in touched if one.state]
    for one, state in states:
        _restore(rows, one, state)
    for one, state in states:
        _join(rows, one, state)
        more = wire.loads(one.more)
        beliefs.put_back(rows, one.memory_id, more["changes"], at=at)
        _put_beside(rows, one.memory_id, more)
    for one in found:
        if one.is_candidate:
            _ask_again(rows, one)


def _put_beside(rows: Rows, ident: str, more: dict[str, Any]) -> None:
    """Gives a memory back what others said of it; what has been found since stays."""
    for name, (_, write) in BESIDE.items():
        for a, b, c, d in more[name]:
            rows.run(write, seq=_seq(rows, ident), a=a, b=b, c=c, d=d)


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
        **{**state, "memory_ids": tuple(state["memory_ids"])},
        text=one.text,
        reason=wire.loads(one.more),
        evidence=evidence,
    )
    if candidates.is_waiting(rows, was):
        return
    if known is None:
        candidates.put(rows, was)
    else:
        candidates.renew(rows, known, was)
