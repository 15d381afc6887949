"""Statements, memories, their provenance and links: what is believed, and why.

No memory without provenance: `insert` writes both or neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from csmd.errors import StoreError
from csmd.model import Link, Memory, Provenance, Statement, StoredTurn
from csmd.store import beliefs, candidates, rests, vectors
from csmd.store.sqlite import Rows

#: Why a memory that is not refuted has something against it all the same: it claims something of code that was changed.
EDITED = "the code that it speaks of was edited later in its session"
_AGAINST = "exists (select 1 from refutations r where r.memory_seq = m.seq and r.at > m.confirmed_at and r.reason"
#: What holds everywhere is told without the project in which it was said.
_SCENE = "select s.text from scenes s where s.memory_seq = m.seq and m.scope = 'project'"
_COLUMNS = (
    "m.id, m.text, m.gate, m.category, m.type, m.tier, m.decay, m.authority, m.origin, m.confidence, m.scope, "
    "m.project_seq, m.session_id, m.created_at, m.confirmed_at, m.hot_until, m.warm_until, m.archive_at, m.pinned, "
    "m.version, m.superseded_by, m.seq, m.used_at, "
    f"{_AGAINST} <> '{EDITED}'), {_AGAINST} = '{EDITED}'), "
    f"coalesce(({_SCENE}), '')"
)


def add_statement(rows: Rows, statement: Statement, turn: StoredTurn, *, session_seq: int, text_hash: str) -> bool:
    """Stores a distilled sentence under its turn; False when it is there already."""
    added = rows.value(
        "insert into statements (turn_seq, session_seq, project_seq, text, text_hash, gate, category, confidence, "
        "authority, reasons, also, at) values (:turn, :session, :project, :text, :hash, :gate, :category, :confidence, "
        ":authority, :reasons, :also, :at) on conflict (turn_seq, text_hash) do nothing returning seq",
        turn=turn.seq,
        session=session_seq,
        project=turn.project_seq,
        text=statement.text,
        hash=text_hash,
        gate=statement.gate,
        category=statement.category,
        confidence=statement.confidence,
        authority=statement.authority,
        reasons=" ".join(statement.reasons),
        also=" ".join(statement.also),
        at=turn.at,
    )
    return added is not None


def stated_before(rows: Rows, session_seq: int, ordinal: int) -> list[str]:
    """The statements of a session's turns before an ordinal, in order."""
    found = rows.all(
        "select x.text from session_turn st join statements x on x.turn_seq = st.turn_seq "
        "where st.session_seq = :session and st.ordinal < :ordinal order by st.ordinal, x.seq",
        session=session_seq,
        ordinal=ordinal,
    )
    return [str(row[0]) for row in found]


def statements_after(rows: Rows, seq: int, *, limit: int) -> list[tuple[int, Statement, str, str, str, int, str]]:
    """(seq, statement, uuid, session id, time, project, text hash) of statements past a cursor, in order."""
    return [
        (
            int(row[0]),
            Statement(
                text=row[1], gate=row[2], category=row[3], confidence=row[4], authority=row[5],
                reasons=tuple(str(row[6]).split()), also=tuple(str(row[7]).split()),
            ),
            str(row[8]), str(row[9]), str(row[10]), int(row[11]), str(row[12]),
        )
        for row in rows.all(
            "select x.seq, x.text, x.gate, x.category, x.confidence, x.authority, x.reasons, x.also, t.uuid, s.id, x.at, "
            "x.project_seq, x.text_hash from statements x join turns t on t.seq = x.turn_seq "
            "join sessions s on s.seq = x.session_seq where x.seq > :seq order by x.seq limit :limit",
            seq=seq,
            limit=limit,
        )
    ]  # fmt: skip


