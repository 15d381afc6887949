"""Checkpoints of sessions, and goals."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from csmd.privacy.fingerprints import PURGED
from csmd.store.sqlite import Rows, column_values, columns, in_keys

#: `awaits` of a checkpoint whose items must be made again, because a turn of its session changed.
AWAITS_REBUILD = "again"


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
ITEM_COLUMNS = ("kind", "text", "uuid", "state", "amount")
CAPTURE_COLUMNS = ("uuid", "kind", "tool", "at", "text")


# --- written


def put_checkpoint(rows: Rows, row: CheckpointRow, items: Sequence[Any], captures: Sequence[Any] | None) -> bool:
    """Stores a new or changed checkpoint; False if nothing changed.

    `items` are (kind, text, uuid, state, amount), `captures` (uuid, kind, tool, time, text); None keeps the stored
    ones.
    """
    text = _texts_of(rows, {str(item[2]) for item in items} | {str(capture[0]) for capture in captures or ()})
    fresh = [tuple(item) for item in items if item[2] in text]
    copied = (
        None if captures is None else [tuple(capture) for capture in captures if text.get(capture[0]) == capture[4]]
    )
    stored = by_id(rows, row.id)
    if stored is not None and _mutable(stored) == _mutable(row):
        as_it_was = captured_turns(rows, stored.seq) if copied is not None else None
        if (items_of(rows, stored.seq), as_it_was) == (fresh, copied):
            return False
    seq = rows.insert_keyed(
        "checkpoints",
        "on conflict (id) do update set summary_uuid = excluded.summary_uuid, asked_at = excluded.asked_at, "
        "upto = excluded.upto, at = excluded.at, awaits = excluded.awaits",
        **column_values(row, "seq", "session_id", "project_seq", "restored_at", "restored_for"),
    )
    rows.delete("checkpoint_items", checkpoint_seq=seq)
    for item in fresh:
        rows.insert("checkpoint_items", checkpoint_seq=seq, **dict(zip(ITEM_COLUMNS, item, strict=True)))
    if copied is not None:
        rows.delete("checkpoint_raw_captures", checkpoint_seq=seq)
    for capture in copied or ():
        rows.insert("checkpoint_raw_captures", checkpoint_seq=seq, **dict(zip(CAPTURE_COLUMNS, capture, strict=True)))
    return True


def _mutable(row: CheckpointRow) -> tuple[object, ...]:
    return row.summary_uuid, row.asked_at, row.upto, row.at, row.awaits


def _texts_of(rows: Rows, uuids: Collection[str]) -> dict[str, str]:
    """The present texts of these turns, without purged and missing ones."""
    texts: dict[str, str] = {}
    for uuid in sorted(uuids):
        text = rows.find("turns", "text", uuid=uuid)
        if text not in (None, PURGED):
            texts[uuid] = str(text)
    return texts


def restore(rows: Rows, seq: int, *, at: str, session_id: str) -> None:
    """Marks a checkpoint for the next session that starts: `session`, or with "" the next of its project."""
    rows.update("checkpoints", seq, restored_at=at, restored_for=session_id)


# --- read


def by_id(rows: Rows, ident: str) -> CheckpointRow | None:
    """One checkpoint by its whole id."""
    return _first(rows, "k.id = :id", id=ident)


def of_summary(rows: Rows, session_seq: int, uuid: str) -> CheckpointRow | None:
    """The checkpoint of a compaction, by the turn with its summary."""
    return _first(rows, "k.session_seq = :session and k.summary_uuid = :uuid", session=session_seq, uuid=uuid)


def find_pending(rows: Rows, session_seq: int) -> CheckpointRow | None:
    """The checkpoint of a session's announced compaction that has no summary yet."""
    return _first(
        rows, "k.session_seq = :session and k.why = 'compaction' and k.summary_uuid = ''", session=session_seq
    )


def find_latest(rows: Rows, session_id: str) -> CheckpointRow | None:
    """The checkpoint of a session's latest compaction."""
    return _first(rows, "s.id = :session and k.why = 'compaction'", session=session_id)


