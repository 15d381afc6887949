"""The team's server, the shared projects, the outbox, and the memories of colleagues.

Triggers fill the outbox in the transaction of a change (migrations/0023_schema.sql).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from csmd.store import memories, memory_deletion
from csmd.store.row_values import column_values, columns
from csmd.store.sqlite import Rows

#: `readers` of a share for everybody on the server.
EVERYBODY = "*"
#: The name of a role; another form could be mistaken where it is shown.
ROLE = re.compile(r"[\w.@-]{1,63}")
#: Kinds of rows in the outbox.
MEMORY = "memory"
DIGEST = "digest"
PROJECT = "project"
_SHARE = """select s.project_seq, s.name, s.readers, coalesce(w.name, '') from team_shares s
    join projects p on p.seq = s.project_seq left join projects w on w.seq = p.workspace_seq and w.seq > 0"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamRow:
    """The server that this home has joined, with its role there and its latest state; times are "" for never."""

    url: str
    author: str
    epoch: str
    joined_at: str
    reached_at: str = ""
    failing_since: str = ""
    failure: str = ""


class Share(NamedTuple):
    """A shared project: its row, its name for the team, its readers (EVERYBODY, or roles), its workspace."""

    project_seq: int
    name: str
    readers: str
    workspace: str

    @property
    def roles(self) -> list[str] | None:
        """The roles that may read it; None for all."""
        return None if self.readers == EVERYBODY else self.readers.split()


class Waiting(NamedTuple):
    """Something that waits to be sent, and how often it changed."""

    kind: str
    id: str
    changes: int


class Place(NamedTuple):
    """A colleague's project by its row on the server, the project here, and how far it was received."""

    seq: int
    author: str
    project_seq: int
    xid: int
    item: int


_TEAM = columns(TeamRow, "t")
_PLACE = columns(Place, "p")


def find_team(rows: Rows) -> TeamRow | None:
    """Returns the joined server, or None."""
    return rows.read_one(TeamRow, f"select {_TEAM} from team t")  # noqa: S608


def join_server(rows: Rows, team: TeamRow) -> None:
    """Records the joined server; a new one starts empty."""
    rows.upsert("team", "seq", seq=1, **column_values(team))


def leave_server(rows: Rows) -> None:
    """Deletes the server's row and the memories of colleagues; shared memories stay on the server."""
    for place in list_places(rows):
        delete_place(rows, place)
    for table in ("team_shares", "team_outbox", "team"):
        rows.run(f"delete from {table}")  # noqa: S608


def record_reached(rows: Rows, *, epoch: str, at: str) -> None:
    """Records that the server answered; a new server, or an earlier state of it, exchanges everything again."""
    stored_epoch = rows.text("select epoch from team")
    rows.run("update team set epoch = :epoch, reached_at = :at, failing_since = '', failure = ''", epoch=epoch, at=at)
    if stored_epoch != epoch:
        rows.run("update team_places set xid = 0, item = 0")
        for share in list_shares(rows):
            queue_project(rows, share)


def record_failure(rows: Rows, failure: str, *, at: str) -> None:
    """Records that the server did not answer, and since when."""
    sql = """update team set failure = :failure,
        failing_since = case when failing_since = '' then :at else failing_since end"""
    rows.run(sql, failure=failure, at=at)


# --- shared projects


def list_shares(rows: Rows) -> list[Share]:
    """Returns the shared projects by name."""
    return rows.read(Share, f"{_SHARE} order by s.name")


def list_names_for_team(rows: Rows) -> frozenset[str]:
    """Returns the names that the team may know the projects here by: names of shares, and remotes."""
    return rows.distinct("select name from team_shares union select remote from projects where remote <> ''")


def find_remote(rows: Rows, project: int) -> str:
    """Returns the remote of a project, by which colleagues know it; "" if there is none."""
    return rows.text("select remote from projects where seq = :seq", seq=project)


def share_project(rows: Rows, project: int, *, name: str, readers: str, now: str) -> None:
    """Shares a project under a name and queues everything in it."""
    rows.upsert("team_shares", "project_seq", project_seq=project, name=name, readers=readers, shared_at=now)
    for share in rows.read(Share, f"{_SHARE} where s.project_seq = :project", project=project):
        queue_project(rows, share)


def unshare_project(rows: Rows, project: int) -> str:
    """Stops sharing a project; returns its name, whose removal is queued, "" if it was not shared."""
    name = rows.text("delete from team_shares where project_seq = :project returning name", project=project)
    if name:
        _queue(rows, PROJECT, name)
    return name


def queue_project(rows: Rows, share: Share) -> None:
    """Queues everything shared of a project."""
    _queue(rows, PROJECT, share.name)
    memory_ids = """select id from memories where project_seq = :project
        and twin_of = 0 and seq not in (select memory_seq from team_memories) order by seq"""
    sessions = """select s.id
        from sessions s where s.project_seq = :project and exists (select 1 from digests d where d.session_seq = s.seq)"""
    for kind, sql in ((MEMORY, memory_ids), (DIGEST, sessions)):
        for item_id in rows.column(sql, project=share.project_seq):
            _queue(rows, kind, item_id)