def _memory(row: Sequence[Any], provenance: Sequence[Provenance]) -> Memory:
    return Memory(
        id=row[0], text=row[1], gate=row[2], category=row[3], type=row[4], tier=row[5], decay=row[6],
        authority=row[7], origin=row[8], confidence=row[9], scope=row[10], project_seq=row[11], session_id=row[12],
        created_at=row[13], confirmed_at=row[14], hot_until=row[15], warm_until=row[16], archive_at=row[17],
        pinned=bool(row[18]), version=row[19], superseded_by=row[20], seq=row[21], used_at=row[22],
        is_refuted=bool(row[23]), is_edited=bool(row[24]), scene=row[25],
        provenance=tuple(provenance),
    )  # fmt: skip


def _with_provenance(rows: Rows, found: Sequence[Sequence[Any]]) -> list[Memory]:
    by_memory: dict[int, list[Provenance]] = {}
    for start in range(0, len(found), 500):
        keys = ", ".join(str(int(row[21])) for row in found[start : start + 500])
        for memory_seq, uuid, session, at, role in rows.all(
            f"select memory_seq, uuid, session_id, at, role from provenance where memory_seq in ({keys}) "  # noqa: S608
            "order by memory_seq, case role when 'states' then 0 else 1 end, at, uuid"
        ):
            by_memory.setdefault(int(memory_seq), []).append(
                Provenance(uuid=uuid, session_id=session, at=at, role=role)
            )
    return [_memory(row, by_memory.get(int(row[21]), ())) for row in found]


def insert(rows: Rows, memory: Memory, *, text_hash: str) -> int:
    """Stores a new memory with its provenance; its row key. StoreError when it has none."""
    if not memory.provenance:
        raise StoreError(f"the memory {memory.id} has no provenance: nobody said it")
    seq = int(
        rows.value(
            "insert into memories (id, text, text_hash, gate, category, type, tier, decay, authority, origin, "
            "confidence, scope, project_seq, session_id, created_at, confirmed_at, hot_until, warm_until, archive_at, "
            "pinned) values (:id, :text, :hash, :gate, :category, :type, :tier, :decay, :authority, :origin, "
            ":confidence, :scope, :project, :session, :created, :confirmed, :hot, :warm, :archive, :pinned) "
            "returning seq",
            id=memory.id,
            text=memory.text,
            hash=text_hash,
            gate=memory.gate,
            category=memory.category,
            type=memory.type,
            tier=memory.tier,
            decay=memory.decay,
            authority=memory.authority,
            origin=memory.origin,
            confidence=memory.confidence,
            scope=memory.scope,
            project=memory.project_seq,
            session=memory.session_id,
            created=memory.created_at,
            confirmed=memory.confirmed_at,
            hot=memory.hot_until,
            warm=memory.warm_until,
            archive=memory.archive_at,
            pinned=int(memory.pinned),
        )
    )
    for source in memory.provenance:
        add_provenance(rows, seq, source)
    return seq


def update_belief(rows: Rows, memory: Memory) -> None:
    """Writes what confirmation, pinning or contradiction change, and counts the version up."""
    rows.run(
        "update memories set confidence = :confidence, authority = :authority, origin = :origin, tier = :tier, "
        "decay = :decay, confirmed_at = :confirmed, hot_until = :hot, warm_until = :warm, archive_at = :archive, "
        "pinned = :pinned, superseded_by = :superseded, used_at = :used, version = version + 1 where seq = :seq",
        confidence=memory.confidence, authority=memory.authority, origin=memory.origin, tier=memory.tier,
        decay=memory.decay, confirmed=memory.confirmed_at, hot=memory.hot_until, warm=memory.warm_until,
        archive=memory.archive_at, pinned=int(memory.pinned), superseded=memory.superseded_by, used=memory.used_at,
        seq=memory.seq,
    )  # fmt: skip


