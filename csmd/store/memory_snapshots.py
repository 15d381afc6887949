"""Snapshots of memories and candidates with their related rows, and of goals: take, compare and restore them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, NamedTuple

from csmd import wire
from csmd.knowledge import Candidate, Evidence, Link
from csmd.store import belief_changes, candidates, memories, memory_links, memory_scenes, topics, vectors
from csmd.store.belief_changes import TIMES
from csmd.store.memory_deletion import delete_all
from csmd.store.sqlite import Rows
from csmd.vocabulary import NEVER

#: The columns of a memory in a snapshot: all but row key, text and twin. `version` is included, so that a change can be
#: undone after a later one was.
COLUMNS = (
    "text_hash", "gate", "category", "type", "tier", "decay", "authority", "origin", "confidence", "scope", "project_seq",
    "session_id", "created_at", "confirmed_at", "used_at", "hot_until", "warm_until", "archive_at", "pinned",
    "superseded_by", "origin_seq", "version",
)  # fmt: skip
_COLUMNS_SQL = ", ".join(f"m.{name}" for name in COLUMNS)
#: Table -> the columns of an annotation of a memory; tags are read separately.
ANNOTATIONS = {
    "symptoms": ("uuid", "at", "text", "fingerprint"),
    "refutations": ("uuid", "at", "reason", "lowered"),
    "scenes": ("uuid", "text"),
    "judgements": ("uuid", "tell", "at"),
    "stands": ("uuid", "session_seq", "turns", "at"),
}
#: The columns of a goal in a snapshot: those that an act may change, and the time, which shows that it existed.
GOAL_COLUMNS = ("authority", "created_at", "done_at")
#: The fields of a candidate that hold words.
_CANDIDATE_WORDS = ("reason", "fingerprint")
_COLUMN_NAMES = ", ".join(COLUMNS)
_SOURCE_COLUMNS = ("uuid", "session_id", "at", "role")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Snapshot(NamedTuple):
    """A memory, candidate or goal at one moment; `state` is empty if it did not exist.

    `details` holds text besides `text`: a memory's change history and annotations, or a candidate's reason. `state` holds
    the rest. Both are JSON objects.
    """

    item: str
    text: str = ""
    state: Mapping[str, Any] = _NOTHING
    details: Mapping[str, Any] = _NOTHING

    @property
    def is_candidate(self) -> bool:
        """Whether the snapshot is of a review candidate."""
        return self.item.startswith("c")

    @property
    def is_goal(self) -> bool:
        """Whether the snapshot is of a goal."""
        return self.item.startswith("g")

    @property
    def is_memory(self) -> bool:
        """Whether the snapshot is of a memory."""
        return not (self.is_candidate or self.is_goal)

    @property
    def content(self) -> dict[str, Any]:
        """The item's own fields by name, without links and receipts; {} if it did not exist."""
        if not self.state:
            return {}
        if not self.is_memory:
            return {**self.state, **self.details, "text": self.text}
        state = self.state
        return {**state["columns"], "text": self.text, "twin": state["twin"], "sources": state["sources"]}

    @property
    def outgoing_links(self) -> list[list[Any]]:
        """(id, other id, relationship, weight, time) of the links that begin at the memory."""
        return [link for link in self.state.get("links", ()) if link[0] == self.item]

    def without_receipts(self) -> Snapshot:
        """Returns the snapshot without the sessions that were shown the memory: a removal alone needs them."""
        return self._replace(state={**self.state, "told": []}) if "told" in self.state else self


class MemoryContent(NamedTuple):
    """The parts of a memory's snapshot, before they are JSON."""

    text: str
    state: dict[str, Any]
    details: dict[str, Any]


# --- taking and comparing


def take_snapshots(rows: Rows, ids: Iterable[str]) -> list[Snapshot]:
    """Returns the present snapshots of memories, candidates and goals, each once."""
    return [_take_snapshot(rows, item) for item in dict.fromkeys(ids) if item]


