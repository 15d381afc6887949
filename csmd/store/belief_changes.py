"""How beliefs changed and why: the audit of what was superseded, merged, promoted, edited or archived, and its undoing.

Nothing is taken out of it; what was undone says when. A state is written as `name=value` pairs, so that an undo can
give back what the change took and leave alone what else has happened since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from csmd.model import NEVER, Memory
from csmd.store.sqlite import Rows

SUPERSEDED = "superseded"
#: As `by`: what a dream did.
DREAM = "dream"
#: A person has undone a supersession: `before` names the memory that is not to supersede this one again.
REFUSED = "refused"
#: The columns that a supersession changes; the times in active days come last.
_TIMES = ("hot_until", "warm_until", "archive_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of a belief; `by` is `rule`, `person` or `assistant`, `undone_at` "" while it stands."""

    seq: int
    memory_id: str
    change: str
    before: str
    after: str
    reason: str
    by: str
    at: str
    undone_at: str


def note(rows: Rows, memory_id: str, change: str, before: str, after: str, reason: str, by: str, at: str) -> int:
    """Writes down that a belief changed; the change's row key."""
    return rows.insert_keyed(
        "belief_changes",
        memory_id=memory_id,
        change=change,
        before=before,
        after=after,
        reason=reason,
        by_whom=by,
        at=at,
    )


def changes_of(rows: Rows, memory_id: str) -> list[Change]:
    """What happened to a belief, in order."""
    return [
        Change(seq=a, memory_id=b, change=c, before=d, after=e, reason=f, by=g, at=h, undone_at=i)
        for a, b, c, d, e, f, g, h, i in rows.all(
            "select seq, memory_id, change, before, after, reason, by_whom, at, undone_at from belief_changes "
            "where memory_id = :id order by seq",
            id=memory_id,
        )
    ]


def standing(rows: Rows, memory_id: str, change: str = SUPERSEDED) -> Change | None:
    """The latest change of a kind that was not undone, or None."""
    found = [one for one in changes_of(rows, memory_id) if one.change == change and not one.undone_at]
    return found[-1] if found else None


def refused(rows: Rows, memory_id: str) -> frozenset[str]:
    """The memories that are not to supersede this one again: a person said so."""
    return frozenset(one.before for one in changes_of(rows, memory_id) if one.change == REFUSED)


def state(memory: Memory) -> str:
    """What a supersession changes of a memory, as it is now."""
    times = (memory.hot_until, memory.warm_until, memory.archive_at)
    parts = [f"confidence={memory.confidence}", *(f"{name}={value}" for name, value in zip(_TIMES, times, strict=True))]
    return " ".join([*parts, f"superseded_by={memory.superseded_by}"])


def read_state(said: str) -> dict[str, str]:
    """A written state's values by name."""
    return dict(pair.partition("=")[::2] for pair in said.split())


def lift(rows: Rows, change: Change, *, at: str) -> None:
    """Undoes a supersession: what it took is given back, and nothing of what else has happened since is lost."""
    found = rows.one(
        "select confidence, hot_until, warm_until, archive_at, superseded_by from memories where id = :id",
        id=change.memory_id,
    )
    if found is None:
        return
    *now, successor = found
    confidence, hot, warm, archive = _given_back(change, now)
    rows.run(
        "update memories set confidence = :confidence, superseded_by = '', hot_until = :hot, warm_until = :warm, "
        "archive_at = :archive, version = version + 1 where id = :id",
        confidence=confidence,
        hot=hot,
        warm=warm,
        archive=archive,
        id=change.memory_id,
    )
    unlink(rows, change.memory_id, str(successor), "superseded_by")
    rows.run("update belief_changes set undone_at = :at where seq = :seq", at=at, seq=change.seq)
    gone = standing(rows, change.memory_id, "archive")
    if gone is not None and gone.by == DREAM and gone.seq > change.seq:  # it went because it was superseded
        rows.run(
            "update memories set tier = :tier where id = :id and tier = 'archive'",
            tier=gone.before,
            id=change.memory_id,
        )
        set_undone(rows, gone.seq, at=at)


def _given_back(change: Change, now: Sequence[float]) -> tuple[float, int, int, int]:
    """Confidence and times with what a change took; as they are where a purge left no figures to read."""
    before, after = read_state(change.before), read_state(change.after)
    names = ("confidence", *_TIMES)
    if any(name not in before or name not in after for name in names):
        return float(now[0]), int(now[1]), int(now[2]), int(now[3])
    hot, warm, archive = (
        NEVER if int(before[name]) >= NEVER else int(value) + int(before[name]) - int(after[name])
        for name, value in zip(_TIMES, now[1:], strict=True)
    )
    confidence = float(now[0]) + float(before["confidence"]) - float(after["confidence"])
    return round(min(1.0, max(0.0, confidence)), 4), hot, warm, archive


