"""The audit of memories: who changed which one, when and why, and supersession, merging and archiving with their undo.

A row of the audit is never deleted while its memory exists; an undone change says when. The states before and after it
are written as `name=value` pairs, so that its undo gives back what it took and keeps what else has happened since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from csmd.knowledge import Link, Memory
from csmd.store import memories, memory_links
from csmd.store.sqlite import Rows, in_keys
from csmd.vocabulary import NEVER

#: Value of `by` for what a dream did.
DREAM = "dream"
#: The kinds of changes in the audit.
SUPERSEDED = "superseded"
MERGE = "merge"
#: The change of the memory that another memory was merged into.
ABSORBED = "took in"
ARCHIVE = "archive"
AUTHORITY = "authority"
#: A person has undone a supersession: `before` names the memory that must not supersede this one again.
REFUSED = "refused"
#: Acts that are recorded as events only.
UNDONE = "undone"
FORGOTTEN = "forgotten"
#: The link from a memory to the one that it was merged into.
MERGED_INTO = "merged_into"
#: The columns of a memory that hold a time in active days, which a supersession changes.
TIMES = ("hot_until", "warm_until", "archive_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of a memory.

    `by` is `rule`, `person`, `assistant` or `dream`, `undone_at` is "" unless it was undone.
    """

    seq: int
    memory_id: str
    change: str
    before: str
    after: str
    reason: str
    by: str
    at: str
    undone_at: str


def record_change(
    rows: Rows, memory_id: str, change: str, before: str, after: str, reason: str, by: str, at: str
) -> int:
    """Records a change of a memory; returns its row key."""
    words = {"change": change, "before": before, "after": after, "reason": reason}
    record_event(rows, memory_id, change, by=by, at=at)
    return rows.insert_keyed("belief_changes", memory_id=memory_id, **words, by_whom=by, at=at)


def record_event(rows: Rows, memory_id: str, act: str, *, by: str, at: str, about: str = "") -> None:
    """Records what was done to a memory for `csmd tail` (`csmd.store.activity`)."""
    project = rows.number("select project_seq from memories where id = :id", id=memory_id)
    rows.insert("memory_events", at=at, act=act, about=about, memory_id=memory_id, project_seq=project, by_whom=by)


def list_changes(rows: Rows, memory_id: str) -> list[Change]:
    """Returns the changes of a memory, in order."""
    sql = """select seq, memory_id, change, before, after, reason, by_whom, at, undone_at
        from belief_changes where memory_id = :id order by seq"""
    return rows.read(Change, sql, id=memory_id)


def latest_change(rows: Rows, memory_id: str, change: str = SUPERSEDED) -> Change | None:
    """Returns the latest change of a kind that was not undone; None if there is none."""
    changes = [row for row in list_changes(rows, memory_id) if row.change == change and not row.undone_at]
    return changes[-1] if changes else None


def list_refused_successors(rows: Rows, memory_id: str) -> frozenset[str]:
    """Returns the memories that must not supersede this one again, because a person said so."""
    return frozenset(
        change.before for change in list_changes(rows, memory_id) if change.change == REFUSED and not change.undone_at
    )


def set_undone(rows: Rows, seq: int, *, at: str) -> None:
    """Marks a change as undone; its row stays."""
    memory_id, change = rows.all("select memory_id, change from belief_changes where seq = :seq", seq=seq)[0]
    rows.update("belief_changes", seq, undone_at=at)
    record_event(rows, memory_id, UNDONE, by="", at=at, about=change)


def belief_state(memory: Memory) -> str:
    """Returns the columns that a supersession changes, as `name=value` pairs."""
    names = ("confidence", *TIMES, "superseded_by")
    return " ".join(f"{name}={getattr(memory, name)}" for name in names)


def parse_state(text: str) -> dict[str, str]:
    """Parses a state into its values by name."""
    return dict(pair.partition("=")[::2] for pair in text.split())


def confidence_in_state(text: str) -> float | None:
    """Returns the confidence (0-1) in a state; None if it has none."""
    confidence = parse_state(text).get("confidence", "")
    return float(confidence) if confidence.replace(".", "", 1).isdigit() else None


