"""Links between memories, and the second half of a memory that was split in two."""

from __future__ import annotations

from csmd.knowledge import Link, Memory
from csmd.store import memories
from csmd.store.row_values import column_values
from csmd.store.sqlite import Rows


def add_link(rows: Rows, link: Link, *, now: str) -> None:
    """Links two memories; linking them again sets the weight."""
    sql = """insert into links (from_seq, to_seq, relationship, weight, created_at) select a.seq,
        b.seq, :relationship, :weight, :now from memories a, memories b where a.id = :from_id and b.id = :to_id
        on conflict (from_seq, to_seq, relationship) do update set weight = excluded.weight"""
    rows.run(sql, now=now, **column_values(link))


def links_of(rows: Rows, memory_id: str) -> list[Link]:
    """Returns the links from and to a memory."""
    sql = """select f.id, t.id, l.relationship, l.weight from links l join memories f on f.seq = l.from_seq
        join memories t on t.seq = l.to_seq where f.id = :id or t.id = :id order by 1, 2, 3"""
    return rows.read(Link, sql, id=memory_id)


GOES_ON_AS = "goes_on_as"


def second_half_of(rows: Rows, memory_id: str) -> int:
    """Returns the row key of the second half of a memory; 0 if it has none."""
    sql = """select l.to_seq
        from links l join memories m on m.seq = l.from_seq where m.id = :id and l.relationship = 'goes_on_as'"""
    return rows.number(sql, id=memory_id)


def whole_memories_of(rows: Rows, memory: Memory) -> list[Memory]:
    """Returns the memories whose second half this is, or that it is injected in place of."""
    return memories.where(
        rows,
        """m.seq in (select from_seq from links where to_seq = :rest and relationship in ('goes_on_as', 'curated_as'))
            order by m.seq""",
        rest=memory.seq,
    )


def release_second_half(rows: Rows, memory_id: str) -> list[int]:
    """Returns the second half to delete with its first; unlinks one that was stated by itself or pinned."""
    rest = second_half_of(rows, memory_id)
    if not rest:
        return []
    sql = """select 1 from memories r, memories w
        where r.seq = :rest and w.id = :id and (r.pinned <> w.pinned or exists (select 1 from provenance p
        where p.memory_seq = r.seq and p.uuid not in (select q.uuid from provenance q where q.memory_seq = w.seq)))"""
    is_own = rows.value(sql, rest=rest, id=memory_id)
    if not is_own:
        return [rest]
    rows.delete("links", to_seq=rest, relationship="goes_on_as")
    return []
