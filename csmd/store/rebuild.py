"""A new database from what was read of a damaged one: rows first, then what refers to what, then the order of turns.

A copy of the same database fills the gaps, and nothing but the gaps: a row that is missing elsewhere
was removed on purpose. What derives from rows (indexes, vectors, cursors) is not taken over but made again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import apsw

from csmd import text
from csmd.model import Project
from csmd.store import candidates, checkpoints, digests, purge
from csmd.store.recovery import LEAST, MOST, Table, checked_by, merged, readable, span, tables, with_defaults
from csmd.store.sqlite import Row, Rows

BATCH_ROWS = 500


@dataclass(slots=True)
class Found:
    """How many rows of each table came from where, and what could not be had."""

    rows: dict[str, int] = field(default_factory=dict)
    """Read from the damaged file."""
    filled: dict[str, int] = field(default_factory=dict)
    """Taken from the copy."""
    gaps: dict[str, int] = field(default_factory=dict)
    """Places of a table that could not be read, and rows that are not what was stored."""
    hurt: set[int] = field(default_factory=set)
    """Sessions whose order has a gap."""
    tombstones_lost: int = 0
    """Marks of forgotten texts that nothing can be compared with any more."""
    stubs: int = 0
    """Projects and sessions that stand for ones whose names are lost."""


def rebuild(into: Rows, *, damaged: Rows | None, copy: Rows | None, key: bytes | None, new_key: bytes) -> Found:
    """Fills a new, migrated and empty database inside the caller's write.

    `key` is that of both sources. None where it is lost: then texts get hashes by `new_key`, and what was forgotten
    cannot be told any more.
    """
    found = Found()
    into.run("pragma defer_foreign_keys = on")
    into.run("delete from projects")
    for table in tables(into):
        gaps: list[tuple[int, int]] = [(LEAST, MOST)]
        if damaged is not None:
            gaps = []
            found.rows[table.name] = _put(into, table, readable(damaged, table, gaps), key, gaps)
            found.gaps[table.name] = len(gaps)
        if copy is not None:
            found.filled[table.name] = sum(
                _put(into, table, span(copy, table, low, high), key, []) for low, high in merged(gaps)
            )
    into.run("delete from meta where key = 'hash_key'")
    into.run("insert into meta (key, value) values ('hash_key', :key)", key=key or new_key)
    if key is None:
        found.tombstones_lost = into.run("delete from tombstones")
        _hash_again(into, new_key)
    found.stubs, found.hurt = _close_references(into)
    return found


def _put(into: Rows, table: Table, source: Iterator[Row], key: bytes | None, gaps: list[tuple[int, int]]) -> int:
    """Stores the rows of a source that are not there yet; how many. What is no row of csmd's is one more gap."""
    marks = ", ".join(f":c{number}" for number in range(len(table.columns)))
    sql = f"insert into {table.name} ({', '.join(table.columns)}) values ({marks}) on conflict do nothing"  # noqa: S608
    sound = checked_by(table, key)
    stored = 0
    for at, *found in source:
        values = with_defaults(table, tuple(found))
        taken = sound(values)
        if taken:
            try:
                into.connection.execute(sql, {f"c{number}": value for number, value in enumerate(values)})
                stored += into.connection.changes()
            except apsw.ConstraintError:
                taken = False  # a value that the present schema does not take
        if not taken and isinstance(at, int):
            gaps.append((at, at))
    return stored


def _hash_again(into: Rows, key: bytes) -> None:
    """Gives every text that is looked up by its hash one by the new key."""
    for table in ("turns", "statements", "memories"):
        last = 0
        while batch := into.all(
            f"select seq, text from {table} where seq > :last order by seq limit {BATCH_ROWS}",  # noqa: S608
            last=last,
        ):
            last = batch[-1][0]
            for seq, said in batch:
                into.run(
                    f"update {table} set text_hash = :hash where seq = :seq",  # noqa: S608
                    hash=text.keyed_hash(said, key),
                    seq=seq,
                )