def find_restored(rows: Rows, *, project: int, session_id: str) -> CheckpointRow | None:
    """The checkpoint to show a session that starts in a project: the last restored one not shown since."""
    return _first(
        rows,
        "k.restored_at <> '' and k.restored_at > '' and (k.restored_for = :session "
        "or (k.restored_for = '' and s.project_seq = :project)) and not exists (select 1 from injection_items i "
        "join injections n on n.seq = i.injection_seq where i.memory_id = k.id and n.at >= k.restored_at)",
        by="k.restored_at",
        project=project,
        session=session_id,
    )


def _first(rows: Rows, condition: str, *, by: str = "k.at", **values: Any) -> CheckpointRow | None:
    return next(iter(_where(rows, f"{condition} order by {by} desc, k.seq desc limit 1", **values)), None)


def _where(rows: Rows, condition: str, **values: Any) -> list[CheckpointRow]:
    """The checkpoints `k` of sessions `s` that fulfil a condition, which may end with an order."""
    sql = f"select {COLUMNS} from checkpoints k join sessions s on s.seq = k.session_seq where {condition}"  # noqa: S608
    return rows.read(CheckpointRow, sql, **values)


def list_checkpoints(
    rows: Rows, *, projects: Sequence[int] | None, session_id: str = "", limit: int
) -> list[CheckpointRow]:
    """The checkpoints of sessions in these projects (None: all), or of one session, the latest first."""
    condition = f"(cast(:session as text) = '' or s.id = :session) and {in_keys('s.project_seq', projects)}"
    return _where(rows, f"{condition} order by k.at desc, k.seq desc limit :limit", session=session_id, limit=limit)


def items_of(rows: Rows, seq: int) -> list[tuple[Any, ...]]:
    """(kind, text, uuid, state, amount) of a checkpoint's items, in order."""
    sql = "select kind, text, uuid, state, amount from checkpoint_items where checkpoint_seq = :seq order by seq"
    return rows.all(sql, seq=seq)


def captured_turns(rows: Rows, seq: int) -> list[tuple[Any, ...]]:
    """(uuid, kind, tool, time, text) of the turns that a checkpoint captured, in order."""
    sql = "select uuid, kind, tool, at, text from checkpoint_raw_captures where checkpoint_seq = :seq order by seq"
    return rows.all(sql, seq=seq)


def captured_text(rows: Rows, uuid: str) -> str:
    """The text of a turn as a checkpoint captured it; "" if none did."""
    return rows.text("select text from checkpoint_raw_captures where uuid = :uuid order by seq desc limit 1", uuid=uuid)


def capture_count(rows: Rows, seq: int) -> int:
    """The number of turns that a checkpoint captured."""
    return rows.number("select count(*) from checkpoint_raw_captures where checkpoint_seq = :seq", seq=seq)


# --- taken back


def drop_turn(rows: Rows, turn_seq: int) -> None:
    """Deletes what checkpoints have of a turn that is deleted or changed; the rest is made again without it."""
    sql = (
        "update checkpoints set awaits = :again where session_seq in "
        "(select session_seq from session_turn where turn_seq = :turn) returning seq"
    )
    touched = rows.column(sql, again=AWAITS_REBUILD, turn=turn_seq)
    rows.run(f"delete from checkpoint_items where {in_keys('checkpoint_seq', touched)}")  # noqa: S608
    sql = "delete from checkpoint_raw_captures where uuid = (select t.uuid from turns t where t.seq = :turn)"
    rows.run(sql, turn=turn_seq)


def delete_of_session(rows: Rows, session_seq: int) -> int:
    """Deletes a session's checkpoints and returns how many."""
    return rows.delete("checkpoints", session_seq=session_seq)


def drop_old(rows: Rows, *, before: str, limit: int) -> int:
    """Deletes at most `limit` checkpoints from before a time and returns how many."""
    oldest = "select seq from checkpoints where at < :before order by seq limit :limit"
    return rows.run(f"delete from checkpoints where seq in ({oldest})", before=before, limit=limit)  # noqa: S608


#: The stage whose cursors record how far events and summaries were read.
CHECKPOINT_STAGE = "checkpoint"
#: How many of the last turns a checkpoint copies.
MAX_TURNS = 60
#: How much of each turn it copies.
MAX_TURN_CHARACTERS = 16_384
#: Turns after a checkpoint that make it out of date.
STALE_AFTER_TURNS = 200
#: Kinds of turns in which somebody speaks or a tool works; the others come from the host.
_SPOKEN = "('user', 'relayed', 'assistant', 'tool_call', 'tool_result')"


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
        return f"{self.turns}:{self.distilled}"


