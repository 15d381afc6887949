"""Turns, sessions and projects that were purged as a whole: emptied with everything that was made of them.

Their rows stay where others refer to them, so that a line that is read again is known.
"""

from __future__ import annotations

from collections.abc import Sequence

from csmd.privacy.fingerprints import PURGED
from csmd.store import candidates, checkpoints, days, digests, failures, memories, tombstones, vectors
from csmd.store.sqlite import Rows
from csmd.text import tokens

#: Rows that one transaction looks at, and turns that it may change.
LOOKED_AT, CHANGED = 400, 100


def purged_projects(rows: Rows, key: bytes) -> dict[int, str]:
    """The projects of which nothing may be left that is older than a time."""
    if not tombstones.has(rows, "project"):
        return {}
    keys = {str(name): int(seq) for seq, name in rows.all("select seq, key from projects where seq > 0")}
    return {keys[name]: at for name, at in tombstones.purged_names(rows, "project", list(keys), key=key).items()}


def sessions(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """A pass over the sessions, past a row key: (where to go on, None at the end; rows that changed)."""
    gone_projects = purged_projects(rows, key)
    if not gone_projects and not tombstones.has(rows, "session"):
        return None, 0
    found = rows.all(
        "select seq, id, parent, project_seq, started_at from sessions where seq > :after order by seq limit :limit",
        after=after,
        limit=LOOKED_AT,
    )
    names = [str(name) for row in found for name in row[1:3] if name]
    gone = tombstones.purged_names(rows, "session", names, key=key)
    total = 0
    for seq, ident, parent, project, started in found:
        if ident in gone or parent in gone or started <= gone_projects.get(int(project), ""):
            changed, whole = _purge_session(rows, int(seq), str(ident), key)
            total += changed
            if not whole:
                return int(seq) - 1, total
    return (int(found[-1][0]) if found else None), total


def _purge_session(rows: Rows, seq: int, ident: str, key: bytes) -> tuple[int, bool]:
    """Empties a part of a session; (rows that changed, whether nothing of it is left)."""
    listed = rows.all(
        "select t.seq from session_turn st join turns t on t.seq = st.turn_seq "
        "where st.session_seq = :session and t.text <> :purged order by st.ordinal limit :limit",
        session=seq,
        purged=PURGED,
        limit=CHANGED,
    )
    for (turn,) in listed:
        purge_turn(rows, int(turn), key)
    if len(listed) == CHANGED:
        return len(listed), False
    changed = len(listed) + rows.run(
        "update sessions set path = '', cwd = '', title = '' where seq = :seq and (path <> '' or cwd <> '' or title <> '')",
        seq=seq,
    )
    rows.run(
        "delete from injection_items where memory_id = :id or injection_seq in "
        "(select seq from injections where session_id = :id)",
        id=ident,
    )
    changed += rows.run("delete from usage where session_seq = :seq", seq=seq)
    changed += checkpoints.clear(rows, seq) + checkpoints.clear_session_goals(rows, ident)
    for table in ("injections", "events", "unheard", "context_log"):
        changed += rows.run(f"delete from {table} where session_id = :id", id=ident)  # noqa: S608
    told = rows.all("select distinct memory_seq from provenance where session_id = :id", id=ident)
    rows.run("delete from provenance where session_id = :id", id=ident)
    without_source(rows, [int(memory) for (memory,) in told])
    return changed, True


def purge_turn(rows: Rows, seq: int, key: bytes) -> None:
    """Empties a turn with everything that was made of it; it stays listed, so that its line is known when read again."""
    uuid = str(rows.value("select uuid from turns where seq = :seq", seq=seq))
    days.take_back(rows, seq)
    rewrite_turn(rows, seq, PURGED, key)
    rows.run("update turns set searchable = 0 where seq = :seq", seq=seq)
    rows.run("delete from statements where turn_seq = :seq", seq=seq)
    candidates.take_back_packets(rows, uuid)
    failures.forget_turn(rows, seq, uuid)
    # What was quoted of it: a passage is known by its turn and where it begins there.
    rows.run(
        "delete from injection_items where memory_id = :uuid or substr(memory_id, 1, length(:passage)) = :passage",
        uuid=uuid,
        passage=f"{uuid}#",
    )
    told = rows.all("select memory_seq from provenance where uuid = :uuid", uuid=uuid)
    rows.run("delete from provenance where uuid = :uuid", uuid=uuid)
    without_source(rows, [int(memory) for (memory,) in told])


def without_source(rows: Rows, seqs: Sequence[int]) -> None:
    """Removes the memories that nobody said any more; the others name a session that is left."""
    for memory in memories.by_seqs(rows, seqs).values():
        if all(source.role == "beside" for source in memory.provenance):
            memories.delete(rows, memory)
        elif memory.session_id not in {source.session_id for source in memory.provenance}:
            rows.run(
                "update memories set session_id = :session, version = version + 1 where seq = :seq",
                session=memory.provenance[0].session_id,
                seq=memory.seq,
            )


def rewrite_turn(rows: Rows, seq: int, said: str, key: bytes) -> None:
    """Gives a turn another text; the hook's events that reported the old one are known by the new one's hash."""
    old, stream = rows.one(
        "select t.text_hash, s.id from turns t join sessions s on s.seq = t.session_seq where t.seq = :seq", seq=seq
    ) or ("", "")
    new = tokens.keyed_hash(said, key)
    rows.run(
        "update turns set text = :text, text_hash = :hash, "
        "searchable = case when cast(:text as text) = :purged then 0 else searchable end where seq = :seq",
        text=said,
        hash=new,
        purged=PURGED,
        seq=seq,
    )
    rows.run(
        "update events set text_hash = :new where stream = :stream and text_hash = :old",
        new=new,
        stream=stream,
        old=old,
    )
    digests.take_back(rows, seq)
    checkpoints.take_back(rows, seq)
    vectors.delete_for(rows, "turn", seq)


def turns(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """A pass over the turns, past a row key: (where to go on, None at the end; rows that changed)."""
    gone_projects = purged_projects(rows, key)
    if not gone_projects and not tombstones.has(rows, "turn"):
        return None, 0
    found = rows.all(
        "select t.seq, t.uuid, t.project_seq, t.at, s.id, t.text_hash from turns t join sessions s "
        "on s.seq = t.session_seq where t.seq > :after and t.text <> :purged order by t.seq limit :limit",
        after=after,
        purged=PURGED,
        limit=CHANGED,
    )
    names = {int(row[0]): turn_names(str(row[1]), str(row[4]), str(row[5])) for row in found}
    gone = tombstones.purged_names(rows, "turn", [name for some in names.values() for name in some], key=key)
    total = 0
    for seq, _, project, at, *_ in found:
        if not gone.keys().isdisjoint(names[int(seq)]) or at <= gone_projects.get(int(project), ""):
            purge_turn(rows, int(seq), key)
            total += 1
    return (int(found[-1][0]) if found else None), total


def turn_names(uuid: str, stream: str, text_hash: str) -> tuple[str, ...]:
    """The names under which a turn may have been purged: its own, its line's, a hook's report of it."""
    return tuple(dict.fromkeys((uuid, uuid.partition("/")[0], f"{stream}:{text_hash}")))


def projects(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """The last part of a project: its memories, its name and its key, unless something newer lives in it."""
    total = 0
    for seq, since in purged_projects(rows, key).items():
        found = rows.all(
            "select seq from memories where project_seq = :seq and created_at <= :since limit :limit",
            seq=seq,
            since=since,
            limit=CHANGED,
        )
        for memory in memories.by_seqs(rows, [int(memory) for (memory,) in found]).values():
            memories.delete(rows, memory)
        total += len(found) + checkpoints.clear_goals(rows, project=seq, until=since)
        if len(found) == CHANGED:
            return after, total
        total += _purge_name(rows, seq, since, key)
    return None, total


def _purge_name(rows: Rows, seq: int, since: str, key: bytes) -> int:
    """Takes what a project is known by and told, unless something newer lives in it: that is another one from then on."""
    name, made = rows.one("select key, created_at from projects where seq = :seq", seq=seq) or ("", "")
    newer = rows.value("select 1 from sessions where project_seq = :seq and started_at > :since", seq=seq, since=since)
    if made > since or newer is not None:
        return 0
    for table in ("aliases", "instructions", "candidates", "answers"):
        rows.run(f"delete from {table} where project_seq = :seq", seq=seq)  # noqa: S608
    for directory, path in rows.all("select seq, path from directories where project_seq = :seq", seq=seq):
        hidden = tombstones.hidden_name("file", str(path), key)
        rows.run("update directories set path = :hidden where seq = :seq", hidden=hidden, seq=directory)
    return rows.run(
        "update projects set key = :key, root = :purged, name = :purged, remote = '', fingerprint = '' where seq = :seq",
        # With its own number: a project that was purged twice has had two rows.
        key=f"{tombstones.hidden_name('project', str(name), key)}:{seq}",
        purged=PURGED,
        seq=seq,
    )
