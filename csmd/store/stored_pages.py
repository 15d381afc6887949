"""The pages as last written or read back, and what was forgotten of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from csmd.store import candidates, tombstones
from csmd.store.page_lines import remove_lines
from csmd.store.row_values import column_values, columns
from csmd.store.sqlite import Rows, in_keys
from csmd.store.tombstones import ROWS_PER_PASS
from csmd.text import markdown, tokens

#: How many of the latest tool calls are searched for who wrote a page.
MAX_CALLS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRow:
    """A page; `also` is content that is not an edit either, `held` a file with the whole page after a large loss."""

    path: str
    text: str
    at: str
    also: str = ""
    held: str = ""
    problem: str = ""
    left_out: tuple[str, ...] = ()

    def is_unedited(self, text: str) -> bool:
        """Whether a file with this content holds no edit."""
        return text != "" and text in (self.text, self.also)


class Call(NamedTuple):
    """A stored tool call, which may have written a page."""

    uuid: str
    session_id: str
    at: str
    tool: str
    text: str
    cwd: str


def read_pages(rows: Rows) -> dict[str, PageRow]:
    """Returns every page by its path below the memory directory."""
    page_rows = rows.read(PageRow, f"select {columns(PageRow, 'p')} from pages p order by p.path")  # noqa: S608
    return {page.path: page for page in page_rows}


def put_page(rows: Rows, page: PageRow) -> None:
    """Records the present state of a page."""
    rows.upsert("pages", "path", **column_values(page))


def remove_page(rows: Rows, path: str) -> None:
    """Forgets a page whose file no longer belongs to csmd."""
    rows.delete("pages", path=path)


def list_page_scopes(rows: Rows) -> list[tuple[int, str, str, str, bool]]:
    """Returns (row, key, name, root, whether in a workspace) of everywhere, the projects and the workspaces."""
    sql = """select seq, key, name, root, workspace_seq > 0 or kind = 'workspace'
        from projects where merged_into = 0 order by seq"""
    return rows.all(sql)


def questioned_lines(rows: Rows, projects: Sequence[int] | None = None) -> list[tuple[str, str]]:
    """Returns (memory, page) of the lines that were removed from pages and about which a person is asked, in order."""
    sql = f"""select t.fingerprint from candidates t where t.source = 'page' and t.kind = 'stale'
        and t.status in ('open', 'needs_review') and {in_keys("t.project_seq", projects)} order by t.seq"""  # noqa: S608
    fingerprints = rows.column(sql)
    return [(memory_id, path) for memory_id, _, path in (fingerprint.partition(" ") for fingerprint in fingerprints)]


def find_calls_naming(rows: Rows, names: Iterable[str], *, inside: str, since: str) -> list[Call]:
    """Returns tool calls since a time that name one of `names` or ran `inside` a directory, the latest first."""
    sql = """select t.uuid, s.id, t.at, t.tool_name, t.text, coalesce(d.path, s.cwd)
        from turns t join sessions s on s.seq = t.session_seq
        left join directories d on d.seq = t.directory_seq where t.kind in ('tool_call', 'tool_result')
        and t.gone = 0 and t.kind = 'tool_call' and t.at > :since and (t.text like '%' || cast(:name as text) || '%'
        or coalesce(d.path, s.cwd) like cast(:inside as text) || '%') order by t.at desc limit :most"""
    calls = [
        call for name in names for call in rows.read(Call, sql, since=since, name=name, inside=inside, most=MAX_CALLS)
    ]
    return sorted({call.uuid: call for call in calls}.values(), key=lambda call: call.at, reverse=True)


def read_content_stamp(rows: Rows) -> tuple[object, ...]:
    """Returns a value that changes whenever the memories, links, walls or questions behind the pages change."""
    return (
        rows.first("select count(*), coalesce(max(seq), 0), coalesce(sum(version), 0) from memories"),
        rows.value("select count(*) from tombstones"),
        rows.all("select seq, name, root, workspace_seq, merged_into from projects order by seq"),
        rows.first(
            """select count(*), coalesce(sum(memory_seq * topic_seq), 0), coalesce(sum(memory_seq * weight), 0)
                from memory_topics"""
        ),
        rows.first("select count(*), coalesce(max(seq), 0) from symptoms"),
        rows.all(
            """select status, count(*), max(seq), sum(version)
                from candidates where source = :page group by status order by status""",
            page=candidates.PAGE,
        ),
    )


# --- what was forgotten


def missing_memories(rows: Rows, ids: Sequence[str]) -> frozenset[str]:
    """Returns those of these ids that no memory has."""
    return frozenset(memory_id for memory_id in ids if not rows.has("memories", id=memory_id))


def find_page_project(rows: Rows, path: str) -> int | None:
    """Returns the row of the project or workspace of a page or of a file next to it, 0 for everywhere.

    None for a page of several projects, such as a theme's.
    """
    if markdown.is_user_page(path):
        return 0
    short = markdown.project_hash(path)
    seqs = [
        seq for seq, key in rows.all("select seq, key from projects") if short and markdown.short_hash(key) == short
    ]
    return seqs[0] if len(seqs) == 1 else None


def is_forgotten(rows: Rows, words: str, *, project: int | None, key: bytes) -> bool:
    """Whether anybody had words forgotten in a page's project (None: anywhere) and no memory states them there."""
    if not words or not tombstones.is_forgotten(rows, words, authority="assistant", project=project, key=key):
        return False
    scopes = None if project is None else tombstones.find_applicable_scopes(rows, project)
    among = "" if scopes is None else f"and project_seq in ({', '.join(str(item) for item in sorted(scopes))})"
    text = f"select 1 from memories where text_hash = :hash {among}"  # noqa: S608
    return not rows.exists(text, hash=tokens.keyed_hash(words, key))


def remove_forgotten(rows: Rows, page: str, *, path: str, key: bytes) -> tuple[str, int]:
    """Returns (the text of a page's file without what was forgotten, by id or words, how many lines were removed)."""
    project = find_page_project(rows, path)
    return remove_lines(
        page, lambda ids: missing_memories(rows, ids), lambda words: is_forgotten(rows, words, project=project, key=key)
    )


def purge_pages(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """Returns a pass of a purge over the recorded text of the pages."""
    del key
    sql = "select seq, text, also from pages where seq > :after order by seq limit :limit"
    stored = rows.all(sql, after=after, limit=ROWS_PER_PASS)
    total = 0
    for seq, *texts in stored:
        (text, count), (also, also_count) = (
            remove_lines(str(page), lambda ids: missing_memories(rows, ids)) for page in texts
        )
        if count or also_count:
            rows.update("pages", seq, text=text, also=also)
            total += count + also_count
    return (int(stored[-1][0]) if stored else None), total


def list_projects_of_memories(rows: Rows, memory_ids: Iterable[str]) -> frozenset[int]:
    """Returns the projects of some memories, by id."""
    seqs = (rows.column("select project_seq from memories where id = :id", id=memory_id) for memory_id in memory_ids)
    return frozenset(seq for of_memory in seqs for seq in of_memory)
