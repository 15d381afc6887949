"""What a dream is planned from, read from the store: of one scope, some memories at a time, so that others read meanwhile.

What was decided about memories (superseded by whom, taken back, refused) is read from the audit of beliefs, in the same
read as they are or a later one: whatever decides about a memory changes its row, and an action on a changed row is not done.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from csmd.model import Evidence, Memory
from csmd.store import before_images, belief_changes, memories, vector_tables, vectors
from csmd.store.sqlite import Rows

#: What the audit says of a memory that was told in further sessions, and of one that got a longer tier.
STRENGTHENED, PROMOTED = "strengthened", "kept for good"
#: And of one that was made of what was said in several projects.
LIFTED = "lifted"
#: Of one that is not to be lifted again with the others, or not to be asked about with another (`older:newer`): a person
#: undid the dream that did. The dream's own journal is kept for some time only, the audit as long as the memory.
NOT_LIFTED, NOT_ASKED = "not lifted", "not asked"
#: Of a project's memories so many are looked at, those told last.
MOST = 5000
#: Two vectors are near from this likeness on, and of each so many that are nearest are looked at.
LIKE, NEAREST = 0.75, 6
#: A likeness of 1 - d / 2 of vectors of this length, as they are stored (csmd/store/embed_worker.py).
_LENGTH = (127 / 0.25) ** 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A project, or a row of what holds everywhere, and the row of what holds all around it."""

    seq: int
    everywhere: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What became of memories and who has settled it, by id; `undone` is (kind of action, memory).

    `let_stand` is when somebody undid that a dream had something superseded, `asked` the pairs (`older:newer`) of
    questions that somebody undid.
    """

    superseded_at: Mapping[str, str] = field(default_factory=dict)
    settled: frozenset[str] = frozenset()
    refused: Mapping[str, frozenset[str]] = field(default_factory=dict)
    let_stand: Mapping[str, str] = field(default_factory=dict)
    apart: frozenset[tuple[str, str]] = frozenset()
    brought_back: Mapping[str, str] = field(default_factory=dict)
    undone: frozenset[tuple[str, str]] = frozenset()
    asked: frozenset[str] = frozenset()


def places(rows: Rows) -> list[Place]:
    """Where there may be something to do: what holds everywhere first, then projects in the order of their identities."""
    found = rows.all(
        "select p.seq, case when p.kind = 'workspace' then p.seq else p.workspace_seq end from projects p "
        "where p.merged_into = 0 order by case when p.seq = 0 then 0 when p.kind = 'workspace' then 1 else 2 end, p.key"
    )
    return [Place(seq=int(seq), everywhere=int(around)) for seq, around in found]


def held(rows: Rows, place: Place) -> list[int]:
    """The row keys of the memories of a scope that are not archived, and those that are alive of what holds all around it."""
    found = rows.all(
        "select seq from memories where project_seq = :place and tier <> 'archive' and twin_of = 0 "
        "order by confirmed_at desc, id limit :most",
        place=place.seq,
        most=MOST,
    )
    if place.everywhere != place.seq:
        found += rows.all(
            "select seq from memories where project_seq = :place and tier <> 'archive' and twin_of = 0 "
            "and superseded_by = '' order by confirmed_at desc, id limit :most",
            place=place.everywhere,
            most=MOST,
        )
    return [int(seq) for (seq,) in found]


def _listed(seqs: Sequence[int]) -> str:
    return ", ".join(str(int(seq)) for seq in seqs) or "0"


def still(rows: Rows, seqs: Sequence[int]) -> list[Memory]:
    """Those of them that are neither archived nor another's twin by now."""
    keys = _listed(seqs)
    found = rows.all(
        f"select seq from memories where seq in ({keys}) and tier <> 'archive' and twin_of = 0"  # noqa: S608
    )
    return list(memories.by_seqs(rows, [int(seq) for (seq,) in found]).values())


