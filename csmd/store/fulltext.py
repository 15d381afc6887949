"""What words are looked for in, in SQLite's own way; another backend would have a twin of this module.

A search costs as much as the rows that hold its words, and a common word of a large store is in most of them while it
tells them apart the least. So the words of a question are taken from the rarest on until the rows that hold them are
MOST_ROWS; a store smaller than that is looked through for every word.
"""

from __future__ import annotations

from collections.abc import Sequence

from csmd.store.sqlite import Row, Rows

#: Kind -> its index, whose row that is (a symptom's is the memory that explains it), the table with its keys.
FULL_TEXT = {
    "turn": ("turns_fts", "turns b on b.seq = turns_fts.rowid", "turns"),
    "memory": ("memories_fts", "memories b on b.seq = memories_fts.rowid", "memories"),
    "symptom": (
        "symptoms_fts",
        "symptoms y on y.seq = symptoms_fts.rowid join memories b on b.seq = y.memory_seq",
        "symptoms",
    ),
    "session": (
        "digests_fts",
        "digests d on d.seq = digests_fts.rowid join sessions b on b.seq = d.session_seq",
        "digests",
    ),
}
#: What each kind's hits are told by.
_KEY = {"session": "d.seq"}
MOST_ROWS = 20_000
#: Of a term so many rows are looked at for whose they are.
LOOKED_UP = 400


def match_expression(terms: Sequence[str]) -> str:
    """An FTS5 query that any of `terms` satisfies; each is a quoted phrase, so no input is syntax; `word*` is a beginning."""
    # FTS5 reads an expression up to its first NUL: a phrase would never end.
    plain = (term.replace("\0", " ") for term in terms)
    return " OR ".join(_phrase(term) for term in plain if term.strip())


def _phrase(term: str) -> str:
    begins = len(term) > 1 and term.endswith("*") and term[:-1].isalpha()
    return '"' + term.removesuffix("*" if begins else "").replace('"', '""') + '"' + ("*" if begins else "")


def text_hits(rows: Rows, kind: str, terms: Sequence[str], *, projects: Sequence[int] | None, limit: int) -> list[Row]:
    """(row seq, bm25 score with higher better) of the rows that hold any of `terms`; `projects` None is all.

    Where even the rarest term is in more than MOST_ROWS, of the newest of them.
    """
    chosen, least = _affordable(rows, kind, [term for term in terms if match_expression([term])])
    if not chosen:
        return []
    table, base, _ = FULL_TEXT[kind]
    key = _KEY.get(kind, "b.seq")
    scope = "" if projects is None else f"and b.project_seq in ({', '.join(str(int(p)) for p in projects)})"
    newest = f"and {table}.rowid >= {least}" if least else ""
    sql = f"select {key}, -bm25({table}) as score from {table} join {base} where {table} match :expression {newest} {scope}"  # noqa: S608
    return rows.all(f"{sql} order by score desc, {key} limit :limit", expression=match_expression(chosen), limit=limit)


def _affordable(rows: Rows, kind: str, terms: Sequence[str]) -> tuple[list[str], int]:
    """The terms that are looked for, and the least row key where even the rarest is in too many rows (0 for none)."""
    table, _, base = FULL_TEXT[kind]
    last = rows.value(f"select max(seq) from {base}")  # noqa: S608
    if last is None or last <= MOST_ROWS:
        return list(terms), 0
    held = sorted((rows_with(rows, kind, term), place, term) for place, term in enumerate(terms))
    chosen: list[str] = []
    left = MOST_ROWS
    for count, _, term in held:
        if count > left and chosen:
            break
        chosen.append(term)
        left -= count
    if left >= 0 or not chosen:
        return chosen, 0
    least = rows.value(
        f"select rowid from {table} where {table} match :expression order by rowid desc limit 1 offset :most",  # noqa: S608
        expression=match_expression(chosen),
        most=MOST_ROWS,
    )
    return chosen, int(least or 0)


def rows_with(rows: Rows, kind: str, term: str) -> int:
    """How many rows hold a term (stemmed); no more than MOST_ROWS + 1 are counted."""
    table = FULL_TEXT[kind][0]
    return int(
        rows.value(
            f"select count(*) from (select rowid from {table} where {table} match :term limit :most)",  # noqa: S608
            term=match_expression([term]),
            most=MOST_ROWS + 1,
        )
    )


def held(rows: Rows, kind: str, term: str, *, projects: Sequence[int] | None, most: int) -> int:
    """How many rows of these projects hold a term (stemmed), counted up to `most`; None is all projects.

    Whose rows they are is looked up for the newest LOOKED_UP of a term, and the rest of them taken to be alike: a word
    that is common elsewhere would cost a look at each of its rows. One row is looked for until it is found.
    """
    expression = match_expression([term])
    if not expression:
        return 0
    table, base, _ = FULL_TEXT[kind]
    among = "" if projects is None else f"b.project_seq in ({', '.join(str(int(p)) for p in projects)})"
    if projects is not None and most > 1:
        looked, found = map(
            int,
            rows.all(
                f"select count(*), coalesce(sum(case when {among} then 1 else 0 end), 0) from "  # noqa: S608
                f"(select rowid from {table} where {table} match :expression order by rowid desc limit :most) held "
                f"join {base.replace(f'{table}.rowid', 'held.rowid')}",
                expression=expression,
                most=LOOKED_UP,
            )[0],
        )
        if looked < LOOKED_UP:
            return min(found, most)
        total = rows_with(rows, kind, term)
        if total > MOST_ROWS:  # one of the commonest, wherever it falls
            return most if found else 1
        return min(most, max(1, round(found * total / looked)))
    scope = f"and {among}" if among else ""
    one = f"select 1 from {table} join {base} where {table} match :expression {scope} limit :most"  # noqa: S608
    return int(rows.value(f"select count(*) from ({one})", expression=expression, most=most))  # noqa: S608