def add_provenance(rows: Rows, memory_seq: int, source: Provenance) -> bool:
    """Adds a turn that states or confirms a memory; False when that turn is known."""
    added = rows.all(
        "insert into provenance (memory_seq, uuid, session_id, at, role) values (:memory, :uuid, :session, :at, :role) "
        "on conflict (memory_seq, uuid) do nothing returning uuid",
        memory=memory_seq, uuid=source.uuid, session=source.session_id, at=source.at, role=source.role,
    )  # fmt: skip
    return bool(added)


def stated_earlier(rows: Rows, memory_seq: int, source: Provenance) -> None:
    """Makes the turn of an earlier time the one that states a memory; those it was known by confirm it."""
    rows.run(
        "update memories set created_at = :at, session_id = :session where seq = :seq",
        at=source.at,
        session=source.session_id,
        seq=memory_seq,
    )
    rows.run(
        "update provenance set role = case when uuid = :uuid then 'states' when role = 'beside' then role else 'confirms' end where memory_seq = :seq",
        uuid=source.uuid,
        seq=memory_seq,
    )


def add_link(rows: Rows, link: Link, *, now: str) -> None:
    """Draws a weighted edge between two memories; drawing it again sets its weight."""
    rows.run(
        "insert into links (from_seq, to_seq, relationship, weight, created_at) "
        "select a.seq, b.seq, :relationship, :weight, :now from memories a, memories b "
        "where a.id = :one and b.id = :other "
        "on conflict (from_seq, to_seq, relationship) do update set weight = excluded.weight",
        relationship=link.relationship,
        weight=link.weight,
        now=now,
        one=link.from_id,
        other=link.to_id,
    )


def links_of(rows: Rows, memory_id: str) -> list[Link]:
    """The edges that begin or end at a memory."""
    return [
        Link(from_id=a, to_id=b, relationship=c, weight=d)
        for a, b, c, d in rows.all(
            "select f.id, t.id, l.relationship, l.weight from links l join memories f on f.seq = l.from_seq "
            "join memories t on t.seq = l.to_seq where f.id = :id or t.id = :id order by 1, 2, 3",
            id=memory_id,
        )
    ]


def by_hash(rows: Rows, text_hash: str, *, project: int) -> Memory | None:
    """The memory of a scope with exactly this (normalised) text; one that nothing has superseded before others."""
    found = rows.all(
        f"select {_COLUMNS} from memories m where m.project_seq = :project and m.text_hash = :hash "  # noqa: S608
        "order by case m.superseded_by when '' then 0 else 1 end, m.seq limit 1",
        project=project,
        hash=text_hash,
    )
    return _with_provenance(rows, found)[0] if found else None


def in_words(rows: Rows, text_hash: str) -> list[Memory]:
    """The memories with exactly this (normalised) text, of every scope."""
    found = rows.all("select seq from memories where text_hash = :hash and twin_of = 0 order by seq", hash=text_hash)
    return list(by_seqs(rows, [int(seq) for (seq,) in found]).values())


def by_seqs(rows: Rows, seqs: Sequence[int]) -> dict[int, Memory]:
    """Memories by row key."""
    if not seqs:
        return {}
    keys = ", ".join(str(int(seq)) for seq in seqs)
    found = rows.all(f"select {_COLUMNS} from memories m where m.seq in ({keys})")  # noqa: S608
    return {memory.seq: memory for memory in _with_provenance(rows, found)}


def stated_in(rows: Rows, uuids: Sequence[str]) -> dict[str, list[Memory]]:
    """The memories that each of these turns states or confirms; a turn without any is left out."""
    bare = {uuid: uuid.partition("/")[0] for uuid in uuids}
    wanted = sorted({*bare, *bare.values()})
    if not wanted:
        return {}
    values = {f"uuid{place}": uuid for place, uuid in enumerate(wanted)}
    uuid_names = ", ".join(f":{name}" for name in values)
    found = rows.all(
        f"select uuid, memory_seq from provenance where uuid in ({uuid_names}) order by memory_seq",  # noqa: S608
        **values,
    )
    known = by_seqs(rows, sorted({int(seq) for _, seq in found}))
    by_uuid: dict[str, list[Memory]] = {}
    for uuid, seq in found:
        if int(seq) in known:
            by_uuid.setdefault(str(uuid), []).append(known[int(seq)])
    return {
        uuid: told
        for uuid, short in bare.items()
        if (told := list({one.seq: one for one in (*by_uuid.get(uuid, ()), *by_uuid.get(short, ()))}.values()))
    }


