"""Deletes what belongs to a forgotten memory.

An action of a dream that changed it leaves the journal whole, since half an undo is useless; pages lose only its line.
`find_traces` searches everything written on a reader, a few rows at a time, so that the write searches only what was
added since and hooks do not wait.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from functools import cache, partial
from typing import Literal, NamedTuple
from unicodedata import normalize as form

from csmd.knowledge import Memory
from csmd.store import curations, journal, memories, page_lines, stored_days, stored_pages, tombstones
from csmd.store.sqlite import Rows
from csmd.text import similarity, tokens

_CASES = (str.lower, str.capitalize, str.upper)
#: The fewest words by which a heading may be the beginning of a longer text; shorter ones must match almost whole.
MIN_HEADING_WORDS = 3
#: A row of the scope itself, or of a project for which the scope is everywhere.
_BELOW = (
    "(project_seq = :scope or (select case p.kind when 'workspace' then -1 else p.workspace_seq end from projects p "
    "where p.seq = project_seq) = :scope)"
)
_IN_ROWS = """select set_seq from changed_rows where seq > :after and seq <= :upto
    and (item like :word or state like :word or more like :word or state_after like :word or more_after like :word)"""
_IN_REASONS = (
    "select seq from change_sets where seq > :after and seq <= :upto and (evidence like :word or reason like :word)"
)
_IN_FILES = (
    "select seq from changed_files where seq > :after and seq <= :upto and (before like :word or after like :word)"
)
_IN_DIGESTS = """select d.session_seq, i.text
    from digest_items i join digests d on d.seq = i.digest_seq where i.seq > :after
    and i.seq <= :upto and i.text like :word and i.kind in ('goal', 'decision', 'correction', 'open', 'commit')"""
_IN_GOTCHAS = """select st.session_seq, m.text from statements m join session_turn st on st.turn_seq = m.turn_seq
    where m.seq > :after and m.seq <= :upto and m.category = 'gotcha' and m.text like :word"""


class Traces(NamedTuple):
    """Rows of the journal's actions and files and of sessions that may contain a memory, and how far was searched."""

    changes: frozenset[int] = frozenset()
    files: frozenset[int] = frozenset()
    sessions: frozenset[int] = frozenset()
    upto: Mapping[str, int] = {}


def list_memories_below_scope(rows: Rows, text_hash: str, *, scope: int) -> list[Memory]:
    """Returns the memories with this text in the projects of a general scope; none for a project's scope."""
    condition = f"m.text_hash = :hash and project_seq <> :scope and {_BELOW} order by m.seq"
    return memories.where(rows, condition, hash=text_hash, scope=scope)


def delete_sentences(
    rows: Rows, memory: Memory, *, text_hash: str, scope: int, is_same: Callable[[str], bool], by_assistants: bool
) -> None:
    """Deletes the statements that a memory came from, and equal ones that a scope sees.

    With `by_assistants` only those that assistants said.
    """
    for source in memory.provenance:
        sql = """select x.seq, x.text from statements x
            join turns t on t.seq = x.turn_seq where t.uuid = :uuid and (:assistants = 0 or x.authority <> 'user')"""
        for seq, text in rows.all(sql, uuid=source.uuid, assistants=int(by_assistants)):
            if is_same(str(text)):
                rows.delete("statements", seq=seq)
    sql = f"delete from statements where text_hash = :hash and (:assistants = 0 or authority <> 'user') and {_BELOW}"  # noqa: S608
    rows.run(sql, hash=text_hash, scope=scope, assistants=int(by_assistants))


NO_TRACES = Traces()


class _Source(NamedTuple):
    """A table in which a memory may appear: how many of its rows a step reads, and the field of Traces it fills.

    The statement returns (row key) or (session, text) of the rows between two keys that contain `:word`: the memory's id
    (`by_id`), or one of its words (`by_words`).
    """

    step: int
    gives: Literal["changes", "files", "sessions"]
    by_id: bool
    by_words: bool
    sql: str


_SOURCES: Mapping[str, _Source] = {
    "changed_rows": _Source(500, "changes", True, False, _IN_ROWS),
    "change_sets": _Source(2000, "changes", True, False, _IN_REASONS),
    # An editor may have lost the comment with the memory's id; the line still has one of its words.
    "changed_files": _Source(20, "files", True, True, _IN_FILES),
    "digest_items": _Source(1000, "sessions", False, True, _IN_DIGESTS),
    "statements": _Source(1000, "sessions", False, True, _IN_GOTCHAS),
}


