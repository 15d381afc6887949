"""Memories and candidates as they were before something changed them, and their exact return: answers, merges, actions of a dream."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from csmd import wire
from csmd.errors import CsmdError
from csmd.model import NEVER, Candidate, CandidateKind, Evidence, Link, Memory
from csmd.store import belief_changes, candidates, memories, vectors
from csmd.store.sqlite import Rows, among

#: The columns of a memory that come back with it: all but its row key, its text and whose twin it is. With its version
#: the answer before can be undone, too: it is that very memory again.
COLUMNS = (
    "text_hash", "gate", "category", "type", "tier", "decay", "authority", "origin", "confidence", "scope", "project_seq",
    "session_id", "created_at", "confirmed_at", "used_at", "hot_until", "warm_until", "archive_at", "pinned",
    "superseded_by", "origin_seq", "version",
)  # fmt: skip

#: What others said of a memory, which goes with it and comes back with it: how it was reported, what it is about, what
#: speaks against it, where it was said.
BESIDE = {
    "symptoms": "select uuid, at, text, fingerprint from symptoms where memory_seq = :seq order by uuid",
    "tags": (
        "select t.name, x.by_whom, x.weight from memory_topics x join topics t on t.seq = x.topic_seq "
        "where x.memory_seq = :seq order by t.name"
    ),
    "refutations": "select uuid, at, reason, lowered from refutations where memory_seq = :seq order by uuid",
    "scenes": "select uuid, text from scenes where memory_seq = :seq",
}

#: The fields of a candidate that hold words.
WORDS = ("text", "reason", "fingerprint")
_READ = ", ".join(f"m.{name}" for name in COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """One memory or candidate as it was; `state` is JSON without words, "" where it was not there.

    `more` is JSON of the words besides its text: of a memory the audit of its changes and what others said of it, of a
    candidate its reason and its fingerprint.
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
    return before_of(rows, [ident for ident in {**known, **after} if known.get(ident) != after.get(ident)])


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


def before_of(rows: Rows, idents: Iterable[str]) -> list[Before]:
    """Memories and candidates as they are now, each once; of one that is not there, that."""
    asked = [Before(memory_id=ident, text="", state="") for ident in dict.fromkeys(idents) if ident]
    return [(_candidate if one.is_candidate else _before)(rows, one.memory_id) for one in asked]


def _candidate(rows: Rows, ident: str) -> Before:
    found = candidates.by_id(rows, ident)
    if found is None:
        return Before(memory_id=ident, text="", state="")
    state: dict[str, Any] = {one.name: getattr(found, one.name) for one in fields(found)}
    state["evidence"] = [{one.name: getattr(row, one.name) for one in fields(row)} for row in found.evidence]
    said = {name: state.pop(name) for name in WORDS}
    return Before(memory_id=ident, text=said.pop("text"), state=wire.dumps(state), more=wire.dumps(said))


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
            "select n.id, i.score, i.reason, i.used, i.used_by from injection_items i join injections n on n.seq = i.injection_seq "
            "where i.memory_id = :id order by n.seq",
            id=ident,
        ),
    }
    more: dict[str, Any] = {"changes": [asdict(change) for change in belief_changes.changes_of(rows, ident)]}
    more |= {name: rows.all(read, seq=seq) for name, read in BESIDE.items()}
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


def without_receipts(one: Before) -> Before:
    """An image without who was told it: that may be every session, and is lost only where a memory is removed."""
    if not one.state or one.is_candidate:
        return one
    return replace(one, state=wire.dumps({**wire.loads(one.state), "told": []}))


def seen(one: Before) -> dict[str, Any]:
    """What a memory or candidate is, by name, without what others do with it; {} where it is not there."""
    if not one.state:
        return {}
    state = wire.loads(one.state)
    if one.is_candidate:
        return {**state, **wire.loads(one.more), "text": one.text}
    return {**state["columns"], "text": one.text, "twin": state["twin"], "sources": state["sources"]}


