"""Checkpoints of sessions, with their items and captured turns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from csmd.privacy.fingerprints import PURGED
from csmd.store.row_values import column_values, columns
from csmd.store.sqlite import Rows, in_keys

#: Value of `awaits`: a turn of the session changed, so the items must be rebuilt.
AWAITS_REBUILD = "again"
#: The stage whose cursors record how far events and summaries were read.
CHECKPOINT_STAGE = "checkpoint"
#: The number of last turns that a checkpoint copies.
MAX_TURNS = 60
#: A longer turn is not copied.
MAX_TURN_CHARACTERS = 16_384
#: Turns after a checkpoint that make it out of date.
STALE_AFTER_TURNS = 200
#: Kinds of turns in which somebody speaks or a tool works; the others come from the host.
_CONVERSATION_KINDS = "('user', 'relayed', 'assistant', 'tool_call', 'tool_result')"
#: What a repeated save updates; a checkpoint that differs in nothing else is unchanged.
MUTABLE_COLUMNS = ("summary_uuid", "asked_at", "upto", "at", "awaits")
_ITEM_COLUMNS = ("kind", "text", "uuid", "state", "amount")
_CAPTURE_COLUMNS = ("uuid", "kind", "tool", "at", "text")
#: The cursor `c` up to which a session `s` is distilled.
_JOIN_DISTILLED = "left join cursors c on c.stage = 'distill' and c.subject = cast(s.seq as text)"
_SESSION_STATE_SQL = (
    f"select s.seq, s.id, s.cwd, s.path, s.turns, coalesce(c.position, 0) from sessions s {_JOIN_DISTILLED}"  # noqa: S608
)


class CheckpointRow(NamedTuple):
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


COLUMNS = columns(CheckpointRow, "k", session_id="s.id", project_seq="s.project_seq")


def save_checkpoint(rows: Rows, row: CheckpointRow, items: Sequence[Any], captures: Sequence[Any] | None) -> bool:
    """Stores a new or changed checkpoint; False if nothing changed.

    `items` are (kind, text, uuid, state, amount), `captures` (uuid, kind, tool, time, text); None keeps the stored
    ones. Those of purged or changed turns are left out.
    """
    texts = _find_texts(rows, {uuid for _, _, uuid, *_ in items} | {uuid for uuid, *_ in captures or ()})
    new_items = [tuple(item) for item in items if item[2] in texts]
    new_captures = None if captures is None else [tuple(turn) for turn in captures if texts.get(turn[0]) == turn[-1]]
    stored = by_id(rows, row.id)
    if (
        stored is not None
        and all(getattr(stored, name) == getattr(row, name) for name in MUTABLE_COLUMNS)
        and list_items(rows, stored.seq) == new_items
        and (new_captures is None or list_captures(rows, stored.seq) == new_captures)
    ):
        return False
    changes = ", ".join(f"{name} = excluded.{name}" for name in MUTABLE_COLUMNS)
    values = column_values(row, "seq", "session_id", "project_seq", "restored_at", "restored_for")
    seq = rows.insert_keyed("checkpoints", f"on conflict (id) do update set {changes}", **values)
    _replace_rows(rows, "checkpoint_items", _ITEM_COLUMNS, seq, new_items)
    if new_captures is not None:
        _replace_rows(rows, "checkpoint_raw_captures", _CAPTURE_COLUMNS, seq, new_captures)
    return True


def _replace_rows(rows: Rows, table: str, names: Sequence[str], seq: int, values: Sequence[tuple[Any, ...]]) -> None:
    rows.run(f"delete from {table} where checkpoint_seq = :seq", seq=seq)  # noqa: S608
    for row in values:
        rows.insert(table, checkpoint_seq=seq, **dict(zip(names, row, strict=True)))


def _find_texts(rows: Rows, uuids: Collection[str]) -> dict[str, str]:
    """Maps turns to their present texts, without purged and missing ones."""
    texts = {uuid: rows.find("turns", "text", uuid=uuid) for uuid in sorted(uuids)}
    return {uuid: str(text) for uuid, text in texts.items() if text not in (None, PURGED)}


def mark_restored(rows: Rows, seq: int, *, at: str, session_id: str) -> None:
    """Marks a checkpoint for the next session that starts: `session`, or with "" the next of its project."""
    rows.update("checkpoints", seq, restored_at=at, restored_for=session_id)


def by_id(rows: Rows, checkpoint_id: str) -> CheckpointRow | None:
    """Returns one checkpoint by its whole id."""
    return _find_first(rows, "k.id = :id", id=checkpoint_id)


def find_by_summary(rows: Rows, session_seq: int, uuid: str) -> CheckpointRow | None:
    """Returns the checkpoint of a compaction, by the turn with its summary."""
    return _find_first(rows, "k.session_seq = :session and k.summary_uuid = :uuid", session=session_seq, uuid=uuid)


def find_pending(rows: Rows, session_seq: int) -> CheckpointRow | None:
    """Returns the checkpoint of a session's announced compaction that has no summary yet."""
    return _find_first(
        rows, "k.session_seq = :session and k.why = 'compaction' and k.summary_uuid = ''", session=session_seq
    )


