"""How a question's words are spread over sessions: SQLite's own, as the full-text index is.

A session in which many of a question's words fall is the one it is about, in whichever turns they fall.
"""

from __future__ import annotations

from collections.abc import Sequence

from csmd.store.fulltext import match_expression
from csmd.store.sqlite import Rows

#: A word that stands in more turns than that tells no session from another, and each of its turns costs a look.
MOST_TURNS = 2000


def sessions_with(rows: Rows, term: str, *, projects: Sequence[int] | None) -> dict[int, int]:
    """Session's row key -> in how many of its turns a term stands, in these projects (None: all); {} for a common word."""
    expression = match_expression([term])
    if not expression:
        return {}
    scope = "" if projects is None else f"where s.project_seq in ({', '.join(str(int(p)) for p in projects)})"
    found = rows.all(
        "with held as materialized (select rowid as seq from turns_fts where turns_fts match :expression limit :most) "  # noqa: S608
        "select st.session_seq, count(*), (select count(*) from held) from held "
        "cross join session_turn st on st.turn_seq = held.seq "
        f"cross join sessions s on s.seq = st.session_seq {scope} group by st.session_seq",
        expression=expression,
        most=MOST_TURNS,
    )
    return {int(session): int(amount) for session, amount, held in found if held < MOST_TURNS}


def session_count(rows: Rows, *, projects: Sequence[int] | None) -> int:
    """How many sessions there are in these projects (None: in all)."""
    scope = "" if projects is None else f"where project_seq in ({', '.join(str(int(p)) for p in projects)})"
    return int(rows.value(f"select count(*) from sessions {scope}"))  # noqa: S608