def leads_to(one: Before) -> list[tuple[str, str]]:
    """(relationship, id) of the links that begin at a memory."""
    if not one.state or one.is_candidate:
        return []
    return [(link[2], link[1]) for link in wire.loads(one.state)["links"] if link[0] == one.memory_id]


_NAMES = ", ".join(COLUMNS)
_MARKS = ", ".join(f":{name}" for name in COLUMNS)
_PAIRS = ", ".join(f"{name} = :{name}" for name in COLUMNS)

#: What stands beside a memory -> how a row of it is written, and how it goes.
_WRITE = {
    "symptoms": (
        "insert into symptoms (memory_seq, uuid, at, text, fingerprint) values (:seq, :a, :b, :c, :d) "
        "on conflict (memory_seq, uuid) do nothing"
    ),
    "tags": (
        "insert into memory_topics (memory_seq, topic_seq, by_whom, weight) select m.seq, t.seq, :b, :c from memories m "
        "join topics t on t.project_seq = m.project_seq where m.seq = :seq and t.name = :a "
        "on conflict (memory_seq, topic_seq) do nothing"
    ),
    "refutations": (
        "insert into refutations (memory_seq, uuid, at, reason, lowered) values (:seq, :a, :b, :c, :d) "
        "on conflict (memory_seq, uuid) do nothing"
    ),
    "scenes": (
        "insert into scenes (memory_seq, uuid, text) values (:seq, :a, :b) on conflict (memory_seq) "
        "do update set uuid = excluded.uuid, text = excluded.text"
    ),
}
_TAKE = {
    "symptoms": "delete from symptoms where memory_seq = :seq and uuid = :a",
    "tags": "delete from memory_topics where memory_seq = :seq and topic_seq in (select seq from topics where name = :a)",
    "refutations": "delete from refutations where memory_seq = :seq and uuid = :a",
    "scenes": "delete from scenes where memory_seq = :seq and uuid = :a",
}


def give_back(rows: Rows, found: Sequence[Before], *, at: str) -> None:
    """Makes everything what it was; the audit of memories, too: what was noted since is marked as taken back."""
    touched = [one for one in found if not one.is_candidate]
    for one in touched:
        if not one.state:
            _remove(rows, one.memory_id)
    states = [(one, wire.loads(one.state)) for one in touched if one.state]
    for one, state in states:
        _restore(rows, one, state)
    for one, state in states:
        seq = _seq(rows, one.memory_id)
        # Of the links it has now only those go that an answer draws: others may have been found since.
        rows.run("delete from links where from_seq = :seq and relationship = 'superseded_by'", seq=seq)
        _join(rows, one, state)
        more = wire.loads(one.more)
        belief_changes.put_back(rows, one.memory_id, more["changes"], at=at)
        for name in BESIDE:
            _put_beside(rows, seq, name, more.get(name, []))
    for one in found:
        if one.is_candidate:
            ask_again(rows, one)


def take_back(rows: Rows, was: Before, then: Before, *, at: str) -> None:
    """Makes one thing what it was before an act that made `then` of it.

    What has changed since of that which the act left alone stays: where it is, when it was used.
    """
    if was.is_candidate:
        ask_again(rows, was)
        return
    if not was.state:
        _remove(rows, was.memory_id)
        return
    state, more = wire.loads(was.state), wire.loads(was.more)
    made, said = ({}, {"changes": []}) if not then.state else (wire.loads(then.state), wire.loads(then.more))
    found = rows.one(f"select {_NAMES} from memories where id = :id", id=was.memory_id)  # noqa: S608
    if found is not None and made:
        now = dict(zip(COLUMNS, found, strict=True))
        state["columns"] = _columns(state["columns"], made["columns"], now)
        # A link belongs to the memory that it begins at; those that were there all the time are left alone.
        own = [link for link in state["links"] if link[0] == was.memory_id]
        state["links"] = [link for link in own if link not in made["links"]]
        for link in made["links"]:
            if link[0] == was.memory_id and link not in own:
                belief_changes.unlink(rows, *link[:3])
    _restore(rows, was, state)
    _join(rows, was, state)
    belief_changes.put_back(rows, was.memory_id, more["changes"], at=at, since=said["changes"])
    seq = _seq(rows, was.memory_id)
    for name in BESIDE:
        before, made_of_it = more.get(name, []), said.get(name, [])  # an older csmd knew less of a memory
        for row in made_of_it:
            if row not in before:
                rows.run(_TAKE[name], seq=seq, a=row[0])
        _put_beside(rows, seq, name, [row for row in before if row not in made_of_it])


