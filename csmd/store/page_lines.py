"""The lines of pages that stand for a memory which is no more: a purge takes them out of the files and of their rows alike.

A line of a memory ends in `<!-- m:ID -->`; what is indented below it says how it shows itself, and goes with it. Of both
the same is taken, so that no page looks edited afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from csmd.store.purge_whole import LOOKED_AT
from csmd.store.sqlite import Rows

_ID = re.compile(r"<!--\s*m:(m[0-9a-f]{10})\s*-->\s*$")
#: Those of some memories' ids that no memory has any more.
Missing = Callable[[Sequence[str]], Collection[str]]


def without(page: str, missing: Missing) -> tuple[str, int]:
    """A page without the lines of memories that are no more, and how many there were; the very same text for none."""
    whole = page.split("\n")
    ids = [found[1] if (found := _ID.search(line)) else "" for line in whole]
    gone = missing([ident for ident in dict.fromkeys(ids) if ident]) if any(ids) else ()
    if not gone:
        return page, 0
    kept: list[str] = []
    below = False
    for line, ident in zip(whole, ids, strict=True):
        below = ident in gone if ident else below and line[:1] in (" ", "\t")
        if not below:
            kept.append(line)
    return "\n".join(kept), sum(ident in gone for ident in ids)


def missing(rows: Rows, ids: Sequence[str]) -> frozenset[str]:
    """Those of these ids that no memory has."""
    return frozenset(one for one in ids if rows.value("select 1 from memories where id = :id", id=one) is None)


def without_gone(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """A pass of a purge over what csmd wrote last of each page."""
    del key
    found = rows.all(
        "select seq, text, also from pages where seq > :after order by seq limit :limit", after=after, limit=LOOKED_AT
    )
    total = 0
    for seq, *said in found:
        (text, one), (also, other) = (without(str(page), lambda ids: missing(rows, ids)) for page in said)
        if one or other:
            rows.run("update pages set text = :text, also = :also where seq = :seq", text=text, also=also, seq=seq)
            total += one + other
    return (int(found[-1][0]) if found else None), total
