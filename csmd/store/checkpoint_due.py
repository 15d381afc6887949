"""Which checkpoints are to be made, and what each is made of: compactions that were announced or told, and their turns."""

from __future__ import annotations

from typing import Any, NamedTuple

from csmd.store.checkpoints import COLUMNS, Row
from csmd.store.sqlite import Rows

#: The stage whose cursors say how far events and summaries were looked at.
STAGE = "checkpoint"
#: The most turns, and characters of one, that are looked at for a capture.
TURNS, TURN_CHARACTERS = 60, 16_384
#: Enough turns behind a checkpoint to know that it is not of now.
FAR = 200
#: Kinds in which somebody speaks or a tool works; the others are the host's own.
_SPOKEN = "('user', 'relayed', 'assistant', 'tool_call', 'tool_result')"


class Summary(NamedTuple):
    """A compaction as its transcript tells it: the turn with its summary."""

    turn_seq: int
    session_seq: int
    ordinal: int
    uuid: str
    at: str


class About(NamedTuple):
    """What is asked of a session before one of its checkpoints is made; `state` changes when more may be known."""

    session_seq: int
    id: str
    cwd: str
    path: str
    turns: int
    distilled: int

    @property
    def state(self) -> str:
        return f"{self.turns}:{self.distilled}"


def heard(rows: Rows, *, after: int, limit: int) -> tuple[int, int, list[tuple[int, str]]]:
    """(the last event past `after` that was looked at, how many were, (session, when) of the compactions it told of)."""
    found = rows.all(
        "select e.seq, coalesce(s.seq, 0), e.name, e.at from events e left join sessions s on s.id = e.session_id "
        "where e.seq > :after order by e.seq limit :limit",
        after=after,
        limit=limit,
    )
    told = [(int(session), str(at)) for _, session, name, at in found if name == "pre_compact" and session]
    return (int(found[-1][0]) if found else after), len(found), told


def summaries(rows: Rows, *, after: int, limit: int) -> list[Summary]:
    """The summaries past a turn's row key in the sessions that hold them first, each with its place there."""
    found = rows.all(
        "select t.seq, t.session_seq, st.ordinal, t.uuid, t.at from turns t join session_turn st on st.turn_seq = t.seq "
        "and st.session_seq = t.session_seq where t.kind = 'summary' and t.seq > :after order by t.seq limit :limit",
        after=after,
        limit=limit,
    )
    return [Summary(*row) for row in found]


def is_summarised(rows: Rows, session_seq: int, *, since: str) -> bool:
    """Whether a session has a summary of a time or later."""
    found = rows.value(
        "select t.seq from turns t where t.kind = 'summary' and t.seq > 0 and t.session_seq = :session and t.at >= :since "
        "limit 1",
        session=session_seq,
        since=since,
    )
    return found is not None


def awaiting(rows: Rows) -> list[Row]:
    """The checkpoints to which more may belong since they were made."""
    found = rows.all(
        f"select {COLUMNS} from checkpoints k join sessions s on s.seq = k.session_seq "  # noqa: S608
        "left join cursors c on c.stage = 'distill' and c.subject = cast(s.seq as text) where k.awaits <> '' and k.awaits > '' "
        "and k.awaits <> cast(s.turns as text) || ':' || cast(coalesce(c.position, 0) as text) order by k.awaits, k.seq"
    )
    return [Row(*row) for row in found]


_ABOUT = (
    "select s.seq, s.id, s.cwd, s.path, s.turns, coalesce(c.position, 0) from sessions s left join cursors c "
    "on c.stage = 'distill' and c.subject = cast(s.seq as text)"
)


def about(rows: Rows, session_seq: int) -> About:
    """A session as it is now."""
    (row,) = rows.all(f"{_ABOUT} where s.seq = :session", session=session_seq)
    return About(*row)


def by_id(rows: Rows, ident: str) -> About | None:
    """A session as it is now, by its id; None for one that nobody has spoken in yet."""
    row = rows.one(f"{_ABOUT} where s.id = :id", id=ident)
    return None if row is None else About(*row)


def last_turns(rows: Rows, session_seq: int, *, upto: int) -> list[tuple[Any, ...]]:
    """(uuid, kind, tool, time, text) of the last turns up to a place, in order; "" for a text that is not to be copied."""
    found = rows.all(
        "select t.uuid, t.kind, t.tool_name, t.at, case when length(t.text) <= :most then t.text else '' end "  # noqa: S608
        "from session_turn st join turns t on t.seq = st.turn_seq where st.session_seq = :session "
        f"and st.ordinal <= :upto and t.source = 'transcript' and t.kind in {_SPOKEN} order by st.ordinal desc limit :limit",
        session=session_seq,
        upto=upto,
        most=TURN_CHARACTERS,
        limit=TURNS,
    )
    return found[::-1]


def prompts(rows: Rows, session_seq: int) -> list[tuple[Any, ...]]:
    """The last prompts of a session, in order, as `digests.entries` has them; those that only a hook told, too."""
    found = rows.all(
        "select st.ordinal, t.uuid, t.kind, substr(t.text, 1, :most), t.at, '', '', 0 from session_turn st "
        "join turns t on t.seq = st.turn_seq where st.session_seq = :session and t.kind in ('user', 'relayed') "
        "order by st.ordinal desc limit :limit",
        session=session_seq,
        most=TURN_CHARACTERS,
        limit=TURNS,
    )
    return found[::-1]


def later(rows: Rows, session_seq: int, *, upto: int, until: str = "") -> int:
    """How many turns of a session's transcript stand behind a place, those up to a time where one is given; at most FAR."""
    found = rows.all(
        "select st.ordinal from session_turn st join turns t on t.seq = st.turn_seq where st.session_seq = :session "  # noqa: S608
        f"and st.ordinal > :upto and t.source = 'transcript' and t.kind in {_SPOKEN} "
        "and (cast(:until as text) = '' or t.at <= :until) limit :far",
        session=session_seq,
        upto=upto,
        until=until,
        far=FAR,
    )
    return len(found)
