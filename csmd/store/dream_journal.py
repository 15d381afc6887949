"""The journal of dreams as it is read, for showing and for undoing; what is marked in it when one is undone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from csmd import wire
from csmd.store import purge_whole, tombstones
from csmd.store.before import Before
from csmd.store.purge_whole import LOOKED_AT
from csmd.store.purged import PURGED
from csmd.store.sqlite import Rows

#: Folders of files that nobody's edits are read back from.
NO_PAGES = frozenset({"daily", "sessions"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A memory or candidate before and after an action; `kept`: why it is not what it was, though that was undone."""

    seq: int
    was: Before
    then: Before
    kept: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file before and after it was written, None where there was none; `path` is below the home."""

    seq: int
    path: str
    before: str | None
    after: str | None
    kept: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An action that was carried out; of one that a purge took away nothing is left but its reason."""

    seq: int
    dream_seq: int
    kind: str
    project_seq: int
    reason: str
    evidence: tuple[str, ...]
    at: str
    undone_at: str
    rows: tuple[Row, ...] = ()
    files: tuple[File, ...] = ()


def changes(rows: Rows, dream: int, *, newest_first: bool = False) -> Iterator[Change]:
    """What a dream did, one action at a time: a long journal is never in memory as a whole."""
    found = keys(rows, dream)
    for seq in reversed(found) if newest_first else found:
        yield change(rows, seq)


def keys(rows: Rows, dream: int) -> list[int]:
    """The row keys of what a dream did, in order."""
    return [
        int(seq)
        for (seq,) in rows.all("select seq from dream_changes where dream_seq = :dream order by seq", dream=dream)
    ]


def change(rows: Rows, seq: int) -> Change:
    """One action of a dream."""
    dream, kind, project, reason, evidence, at, undone = rows.all(
        "select dream_seq, kind, project_seq, reason, evidence, at, undone_at from dream_changes where seq = :seq",
        seq=seq,
    )[0]
    touched = rows.all(
        "select seq, item, text, state, more, text_after, state_after, more_after, kept from dream_rows "
        "where change_seq = :seq order by seq",
        seq=seq,
    )
    return Change(
        seq=seq, dream_seq=dream, kind=kind, project_seq=project, reason=reason, evidence=tuple(evidence.split()), at=at,
        undone_at=undone, files=tuple(_files(rows, "change_seq", [seq])),
        rows=tuple(
            Row(
                seq=row[0], was=Before(memory_id=row[1], text=row[2], state=row[3], more=row[4]),
                then=Before(memory_id=row[1], text=row[5], state=row[6], more=row[7]), kept=row[8],
            )
            for row in touched
        ),
    )  # fmt: skip


def _keys(seqs: Sequence[int]) -> str:
    return ", ".join(str(int(one)) for one in seqs) or "0"


def _files(rows: Rows, column: str, keys_of: Sequence[int]) -> list[File]:
    return [
        File(seq=a, path=b, before=c if d else None, after=e if f else None, kept=g)
        for a, b, c, d, e, f, g in rows.all(
            f"select seq, path, before, was_there, after, is_there, kept from dream_files where {column} in ({_keys(keys_of)}) "  # noqa: S608
            "order by seq"
        )
    ]


def paths_of(rows: Rows, dreams: Sequence[int], *, undone_only: bool = False) -> list[str]:
    """The files that some dreams wrote; `undone_only`: those that are to go back."""
    found = rows.all(
        "select distinct f.path from dream_changes c join dream_files f on f.change_seq = c.seq "  # noqa: S608
        f"where c.dream_seq in ({_keys(dreams)}) {_UNDONE if undone_only else ''} order by f.path"
    )
    return [str(path) for (path,) in found]


def chain_of(rows: Rows, dreams: Sequence[int], path: str, *, undone_only: bool = False) -> list[File]:
    """How some dreams wrote a file, in the order of writing; `undone_only`: as far as that is to go back."""
    found = rows.all(
        "select f.seq from dream_files f join dream_changes c on c.seq = f.change_seq "  # noqa: S608
        f"where f.path = :path and c.dream_seq in ({_keys(dreams)}) {_UNDONE if undone_only else ''}",
        path=path,
    )
    return _files(rows, "seq", [int(seq) for (seq,) in found])


_UNDONE = "and c.undone_at <> '' and f.kept = ''"


def counts(rows: Rows, dream: int) -> dict[str, int]:
    """How many actions of each kind a dream carried out."""
    found = rows.all(
        "select kind, count(*) from dream_changes where dream_seq = :dream group by kind order by kind", dream=dream
    )
    return {str(kind): int(count) for kind, count in found}


# --- undoing


