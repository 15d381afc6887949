"""Links from a memory of which a part was replaced to the memory of its rest."""

from __future__ import annotations

from csmd.store.sqlite import Rows

GOES_ON_AS = "goes_on_as"


def of(rows: Rows, memory_id: str) -> int:
    """The row key of the memory of a memory's rest; 0 for none."""
    found = rows.value(
        "select l.to_seq from links l join memories m on m.seq = l.from_seq "
        "where m.id = :id and l.relationship = :relationship",
        id=memory_id,
        relationship=GOES_ON_AS,
    )
    return int(found or 0)


def release(rows: Rows, memory_id: str) -> list[int]:
    """The row key of a rest that is to go with its whole; one that was said by itself since, or pinned, is unlinked and stays."""
    rest = of(rows, memory_id)
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
