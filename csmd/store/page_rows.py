"""The pages that people read and edit, as csmd wrote them last or read them back; and what is asked about them.

A page that is about to be written is noted first, so that one whose file was written when the daemon was killed is
no edit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from csmd.model import Candidate, Memory
from csmd.store import candidates, memories
from csmd.store.sqlite import Rows

#: How many calls of tools are looked at for who wrote a page, the latest.
MOST_CALLS = 500
PART = 500


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
    return {
        str(a): PageRow(path=a, text=b, at=c, also=d, held=e, problem=f, left_out=tuple(str(g).split()))
        for a, b, c, d, e, f, g in rows.all(
            "select path, text, at, also, held, problem, left_out from pages order by path"
        )
    }


def put(rows: Rows, page: PageRow) -> None:
    """Notes how a page stands now."""
    rows.run(
        "insert into pages (path, text, at, also, held, problem, left_out) values (:path, :text, :at, :also, :held, "
        ":problem, :left_out) on conflict (path) do update set text = excluded.text, at = excluded.at, "
        "also = excluded.also, held = excluded.held, problem = excluded.problem, left_out = excluded.left_out",
        path=page.path,
        text=page.text,
        at=page.at,
        also=page.also,
        held=page.held,
        problem=page.problem,
        left_out=" ".join(page.left_out),
    )


def remove(rows: Rows, path: str) -> None:
    """Forgets a page whose file is no longer csmd's."""
    rows.run("delete from pages where path = :path", path=path)


# --- what stands on pages


def places(rows: Rows) -> list[tuple[int, str, str, str, bool]]:
    """(row, key, name, root, whether it is behind a wall) of what may have a page: everywhere, projects, workspaces."""
    return [
        (int(a), str(b), str(c), str(d), bool(e) or f == "workspace")
        for a, b, c, d, e, f in rows.all(
            "select seq, key, name, root, workspace_seq, kind from projects where merged_into = 0 order by seq"
        )
    ]


def alive(rows: Rows) -> list[Memory]:
    """The memories that nothing has replaced or put aside, in the order of their rows."""
    found = [
        int(seq)
        for (seq,) in rows.all(
            "select seq from memories where superseded_by = '' and twin_of = 0 and tier <> 'archive' order by seq"
        )
    ]
    known: dict[int, Memory] = {}
    for start in range(0, len(found), PART):
        known |= memories.by_seqs(rows, found[start : start + PART])
    return [known[seq] for seq in found]


def projects_of(rows: Rows, idents: Iterable[str]) -> frozenset[int]:
    """The projects of some memories."""
    found = (rows.value("select project_seq from memories where id = :id", id=ident) for ident in idents)
    return frozenset(int(seq) for seq in found if seq is not None)


def asked_about(rows: Rows, projects: Sequence[int] | None = None) -> list[tuple[str, str]]:
    """(memory, page) of the lines that were removed from pages and that a person is asked about, in order."""
    among = "" if projects is None else f"and t.project_seq in ({', '.join(str(int(one)) for one in projects)})"
    found = rows.all(
        "select t.fingerprint from candidates t where t.source = :source and t.kind = 'stale' "  # noqa: S608
        f"and t.status in ('open', 'needs_review') {among} order by t.seq",
        source=candidates.PAGE,
    )
    pairs = [str(fingerprint).partition(" ") for (fingerprint,) in found]
    return [(ident, path) for ident, _, path in pairs]


def waiting(rows: Rows) -> list[Candidate]:
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
