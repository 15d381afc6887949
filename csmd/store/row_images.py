"""Snapshots of memories and candidates with their related rows, and of goals, to compare and restore."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

from csmd import wire
from csmd.knowledge import Candidate, Evidence
from csmd.store import belief_changes, candidates
from csmd.store.sqlite import Rows

#: The columns of a memory that an image holds: all but its row key, its text and its twin. The version is among them,
#: so that after an undo the change before can be undone as well.
COLUMNS = (
    "text_hash", "gate", "category", "type", "tier", "decay", "authority", "origin", "confidence", "scope", "project_seq",
    "session_id", "created_at", "confirmed_at", "used_at", "hot_until", "warm_until", "archive_at", "pinned",
    "superseded_by", "origin_seq", "version",
)  # fmt: skip
_READ = ", ".join(f"m.{name}" for name in COLUMNS)
#: Table -> the columns of an annotation of a memory; the memory's topics are in `tags`.
ANNOTATIONS = {
    "symptoms": ("uuid", "at", "text", "fingerprint"),
    "refutations": ("uuid", "at", "reason", "lowered"),
    "scenes": ("uuid", "text"),
    "judgements": ("uuid", "tell", "at"),
    "stands": ("uuid", "session_seq", "turns", "at"),
}
#: The columns of a goal that an image holds: those that an act may change, and the time, by which it is known to exist.
GOAL_COLUMNS = ("authority", "created_at", "done_at")
#: The fields of a candidate that hold words.
_CANDIDATE_WORDS = ("reason", "fingerprint")


class Image(NamedTuple):
    """One memory, candidate or goal at one moment; `state` is empty if it did not exist.

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
    def is_goal(self) -> bool:
        """Whether it is of a goal."""
        return self.item.startswith("g")

    @property
    def is_memory(self) -> bool:
        """Whether it is of a memory."""
        return not (self.is_candidate or self.is_goal)

    @property
    def content(self) -> dict[str, Any]:
        """Its own fields by name, without links and receipts; {} if it did not exist."""
        if not self.state:
            return {}
        if not self.is_memory:
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
    """Images of memories, candidates and goals as they are now, each once."""
    return [_image(rows, ident) for ident in dict.fromkeys(idents) if ident]


def _image(rows: Rows, ident: str) -> Image:
    if ident.startswith("c"):
        candidate = candidates.by_id(rows, ident)
        if candidate is None:
            return Image(ident)
        values = _as_json(asdict(candidate))
        more = {name: values.pop(name) for name in _CANDIDATE_WORDS}
        return Image(ident, values.pop("text"), values, more)
    if ident.startswith("g"):
        goal = rows.first("select text, authority, created_at, done_at from goals where id = :id", id=ident)
        return Image(ident, goal[0], dict(zip(GOAL_COLUMNS, goal[1:], strict=True))) if goal else Image(ident)
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
    """The annotations of a memory by table, and its tags (name, by whom, weight), in order."""
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
    """Whether a memory, candidate or goal changed between two images; who was shown it, or links to it, does not count."""
    return _comparable(before) != _comparable(after)


def _comparable(image: Image) -> tuple[Any, ...]:
    state = {**image.state, "told": [], "links": image.outgoing_links} if image.state else {}
    return image.text, image.more, state


def image_of_version(rows: Rows, before: Image, version: int) -> Image:
    """Reconstructs the image after an old answer from its stored version number (0 for a removed memory)."""
    now = _image(rows, before.item)
    if not before.is_memory or not now.state:
        return before if version else now
    if not version:
        return Image(before.item)
    replaced = [link for link in now.outgoing_links if link[2] == "superseded_by"]
    state = {**now.state, "columns": {**now.state["columns"], "version": version}}
    state["links"] = [link for link in before.state.get("links", ()) if link[2] != "superseded_by"] + replaced
    return now._replace(state=state, more={**before.more, "changes": now.more["changes"]})


def to_candidate(image: Image) -> Candidate:
    """The candidate that an image is of."""
    values = {**image.content, "memory_ids": tuple(image.state["memory_ids"])}
    values["evidence"] = tuple(Evidence(**row) for row in image.state["evidence"])
    return Candidate(**values)
