"""Memories and their sources."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from csmd.errors import StoreError
from csmd.knowledge import Memory, Provenance
from csmd.store import vectors
from csmd.store.row_values import as_value, column_values, columns
from csmd.store.sqlite import IS_LISTED, Rows, in_keys, listed

#: Why a memory that is not refuted may still be wrong: it describes code that was edited later.
EDITED_CODE = "the code that it speaks of was edited later in its session"
_REFUTED_FOR = "exists (select 1 from refutations r where r.memory_seq = m.seq and r.at > m.confirmed_at and r.reason"
#: Memories `m` stated in this home, not by a colleague.
NOT_COLLEAGUES = "m.seq not in (select memory_seq from team_memories)"
_COLUMNS = columns(
    Memory,
    "m",
    author="coalesce((select a.author from team_memories a where a.memory_seq = m.seq), '')",
    provenance="''",
    is_refuted=f"{_REFUTED_FOR} <> '{EDITED_CODE}')",
    is_edited=f"{_REFUTED_FOR} = '{EDITED_CODE}')",
    # A memory that applies everywhere is shown without the project in which it was said.
    scene="coalesce((select s.text from scenes s where s.memory_seq = m.seq and m.scope = 'project'), '')",
    tell="""coalesce((select j.tell from judgements j where j.memory_seq = m.seq and (j.tell <> 'noted'
        or exists (select 1 from links l where l.from_seq = m.seq and l.relationship = 'curated_as'))), '')""",
)
_FIELDS = list(Memory.__annotations__)
#: The positions of a memory's row key and of its sources in a row.
_SEQ = _FIELDS.index("seq")
_SOURCES = _FIELDS.index("provenance")
#: Fields that are not in a memory's own row, or that start with the column's default.
_UNSTORED_AT_FIRST = "provenance version superseded_by used_at is_refuted is_edited scene tell author seq".split()
#: The columns that confirmation, pinning or contradiction change.
_BELIEF_COLUMNS = (
    "confidence", "authority", "origin", "tier", "decay", "confirmed_at", "hot_until", "warm_until", "archive_at", "pinned",
    "superseded_by", "used_at",
)  # fmt: skip
INFERRED_ORIGIN = "inferred"


def where(rows: Rows, condition: str, **values: object) -> list[Memory]:
    """Returns the memories `m` that fulfil a condition, which may end with an order, each with its sources."""
    memory_rows = rows.all(f"select {_COLUMNS} from memories m where {condition}", **values)  # noqa: S608
    sources = (
        {}
        if not memory_rows
        else rows.grouped(
            f"""select memory_seq, uuid, session_id, at, role from provenance where memory_seq {IS_LISTED}
                order by memory_seq, case role when 'states' then 0 else 1 end, at, uuid""",  # noqa: S608
            listed=listed(row[_SEQ] for row in memory_rows),
        )
    )
    return [
        as_value(
            Memory,
            (
                *row[:_SOURCES],
                tuple(as_value(Provenance, source) for source in sources.get(row[_SEQ], ())),
                *row[_SOURCES + 1 :],
            ),
        )
        for row in memory_rows
    ]


def insert(rows: Rows, memory: Memory, *, text_hash: str) -> int:
    """Stores a new memory with its sources and returns its row key; raises StoreError if it has none."""
    if not memory.provenance:
        raise StoreError(f"the memory {memory.id} has no provenance")
    seq = rows.insert_keyed("memories", text_hash=text_hash, **column_values(memory, *_UNSTORED_AT_FIRST))
    for source in memory.provenance:
        add_provenance(rows, seq, source)
    return seq


def update_belief(rows: Rows, memory: Memory) -> None:
    """Writes the columns of _BELIEF_COLUMNS and increments the version."""
    values = column_values(memory, "provenance")
    rows.revise("memories", memory.seq, **{name: values[name] for name in _BELIEF_COLUMNS})


def add_provenance(rows: Rows, memory_seq: int, source: Provenance) -> bool:
    """Adds a turn that states or confirms a memory; False if it has that turn."""
    return rows.insert("provenance", "on conflict do nothing", memory_seq=memory_seq, **column_values(source))


def add_confirming(rows: Rows, memory_seq: int, sources: Sequence[Provenance]) -> list[str]:
    """Adds the sources of an equal memory as confirming this one; returns the uuids of the new ones."""
    roles = (source if source.role == "beside" else replace(source, role="confirms") for source in sources)
    return [source.uuid for source in roles if add_provenance(rows, memory_seq, source)]


def set_stating_turn(rows: Rows, memory_seq: int, source: Provenance) -> None:
    """Makes an earlier turn the one that states a memory; the others confirm it."""
    rows.update("memories", memory_seq, created_at=source.at, session_id=source.session_id)
    sql = """update provenance set role = case when uuid = :uuid then 'states'
        when role = 'beside' then role else 'confirms' end where memory_seq = :seq"""
    rows.run(sql, uuid=source.uuid, seq=memory_seq)


def by_hash(rows: Rows, text_hash: str, *, project: int) -> Memory | None:
    """Returns the scope's own memory with exactly this normalised text, preferably one that nothing has superseded."""
    memories = where(
        rows,
        f"""m.project_seq = :project and m.text_hash = :hash and {NOT_COLLEAGUES}
            order by case m.superseded_by when '' then 0 else 1 end, m.seq limit 1""",
        project=project,
        hash=text_hash,
    )
    return memories[0] if memories else None