def find_traces(rows: Rows, memory: Memory) -> Generator[None, None, Traces]:
    """Searches where a memory may appear, in steps of some milliseconds; changes nothing."""
    traces = NO_TRACES
    for table, source in _SOURCES.items():
        last_seq = _find_last_seq(rows, table)
        position = 0
        while position < last_seq:
            until = min(position + source.step, last_seq)
            traces = _extend_traces(rows, memory, table, traces, position, until)
            position = until
            yield
    return traces


def _extend_traces(rows: Rows, memory: Memory, table: str, traces: Traces, after: int, until: int) -> Traces:
    """Returns the known places with those between two rows of a table."""
    source = _SOURCES[table]
    words = [memory.id] * source.by_id + (_search_words(memory.text) if source.by_words else [])
    hits = [row for word in words for row in rows.all(source.sql, after=after, upto=until, word=f"%{word}%")]
    keys = _match_sessions(memory, hits) if source.gives == "sessions" else {int(row[0]) for row in hits}
    extended = {source.gives: getattr(traces, source.gives) | keys, "upto": {**traces.upto, table: until}}
    return traces._replace(**extended)


def erase_traces(rows: Rows, memory: Memory, traces: Traces) -> Traces:
    """Deletes a memory from the journal of dreams and marks the days that may contain it.

    Runs before its statements are deleted. Searches only what was added since `find_traces`, or everything without it.
    """
    all_traces = traces
    curations.drop_answers(rows)
    for table in _SOURCES:
        after = traces.upto.get(table, 0)
        last = _find_last_seq(rows, table)
        if last > after:
            all_traces = _extend_traces(rows, memory, table, all_traces, after, last)
    for change in sorted(all_traces.changes):
        journal.erase_images(rows, change)
    stored_days.mark_days_due(rows, [source.uuid for source in memory.provenance], sorted(all_traces.sessions))
    return all_traces


def erase_from_files(rows: Rows, memory: Memory, traces: Traces, *, key: bytes) -> None:
    """Removes the lines of a memory from the files that dreams keep, after it is forgotten."""
    place_of = cache(lambda path: stored_pages.find_page_project(rows, path))
    is_unsaid = cache(lambda place, words: stored_pages.is_forgotten(rows, words, project=place, key=key))
    for seq in sorted(traces.files):
        row = rows.first("select path, before, after from changed_files where seq = :seq", seq=seq)
        if row is None:  # its action was deleted with the memory
            continue
        path, *images = row
        (before, cut_before), (after, cut_after) = (
            page_lines.remove_lines(
                str(image), lambda ids: [memory_id for memory_id in ids if memory_id == memory.id],
                partial(is_unsaid, place_of(str(path))),
            )
            for image in images
        )  # fmt: skip
        if cut_before or cut_after:
            rows.update("changed_files", seq, before=before, after=after)


def _find_last_seq(rows: Rows, table: str) -> int:
    return rows.number(f"select coalesce(max(seq), 0) from {table}")  # noqa: S608


def _match_sessions(memory: Memory, texts: Iterable[tuple[int, str]]) -> frozenset[int]:
    """Returns the sessions whose text says nearly what a memory says, or more: a day may quote only its beginning."""
    stems = similarity.gist(memory.text).stems

    @cache
    def may_tell(text: str) -> bool:
        others = similarity.gist(text).stems
        every = stems if len(stems) >= MIN_HEADING_WORDS else stems | others
        return not stems or similarity.share(every, stems & others) >= similarity.MIN_SAME_SHARE

    return frozenset(int(session) for session, text in texts if may_tell(str(text)))


def _search_words(text: str) -> list[str]:
    """Returns the longest stems of a text as word prefixes, one of which every equal text has; [""] without words.

    The store ignores case only in ASCII, so other stems are given in each spelling.
    """
    stems = similarity.gist(text).stems
    as_said = text.lower()
    left_out = sum(
        len(stems) - missing >= similarity.MIN_SAME_SHARE * len(stems)
        for missing in range(1, tombstones.MAX_LEFT_OUT + 1)
    )
    plain_first = sorted(stems, key=lambda stem: (not stem.isascii() or stem not in as_said, -len(stem), stem))
    chosen = [spelling for stem in plain_first[: left_out + 1] for spelling in tokens.spellings(stem)]
    spelt = (case(form(way, spelling)) for spelling in chosen for way in ("NFC", "NFD") for case in _CASES)
    return list({spelling.lower() if spelling.isascii() else spelling: None for spelling in spelt}) or [""]