def summaries(rows: Rows, *, after: int, limit: int) -> list[Summary]:
    """The summaries past a turn's row key in the sessions that hold them first, each with its ordinal."""
    sql = (
        "select t.seq, t.session_seq, st.ordinal, t.uuid, t.at from turns t "
        "join session_turn st on st.turn_seq = t.seq and st.session_seq = t.session_seq "
        "where t.kind = 'summary' and t.seq > :after order by t.seq limit :limit"
    )
    return rows.read(Summary, sql, after=after, limit=limit)


def is_summarised(rows: Rows, session_seq: int, *, since: str) -> bool:
    """Whether a session has a summary at or after a time."""
    sql = (
        "select t.seq from turns t "
        "where t.kind = 'summary' and t.seq > 0 and t.session_seq = :session and t.at >= :since limit 1"
    )
    return rows.exists(sql, session=session_seq, since=since)


def incomplete_checkpoints(rows: Rows) -> list[CheckpointRow]:
    """The checkpoints with rows that may have come since they were made."""
    return rows.read(
        CheckpointRow,
        f"select {COLUMNS} from checkpoints k join sessions s on s.seq = k.session_seq "  # noqa: S608
        "left join cursors c on c.stage = 'distill' and c.subject = cast(s.seq as text) where k.awaits <> '' "
        "and k.awaits > '' and k.awaits <> cast(s.turns as text) || ':' || cast(coalesce(c.position, 0) as text) "
        "order by k.awaits, k.seq",
    )


_ABOUT = (
    "select s.seq, s.id, s.cwd, s.path, s.turns, coalesce(c.position, 0) from sessions s left join cursors c "
    "on c.stage = 'distill' and c.subject = cast(s.seq as text)"
)


def session_state(rows: Rows, session_seq: int) -> SessionState:
    """A session's present state."""
    (session,) = rows.read(SessionState, f"{_ABOUT} where s.seq = :session", session=session_seq)
    return session


def session_state_by_id(rows: Rows, ident: str) -> SessionState | None:
    """A session's present state by its id; None for one without turns."""
    return rows.read_one(SessionState, f"{_ABOUT} where s.id = :id", id=ident)


def last_turns(rows: Rows, session_seq: int, *, upto: int) -> list[tuple[Any, ...]]:
    """(uuid, kind, tool, time, text) of the last turns up to an ordinal, in order; "" for a text not to be copied."""
    sql = (
        "select t.uuid, t.kind, t.tool_name, t.at, case when length(t.text) <= :most then t.text else '' end "  # noqa: S608
        "from session_turn st join turns t on t.seq = st.turn_seq where st.session_seq = :session "
        f"and st.ordinal <= :upto and st.rewound = 0 and t.source = 'transcript' and t.kind in {_SPOKEN} "
        "order by st.ordinal desc limit :limit"
    )
    turns = rows.all(sql, session=session_seq, upto=upto, most=MAX_TURN_CHARACTERS, limit=MAX_TURNS)
    return turns[::-1]


def prompts(rows: Rows, session_seq: int) -> list[tuple[Any, ...]]:
    """The last prompts of a session in order, in the form of `digests.read_entries`; unconfirmed ones are included."""
    sql = (
        "select st.ordinal, t.uuid, t.kind, substr(t.text, 1, :most), t.at, '', '', 0 from session_turn st "
        "join turns t on t.seq = st.turn_seq where st.session_seq = :session and st.rewound = 0 "
        "and t.kind in ('user', 'relayed') order by st.ordinal desc limit :limit"
    )
    turns = rows.all(sql, session=session_seq, most=MAX_TURN_CHARACTERS, limit=MAX_TURNS)
    return turns[::-1]


def count_turns_after(rows: Rows, session_seq: int, *, upto: int, until: str = "") -> int:
    """Counts a session's turns after an ordinal, up to a time if given; at most STALE_AFTER_TURNS."""
    sql = (
        "select st.ordinal from session_turn st join turns t on t.seq = st.turn_seq where st.session_seq = :session "  # noqa: S608
        f"and st.ordinal > :upto and t.source = 'transcript' and t.kind in {_SPOKEN} "
        "and (cast(:until as text) = '' or t.at <= :until) limit :far"
    )
    ordinals = rows.column(sql, session=session_seq, upto=upto, until=until, far=STALE_AFTER_TURNS)
    return len(ordinals)


