"""Cursors: the position of each stage in its subjects, and of reading in each transcript."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from csmd.store.sqlite import Rows

#: A running session is read again when it has grown by one turn in so many.
GROWTH_DIVISOR = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """The progress of reading a transcript; `head` and `foot` are hashes of its first bytes and of the last ones read."""

    path: str
    device: int
    inode: int
    position: int
    head: str
    foot: str = ""
    mtime_ns: int = 0
    bad_lines: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionBehind:
    """A session whose stage cursor is before its last turn."""

    session_seq: int
    session_id: str
    position: int
    turns: int
    last_at: str
    settled_at: str
    started_at: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """When a stage that reads whole sessions reads one again: reading it at each turn would take quadratic time.

    When it rested (no turn from `quiet_before` to `now`), has grown by GROWTH_DIVISOR, or was not read up to its turn in
    `required`, by row key. Without times every session is due.
    """

    quiet_before: str = ""
    now: str = ""
    required: Mapping[int, int] = field(default_factory=dict)

    def due(self, turns: str) -> str:
        """Returns the SQL condition that a session `s` with the cursor `c` and this number of turns is due."""
        cases = " ".join(f"when {int(seq)} then {int(until)}" for seq, until in self.required.items())
        return (
            f"(s.last_at not between :quiet_before and :now or {turns} - coalesce(c.position, 0) > {turns} / "
            f"{GROWTH_DIVISOR} "
            f"or coalesce(c.position, 0) < case s.seq {cases or 'when 0 then 0'} else 0 end)"
        )


def list_sessions_at_work(rows: Rows, *, quiet_before: str) -> dict[int, int]:
    """Returns the number of turns of people's conversations with a turn since `quiet_before`, by row key."""
    sql = "select seq, turns from sessions where parent = '' and last_at >= :quiet_before"
    return dict(rows.all(sql, quiet_before=quiet_before))


def find_file_state(rows: Rows, path: str) -> FileState | None:
    """Returns the state of reading of a transcript; None if it was never read."""
    sql = "select path, device, inode, position, head, foot, mtime_ns, bad_lines from files where path = :path"
    return rows.read_one(FileState, sql, path=path)


def save_file(rows: Rows, state: FileState, *, now: str) -> None:
    """Moves a transcript's cursor; call it in the transaction that writes its turns."""
    rows.upsert("files", "path", **asdict(state), read_at=now)


def file_positions(rows: Rows, *, since: int = -(2**62), limit: int = 2**31) -> dict[str, tuple[int, int]]:
    """Returns (bytes read, time of the last write in ns) of transcripts by path, the latest first.

    Only those written `since` a time (ns) when they were read, at most `limit`, without purged names.
    """
    sql = """select path, position, mtime_ns
        from files where mtime_ns >= :since and substr(path, 1, 7) <> 'purged:' order by mtime_ns desc limit :limit"""
    return {path: (position, mtime) for path, position, mtime in rows.all(sql, since=since, limit=limit)}


def read_cursor(rows: Rows, stage: str, subject: str) -> int:
    """Returns a stage's position in a subject; 0 at first."""
    sql = "select position from cursors where stage = :stage and subject = :subject"
    return rows.number(sql, stage=stage, subject=subject)


def move_cursor(rows: Rows, stage: str, subject: str, position: int) -> None:
    """Sets a stage's position; call it in the transaction that writes its rows."""
    rows.upsert("cursors", "stage, subject", stage=stage, subject=subject, position=position)


def sessions_behind(rows: Rows, stage: str, *, after: str = "", pace: Pace = Pace()) -> list[SessionBehind]:
    """Returns people's conversations that are due with turns that `stage` has not processed, oldest first.

    With `after` up to that stage's position, which is then `turns`.
    """
    due = pace.due("coalesce(d.position, s.turns)")
    sql = f"""select s.seq, s.id, coalesce(c.position, 0), coalesce(d.position, s.turns),
        s.last_at, s.settled_at, s.started_at, s.path from sessions s left join cursors c on c.stage = :stage
        and c.subject = cast(s.seq as text) left join cursors d on d.stage = :after and d.subject = cast(s.seq as text)
        where s.parent = '' and s.host <> 'probe' and (:after = '' or d.position is not null)
        and coalesce(d.position, s.turns) > coalesce(c.position, 0) and {due} order by s.started_at, s.seq"""  # noqa: S608
    return rows.read(SessionBehind, sql, stage=stage, after=after, quiet_before=pace.quiet_before, now=pace.now)


def find_exchange_start(rows: Rows, session_seq: int, *, at: int) -> int:
    """Returns the ordinal of the latest prompt at or before the ordinal `at` in a conversation; 0 for none."""
    sql = """select max(st.ordinal) from session_turn st join turns t on t.seq = st.turn_seq
        where st.session_seq = :session and st.ordinal <= :at and t.kind in ('user', 'relayed')"""
    return rows.number(sql, session=session_seq, at=at)
