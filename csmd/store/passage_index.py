"""How passages are indexed, in SQLite's own way, and how a store of before them gets there.

Such a store has turns without passages: they are filled in the background, and until then, and until passages have
vectors, its index of turns is kept beside. Another backend would have a twin of this module.
"""

from __future__ import annotations

from collections.abc import Sequence

from csmd.store import cursors, fulltext, vector_tables
from csmd.store.sqlite import Rows
from csmd.text import prose

#: The cursor of the turns of before passages, and of what is taken down of their index.
STAGE = "passages"
INDEX = "passages_fts"
#: Of one write: turns, and characters after which no further one is gone through.
FILLED_TURNS, FILLED_CHARACTERS = 50, 15_000
#: Rows that one write deletes of what is kept of turns.
DROPPED_ROWS = 1000


def is_full(rows: Rows, projects: Sequence[int], *, model: int | None = None) -> bool:
    """Whether every searchable turn of these projects has its passages and, of a `model`, every passage its vector."""
    if fulltext.is_turn_index_dropped(rows):
        return True
    keys = ", ".join(str(int(project)) for project in projects)
    filled, until = progress(rows)
    if filled < until and rows.value(
        "select 1 from turns indexed by turns_of_projects where searchable = 1 "  # noqa: S608
        f"and project_seq in ({keys}) and seq > :filled and seq <= :until limit 1",
        filled=filled,
        until=until,
    ):
        return False
    return model is None or not rows.value(
        "select 1 from passages indexed by passages_of_projects "  # noqa: S608
        f"where project_seq in ({keys}) and seq > :embedded union all "
        "select 1 from embed_again a join passages p on p.seq = a.row_seq "
        f"where a.kind = 'passage' and a.model_seq = :model and p.project_seq in ({keys}) limit 1",
        embedded=cursors.cursor(rows, "embed-passage", str(model)),
        model=model,
    )


def progress(rows: Rows) -> tuple[int, int]:
    """(how far the turns of before passages have been gone through, up to which they are), by row key."""
    return cursors.cursor(rows, STAGE, "filled"), cursors.cursor(rows, STAGE, "until")


def room_needed(rows: Rows) -> int:
    """About how many bytes the passages of turns of before them will take: twice what the index and vectors of turns do.

    Measured 1.8 times, without vectors. Reads every page of these.
    """
    names = rows.all("select name from sqlite_schema where name like 'turns_fts%' or name like 'vec_turn%'")
    return 2 * sum(
        int(rows.value("select sum(pgsize) from dbstat where name = :name", name=name) or 0) for (name,) in names
    )


def fill(rows: Rows, *, limit: int = FILLED_TURNS) -> int:
    """Gives the next turns of before passages theirs; how many turns were gone through, 0 when all have been."""
    filled, until = progress(rows)
    if filled >= until:
        return 0
    found = rows.all(
        "select seq from turns indexed by turns_searchable "
        "where searchable = 1 and seq > :filled and seq <= :until order by seq limit :limit",
        filled=filled,
        until=until,
        limit=limit,
    )
    done = characters = 0
    reached = until
    for (seq,) in found:
        characters += _fill_turn(rows, int(seq))
        done += 1
        if characters >= FILLED_CHARACTERS or done == limit:
            reached = int(seq)
            break
    cursors.move_cursor(rows, STAGE, "filled", reached)
    return max(done, 1)


def _fill_turn(rows: Rows, seq: int) -> int:
    """Gives one turn its passages, unless it was changed since and has them; its length in characters."""
    length, has = rows.all(
        "select length(text), exists (select 1 from passages where turn_seq = turns.seq and text = '') "
        "from turns where seq = :seq",
        seq=seq,
    )[0]
    if not has:
        rows.run(
            "insert into passages (turn_seq, session_seq, project_seq, start_at, end_at) "
            "select t.seq, t.session_seq, t.project_seq, j.value ->> 0, j.value ->> 1 "
            "from turns t cross join json_each(csmd_passages(t.text)) j where t.seq = :seq",
            seq=seq,
        )
        _index(rows, seq)
    return int(length)


def _index(rows: Rows, turn_seq: int) -> None:
    """Indexes the passages of a turn that are slices of its text."""
    rows.run(
        "insert into passages_fts (rowid, text) select p.seq, csmd_indexed(j.value ->> 2, t.at) "
        "from turns t cross join json_each(csmd_passages(t.text)) j "
        "cross join passages p on p.turn_seq = t.seq and p.start_at = j.value ->> 0 and p.text = '' where t.seq = :seq",
        seq=turn_seq,
    )


def index_anew(rows: Rows) -> None:
    """Indexes all passages anew, inside the caller's write: for a repair, whose copy nobody searches meanwhile."""
    rows.run("insert into passages_fts (passages_fts) values ('delete-all')")
    for (turn,) in rows.all("select distinct turn_seq from passages where text = '' order by turn_seq"):
        _index(rows, int(turn))
    rows.run(
        "insert into passages_fts (rowid, text) select p.seq, csmd_indexed(p.text, t.at) "
        "from passages p join turns t on t.seq = p.turn_seq where p.text <> ''"
    )


def index_problems(rows: Rows) -> list[str]:
    """Which passages are not in their full-text index, and which of its rows have no passage; empty when sound.

    It keeps no texts, so SQLite cannot compare it with them.
    """
    lacking = rows.value(
        "select count(*) from passages p where not exists (select 1 from passages_fts_docsize d where d.id = p.seq)"
    )
    left = rows.value(
        "select count(*) from passages_fts_docsize d where not exists (select 1 from passages p where p.seq = d.id)"
    )
    filled, until = progress(rows)
    without = rows.all(
        "select text from turns t where searchable = 1 and (seq <= :filled or seq > :until) "
        "and not exists (select 1 from passages p where p.turn_seq = t.seq)",
        filled=filled,
        until=until,
    )
    bare = sum(bool(prose.passages(said, most=1)) for (said,) in without)
    return [
        text
        for count, text in (
            (lacking, f"passages_fts: {lacking} passages are not in it"),
            (left, f"passages_fts: {left} of its rows have no passage"),
            (bare, f"passages: {bare} turns have none"),
        )
        if count
    ]


def drop_turn_index(rows: Rows) -> int:
    """Takes down a part of the index and vectors of turns; how many rows or tables went, 0 when nothing is left.

    Only once every turn has passages and, where a model is in use, every passage its vector: the caller sees to it.
    """
    if not fulltext.is_turn_index_dropped(rows):
        cursors.move_cursor(rows, STAGE, fulltext.TURNS_DROPPED, 1)
        for name in ("insert", "delete", "update"):
            rows.run(f"drop trigger if exists turns_fts_{name}")
        return 1
    for table, key in (
        ("vectors", "seq"),
        ("vector_codes", "model_seq, project_seq, seq"),
        ("embed_again", "model_seq, row_seq"),
    ):
        gone = rows.run(
            f"delete from {table} where kind = 'turn' and ({key}) in (select {key} from {table} where kind = 'turn' limit :most)",  # noqa: S608
            most=DROPPED_ROWS,
        )
        if gone:
            return gone
    for name in (
        "turns_fts",
        *(vector_tables.vector_table("turn", int(model)) for (model,) in rows.all("select seq from vector_models")),
    ):
        if rows.value("select 1 from sqlite_schema where name = :name", name=name):
            rows.run(f"drop table {name}")
            rows.run("drop view if exists turn_text")
            return 1
    return 0
