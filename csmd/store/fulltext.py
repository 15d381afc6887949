"""Full-text hits and document frequencies (FTS5).

A search costs as much as the rows that contain its words, and a common word of a large store is in most rows but
distinguishes them least. So a question's words are taken from the rarest on, until their rows are MAX_ROWS; a smaller
store is searched for every word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from csmd.store.sqlite import Row, Rows, in_keys, list_full_text_tables

#: The words of the passage `p` of the turn `t`.
PASSAGE_TEXT = "case when p.text <> '' then p.text else csmd_slice(t.text, p.start_at, p.end_at) end"
#: Joins the turn `n` if it is searchable; by index, because its row would be read to the end of a long text.
JOIN_SEARCHABLE = "turns t indexed by turns_searchable on t.seq = n.turn_seq and t.searchable = 1"
MAX_ROWS = 20_000
#: Words with at most so many rows are counted first: they often leave no room for counting another.
FEW_ROWS = 2_000
#: Pages that one write merges.
MERGE_PAGES = 32
#: Parts of one size that are merged: the fewest that SQLite takes.
MIN_MERGE_PARTS = 2


class Index(NamedTuple):
    """A full-text index: its table, the table with its keys, the join to the row `b` with a project, a hit's key.

    `alone` is that key when no project is selected and nothing else has to be joined.
    """

    table: str
    base: str
    whose: str
    key: str = "b.seq"
    alone: str = ""


def _make_project_index(table: str) -> Index:
    """Returns the index of a table whose projects are in an index without its text."""
    joined = f"{table} b indexed by {table}_of_projects on b.seq = {table}_fts.rowid"
    return Index(f"{table}_fts", table, joined, alone=f"{table}_fts.rowid")


FULL_TEXT: dict[str, Index] = {
    # A common word of a large store is in thousands of rows, each on another page.
    "passage": _make_project_index("passages"),
    "memory": _make_project_index("memories"),
    # Its hit is the memory that explains it.
    "symptom": Index(
        "symptoms_fts", "symptoms", "symptoms y on y.seq = symptoms_fts.rowid join memories b on b.seq = y.memory_seq"
    ),
    "session": Index(
        "digests_fts",
        "digests",
        "digests d on d.seq = digests_fts.rowid join sessions b on b.seq = d.session_seq",
        key="d.seq",
    ),
}


def merge_indexes(rows: Rows) -> bool:
    """Merges some of the parts that writes leave in the full-text indexes; returns whether there may be more.

    Each search reads every part, and SQLite itself leaves up to four parts of each size.
    """
    for table in list_full_text_tables(rows):
        if rows.number(f"select v from {table}_config where k = 'usermerge'") != MIN_MERGE_PARTS:  # noqa: S608
            rows.run(f"insert into {table} ({table}, rank) values ('usermerge', :parts)", parts=MIN_MERGE_PARTS)  # noqa: S608
        before = rows.connection.total_changes()
        rows.run(f"insert into {table} ({table}, rank) values ('merge', :pages)", pages=MERGE_PAGES)  # noqa: S608
        if rows.connection.total_changes() - before > 1:  # SQLite's sign that something was merged
            return True
    return False


def match_expression(terms: Sequence[str]) -> str:
    """Returns an FTS5 query for any of `terms`, each a quoted phrase, so no input is syntax; `word*` is a prefix."""
    # FTS5 ends an expression at its first NUL, which would leave a phrase open.
    plain = (term.replace("\0", " ") for term in terms)
    return " OR ".join(_quote_phrase(term) for term in plain if term.strip())


def _quote_phrase(term: str) -> str:
    begins = len(term) > 1 and term.endswith("*") and term[:-1].isalpha()
    return '"' + term.removesuffix("*" if begins else "").replace('"', '""') + '"' + ("*" if begins else "")


def text_hits(
    rows: Rows,
    kind: str,
    terms: Sequence[str],
    *,
    projects: Sequence[int] | None,
    limit: int,
    any_of: Sequence[str] = (),
) -> list[Row]:
    """Returns (row key, bm25 score, higher is better) of the rows with any of `terms` in `projects` (None: all).

    `any_of` also requires one of these terms. If even the rarest term is in more than MAX_ROWS rows, only the newest
    are searched.
    """
    selected, min_seq = _choose_terms(rows, kind, [term for term in terms if match_expression([term])])
    if not selected:
        return []
    index = FULL_TEXT[kind]
    key, whose = _choose_hit_columns(index, projects)
    newest = f"and {index.table}.rowid >= {min_seq}" if min_seq else ""
    return rows.all(
        f"""select {key}, -bm25({index.table}) as score from {index.table} {whose}
            where {index.table} match :expression {newest} and {in_keys("b.project_seq", projects)}
            order by score desc, {key} limit :limit""",  # noqa: S608
        expression=" AND ".join(f"({match_expression(some)})" for some in (selected, any_of) if match_expression(some)),
        limit=limit,
    )


def find_literal_hits(
    rows: Rows, text: str, *, projects: Sequence[int] | None, limit: int
) -> tuple[list[int], list[int], bool]:
    """Returns (passages, memories) with a text that no index contains, the newest first, and whether all were read.

    Reads the newest MAX_ROWS turns. `text` must hold no wildcard of LIKE.
    """
    least = rows.number("select coalesce(max(seq), 0) from turns") - MAX_ROWS
    among = in_keys("b.project_seq", projects)
    sql = f"""select b.seq from (select seq, text
        from turns where searchable = 1 and seq > :least and text like :text) t join passages b on b.turn_seq = t.seq
        where {PASSAGE_TEXT.replace("p.", "b.")} like :text and {among} order by b.seq desc limit :limit"""  # noqa: S608
    seqs = rows.column(sql, text=f"%{text}%", least=least, limit=limit)
    sql = f"select b.seq from memories b where b.text like :text and {among} order by b.seq desc limit :limit"  # noqa: S608
    stated = rows.column(sql, text=f"%{text}%", limit=limit)
    return seqs, stated, least <= 0


def _choose_hit_columns(index: Index, projects: Sequence[int] | None) -> tuple[str, str]:
    """Returns the key of a hit, and the joins to its project."""
    return (index.alone, "") if index.alone and projects is None else (index.key, f"join {index.whose}")


def _choose_terms(rows: Rows, kind: str, terms: Sequence[str]) -> tuple[list[str], int]:
    """Returns the terms to search for, and the least row key if even the rarest is in too many rows (0 for none)."""
    index = FULL_TEXT[kind]
    last = rows.value(f"select max(seq) from {index.base}")  # noqa: S608
    if last is None or last <= MAX_ROWS:
        return list(terms), 0
    selected: list[str] = []
    room = MAX_ROWS
    for count, term in _count_from_rarest(rows, kind, terms):
        if count > room and selected:
            break
        selected.append(term)
        room -= count
    if room >= 0 or not selected:
        return selected, 0
    sql = f"""select rowid
        from {index.table} where {index.table} match :expression order by rowid desc limit 1 offset :most"""  # noqa: S608
    min_seq = rows.value(sql, expression=match_expression(selected), most=MAX_ROWS)
    return selected, int(min_seq or 0)


def _count_from_rarest(rows: Rows, kind: str, terms: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yields (rows, term), the rarest first; the rows of common terms are counted only up to the remaining room."""

    def count_terms(places: Iterable[int], most: int) -> list[tuple[int, int]]:
        return sorted((count_rows_with(rows, kind, terms[index], limit=most + 1), index) for index in places)

    at_first = min(FEW_ROWS, MAX_ROWS)
    counts = count_terms(range(len(terms)), at_first)
    few = [entry for entry in counts if entry[0] <= at_first]
    yield from ((count, terms[index]) for count, index in few)
    room = max(0, MAX_ROWS - sum(count for count, _ in few))
    yield from ((count, terms[index]) for count, index in count_terms([index for _, index in counts[len(few) :]], room))


def count_rows_with(rows: Rows, kind: str, term: str, *, limit: int = 0) -> int:
    """Counts the rows with a term (stemmed), up to `limit` (0: one more than a search reads)."""
    limit = limit or MAX_ROWS + 1
    cached, counted_to = (rows.read_cache or {}).get((kind, term), (0, 0))
    if counted_to >= limit or cached < counted_to:
        return min(int(cached), limit)
    table = FULL_TEXT[kind].table
    sql = f"select count(*) from (select rowid from {table} where {table} match :term limit :limit)"  # noqa: S608
    total = rows.number(sql, term=match_expression([term]), limit=limit)
    if rows.read_cache is not None:
        rows.read_cache[kind, term] = total, limit
    return total