def sureness(said: str) -> float | None:
    """The confidence (0-1) that a written state names; None for one that names none."""
    found = read_state(said).get("confidence", "")
    return float(found) if found.replace(".", "", 1).isdigit() else None


def put_back(
    rows: Rows,
    memory_id: str,
    known: Sequence[Mapping[str, object]],
    *,
    at: str,
    since: Sequence[Mapping[str, object]] | None = None,
) -> None:
    """Makes a memory's audit what it was, changes as `asdict` gives them; what was noted since is marked as undone.

    That is all that is not `known`, or of `since` that.
    """
    keys = _keys(known)
    among = "" if since is None else f"and seq in ({_keys(since)})"
    rows.run(
        f"update belief_changes set undone_at = :at where memory_id = :id and undone_at = '' and seq not in ({keys}) {among}",  # noqa: S608
        at=at,
        id=memory_id,
    )
    for one in known:
        rows.run(
            "insert into belief_changes (seq, memory_id, change, before, after, reason, by_whom, at, undone_at) "
            "values (:seq, :memory_id, :change, :before, :after, :reason, :by, :at, :undone_at) "
            "on conflict (seq) do update set undone_at = excluded.undone_at",
            **one,
        )


def _keys(changes: Sequence[Mapping[str, object]]) -> str:
    return ", ".join(str(int(str(one["seq"]))) for one in changes) or "0"


def inherit(rows: Rows, gone: str, heir: str) -> list[str]:
    """What a memory superseded that is no more is superseded by its heir; without one it holds again: the ids of those."""
    lifted: list[str] = []
    for (ident,) in rows.all("select id from memories where superseded_by = :id and superseded_by <> ''", id=gone):
        change = standing(rows, str(ident))
        if heir in ("", ident, gone):
            if change is not None:
                lift(rows, change, at=change.at)
                lifted.append(str(ident))
                continue
            heir = ""
        rows.run("update memories set superseded_by = :heir, version = version + 1 where id = :id", heir=heir, id=ident)
    return lifted


def unlink(rows: Rows, one: str, other: str, relationship: str) -> None:
    """Takes away an edge between two memories."""
    rows.run(
        "delete from links where relationship = :relationship and from_seq in (select seq from memories where id = :one) "
        "and to_seq in (select seq from memories where id = :other)",
        relationship=relationship,
        one=one,
        other=other,
    )


def overturned(rows: Rows, uuids: Sequence[str]) -> list[tuple[str, str, str]]:
    """(turn's uuid, what was superseded, by which memory) of what the turns state that no longer holds.

    What was merged holds: it is said by the memory that took it in.
    """
    found: list[tuple[str, str, str]] = []
    for uuid in uuids:
        found += [
            (uuid, str(said), str(heir))
            for said, heir in rows.all(
                "select m.text, m.superseded_by from provenance p join memories m on m.seq = p.memory_seq "
                "where p.uuid = :uuid and m.superseded_by <> '' and not exists (select 1 from links l "
                "where l.from_seq = m.seq and l.relationship = 'merged_into') order by m.seq",
                uuid=uuid,
            )
        ]
    return found


def superseded(rows: Rows, projects: Sequence[int], *, limit: int) -> list[int]:
    """The row keys of what was superseded in these projects, what was last said latest first."""
    keys = ", ".join(str(int(project)) for project in projects) or "0"
    found = rows.all(
        f"select seq from memories m where superseded_by <> '' and project_seq in ({keys}) and twin_of = 0 "  # noqa: S608
        "and not exists (select 1 from links l where l.from_seq = m.seq and l.relationship = 'merged_into') "
        "order by confirmed_at desc, seq desc limit :limit",
        limit=limit,
    )
    return [int(seq) for (seq,) in found]


def states(rows: Rows, memory_ids: Sequence[str]) -> dict[str, frozenset[str]]:
    """Memory -> the turns that state or confirm it."""
    return {
        ident: frozenset(
            str(uuid)
            for (uuid,) in rows.all(
                "select p.uuid from provenance p join memories m on m.seq = p.memory_seq where m.id = :id", id=ident
            )
        )
        for ident in memory_ids
    }


def stated_at(rows: Rows, memory: Memory) -> str:
    """When a memory was last stated with the authority that it has: what an assistant repeats is no newer for that.

    A turn of the user's words counts for what users said; one that no turn is kept of counts for what it was.
    """
    if memory.authority != "user":
        return memory.confirmed_at
    spoken = {
        str(uuid): str(kind)
        for uuid, kind in rows.all(
            "select p.uuid, t.kind from provenance p join turns t on t.uuid = p.uuid where p.memory_seq = :seq",
            seq=memory.seq,
        )
    }
    said = [one.at for one in memory.provenance if spoken.get(one.uuid, "user") != "assistant"]
    return max(said, default=memory.created_at)


def set_undone(rows: Rows, seq: int, *, at: str) -> None:
    """Marks a change as undone; its row stays."""
    rows.run("update belief_changes set undone_at = :at where seq = :seq", at=at, seq=seq)
