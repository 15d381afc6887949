"""What goes with a forgotten memory.

Where a dream changed it, the whole action leaves the journal: half an undo is none. Of pages only its line does. What may
tell it is looked for in all that was ever told, some rows at a time and on a reader (`find_places`): the write looks at what
came since, and hooks do not wait behind the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from functools import cache, partial
from typing import Literal, NamedTuple
from unicodedata import normalize as form

from csmd.store import curations, journal, markdown_pages, memories, tombstones
from csmd.store.sqlite import Rows
from csmd.text import similarity, tokens
from csmd.values import Memory

_CASES = (str.lower, str.capitalize, str.upper)
#: What says only a word or two is told by what says hardly more; of a longer one a heading may be the beginning of a text.
LEAST_BEGUN = 3


class Places(NamedTuple):
    """Where a memory may be told: rows of the journal's actions and files, and of sessions; up to which row of each table was looked."""

    changes: frozenset[int] = frozenset()
    files: frozenset[int] = frozenset()
    sessions: frozenset[int] = frozenset()
    upto: Mapping[str, int] = {}


#: A row of the scope itself, or of a project for which it is everywhere.
_BELOW = (
    "(project_seq = :scope or (select case p.kind when 'workspace' then -1 else p.workspace_seq end from projects p "
    "where p.seq = project_seq) = :scope)"
)


def memories_below_scope(rows: Rows, text_hash: str, *, scope: int) -> list[Memory]:
    """The memories with this text of the projects for which a scope is everywhere; none for a project's."""
    condition = f"m.text_hash = :hash and project_seq <> :scope and {_BELOW} order by m.seq"
    return memories.where(rows, condition, hash=text_hash, scope=scope)


def delete_sentences(
    rows: Rows, memory: Memory, *, text_hash: str, scope: int, is_same: Callable[[str], bool], by_assistants: bool
) -> None:
    """Removes the sentences that a memory came from, and those in its words that a scope sees; those that assistants
    said only, where `by_assistants`.
    """
    for source in memory.provenance:
        sql = (
            "select x.seq, x.text from statements x join turns t on t.seq = x.turn_seq "
            "where t.uuid = :uuid and (:assistants = 0 or x.authority <> 'user')"
        )
        for seq, text in rows.all(sql, uuid=source.uuid, assistants=int(by_assistants)):
            if is_same(str(text)):
                rows.delete("statements", seq=seq)
    sql = f"delete from statements where text_hash = :hash and (:assistants = 0 or authority <> 'user') and {_BELOW}"  # noqa: S608
    rows.run(sql, hash=text_hash, scope=scope, assistants=int(by_assistants))


NOWHERE = Places()


class _Source(NamedTuple):
    """Where a table may tell a memory: rows of it that are looked at in a step, and which Places it gives.

    The statement gives (place) or (session, text) of the rows between two keys that hold `:word`: the memory's id
    (`by_id`), or one of its words (`by_words`).
    """

    step: int
    gives: Literal["changes", "files", "sessions"]
    by_id: bool
    by_words: bool
    sql: str


_IN_ROWS = (
    "select set_seq from changed_rows where seq > :after and seq <= :upto and (item like :word or state like :word "
    "or more like :word or state_after like :word or more_after like :word)"
)
_IN_REASONS = (
    "select seq from change_sets where seq > :after and seq <= :upto and (evidence like :word or reason like :word)"
)
_IN_FILES = (
    "select seq from changed_files where seq > :after and seq <= :upto and (before like :word or after like :word)"
)
_IN_DIGESTS = (
    "select d.session_seq, i.text from digest_items i join digests d on d.seq = i.digest_seq where i.seq > :after "
    "and i.seq <= :upto and i.text like :word and i.kind in ('goal', 'decision', 'correction', 'open', 'commit')"
)
_IN_GOTCHAS = (
    "select st.session_seq, m.text from statements m join session_turn st on st.turn_seq = m.turn_seq "
    "where m.seq > :after and m.seq <= :upto and m.category = 'gotcha' and m.text like :word"
)
_SOURCES: Mapping[str, _Source] = {
    "changed_rows": _Source(500, "changes", True, False, _IN_ROWS),
    "change_sets": _Source(2000, "changes", True, False, _IN_REASONS),
    # An editor may have lost the comment that names the memory: then its line has one of its words.
    "changed_files": _Source(20, "files", True, True, _IN_FILES),
    "digest_items": _Source(1000, "sessions", False, True, _IN_DIGESTS),
    "statements": _Source(1000, "sessions", False, True, _IN_GOTCHAS),
}


