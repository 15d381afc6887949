"""The journal of changes of memories and candidates, with before-images and undo.

Nothing is taken out of the audit; what was undone says when. A state is written there as `name=value` pairs, so that an
undo can give back what the change took and leave alone what else has happened since. Answers and the actions of dreams
keep whole images of what they touched besides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from csmd import wire
from csmd.errors import CsmdError
from csmd.store import candidates, memories, memory_links, memory_scenes, topics, vectors
from csmd.store.sqlite import Rows, columns, in_keys
from csmd.values import Candidate, Evidence, Link, Memory
from csmd.vocabulary import NEVER, CandidateKind

SUPERSEDED = "superseded"
#: As `by`: what a dream did.
DREAM = "dream"
#: A person has undone a supersession: `before` names the memory that is not to supersede this one again.
REFUSED = "refused"
#: The answer that closes what was open.
DONE = "done"
#: What a person did that cannot be taken back.
FORGET = "forget"
MERGE, TOOK_IN, ARCHIVE, AUTHORITY = "merge", "took in", "archive", "authority"
#: The columns that a supersession changes; the times in active days come last.
_TIMES = ("hot_until", "warm_until", "archive_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of a belief; `by` is `rule`, `person` or `assistant`, `undone_at` is "" unless it was undone."""

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
    """Records a change of a belief; the change's row key."""
    words = {"change": change, "before": before, "after": after, "reason": reason}
    record_event(rows, memory_id, change, by=by, at=at)
    return rows.insert_keyed("belief_changes", memory_id=memory_id, **words, by_whom=by, at=at)


#: Acts besides the changes of beliefs.
UNDONE, FORGOTTEN = "undone", "forgotten"


def record_event(rows: Rows, memory_id: str, act: str, *, by: str, at: str, about: str = "") -> None:
    """Records what was done to a memory, for who follows what happens (`csmd.store.activity`)."""
    project = rows.number("select project_seq from memories where id = :id", id=memory_id)
    rows.insert("memory_events", at=at, act=act, about=about, memory_id=memory_id, project_seq=project, by_whom=by)


def changes_of(rows: Rows, memory_id: str) -> list[Change]:
    """The changes of a belief, in order."""
    return rows.read(
        Change,
        "select seq, memory_id, change, before, after, reason, by_whom, at, undone_at from belief_changes "
        "where memory_id = :id order by seq",
        id=memory_id,
    )


def latest_change(rows: Rows, memory_id: str, change: str = SUPERSEDED) -> Change | None:
    """The latest change of a kind that was not undone, or None."""
    made = [noted for noted in changes_of(rows, memory_id) if noted.change == change and not noted.undone_at]
    return made[-1] if made else None


def refused_successors(rows: Rows, memory_id: str) -> frozenset[str]:
    """The memories that are not to supersede this one again: a person said so."""
    return frozenset(noted.before for noted in changes_of(rows, memory_id) if noted.change == REFUSED)


def set_undone(rows: Rows, seq: int, *, at: str) -> None:
    """Marks a change as undone; its row stays."""
    ident, change = rows.all("select memory_id, change from belief_changes where seq = :seq", seq=seq)[0]
    rows.update("belief_changes", seq, undone_at=at)
    record_event(rows, ident, UNDONE, by="", at=at, about=change)


def state(memory: Memory) -> str:
    """What a supersession changes of a memory, as it is now."""
    names = ("confidence", *_TIMES, "superseded_by")
    return " ".join(f"{name}={getattr(memory, name)}" for name in names)


def read_state(text: str) -> dict[str, str]:
    """A written state's values by name."""
    return dict(pair.partition("=")[::2] for pair in text.split())


def confidence_in(text: str) -> float | None:
    """The confidence (0-1) that a written state names; None for one that names none."""
    named = read_state(text).get("confidence", "")
    return float(named) if named.replace(".", "", 1).isdigit() else None


def undo_supersession(rows: Rows, change: Change, *, at: str) -> None:
    """Undoes a supersession: what it took is given back, and nothing of what else has happened since is lost."""
    memory = memories.by_id(rows, change.memory_id)
    if memory is None:
        return
    free = _without_supersession(change, replace(memory, superseded_by=""))
    archived = latest_change(rows, memory.id, ARCHIVE)
    if archived is not None and archived.by == DREAM and archived.seq > change.seq:  # it went because it was superseded
        if memory.tier == "archive":
            free = replace(free, tier=archived.before)  # type: ignore[arg-type]  # a tier, as it was noted
        set_undone(rows, archived.seq, at=at)
    memories.update_belief(rows, free)
    unlink(rows, memory.id, memory.superseded_by, "superseded_by")
    set_undone(rows, change.seq, at=at)


