"""How kinds of work ended in sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from csmd.store.sqlite import Rows, in_keys


def replace_outcomes(rows: Rows, session_seq: int, endings: Sequence[tuple[str, str, str, str]], *, at: str) -> None:
    """Replaces the outcomes of a session's work by these (capability, outcome, reason, uuid)."""
    rows.delete("self_capabilities", session_seq=session_seq)
    for capability, outcome, reason, uuid in endings:
        ending = {"capability": capability, "outcome": outcome, "why": reason, "uuid": uuid}
        rows.insert("self_capabilities", session_seq=session_seq, at=at, **ending)


def read_outcomes(rows: Rows, *, projects: Sequence[int] | None) -> list[tuple[Any, ...]]:
    """Returns (capability, outcome, uuid, session, time) of the sessions of these projects (None: all), by time."""
    sql = f"""select c.capability, c.outcome, c.uuid, s.id, c.at from self_capabilities c join sessions s
        on s.seq = c.session_seq and {in_keys("s.project_seq", projects)} order by c.at, s.id, c.capability"""  # noqa: S608
    return rows.all(sql)


def list_projects_with_outcomes(rows: Rows) -> list[int]:
    """Returns the projects with outcomes."""
    sql = """select distinct s.project_seq
        from self_capabilities c join sessions s on s.seq = c.session_seq order by s.project_seq"""
    return rows.column(sql)
