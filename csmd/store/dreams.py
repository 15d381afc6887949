"""Dreams and their journal: every memory, candidate and file that one changed, before and after, for as long as it is kept.

An action and what is needed to undo it are written in the transaction that carries it out. An action that changed
nothing is none. A purge takes away whole actions: half an undo is none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from csmd.store import before, upkeep
from csmd.store.before import Before
from csmd.store.sqlite import Rows

#: undoing: its rows are what they were, its files are about to be.
State = Literal["running", "done", "failed", "cancelled", "undoing", "undone"]
#: What became of a dream whose daemon was killed.
KILLED = "the daemon ended while it ran"
#: More dreams than are kept.
ALL = 100_000
#: The kind of a change that wrote a file; the other kinds are those of actions.
PAGE = "page"
_COLUMNS = "k.seq, k.id, k.why, k.state, k.begun_at, k.ended_at, k.undone_at, k.sessions, k.error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dream:
    """One consolidation: what began it, what became of it, and how many new sessions it found."""

    seq: int
    id: str
    why: str
    state: State
    begun_at: str
    ended_at: str = ""
    undone_at: str = ""
    sessions: int = 0
    error: str = ""


# --- dreams


def begin(rows: Rows, *, why: str, sessions: int, now: str) -> Dream:
    """Notes that a dream begins."""
    number = int(rows.value("select coalesce(max(seq), 0) from dreams")) + 1
    ident = "d" + hashlib.sha256(f"{number}:{why}:{now}".encode()).hexdigest()[:10]
    seq = rows.value(
        "insert into dreams (id, why, state, begun_at, sessions) values (:id, :why, 'running', :now, :sessions) "
        "returning seq",
        id=ident,
        why=why,
        now=now,
        sessions=sessions,
    )
    return Dream(seq=int(seq), id=ident, why=why, state="running", begun_at=now, sessions=sessions)


def reopen(rows: Rows, *, why: str) -> Dream | None:
    """The latest dream where it was broken off and began for this reason: it goes on in its own journal. None for another."""
    latest = next(iter(history(rows, limit=1)), None)
    if latest is None or latest.why != why or (latest.state != "cancelled" and latest.error != KILLED):
        return None
    rows.run("update dreams set state = 'running', error = '', ended_at = '' where seq = :seq", seq=latest.seq)
    return by_id(rows, latest.id)


def end(rows: Rows, seq: int, *, state: State, error: str = "", now: str) -> None:
    """Notes what became of a dream: done, failed or cancelled."""
    rows.run(
        "update dreams set state = :state, error = :error, ended_at = :now where seq = :seq and state = 'running'",
        state=state,
        error=error,
        now=now,
        seq=seq,
    )


def interrupted(rows: Rows, *, now: str) -> int:
    """Makes the dreams that a killed daemon left running failed ones; how many. What they did can be undone."""
    return rows.run(
        "update dreams set state = 'failed', error = :error, ended_at = :now where state = 'running'",
        error=KILLED,
        now=now,
    )


def last(rows: Rows, *, state: State = "done") -> Dream | None:
    """The latest dream in a state: the gates go by the one that is done. By its row: a clock may be set back."""
    found = rows.all(
        f"select {_COLUMNS} from dreams k where k.state = :state order by k.seq desc limit 1",  # noqa: S608
        state=state,
    )
    return _dream(found[0]) if found else None


def history(rows: Rows, *, limit: int) -> list[Dream]:
    """The latest dreams, the newest first."""
    found = rows.all(f"select {_COLUMNS} from dreams k order by k.seq desc limit :limit", limit=limit)  # noqa: S608
    return [_dream(row) for row in found]


def by_id(rows: Rows, ident: str) -> Dream | None:
    """One dream, or None."""
    found = rows.all(f"select {_COLUMNS} from dreams k where k.id = :id", id=ident)  # noqa: S608
    return _dream(found[0]) if found else None


def ids_like(rows: Rows, prefix: str) -> list[str]:
    """The ids that begin with `prefix`, at most ten: people type the first characters."""
    found = rows.all(
        "select id from dreams where substr(id, 1, :size) = :prefix order by id limit 10",
        size=len(prefix),
        prefix=prefix,
    )
    return [str(ident) for (ident,) in found]


def sessions_since(rows: Rows, at: str) -> int:
    """People's own sessions in which something was said since a time; "" for all."""
    return int(
        rows.value(
            "select count(*) from sessions where parent = '' and last_at > :at and host <> 'probe' and turns > 0", at=at
        )
    )


