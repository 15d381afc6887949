"""Statements, memories, their provenance, links, scenes and rests: what is believed, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from csmd.errors import StoreError
from csmd.model import Link, Memory, Provenance, Statement, StoredTurn
from csmd.store import belief_changes, candidates, vectors
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
    for seq in [*(int(twin) for (twin,) in aside), *release_rest(rows, memory.id)]:
        delete(rows, by_seqs(rows, [seq])[seq])
    candidates.forget(rows, memory.id)
    vectors.delete_for(rows, "memory", memory.seq)
    rows.run("delete from injection_items where memory_id = :id", id=memory.id)
    rows.run("delete from memories where seq = :seq", seq=memory.seq)
    for lifted in belief_changes.inherit(rows, memory.id, memory.superseded_by):
        for seq in release_rest(rows, lifted):
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


INFERRED = "inferred"


def is_inferred(memory: Memory, said: str) -> bool:
    """Whether a memory is still as csmd inferred it: its words are `said`, and nobody has made it theirs."""
    return memory.origin == INFERRED and not memory.pinned and memory.text == said


def retell_inferred(
    rows: Rows, memory: Memory, *, text_hash: str, sources: Sequence[Provenance], before: Sequence[str]
) -> None:
    """Gives a memory its words, thresholds and sources of now; `before` are the uuids that it rested on as inferred.

    Sources of other origin (a user who said the same) stay.
    """
    old = rows.value("select text from memories where seq = :seq", seq=memory.seq)
    rows.run(
        "update memories set text = :text, text_hash = :hash, session_id = :session, created_at = :created where seq = :seq",
        text=memory.text,
        hash=text_hash,
        session=memory.session_id,
        created=memory.created_at,
        seq=memory.seq,
    )
    update_belief(rows, memory)
    cited = {source.uuid for source in sources}
    for uuid in before:
        if uuid not in cited:
            rows.run("delete from provenance where memory_seq = :seq and uuid = :uuid", seq=memory.seq, uuid=uuid)
    rows.run("update provenance set role = 'confirms' where memory_seq = :seq and role = 'states'", seq=memory.seq)
    for place, source in enumerate(sources):
        told = replace(source, role="states" if place == 0 else "confirms")
        if not add_provenance(rows, memory.seq, told) and place == 0:
            rows.run(
                "update provenance set role = 'states' where memory_seq = :seq and uuid = :uuid",
                seq=memory.seq,
                uuid=source.uuid,
            )
    if old != memory.text:
        vectors.again(rows, "memory", memory.seq)


def cite_beside(rows: Rows, turn: StoredTurn, beside: StoredTurn, *, text_hash: str) -> None:
    """Notes that the turn `beside` is the other half of a statement that was stored before, and of its memory."""
    rows.run(
        "update statements set also = :uuid where turn_seq = :turn and text_hash = :hash and also = ''",
        uuid=beside.uuid,
        turn=turn.seq,
        hash=text_hash,
    )
    for (seq,) in rows.all(
        "select m.seq from provenance p join memories m on m.seq = p.memory_seq where p.uuid = :uuid and m.text_hash = :hash",
        uuid=turn.uuid,
        hash=text_hash,
    ):
        add_provenance(
            rows, int(seq), Provenance(uuid=beside.uuid, session_id=beside.session_id, at=beside.at, role="beside")
        )


class Stated(NamedTuple):
    """A memory of a project as the first turn of its own session states it; `turn` is what that turn says."""

    memory_seq: int
    text: str
    authority: str
    uuid: str
    ordinal: int
    turn: str
    gate: str


class Changed(NamedTuple):
    """A call that wrote to a file: `anew` wrote the whole of it, `given` is the beginning of its input."""

    uuid: str
    at: str
    ordinal: int
    anew: bool
    given: str


def stated_by_session(rows: Rows, session_seq: int, session_id: str, *, upto: int) -> list[Stated]:
    """The memories that a session was the first to state, each by the first turn that does, of all that was said and not counted."""
    found = rows.all(
        "select m.seq, m.text, m.authority, p.uuid, st.ordinal, t.text, m.gate from memories m "
        "join provenance p on p.memory_seq = m.seq and p.role = 'states' and p.session_id = m.session_id "
        "join turns t on t.uuid = p.uuid "
        "join session_turn st on st.session_seq = :session and st.turn_seq = t.seq "
        "where m.session_id = :id and m.twin_of = 0 and m.origin = 'stated' and m.gate <> 'relational' and m.scope = 'project' "
        "and st.ordinal <= :upto order by st.ordinal desc, m.seq",
        session=session_seq,
        id=session_id,
        upto=upto,
    )
    return list({int(row[0]): Stated(*row) for row in found}.values())


def changes_of(rows: Rows, session_seq: int, *, upto: int, most: int, characters: int) -> list[Changed]:
    """The last calls of a session that wrote to a file, in order."""
    found = rows.all(
        "select t.uuid, t.at, st.ordinal, t.tool_name, substr(t.text, 1, :characters) from session_turn st "
        "join turns t on t.seq = st.turn_seq where st.session_seq = :session and st.ordinal <= :upto and t.kind = 'tool_call' "
        "and t.tool_name in ('Edit', 'MultiEdit', 'Write') and t.source = 'transcript' order by st.ordinal desc limit :most",
        session=session_seq,
        upto=upto,
        most=most,
        characters=characters,
    )
    return [
        Changed(str(uuid), str(at), int(ordinal), tool == "Write", str(given))
        for uuid, at, ordinal, tool, given in reversed(found)
    ]


def prompts_of(rows: Rows, session_seq: int, *, upto: int) -> list[tuple[str, int, str]]:
    """(uuid, ordinal, text) of all that an assistant answers to, in order; "" for the text of what no user typed."""
    found = rows.all(
        "select t.uuid, st.ordinal, case when t.kind = 'user' then t.text else '' end from session_turn st "
        "join turns t on t.seq = st.turn_seq where st.session_seq = :session and st.ordinal <= :upto "
        "and t.kind in ('user', 'relayed', 'command', 'notification') and t.source = 'transcript' order by st.ordinal",
        session=session_seq,
        upto=upto,
    )
    return [(str(uuid), int(ordinal), str(said)) for uuid, ordinal, said in found]


def personal(rows: Rows, session_seq: int) -> frozenset[str]:
    """The turns of a session that say something of people."""
    found = rows.all(
        "select distinct t.uuid from session_turn st join statements x on x.turn_seq = st.turn_seq "
        "join turns t on t.seq = st.turn_seq where st.session_seq = :session and x.gate = 'relational'",
        session=session_seq,
    )
    return frozenset(str(uuid) for (uuid,) in found)


def scene_places(rows: Rows, session_seq: int) -> tuple[int, tuple[str, ...]]:
    """The project of a session, and the directories whose files are its own."""
    found = rows.one(
        "select s.project_seq, p.root, s.cwd from sessions s join projects p on p.seq = s.project_seq where s.seq = :session",
        session=session_seq,
    )
    return (int(found[0]), (str(found[1]), str(found[2]))) if found else (0, ())


def note_scene(rows: Rows, memory_seq: int, *, uuid: str, text: str) -> None:
    """Notes the scene of a memory; "" for none."""
    if not text:
        rows.run("delete from scenes where memory_seq = :memory", memory=memory_seq)
        return
    rows.run(
        "insert into scenes (memory_seq, uuid, text) values (:memory, :uuid, :text) "
        "on conflict (memory_seq) do update set uuid = excluded.uuid, text = excluded.text",
        memory=memory_seq,
        uuid=uuid,
        text=text,
    )


def known_scenes(rows: Rows, session_id: str) -> dict[int, str]:
    """The scenes of the memories that a session was the first to state, by memory."""
    found = rows.all(
        "select s.memory_seq, s.text from scenes s join memories m on m.seq = s.memory_seq where m.session_id = :id",
        id=session_id,
    )
    return {int(seq): str(text) for seq, text in found}


def forget_scenes(rows: Rows, uuid: str) -> None:
    """Takes out what a turn showed."""
    rows.run("delete from scenes where uuid = :uuid", uuid=uuid)


GOES_ON_AS = "goes_on_as"


def rest_of(rows: Rows, memory_id: str) -> int:
    """The row key of the memory of a memory's rest; 0 for none."""
    found = rows.value(
        "select l.to_seq from links l join memories m on m.seq = l.from_seq "
        "where m.id = :id and l.relationship = :relationship",
        id=memory_id,
        relationship=GOES_ON_AS,
    )
    return int(found or 0)


def wholes_of(rows: Rows, memory: Memory) -> list[Memory]:
    """The superseded memories of which a memory is the rest."""
    found = rows.all(
        "select from_seq from links where to_seq = :rest and relationship = :relationship order by from_seq",
        rest=memory.seq,
        relationship=GOES_ON_AS,
    )
    return list(by_seqs(rows, [int(seq) for (seq,) in found]).values())


def release_rest(rows: Rows, memory_id: str) -> list[int]:
    """The row key of a rest that is to go with its whole; one that was said by itself since, or pinned, is unlinked and stays."""
    rest = rest_of(rows, memory_id)
    if not rest:
        return []
    is_own = rows.value(
        "select 1 from memories r, memories w where r.seq = :rest and w.id = :id and (r.pinned <> w.pinned or exists ("
        "select 1 from provenance p where p.memory_seq = r.seq and p.uuid not in ("
        "select q.uuid from provenance q where q.memory_seq = w.seq)))",
        rest=rest,
        id=memory_id,
    )
    if not is_own:
        return [rest]
    rows.run(
        "delete from links where to_seq = :rest and relationship = :relationship", rest=rest, relationship=GOES_ON_AS
    )
    return []