def undo_supersession(rows: Rows, change: Change, *, at: str) -> None:
    """Undoes a supersession: restores what it changed, and keeps what else has happened since."""
    memory = memories.by_id(rows, change.memory_id)
    if memory is None:
        return
    free = _revert_supersession(change, replace(memory, superseded_by=""))
    archived = latest_change(rows, memory.id, ARCHIVE)
    # A dream archived it because it was superseded.
    if archived is not None and archived.by == DREAM and archived.seq > change.seq:
        if memory.tier == "archive":
            free = replace(free, tier=archived.before)  # type: ignore[arg-type]  # a tier, as it was recorded
        set_undone(rows, archived.seq, at=at)
    memories.update_belief(rows, free)
    unlink(rows, memory.id, memory.superseded_by, "superseded_by")
    set_undone(rows, change.seq, at=at)


def _revert_supersession(change: Change, memory: Memory) -> Memory:
    """Returns a memory with the confidence and times from before a change; unchanged if a purge removed the figures."""
    before, after = parse_state(change.before), parse_state(change.after)
    if any(name not in before or name not in after for name in ("confidence", *TIMES)):
        return memory
    times: dict[str, Any] = {
        name: NEVER if int(before[name]) >= NEVER else int(getattr(memory, name)) + int(before[name]) - int(after[name])
        for name in TIMES
    }
    confidence = memory.confidence + float(before["confidence"]) - float(after["confidence"])
    return replace(memory, confidence=round(min(1.0, max(0.0, confidence)), 4), **times)


def pass_on_supersessions(rows: Rows, deleted_id: str, replacement: str) -> list[str]:
    """Passes what a deleted memory superseded on to its replacement.

    Without a replacement the superseded memories are active again; returns their ids.
    """
    restored: list[str] = []
    for memory_id in rows.column(
        "select id from memories where superseded_by = :id and superseded_by <> ''", id=deleted_id
    ):
        change = latest_change(rows, memory_id)
        if replacement in ("", memory_id, deleted_id):
            if change is not None:
                undo_supersession(rows, change, at=change.at)
                restored.append(memory_id)
                continue
            replacement = ""
        rows.run(
            "update memories set superseded_by = :replacement, version = version + 1 where id = :id",
            replacement=replacement,
            id=memory_id,
        )
    return restored


def unlink(rows: Rows, memory_id: str, other: str, relationship: str) -> None:
    """Deletes a link between two memories."""
    sql = """delete from links where relationship = :relationship and from_seq in (select seq
        from memories where id = :one) and to_seq in (select seq from memories where id = :other)"""
    rows.run(sql, relationship=relationship, one=memory_id, other=other)


def list_superseded_seqs(rows: Rows, projects: Sequence[int], *, limit: int) -> list[int]:
    """Returns the row keys of superseded memories of these projects, the latest confirmed first."""
    sql = f"""select seq from memories m where superseded_by <> '' and {in_keys("project_seq", projects)} and twin_of = 0
        and not exists (select 1 from links l where l.from_seq = m.seq and l.relationship = 'merged_into')
        order by confirmed_at desc, seq desc limit :limit"""  # noqa: S608
    return rows.column(sql, limit=limit)


def last_stated_at(rows: Rows, memory: Memory) -> str:
    """Returns when a memory was last stated with its own authority.

    An assistant's repetition of a user's words does not count; a source without a stored turn counts as the user's.
    """
    if memory.authority != "user":
        return memory.confirmed_at
    sql = "select p.uuid from provenance p join turns t on t.uuid = p.uuid where p.memory_seq = :seq and t.kind = 'assistant'"
    by_assistants = rows.column(sql, seq=memory.seq)
    return max(
        (source.at for source in memory.provenance if source.uuid not in by_assistants), default=memory.created_at
    )


def is_of_person(rows: Rows, memory: Memory) -> bool:
    """Whether a person has pinned, stated, reviewed or changed a memory, so that only they decide about it."""
    if memory.pinned or memory.origin != "stated":
        return True
    sql = """select 1 from change_sets where item = :id and by_whom = 'person'
        union all select 1 from change_sets where made = :id and by_whom = 'person' union all select 1
        from belief_changes where memory_id = :id and by_whom = 'person' and undone_at = '' limit 1"""
    return rows.exists(sql, id=memory.id)