def _without_supersession(change: Change, memory: Memory) -> Memory:
    """A memory with the confidence and the times that a change took; as it is where a purge left no figures to read."""
    before, after = read_state(change.before), read_state(change.after)
    if any(name not in before or name not in after for name in ("confidence", *_TIMES)):
        return memory
    times: dict[str, Any] = {
        name: NEVER if int(before[name]) >= NEVER else int(getattr(memory, name)) + int(before[name]) - int(after[name])
        for name in _TIMES
    }
    confidence = memory.confidence + float(before["confidence"]) - float(after["confidence"])
    return replace(memory, confidence=round(min(1.0, max(0.0, confidence)), 4), **times)


def pass_on_supersessions(rows: Rows, gone: str, heir: str) -> list[str]:
    """What a memory superseded that is no more is superseded by its heir; without one it holds again: the ids of those."""
    lifted: list[str] = []
    for ident in rows.column("select id from memories where superseded_by = :id and superseded_by <> ''", id=gone):
        change = latest_change(rows, ident)
        if heir in ("", ident, gone):
            if change is not None:
                undo_supersession(rows, change, at=change.at)
                lifted.append(ident)
                continue
            heir = ""
        rows.run("update memories set superseded_by = :heir, version = version + 1 where id = :id", heir=heir, id=ident)
    return lifted


def unlink(rows: Rows, memory_id: str, other: str, relationship: str) -> None:
    """Takes away an edge between two memories."""
    sql = (
        "delete from links where relationship = :relationship and from_seq in (select seq from memories where id = :one) "
        "and to_seq in (select seq from memories where id = :other)"
    )
    rows.run(sql, relationship=relationship, one=memory_id, other=other)


def delete_memory(rows: Rows, memory: Memory) -> None:
    """Removes a memory with its vectors, its links and its place in receipts, and what is only its rest.

    What it superseded is superseded by what superseded it, or holds again. With it goes what a merge put
    aside because it says the same, the note that was made of it, and what the queue and the audit quote of it.
    """
    aside = rows.column(
        "select seq from memories where twin_of = :seq and twin_of > 0 "
        "union all select from_seq from links where to_seq = :seq and relationship = 'merged_into' "
        "union all select n.seq from links l join memories n on n.seq = l.to_seq where l.from_seq = :seq "
        "and l.relationship = 'curated_as' and n.origin = 'curated' and n.pinned = 0",
        seq=memory.seq,
    )
    _delete_all(rows, [*aside, *memory_links.release_rest(rows, memory.id)])
    candidates.forget(rows, memory.id)
    vectors.delete_for(rows, "memory", memory.seq)
    rows.delete("injection_items", memory_id=memory.id)
    rows.delete("memories", seq=memory.seq)
    for lifted in pass_on_supersessions(rows, memory.id, memory.superseded_by):
        _delete_all(rows, memory_links.release_rest(rows, lifted))


def _delete_all(rows: Rows, seqs: Sequence[int]) -> None:
    for seq in seqs:
        for memory in memories.by_seqs(rows, [seq]).values():
            delete_memory(rows, memory)


def drop_sources(rows: Rows, where: str, **values: Any) -> None:
    """Removes sources of memories, by a condition on `provenance`, and the memories that have no source left.

    The other memories name a session that is left.
    """
    sourced = rows.distinct(f"delete from provenance where {where} returning memory_seq", **values)  # noqa: S608
    for memory in memories.by_seqs(rows, sorted(sourced)).values():
        # What a model made of several turns may tell of any of them.
        is_note = memory.origin == "curated" and not memory.pinned
        if is_note or all(source.role == "beside" for source in memory.provenance):
            delete_memory(rows, memory)
        elif memory.session_id not in {source.session_id for source in memory.provenance}:
            rows.revise("memories", memory.seq, session_id=memory.provenance[0].session_id)


def superseded(rows: Rows, projects: Sequence[int], *, limit: int) -> list[int]:
    """The row keys of what was superseded in these projects, what was last said latest first."""
    return rows.column(
        f"select seq from memories m where superseded_by <> '' and {in_keys('project_seq', projects)} and twin_of = 0 "  # noqa: S608
        "and not exists (select 1 from links l where l.from_seq = m.seq and l.relationship = 'merged_into') "
        "order by confirmed_at desc, seq desc limit :limit",
        limit=limit,
    )