def _queue(rows: Rows, kind: str, item_id: str) -> None:
    repeated = "on conflict (kind, id) do update set changes = team_outbox.changes + 1"
    rows.insert("team_outbox", repeated, kind=kind, id=item_id, changes=1)


# --- the outbox


def list_waiting(rows: Rows, *, limit: int) -> list[Waiting]:
    """Returns the rows that wait to be sent, projects before their contents."""
    sql = "select kind, id, changes from team_outbox order by kind desc, id limit :limit"
    return rows.read(Waiting, sql, limit=limit)


def count_waiting(rows: Rows) -> int:
    """Returns the number of rows that wait to be sent."""
    return rows.number("select count(*) from team_outbox")


def remove_sent(rows: Rows, sent: Iterable[Waiting]) -> None:
    """Removes sent rows from the queue, unless they changed since."""
    for row in sent:
        rows.delete("team_outbox", **row._asdict())


class SharedMemory(NamedTuple):
    """The row keys of one's own memory in a shared project and of the project."""

    seq: int
    project_seq: int


class SharedSession(NamedTuple):
    """A session of a shared project."""

    seq: int
    project_seq: int
    parent: str
    host: str
    last_at: str


def find_shared_memory(rows: Rows, memory_id: str) -> SharedMemory | None:
    """Returns the user's own memory in a shared project; None for any other memory."""
    sql = """select m.seq, m.project_seq from memories m join team_shares s on s.project_seq = m.project_seq
        where m.id = :id and m.twin_of = 0 and m.seq not in (select memory_seq from team_memories)"""
    return rows.read_one(SharedMemory, sql, id=memory_id)


def is_colleagues(rows: Rows, memory_id: str) -> bool:
    """Whether a memory is a colleague's."""
    sql = "select 1 from memories m join team_memories t on t.memory_seq = m.seq where m.id = :id"
    return rows.exists(sql, id=memory_id)


def find_shared_session(rows: Rows, session_id: str) -> SharedSession | None:
    """Returns a session of a shared project; None for any other."""
    sql = """select n.seq, n.project_seq, n.parent, n.host, n.last_at
        from sessions n join team_shares s on s.project_seq = n.project_seq where n.id = :id"""
    return rows.read_one(SharedSession, sql, id=session_id)


# --- memories of colleagues


def list_places(rows: Rows) -> list[Place]:
    """Returns the colleagues' projects that are received here."""
    return rows.read(Place, f"select {_PLACE} from team_places p order by p.seq")  # noqa: S608


def find_project(rows: Rows, name: str, *, workspace: str) -> int | None:
    """Returns the row of the project that the team knows by a name: one shared by it, or the only one with this remote.

    A project in a workspace there matches only a project in the same workspace here.
    """
    sql = """select p.seq from projects p left join team_shares s on s.project_seq = p.seq and s.name = :name
        left join projects w on w.seq = p.workspace_seq and w.seq > 0
        where p.merged_into = 0 and p.part_of = 0 and p.kind <> 'workspace' and (s.name = :name or p.remote = :name)
        and (:wall = '' or coalesce(w.name, '') = :wall) order by case when s.name = :name then 0 else 1 end, p.seq"""
    seqs = rows.column(sql, name=name, wall=workspace)
    is_shared = bool(seqs) and rows.has("team_shares", project_seq=seqs[0])
    return int(seqs[0]) if seqs and (is_shared or len(seqs) == 1) else None


def save_place(rows: Rows, place: Place) -> None:
    """Records how far a colleague's project was received; if it now is another project here, it starts again."""
    before = rows.read_one(Place, f"select {_PLACE} from team_places p where p.seq = :seq", seq=place.seq)  # noqa: S608
    if before is not None and (before.author, before.project_seq) != (place.author, place.project_seq):
        delete_place(rows, before)
    rows.upsert("team_places", "seq", **place._asdict())


def delete_place(rows: Rows, place: Place) -> None:
    """Deletes a colleague's project with its memories."""
    for remote_id in rows.column("select remote_id from team_memories where place_seq = :seq", seq=place.seq):
        delete_memory(rows, place, remote_id)
    rows.delete("team_places", seq=place.seq)


def find_memory(rows: Rows, place: Place, remote_id: str) -> int | None:
    """Returns the row here of a colleague's memory by its id there."""
    sql = "select memory_seq from team_memories where place_seq = :place and remote_id = :id"
    return rows.key(sql, place=place.seq, id=remote_id)


def delete_memory(rows: Rows, place: Place, remote_id: str) -> None:
    """Deletes a colleague's memory if it is here."""
    seq = find_memory(rows, place, remote_id)
    for memory in memories.by_seqs(rows, [] if seq is None else [seq]).values():
        memory_deletion.delete_memory(rows, memory)


def record_author(rows: Rows, place: Place, seq: int, remote_id: str) -> None:
    """Records the author of a memory."""
    rows.insert("team_memories", memory_seq=seq, place_seq=place.seq, author=place.author, remote_id=remote_id)


def count_received(rows: Rows) -> list[tuple[str, int, int]]:
    """Returns (author, project, memories) of colleagues' projects."""
    sql = """select p.author, p.project_seq, count(t.memory_seq) from team_places p
        left join team_memories t on t.place_seq = p.seq group by p.author, p.project_seq order by 1, 2"""
    return rows.all(sql)