def _columns(was: dict[str, Any], then: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """The columns as they were; as they are where the act did not change them. Active days may have come in between."""
    found = {name: was[name] if was[name] != then[name] or name == "version" else now[name] for name in was}
    for name in ("hot_until", "warm_until", "archive_at"):
        counted = max(was[name], then[name], now[name]) < NEVER
        found[name] = now[name] + was[name] - then[name] if counted else was[name]
    return found


def _seq(rows: Rows, ident: str) -> int:
    return int(rows.value("select seq from memories where id = :id", id=ident) or 0)


def _remove(rows: Rows, ident: str) -> None:
    for memory in memories.by_seqs(rows, [_seq(rows, ident)]).values():
        memories.delete(rows, memory)


def _put_beside(rows: Rows, seq: int, name: str, found: Sequence[Sequence[Any]]) -> None:
    """Gives a memory back what others said of it; what has been found since stays."""
    for row in found:
        if name == "tags":  # a topic goes with its last memory
            rows.run(
                "insert into topics (project_seq, name) select project_seq, :name from memories where seq = :seq "
                "on conflict (project_seq, name) do nothing",
                name=row[0],
                seq=seq,
            )
        rows.run(_WRITE[name], seq=seq, **dict(zip("abcd", row, strict=False)))


def _restore(rows: Rows, one: Before, state: dict[str, Any]) -> None:
    """Gives a memory its columns and sources back; it is made again where it is gone."""
    values = dict(state["columns"])
    if _seq(rows, one.memory_id):
        worded_anew = rows.value("select text from memories where id = :id", id=one.memory_id) != one.text
        rows.run(f"update memories set {_PAIRS} where id = :id", id=one.memory_id, **values)  # noqa: S608
        rows.run("update memories set text = :text where id = :id", id=one.memory_id, text=one.text)
        if worded_anew:
            vectors.again(rows, "memory", _seq(rows, one.memory_id))
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
        rows.insert("provenance", memory_seq=seq, uuid=uuid, session_id=session, at=at, role=role)


def _join(rows: Rows, one: Before, state: dict[str, Any]) -> None:
    """Gives a memory its links, its place in receipts and the one it is a twin of back."""
    for origin, target, relationship, weight, at in state["links"]:
        link = Link(from_id=origin, to_id=target, relationship=relationship, weight=weight)
        memories.add_link(rows, link, now=at)
    for receipt, score, reason, used, used_by in state["told"]:
        rows.run(
            "insert into injection_items (injection_seq, memory_id, score, reason, used, used_by) "
            "select n.seq, :memory, :score, :reason, :used, :used_by from injections n where n.id = :receipt "
            "on conflict do nothing",
            memory=one.memory_id,
            score=score,
            reason=reason,
            used=used,
            used_by=used_by,
            receipt=receipt,
        )
    if state["twin"]:
        twin = _seq(rows, state["twin"])
        rows.run("update memories set twin_of = :twin where id = :id", twin=twin, id=one.memory_id)


def ask_again(rows: Rows, one: Before) -> None:
    """Makes a candidate what it was, where nothing else came of it since."""
    known = candidates.by_id(rows, one.memory_id)
    if not one.state:
        if known is not None and known.status in candidates.WAITING:
            candidates.remove(rows, known)
        return
    was = as_candidate(one)
    if candidates.is_waiting(rows, was):
        return
    if known is None:
        candidates.put(rows, was)
    else:
        candidates.renew(rows, known, was)
    rows.run("update candidates set version = :version where id = :id", version=was.version, id=was.id)


def as_candidate(one: Before) -> Candidate:
    """The candidate that an image is of."""
    state = wire.loads(one.state)
    evidence = tuple(Evidence(**row) for row in state.pop("evidence"))
    ids = tuple(state.pop("memory_ids"))
    return Candidate(**state, **wire.loads(one.more), text=one.text, memory_ids=ids, evidence=evidence)


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


def put_answer(
    rows: Rows, *, item: str, answer: str, made: str, was: str, project: int, touched: Sequence[Before], now: str
) -> Answer:
    """Notes an answer that was just carried out, with what undoing it needs."""
    number = int(rows.value("select coalesce(max(seq), 0) from answers")) + 1
    ident = "a" + hashlib.sha256(f"{number}:{item}:{answer}:{now}".encode()).hexdigest()[:10]
    seq = rows.insert_keyed(
        "answers", id=ident, item=item, answer=answer, made=made, was=was, project_seq=project, at=now
    )
    for one in touched:
        version = rows.value("select version from memories where id = :id", id=one.memory_id)
        rows.insert(
            "answer_befores",
            answer_seq=seq,
            memory_id=one.memory_id,
            text=one.text,
            state=one.state,
            more=one.more,
            version_after=int(version or 0),
        )
    return Answer(id=ident, item=item, answer=answer, made=made, was=was, project_seq=project, at=now, seq=seq)


def last_answer(rows: Rows, *, projects: Sequence[int] | None, ident: str = "") -> Answer | None:
    """The latest answer of these projects (None: all) that stands, or the one that is named; None for none."""
    found = rows.one(
        "select t.id, t.item, t.answer, t.made, t.was, t.project_seq, t.at, t.undone_at, t.seq from answers t "  # noqa: S608
        f"where ((:id = '' and t.undone_at = '') or t.id = :id) and {among('t.project_seq', projects)} order by t.seq desc limit 1",
        id=ident,
    )
    if found is None:
        return None
    return Answer(
        id=found[0], item=found[1], answer=found[2], made=found[3], was=found[4], project_seq=int(found[5]), at=found[6],
        undone_at=found[7], seq=int(found[8]),
    )  # fmt: skip


def answer_befores(rows: Rows, answer: Answer) -> list[Before]:
    """What an answer touched, as it was."""
    return [
        Before(memory_id=a, text=b, state=c, more=d, version_after=int(e))
        for a, b, c, d, e in rows.all(
            "select memory_id, text, state, more, version_after from answer_befores where answer_seq = :seq order by seq",
            seq=answer.seq,
        )
    ]


def undo_answer(rows: Rows, answer: Answer, *, now: str) -> list[Before]:
    """Makes everything that an answer changed what it was before; CsmdError where a memory has changed since.

    The audit of what was changed is back, too; what the answer added to it is marked as taken back.
    """
    found = answer_befores(rows, answer)
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
    give_back(rows, found, at=now)
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
    found = rows.all(
        "select t.seq from memories t where t.superseded_by = '' and t.twin_of = 0 and t.pinned = 0 "  # noqa: S608
        "and (t.origin = 'model_saved' or (t.confidence < :below and t.created_at >= :since and t.authority <> 'user')) "
        f"and {among('t.project_seq', projects)} order by case t.origin when 'model_saved' then 0 else 1 end, t.confidence, t.seq desc limit :limit",
        below=below,
        since=since,
        limit=limit,
    )
    return [int(seq) for (seq,) in found]


#: The link from a memory to the one that it was merged into.
MERGED = "merged_into"
#: What upkeep puts into the queue of candidates; the other kinds are beliefs.
KINDS: tuple[CandidateKind, ...] = ("duplicate", "near_duplicate", "stale", "missing_embedding", "orphan")
MERGE = "merge"
TOOK_IN = "took in"
ARCHIVE = "archive"


def memories_past(rows: Rows, seq: int, *, limit: int) -> list[Memory]:
    """The next memories past a row key, in order."""
    found = rows.all("select seq from memories where seq > :seq order by seq limit :limit", seq=seq, limit=limit)
    return sorted(memories.by_seqs(rows, [int(one) for (one,) in found]).values(), key=lambda memory: memory.seq)


def past_archiving(rows: Rows, *, after: int, to: int) -> list[tuple[str, int]]:
    """(id, active days past its `archive_at`) of the memories between two row keys that nobody has used for long."""
    return [
        (str(ident), int(over))
        for ident, over in rows.all(
            "select m.id, (select count(*) from activity a where a.project_seq = m.project_seq) - m.archive_at "
            "from memories m where m.seq > :after and m.seq <= :to and m.tier <> 'archive' and m.pinned = 0 "
            "and m.twin_of = 0 and m.archive_at < "
            "(select count(*) from activity a where a.project_seq = m.project_seq) order by m.seq",
            after=after,
            to=to,
        )
    ]


def without_turns(rows: Rows, *, after: int, to: int) -> list[str]:
    """The memories between two row keys of whose sources no turn is left.

    What was said at the command line has none, and what came from another home (`brought`) has none here.
    """
    return rows.column(
        "select m.id from memories m where m.seq > :after and m.seq <= :to and m.tier <> 'archive' "
        "and not exists (select 1 from provenance p where p.memory_seq = m.seq and (substr(p.uuid, 1, 4) = 'cli:' "
        "or exists (select 1 from turns t where t.uuid = p.uuid))) and not exists (select 1 from belief_changes c "
        "where c.memory_id = m.id and c.change = 'brought') order by m.seq",
        after=after,
        to=to,
    )


def without_vector(rows: Rows, *, after: int, to: int) -> list[str]:
    """The memories between two row keys that an embedding model has passed by; what waits for its turn is not among them."""
    return rows.column(
        "select distinct m.id from memories m join vector_models v on m.seq <= coalesce((select c.position "
        "from cursors c where c.stage = 'embed-memory' and c.subject = cast(v.seq as text)), 0) "
        "where m.seq > :after and m.seq <= :to and not exists (select 1 from vectors x where x.kind = 'memory' "
        "and x.model_seq = v.seq and x.row_seq = m.seq) and not exists (select 1 from embed_again e "
        "where e.kind = 'memory' and e.model_seq = v.seq and e.row_seq = m.seq) order by m.id",
        after=after,
        to=to,
    )


def about_memory(rows: Rows, memory_id: str) -> list[Candidate]:
    """The waiting candidates of upkeep that are about a memory."""
    keys = ", ".join(f"'{kind}'" for kind in KINDS)
    found = rows.all(
        f"select id from candidates where status in ('open', 'needs_review') and kind in ({keys}) "  # noqa: S608
        "and ' ' || memory_ids || ' ' like '% ' || cast(:id as text) || ' %' order by seq",
        id=memory_id,
    )
    return [one for (ident,) in found if (one := candidates.by_id(rows, str(ident))) is not None]


def dropped_pairs(rows: Rows) -> frozenset[tuple[int, str, str]]:
    """(project, kind, fingerprint) of what a person has dropped."""
    keys = ", ".join(f"'{kind}'" for kind in KINDS)
    return frozenset(
        (int(project), str(kind), str(fingerprint))
        for project, kind, fingerprint in rows.all(
            f"select project_seq, kind, fingerprint from candidates where status = 'dropped' and kind in ({keys})"  # noqa: S608
        )
    )


def kept_pairs(rows: Rows, memory: Memory) -> Memory:
    """The memory that stands for one now: the one that it was merged into, or itself."""
    seen = {memory.id}
    while memory.superseded_by and memory.superseded_by not in seen and is_merged(rows, memory):
        found = memories.by_id(rows, memory.superseded_by)
        if found is None:
            return memory
        memory = found
        seen.add(memory.id)
    return memory


def is_merged(rows: Rows, memory: Memory) -> bool:
    """Whether a memory was merged into another one."""
    found = rows.value(
        "select 1 from links where from_seq = :seq and relationship = :merged", seq=memory.seq, merged=MERGED
    )
    return found is not None


def merge_memories(rows: Rows, merged: Memory, into: Memory, *, reason: str, by: str, now: str) -> None:
    """Puts one memory aside for another, whose values `into` has already; its sources confirm that one."""
    known = memories.by_seqs(rows, [into.seq])[into.seq]
    uuids = [
        source.uuid
        for source in merged.provenance
        if memories.add_provenance(
            rows, into.seq, source if source.role == "beside" else replace(source, role="confirms")
        )
    ]
    memories.update_belief(rows, replace(merged, tier="archive", superseded_by=into.id))
    memories.update_belief(rows, into)
    memories.add_link(rows, Link(from_id=merged.id, to_id=into.id, relationship=MERGED), now=now)
    belief_changes.note(rows, merged.id, MERGE, merged.tier, into.id, reason, by, now)
    after_ = " ".join([f"{into.confidence:.4f}", merged.id, *uuids])
    before = f"{known.confidence:.4f} {known.tier} {known.used_at}".strip()
    belief_changes.note(rows, into.id, TOOK_IN, before, after_, reason, by, now)


def last_merge(rows: Rows, memory_id: str) -> tuple[belief_changes.Change, belief_changes.Change] | None:
    """The merge of a memory that is in force, and what it did to the other one; None for none."""
    done = [row for row in belief_changes.changes_of(rows, memory_id) if row.change == MERGE and not row.undone_at]
    if not done:
        return None
    took = [
        row
        for row in belief_changes.changes_of(rows, done[-1].after)
        if row.change == TOOK_IN and not row.undone_at and row.after.split()[1] == memory_id
    ]
    return (done[-1], took[-1]) if took else None


def undo_merge(
    rows: Rows, merged: Memory, into: Memory, tookin: belief_changes.Change, done: belief_changes.Change, *, now: str
) -> None:
    """Ends a merge: both memories as the caller has made them, the sources that it brought gone from the other one."""
    for uuid in tookin.after.split()[2:]:
        rows.run("delete from provenance where memory_seq = :seq and uuid = :uuid", seq=into.seq, uuid=uuid)
    rows.run(
        "delete from links where from_seq = :one and to_seq = :other and relationship = :merged",
        one=merged.seq,
        other=into.seq,
        merged=MERGED,
    )
    memories.update_belief(rows, merged)
    memories.update_belief(rows, into)
    for change in (done, tookin):
        belief_changes.set_undone(rows, change.seq, at=now)


def archive_memory(rows: Rows, memory: Memory, *, reason: str, by: str, now: str) -> None:
    """Leaves a memory to explicit search."""
    memories.update_belief(rows, replace(memory, tier="archive"))
    belief_changes.note(rows, memory.id, ARCHIVE, memory.tier, "archive", reason, by, now)


def memories_of_places(rows: Rows, projects: Sequence[int] | None) -> list[Memory]:
    """The memories of some projects (None: all) that are neither archived, superseded nor put aside."""
    alive = "m.tier <> 'archive' and m.superseded_by = '' and m.twin_of = 0"
    return memories.where(rows, f"{alive} and {among('m.project_seq', projects)} order by m.seq")