def stated_at(rows: Rows, memory: Memory) -> str:
    """When a memory was last stated with the authority that it has: what an assistant repeats is no newer for that.

    A turn of the user's words counts for what users said; one that no turn is kept of counts for what it was.
    """
    if memory.authority != "user":
        return memory.confirmed_at
    by_assistants = rows.column(
        "select p.uuid from provenance p join turns t on t.uuid = p.uuid where p.memory_seq = :seq and t.kind = 'assistant'",
        seq=memory.seq,
    )
    return max(
        (source.at for source in memory.provenance if source.uuid not in by_assistants), default=memory.created_at
    )


def is_of_person(rows: Rows, memory: Memory) -> bool:
    """Whether a person has pinned, told, reviewed or changed a memory: what becomes of it is theirs to say."""
    if memory.pinned or memory.origin != "stated":
        return True
    return rows.exists(
        "select 1 from answers where item = :id or made = :id union all select 1 from belief_changes "
        "where memory_id = :id and by_whom = 'person' and undone_at = '' limit 1",
        id=memory.id,
    )


def lower_authority(rows: Rows, memory: Memory, *, reason: str, by: str, now: str) -> None:
    """Gives a memory the assistant's authority; what is written of it says why."""
    memories.update_belief(rows, replace(memory, authority="assistant"))
    record_change(rows, memory.id, AUTHORITY, memory.authority, "assistant", reason, by, now)


# --- images of before

#: The columns of a memory that come back with it: all but its row key, its text and whose twin it is. With its version
#: the answer before can be undone, too: it is that very memory again.
COLUMNS = (
    "text_hash", "gate", "category", "type", "tier", "decay", "authority", "origin", "confidence", "scope", "project_seq",
    "session_id", "created_at", "confirmed_at", "used_at", "hot_until", "warm_until", "archive_at", "pinned",
    "superseded_by", "origin_seq", "version",
)  # fmt: skip
_NAMES = ", ".join(COLUMNS)
_READ = ", ".join(f"m.{name}" for name in COLUMNS)
SOURCE = ("uuid", "session_id", "at", "role")
#: What others said of a memory, which goes with it and comes back with it, by table: how it was reported, what speaks
#: against it, where it was said, what a language model judged it worth, of which session it tells where it stands. What it is about (`tags`) is its topics.
ANNOTATIONS = {
    "symptoms": ("uuid", "at", "text", "fingerprint"),
    "refutations": ("uuid", "at", "reason", "lowered"),
    "scenes": ("uuid", "text"),
    "judgements": ("uuid", "tell", "at"),
    "stands": ("uuid", "session_seq", "turns", "at"),
}
#: The fields of a candidate that hold words.
WORDS = ("text", "reason", "fingerprint")


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """One memory or candidate as it was; `state` is JSON without words, "" where it was not there.

    `more` is JSON of the words besides its text: of a memory the audit of its changes and what others said of it, of a
    candidate its reason and its fingerprint.
    """

    memory_id: str
    text: str
    state: str
    more: str = ""
    version_after: int = 0

    @property
    def is_candidate(self) -> bool:
        """Whether it is a candidate of the queue."""
        return self.memory_id.startswith("c")


def changed_by(rows: Rows, act: Callable[[], object]) -> list[Before]:
    """Everything that an act changes, as it is now: the act is tried and taken back.

    What follows from a new memory (others that it amends, what waits because of it) is not known beforehand.
    """
    known = _versions(rows)
    with _tried(rows):
        act()
        after = _versions(rows)
    return before_of(rows, [ident for ident in {**known, **after} if known.get(ident) != after.get(ident)])


@contextmanager
def _tried(rows: Rows) -> Iterator[None]:
    """Inside a transaction: what runs here can be looked at, and is taken back at the end."""
    rows.connection.execute("savepoint tried")
    try:
        yield
    finally:
        rows.connection.execute("rollback to savepoint tried")
        rows.connection.execute("release savepoint tried")


def _versions(rows: Rows) -> dict[str, int]:
    return dict(rows.all("select id, version from memories union all select id, version from candidates"))


def before_of(rows: Rows, idents: Iterable[str]) -> list[Before]:
    """Memories and candidates as they are now, each once; of one that is not there, that."""
    return [
        (_candidate if ident.startswith("c") else _memory)(rows, ident) or Before(memory_id=ident, text="", state="")
        for ident in dict.fromkeys(idents)
        if ident
    ]


def _candidate(rows: Rows, ident: str) -> Before | None:
    found = candidates.by_id(rows, ident)
    if found is None:
        return None
    image = asdict(found)
    words = {name: image.pop(name) for name in WORDS}
    return Before(memory_id=ident, text=words.pop("text"), state=wire.dumps(image), more=wire.dumps(words))


