"""Checkpoints as rows: written whole, copies of what turns said, gone with the turn, the session or the purge.

A checkpoint is its session's, whose project it has, whatever was merged or split since. Of what it copies nothing is
stored whose turn no longer says it: a purge between reading and writing leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from csmd.store.purged import PURGED
from csmd.store.sqlite import Rows

#: What a checkpoint awaits whose pieces are to be made again: what a turn of its session said has changed.
AGAIN = "again"
#: In the order of Row's fields.
COLUMNS = (
    "k.seq, k.id, k.session_seq, s.id, s.project_seq, k.why, k.summary_uuid, k.asked_at, k.upto, k.at, k.awaits, k.note, "
    "k.restored_at, k.restored_for"
)


class Row(NamedTuple):
    """A stored checkpoint; `project_seq` is its session's."""

    seq: int
    id: str
    session_seq: int
    session_id: str
    project_seq: int
    why: str
    summary_uuid: str
    asked_at: str
    upto: int
    at: str
    awaits: str
    note: str
    restored_at: str
    restored_for: str


# --- written


def put(rows: Rows, row: Row, items: Sequence[Any], captures: Sequence[Any] | None) -> bool:
    """Stores a checkpoint, or what an earlier one of this id has become; False when nothing of it has changed.

    `items` are (kind, text, uuid, state, amount), `captures` (uuid, kind, tool, time, text); None leaves these as they are.
    """
    said = _said(rows, {str(one[2]) for one in items} | {str(one[0]) for one in captures or ()})
    fresh = [tuple(one) for one in items if one[2] in said]
    copied = None if captures is None else [tuple(one) for one in captures if said.get(one[0]) == one[4]]
    known = by_id(rows, row.id)
    if known is not None and _mutable(known) == _mutable(row):
        as_it_was = raw(rows, known.seq) if copied is not None else None
        if (pieces(rows, known.seq), as_it_was) == (fresh, copied):
            return False
    seq = rows.value(
        "insert into checkpoints (id, session_seq, why, summary_uuid, asked_at, upto, at, awaits, note) values "
        "(:id, :session, :why, :summary, :asked, :upto, :at, :awaits, :note) on conflict (id) do update set "
        "summary_uuid = excluded.summary_uuid, asked_at = excluded.asked_at, upto = excluded.upto, at = excluded.at, "
        "awaits = excluded.awaits returning seq",
        id=row.id,
        session=row.session_seq,
        why=row.why,
        summary=row.summary_uuid,
        asked=row.asked_at,
        upto=row.upto,
        at=row.at,
        awaits=row.awaits,
        note=row.note,
    )
    rows.run("delete from checkpoint_items where checkpoint_seq = :seq", seq=seq)
    for kind, text, uuid, state, amount in fresh:
        rows.run(
            "insert into checkpoint_items (checkpoint_seq, kind, text, uuid, state, amount) values "
            "(:seq, :kind, :text, :uuid, :state, :amount)",
            seq=seq, kind=kind, text=text, uuid=uuid, state=state, amount=amount,
        )  # fmt: skip
    if copied is not None:
        rows.run("delete from checkpoint_raw_captures where checkpoint_seq = :seq", seq=seq)
    for uuid, kind, tool, at, text in copied or ():
        rows.run(
            "insert into checkpoint_raw_captures (checkpoint_seq, uuid, kind, tool, at, text) values "
            "(:seq, :uuid, :kind, :tool, :at, :text)",
            seq=seq, uuid=uuid, kind=kind, tool=tool, at=at, text=text,
        )  # fmt: skip
    return True


def _mutable(row: Row) -> tuple[object, ...]:
    return row.summary_uuid, row.asked_at, row.upto, row.at, row.awaits


def _said(rows: Rows, uuids: Collection[str]) -> dict[str, str]:
    """What these turns say now; those that were purged or are gone are not among them."""
    found: dict[str, str] = {}
    for uuid in sorted(uuids):
        said = rows.value("select text from turns where uuid = :uuid", uuid=uuid)
        if said not in (None, PURGED):
            found[uuid] = str(said)
    return found


def whole(rows: Rows, seq: int) -> None:
    """Notes that nothing more is awaited for a checkpoint."""
    rows.run("update checkpoints set awaits = '' where seq = :seq", seq=seq)


def restore(rows: Rows, seq: int, *, at: str, session_id: str) -> None:
    """Has a session that starts next told a checkpoint: this one, or with "" the next of its project."""
    rows.run(
        "update checkpoints set restored_at = :at, restored_for = :whom where seq = :seq",
        at=at,
        seq=seq,
        whom=session_id,
    )


# --- read


def by_id(rows: Rows, ident: str) -> Row | None:
    """One checkpoint by its whole id."""
    return _first(rows, "k.id = :id", id=ident)