#: How users work as they said in the projects of which a place is what holds all around them.
_STATED = (
    "from memories m join projects p on p.seq = m.project_seq where p.workspace_seq = :place "
    "and p.seq <> :place and p.kind <> 'workspace' and p.merged_into = 0 and m.scope = 'project' "
    "and m.authority = 'user' and m.tier <> 'archive' and m.superseded_by = '' and m.twin_of = 0 "
    "and (m.gate = 'behavioral' or m.category = 'preference')"
)


def stated_around(rows: Rows, place: Place) -> list[int]:
    """How users work as they said in the projects of which a place is what holds all around them; nothing for a project."""
    if place.everywhere != place.seq:
        return []
    found = rows.all(
        f"select m.seq {_STATED} order by m.confirmed_at desc, m.id limit :most",
        place=place.seq,
        most=MOST,
    )
    return [int(seq) for (seq,) in found]


def still_stated(rows: Rows, around: int, idents: Sequence[str]) -> dict[str, int]:
    """Which of some memories are still such that users said them in a project around which a place is, and in which."""
    found = (rows.one(f"select m.project_seq {_STATED} and m.id = :id", place=around, id=ident) for ident in idents)
    return {ident: int(row[0]) for ident, row in zip(idents, found, strict=True) if row is not None}


def asked(rows: Rows, place: Place, source: str) -> frozenset[str]:
    """`older:newer` of what of a place was put before a person by a rule, whatever came of it."""
    found = rows.all(
        "select distinct fingerprint from candidates where project_seq = :place and source = :source and kind = 'stale'",
        place=place.seq,
        source=source,
    )
    return frozenset(str(fingerprint) for (fingerprint,) in found)


def not_lifted(rows: Rows, seqs: Sequence[int]) -> frozenset[str]:
    """Those of some memories that a dream lifted and that somebody has taken back from there."""
    keys = _listed(seqs)
    found = rows.all(
        "select distinct m.id from memories m join belief_changes b on b.memory_id = m.id "  # noqa: S608
        f"where m.seq in ({keys}) and b.change = :change",
        change=NOT_LIFTED,
    )
    return frozenset(str(ident) for (ident,) in found)


def topics(rows: Rows, place: Place, seqs: Sequence[int]) -> dict[str, frozenset[str]]:
    """Memory of the scope itself -> the names of its topics, without those that somebody took off."""
    keys = _listed(seqs)
    found: dict[str, set[str]] = defaultdict(set)
    for ident, name in rows.all(
        "select m.id, t.name from memories m join memory_topics x on x.memory_seq = m.seq "  # noqa: S608
        f"join topics t on t.seq = x.topic_seq where m.seq in ({keys}) and m.project_seq = :place and x.weight > 0",
        place=place.seq,
    ):
        found[str(ident)].add(str(name))
    return {ident: frozenset(names) for ident, names in found.items()}


def told(rows: Rows, seqs: Sequence[int]) -> frozenset[tuple[str, str]]:
    """(session, memory) of each session that was told one of them."""
    keys = _listed(seqs)
    found = rows.all(
        "select distinct n.session_id, i.memory_id from memories m join injection_items i on i.memory_id = m.id "  # noqa: S608
        f"join injections n on n.seq = i.injection_seq where m.seq in ({keys})"
    )
    return frozenset((str(session), str(ident)) for session, ident in found)


def by_assistants(rows: Rows, seqs: Sequence[int]) -> frozenset[str]:
    """The turns of assistants among those that tell the memories."""
    keys = _listed(seqs)
    found = rows.all(
        "select distinct p.uuid from provenance p join turns t on t.uuid = p.uuid "  # noqa: S608
        f"where p.memory_seq in ({keys}) and t.kind = 'assistant'"
    )
    return frozenset(str(uuid) for (uuid,) in found)