def find_latest(rows: Rows, session_id: str) -> CheckpointRow | None:
    """Returns the checkpoint of a session's latest compaction."""
    return _find_first(rows, "s.id = :session and k.why = 'compaction'", session=session_id)


def find_restored(rows: Rows, *, project: int, session_id: str) -> CheckpointRow | None:
    """Returns the checkpoint to show a session that starts in a project: the last restored one not shown since."""
    # `<> ''` selects the partial index, `> ''` makes it a range scan.
    return _find_first(
        rows,
        """k.restored_at <> '' and k.restored_at > '' and (k.restored_for = :session
            or (k.restored_for = '' and s.project_seq = :project)) and not exists (select 1 from injection_items i
            join injections n on n.seq = i.injection_seq where i.memory_id = k.id and n.at >= k.restored_at)""",
        by="k.restored_at",
        project=project,
        session=session_id,
    )


def _find_first(rows: Rows, condition: str, *, by: str = "k.at", **values: Any) -> CheckpointRow | None:
    return next(iter(_read_where(rows, f"{condition} order by {by} desc, k.seq desc limit 1", **values)), None)


def _read_where(rows: Rows, condition: str, **values: Any) -> list[CheckpointRow]:
    """Returns the checkpoints `k` of sessions `s` that fulfil a condition, which may end with an order."""
    sql = f"select {COLUMNS} from checkpoints k join sessions s on s.seq = k.session_seq where {condition}"  # noqa: S608
    return rows.read(CheckpointRow, sql, **values)


def list_checkpoints(
    rows: Rows, *, projects: Sequence[int] | None, session_id: str = "", limit: int
) -> list[CheckpointRow]:
    """Returns the checkpoints of sessions in these projects (None: all), or of one session, the latest first."""
    condition = f"(cast(:session as text) = '' or s.id = :session) and {in_keys('s.project_seq', projects)}"
    return _read_where(
        rows, f"{condition} order by k.at desc, k.seq desc limit :limit", session=session_id, limit=limit
    )


def list_items(rows: Rows, seq: int) -> list[tuple[Any, ...]]:
    """Returns (kind, text, uuid, state, amount) of a checkpoint's items, in order."""
    return _read_parts(rows, "checkpoint_items", _ITEM_COLUMNS, seq)


def list_captures(rows: Rows, seq: int) -> list[tuple[Any, ...]]:
    """Returns (uuid, kind, tool, time, text) of the turns that a checkpoint captured, in order."""
    return _read_parts(rows, "checkpoint_raw_captures", _CAPTURE_COLUMNS, seq)


def _read_parts(rows: Rows, table: str, names: Sequence[str], seq: int) -> list[tuple[Any, ...]]:
    return rows.all(f"select {', '.join(names)} from {table} where checkpoint_seq = :seq order by seq", seq=seq)  # noqa: S608


def find_captured_text(rows: Rows, uuid: str) -> str:
    """Returns the text of a turn as a checkpoint captured it; "" if none did."""
    return rows.text("select text from checkpoint_raw_captures where uuid = :uuid order by seq desc limit 1", uuid=uuid)


def count_captures(rows: Rows, seq: int) -> int:
    """Returns the number of turns that a checkpoint captured."""
    return rows.number("select count(*) from checkpoint_raw_captures where checkpoint_seq = :seq", seq=seq)


def delete_turn(rows: Rows, turn_seq: int) -> None:
    """Deletes a turn's captures and the items of its sessions' checkpoints, and marks those for a rebuild."""
    sql = """update checkpoints set awaits = :again
        where session_seq in (select session_seq from session_turn where turn_seq = :turn) returning seq"""
    checkpoint_seqs = rows.column(sql, again=AWAITS_REBUILD, turn=turn_seq)
    rows.run(f"delete from checkpoint_items where {in_keys('checkpoint_seq', checkpoint_seqs)}")  # noqa: S608
    sql = "delete from checkpoint_raw_captures where uuid = (select t.uuid from turns t where t.seq = :turn)"
    rows.run(sql, turn=turn_seq)


def delete_of_session(rows: Rows, session_seq: int) -> int:
    """Deletes a session's checkpoints and returns how many."""
    return rows.delete("checkpoints", session_seq=session_seq)


def delete_old(rows: Rows, *, before: str, limit: int) -> int:
    """Deletes at most `limit` checkpoints from before a time and returns how many."""
    oldest = "select seq from checkpoints where at < :before order by seq limit :limit"
    return rows.run(f"delete from checkpoints where seq in ({oldest})", before=before, limit=limit)  # noqa: S608