def mark_rows(rows: Rows, change: Change, kept: Mapping[int, str], *, now: str) -> None:
    """Notes which rows of an action are not what they were and why, and that it is undone if any other one is."""
    for one in change.rows:
        if kept.get(one.seq):
            rows.run("update dream_rows set kept = :why where seq = :seq", why=kept[one.seq], seq=one.seq)
    if any(not kept.get(one.seq) for one in change.rows):
        rows.run("update dream_changes set undone_at = :now where seq = :seq", now=now, seq=change.seq)


def mark_file(rows: Rows, file: File, *, kept: str, now: str) -> None:
    """Notes that the writing of a file is to be undone, or why it stays as it is."""
    rows.run("update dream_files set kept = :kept where seq = :seq", kept=kept, seq=file.seq)
    rows.run(
        "update dream_changes set undone_at = case when cast(:kept as text) = '' then :now else '' end "
        "where seq = (select change_seq from dream_files where seq = :seq)",
        kept=kept,
        now=now,
        seq=file.seq,
    )


def set_state(rows: Rows, dream: int, state: str, *, now: str) -> None:
    """Notes that a dream is being undone, or is."""
    rows.run(
        "update dreams set state = :state, undone_at = case when undone_at = '' then :now else undone_at end "
        "where seq = :seq",
        state=state,
        now=now,
        seq=dream,
    )


def leaning(rows: Rows, memory_id: str) -> list[str]:
    """The memories for which one stands: what it superseded, or took in, or is the twin of."""
    found = rows.all(
        "select m.id from memories m where m.superseded_by = :id and m.superseded_by <> '' union "
        "select t.id from memories n join memories t on t.twin_of = n.seq and t.twin_of > 0 where n.id = :id order by 1",
        id=memory_id,
    )
    return [str(ident) for (ident,) in found]


def page_is(rows: Rows, path: str, text: str | None, *, now: str) -> None:
    """Notes what a page that people edit reads again, None for one that is no more; other files have no such row."""
    folder, _, page = path.partition("/")
    if NO_PAGES & set(page.split("/")[:-1]) or not folder:
        return
    if text is None:
        rows.run("delete from pages where path = :path", path=page)
    else:
        rows.run(
            "insert into pages (path, text, at) values (:path, :text, :now) on conflict (path) do update "
            "set text = excluded.text, at = excluded.at, also = '', held = '', problem = ''",
            path=page,
            text=text,
            now=now,
        )


# --- purging


def without_purged(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """A pass of a purge: the actions that touched what a purged turn, session or project had said, whole; files, too.

    Which files told of them nobody can say: none of before the purge can be written back.
    """
    since = rows.value("select max(created_at) from tombstones where kind in ('turn', 'session', 'project', 'file')")
    if since is None:
        return None, 0
    gone = 0
    if after == 0:
        gone = rows.run(
            "delete from dream_files where change_seq in (select seq from dream_changes where at <= :since)",
            since=since,
        )
    found = rows.all(
        "select r.seq, r.change_seq, k.project_seq, k.at, k.evidence, r.state, r.more, r.state_after, r.more_after "
        "from dream_rows r join dream_changes k on k.seq = r.change_seq where r.seq > :after order by r.seq limit :limit",
        after=after,
        limit=LOOKED_AT,
    )
    projects = purge_whole.purged_projects(rows, key)
    told = [(int(row[1]), row[3] <= projects.get(int(row[2]), ""), _names(str(row[4]), row[5:])) for row in found]
    names = [*{name for *_, some in told for name in some}]
    purged = {
        *tombstones.purged_names(rows, "turn", names, key=key), *tombstones.purged_names(rows, "session", names, key=key),
    }  # fmt: skip
    for seq in {change for change, as_whole, some in told if as_whole or some & purged}:
        gone += take_away(rows, seq)
    return (int(found[-1][0]) if found else None), gone


def take_away(rows: Rows, change: int) -> int:
    """Takes an action's images and its words away: half an undo is none."""
    rows.run("update dream_changes set reason = :purged, evidence = '' where seq = :seq", purged=PURGED, seq=change)
    return rows.run("delete from dream_rows where change_seq = :seq", seq=change)


def _names(evidence: str, images: Iterable[str]) -> set[str]:
    """Every string in an action's evidence and images that may name a turn or a session."""
    found: set[str] = set()

    def walk(value: Any) -> None:
        if isinstance(value, str):
            found.update((value, value.partition("/")[0]))
        elif isinstance(value, list | dict):
            for one in value.values() if isinstance(value, dict) else value:
                walk(one)

    walk(evidence.split())
    for image in images:
        walk(wire.loads(image) if image else None)
    return found