def by_id(rows: Rows, memory_id: str) -> Memory | None:
    """One memory, or None."""
    found = rows.all(f"select {_COLUMNS} from memories m where m.id = :id", id=memory_id)  # noqa: S608
    return _with_provenance(rows, found)[0] if found else None


def ids_like(rows: Rows, prefix: str) -> list[str]:
    """The ids that begin with `prefix`, at most ten: people type the first characters."""
    return [
        str(found)
        for (found,) in rows.all(
            "select id from memories where substr(id, 1, :size) = :prefix order by id limit 10",
            size=len(prefix),
            prefix=prefix,
        )
    ]


def listing(rows: Rows, *, projects: Sequence[int] | None, limit: int = 2**31) -> list[Memory]:
    """The memories of some projects (None: all), the surest and newest first, at most `limit`."""
    scope = "" if projects is None else f"where m.project_seq in ({', '.join(str(int(p)) for p in projects)})"
    found = rows.all(
        f"select {_COLUMNS} from memories m {scope} "  # noqa: S608
        "order by m.pinned desc, m.confidence desc, m.confirmed_at desc, m.id limit :limit",
        limit=limit,
    )
    return _with_provenance(rows, found)


def said_in(rows: Rows, memory: Memory) -> frozenset[int]:
    """The projects in which the stored turns that a memory came from were said."""
    found = rows.all(
        "select distinct t.project_seq from provenance p join turns t on t.uuid = p.uuid where p.memory_seq = :seq",
        seq=memory.seq,
    )
    return frozenset(int(project) for (project,) in found)


def delete(rows: Rows, memory: Memory) -> None:
    """Removes a memory with its vectors, its links and its place in receipts, and what is only its rest.

    What it superseded is superseded by what superseded it, or holds again. With it goes what a merge put
    aside because it says the same, and what the queue and the audit quote of it.
    """
    aside = rows.all("select seq from memories where twin_of = :seq and twin_of > 0", seq=memory.seq)
    aside += rows.all("select from_seq from links where to_seq = :seq and relationship = 'merged_into'", seq=memory.seq)
    for seq in [*(int(twin) for (twin,) in aside), *rests.release(rows, memory.id)]:
        delete(rows, by_seqs(rows, [seq])[seq])
    candidates.forget(rows, memory.id)
    vectors.delete_for(rows, "memory", memory.seq)
    rows.run("delete from injection_items where memory_id = :id", id=memory.id)
    rows.run("delete from memories where seq = :seq", seq=memory.seq)
    for lifted in beliefs.inherit(rows, memory.id, memory.superseded_by):
        for seq in rests.release(rows, lifted):
            delete(rows, by_seqs(rows, [seq])[seq])


def move_provenance(rows: Rows, old: str, new: str) -> None:
    """Names a turn by its new uuid wherever a memory rests on it; one that rests on both keeps the stronger role."""
    rows.run(
        "update provenance set role = 'states' where uuid = :new and exists "
        "(select 1 from provenance p where p.memory_seq = provenance.memory_seq and p.uuid = :old "
        "and p.role = 'states')",
        new=new,
        old=old,
    )
    rows.run(
        "update provenance set uuid = :new where uuid = :old and not exists "
        "(select 1 from provenance p where p.memory_seq = provenance.memory_seq and p.uuid = :new)",
        new=new,
        old=old,
    )
    rows.run("delete from provenance where uuid = :old", old=old)
