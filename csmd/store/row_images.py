"""Images of memories and candidates: a row with all that belongs to it at one moment, compared and restored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from csmd import wire
from csmd.knowledge import Candidate, Evidence, Link
from csmd.store import belief_changes, candidates, memory_links, memory_scenes, topics, vectors
from csmd.store.belief_changes import TIMES
from csmd.store.memory_deletion import delete_all
from csmd.store.sqlite import Rows
from csmd.vocabulary import NEVER

#: The columns of a memory that an image holds: all but its row key, its text and its twin. The version is among them,
#: so that after an undo the change before can be undone as well.
COLUMNS = (
    "text_hash", "gate", "category", "type", "tier", "decay", "authority", "origin", "confidence", "scope", "project_seq",
    "session_id", "created_at", "confirmed_at", "used_at", "hot_until", "warm_until", "archive_at", "pinned",
    "superseded_by", "origin_seq", "version",
)  # fmt: skip
_NAMES = ", ".join(COLUMNS)
_READ = ", ".join(f"m.{name}" for name in COLUMNS)
_SOURCE_COLUMNS = ("uuid", "session_id", "at", "role")
#: What others recorded of a memory, by table; its topics come under `tags` besides.
ANNOTATIONS = {
    "symptoms": ("uuid", "at", "text", "fingerprint"),
    "refutations": ("uuid", "at", "reason", "lowered"),
    "scenes": ("uuid", "text"),
    "judgements": ("uuid", "tell", "at"),
    "stands": ("uuid", "session_seq", "turns", "at"),
}
#: The fields of a candidate that hold words.
_CANDIDATE_WORDS = ("reason", "fingerprint")


class Image(NamedTuple):
    """One memory or candidate at one moment; `state` is empty if it did not exist.

    `state` and `more` are JSON objects: `more` holds the words besides `text`, which of a memory are its audit and what
    others recorded of it, `state` everything else.
    """

    item: str
    text: str = ""
    state: Mapping[str, Any] = {}
    more: Mapping[str, Any] = {}

    @property
    def is_candidate(self) -> bool:
        """Whether it is of a candidate of the queue."""
        return self.item.startswith("c")

    @property
    def content(self) -> dict[str, Any]:
        """What the memory or candidate is, by name, without what others do with it; {} if it did not exist."""
        if not self.state:
            return {}
        if self.is_candidate:
            return {**self.state, **self.more, "text": self.text}
        state = self.state
        return {**state["columns"], "text": self.text, "twin": state["twin"], "sources": state["sources"]}

    @property
    def outgoing_links(self) -> list[list[Any]]:
        """(id, other id, relationship, weight, time) of the links that begin at the memory."""
        return [link for link in self.state.get("links", ()) if link[0] == self.item]

    def without_receipts(self) -> Image:
        """The image without the sessions that were shown the memory: these matter only if it is removed."""
        return self._replace(state={**self.state, "told": []}) if "told" in self.state else self


def take_images(rows: Rows, idents: Iterable[str]) -> list[Image]:
    """Images of memories and candidates as they are now, each once."""
    return [_image(rows, ident) for ident in dict.fromkeys(idents) if ident]


def _image(rows: Rows, ident: str) -> Image:
    if ident.startswith("c"):
        candidate = candidates.by_id(rows, ident)
        if candidate is None:
            return Image(ident)
        values = _as_json(asdict(candidate))
        more = {name: values.pop(name) for name in _CANDIDATE_WORDS}
        return Image(ident, values.pop("text"), values, more)
    memory = memory_values(rows, ident)
    if memory is None:
        return Image(ident)
    text, state, more = memory
    return Image(ident, text, _as_json(state), _as_json(more))


def _as_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """A value as it is read again from JSON, so that fresh and stored images compare."""
    return dict(wire.loads(wire.dumps(value)))


def memory_values(rows: Rows, ident: str) -> tuple[str, dict[str, Any], dict[str, Any]] | None:
    """Returns (text, state, more) of a memory as an image has them; None if there is no such memory."""
    row = rows.first(
        f"select m.text, coalesce(t.id, ''), m.seq, {_READ} from memories m "  # noqa: S608
        "left join memories t on t.seq = m.twin_of and m.twin_of > 0 where m.id = :id",
        id=ident,
    )
    if row is None:
        return None
    text, twin, seq, *values = row
    links = (
        "select f.id, t.id, l.relationship, l.weight, l.created_at from links l join memories f on f.seq = l.from_seq "
        "join memories t on t.seq = l.to_seq where l.from_seq = :seq or l.to_seq = :seq order by 1, 2, 3"
    )
    sources = "select uuid, session_id, at, role from provenance where memory_seq = :seq order by uuid"
    injected = (
        "select n.id, i.score, i.reason, i.used, i.used_by from injection_items i join injections n on n.seq = i.injection_seq "
        "where i.memory_id = :id order by n.seq"
    )
    state = {
        "twin": twin,
        "columns": dict(zip(COLUMNS, values, strict=True)),
        "sources": rows.all(sources, seq=seq),
        "links": rows.all(links, seq=seq),
        "told": rows.all(injected, id=ident),
    }
    changes = [asdict(change) for change in belief_changes.changes_of(rows, ident)]
    return text, state, {"changes": changes, **_annotations(rows, seq)}


def _annotations(rows: Rows, seq: int) -> dict[str, list[Any]]:
    """What others recorded of a memory, by table, and its tags (name, by whom, weight), in order."""
    annotations = {
        table: rows.all(f"select {', '.join(names)} from {table} where memory_seq = :seq order by uuid", seq=seq)  # noqa: S608
        for table, names in ANNOTATIONS.items()
    }
    tags = rows.all(
        "select t.name, x.by_whom, x.weight from memory_topics x join topics t on t.seq = x.topic_seq "
        "where x.memory_seq = :seq order by t.name",
        seq=seq,
    )
    return {**annotations, "tags": tags}


def differs(before: Image, after: Image) -> bool:
    """Whether a memory or candidate changed between two images; who was shown it, or links to it, does not count."""
    return _comparable(before) != _comparable(after)


def _comparable(image: Image) -> tuple[Any, ...]:
    state = {**image.state, "told": [], "links": image.outgoing_links} if image.state else {}
    return image.text, image.more, state


def image_of_version(rows: Rows, before: Image, version: int) -> Image:
    """Returns the image after an old answer, of which only the version it left is stored (0 for a removed memory)."""
    now = _image(rows, before.item)
    if before.is_candidate or not now.state:
        return before if version else now
    if not version:
        return Image(before.item)
    replaced = [link for link in now.outgoing_links if link[2] == "superseded_by"]
    state = {**now.state, "columns": {**now.state["columns"], "version": version}}
    state["links"] = [link for link in before.state.get("links", ()) if link[2] != "superseded_by"] + replaced
    return now._replace(state=state, more={**before.more, "changes": now.more["changes"]})


# --- restoring


def restore(rows: Rows, images: Sequence[tuple[Image, Image]], *, at: str) -> None:
    """Makes memories and candidates what they were before an act, given as (before it, after it).

    What the act left alone stays as it is now. What the act added to the audit is marked as undone.
    """
    touched = [pair for pair in images if not pair[0].is_candidate]
    # All of them exist before any of them is linked with another, and before what the act made goes.
    restored = [(was, then, _restore_row(rows, was, then)) for was, then in touched if was.state]
    for was, then, existed in restored:
        _restore_relations(rows, was, then, existed=existed, at=at)
    for was, _ in touched:
        if not was.state:
            delete_all(rows, rows.column("select seq from memories where id = :id", id=was.item))
    for was, _ in images:
        if was.is_candidate:
            _restore_candidate(rows, was)


def _restore_row(rows: Rows, was: Image, then: Image) -> bool:
    """Gives a memory its columns and sources back, creating it if it is gone; returns whether it existed."""
    now = rows.first(f"select seq, text, {_NAMES} from memories where id = :id", id=was.item)  # noqa: S608
    values = was.state["columns"]
    if now is not None and then.state:
        values = _restored_columns(values, then.state["columns"], dict(zip(COLUMNS, now[2:], strict=True)))
    values = {**values, "id": was.item, "text": was.text}
    if now is None:
        merged = rows.find("projects", "merged_into", seq=values["project_seq"])
        seq = rows.insert_keyed("memories", **{**values, "project_seq": merged or values["project_seq"]})
    else:
        seq = now[0]
        rows.update("memories", seq, **values)
        if now[1] != was.text:
            vectors.reembed(rows, "memory", seq)
    rows.delete("provenance", memory_seq=seq)
    for source in was.state["sources"]:
        rows.insert("provenance", memory_seq=seq, **dict(zip(_SOURCE_COLUMNS, source, strict=True)))
    return now is not None


def _restored_columns(was: dict[str, Any], then: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """The columns before the act, but as they are now if the act left them alone; active days may have passed since."""
    values = {name: was[name] if was[name] != then[name] or name == "version" else now[name] for name in was}
    for name in TIMES:
        is_limited = max(was[name], then[name], now[name]) < NEVER
        values[name] = now[name] + was[name] - then[name] if is_limited else was[name]
    return values


def _restore_relations(rows: Rows, was: Image, then: Image, *, existed: bool, at: str) -> None:
    """Gives a memory back its links, its place in receipts, its audit and what others recorded of it."""
    seq, links = rows.number("select seq from memories where id = :id", id=was.item), was.state["links"]
    if existed and then.state:
        # A link belongs to the memory that it begins at.
        links = [link for link in was.outgoing_links if link not in then.state["links"]]
        for link in then.outgoing_links:
            if link not in was.outgoing_links:
                belief_changes.unlink(rows, *link[:3])
    for origin, target, relationship, weight, linked_at in links:
        restored = Link(from_id=origin, to_id=target, relationship=relationship, weight=weight)
        memory_links.add_link(rows, restored, now=linked_at)
    for receipt, score, reason, used, used_by in was.state["told"]:
        shown = {"memory_id": was.item, "score": score, "reason": reason, "used": used, "used_by": used_by}
        for injection in rows.column("select seq from injections where id = :id", id=receipt):
            rows.insert("injection_items", "on conflict do nothing", injection_seq=injection, **shown)
    if was.state["twin"]:
        rows.update(
            "memories", seq, twin_of=rows.number("select seq from memories where id = :id", id=was.state["twin"])
        )
    _restore_changes(rows, was, then, at=at)
    for table in (*ANNOTATIONS, "tags"):
        before, after = was.more.get(table, []), then.more.get(table, [])  # an older csmd knew fewer tables
        for row in after:
            if row not in before:
                _remove_annotation(rows, seq, table, row[0])
        restore_annotations(rows, seq, table, [row for row in before if row not in after])


def _restore_changes(rows: Rows, was: Image, then: Image, *, at: str) -> None:
    """Makes a memory's audit what it was; what the act added is marked as undone."""
    before = {change["seq"] for change in was.more["changes"]}
    added = {change["seq"] for change in then.more.get("changes", ())} - before
    for change in belief_changes.changes_of(rows, was.item):
        if change.seq in added and not change.undone_at:
            belief_changes.set_undone(rows, change.seq, at=at)
    for change in was.more["changes"]:
        rows.run(
            "insert into belief_changes (seq, memory_id, change, before, after, reason, by_whom, at, undone_at) "
            "values (:seq, :memory_id, :change, :before, :after, :reason, :by, :at, :undone_at) "
            "on conflict (seq) do update set undone_at = excluded.undone_at",
            **change,
        )


