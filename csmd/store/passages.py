"""Passages: slices of turns that are found and injected, and their index.

Triggers of the schema keep them in step with turns. The index is SQLite's own; another backend would replace this
module.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from csmd.store.fulltext import PASSAGE_TEXT
from csmd.store.sqlite import IS_LISTED, Rows, in_keys, listed
from csmd.text import prose, quotations
from csmd.text.display import ARROW
from csmd.vocabulary import TurnKind

#: The last quoted line of a question, with its answer right after it.
_ASKED = re.compile(r"^(>.*)\n(?=[^>\s])", re.MULTILINE)
#: How many passages of a turn before and after a hit may contain the rest of a memory's sentences.
SURROUNDING_PASSAGES = 2
#: How many passages after a user's are searched for the reply to it.
MAX_REPLY_DISTANCE = 3
#: The weight of a thread that leads to a reply.
REPLY_WEIGHT = 0.9
#: Whether the passage that a link `h` leads to surely follows at most `most` others.
_FEW = "(select count(*) from passage_threads i where i.newer_seq = h.newer_seq and i.weight >= :sure) <= :most"
INDEX = "passages_fts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A passage in a search result; `start` and `end` are its place in its turn's text, in characters.

    Of a tool call's words they are the place in these words, and `kind` is `assistant`, who wrote them. A user's quote
    is `relayed`; an answer to the assistant's question reads "question -> answer". `session_id` is the parent's for a
    sub-agent's turn.
    """

    seq: int
    turn_seq: int
    session_seq: int
    project_seq: int
    uuid: str
    kind: TurnKind
    start: int
    end: int
    text: str
    at: str
    session_id: str
    project: str


def by_seqs(rows: Rows, seqs: Sequence[int]) -> dict[int, Passage]:
    """Returns passages by row key; missing ones are left out."""
    quoting = "case when p.text <> '' then '' when t.kind = 'user' then t.text else '' end"
    sql = f"""select p.seq, p.turn_seq, p.session_seq, p.project_seq, t.uuid, case when p.text <> '' then 'assistant'
        else t.kind end, p.start_at, p.end_at, {PASSAGE_TEXT}, t.at, case when s.parent = '' then s.id
        else s.parent end, r.root, {quoting} from passages p join turns t on t.seq = p.turn_seq
        join sessions s on s.seq = p.session_seq join projects r on r.seq = p.project_seq where p.seq {IS_LISTED}"""  # noqa: S608
    stored = rows.all(sql, listed=listed(seqs))
    names = tuple(Passage.__annotations__)
    passages = {}
    for *values, whole in stored:
        passage = Passage(**dict(zip(names, values, strict=True)))
        if whole and "/" in passage.uuid:  # an answer in a tool's result: it quotes the question
            passage = replace(passage, text=re.sub(r"(?m)^> ?", "", _ASKED.sub(rf"\1{ARROW}", passage.text)))
        elif quotations.is_quoted(whole, passage.start, passage.end):
            passage = replace(passage, kind="relayed")
        passages[passage.seq] = passage
    return passages