def lower_authority(rows: Rows, memory: Memory, *, reason: str, by: str, now: str) -> None:
    """Gives a memory the assistant's authority, with a reason for the audit."""
    memories.update_belief(rows, replace(memory, authority="assistant"))
    record_change(rows, memory.id, AUTHORITY, memory.authority, "assistant", reason, by, now)


def find_surviving_memory(rows: Rows, memory: Memory) -> Memory:
    """Returns the memory that this one was merged into, or itself."""
    seen = {memory.id}
    while memory.superseded_by and memory.superseded_by not in seen and is_merged(rows, memory):
        successor = memories.by_id(rows, memory.superseded_by)
        if successor is None:
            return memory
        memory = successor
        seen.add(memory.id)
    return memory


def is_merged(rows: Rows, memory: Memory) -> bool:
    """Whether a memory was merged into another memory."""
    merged = "select 1 from links where from_seq = :seq and relationship = 'merged_into'"
    return rows.exists(merged, seq=memory.seq)


def list_merges(rows: Rows, merged: str, into: str) -> list[Change]:
    """Returns every merge of a memory into another memory, undone merges included."""
    return [change for change in list_changes(rows, merged) if change.change == MERGE and change.after == into]


def merge_memories(rows: Rows, merged: Memory, into: Memory, *, reason: str, by: str, now: str) -> None:
    """Merges a memory into `into`, which has its new values; the sources of the first confirm it."""
    stored = memories.by_seqs(rows, [into.seq])[into.seq]
    uuids = memories.add_confirming(rows, into.seq, merged.provenance)
    memories.update_belief(rows, replace(merged, tier="archive", superseded_by=into.id))
    memories.update_belief(rows, into)
    memory_links.add_link(rows, Link(from_id=merged.id, to_id=into.id, relationship=MERGED_INTO), now=now)
    record_change(rows, merged.id, MERGE, merged.tier, into.id, reason, by, now)
    after = " ".join([f"{into.confidence:.4f}", merged.id, *uuids])
    before = f"{stored.confidence:.4f} {stored.tier} {stored.used_at}".strip()
    record_change(rows, into.id, ABSORBED, before, after, reason, by, now)


def find_last_merge(rows: Rows, memory_id: str) -> tuple[Change, Change] | None:
    """Returns the merge of a memory that is not undone, and its change of the other memory; None if there is none."""
    merge = latest_change(rows, memory_id, MERGE)
    absorptions = [
        change
        for change in (list_changes(rows, merge.after) if merge else ())
        if change.change == ABSORBED and not change.undone_at and change.after.split()[1] == memory_id
    ]
    return (merge, absorptions[-1]) if merge and absorptions else None


def undo_merge(rows: Rows, merged: Memory, into: Memory, absorption: Change, merge: Change, *, now: str) -> None:
    """Undoes a merge: stores both memories as given, and removes the sources that the merge added to the other one."""
    for uuid in absorption.after.split()[2:]:
        rows.delete("provenance", memory_seq=into.seq, uuid=uuid)
    unlink(rows, merged.id, into.id, MERGED_INTO)
    memories.update_belief(rows, merged)
    memories.update_belief(rows, into)
    for change in (merge, absorption):
        set_undone(rows, change.seq, at=now)


def archive_memory(rows: Rows, memory: Memory, *, reason: str, by: str, now: str) -> None:
    """Archives a memory; it stays searchable."""
    memories.update_belief(rows, replace(memory, tier="archive"))
    record_change(rows, memory.id, ARCHIVE, memory.tier, "archive", reason, by, now)


def list_represented_ids(rows: Rows, memory_id: str) -> list[str]:
    """Returns the memories that one represents: those that it superseded or that were merged into it, and its twins."""
    sql = """select m.id from memories m where m.superseded_by = :id and m.superseded_by <> '' union select t.id
        from memories n join memories t on t.twin_of = n.seq and t.twin_of > 0 where n.id = :id order by 1"""
    return rows.column(sql, id=memory_id)