class Goal(NamedTuple):
    """A declared goal; `session_id` is "" for a project's, `done_at` "" while it is open."""

    seq: int
    id: str
    project_seq: int
    session_id: str
    text: str
    authority: str
    created_at: str
    done_at: str


_COLUMNS = columns(Goal, "g")


def add_goal(rows: Rows, *, project: int, session_id: str, text: str, authority: str, now: str) -> tuple[str, bool]:
    """Adds a goal and returns (id, whether it is new); equal words are one goal, a person's if a person says them."""
    words = " ".join(text.casefold().split())
    ident = "g" + hashlib.sha256(f"{project}:{session_id}:{words}".encode()).hexdigest()[:10]
    done_at = rows.find("goals", "done_at", id=ident)
    goal = {"id": ident, "project_seq": project, "session_id": session_id, "text": text, "authority": authority}
    rows.insert(
        "goals",
        "on conflict (id) do update set done_at = '', "
        "authority = case when excluded.authority = 'user' then 'user' else goals.authority end",
        created_at=now,
        **goal,
    )
    return ident, done_at != ""


def _goals(rows: Rows, condition: str, **values: Any) -> list[Goal]:
    """The goals `g` that fulfil a condition, which may end with an order."""
    return rows.read(Goal, f"select {_COLUMNS} from goals g where {condition}", **values)  # noqa: S608


def open_goals(rows: Rows, *, projects: Sequence[int], session_id: str) -> list[Goal]:
    """The goals of a session, and those that a person declared for one of these projects, the oldest first."""
    own = "g.session_id in ('', :session) and (g.session_id <> '' or g.authority = 'user')"
    condition = f"g.done_at = '' and {in_keys('g.project_seq', projects)} and {own} order by g.created_at, g.seq"
    return _goals(rows, condition, session=session_id)


def list_goals(rows: Rows, *, projects: Sequence[int] | None, done: bool) -> list[Goal]:
    """The goals of these projects (None: all), finished ones only on request, the latest first."""
    condition = f"(:done = 1 or g.done_at = '') and {in_keys('g.project_seq', projects)}"
    return _goals(rows, f"{condition} order by g.created_at desc, g.seq desc", done=int(done))


def goals_like(rows: Rows, prefix: str) -> list[Goal]:
    """Up to five goals whose id begins with `prefix`."""
    return _goals(rows, "g.id >= :prefix and g.id < :prefix || '~' order by g.id limit 5", prefix=prefix)


def finish_goal(rows: Rows, ident: str, *, now: str) -> bool:
    """Marks a goal as done; False if it was."""
    return bool(rows.run("update goals set done_at = :now where id = :id and done_at = ''", now=now, id=ident))


def reopen_goal(rows: Rows, ident: str) -> str:
    """Marks a goal as open and returns its text; "" if there is no such goal."""
    rows.run("update goals set done_at = '' where id = :id", id=ident)
    return str(rows.find("goals", "text", id=ident) or "")


# --- with their project and session


def merge_goals(rows: Rows, source: int, into: int) -> None:
    """Moves a project's goals to another, with their origin."""
    sql = (
        "update goals set origin_seq = case when origin_seq = 0 then :source else origin_seq end, "
        "project_seq = :target where project_seq = :source"
    )
    rows.run(sql, source=source, target=into)


def split_goals(rows: Rows, source: int, part: int, *, tree: Collection[int]) -> None:
    """Moves the goals that came from `part`, or from what was merged into it, back to it."""
    sql = (
        "update goals set project_seq = :part, origin_seq = case when origin_seq = :part then 0 else origin_seq end "  # noqa: S608
        f"where project_seq = :source and {in_keys('origin_seq', sorted(tree))}"
    )
    rows.run(sql, part=part, source=source)


def clear_goals(rows: Rows, *, project: int, until: str) -> int:
    """Deletes the goals of a project up to a time and returns how many."""
    sql = "delete from goals where project_seq = :project and created_at <= :until"
    return rows.run(sql, project=project, until=until)


def clear_session_goals(rows: Rows, session_id: str) -> int:
    """Deletes the goals of a session and returns how many."""
    return rows.delete("goals", session_id=session_id)