def forget(rows: Rows, seqs: Sequence[int], *, most: int) -> int:
    """Forgets what some dreams changed, at most so many actions, and then the dreams; how many of both.

    To be called until it is 0. The last that is done stays known, and one that is being undone with all it did.
    """
    keys = ", ".join(str(int(seq)) for seq in seqs) or "0"
    gone = rows.run(
        "delete from dream_changes where seq in (select k.seq from dream_changes k join dreams d on d.seq = k.dream_seq "  # noqa: S608
        f"where d.seq in ({keys}) and d.state not in ('running', 'undoing') order by k.seq limit :most)",
        most=most,
    )
    if gone:
        return gone
    kept = last(rows)
    return rows.run(
        f"delete from dreams where seq in ({keys}) and seq <> :kept and state not in ('running', 'undoing')",  # noqa: S608
        kept=kept.seq if kept else 0,
    )


def _dream(row: Sequence[object]) -> Dream:
    seq, ident, why, state, begun, ended, undone, sessions, error = row
    return Dream(
        seq=int(str(seq)), id=str(ident), why=str(why), state=state, begun_at=str(begun), ended_at=str(ended),  # type: ignore[arg-type]  # as it was noted
        undone_at=str(undone), sessions=int(str(sessions)), error=str(error),
    )  # fmt: skip


# --- what one does


def carried(
    rows: Rows,
    seq: int,
    *,
    kind: str,
    project: int,
    reason: str,
    evidence: Iterable[str],
    items: Iterable[str],
    act: Callable[[], Iterable[str] | None],
    now: str,
) -> tuple[str, ...]:
    """Carries an action out and notes all that it changed, before and after; the ids of that, () for nothing.

    `items` are the memories and candidates that it changes; what waits in the queue about them is looked at besides.
    `act` gives the ids of what else it made or changed. Where it does, it is taken back and done again: how that was
    before is not known until then.
    """
    was = {one.memory_id: one for one in before.of(rows, _with_queue(rows, items))}
    rows.connection.execute("savepoint action")
    more = [ident for ident in act() or () if ident not in was]
    if more:
        rows.connection.execute("rollback to action")
        was |= {one.memory_id: one for one in before.of(rows, more)}
        act()
    rows.connection.execute("release action")
    changed = [(was[one.memory_id], one) for one in before.of(rows, was) if before.differs(was[one.memory_id], one)]
    if changed:
        change = _noted(rows, seq, kind=kind, project=project, reason=reason, evidence=evidence, now=now)
        for one, other in changed:
            _keep(rows, change, one, other)
    return tuple(one.memory_id for one, _ in changed)


def _with_queue(rows: Rows, items: Iterable[str]) -> list[str]:
    """Items and the waiting candidates of upkeep that are about them: these are settled with them."""
    found = list(items)
    return found + [one.id for ident in found if ident.startswith("m") for one in upkeep.about(rows, ident)]


def wrote(rows: Rows, seq: int, *, reason: str, path: str, before: str | None, after: str | None, now: str) -> None:
    """Notes that a file was written; `path` is below the home, None stands for no file."""
    if before == after:
        return
    change = _noted(rows, seq, kind=PAGE, project=0, reason=reason, evidence=(), now=now)
    rows.run(
        "insert into dream_files (change_seq, path, before, after, was_there, is_there) "
        "values (:change, :path, :before, :after, :was, :is_)",
        change=change,
        path=path,
        before=before or "",
        after=after or "",
        was=int(before is not None),
        is_=int(after is not None),
    )


def _noted(rows: Rows, seq: int, *, kind: str, project: int, reason: str, evidence: Iterable[str], now: str) -> int:
    return int(
        rows.value(
            "insert into dream_changes (dream_seq, kind, project_seq, reason, evidence, at) "
            "values (:dream, :kind, :project, :reason, :evidence, :now) returning seq",
            dream=seq,
            kind=kind,
            project=project,
            reason=reason,
            evidence=" ".join(evidence),
            now=now,
        )
    )


def _keep(rows: Rows, change: int, one: Before, other: Before) -> None:
    if one.state and other.state:
        one, other = before.without_receipts(one), before.without_receipts(other)
    rows.run(
        "insert into dream_rows (change_seq, item, text, state, more, text_after, state_after, more_after) "
        "values (:change, :item, :text, :state, :more, :text_after, :state_after, :more_after)",
        change=change,
        item=one.memory_id,
        text=one.text,
        state=one.state,
        more=one.more,
        text_after=other.text,
        state_after=other.state,
        more_after=other.more,
    )