def decided(rows: Rows, place: Place, seqs: Sequence[int]) -> Decided:
    """What the audit says of those that are of the scope itself."""
    keys = _listed(seqs)
    since: dict[str, str] = {}
    settled: set[str] = set()
    refused: dict[str, set[str]] = defaultdict(set)
    apart: set[tuple[str, str]] = set()
    back: dict[str, str] = {}
    stands: dict[str, str] = {}
    undone: set[tuple[str, str]] = set()
    asked: set[str] = set()
    for ident, change, before, after, by, at, undone_at in rows.all(
        "select b.memory_id, b.change, b.before, b.after, b.by_whom, b.at, b.undone_at from memories m "  # noqa: S608
        f"join belief_changes b on b.memory_id = m.id where m.seq in ({keys}) and m.project_seq = :place order by b.seq",
        place=place.seq,
    ):
        if change == belief_changes.REFUSED:
            refused[ident].add(before)
        elif change == NOT_ASKED:
            asked.add(after)
        elif change == belief_changes.SUPERSEDED and undone_at and by == belief_changes.DREAM:
            other = belief_changes.read_state(after).get("superseded_by", "")
            refused[ident].add(other)
            refused[other].add(ident)  # nor the other way round
            stands[ident] = max(undone_at, stands.get(ident, ""))
        elif change == belief_changes.SUPERSEDED and not undone_at:
            since[ident] = at
            if by in ("person", "assistant"):
                settled.add(ident)
        elif change == before_images.MERGE and undone_at:
            apart.add((ident, after))
        elif change == before_images.ARCHIVE and undone_at:
            back[ident] = max(undone_at, back.get(ident, ""))
        elif change in (STRENGTHENED, PROMOTED) and undone_at:
            undone.add(("strengthen" if change == STRENGTHENED else "promote", ident))
    return Decided(
        superseded_at=since, settled=frozenset(settled), refused={key: frozenset(found) for key, found in refused.items()},
        let_stand=stands, apart=frozenset(apart), brought_back=back, undone=frozenset(undone),
        asked=frozenset(asked),
    )  # fmt: skip


def near(rows: Rows, place: Place, seqs: Sequence[int]) -> set[tuple[int, int]]:
    """Pairs of row keys of memories of a scope whose vectors are near, of some of them; nothing where there are no vectors."""
    model = rows.value(
        "select m.seq from vector_models m where exists (select 1 from vectors v where v.kind = 'memory' "
        "and v.model_seq = m.seq) order by m.seq desc limit 1"
    )
    found: set[tuple[int, int]] = set()
    for seq in seqs if model is not None else ():
        for vector in vectors.of_row(rows, "memory", seq, model=int(model)):
            for other, _, _, apart in vector_tables.vector_hits(
                rows, "memory", int(model), vector, projects=[place.seq], limit=NEAREST
            ):
                if other != seq and 1 - apart / (2 * _LENGTH) >= LIKE:
                    found.add((min(seq, int(other)), max(seq, int(other))))
    return found


def undone_raises(rows: Rows) -> frozenset[str]:
    """The candidates that dreams put into the queue and that were taken out of it with them."""
    found = rows.all(
        "select distinct r.item from dream_changes c join dream_rows r on r.change_seq = c.seq "
        "where c.kind = 'raise' and c.undone_at <> ''"
    )
    return frozenset(str(item) for (item,) in found)


def evidence(rows: Rows, uuids: Iterable[str]) -> tuple[Evidence, ...]:
    """Those of some turns that are there, in the order of time."""
    found = [
        rows.one(
            "select t.uuid, s.id, t.at from turns t join sessions s on s.seq = t.session_seq where t.uuid = :uuid",
            uuid=uuid,
        )
        for uuid in dict.fromkeys(uuids)
    ]
    told = [Evidence(uuid=str(row[0]), session_id=str(row[1]), at=str(row[2])) for row in found if row is not None]
    return tuple(sorted(told, key=lambda one: (one.at, one.uuid)))
