"""How kinds of work ended in sessions, and the models and clients that were used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from csmd.store.sqlite import Rows, in_keys


def replace_outcomes(rows: Rows, session_seq: int, endings: Sequence[Any], *, at: str) -> None:
    """Replaces the outcomes of a session's work."""
    rows.delete("self_capabilities", session_seq=session_seq)
    for ending in endings:
        columns = {name: getattr(ending, name) for name in ("capability", "outcome", "why", "uuid")}
        rows.insert("self_capabilities", session_seq=session_seq, at=at, **columns)


def read_outcomes(rows: Rows, *, projects: Sequence[int] | None) -> list[tuple[Any, ...]]:
    """Returns (capability, outcome, uuid, session, time) of the sessions of these projects (None: all), by time."""
    sql = f"""select c.capability, c.outcome, c.uuid, s.id, c.at from self_capabilities c join sessions s
        on s.seq = c.session_seq and {in_keys("s.project_seq", projects)} order by c.at, s.id, c.capability"""  # noqa: S608
    return rows.all(sql)


def model_and_version_spans(rows: Rows, *, projects: Sequence[int] | None) -> list[tuple[str, str, str, str, int]]:
    """Returns when each model and client version was used in sessions of these projects (None: all), by time."""
    spans: list[tuple[str, str, str, str, int]] = []
    for column in ("model", "version"):
        sql = f"""select '{column}', s.{column}, min(s.started_at), max(s.last_at), count(*)
            from sessions s where s.parent = '' and s.{column} <> '' and {in_keys("s.project_seq", projects)}
            group by s.{column} order by min(s.started_at), s.{column}"""  # noqa: S608
        spans += rows.all(sql)
    return spans


def projects_with_outcomes(rows: Rows) -> list[int]:
    """Returns the projects with outcomes."""
    sql = """select distinct s.project_seq
        from self_capabilities c join sessions s on s.seq = c.session_seq order by s.project_seq"""
    return rows.column(sql)


def projects_with_warning(rows: Rows) -> list[int]:
    """Returns the projects with an unanswered warning of the self model."""
    sql = """select distinct project_seq
        from candidates where source = 'selfmodel' and status in ('open', 'needs_review') order by project_seq"""
    return rows.column(sql)
