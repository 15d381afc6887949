"""Dreams as rows, and the facts that their gates need."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from csmd.store import cursors
from csmd.store.row_values import columns
from csmd.store.sqlite import Rows, in_keys, make_id

#: undoing: its rows are restored, its files not yet.
State = Literal["running", "done", "failed", "cancelled", "undoing", "undone"]
#: The error of a dream whose daemon was killed.
KILLED_ERROR = "the daemon ended while it ran"
#: A limit higher than the number of dreams that are kept.
NO_LIMIT = 100_000
#: Stage and subject of the cursor that stores since when anything waits for a dream, in seconds since 1970.
_WAITING = "dream", "waiting"
#: Folders of files whose edits are not read back.
FOLDERS_WITHOUT_PAGES = frozenset({"daily", "sessions"})
#: The tier that is never crowded: dreams move memories there.
ARCHIVE_TIER = "archive"


class Dream(NamedTuple):
    """One dream: why it began, its state, and how many new sessions it found."""

    seq: int
    id: str
    why: str
    state: State
    begun_at: str
    ended_at: str = ""
    undone_at: str = ""
    sessions: int = 0
    error: str = ""


_COLUMNS = columns(Dream, "k")


def begin(rows: Rows, *, why: str, sessions: int, now: str) -> Dream:
    """Records the beginning of a dream."""
    number = rows.number("select coalesce(max(seq), 0) from dreams") + 1
    dream_id = make_id("d", number, why, now)
    seq = rows.insert_keyed("dreams", id=dream_id, why=why, state="running", begun_at=now, sessions=sessions)
    return Dream(seq=seq, id=dream_id, why=why, state="running", begun_at=now, sessions=sessions)


def end(rows: Rows, seq: int, *, state: State, error: str = "", now: str) -> None:
    """Records how a dream ended: done, failed or cancelled."""
    sql = "update dreams set state = :state, error = :error, ended_at = :now where seq = :seq and state = 'running'"
    rows.run(sql, state=state, error=error, now=now, seq=seq)


def fail_interrupted(rows: Rows, *, now: str) -> int:
    """Marks the dreams that a killed daemon left running as failed; returns how many. They can be undone."""
    failed = "update dreams set state = 'failed', error = :error, ended_at = :now where state = 'running'"
    return rows.run(failed, error=KILLED_ERROR, now=now)


def _where(rows: Rows, condition: str, **values: Any) -> list[Dream]:
    """Returns the dreams `k` that fulfil a condition, which may end with an order."""
    return rows.read(Dream, f"select {_COLUMNS} from dreams k where {condition}", **values)  # noqa: S608


def find_latest(rows: Rows, *, state: State = "done") -> Dream | None:
    """Returns the latest dream in a state, by row key, because the clock may have been set back."""
    return next(iter(_where(rows, "k.state = :state order by k.seq desc limit 1", state=state)), None)


def list_dreams(rows: Rows, *, limit: int, offset: int = 0) -> list[Dream]:
    """Returns the latest dreams, newest first, without the first `offset`."""
    return _where(rows, "true order by k.seq desc limit :limit offset :offset", limit=limit, offset=offset)


def by_id(rows: Rows, dream_id: str) -> Dream | None:
    """Returns a dream; None if there is none."""
    return next(iter(_where(rows, "k.id = :id", id=dream_id)), None)


def count_sessions_since(rows: Rows, at: str) -> int:
    """Returns how many sessions of people have had a turn since a time ("": ever)."""
    since = "select count(*) from sessions where parent = '' and last_at > :at and host <> 'probe' and turns > 0"
    return rows.number(since, at=at)


def note_waiting(rows: Rows, *, at: datetime) -> None:
    """Records when something new was first noticed since the last dream."""
    cursors.move_cursor(rows, *_WAITING, int(at.timestamp()))


def find_waiting_since(rows: Rows, *, after: str, now: str) -> str:
    """Returns when `note_waiting` was called; "" if a dream began since (`after`) or the clock was set back."""
    noticed_at = datetime.fromtimestamp(cursors.read_cursor(rows, *_WAITING), UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return noticed_at if max(after, "1971") < noticed_at <= now else ""


def delete_actions(rows: Rows, seqs: Sequence[int], *, limit: int) -> int:
    """Deletes at most `limit` actions of some dreams, or the dreams if they have none left; returns how many.

    Call it until it returns 0. The last finished dream is kept, and so is one that is being undone, with all its
    actions.
    """
    sql = f"""delete from change_sets where seq in (select k.seq from change_sets k join dreams d on d.seq = k.dream_seq
        where {in_keys("d.seq", seqs)} and d.state not in ('running', 'undoing') order by k.seq limit :limit)"""  # noqa: S608
    deleted = rows.run(sql, limit=limit)
    last_done = find_latest(rows)
    return deleted or rows.run(
        f"delete from dreams where {in_keys('seq', seqs)} and seq <> :kept and state not in ('running', 'undoing')",  # noqa: S608
        kept=last_done.seq if last_done else 0,
    )


def set_states(rows: Rows, dreams: Sequence[int], state: State, *, now: str) -> None:
    """Records that some dreams are being undone, or are undone."""
    sql = f"""update dreams set state = :state, undone_at = case when undone_at = '' then :now else undone_at end
        where {in_keys("seq", dreams)}"""  # noqa: S608
    rows.run(sql, state=state, now=now)


def update_page_row(rows: Rows, path: str, text: str | None, *, now: str) -> None:
    """Stores the restored text of a page that people edit, None for a removed one; other files have no row."""
    folder, _, page = path.partition("/")
    if FOLDERS_WITHOUT_PAGES & set(page.split("/")[:-1]) or not folder:
        return
    if text is None:
        rows.delete("pages", path=page)
    else:
        rows.upsert("pages", "path", path=page, text=text, at=now, also="", held="", problem="")


# --- facts for the gates


def find_first_session_time(rows: Rows) -> str:
    """Returns when the first session of a person began; "" if there is none."""
    return rows.text("select min(started_at) from sessions where parent = '' and host <> 'probe'")


def find_last_turn_time(rows: Rows) -> str:
    """Returns the time of the latest turn in a session of a person; "" if there is none."""
    return rows.text("select max(last_at) from sessions where parent = '' and host <> 'probe'")


def list_crowded_tiers(rows: Rows, *, limit: int) -> list[tuple[str, str, int]]:
    """Returns (project, tier, memories) of each tier of a project with more than `limit`, the fullest first."""
    sql = """select p.name, g.tier, g.number from (select m.project_seq, m.tier, count(*) as number from memories m
        where m.tier <> :aside group by m.project_seq, m.tier having count(*) > :limit) g
        join projects p on p.seq = g.project_seq order by 3 desc, 1, 2"""
    return rows.all(sql, aside=ARCHIVE_TIER, limit=limit)