def list_by_hash(rows: Rows, text_hash: str) -> list[Memory]:
    """Returns the memories with exactly this normalised text, of every scope."""
    return where(rows, "m.text_hash = :hash and m.twin_of = 0 order by m.seq", hash=text_hash)


def by_seqs(rows: Rows, seqs: Sequence[int]) -> dict[int, Memory]:
    """Returns memories by row key."""
    return {memory.seq: memory for memory in where(rows, f"m.seq {IS_LISTED}", listed=listed(seqs))}


def memories_by_turn(rows: Rows, uuids: Sequence[str]) -> dict[str, list[Memory]]:
    """Returns the memories that each of these turns states or confirms; turns without any are left out."""
    lines = {uuid: uuid.partition("/")[0] for uuid in uuids}
    all_uuids = sorted({*lines, *lines.values()})
    if not all_uuids:
        return {}
    values = {f"uuid{number}": uuid for number, uuid in enumerate(all_uuids)}
    uuid_names = ", ".join(f":{name}" for name in values)
    sql = f"select uuid, memory_seq from provenance where uuid in ({uuid_names}) order by memory_seq"  # noqa: S608
    sources = rows.all(sql, **values)
    memories = by_seqs(rows, sorted({seq for _, seq in sources}))
    by_uuid: dict[str, dict[int, Memory]] = defaultdict(dict)
    for uuid, seq in sources:
        if seq in memories:
            by_uuid[uuid][seq] = memories[seq]
    by_turn = {uuid: list({**by_uuid[uuid], **by_uuid[short]}.values()) for uuid, short in lines.items()}
    return {uuid: stated for uuid, stated in by_turn.items() if stated}


def find_seq(rows: Rows, memory_id: str) -> int:
    """Returns the row key of a memory; 0 if there is none."""
    return int(rows.find("memories", "seq", id=memory_id) or 0)


def by_id(rows: Rows, memory_id: str) -> Memory | None:
    """Returns a memory by its id; None if it does not exist."""
    memories = where(rows, "m.id = :id", id=memory_id)
    return memories[0] if memories else None


def list_memories(
    rows: Rows, *, projects: Sequence[int] | None, limit: int = 2**31, only_users: bool = False
) -> list[Memory]:
    """Returns the memories of some projects (None: all), the surest and newest first, at most `limit`.

    `only_users` selects those that a person (the user, a colleague) said or pinned, or that were judged worth injecting
    at every start.
    """
    return where(
        rows,
        f"""{in_keys("m.project_seq", projects)}
            and (:everybodys = 1 or m.authority = 'user' or m.pinned = 1 or exists (select 1 from judgements j
            where j.memory_seq = m.seq and j.tell = 'starts') or m.seq in (select memory_seq from team_memories))
            order by m.pinned desc, m.confidence desc, m.confirmed_at desc, m.id limit :limit""",  # noqa: S608
        limit=limit,
        everybodys=not only_users,
    )


def active_memories(rows: Rows) -> list[Memory]:
    """Returns the memories that are neither superseded nor archived nor covered by a twin, by row key."""
    return where(rows, "m.superseded_by = '' and m.twin_of = 0 and m.tier <> 'archive' order by m.seq")


def list_stated_in_session(rows: Rows, session_seq: int) -> list[Memory]:
    """Returns the user's memories that turns of a session state, by row key."""
    return where(
        rows,
        """m.authority = 'user' and m.seq in (select p.memory_seq from session_turn st
            join turns t on t.seq = st.turn_seq join provenance p on p.uuid = t.uuid and p.role <> 'beside'
            where st.session_seq = :session and st.rewound = 0) order by m.seq""",
        session=session_seq,
    )


def list_page(
    rows: Rows, *, projects: Sequence[int] | None, limit: int, offset: int, gate: str = "", category: str = "",
    type_: str = "", session: str = "", state: str = "", since: str = "", until: str = "",
) -> tuple[list[Memory], int]:  # fmt: skip
    """Returns (a page of the memories of some projects, how many there are in all), the last said first.

    Filters: one gate, category and type ("": any); the session that states or confirms it; last said at or after
    `since` and before `until`; `state` active or replaced ("": both).
    """
    condition = f"""{in_keys("m.project_seq", projects)}
        and (:gate = '' or m.gate = :gate) and m.confirmed_at >= :since and (:until = '' or m.confirmed_at < :until)
        and (:category = '' or m.category = :category) and (:type = '' or m.type = :type) and (:session = ''
        or exists (select 1 from provenance p where p.memory_seq = m.seq and p.session_id = :session)) and (:state = ''
        or (:state = 'active' and m.superseded_by = '') or (:state = 'replaced' and m.superseded_by <> ''))"""  # noqa: S608
    filters = {"gate": gate, "category": category, "type": type_, "session": session, "state": state}
    filters |= {"since": since, "until": until}
    # Keys first, so that other tables are read only for the memories on the page.
    latest = f"""select m.seq
        from memories m where {condition} order by m.confirmed_at desc, m.seq desc limit :limit offset :offset"""  # noqa: S608
    seqs = rows.column(latest, **filters, limit=limit, offset=offset)
    total = rows.number(f"select count(*) from memories m where {condition}", **filters)  # noqa: S608
    memories = by_seqs(rows, seqs)
    return [memories[seq] for seq in seqs], total