def _take_snapshot(rows: Rows, item: str) -> Snapshot:
    if item.startswith("c"):
        candidate = candidates.by_id(rows, item)
        if candidate is None:
            return Snapshot(item)
        values = _as_json(asdict(candidate))
        details = {name: values.pop(name) for name in _CANDIDATE_WORDS}
        return Snapshot(item, values.pop("text"), values, details)
    if item.startswith("g"):
        goal = rows.first("select text, authority, created_at, done_at from goals where id = :id", id=item)
        return Snapshot(item, goal[0], dict(zip(GOAL_COLUMNS, goal[1:], strict=True))) if goal else Snapshot(item)
    memory = read_memory(rows, item)
    if memory is None:
        return Snapshot(item)
    return Snapshot(item, memory.text, _as_json(memory.state), _as_json(memory.details))


def _as_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """Round-trips a value through JSON, so that fresh and stored snapshots compare equal."""
    return dict(wire.loads(wire.dumps(value)))


def read_memory(rows: Rows, memory_id: str) -> MemoryContent | None:
    """Returns what a snapshot has of a memory; None if there is no such memory."""
    sql = f"""select m.text, coalesce(t.id, ''), m.seq, {_COLUMNS_SQL}
        from memories m left join memories t on t.seq = m.twin_of and m.twin_of > 0 where m.id = :id"""  # noqa: S608
    row = rows.first(sql, id=memory_id)
    if row is None:
        return None
    text, twin, seq, *values = row
    links = """select f.id, t.id, l.relationship, l.weight, l.created_at
        from links l join memories f on f.seq = l.from_seq
        join memories t on t.seq = l.to_seq where l.from_seq = :seq or l.to_seq = :seq order by 1, 2, 3"""
    sources = "select uuid, session_id, at, role from provenance where memory_seq = :seq order by uuid"
    injected = """select n.id, i.score, i.reason, i.used, i.used_by
        from injection_items i join injections n on n.seq = i.injection_seq where i.memory_id = :id order by n.seq"""
    state = {
        "twin": twin,
        "columns": dict(zip(COLUMNS, values, strict=True)),
        "sources": rows.all(sources, seq=seq),
        "links": rows.all(links, seq=seq),
        "told": rows.all(injected, id=memory_id),
    }
    changes = [asdict(change) for change in belief_changes.list_changes(rows, memory_id)]
    return MemoryContent(text, state, {"changes": changes, **_read_annotations(rows, seq)})


def _read_annotations(rows: Rows, seq: int) -> dict[str, list[Any]]:
    """Returns the annotations of a memory by table, and its tags (name, by whom, weight), in order."""
    annotations = {
        table: rows.all(f"select {', '.join(names)} from {table} where memory_seq = :seq order by uuid", seq=seq)  # noqa: S608
        for table, names in ANNOTATIONS.items()
    }
    sql = """select t.name, x.by_whom, x.weight
        from memory_topics x join topics t on t.seq = x.topic_seq where x.memory_seq = :seq order by t.name"""
    tags = rows.all(sql, seq=seq)
    return {**annotations, "tags": tags}


def differs(before: Snapshot, after: Snapshot) -> bool:
    """Whether an item changed between two snapshots; its receipts and incoming links are ignored."""
    return _comparable(before) != _comparable(after)


def _comparable(snapshot: Snapshot) -> tuple[Any, ...]:
    state = {**snapshot.state, "told": [], "links": snapshot.outgoing_links} if snapshot.state else {}
    return snapshot.text, snapshot.details, state


def rebuild_snapshot(rows: Rows, before: Snapshot, version: int) -> Snapshot:
    """Rebuilds the snapshot after an answer of which only the version was stored; version 0: the memory was removed."""
    current = _take_snapshot(rows, before.item)
    if not before.is_memory or not current.state:
        return before if version else current
    if not version:
        return Snapshot(before.item)
    links = [link for link in before.state.get("links", ()) if link[2] != "superseded_by"]
    links += [link for link in current.outgoing_links if link[2] == "superseded_by"]
    state = {**current.state, "columns": {**current.state["columns"], "version": version}, "links": links}
    return current._replace(state=state, details={**before.details, "changes": current.details["changes"]})


