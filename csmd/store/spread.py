"""How a question's words are spread over sessions: SQLite's own, as the full-text index is.

A session in which many of a question's words fall is the one it is about, in whichever turns they fall.
"""

from __future__ import annotations

from collections.abc import Sequence

from csmd.store.fulltext import FULL_TEXT, is_turn_index_dropped, match_expression, rows_with
from csmd.store.sqlite import Rows

#: A word that stands in more turns than that tells no session from another, and each of its turns costs a look.
MOST_TURNS = 2000


def sessions_with(rows: Rows, term: str, *, projects: Sequence[int] | None) -> dict[int, int]:
    """Session's row key -> in how many of its turns a term stands, in these projects (None: all); {} for a common word.

    A turn that went into another project counts there: what is not asked about says nothing of a session.
    """
    kind = "passage" if is_turn_index_dropped(rows) else "turn"
    expression = match_expression([term])
    if not expression or rows_with(rows, kind, term, most=MOST_TURNS) >= MOST_TURNS:
        return {}
    table, whose, scope = FULL_TEXT[kind].table, "", ""
    if projects is not None:
        keys = ", ".join(str(int(project)) for project in projects)
        whose = f"cross join {FULL_TEXT[kind].whose} and b.project_seq in ({keys})"
        scope = f"and s.project_seq in ({keys})"
    turn = f"{table}.rowid"
    if kind == "passage":
        whose, turn = f"{whose} cross join passages p on p.seq = {table}.rowid", "p.turn_seq"
    found = rows.all(
        f"select st.session_seq, count(distinct {turn}) from {table} {whose} cross join session_turn st on st.turn_seq = {turn} "  # noqa: S608
        f"cross join sessions s on s.seq = st.session_seq where {table} match :expression {scope} group by st.session_seq",
        expression=expression,
    )
    return {int(session): int(amount) for session, amount in found}


def session_count(rows: Rows, *, projects: Sequence[int] | None) -> int:
    """How many sessions there are in these projects (None: in all)."""
    scope = "" if projects is None else f"where project_seq in ({', '.join(str(int(p)) for p in projects)})"
    return int(rows.value(f"select count(*) from sessions {scope}"))  # noqa: S608
