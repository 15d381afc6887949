"""Memories and candidates become what they were: after an answer that is taken back, after an action of a dream.

An answer may have removed a memory: that is made again, with all that went with it. Of a dream's action it is known what
it made of everything: only that is taken back, what has been found since stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from csmd import wire
from csmd.model import NEVER, Candidate, Evidence, Link
from csmd.store import beliefs, candidates, memories, vectors
from csmd.store.before import BESIDE, COLUMNS, Before
from csmd.store.sqlite import Rows

_NAMES = ", ".join(COLUMNS)
_MARKS = ", ".join(f":{name}" for name in COLUMNS)
_PAIRS = ", ".join(f"{name} = :{name}" for name in COLUMNS)

#: What stands beside a memory -> how a row of it is written, and how it goes.
_WRITE = {
    "symptoms": (
        "insert into symptoms (memory_seq, uuid, at, text, fingerprint) values (:seq, :a, :b, :c, :d) "
        "on conflict (memory_seq, uuid) do nothing"
    ),
    "tags": (
        "insert into memory_topics (memory_seq, topic_seq, by_whom, weight) select m.seq, t.seq, :b, :c from memories m "
        "join topics t on t.project_seq = m.project_seq where m.seq = :seq and t.name = :a "
        "on conflict (memory_seq, topic_seq) do nothing"
    ),
    "refutations": (
        "insert into refutations (memory_seq, uuid, at, reason, lowered) values (:seq, :a, :b, :c, :d) "
        "on conflict (memory_seq, uuid) do nothing"
    ),
    "scenes": (
        "insert into scenes (memory_seq, uuid, text) values (:seq, :a, :b) on conflict (memory_seq) "
        "do update set uuid = excluded.uuid, text = excluded.text"
    ),
}
_TAKE = {
    "symptoms": "delete from symptoms where memory_seq = :seq and uuid = :a",
    "tags": "delete from memory_topics where memory_seq = :seq and topic_seq in (select seq from topics where name = :a)",
    "refutations": "delete from refutations where memory_seq = :seq and uuid = :a",
    "scenes": "delete from scenes where memory_seq = :seq and uuid = :a",
}


def give_back(rows: Rows, found: Sequence[Before], *, at: str) -> None:
    """Makes everything what it was; the audit of memories, too: what was noted since is marked as taken back."""
    touched = [one for one in found if not one.is_candidate]
    for one in touched:
        if not one.state:
            _remove(rows, one.memory_id)
    states = [(one, wire.loads(one.state)) for one in touched if one.state]
    for one, state in states:
        _restore(rows, one, state)
    for one, state in states:
        seq = _seq(rows, one.memory_id)
        # Of the links it has now only those go that an answer draws: others may have been found since.
        rows.run("delete from links where from_seq = :seq and relationship = 'superseded_by'", seq=seq)
        _join(rows, one, state)
        more = wire.loads(one.more)
        beliefs.put_back(rows, one.memory_id, more["changes"], at=at)
        for name in BESIDE:
            _put_beside(rows, seq, name, more.get(name, []))
    for one in found:
        if one.is_candidate:
            ask_again(rows, one)


def take_back(rows: Rows, was: Before, then: Before, *, at: str) -> None:
    """Makes one thing what it was before an act that made `then` of it.

    What has changed since of that which the act left alone stays: where it is, when it was used.
    """
    if was.is_candidate:
        ask_again(rows, was)
        return
    if not was.state:
        _remove(rows, was.memory_id)
        return
    state, more = wire.loads(was.state), wire.loads(was.more)
    made, said = ({}, {"changes": []}) if not then.state else (wire.loads(then.state), wire.loads(then.more))
    found = rows.one(f"select {_NAMES} from memories where id = :id", id=was.memory_id)  # noqa: S608
    if found is not None and made:
        now = dict(zip(COLUMNS, found, strict=True))
        state["columns"] = _columns(state["columns"], made["columns"], now)
        # A link belongs to the memory that it begins at; those that were there all the time are left alone.
        own = [link for link in state["links"] if link[0] == was.memory_id]
        state["links"] = [link for link in own if link not in made["links"]]
        for link in made["links"]:
            if link[0] == was.memory_id and link not in own:
                beliefs.unlink(rows, *link[:3])
    _restore(rows, was, state)
    _join(rows, was, state)
    beliefs.put_back(rows, was.memory_id, more["changes"], at=at, since=said["changes"])
    seq = _seq(rows, was.memory_id)
    for name in BESIDE:
        before, made_of_it = more.get(name, []), said.get(name, [])  # an older csmd knew less of a memory
        for row in made_of_it:
            if row not in before:
                rows.run(_TAKE[name], seq=seq, a=row[0])
        _put_beside(rows, seq, name, [row for row in before if row not in made_of_it])


def _columns(was: dict[str, Any], then: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """The columns as they were; as they are where the act did not change them. Active days may have come in between."""
    found = {name: was[name] if was[name] != then[name] or name == "version" else now[name] for name in was}
    for name in ("hot_until", "warm_until", "archive_at"):
        counted = max(was[name], then[name], now[name]) < NEVER
        found[name] = now[name] + was[name] - then[name] if counted else was[name]
    return found


def _seq(rows: Rows, ident: str) -> int:
    return int(rows.value("select seq from memories where id = :id", id=ident) or 0)


def _remove(rows: Rows, ident: str) -> None:
    for memory in memories.by_seqs(rows, [_seq(rows, ident)]).values():
        memories.delete(rows, memory)


def _put_beside(rows: Rows, seq: int, name: str, found: Sequence[Sequence[Any]]) -> None:
    """Gives a memory back what others said of it; what has been found since stays."""
    for row in found:
        if name == "tags":  # a topic goes with its last memory
            rows.run(
                "insert into topics (project_seq, name) select project_seq, :name from memories where seq = :seq "
                "on conflict (project_seq, name) do nothing",
                name=row[0],
                seq=seq,
            )
        rows.run(_WRITE[name], seq=seq, **dict(zip("abcd", row, strict=False)))


def _restore(rows: Rows, one: Before, state: dict[str, Any]) -> None:
    """Gives a memory its columns and sources back; it is made again where it is gone."""
    values = dict(state["columns"])
    if _seq(rows, one.memory_id):
        worded_anew = rows.value("select text from memories where id = :id", id=one.memory_id) != one.text
        rows.run(f"update memories set {_PAIRS} where id = :id", id=one.memory_id, **values)  # noqa: S608
        rows.run("update memories set text = :text where id = :id", id=one.memory_id, text=one.text)
        if worded_anew:
            vectors.again(rows, "memory", _seq(rows, one.memory_id))
    else:
        merged = rows.value("select merged_into from projects where seq = :seq", seq=values["project_seq"])
        values["project_seq"] = merged or values["project_seq"]
        rows.run(
            f"insert into memories (id, text, {_NAMES}) values (:id, :text, {_MARKS})",  # noqa: S608
            id=one.memory_id,
            text=one.text,
            **values,
        )
    seq = _seq(rows, one.memory_id)
    rows.run("delete from provenance where memory_seq = :seq", seq=seq)
    for uuid, session, at, role in state["sources"]:
        rows.run(
            "insert into provenance (memory_seq, uuid, session_id, at, role) values (:seq, :uuid, :session, :at, :role)",
            seq=seq,
            uuid=uuid,
            session=session,
            at=at,
            role=role,
        )


def _join(rows: Rows, one: Before, state: dict[str, Any]) -> None:
    """Gives a memory its links, its place in receipts and the one it is a twin of back."""
    for origin, target, relationship, weight, at in state["links"]:
        link = Link(from_id=origin, to_id=target, relationship=relationship, weight=weight)
        memories.add_link(rows, link, now=at)
    for receipt, score, reason, used, used_by in state["told"]:
        rows.run(
            "insert into injection_items (injection_seq, memory_id, score, reason, used, used_by) "
            "select n.seq, :memory, :score, :reason, :used, :used_by from injections n where n.id = :receipt "
            "on conflict do nothing",
            memory=one.memory_id,
            score=score,
            reason=reason,
            used=used,
            used_by=used_by,
            receipt=receipt,
        )
    if state["twin"]:
        twin = _seq(rows, state["twin"])
        rows.run("update memories set twin_of = :twin where id = :id", twin=twin, id=one.memory_id)


def ask_again(rows: Rows, one: Before) -> None:
    """Makes a candidate what it was, where nothing else came of it since."""
    known = candidates.by_id(rows, one.memory_id)
    if not one.state:
        if known is not None and known.status in candidates.WAITING:
            candidates.remove(rows, known)
        return
    was = as_candidate(one)
    if candidates.is_waiting(rows, was):
        return
    if known is None:
        candidates.put(rows, was)
    else:
        candidates.renew(rows, known, was)
    rows.run("update candidates set version = :version where id = :id", version=was.version, id=was.id)


def as_candidate(one: Before) -> Candidate:
    """The candidate that an image is of."""
    state = wire.loads(one.state)
    evidence = tuple(Evidence(**row) for row in state.pop("evidence"))
    ids = tuple(state.pop("memory_ids"))
    return Candidate(**state, **wire.loads(one.more), text=one.text, memory_ids=ids, evidence=evidence)
