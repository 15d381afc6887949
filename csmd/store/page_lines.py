"""The lines of pages that stand for a memory which is no more: what is forgotten and purged leaves files, rows and journal alike.

A line of a memory ends in `<!-- m:ID -->`; what is indented below it says how it shows itself, and goes with it. Where an
editor has lost the comment the line is known by its words. One rule, `without`, says it for every place, so that no page
looks edited afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence

from csmd import pagename, text
from csmd.pageline import BULLET, ID, words_of
from csmd.store import reach, tombstones
from csmd.store.purge_whole import LOOKED_AT
from csmd.store.sqlite import Rows

_ENDS = re.compile(ID.pattern + r"\s*$")
#: What ends the line of a list that is broken into several.
_OTHER = re.compile(r"\s*$|\s*#{1,6}\s|\s*(?:`{3}|~{3})|.*<!-- csmd -->\s*$")
#: Those of some memories' ids that no memory has any more.
Missing = Callable[[Sequence[str]], Collection[str]]
#: Whether words were forgotten, of a line that names no memory.
Unsaid = Callable[[str], bool]


def without(page: str, missing: Missing, unsaid: Unsaid = frozenset().__contains__) -> tuple[str, int]:
    """A page without the lines of memories that are no more, and how many there were; the very same text for none."""
    whole = page.split("\n")
    items = [*_items(whole)]
    gone = missing([*dict.fromkeys(ident for _, _, ident in items if ident)])
    out: set[int] = set()
    count = 0
    for start, end, ident in items:
        upto = end if ident in gone else 0 if ident else _said_upto(whole, start, end, unsaid)
        if upto:
            count += 1
            while upto < len(whole) and whole[upto][:1] in (" ", "\t") and not ID.search(whole[upto]):
                upto += 1
            out.update(range(start, upto))
    return ("\n".join(line for at, line in enumerate(whole) if at not in out) if out else page), count


def _items(whole: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """(first line, the line after the last, id or "") of what may stand for a memory: lines of lists, broken ones whole."""
    at = 0
    while at < len(whole):
        end = at + 1
        if BULLET.match(whole[at]):
            while not ID.search(whole[end - 1]) and end < len(whole) and _goes_on(whole[end]):
                end += 1
            found = ID.findall(whole[end - 1])
            yield at, end, found[-1] if found else ""
        elif found := _ENDS.findall(whole[at]):  # it has lost its bullet
            yield at, end, found[-1]
        at = end


def _goes_on(line: str) -> bool:
    return not BULLET.match(line) and not _OTHER.match(line)


def _said_upto(whole: Sequence[str], start: int, end: int, unsaid: Unsaid) -> int:
    """Up to which line an item that names no memory says what was forgotten; 0 for none that does."""
    return next((upto for upto in range(start + 1, end + 1) if unsaid(words_of(" ".join(whole[start:upto])))), 0)


def missing(rows: Rows, ids: Sequence[str]) -> frozenset[str]:
    """Those of these ids that no memory has."""
    return frozenset(one for one in ids if rows.value("select 1 from memories where id = :id", id=one) is None)


def place_of(rows: Rows, path: str) -> int | None:
    """The row of the project or workspace that a page is of, or that what lies beside it is of, 0 for everywhere.

    None for a page of several, as a theme's is.
    """
    if pagename.is_about_all(path):
        return 0
    known = pagename.short_key(path)
    found = [seq for seq, key in rows.all("select seq, key from projects") if known and pagename.short(key) == known]
    return int(found[0]) if len(found) == 1 else None


def unsaid(rows: Rows, words: str, *, place: int | None, key: bytes) -> bool:
    """Whether words were forgotten, by whomever, where a page is of (None: anywhere), and no memory says them there."""
    if not words or not tombstones.is_out(rows, words, authority="assistant", project=place, key=key):
        return False
    scopes = None if place is None else reach.asked(rows, place)
    among = "" if scopes is None else f"and project_seq in ({', '.join(str(one) for one in sorted(scopes))})"
    said = f"select 1 from memories where text_hash = :hash {among}"  # noqa: S608
    return rows.value(said, hash=text.keyed_hash(words, key)) is None


def without_forgotten(rows: Rows, page: str, *, path: str, key: bytes) -> tuple[str, int]:
    """What stands in a page's file without what was forgotten, known by its ids or by its words, and how many lines that were."""
    place = place_of(rows, path)
    return without(page, lambda ids: missing(rows, ids), lambda words: unsaid(rows, words, place=place, key=key))


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
