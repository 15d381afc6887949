"""How kinds of work ended in sessions, and with which model and client they were held; counted when they are asked for.

A row is a session's: what is counted for a project follows it through merges and splits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from csmd.store.sqlite import Rows


def replace(rows: Rows, session_seq: int, ended: Sequence[Any], *, at: str) -> None:
    """Writes how the work of a session ended, and what it was held with, in the place of what was written before."""
    rows.run("delete from self_capabilities where session_seq = :session", session=session_seq)
    for one in ended:
        rows.run(
            "insert into self_capabilities (session_seq, capability, outcome, why, uuid, at) values "
            "(:session, :capability, :outcome, :why, :uuid, :at)",
            session=session_seq,
            capability=one.capability,
            outcome=one.outcome,
            why=one.why,
            uuid=one.uuid,
            at=at,
        )
    rows.run("delete from self_continuity where session_seq = :session", session=session_seq)
    rows.run(
        "insert into self_continuity (session_seq, host, version, model, since, until) "
        "select s.seq, s.host, s.version, s.model, s.started_at, s.last_at from sessions s where s.seq = :session",
        session=session_seq,
    )


def counted(rows: Rows, *, projects: Sequence[int] | None) -> list[tuple[Any, ...]]:
    """(capability, outcome, uuid, session, time) of the sessions of these projects (None: of all), in order of time."""
    among = _among(projects)
    return rows.all(
        "select c.capability, c.outcome, c.uuid, s.id, c.at from self_capabilities c "  # noqa: S608
        f"join sessions s on s.seq = c.session_seq {among} order by c.at, s.id, c.capability"
    )


def continuity(rows: Rows, *, projects: Sequence[int] | None) -> list[tuple[str, str, str, str, int]]:
    """(model or version, its name, since, until, sessions) of what sessions of these projects were held with, in order."""
    found: list[tuple[str, str, str, str, int]] = []
    among = _among(projects)
    for column in ("model", "version"):
        found += [
            (column, str(a), str(b), str(c), int(d))
            for a, b, c, d in rows.all(
                f"select c.{column}, min(c.since), max(c.until), count(*) from self_continuity c "  # noqa: S608
                f"join sessions s on s.seq = c.session_seq {among} "
                f"group by c.{column} having c.{column} <> '' order by min(c.since), c.{column}"
            )
        ]
    return found


def projects(rows: Rows) -> list[int]:
    """The projects with sessions whose work was counted."""
    found = rows.all(
        "select distinct s.project_seq from self_capabilities c join sessions s on s.seq = c.session_seq order by s.project_seq"
    )
    return [int(project) for (project,) in found]


def warned(rows: Rows) -> list[int]:
    """The projects for which a warning of the self model waits."""
    found = rows.all(
        "select distinct project_seq from candidates where source = 'selfmodel' and status in ('open', 'needs_review') "
        "order by project_seq"
    )
    return [int(project) for (project,) in found]


def _among(projects: Sequence[int] | None) -> str:
    return "" if projects is None else f"and s.project_seq in ({', '.join(str(int(p)) for p in projects)})"
