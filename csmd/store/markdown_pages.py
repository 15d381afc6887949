"""The pages that people read and edit, as csmd wrote them last or read them back; which lines leave them with what they stand for."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from csmd.model import Candidate, Memory
from csmd.store import candidates, memories, tombstones
from csmd.store.sqlite import Rows, among, columns, written
from csmd.store.text_columns import LOOKED_AT
from csmd.text import page_lines, tokens
from csmd.text.page_lines import BULLET, ID, words_of

#: How many calls of tools are looked at for who wrote a page, the latest.
MOST_CALLS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRow:
    """One page; `also` is what its file may say besides and be no edit, `held` the file beside it that holds it whole."""

    path: str
    text: str
    at: str
    also: str = ""
    held: str = ""
    problem: str = ""
    left_out: tuple[str, ...] = ()

    def is_known(self, said: str) -> bool:
        """Whether a file that says this has no edit in it."""
        return said != "" and said in (self.text, self.also)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a tool, as it is stored: who wrote a page is told by it."""

    uuid: str
    session_id: str
    at: str
    tool: str
    text: str
    cwd: str


def pages(rows: Rows) -> dict[str, PageRow]:
    """Every page by its path below the memory directory."""
    found = rows.read(PageRow, f"select {columns(PageRow, 'p')} from pages p order by p.path")  # noqa: S608
    return {page.path: page for page in found}


def put_page(rows: Rows, page: PageRow) -> None:
    """Notes how a page stands now."""
    rows.upsert("pages", "path", **written(page))


def remove_page(rows: Rows, path: str) -> None:
    """Forgets a page whose file is no longer csmd's."""
    rows.run("delete from pages where path = :path", path=path)


# --- what stands on pages


def page_places(rows: Rows) -> list[tuple[int, str, str, str, bool]]:
    """(row, key, name, root, whether it is behind a wall) of what may have a page: everywhere, projects, workspaces."""
    return [
        (int(a), str(b), str(c), str(d), bool(e) or f == "workspace")
        for a, b, c, d, e, f in rows.all(
            "select seq, key, name, root, workspace_seq, kind from projects where merged_into = 0 order by seq"
        )
    ]


def alive(rows: Rows) -> list[Memory]:
    """The memories that nothing has replaced or put aside, in the order of their rows."""
    return memories.where(rows, "m.superseded_by = '' and m.twin_of = 0 and m.tier <> 'archive' order by m.seq")


def projects_of(rows: Rows, idents: Iterable[str]) -> frozenset[int]:
    """The projects of some memories."""
    found = (rows.column("select project_seq from memories where id = :id", id=ident) for ident in idents)
    return frozenset(seq for of_one in found for seq in of_one)


def asked_about(rows: Rows, projects: Sequence[int] | None = None) -> list[tuple[str, str]]:
    """(memory, page) of the lines that were removed from pages and that a person is asked about, in order."""
    found = rows.column(
        "select t.fingerprint from candidates t where t.source = 'page' and t.kind = 'stale' "  # noqa: S608
        f"and t.status in ('open', 'needs_review') and {among('t.project_seq', projects)} order by t.seq"
    )
    return [(ident, path) for ident, _, path in (fingerprint.partition(" ") for fingerprint in found)]


def waiting_calls(rows: Rows) -> list[Candidate]:
    """The wordings from pages that a person has yet to answer for, in the order in which they came."""
    found = candidates.waiting(rows, projects=None)
    return sorted(
        (one for one in found if one.source == candidates.PAGE and one.kind == "belief"), key=lambda one: one.seq
    )


# --- who wrote a page


def calls_naming(rows: Rows, names: Iterable[str], *, inside: str, since: str) -> list[Call]:
    """The calls of tools since a time whose input has one of these words, or that were made `inside` a directory, the latest first."""
    found: dict[str, Call] = {}
    for name in names:
        for uuid, session, at, tool, said, cwd in rows.all(
            "select t.uuid, s.id, t.at, t.tool_name, t.text, coalesce(d.path, s.cwd) from turns t "
            "join sessions s on s.seq = t.session_seq left join directories d on d.seq = t.directory_seq "
            "where t.kind in ('tool_call', 'tool_result') and t.dropped is null and t.kind = 'tool_call' and t.at > :since "
            "and (t.text like '%' || cast(:name as text) || '%' or coalesce(d.path, s.cwd) like cast(:inside as text) || '%') "
            "order by t.at desc limit :most",
            since=since,
            name=name,
            inside=inside,
            most=MOST_CALLS,
        ):
            found[uuid] = Call(uuid=uuid, session_id=session, at=at, tool=tool, text=said, cwd=cwd)
    return sorted(found.values(), key=lambda call: call.at, reverse=True)