def to_candidate(snapshot: Snapshot) -> Candidate:
    """Rebuilds the candidate from its snapshot."""
    values = {**snapshot.content, "memory_ids": tuple(snapshot.state["memory_ids"])}
    values["evidence"] = tuple(Evidence(**row) for row in snapshot.state["evidence"])
    return Candidate(**values)


# --- restoring


def restore(rows: Rows, snapshots: Sequence[tuple[Snapshot, Snapshot]], *, at: str) -> None:
    """Makes memories, candidates and goals what they were before an act, given as (before it, after it).

    What the act left alone stays as it is now. What the act added to the audit is marked as undone.
    """
    of_memories = [(before, after) for before, after in snapshots if before.is_memory]
    # All rows are recreated before any is linked with another, and before the rows that the act created are deleted.
    restored = [(before, after, _restore_row(rows, before, after)) for before, after in of_memories if before.state]
    for before, after, existed in restored:
        _restore_relations(rows, before, after, existed=existed, at=at)
    for before, _ in of_memories:
        if not before.state:
            delete_all(rows, rows.column("select seq from memories where id = :id", id=before.item))
    for before, _ in snapshots:
        if before.is_candidate:
            _restore_candidate(rows, before)
        elif before.is_goal:
            _restore_goal(rows, before)


def _restore_row(rows: Rows, before: Snapshot, after: Snapshot) -> bool:
    """Gives a memory its columns and sources back, creating it if it is gone; returns whether it existed."""
    stored = rows.first(f"select seq, text, {_COLUMN_NAMES} from memories where id = :id", id=before.item)  # noqa: S608
    values = before.state["columns"]
    if stored is None:
        project = rows.find("projects", "merged_into", seq=values["project_seq"]) or values["project_seq"]
        seq = rows.insert_keyed("memories", **{**values, "project_seq": project}, id=before.item, text=before.text)
    else:
        seq, text, *current = stored
        if after.state:
            values = _merge_columns(values, after.state["columns"], dict(zip(COLUMNS, current, strict=True)))
        rows.update("memories", seq, **values, text=before.text)
        if text != before.text:
            vectors.reembed(rows, "memory", seq)
    rows.delete("provenance", memory_seq=seq)
    for source in before.state["sources"]:
        rows.insert("provenance", memory_seq=seq, **dict(zip(_SOURCE_COLUMNS, source, strict=True)))
    return stored is not None


def _merge_columns(before: dict[str, Any], after: dict[str, Any], current: dict[str, Any]) -> dict[str, Any]:
    """Returns the columns from before the act, or the current ones if the act left them alone; times keep their age."""
    values = {
        name: current[name] if value == after[name] and name != "version" else value for name, value in before.items()
    }
    for name in TIMES:
        is_limited = max(before[name], after[name], current[name]) < NEVER
        values[name] = current[name] + before[name] - after[name] if is_limited else before[name]
    return values


def _restore_relations(rows: Rows, before: Snapshot, after: Snapshot, *, existed: bool, at: str) -> None:
    """Gives a memory back its links, its items in receipts, its twin, its audit and its annotations."""
    seq = memories.find_seq(rows, before.item)
    _restore_links(rows, before, after, existed=existed)
    _restore_receipts(rows, before)
    if before.state["twin"]:
        rows.update("memories", seq, twin_of=memories.find_seq(rows, before.state["twin"]))
    _restore_changes(rows, before, after, at=at)
    for table in (*ANNOTATIONS, "tags"):
        old, new = before.details.get(table, []), after.details.get(table, [])  # an older csmd knew fewer tables
        for annotation in new:
            if annotation not in old:
                _remove_annotation(rows, seq, table, annotation[0])
        restore_annotations(rows, seq, table, [annotation for annotation in old if annotation not in new])