class Summary(NamedTuple):
    """A compaction in its transcript: the turn with its summary."""

    turn_seq: int
    session_seq: int
    ordinal: int
    uuid: str
    at: str


class SessionState(NamedTuple):
    """A session before a checkpoint is made; `state` changes when more may be known."""

    session_seq: int
    id: str
    cwd: str
    path: str
    turns: int
    distilled: int

    @property
    def state(self) -> str:
        """The turns and distilled turns as text: it changes when more may be known."""
        return f"{self.turns}:{self.distilled}"


def list_summaries(rows: Rows, *, after: int, limit: int) -> list[Summary]:
    """Returns the summaries past a turn's row key in the sessions that hold them first, each with its ordinal."""
    sql = """select t.seq, t.session_seq, st.ordinal, t.uuid, t.at
        from turns t join session_turn st on st.turn_seq = t.seq and st.session_seq = t.session_seq
        where t.kind = 'summary' and t.seq > :after order by t.seq limit :limit"""
    return rows.read(Summary, sql, after=after, limit=limit)


def is_summarised(rows: Rows, session_seq: int, *, since: str) -> bool:
    """Whether a session has a summary at or after a time."""
    sql = """select t.seq
        from turns t where t.kind = 'summary' and t.seq > 0 and t.session_seq = :session and t.at >= :since limit 1"""
    return rows.exists(sql, session=session_seq, since=since)


def list_incomplete(rows: Rows) -> list[CheckpointRow]:
    """Returns the checkpoints of sessions with more turns, or more of them distilled, than when they were made."""
    return rows.read(
        CheckpointRow,
        f"select {COLUMNS} from checkpoints k join sessions s on s.seq = k.session_seq {_JOIN_DISTILLED} "  # noqa: S608
        # As in find_restored: a range scan of the partial index.
        "where k.awaits <> '' and k.awaits > '' "
        "and k.awaits <> cast(s.turns as text) || ':' || cast(coalesce(c.position, 0) as text) order by k.awaits, k.seq",
    )


def read_session_state(rows: Rows, session_seq: int) -> SessionState:
    """Returns a session's present state."""
    (session,) = rows.read(SessionState, f"{_SESSION_STATE_SQL} where s.seq = :session", session=session_seq)
    return session


def find_session_state(rows: Rows, session_id: str) -> SessionState | None:
    """Returns a session's present state by its id; None for one without turns."""
    return rows.read_one(SessionState, f"{_SESSION_STATE_SQL} where s.id = :id", id=session_id)


def read_last_turns(rows: Rows, session_seq: int, *, until: int) -> list[tuple[Any, ...]]:
    """Returns (uuid, kind, tool, time, text) of the last turns up to an ordinal; "" for a text that is too long."""
    columns_sql = "t.uuid, t.kind, t.tool_name, t.at, case when length(t.text) <= :most then t.text else '' end"
    condition = f"st.ordinal <= :until and t.source = 'transcript' and t.kind in {_CONVERSATION_KINDS}"
    return _read_last(rows, session_seq, columns_sql, condition, until=until)


def read_last_prompts(rows: Rows, session_seq: int) -> list[tuple[Any, ...]]:
    """Returns a session's last prompts in order, in the form of `digests.read_entries`, with unconfirmed ones."""
    columns_sql = "st.ordinal, t.uuid, t.kind, substr(t.text, 1, :most), t.at, '', '', 0"
    return _read_last(rows, session_seq, columns_sql, "t.kind in ('user', 'relayed')")


def _read_last(rows: Rows, session_seq: int, columns_sql: str, condition: str, **values: Any) -> list[tuple[Any, ...]]:
    """Returns columns of the last turns of a session that fulfil a condition and are not rewound, in order."""
    sql = f"""select {columns_sql} from session_turn st join turns t on t.seq = st.turn_seq
        where st.session_seq = :session and st.rewound = 0 and {condition} order by st.ordinal desc limit :limit"""  # noqa: S608
    return rows.all(sql, session=session_seq, most=MAX_TURN_CHARACTERS, limit=MAX_TURNS, **values)[::-1]


def count_turns_after(rows: Rows, session_seq: int, *, until_ordinal: int, until: str = "") -> int:
    """Counts a session's turns after an ordinal, up to a time if given; at most STALE_AFTER_TURNS."""
    sql = f"""select st.ordinal from session_turn st join turns t on t.seq = st.turn_seq
        where st.session_seq = :session and st.ordinal > :until_ordinal and t.source = 'transcript'
        and t.kind in {_CONVERSATION_KINDS} and (cast(:until as text) = '' or t.at <= :until) limit :far"""  # noqa: S608
    ordinals = rows.column(sql, session=session_seq, until_ordinal=until_ordinal, until=until, far=STALE_AFTER_TURNS)
    return len(ordinals)