def stamp(rows: Rows) -> tuple[object, ...]:
    """What is other when anything changed that pages are made of: memories and what is beside them, walls, questions."""
    return (
        rows.one("select count(*), coalesce(max(seq), 0), coalesce(sum(version), 0) from memories"),
        rows.value("select count(*) from tombstones"),
        rows.all("select seq, name, root, workspace_seq, merged_into from projects order by seq"),
        rows.one(
            "select count(*), coalesce(sum(memory_seq * topic_seq), 0), coalesce(sum(memory_seq * weight), 0) "
            "from memory_topics"
        ),
        rows.one("select count(*), coalesce(max(seq), 0) from symptoms"),
        rows.all(
            "select status, count(*), max(seq), sum(version) from candidates where source = :page group by status "
            "order by status",
            page=candidates.PAGE,
        ),
    )


_ENDS = re.compile(ID.pattern + r"\s*$")
#: What ends the line of a list that is broken into several.
_OTHER = re.compile(r"\s*$|\s*#{1,6}\s|\s*(?:`{3}|~{3})|.*<!-- csmd -->\s*$")
#: Those of some memories' ids that no memory has any more.
Missing = Callable[[Sequence[str]], Collection[str]]
#: Whether words were forgotten, of a line that names no memory.
Unsaid = Callable[[str], bool]


def without_lines(page: str, missing: Missing, unsaid: Unsaid = frozenset().__contains__) -> tuple[str, int]:
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


def missing_lines(rows: Rows, ids: Sequence[str]) -> frozenset[str]:
    """Those of these ids that no memory has."""
    return frozenset(one for one in ids if rows.value("select 1 from memories where id = :id", id=one) is None)


def place_of(rows: Rows, path: str) -> int | None:
    """The row of the project or workspace that a page is of, or that what lies beside it is of, 0 for everywhere.

    None for a page of several, as a theme's is.
    """
    if page_lines.is_about_all(path):
        return 0
    known = page_lines.short_key(path)
    found = [seq for seq, key in rows.all("select seq, key from projects") if known and page_lines.short(key) == known]
    return found[0] if len(found) == 1 else None


def unsaid(rows: Rows, words: str, *, place: int | None, key: bytes) -> bool:
    """Whether words were forgotten, by whomever, where a page is of (None: anywhere), and no memory says them there."""
    if not words or not tombstones.is_out(rows, words, authority="assistant", project=place, key=key):
        return False
    scopes = None if place is None else tombstones.places_asked(rows, place)
    among = "" if scopes is None else f"and project_seq in ({', '.join(str(one) for one in sorted(scopes))})"
    said = f"select 1 from memories where text_hash = :hash {among}"  # noqa: S608
    return rows.value(said, hash=tokens.keyed_hash(words, key)) is None


def without_forgotten(rows: Rows, page: str, *, path: str, key: bytes) -> tuple[str, int]:
    """What stands in a page's file without what was forgotten, known by its ids or by its words, and how many lines that were."""
    place = place_of(rows, path)
    return without_lines(
        page, lambda ids: missing_lines(rows, ids), lambda words: unsaid(rows, words, place=place, key=key)
    )


def without_gone(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """A pass of a purge over what csmd wrote last of each page."""
    del key
    found = rows.all(
        "select seq, text, also from pages where seq > :after order by seq limit :limit", after=after, limit=LOOKED_AT
    )
    total = 0
    for seq, *said in found:
        (text, one), (also, other) = (without_lines(str(page), lambda ids: missing_lines(rows, ids)) for page in said)
        if one or other:
            rows.run("update pages set text = :text, also = :also where seq = :seq", text=text, also=also, seq=seq)
            total += one + other
    return (int(found[-1][0]) if found else None), total