def image_of(rows: Rows, ident: str) -> tuple[str, dict[str, Any], dict[str, Any]] | None:
    """(text, state, more) of a memory as it is now, as Before keeps them; None where it is not there."""
    found = rows.one(
        f"select m.text, coalesce(t.id, ''), m.seq, {_READ} from memories m "  # noqa: S608
        "left join memories t on t.seq = m.twin_of and m.twin_of > 0 where m.id = :id",
        id=ident,
    )
    if found is None:
        return None
    text, twin, seq, *values = found
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
    return text, state, {"changes": [asdict(change) for change in changes_of(rows, ident)], **_annotations(rows, seq)}


def _memory(rows: Rows, ident: str) -> Before | None:
    image = image_of(rows, ident)
    if image is None:
        return None
    text, state, more = image
    return Before(memory_id=ident, text=text, state=wire.dumps(state), more=wire.dumps(more))


def _annotations(rows: Rows, seq: int) -> dict[str, list[Any]]:
    """What others said of a memory, by table, and its tags (name, by whom, weight), in order."""
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


def restore_annotations(rows: Rows, seq: int, table: str, annotations: Iterable[Sequence[Any]]) -> None:
    """Gives a memory back what others said of it; what has been found since stays."""
    for row in annotations:
        if table == "tags":  # a topic goes with its last memory
            project = rows.value("select project_seq from memories where seq = :seq", seq=seq)
            tag = {"topic_seq": topics.ensure(rows, project, row[0]), "by_whom": row[1], "weight": row[2]}
            rows.insert("memory_topics", "on conflict do nothing", memory_seq=seq, **tag)
        elif table == "scenes":
            memory_scenes.note_scene(rows, seq, uuid=row[0], text=row[1])
        else:
            values = dict(zip(ANNOTATIONS[table], row, strict=True))
            rows.insert(table, "on conflict do nothing", memory_seq=seq, **values)


def _remove_annotation(rows: Rows, seq: int, table: str, key: str) -> None:
    if table == "tags":
        sql = "delete from memory_topics where memory_seq = :seq and topic_seq in (select seq from topics where name = :key)"
        rows.run(sql, seq=seq, key=key)
    else:
        rows.run(f"delete from {table} where memory_seq = :seq and uuid = :key", seq=seq, key=key)  # noqa: S608


def differs(before: Before, after: Before) -> bool:
    """Whether something was done to a memory or candidate between two looks; who was told it, or links to it, is nothing."""
    return (before.text, before.more, _own(before)) != (after.text, after.more, _own(after))


def _own(image: Before) -> dict[str, Any]:
    """The state of an image without what others do with it."""
    if not image.state or image.is_candidate:
        return {"state": image.state}
    return {**wire.loads(image.state), "told": [], "links": outgoing_links(image)}


def without_receipts(image: Before) -> Before:
    """An image without who was told it: that may be every session, and is lost only where a memory is removed."""
    if not image.state or image.is_candidate:
        return image
    return replace(image, state=wire.dumps({**wire.loads(image.state), "told": []}))


def content_of(image: Before) -> dict[str, Any]:
    """What a memory or candidate is, by name, without what others do with it; {} where it is not there."""
    if not image.state:
        return {}
    state = wire.loads(image.state)
    if image.is_candidate:
        return {**state, **wire.loads(image.more), "text": image.text}
    return {**state["columns"], "text": image.text, "twin": state["twin"], "sources": state["sources"]}


def outgoing_links(image: Before) -> list[list[Any]]:
    """(id, other id, relationship, weight, time) of the links that begin at a memory."""
    if not image.state or image.is_candidate:
        return []
    return [link for link in wire.loads(image.state)["links"] if link[0] == image.memory_id]


# --- giving back


def restore(rows: Rows, images: Sequence[tuple[Before, Before | None]], *, at: str) -> None:
    """Makes memories and candidates what they were before an act, given as (before it, after it).

    What has changed since of that which the act left alone stays: where it is, when it was used. Without an image of
    after it everything goes back but what others have found since, and whatever was noted since is marked as undone.
    """
    touched = [(was, then) for was, then in images if not was.is_candidate]
    for was, _ in touched:
        if not was.state:
            _delete_all(rows, rows.column("select seq from memories where id = :id", id=was.memory_id))
    # All of them are there before any of them is linked with another.
    restored = [(was, then, _restore_row(rows, was, then)) for was, then in touched if was.state]
    for was, then, was_there in restored:
        _restore_relations(rows, was, then, was_there=was_there, at=at)
    for was, _ in images:
        if was.is_candidate:
            _restore_candidate(rows, was)


