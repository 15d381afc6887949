"""Memories and candidates as they were before something changed them; how they become that again is `given_back`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from csmd import wire
from csmd.store import beliefs, candidates
from csmd.store.sqlite import Rows

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
    more: dict[str, Any] = {"changes": [asdict(change) for change in beliefs.changes_of(rows, ident)]}
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