def find_places(rows: Rows, memory: Memory) -> Generator[None, None, Places]:
    """Where a memory may be told, in steps of some milliseconds; nothing is changed."""
    places = NOWHERE
    for table, source in _SOURCES.items():
        last, at = _last(rows, table), 0
        while at < last:
            upto = min(at + source.step, last)
            places = _look(rows, memory, table, places, at, upto)
            at = upto
            yield
    return places


def _look(rows: Rows, memory: Memory, table: str, places: Places, after: int, upto: int) -> Places:
    """The known places with those between two rows of a table."""
    source = _SOURCES[table]
    words = [memory.id] * source.by_id + (_likely(memory.text) if source.by_words else [])
    hits = [row for word in words for row in rows.all(source.sql, after=after, upto=upto, word=f"%{word}%")]
    keys = _matching_sessions(memory, hits) if source.gives == "sessions" else {int(row[0]) for row in hits}
    more = {source.gives: getattr(places, source.gives) | keys, "upto": {**places.upto, table: upto}}
    return places._replace(**more)


def erase_traces(rows: Rows, memory: Memory, places: Places) -> Places:
    """Takes what dreams did to a memory out of their journal, and marks the days that may tell it; before its sentences go.

    Looked for is what came since it was looked for; where it may be told altogether.
    """
    everything = places
    curations.drop_answers(rows)
    for table in _SOURCES:
        after, last = places.upto.get(table, 0), _last(rows, table)
        if last > after:
            everything = _look(rows, memory, table, everything, after, last)
    for change in sorted(everything.changes):
        journal.erase(rows, change)
    markdown_pages.mark_days_due(rows, [source.uuid for source in memory.provenance], sorted(everything.sessions))
    return everything


def erase_from_files(rows: Rows, memory: Memory, places: Places, *, key: bytes) -> None:
    """Takes the lines of a memory out of the files that dreams keep; after it is forgotten."""
    place_of = cache(lambda path: markdown_pages.place_of(rows, path))
    is_unsaid = cache(lambda place, words: markdown_pages.is_forgotten(rows, words, place=place, key=key))
    for seq in sorted(places.files):
        row = rows.one("select path, before, after from changed_files where seq = :seq", seq=seq)
        if row is None:  # its action went with the memory
            continue
        path, *images = row
        (before, cut_before), (after, cut_after) = (
            markdown_pages.without_lines(
                str(image), lambda ids: [ident for ident in ids if ident == memory.id],
                partial(is_unsaid, place_of(str(path))),
            )
            for image in images
        )  # fmt: skip
        if cut_before or cut_after:
            rows.update("changed_files", seq, before=before, after=after)


def _last(rows: Rows, table: str) -> int:
    return rows.number(f"select coalesce(max(seq), 0) from {table}")  # noqa: S608


def _matching_sessions(memory: Memory, texts: Iterable[tuple[int, str]]) -> frozenset[int]:
    """Those of the sessions that say nearly what a memory says, or more: a day may tell the beginning of that."""
    stems = similarity.gist(memory.text).stems

    @cache
    def may_tell(text: str) -> bool:
        others = similarity.gist(text).stems
        every = stems if len(stems) >= LEAST_BEGUN else stems | others
        return not stems or similarity.share(every, stems & others) >= similarity.SAME_SHARE

    return frozenset(int(session) for session, text in texts if may_tell(str(text)))


def _likely(text: str) -> list[str]:
    """How the longest stems of a text begin words: whatever says the same has one of them; [""] for a text without any.

    Of letters beyond ASCII the store does not know the other case: of such stems there is each spelling.
    """
    stems, as_said = similarity.gist(text).stems, text.lower()
    left_out = sum(
        len(stems) - gone >= similarity.SAME_SHARE * len(stems) for gone in range(1, tombstones.MOST_LEFT_OUT + 1)
    )
    plain_first = sorted(stems, key=lambda stem: (not stem.isascii() or stem not in as_said, -len(stem), stem))
    chosen = [spelling for stem in plain_first[: left_out + 1] for spelling in tokens.spellings(stem)]
    spelt = (case(form(way, spelling)) for spelling in chosen for way in ("NFC", "NFD") for case in _CASES)
    return list({spelling.lower() if spelling.isascii() else spelling: None for spelling in spelt}) or [""]
