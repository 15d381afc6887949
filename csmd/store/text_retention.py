"""Drops the text of old turns, or of the oldest ones to free space, and records each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from csmd.privacy.fingerprints import PURGED
from csmd.store import activity, compactions, turns
from csmd.store.sqlite import Row, Rows, count_live_bytes
from csmd.text import display

#: The time of a turn whose line has none; such a turn is never old.
UNDATED = "1970-01-01T00:00:00.000Z"
#: The share of the limit from which the database is near it.
SHORT_SHARE = 0.9
#: Names of counters.
DROPPED_COUNTER = "tool outputs dropped"
DROPPED_BYTES_COUNTER = "tool output bytes dropped"
DROPPED_TURNS_COUNTER = "conversation turns dropped"
#: Tool calls and results that still have their text.
_UNDROPPED = f"from turns where kind in ('tool_call', 'tool_result') and gone = 0 and text <> '{PURGED}'"
_NOUNS = {"tool_call": "input", "tool_result": "output"}


class Room(NamedTuple):
    """Bytes in use, without free pages inside the file, and the limit in bytes, 0 if there is none."""

    used: int
    limit: int

    @property
    def is_over(self) -> bool:
        """Whether the database is larger than its limit."""
        return bool(self.limit) and self.used > self.limit

    @property
    def is_short(self) -> bool:
        """Whether the database is near its limit, or larger."""
        return bool(self.limit) and self.used > self.limit * SHORT_SHARE


def measure_room(rows: Rows, *, limit: int) -> Room:
    """Returns the bytes that the database uses of `limit`."""
    return Room(used=count_live_bytes(rows), limit=limit)


def has_output(rows: Rows) -> bool:
    """Whether any tool call or result still has its text."""
    return rows.exists(f"select seq {_UNDROPPED} and at >= '' limit 1")


def drop_old_output(rows: Rows, *, before: str, days: int, limit: int) -> int:
    """Drops the text of at most `limit` tool calls and results from before a time; returns how many."""
    sql = f"select seq, kind, text {_UNDROPPED} and at < :before and at > :undated order by at limit :limit"
    texts = rows.all(sql, before=before, undated=UNDATED, limit=limit)
    return _drop(rows, texts, reason=f"dropped after {days} days", cause="age")


def drop_oldest_output(rows: Rows, *, limit: int) -> int:
    """Drops the text of the `limit` oldest tool calls and results that still have theirs; returns how many."""
    texts = rows.all(f"select seq, kind, text {_UNDROPPED} and at >= '' order by at limit :limit", limit=limit)
    return _drop(rows, texts, reason="dropped for room", cause="room")


def drop_old_conversation(rows: Rows, *, before: str, days: int, limit: int) -> int:
    """Drops the text of up to `limit` turns of the first session that ended before a time; returns how many.

    A session that is not distilled yet waits. Its memories and digests stay.
    """
    sql = """select s.seq, s.last_at from sessions s where s.last_at < :before and s.last_at > :undated
        and s.emptied_at < s.last_at and (s.parent <> '' or not exists (select 1 from session_turn st
        where st.session_seq = s.seq and st.ordinal > coalesce((select min(c.position) from cursors c
        where c.stage in ('distill', 'digest') and c.subject = cast(s.seq as text) having count(*) = 2), 0)))
        order by s.last_at, s.seq limit 1"""
    session = rows.first(sql, before=before, undated=UNDATED)
    if session is None:
        return 0
    seq, last_at = session
    sql = """select t.seq, t.text from session_turn st join turns t on t.seq = st.turn_seq
        where st.session_seq = :session and t.kind not in ('tool_call', 'tool_result')
        and t.gone = 0 and t.text not in ('', :purged) order by st.ordinal limit :limit"""
    texts = rows.all(sql, session=seq, purged=PURGED, limit=limit)
    for turn, text in texts:
        rows.update("turns", turn, searchable=0)  # first: a turn without text has no passages
        compactions.record_drop(
            rows, turn, text=text, name=turns.CONVERSATION_NAME, reason=f"dropped after {days} days", cause="age"
        )
    if len(texts) < limit:
        rows.update("sessions", seq, emptied_at=last_at)
    activity.increment_counters(rows, [(DROPPED_TURNS_COUNTER, len(texts))])
    return max(len(texts), 1)  # at least 1: the next session may have some


def _drop(rows: Rows, texts: Sequence[Row], *, reason: str, cause: compactions.Cause) -> int:
    freed = 0
    for seq, kind, text in texts:
        freed += display.count_bytes(text)
        name = f"tool {_NOUNS[kind]}"
        compactions.record_drop(rows, seq, text=text, name=name, reason=reason, cause=cause)
    if texts:
        activity.increment_counters(rows, [(DROPPED_COUNTER, len(texts)), (DROPPED_BYTES_COUNTER, freed)])
    return len(texts)