def of_summary(rows: Rows, session_seq: int, uuid: str) -> Row | None:
    """The checkpoint of one compaction, by the turn with its summary."""
    return _first(rows, "k.session_seq = :session and k.summary_uuid = :uuid", session=session_seq, uuid=uuid)


def pending(rows: Rows, session_seq: int) -> Row | None:
    """The checkpoint of a session whose compaction was announced and has no summary yet, or never had one."""
    return _first(
        rows, "k.session_seq = :session and k.why = 'compaction' and k.summary_uuid = ''", session=session_seq
    )


def latest(rows: Rows, session_id: str) -> Row | None:
    """The checkpoint of a session's latest compaction."""
    return _first(rows, "s.id = :session and k.why = 'compaction'", session=session_id)


def to_tell(rows: Rows, *, project: int, session_id: str) -> Row | None:
    """The checkpoint that a session which starts in a project is to be told, restored last and told to nobody since."""
    return _first(
        rows,
        "k.restored_at <> '' and k.restored_at > '' and (k.restored_for = :session or (k.restored_for = '' and s.project_seq = :project)) "
        "and not exists (select 1 from injection_items i join injections n on n.seq = i.injection_seq "
        "where i.memory_id = k.id and n.at >= k.restored_at)",
        by="k.restored_at",
        project=project,
        session=session_id,
    )


def _first(rows: Rows, where: str, *, by: str = "k.at", **values: Any) -> Row | None:
    found = rows.one(
        f"select {COLUMNS} from checkpoints k join sessions s on s.seq = k.session_seq where {where} "  # noqa: S608
        f"order by {by} desc, k.seq desc limit 1",
        **values,
    )
    return None if found is None else Row(*found)


def listing(rows: Rows, *, projects: Sequence[int] | None, session_id: str = "", limit: int) -> list[Row]:
    """The checkpoints of sessions in these projects (None: in all), or of one session, the latest first."""
    among = "" if projects is None else f"and s.project_seq in ({', '.join(str(int(p)) for p in projects)})"
    found = rows.all(
        f"select {COLUMNS} from checkpoints k join sessions s on s.seq = k.session_seq "  # noqa: S608
        f"where (cast(:session as text) = '' or s.id = :session) {among} order by k.at desc, k.seq desc limit :limit",
        session=session_id,
        limit=limit,
    )
    return [Row(*row) for row in found]


def ids_like(rows: Rows, prefix: str) -> list[str]:
    """Up to five ids that begin with `prefix`."""
    found = rows.all(
        "select id from checkpoints where id >= :prefix and id < :prefix || '~' order by id limit 5", prefix=prefix
    )
    return [str(ident) for (ident,) in found]


def pieces(rows: Rows, seq: int) -> list[tuple[Any, ...]]:
    """(kind, text, uuid, state, amount) of what a checkpoint was made of, in its order."""
    return [
        tuple(row)
        for row in rows.all(
            "select kind, text, uuid, state, amount from checkpoint_items where checkpoint_seq = :seq order by seq",
            seq=seq,
        )
    ]


def raw(rows: Rows, seq: int) -> list[tuple[Any, ...]]:
    """(uuid, kind, tool, time, text) of the turns that a checkpoint captured, in their order."""
    return [
        tuple(row)
        for row in rows.all(
            "select uuid, kind, tool, at, text from checkpoint_raw_captures where checkpoint_seq = :seq order by seq",
            seq=seq,
        )
    ]


def captures(rows: Rows, seq: int) -> int:
    """How many turns a checkpoint captured."""
    return int(rows.value("select count(*) from checkpoint_raw_captures where checkpoint_seq = :seq", seq=seq))


# --- taken back


def take_back(rows: Rows, turn_seq: int) -> None:
    """Removes what was made of a turn, which is to go or says something else now; the rest is made again without it."""
    sessions = rows.all("select session_seq from session_turn where turn_seq = :turn", turn=turn_seq)
    for (session,) in sessions:
        touched = rows.all(
            "update checkpoints set awaits = :again where session_seq = :session returning seq",
            again=AGAIN,
            session=session,
        )
        for (seq,) in touched:
            rows.run("delete from checkpoint_items where checkpoint_seq = :seq", seq=seq)
    rows.run(
        "delete from checkpoint_raw_captures where uuid = (select t.uuid from turns t where t.seq = :turn)",
        turn=turn_seq,
    )


def clear(rows: Rows, session_seq: int) -> int:
    """Removes a session's checkpoints; how many."""
    return rows.run("delete from checkpoints where session_seq = :session", session=session_seq)


def drop_old(rows: Rows, *, before: str, limit: int) -> int:
    """Removes at most `limit` checkpoints of what stood before a time; how many."""
    found = rows.all(
        "select seq from checkpoints where at < :before order by seq limit :limit", before=before, limit=limit
    )
    for (seq,) in found:
        rows.run("delete from checkpoints where seq = :seq", seq=seq)
    return len(found)