#: What stands for a project or a session whose own row is lost: what it said stays, under a name that says so.
_STUB_PROJECTS = (
    "insert into projects (seq, key, root, name, kind, created_at) "
    "select distinct x.project_seq, 'recovered-' || cast(x.project_seq as text), '', 'recovered', 'path', '' from {} x "
    "where x.project_seq not in (select seq from projects)"
)
#: The wall stays though its name is lost: else what is behind it would be seen from everywhere.
_STUB_WORKSPACES = (
    "insert into projects (seq, key, root, name, kind, created_at) select distinct p.workspace_seq, 'workspace:recovered-' || "
    "cast(p.workspace_seq as text), '', 'recovered-' || cast(p.workspace_seq as text), 'workspace', '' from projects p "
    "where p.workspace_seq > 0 and p.workspace_seq not in (select seq from projects)"
)
#: References that no foreign key holds: one that leads nowhere counts as none.
_WITHOUT_AIM = (
    "update projects set merged_into = 0 where merged_into not in (select seq from projects)",
    "update projects set part_of = 0 where part_of not in (select seq from projects)",
    # What it stood aside for is gone: it is believed itself where that was.
    (
        "update memories set project_seq = (select p.merged_into from projects p where p.seq = memories.project_seq) "
        "where twin_of > 0 and twin_of not in (select seq from memories) "
        "and project_seq in (select seq from projects where merged_into > 0)"
    ),
    "update memories set twin_of = 0 where twin_of not in (select seq from memories)",
)
_STUB_SESSIONS = (
    "insert into sessions (seq, id, host, project_seq, started_at, last_at) "
    "select t.session_seq, 'recovered-' || cast(t.session_seq as text), 'claude', min(t.project_seq), min(t.at), "
    "max(t.at) from turns t where t.session_seq not in (select seq from sessions) group by t.session_seq"
)


def _close_references(into: Rows) -> tuple[int, set[int]]:
    """Makes stubs for lost projects and sessions, drops rows that refer to nothing, lists turns that nobody lists.

    How many stubs, and the sessions at whose end turns were put.
    """
    into.run(
        "insert into projects (seq, key, root, name, kind, created_at) values "
        "(0, 'everywhere', '', 'everywhere', 'path', '') on conflict do nothing"
    )
    stubs = into.run(_STUB_SESSIONS) + into.run(_STUB_WORKSPACES)
    for table in ("sessions", "turns", "memories", "injections"):
        stubs += into.run(_STUB_PROJECTS.format(table))
    for sql in _WITHOUT_AIM:
        into.run(sql)
    for _ in range(3):  # what refers to a row that goes itself
        for name in [table.name for table in tables(into)]:
            for _, _, parent, column, to, *_ in into.all(f"pragma foreign_key_list({name})"):
                into.run(f"delete from {name} where {column} not in (select {to} from {parent})")  # noqa: S608
    hurt = _list_all_turns(into)
    into.run("update sessions set last_at = started_at where last_at < started_at")
    into.run("update counters set value = 0 where value < 0")
    into.run(
        "insert into provenance (memory_seq, uuid, session_id, at, role) "
        "select m.seq, 'recovered:' || m.id, m.session_id, m.created_at, 'states' from memories m "
        "where not exists (select 1 from provenance p where p.memory_seq = m.seq)"
    )
    return stubs, hurt


def _list_all_turns(into: Rows) -> set[int]:
    """Puts turns that no session lists at the end of theirs; which sessions."""
    into.run(
        "update sessions set turns = coalesce((select max(st.ordinal) from session_turn st "
        "where st.session_seq = sessions.seq and st.ordinal > sessions.turns), turns)"
    )
    unlisted = into.all(
        "select t.seq, t.session_seq from turns t where not exists "
        "(select 1 from session_turn st where st.turn_seq = t.seq) order by t.session_seq, t.at, t.seq"
    )
    for turn, session in unlisted:
        into.run("update sessions set turns = turns + 1 where seq = :session", session=session)
        into.run(
            "insert into session_turn (session_seq, ordinal, turn_seq) "
            "select seq, turns, :turn from sessions where seq = :session",
            turn=turn,
            session=session,
        )
    return {int(session) for _, session in unlisted}


def put_in_order(rows: Rows, *, new_after: int, hurt: set[int]) -> int:
    """Lists by their times the turns of `hurt` sessions and of those into which lost turns came back; how many."""
    hurt = hurt | {
        int(session)
        for (session,) in rows.all(
            "select distinct st.session_seq from session_turn st join turns t on t.seq = st.turn_seq where t.seq > :new "
            "and exists (select 1 from session_turn o join turns e on e.seq = o.turn_seq "
            "where o.session_seq = st.session_seq and o.ordinal < st.ordinal and e.at > t.at)",
            new=new_after,
        )
    }
    for session in sorted(hurt):
        listed = rows.all(
            "select st.turn_seq from session_turn st join turns t on t.seq = st.turn_seq "
            "where st.session_seq = :session order by t.at, st.ordinal",
            session=session,
        )
        rows.run("delete from session_turn where session_seq = :session", session=session)
        for ordinal, (turn,) in enumerate(listed, 1):
            rows.run(
                "insert into session_turn (session_seq, ordinal, turn_seq) values (:session, :ordinal, :turn)",
                session=session,
                ordinal=ordinal,
                turn=turn,
            )
        rows.run("update sessions set turns = :turns where seq = :session", turns=len(listed), session=session)
    return len(hurt)


