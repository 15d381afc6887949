"""What goes with a forgotten memory.

Where a dream changed it, the whole action leaves the journal: half an undo is none. Of pages only its line does. What may
tell it is looked for in all that was ever told, some rows at a time and on a reader (`find_places`): the write looks at what
came since, and hooks do not wait behind the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import NamedTuple
from unicodedata import normalize as form

from csmd.model import Memory
from csmd.store import dreams, markdown_pages, memories, tombstones
from csmd.store.sqlite import Rows
from csmd.text import similarity

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
    found = rows.all(
        f"select seq from memories where text_hash = :hash and project_seq <> :scope and {_BELOW} order by seq",  # noqa: S608
        hash=text_hash,
        scope=scope,
    )
    return list(memories.by_seqs(rows, [int(seq) for (seq,) in found]).values())


def delete_sentences(
    rows: Rows, memory: Memory, *, text_hash: str, scope: int, is_same: Callable[[str], bool], by_assistants: bool
) -> None:
    """Removes the sentences that a memory came from, and those in its words that a scope sees; those that assistants
    said only, where `by_assistants`.
    """
    for source in memory.provenance:
        for seq, said in rows.all(
            "select x.seq, x.text from statements x join turns t on t.seq = x.turn_seq "
            "where t.uuid = :uuid and (:assistants = 0 or x.authority <> 'user')",
            uuid=source.uuid,
            assistants=int(by_assistants),
        ):
            if is_same(str(said)):
                rows.delete("statements", seq=seq)
    rows.run(
        f"delete from statements where text_hash = :hash and (:assistants = 0 or authority <> 'user') and {_BELOW}",  # noqa: S608
        hash=text_hash,
        scope=scope,
        assistants=int(by_assistants),
    )


NOWHERE = Places()
#: Between two rows of a table: where a memory may be told there.
_Looking = Callable[[Rows, Memory, int, int], Places]


def find_places(rows: Rows, memory: Memory) -> Generator[None, None, Places]:
    """Where a memory may be told, in steps of some milliseconds; nothing is changed."""
    found = NOWHERE
    for table, (most, look) in _TABLES.items():
        last, at = _last(rows, table), 0
        while at < last:
            upto = min(at + most, last)
            found = _both(found, look(rows, memory, at, upto), {table: upto})
            at = upto
            yield
    return found


def erase_traces(rows: Rows, memory: Memory, known: Places) -> Places:
    """Takes what dreams did to a memory out of their journal, and marks the days that may tell it; before its sentences go.

    Looked for is what came since it was looked for; where it may be told altogether.
    """
    found = known
    for table, (_, look) in _TABLES.items():
        after, last = known.upto.get(table, 0), _last(rows, table)
        if last > after:
            found = _both(found, look(rows, memory, after, last), {table: last})
    for change in sorted(found.changes):
        dreams.erase_change(rows, change)
    markdown_pages.mark_days_due(rows, [one.uuid for one in memory.provenance], sorted(found.sessions))
    return found


def erase_from_files(rows: Rows, memory: Memory, found: Places, *, key: bytes) -> None:
    """Takes the lines of a memory out of the files that dreams keep; after it is forgotten."""
    place_of = cache(lambda path: markdown_pages.place_of(rows, path))
    is_unsaid = cache(lambda place, words: markdown_pages.is_forgotten(rows, words, place=place, key=key))
    for seq in sorted(found.files):
        row = rows.one("select path, before, after from dream_files where seq = :seq", seq=seq)
        if row is None:  # its action went with the memory
            continue
        path, *images = row
        (was, one), (then, other) = (
            markdown_pages.without_lines(
                str(image), lambda ids: [ident for ident in ids if ident == memory.id],
                partial(is_unsaid, place_of(str(path))),
            )
            for image in images
        )  # fmt: skip
        if one or other:
            rows.run("update dream_files set before = :was, after = :now where seq = :seq", seq=seq, was=was, now=then)


def _last(rows: Rows, table: str) -> int:
    return rows.number(f"select coalesce(max(seq), 0) from {table}")  # noqa: S608


def _both(found: Places, more: Places, upto: Mapping[str, int]) -> Places:
    return Places(
        changes=found.changes | more.changes, files=found.files | more.files, sessions=found.sessions | more.sessions,
        upto={**found.upto, **upto},
    )  # fmt: skip


def _in_rows(rows: Rows, memory: Memory, after: int, upto: int) -> Places:
    found = rows.all(
        "select change_seq from dream_rows where seq > :after and seq <= :upto and (item = :id or state like :named "
        "or more like :named or state_after like :named or more_after like :named)",
        id=memory.id, named=f"%{memory.id}%", after=after, upto=upto,
    )  # fmt: skip
    return Places(changes=frozenset(int(seq) for (seq,) in found))


def _in_reasons(rows: Rows, memory: Memory, after: int, upto: int) -> Places:
    found = rows.all(
        "select seq from dream_changes where seq > :after and seq <= :upto and (evidence like :named or reason like :named)",
        named=f"%{memory.id}%", after=after, upto=upto,
    )  # fmt: skip
    return Places(changes=frozenset(int(seq) for (seq,) in found))


def _in_files(rows: Rows, memory: Memory, after: int, upto: int) -> Places:
    # An editor may have lost the comment that names it: then the line has one of its words.
    found = (
        rows.all(
            "select seq from dream_files where seq > :after and seq <= :upto and (before like :word or after like :word)",
            word=f"%{word}%", after=after, upto=upto,
        )
        for word in (memory.id, *_likely(memory.text))
    )  # fmt: skip
    return Places(files=frozenset(int(seq) for some in found for (seq,) in some))


def _in_digests(rows: Rows, memory: Memory, after: int, upto: int) -> Places:
    found = (
        rows.all(
            "select d.session_seq, i.text from digest_items i join digests d on d.seq = i.digest_seq "
            "where i.seq > :after and i.seq <= :upto and i.text like :word "
            "and i.kind in ('goal', 'decision', 'correction', 'open', 'commit')",
            word=f"%{word}%", after=after, upto=upto,
        )
        for word in _likely(memory.text)
    )  # fmt: skip
    return Places(sessions=_telling(memory, found))


def _in_gotchas(rows: Rows, memory: Memory, after: int, upto: int) -> Places:
    found = (
        rows.all(
            "select st.session_seq, m.text from statements m join session_turn st on st.turn_seq = m.turn_seq "
            "where m.seq > :after and m.seq <= :upto and m.category = 'gotcha' and m.text like :word",
            word=f"%{word}%", after=after, upto=upto,
        )
        for word in _likely(memory.text)
    )  # fmt: skip
    return Places(sessions=_telling(memory, found))


#: Table -> rows of it that are looked at in a step, and how.
_TABLES: Mapping[str, tuple[int, _Looking]] = {
    "dream_rows": (500, _in_rows),
    "dream_changes": (2000, _in_reasons),
    "dream_files": (20, _in_files),
    "digest_items": (1000, _in_digests),
    "statements": (1000, _in_gotchas),
}


def _telling(memory: Memory, found: Iterable[Sequence[tuple[int, str]]]) -> frozenset[int]:
    """Those of the sessions that say nearly what a memory says, or more: a day may tell the beginning of that."""
    stems = similarity.gist(memory.text).stems

    @cache
    def may_tell(said: str) -> bool:
        others = similarity.gist(said).stems
        same = len(stems & others)
        nearly = same >= similarity.SAME_SHARE * len(stems | others)
        return nearly or (len(stems) >= LEAST_BEGUN and same >= similarity.SAME_SHARE * len(stems)) or not stems

    return frozenset(int(session) for some in found for session, said in some if may_tell(str(said)))


def _likely(said: str) -> list[str]:
    """How the longest stems of a text begin words: whatever says the same has one of them; [""] for a text without any.

    Of letters beyond ASCII the store does not know the other case: of such stems there is each spelling.
    """
    stems, as_said = similarity.gist(said).stems, said.lower()
    left_out = sum(
        len(stems) - gone >= similarity.SAME_SHARE * len(stems) for gone in range(1, tombstones.MOST_LEFT_OUT + 1)
    )
    plain_first = sorted(stems, key=lambda one: (not one.isascii() or one not in as_said, -len(one), one))
    spelt = (case(form(way, one)) for one in plain_first[: left_out + 1] for way in ("NFC", "NFD") for case in _CASES)
    return list({one.lower() if one.isascii() else one: None for one in spelt}) or [""]