def _restore_links(rows: Rows, before: Snapshot, after: Snapshot, *, existed: bool) -> None:
    links = before.state["links"]
    if existed and after.state:
        # A link belongs to the memory that it begins at.
        links = [link for link in before.outgoing_links if link not in after.state["links"]]
        for link in after.outgoing_links:
            if link not in before.outgoing_links:
                belief_changes.unlink(rows, *link[:3])
    for origin, target, relationship, weight, linked_at in links:
        restored = Link(from_id=origin, to_id=target, relationship=relationship, weight=weight)
        memory_links.add_link(rows, restored, now=linked_at)


def _restore_receipts(rows: Rows, before: Snapshot) -> None:
    for receipt, score, reason, used, used_by in before.state["told"]:
        item = {"memory_id": before.item, "score": score, "reason": reason, "used": used, "used_by": used_by}
        for injection in rows.column("select seq from injections where id = :id", id=receipt):
            rows.insert("injection_items", "on conflict do nothing", injection_seq=injection, **item)


def _restore_changes(rows: Rows, before: Snapshot, after: Snapshot, *, at: str) -> None:
    """Makes a memory's audit what it was; the changes that the act added are marked as undone."""
    old = {change["seq"] for change in before.details["changes"]}
    added = {change["seq"] for change in after.details.get("changes", ())} - old
    for change in belief_changes.list_changes(rows, before.item):
        if change.seq in added and not change.undone_at:
            belief_changes.set_undone(rows, change.seq, at=at)
    sql = """insert into belief_changes (seq, memory_id, change, before, after, reason, by_whom, at, undone_at)
        values (:seq, :memory_id, :change, :before, :after, :reason, :by, :at, :undone_at)
        on conflict (seq) do update set undone_at = excluded.undone_at"""
    for values in before.details["changes"]:
        rows.run(sql, **values)


def restore_annotations(rows: Rows, seq: int, table: str, annotations: Iterable[Sequence[Any]]) -> None:
    """Gives a memory back its annotations of a table; those recorded since stay."""
    for row in annotations:
        if table == "tags":  # a topic is deleted with its last memory
            project = rows.find("memories", "project_seq", seq=seq)
            tag = {"topic_seq": topics.ensure_topic(rows, project, row[0]), "by_whom": row[1], "weight": row[2]}
            rows.insert("memory_topics", "on conflict do nothing", memory_seq=seq, **tag)
        elif table == "scenes":
            memory_scenes.set_scene(rows, seq, uuid=row[0], text=row[1])
        else:
            values = dict(zip(ANNOTATIONS[table], row, strict=True))
            rows.insert(table, "on conflict do nothing", memory_seq=seq, **values)


def _remove_annotation(rows: Rows, seq: int, table: str, key: str) -> None:
    if table != "tags":
        rows.run(f"delete from {table} where memory_seq = :seq and uuid = :key", seq=seq, key=key)  # noqa: S608
        return
    sql = (
        "delete from memory_topics where memory_seq = :seq and topic_seq in (select seq from topics where name = :key)"
    )
    rows.run(sql, seq=seq, key=key)


def _restore_candidate(rows: Rows, before: Snapshot) -> None:
    """Makes a candidate what it was, unless it has been settled otherwise since."""
    stored = candidates.by_id(rows, before.item)
    if not before.state:
        if stored is not None and stored.status in candidates.WAITING:
            candidates.remove(rows, stored)
        return
    candidate = to_candidate(before)
    if candidates.is_waiting(rows, candidate):
        return
    if stored is None:
        candidates.put_candidate(rows, candidate)
    else:
        candidates.update_stored(rows, stored, candidate)
    rows.run("update candidates set version = :version where id = :id", version=candidate.version, id=candidate.id)


def _restore_goal(rows: Rows, before: Snapshot) -> None:
    """Gives a goal its columns back, or deletes it if it did not exist."""
    if not before.state:
        rows.delete("goals", id=before.item)
        return
    for seq in rows.column("select seq from goals where id = :id", id=before.item):
        rows.update("goals", seq, text=before.text, **before.state)