def _parsed(image: Before | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """(state, more) of a memory's image; no state and no changes of one that was not there."""
    return (wire.loads(image.state), wire.loads(image.more)) if image and image.state else ({}, {"changes": []})


def _restore_row(rows: Rows, was: Before, then: Before | None) -> bool:
    """Gives a memory its columns and sources back, made again where it is gone; whether it was there."""
    (state, _), (made, _) = _parsed(was), _parsed(then)
    known = rows.one(f"select seq, text, {_NAMES} from memories where id = :id", id=was.memory_id)  # noqa: S608
    values = state["columns"]
    if known is not None and made:
        values = _columns(values, made["columns"], dict(zip(COLUMNS, known[2:], strict=True)))
    values = {**values, "id": was.memory_id, "text": was.text}
    if known is None:
        merged = rows.value("select merged_into from projects where seq = :seq", seq=values["project_seq"])
        seq = rows.insert_keyed("memories", **{**values, "project_seq": merged or values["project_seq"]})
    else:
        seq = known[0]
        rows.update("memories", seq, **values)
        if known[1] != was.text:
            vectors.reembed(rows, "memory", seq)
    rows.delete("provenance", memory_seq=seq)
    for source in state["sources"]:
        rows.insert("provenance", memory_seq=seq, **dict(zip(SOURCE, source, strict=True)))
    return known is not None


def _restore_relations(rows: Rows, was: Before, then: Before | None, *, was_there: bool, at: str) -> None:
    """Gives a memory its links, its place in receipts, its audit and what others said of it back."""
    (state, more), (made, made_more) = _parsed(was), _parsed(then)
    seq, links = rows.number("select seq from memories where id = :id", id=was.memory_id), state["links"]
    if then is None:  # only those go that an answer draws: others may have been found since
        rows.delete("links", from_seq=seq, relationship="superseded_by")
    elif was_there and made:
        # A link belongs to the memory that it begins at; those that were there all the time are left alone.
        own = outgoing_links(was)
        links = [drawn for drawn in own if drawn not in made["links"]]
        for drawn in outgoing_links(then):
            if drawn not in own:
                unlink(rows, *drawn[:3])
    for origin, target, relationship, weight, drawn_at in links:
        link = Link(from_id=origin, to_id=target, relationship=relationship, weight=weight)
        memory_links.add_link(rows, link, now=drawn_at)
    for receipt, score, reason, used, used_by in state["told"]:
        item = {"memory_id": was.memory_id, "score": score, "reason": reason, "used": used, "used_by": used_by}
        for injection in rows.column("select seq from injections where id = :id", id=receipt):
            rows.insert("injection_items", "on conflict do nothing", injection_seq=injection, **item)
    if state["twin"]:
        twin = rows.number("select seq from memories where id = :id", id=state["twin"])
        rows.update("memories", seq, twin_of=twin)
    _restore_changes(rows, was.memory_id, more["changes"], at=at, since=None if then is None else made_more["changes"])
    for table in (*ANNOTATIONS, "tags"):
        before, after = more.get(table, []), made_more.get(table, [])  # an older csmd knew less of a memory
        for row in after:
            if row not in before:
                _remove_annotation(rows, seq, table, row[0])
        restore_annotations(rows, seq, table, [row for row in before if row not in after])


def _columns(was: dict[str, Any], then: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """The columns as they were; as they are where the act did not change them. Active days may have come in between."""
    back = {name: was[name] if was[name] != then[name] or name == "version" else now[name] for name in was}
    for name in _TIMES:
        counted = max(was[name], then[name], now[name]) < NEVER
        back[name] = now[name] + was[name] - then[name] if counted else was[name]
    return back


def _restore_changes(
    rows: Rows,
    memory_id: str,
    known: Sequence[Mapping[str, object]],
    *,
    at: str,
    since: Sequence[Mapping[str, object]] | None,
) -> None:
    """Makes a memory's audit what it was, changes as `asdict` gives them; what was noted since is marked as undone.

    That is all that is not `known`, or of `since` that.
    """
    kept = {change["seq"] for change in known}
    noted = [change.seq for change in changes_of(rows, memory_id) if not change.undone_at and change.seq not in kept]
    for seq in noted if since is None else {change["seq"] for change in since} & {*noted}:
        set_undone(rows, int(str(seq)), at=at)
    for change in known:
        rows.run(
            "insert into belief_changes (seq, memory_id, change, before, after, reason, by_whom, at, undone_at) "
            "values (:seq, :memory_id, :change, :before, :after, :reason, :by, :at, :undone_at) "
            "on conflict (seq) do update set undone_at = excluded.undone_at",
            **change,
        )


def _restore_candidate(rows: Rows, image: Before) -> None:
    """Makes a candidate what it was, where nothing else came of it since."""
    known = candidates.by_id(rows, image.memory_id)
    if not image.state:
        if known is not None and known.status in candidates.WAITING:
            candidates.remove(rows, known)
        return
    was = as_candidate(image)
    if candidates.is_waiting(rows, was):
        return
    if known is None:
        candidates.put_candidate(rows, was)
    else:
        candidates.renew(rows, known, was)
    rows.run("update candidates set version = :version where id = :id", version=was.version, id=was.id)


def as_candidate(image: Before) -> Candidate:
    """The candidate that an image is of."""
    state = wire.loads(image.state)
    evidence = tuple(Evidence(**row) for row in state.pop("evidence"))
    ids = tuple(state.pop("memory_ids"))
    return Candidate(**state, **wire.loads(image.more), text=image.text, memory_ids=ids, evidence=evidence)


# --- answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer; `made` is the memory that came of it, `was` the status of the candidate it settled ("" for neither)."""

    id: str
    item: str
    answer: str
    made: str
    was: str
    project_seq: int
    at: str
    undone_at: str = ""
    seq: int = 0


def put_answer(
    rows: Rows, *, item: str, answer: str, made: str, was: str, project: int, touched: Sequence[Before], now: str
) -> Answer:
    """Notes an answer that was just carried out, with what undoing it needs."""
    number = rows.number("select coalesce(max(seq), 0) from answers") + 1
    ident = "a" + hashlib.sha256(f"{number}:{item}:{answer}:{now}".encode()).hexdigest()[:10]
    noted = Answer(id=ident, item=item, answer=answer, made=made, was=was, project_seq=project, at=now)
    noted = replace(noted, seq=rows.insert_keyed("answers", **{**asdict(noted), "seq": number}))
    for image in touched:
        version = rows.value("select version from memories where id = :id", id=image.memory_id) or 0
        rows.insert("answer_befores", answer_seq=noted.seq, **{**asdict(image), "version_after": version})
    return noted


def last_answer(rows: Rows, *, projects: Sequence[int] | None, ident: str = "") -> Answer | None:
    """The latest answer of these projects (None: all) that was not undone, or the one that is named, or the latest about an item; None for none.

    What a rule closed is taken back by its name only.
    """
    return rows.read_one(
        Answer,
        f"select {columns(Answer, 't')} from answers t where (t.id = :id or "  # noqa: S608
        "(t.undone_at = '' and (t.item = :id or (:id = '' and t.was <> 'rule')))) "
        f"and {in_keys('t.project_seq', projects)} order by t.seq desc limit 1",
        id=ident,
    )


def answers_of(rows: Rows, answer: Answer) -> list[Answer]:
    """The answers about the item of one that were given at its time and stand, the latest first."""
    return rows.read(
        Answer,
        f"select {columns(Answer, 't')} from answers t where t.item = :item and t.at = :at and t.undone_at = '' order by t.seq desc",  # noqa: S608
        item=answer.item,
        at=answer.at,
    )


def answer_befores(rows: Rows, answer: Answer) -> list[Before]:
    """What an answer touched, as it was."""
    return rows.read(
        Before,
        "select memory_id, text, state, more, version_after from answer_befores where answer_seq = :seq order by seq",
        seq=answer.seq,
    )


def closed_items(rows: Rows) -> frozenset[str]:
    """The ids of what was open and was closed."""
    return frozenset(rows.column("select item from answers where answer = :done and undone_at = ''", done=DONE))


def mark_undone(rows: Rows, answer: Answer, *, now: str) -> None:
    """Notes that an answer was taken back that touched no memory; CsmdError where it was already."""
    if answer.undone_at:
        raise CsmdError(f"the answer {answer.id} cannot be undone: it is undone already")
    rows.update("answers", answer.seq, undone_at=now)


def undo_answer(rows: Rows, answer: Answer, *, now: str) -> list[Before]:
    """Makes everything that an answer changed what it was before; CsmdError where a memory has changed since.

    The audit of what was changed is back, too; what the answer added to it is marked as taken back.
    """
    found = answer_befores(rows, answer)
    if answer.answer == FORGET and not answer.undone_at:
        raise CsmdError(
            f"{answer.item} was forgotten for good, and undo brings nothing back",
            hint="say it anew: csmd remember; `csmd undo ID` takes something else back",
        )
    if answer.undone_at or not found:
        purged = "something was purged since, and undo brings nothing back then"
        why = "it is undone already" if answer.undone_at else purged
        raise CsmdError(f"the answer {answer.id} cannot be undone: {why}")
    touched = [image for image in found if not image.is_candidate]
    for image in touched:
        version = rows.value("select version from memories where id = :id", id=image.memory_id) or 0
        if version != image.version_after:
            raise CsmdError(
                f"the answer {answer.id} cannot be undone: {image.memory_id} has changed since",
                hint=f"csmd show {image.memory_id}",
            )
    restore(rows, [(image, None) for image in found], at=now)
    rows.update("answers", answer.seq, undone_at=now)
    return touched


def purge_answer_images(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """A pass of a purge: what was answered before the latest purge can bring nothing back."""
    del key, after
    gone = rows.run(
        "delete from answer_befores where answer_seq in (select seq from answers where at <= (select max(created_at) "
        "from tombstones where kind in ('text', 'turn', 'session', 'project', 'file')))"
    )
    return None, gone


# --- what waits


def unreviewed(rows: Rows, *, projects: Sequence[int] | None, below: float, since: str, limit: int) -> list[int]:
    """Row keys of memories that wait for a person: saved by a model alone, or new and hardly sure; the least sure first.

    What a person has kept is stated; of an assistant's and of others' words, `below` a confidence and said `since` then.
    """
    sql = (
        "select t.seq from memories t where t.superseded_by = '' and t.twin_of = 0 and t.pinned = 0 "  # noqa: S608
        "and (t.origin = 'model_saved' or (t.confidence < :below and t.created_at >= :since and t.authority <> 'user')) "
        f"and t.seq not in (select memory_seq from team_memories) and {in_keys('t.project_seq', projects)} "
        "order by case t.origin when 'model_saved' then 0 else 1 end, t.confidence, t.seq desc limit :limit"
    )
    return rows.column(sql, below=below, since=since, limit=limit)


# --- merging and archiving

#: The link from a memory to the one that it was merged into.
MERGED = "merged_into"
#: What upkeep puts into the queue of candidates; the other kinds are beliefs.
KINDS: tuple[CandidateKind, ...] = ("duplicate", "near_duplicate", "stale", "missing_embedding", "orphan")
_OF_UPKEEP = ", ".join(f"'{kind}'" for kind in KINDS)


def memories_past(rows: Rows, seq: int, *, limit: int) -> list[Memory]:
    """The next memories past a row key, in order; no colleague's."""
    return memories.where(rows, f"m.seq > :seq and {memories.OWN} order by m.seq limit :limit", seq=seq, limit=limit)


def past_archiving(rows: Rows, *, after: int, to: int) -> list[str]:
    """The memories between two row keys whose `archive_at` has passed because they were not used for long."""
    sql = (
        "select m.id from memories m where m.seq > :after and m.seq <= :to and m.tier <> 'archive' and m.pinned = 0 "
        "and m.twin_of = 0 and m.archive_at < "
        "(select count(*) from activity a where a.project_seq = m.project_seq) order by m.seq"
    )
    return rows.column(sql, after=after, to=to)


def without_turns(rows: Rows, *, after: int, to: int) -> list[str]:
    """The memories between two row keys of whose sources no turn is left.

    What was said at the command line has none, and what came from another home (`brought`) has none here.
    """
    sql = (
        "select m.id from memories m where m.seq > :after and m.seq <= :to and m.tier <> 'archive' "
        "and not exists (select 1 from provenance p where p.memory_seq = m.seq and (substr(p.uuid, 1, 4) = 'cli:' "
        "or exists (select 1 from turns t where t.uuid = p.uuid))) and not exists (select 1 from belief_changes c "
        "where c.memory_id = m.id and c.change = 'brought') order by m.seq"
    )
    return rows.column(sql, after=after, to=to)


def without_vector(rows: Rows, *, after: int, to: int) -> list[str]:
    """The memories between two row keys that an embedding model has passed by; what waits for its turn is not among them."""
    sql = (
        "select distinct m.id from memories m join vector_models v on m.seq <= coalesce((select c.position "
        "from cursors c where c.stage = 'embed-memory' and c.subject = cast(v.seq as text)), 0) "
        "where m.seq > :after and m.seq <= :to and not exists (select 1 from vectors x where x.kind = 'memory' "
        "and x.model_seq = v.seq and x.row_seq = m.seq) and not exists (select 1 from embed_again e "
        "where e.kind = 'memory' and e.model_seq = v.seq and e.row_seq = m.seq) order by m.id"
    )
    return rows.column(sql, after=after, to=to)


def about_memory(rows: Rows, memory_id: str) -> list[Candidate]:
    """The waiting candidates of upkeep that are about a memory."""
    return candidates.where(
        rows,
        f"m.status in ('open', 'needs_review') and m.kind in ({_OF_UPKEEP}) "
        "and ' ' || m.memory_ids || ' ' like '% ' || cast(:id as text) || ' %' order by m.seq",
        id=memory_id,
    )


def dropped_pairs(rows: Rows) -> frozenset[tuple[int, str, str]]:
    """(project, kind, fingerprint) of what a person has dropped."""
    dropped = f"status = 'dropped' and kind in ({_OF_UPKEEP})"
    return frozenset(rows.all(f"select project_seq, kind, fingerprint from candidates where {dropped}"))  # noqa: S608


def surviving_memory(rows: Rows, memory: Memory) -> Memory:
    """The memory that represents this one now: the one that it was merged into, or itself."""
    seen = {memory.id}
    while memory.superseded_by and memory.superseded_by not in seen and is_merged(rows, memory):
        found = memories.by_id(rows, memory.superseded_by)
        if found is None:
            return memory
        memory = found
        seen.add(memory.id)
    return memory


def is_merged(rows: Rows, memory: Memory) -> bool:
    """Whether a memory was merged into another one."""
    merged = "select 1 from links where from_seq = :seq and relationship = 'merged_into'"
    return rows.exists(merged, seq=memory.seq)


def merges_of(rows: Rows, merged: str, into: str) -> list[Change]:
    """Every merge of a memory into another one, those that were undone among them."""
    return [change for change in changes_of(rows, merged) if change.change == MERGE and change.after == into]


def merge_memories(rows: Rows, merged: Memory, into: Memory, *, reason: str, by: str, now: str) -> None:
    """Puts one memory aside for another, whose values `into` has already; its sources confirm that one."""
    known = memories.by_seqs(rows, [into.seq])[into.seq]
    uuids = memories.add_confirming(rows, into.seq, merged.provenance)
    memories.update_belief(rows, replace(merged, tier="archive", superseded_by=into.id))
    memories.update_belief(rows, into)
    memory_links.add_link(rows, Link(from_id=merged.id, to_id=into.id, relationship=MERGED), now=now)
    record_change(rows, merged.id, MERGE, merged.tier, into.id, reason, by, now)
    after_ = " ".join([f"{into.confidence:.4f}", merged.id, *uuids])
    before = f"{known.confidence:.4f} {known.tier} {known.used_at}".strip()
    record_change(rows, into.id, TOOK_IN, before, after_, reason, by, now)


def last_merge(rows: Rows, memory_id: str) -> tuple[Change, Change] | None:
    """The merge of a memory that is in force, and what it did to the other one; None for none."""
    merge = latest_change(rows, memory_id, MERGE)
    took = [
        change
        for change in (changes_of(rows, merge.after) if merge else ())
        if change.change == TOOK_IN and not change.undone_at and change.after.split()[1] == memory_id
    ]
    return (merge, took[-1]) if merge and took else None


def undo_merge(rows: Rows, merged: Memory, into: Memory, tookin: Change, done: Change, *, now: str) -> None:
    """Ends a merge: both memories as the caller has made them, the sources that it brought gone from the other one."""
    for uuid in tookin.after.split()[2:]:
        rows.delete("provenance", memory_seq=into.seq, uuid=uuid)
    unlink(rows, merged.id, into.id, MERGED)
    memories.update_belief(rows, merged)
    memories.update_belief(rows, into)
    for change in (done, tookin):
        set_undone(rows, change.seq, at=now)


def archive_memory(rows: Rows, memory: Memory, *, reason: str, by: str, now: str) -> None:
    """Archives a memory; it stays searchable."""
    memories.update_belief(rows, replace(memory, tier="archive"))
    record_change(rows, memory.id, ARCHIVE, memory.tier, "archive", reason, by, now)


def memories_of_places(rows: Rows, projects: Sequence[int] | None) -> list[Memory]:
    """The memories of some projects (None: all) that are neither archived, superseded nor put aside; no colleague's."""
    alive = f"m.tier <> 'archive' and m.superseded_by = '' and m.twin_of = 0 and {memories.OWN}"
    return memories.where(rows, f"{alive} and {in_keys('m.project_seq', projects)} order by m.seq")