def restore_annotations(rows: Rows, seq: int, table: str, annotations: Iterable[Sequence[Any]]) -> None:
    """Gives a memory back what others recorded of it; what was recorded since stays."""
    for row in annotations:
        if table == "tags":  # a topic goes with its last memory
            project = rows.find("memories", "project_seq", seq=seq)
            tag = {"topic_seq": topics.ensure_topic(rows, project, row[0]), "by_whom": row[1], "weight": row[2]}
            rows.insert("memory_topics", "on conflict do nothing", memory_seq=seq, **tag)
        elif table == "scenes":
            memory_scenes.set_scene(rows, seq, uuid=row[0], text=row[1])
        else:
            values = dict(zip(ANNOTATIONS[table], row, strict=True))
            rows.insert(table, "on conflict do nothing", memory_seq=seq, **values)


def _remove_annotation(rows: Rows, seq: int, table: str, key: str) -> None:
    if table == "tags":
        sql = "delete from memory_topics where memory_seq = :seq and topic_seq in (select seq from topics where name = :key)"
        rows.run(sql, seq=seq, key=key)
    else:
        rows.run(f"delete from {table} where memory_seq = :seq and uuid = :key", seq=seq, key=key)  # noqa: S608


def _restore_candidate(rows: Rows, was: Image) -> None:
    """Makes a candidate what it was, unless it was settled otherwise since."""
    now = candidates.by_id(rows, was.item)
    if not was.state:
        if now is not None and now.status in candidates.WAITING:
            candidates.remove(rows, now)
        return
    candidate = to_candidate(was)
    if candidates.is_waiting(rows, candidate):
        return
    if now is None:
        candidates.put_candidate(rows, candidate)
    else:
        candidates.update_stored(rows, now, candidate)
    rows.run("update candidates set version = :version where id = :id", version=candidate.version, id=candidate.id)


def to_candidate(image: Image) -> Candidate:
    """The candidate that an image is of."""
    values = {**image.content, "memory_ids": tuple(image.state["memory_ids"])}
    values["evidence"] = tuple(Evidence(**row) for row in image.state["evidence"])
    return Candidate(**values)
