"""Restores memories, candidates and goals to the state that their images hold, for an undo."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from csmd.knowledge import Link
from csmd.store import belief_changes, candidates, memories, memory_links, memory_scenes, topics, vectors
from csmd.store.belief_changes import TIMES
from csmd.store.memory_deletion import delete_all
from csmd.store.row_images import ANNOTATIONS, COLUMNS, Image, to_candidate
from csmd.store.sqlite import Rows
from csmd.vocabulary import NEVER

_COLUMN_NAMES = ", ".join(COLUMNS)
_SOURCE_COLUMNS = ("uuid", "session_id", "at", "role")


def restore(rows: Rows, images: Sequence[tuple[Image, Image]], *, at: str) -> None:
    """Makes memories, candidates and goals what they were before an act, given as (before it, after it).

    What the act left alone stays as it is now. What the act added to the audit is marked as undone.
    """
    of_memories = [(before, after) for before, after in images if before.is_memory]
    # All rows are recreated before any is linked with another, and before the rows that the act created are deleted.
    restored = [(before, after, _restore_row(rows, before, after)) for before, after in of_memories if before.state]
    for before, after, existed in restored:
        _restore_relations(rows, before, after, existed=existed, at=at)
    for before, _ in of_memories:
        if not before.state:
            delete_all(rows, rows.column("select seq from memories where id = :id", id=before.item))
    for before, _ in images:
        if before.is_candidate:
            _restore_candidate(rows, before)
        elif before.is_goal:
            _restore_goal(rows, before)


def _restore_row(rows: Rows, before: Image, after: Image) -> bool:
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
    """The columns before the act, or the current ones if the act left them alone; active days may have passed since."""
    values = {
        name: current[name] if value == after[name] and name != "version" else value for name, value in before.items()
    }
    for name in TIMES:
        is_limited = max(before[name], after[name], current[name]) < NEVER
        values[name] = current[name] + before[name] - after[name] if is_limited else before[name]
    return values


def _restore_relations(rows: Rows, before: Image, after: Image, *, existed: bool, at: str) -> None:
    """Gives a memory back its links, its items in receipts, its twin, its audit and its annotations."""
    seq = memories.seq_of(rows, before.item)
    _restore_links(rows, before, after, existed=existed)
    _restore_receipts(rows, before)
    if before.state["twin"]:
        rows.update("memories", seq, twin_of=memories.seq_of(rows, before.state["twin"]))
    _restore_changes(rows, before, after, at=at)
    for table in (*ANNOTATIONS, "tags"):
        old, new = before.more.get(table, []), after.more.get(table, [])  # an older csmd knew fewer tables
        for annotation in new:
            if annotation not in old:
                _remove_annotation(rows, seq, table, annotation[0])
        restore_annotations(rows, seq, table, [annotation for annotation in old if annotation not in new])


def _restore_links(rows: Rows, before: Image, after: Image, *, existed: bool) -> None:
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


def _restore_receipts(rows: Rows, before: Image) -> None:
    for receipt, score, reason, used, used_by in before.state["told"]:
        item = {"memory_id": before.item, "score": score, "reason": reason, "used": used, "used_by": used_by}
        for injection in rows.column("select seq from injections where id = :id", id=receipt):
            rows.insert("injection_items", "on conflict do nothing", injection_seq=injection, **item)


def _restore_changes(rows: Rows, before: Image, after: Image, *, at: str) -> None:
    """Makes a memory's audit what it was; the changes that the act added are marked as undone."""
    old = {change["seq"] for change in before.more["changes"]}
    added = {change["seq"] for change in after.more.get("changes", ())} - old
    for change in belief_changes.changes_of(rows, before.item):
        if change.seq in added and not change.undone_at:
            belief_changes.set_undone(rows, change.seq, at=at)
    sql = (
        "insert into belief_changes (seq, memory_id, change, before, after, reason, by_whom, at, undone_at) "
        "values (:seq, :memory_id, :change, :before, :after, :reason, :by, :at, :undone_at) "
        "on conflict (seq) do update set undone_at = excluded.undone_at"
    )
    for values in before.more["changes"]:
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


def _restore_candidate(rows: Rows, before: Image) -> None:
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


def _restore_goal(rows: Rows, before: Image) -> None:
    """Gives a goal its columns back, or deletes it if it did not exist."""
    if not before.state:
        rows.delete("goals", id=before.item)
        return
    for seq in rows.column("select seq from goals where id = :id", id=before.item):
        rows.update("goals", seq, text=before.text, **before.state)