def keep_forgotten(rows: Rows, tombstones: list[dict[str, Any]], *, key: bytes) -> int:
    """Adds tombstones of another state of this database and removes what they forbid; how many rows changed."""
    for tombstone in tombstones:
        rows.run(
            "insert into tombstones "
            "(kind, hash, part_of, words, anchor, anchor_at, authority, created_at, place, again_at) values "
            "(:kind, :hash, :part_of, :words, :anchor, :anchor_at, :authority, :created_at, :place, :again_at) "
            "on conflict (kind, hash, part_of) do update set "
            "authority = case when excluded.authority = 'user' then 'user' else tombstones.authority end, "
            "again_at = case when excluded.created_at >= tombstones.created_at then excluded.again_at "
            "else tombstones.again_at end, "
            "created_at = case when excluded.created_at > tombstones.created_at then excluded.created_at "
            "else tombstones.created_at end",
            **{"place": "", "again_at": "", **tombstone},
        )
    return purge.honour(rows, key)


def leave_stubs(rows: Rows) -> int:
    """Gives turns of sessions whose own row was lost to those that list them again; how many stubs went."""
    stub = "select seq from sessions where id like 'recovered-%'"
    elsewhere = (
        f"select min(st.session_seq) from session_turn st where st.turn_seq = {{}} and st.session_seq not in ({stub})"  # noqa: S608
    )
    for table, turn in (("turns", "seq"), ("statements", "turn_seq"), ("queued", "turn_seq")):
        session = elsewhere.format(f"{table}.{turn}")
        rows.run(
            f"update {table} set session_seq = ({session}) where session_seq in ({stub}) and ({session}) is not null"  # noqa: S608
        )
    for (seq,) in rows.all(stub):  # what is made of a session is made again of those that list its turns
        digests.clear(rows, int(seq))
        checkpoints.clear(rows, int(seq))
        candidates.take_back_session_packets(rows, int(seq))
        for table in ("error_seen", "error_fixes"):
            rows.run(f"delete from {table} where session_seq = :session", session=seq)  # noqa: S608
    rows.run(
        f"delete from session_turn where session_seq in ({stub}) and exists "  # noqa: S608
        "(select 1 from turns t where t.seq = session_turn.turn_seq and t.session_seq <> session_turn.session_seq)"
    )
    return rows.run(
        f"delete from sessions where seq in ({stub}) and not exists "  # noqa: S608
        "(select 1 from session_turn st where st.session_seq = sessions.seq) and not exists "
        "(select 1 from turns t where t.session_seq = sessions.seq) and not exists "
        "(select 1 from statements s where s.session_seq = sessions.seq) and not exists "
        "(select 1 from queued q where q.session_seq = sessions.seq)"
    )


def nameless_projects(rows: Rows) -> list[tuple[int, str]]:
    """(row key, a directory in which a session of it stood) of projects whose own row was lost."""
    found = rows.all(
        "select p.seq, max(s.cwd) from projects p join sessions s on s.project_seq = p.seq "
        "where p.key = 'recovered-' || cast(p.seq as text) and s.cwd <> '' group by p.seq"
    )
    return [(int(seq), str(cwd)) for seq, cwd in found]


def name_project(rows: Rows, seq: int, project: Project) -> None:
    """Gives a lost project's row what its directory says, unless another row has that already."""
    rows.run(
        "update projects set key = :key, root = :root, name = :name, kind = :kind where seq = :seq "
        "and not exists (select 1 from projects p where p.key = :key)",
        key=project.key,
        root=project.root,
        name=project.name,
        kind=project.kind,
        seq=seq,
    )


def last_turn(rows: Rows) -> int:
    """The row key of the last turn."""
    return int(rows.value("select max(seq) from turns") or 0)


def without_turn(rows: Rows) -> int:
    """How many memories rest on no turn that is stored: no transcript would bring them back."""
    return int(
        rows.value(
            "select count(*) from memories m where not exists (select 1 from provenance p join turns t "
            "on t.uuid = p.uuid where p.memory_seq = m.seq)"
        )
    )
