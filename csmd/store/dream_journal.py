"""The journal of dreams as it is read, for showing and for undoing; what is marked in it when one is undone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from csmd.store.before import Before
from csmd.store.sqlite import Rows


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
    order = "desc" if newest_first else "asc"
    for (seq,) in rows.all(
        f"select seq from dream_changes where dream_seq = :dream order by seq {order}",  # noqa: S608
        dream=dream,
    ):
        yield _change(rows, int(seq))


def _change(rows: Rows, seq: int) -> Change:
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


def _files(rows: Rows, column: str, keys_of: Sequence[int]) -> list[File]:
    keys = ", ".join(str(int(one)) for one in keys_of) or "0"
    return [
        File(seq=a, path=b, before=c if d else None, after=e if f else None, kept=g)
        for a, b, c, d, e, f, g in rows.all(
            f"select seq, path, before, was_there, after, is_there, kept from dream_files where {column} in ({keys}) "  # noqa: S608
            "order by seq"
        )
    ]


def files_of(rows: Rows, dreams: Sequence[int], *, undone_only: bool = False) -> dict[str, list[File]]:
    """The files that some dreams wrote, by path, each in the order of writing; `undone_only`: of those that are to go back."""
    keys = ", ".join(str(int(one)) for one in dreams) or "0"
    among = "and undone_at <> ''" if undone_only else ""
    found = rows.all(f"select seq from dream_changes where dream_seq in ({keys}) {among}")  # noqa: S608
    written: dict[str, list[File]] = {}
    for file in _files(rows, "change_seq", [int(seq) for (seq,) in found]):
        if not (undone_only and file.kept):
            written.setdefault(file.path, []).append(file)
    return written


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
        "select m.id from memories m where m.superseded_by = :id or m.twin_of in "
        "(select n.seq from memories n where n.id = :id and n.seq > 0) order by m.id",
        id=memory_id,
    )
    return [str(ident) for (ident,) in found]


def taken_back(rows: Rows) -> frozenset[tuple[str, str]]:
    """(kind of action, memory or candidate) of what was undone and is remembered yet: it is not to be done again unasked."""
    return frozenset(
        (str(kind), str(item))
        for kind, item in rows.all(
            "select distinct k.kind, r.item from dream_changes k join dream_rows r on r.change_seq = k.seq "
            "where k.undone_at <> '' and r.kept = ''"
        )
    )


def page_is(rows: Rows, path: str, text: str | None, *, now: str) -> None:
    """Notes what a page reads again, None for one that is no more, where it is one that people edit."""
    if text is None:
        rows.run("delete from pages where path = :path", path=path)
    else:
        rows.run(
            "insert into pages (path, text, at) values (:path, :text, :now) "
            "on conflict (path) do update set text = excluded.text, at = excluded.at",
            path=path,
            text=text,
            now=now,
        )