def find_neighbours(rows: Rows, seqs: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Returns the passages before and after each of these in its session, as its turns were stored; 0 for none."""
    # By the order of turns: a changed turn has newer passages than those after it.
    sql = f"""select p.seq, (select n.seq from passages n
        where n.session_seq = p.session_seq and (n.turn_seq, n.start_at, n.seq) < (p.turn_seq, p.start_at, p.seq)
        order by n.turn_seq desc, n.start_at desc, n.seq desc limit 1), (select n.seq from passages n
        where n.session_seq = p.session_seq and (n.turn_seq, n.start_at, n.seq) > (p.turn_seq, p.start_at, p.seq)
        order by n.turn_seq, n.start_at, n.seq limit 1) from passages p where {in_keys("p.seq", seqs)}"""  # noqa: S608
    neighbours = rows.all(sql)
    return {seq: (before or 0, after or 0) for seq, before, after in neighbours}


def read_surrounding_text(rows: Rows, among: Sequence[Passage]) -> dict[int, tuple[str, str]]:
    """Returns the text of SURROUNDING_PASSAGES passages of the same turn before and after each passage, in lines."""
    # The passages of a turn are stored one after the other.
    near = by_seqs(
        rows,
        sorted(
            {passage.seq + step for passage in among for step in range(-SURROUNDING_PASSAGES, SURROUNDING_PASSAGES + 1)}
        ),
    )

    def join_neighbours(own: Passage, *steps: int) -> str:
        others = (near.get(own.seq + step) for step in steps)
        return "\n".join(passage.text for passage in others if passage is not None and passage.turn_seq == own.turn_seq)

    return {
        passage.seq: (
            join_neighbours(passage, *range(-SURROUNDING_PASSAGES, 0)),
            join_neighbours(passage, *range(1, SURROUNDING_PASSAGES + 1)),
        )
        for passage in among
        if passage.seq > 0
    }


def passages_of_turns(rows: Rows, turn_seqs: Sequence[int]) -> dict[int, list[int]]:
    """Returns the passages of each of these turns, in order; [] for a turn without any."""
    sql = f"select turn_seq, seq from passages where {in_keys('turn_seq', turn_seqs)} order by turn_seq, start_at, seq"  # noqa: S608
    passages = rows.grouped(sql)
    return {turn: [seq for (seq,) in passages[turn]] for turn in turn_seqs}


def store_call_words(rows: Rows, turn_seq: int, text: str, *, source: str) -> int:
    """Stores the words of a tool call as passages of its turn, in place of other words; returns how many there are.

    None if the turn is gone or its text is not the `source` that the words were read from, because it was purged since.
    A fork lists a call again: stored passages keep their row keys.
    """
    if rows.find("turns", "text", seq=turn_seq) != source:
        return 0
    spans = prose.find_passages(text)
    sql = "select text from passages where turn_seq = :turn and text <> '' order by start_at"
    stored = rows.all(sql, turn=turn_seq)
    if [words for (words,) in stored] == [text[start:end] for start, end in spans]:
        return len(spans)
    rows.run("delete from passages where turn_seq = :turn and text <> ''", turn=turn_seq)
    for start, end in spans:
        sql = """insert into passages (turn_seq, session_seq, project_seq, start_at, end_at, text) select seq,
            session_seq, project_seq, :start, :end, :text from turns where seq = :turn"""
        rows.run(sql, turn=turn_seq, start=start, end=end, text=text[start:end])
    return len(spans)


def map_passage_keys(rows: Rows, seqs: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Returns (turn, session) row keys of each passage, without reading texts."""
    keys = rows.all(f"select seq, turn_seq, session_seq from passages where {in_keys('seq', seqs)}")  # noqa: S608
    return {seq: (turn, session) for seq, turn, session in keys}


def count_sessions(rows: Rows, projects: Sequence[int] | None) -> int:
    """Returns the number of sessions of these projects (None: all)."""
    return rows.number(f"select count(*) from sessions where {in_keys('project_seq', projects)}")  # noqa: S608


def count_passages_of_sessions(rows: Rows, sessions: Collection[int], *, limit: int) -> dict[int, int]:
    """Returns the number of passages of each session, counted up to `limit`."""
    sql = f"""select s.seq, (select count(*) from (select 1 from passages p where p.session_seq = s.seq limit :limit) t)
        from sessions s where {in_keys("s.seq", sorted(sessions))}"""  # noqa: S608
    return dict(rows.all(sql, limit=limit))


def last_passage_seq(rows: Rows) -> int:
    """Returns the row key of the passage stored last, about the number of passages; 0 for none."""
    return rows.number("select max(seq) from passages")


def list_passages_after(rows: Rows, seq: int, *, until: int, limit: int) -> list[int]:
    """Returns the next passages after a row key, up to another row key."""
    sql = "select seq from passages where seq > :seq and seq <= :until order by seq limit :limit"
    return rows.column(sql, seq=seq, until=until, limit=limit)


def list_passages_to_relink(rows: Rows, model: int) -> list[int]:
    """Returns the passages to link again, because they got another vector of a model (vectors.add_vectors)."""
    sql = "select row_seq from embed_again where model_seq = :model and kind = 'thread' order by row_seq"
    return rows.column(sql, model=model)


def mark_relinked(rows: Rows, model: int, seqs: Sequence[int]) -> int:
    """Marks passages as linked again; returns how many were waiting."""
    sql = f"delete from embed_again where model_seq = :model and kind = 'thread' and {in_keys('row_seq', seqs)}"  # noqa: S608
    return rows.run(sql, model=model)


def count_passages_after(rows: Rows, seq: int, *, until: int) -> int:
    """Counts the passages after a row key, up to another row key."""
    return rows.number("select count(*) from passages where seq > :seq and seq <= :until", seq=seq, until=until)


def map_passages_before(rows: Rows, seqs: Sequence[int], *, limit: int) -> dict[int, list[int]]:
    """Returns the passages right before each of these in its session, the nearest first, at most `limit`."""
    sql = """select n.seq from passages p join passages n on n.session_seq = p.session_seq
        and (n.turn_seq, n.start_at, n.seq) < (p.turn_seq, p.start_at, p.seq)
        where p.seq = :seq order by n.turn_seq desc, n.start_at desc, n.seq desc limit :limit"""
    return {seq: rows.column(sql, seq=seq, limit=limit) for seq in seqs}


def find_later(
    rows: Rows, seqs: Sequence[int], *, min_weight: float, sure: float, limit: int
) -> dict[int, list[tuple[int, float]]]:
    """Returns the passages that continue each of these with at least this weight, the surest first.

    A passage that follows more than `limit` others with a weight of `sure` follows none: it only resembles everything
    said there. A user's short decision is repeated in full by the reply, so the threads of the reply's first passages
    are its, too, with REPLY_WEIGHT of their weight.
    """
    links: dict[int, dict[int, float]] = {}
    sql = (
        f"with own as (select seq, session_seq, turn_seq from passages where {in_keys('seq', seqs)}) "  # noqa: S608
        "select o.seq, h.newer_seq, h.weight from own o join passage_threads h on h.older_seq = o.seq "
        f"where h.weight >= :min_weight and {_FEW} union all "
        "select o.seq, h.newer_seq, h.weight * :echo from own o join turns t on t.seq = o.turn_seq and t.kind in "
        "('user', 'relayed') "
        # By key: led by the index of sessions the planner would walk the whole session.
        "join passages r on r.seq > o.seq and r.seq <= o.seq + :replied and +r.session_seq = o.session_seq "
        "and r.turn_seq <> o.turn_seq join passage_threads h on h.older_seq = r.seq "
        f"where h.weight * :echo >= :min_weight and {_FEW}"
    )
    for older, other, weight in rows.all(
        sql, min_weight=min_weight, sure=sure, most=limit, echo=REPLY_WEIGHT, replied=MAX_REPLY_DISTANCE
    ):
        weights = links.setdefault(older, {})
        weights[other] = max(weights.get(other, 0.0), weight)
    return {seq: sorted(weights_of.items(), key=lambda row: (-row[1], row[0])) for seq, weights_of in links.items()}


def link_passages(rows: Rows, older: int, newer: int, weight: float, *, limit: int) -> None:
    """Links a passage to a later one; the `limit` surest links of the older stay. Missing passages are left out."""
    sql = """insert into passage_threads (older_seq, newer_seq, weight) select a.seq, b.seq, :weight
        from passages a, passages b where a.seq = :older and b.seq = :newer
        on conflict (older_seq, newer_seq) do update set weight = excluded.weight"""
    rows.run(sql, older=older, newer=newer, weight=weight)
    sql = """delete from passage_threads where older_seq = :older and newer_seq not in (select newer_seq
        from passage_threads where older_seq = :older order by weight desc, newer_seq limit :limit)"""
    rows.run(sql, older=older, limit=limit)


# --- their index


def _index_turn(rows: Rows, turn_seq: int) -> None:
    """Indexes the passages of a turn that are slices of its text."""
    sql = """insert into passages_fts (rowid, text) select p.seq, csmd_indexed(j.value ->> 2, t.at)
        from turns t cross join json_each(csmd_passages(t.text)) j cross join passages p on p.turn_seq = t.seq
        and p.start_at = j.value ->> 0 and p.text = '' where t.seq = :seq"""
    rows.run(sql, seq=turn_seq)


def rebuild_index(rows: Rows) -> None:
    """Rebuilds the index of all passages inside the caller's write, for a repair."""
    rows.run("insert into passages_fts (passages_fts) values ('delete-all')")
    for turn in rows.column("select distinct turn_seq from passages where text = '' order by turn_seq"):
        _index_turn(rows, turn)
    sql = """insert into passages_fts (rowid, text) select p.seq, csmd_indexed(p.text, t.at)
        from passages p join turns t on t.seq = p.turn_seq where p.text <> ''"""
    rows.run(sql)


def find_index_problems(rows: Rows) -> list[str]:
    """Lists passages that their full-text index lacks, and rows of the index without a passage; empty if sound.

    The index stores no texts, so SQLite's own check cannot compare it.
    """
    sql = """select text
        from turns t where searchable = 1 and not exists (select 1 from passages p where p.turn_seq = t.seq)"""
    without = rows.column(sql)
    counts = {
        "passages_fts: passages missing from it: {}": rows.value(
            "select count(*) from passages p where not exists (select 1 from passages_fts_docsize d where d.id = p.seq)"
        ),
        "passages_fts: its rows without a passage: {}": rows.value(
            "select count(*) from passages_fts_docsize d where not exists (select 1 from passages p where p.seq = d.id)"
        ),
        "passages: turns without one: {}": sum(bool(prose.find_passages(text, limit=1)) for text in without),
    }
    return [text.format(count) for text, count in counts.items() if count]
