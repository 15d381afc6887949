"""What the narrator counts: what a project's latest sessions changed, committed and called, and its failures by turn.

Every answer is bounded by the latest sessions of the project, whatever the store holds. Files and commits are read from
the sessions' digests, which stay when the text of tool calls is dropped: a fact does not fade with its tool output.
"""

from __future__ import annotations

from typing import NamedTuple

from csmd.store.sqlite import Rows


class Done(NamedTuple):
    """One thing that a session's last digest names; `cwd` is where the session began, `root` where its project lies."""

    session_id: str
    kind: str
    text: str
    uuid: str
    cwd: str
    root: str


class Shown(NamedTuple):
    """A turn that shows an error (`mended` False), or what mended it; a sub-agent's session is its parent's."""

    session_id: str
    uuid: str
    mended: bool
    files: str
    text: str


def done(rows: Rows, project: int, *, sessions: int) -> list[Done]:
    """What the last digests of a project's latest sessions name, files, commits and branches; the latest session first."""
    found = rows.all(
        "select s.id, i.kind, i.text, i.uuid, s.cwd, p.root from (select seq, id, cwd, last_at, project_seq from sessions "
        "where project_seq = :project and parent = '' and host <> 'probe' order by last_at desc, seq desc limit :limit) s "
        "join projects p on p.seq = s.project_seq join digests d on d.session_seq = s.seq "
        "join digest_items i on i.digest_seq = d.seq "
        "where d.version = (select max(o.version) from digests o where o.session_seq = s.seq) "
        "and i.kind in ('branch', 'commit', 'file') order by s.last_at desc, s.seq desc, i.seq",
        project=project,
        limit=sessions,
    )
    return [Done(*row) for row in found]


def shown(rows: Rows, error_seq: int, project: int, *, limit: int) -> list[Shown]:
    """The turns of a project that show an error or what mended it, the first first."""
    found = rows.all(
        "select case when s.parent = '' then s.id else s.parent end, t.uuid, 0, '', '', x.at, t.seq from error_seen x join turns t on t.seq = x.turn_seq "
        "join sessions s on s.seq = x.session_seq where x.error_seq = :error and t.project_seq = :project union all "
        "select case when s.parent = '' then s.id else s.parent end, case when f.uuid = '' then t.uuid else f.uuid end, 1, f.files, f.text, f.at, t.seq from error_fixes f join turns t on t.seq = f.turn_seq "
        "join sessions s on s.seq = f.session_seq where f.error_seq = :error and t.project_seq = :project "
        "order by 6, 3, 7 limit :limit",
        error=error_seq,
        project=project,
        limit=limit,
    )
    return [Shown(row[0], row[1], bool(row[2]), row[3], row[4]) for row in found]