def list_review_seqs(rows: Rows, *, projects: Sequence[int] | None, below: float, since: str, limit: int) -> list[int]:
    """Returns the row keys of memories that wait for review, those with the least confidence first.

    They were saved by a model unasked, or are not the user's, below a confidence and created at or after `since`.
    """
    sql = f"""select m.seq from memories m where m.superseded_by = '' and m.twin_of = 0 and m.pinned = 0
        and (m.origin = 'model_saved' or (m.confidence < :below and m.created_at >= :since and m.authority <> 'user'))
        and {NOT_COLLEAGUES} and {in_keys("m.project_seq", projects)}
        order by case m.origin when 'model_saved' then 0 else 1 end, m.confidence, m.seq desc limit :limit"""  # noqa: S608
    return rows.column(sql, below=below, since=since, limit=limit)


def map_replaced_memories(rows: Rows, idents: Sequence[str]) -> dict[str, list[Memory]]:
    """Returns the memories that each of these replaces; those that replace none are left out."""
    if not idents:
        return {}
    values = {f"ident{number}": memory_id for number, memory_id in enumerate(idents)}
    ident_names = ", ".join(f":{name}" for name in values)
    replaced: dict[str, list[Memory]] = defaultdict(list)
    for memory in where(rows, f"m.superseded_by in ({ident_names}) order by m.confirmed_at desc, m.seq", **values):
        replaced[memory.superseded_by].append(memory)
    return replaced


def find_directory(rows: Rows, memory: Memory) -> str:
    """Returns the directory in which a memory was first stated; "" if unknown."""
    sql = """select d.path from provenance p join turns t on t.uuid = p.uuid join directories d
        on d.seq = t.directory_seq where p.memory_seq = :seq and p.role <> 'beside' order by p.at limit 1"""
    return str(rows.value(sql, seq=memory.seq) or "")


def list_source_projects(rows: Rows, memory: Memory) -> frozenset[int]:
    """Returns the projects in which a memory's stored source turns were said."""
    sql = "select distinct t.project_seq from provenance p join turns t on t.uuid = p.uuid where p.memory_seq = :seq"
    return rows.distinct(sql, seq=memory.seq)


def move_provenance(rows: Rows, old: str, new: str) -> None:
    """Changes a turn's uuid in all sources; a memory with both uuids keeps the stronger role."""
    sql = """update provenance set role = 'states' where uuid = :new and exists (select 1
        from provenance p where p.memory_seq = provenance.memory_seq and p.uuid = :old and p.role = 'states')"""
    rows.run(sql, new=new, old=old)
    sql = """update provenance set uuid = :new where uuid = :old
        and not exists (select 1 from provenance p where p.memory_seq = provenance.memory_seq and p.uuid = :new)"""
    rows.run(sql, new=new, old=old)
    rows.delete("provenance", uuid=old)


def is_inferred(memory: Memory, text: str) -> bool:
    """Whether a memory still has the words `text` as csmd inferred it, and no person has adopted or changed it."""
    return memory.origin == INFERRED_ORIGIN and not memory.pinned and memory.text == text


def update_inferred(
    rows: Rows, memory: Memory, *, text_hash: str, sources: Sequence[Provenance], before: Sequence[str]
) -> None:
    """Updates an inferred memory's words, thresholds and sources; `before` are its inferred sources' uuids so far.

    Sources of another origin (a user who said the same) stay.
    """
    old = rows.find("memories", "text", seq=memory.seq)
    changed = {name: getattr(memory, name) for name in ("text", "session_id", "created_at", "scope", "category")}
    rows.update("memories", memory.seq, text_hash=text_hash, **changed)
    update_belief(rows, memory)
    for uuid in {*before} - {source.uuid for source in sources}:
        rows.delete("provenance", memory_seq=memory.seq, uuid=uuid)
    rows.run("update provenance set role = 'confirms' where memory_seq = :seq and role = 'states'", seq=memory.seq)
    for source in sources:
        add_provenance(rows, memory.seq, replace(source, role="confirms"))
    for source in sources[:1]:
        sql = "update provenance set role = 'states' where memory_seq = :seq and uuid = :uuid"
        rows.run(sql, seq=memory.seq, uuid=source.uuid)
    if old != memory.text:
        vectors.reembed(rows, "memory", memory.seq)
