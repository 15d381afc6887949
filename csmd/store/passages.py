"""Passages: the runs of sentences that are found and told, each a slice of its turn.

Triggers keep them in step with turns on every path (migration 0005).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from csmd.model import TurnKind
from csmd.store.fulltext import WORDS
from csmd.store.passage_index import is_full
from csmd.store.sqlite import Row, Rows
from csmd.text import prose, quotations

__all__ = ["Passage", "add_words", "around", "beside", "by_seqs", "is_full", "of_turns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A passage as search shows it; `start` and `end` are its place in its turn's text, in characters.

    Of a tool call's words they are the place in these words, and `kind` is that of who wrote them, the assistant. What a
    user quotes is relayed.
    `session_id` is the parent's for a sub-agent's turn.
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


def _keys(seqs: Sequence[int]) -> str:
    return ", ".join(str(int(seq)) for seq in seqs)


def by_seqs(rows: Rows, seqs: Sequence[int]) -> dict[int, Passage]:
    """Passages by row key; what is gone is left out."""
    if not seqs:
        return {}
    keys = _keys(seqs)
    return {
        int(a): Passage(
            seq=a, turn_seq=b, session_seq=c, project_seq=d, uuid=e, kind="relayed" if quotations.is_quoted(whole, g, h) else f, start=g, end=h, text=i, at=j,
            session_id=parent or ident, project=root,
        )
        for a, b, c, d, e, whole, f, g, h, i, j, ident, parent, root in rows.all(
            "select p.seq, p.turn_seq, p.session_seq, p.project_seq, t.uuid, "  # noqa: S608
            "case when p.text <> '' then '' when t.kind = 'user' then t.text else '' end, "
            f"case when p.text <> '' then 'assistant' else t.kind end, p.start_at, p.end_at, {WORDS}, t.at, s.id, s.parent, "
            "r.root from passages p join turns t on t.seq = p.turn_seq join sessions s on s.seq = p.session_seq "
            f"join projects r on r.seq = p.project_seq where p.seq in ({keys})"
        )
    }  # fmt: skip


def beside(rows: Rows, seqs: Sequence[int]) -> dict[int, tuple[int, int]]:
    """The passages before and after each of these in its session, as its turns were stored; 0 for none."""
    if not seqs:
        return {}
    keys = _keys(seqs)
    # The order of their turns: a turn that was changed has younger passages than those after it.
    found = rows.all(
        "select p.seq, "  # noqa: S608
        "(select n.seq from passages n where n.session_seq = p.session_seq "
        "and (n.turn_seq, n.start_at, n.seq) < (p.turn_seq, p.start_at, p.seq) "
        "order by n.turn_seq desc, n.start_at desc, n.seq desc limit 1), "
        "(select n.seq from passages n where n.session_seq = p.session_seq "
        "and (n.turn_seq, n.start_at, n.seq) > (p.turn_seq, p.start_at, p.seq) "
        "order by n.turn_seq, n.start_at, n.seq limit 1) "
        f"from passages p where p.seq in ({keys})"
    )
    return {int(seq): (int(before or 0), int(after or 0)) for seq, before, after in found}


#: A memory's sentences may stand in so many passages of a turn before and after one that holds a part of them.
REACH = 2


def around(rows: Rows, among: Sequence[Passage]) -> dict[int, tuple[str, str]]:
    """What the turn of each passage says right before and right after it, REACH passages of it, in lines."""
    # Those of a turn are stored one after the other.
    near = by_seqs(rows, sorted({one.seq + step for one in among for step in range(-REACH, REACH + 1)}))

    def said(own: Passage, *steps: int) -> str:
        others = (near.get(own.seq + step) for step in steps)
        return "\n".join(one.text for one in others if one is not None and one.turn_seq == own.turn_seq)

    return {one.seq: (said(one, *range(-REACH, 0)), said(one, *range(1, REACH + 1))) for one in among if one.seq > 0}


def of_turns(rows: Rows, turn_seqs: Sequence[int]) -> dict[int, list[int]]:
    """The passages of each of these turns, in order; [] for a turn without any."""
    made: dict[int, list[int]] = {int(turn): [] for turn in turn_seqs}
    if made:
        keys = _keys(turn_seqs)
        for turn, seq in rows.all(
            f"select turn_seq, seq from passages where turn_seq in ({keys}) order by turn_seq, start_at, seq"  # noqa: S608
        ):
            made[int(turn)].append(int(seq))
    return made


def add_words(rows: Rows, turn_seq: int, said: str, *, given: str) -> int:
    """Stores the words of a tool call as passages of its turn, in place of other words that it had; how many there are.

    None where the turn is gone or its text is not what the words were read from (`given`): it was purged since.
    A fork lists a call again: what is stored already keeps its row keys.
    """
    if rows.value("select text from turns where seq = :turn", turn=turn_seq) != given:
        return 0
    spans = prose.passages(said)
    known = rows.all("select text from passages where turn_seq = :turn and text <> '' order by start_at", turn=turn_seq)
    if [words for (words,) in known] == [said[start:end] for start, end in spans]:
        return len(spans)
    rows.run("delete from passages where turn_seq = :turn and text <> ''", turn=turn_seq)
    for start, end in spans:
        rows.run(
            "insert into passages (turn_seq, session_seq, project_seq, start_at, end_at, text) "
            "select seq, session_seq, project_seq, :start, :end, :text from turns where seq = :turn",
            turn=turn_seq,
            start=start,
            end=end,
            text=said[start:end],
        )
    return len(spans)


#: How many passages behind a user's are looked at for the reply to it, and what a thread of the reply counts.
REPLIED, ECHO = 3, 0.9
#: Whether what a link `h` leads to surely follows no more than so many.
_FEW = "(select count(*) from passage_threads i where i.newer_seq = h.newer_seq and i.weight >= :sure) <= :most"


def passage_places(rows: Rows, seqs: Sequence[int]) -> dict[int, tuple[int, int]]:
    """(turn, session) of each passage by row keys; their texts are not read."""
    if not seqs:
        return {}
    found = rows.all(f"select seq, turn_seq, session_seq from passages where seq in ({_keys(seqs)})")  # noqa: S608
    return {int(seq): (int(turn), int(session)) for seq, turn, session in found}


def passage_sessions(rows: Rows, projects: Sequence[int] | None) -> int:
    """How many sessions these projects have had; None is all."""
    scope = "" if projects is None else f"where project_seq in ({_keys(projects)})"
    return int(rows.value(f"select count(*) from sessions {scope}"))  # noqa: S608


def passage_lengths(rows: Rows, sessions: Collection[int], *, most: int) -> dict[int, int]:
    """How many passages each session has, counted up to `most`."""
    if not sessions:
        return {}
    keys = _keys(sorted(sessions))
    return dict(
        rows.all(
            "select s.seq, (select count(*) from (select 1 from passages p where p.session_seq = s.seq limit :most) t) "  # noqa: S608
            f"from sessions s where s.seq in ({keys})",
            most=most,
        )
    )


def last_looked_at(rows: Rows) -> int:
    """The row key of the passage that was stored last, which is about how many there are; 0 for none."""
    return int(rows.value("select max(seq) from passages") or 0)


def after_passage(rows: Rows, seq: int, *, until: int, limit: int) -> list[int]:
    """The next passages behind a row key, up to another one."""
    return rows.column(
        "select seq from passages where seq > :seq and seq <= :until order by seq limit :limit",
        seq=seq,
        until=until,
        limit=limit,
    )


def look_again_at(rows: Rows, model: int) -> list[int]:
    """The passages to be looked at once more, as they have had another vector of a model since (vectors.add)."""
    return rows.column(
        "select row_seq from embed_again where model_seq = :model and kind = 'thread' order by row_seq", model=model
    )


def looked_again(rows: Rows, model: int, seqs: Sequence[int]) -> int:
    """Takes note that passages have been looked at once more; how many of these had to be."""
    return rows.run(
        f"delete from embed_again where model_seq = :model and kind = 'thread' and row_seq in ({_keys(seqs)})",  # noqa: S608
        model=model,
    )


def count_after(rows: Rows, seq: int, *, until: int) -> int:
    """How many passages there are behind a row key, up to another one."""
    return int(rows.value("select count(*) from passages where seq > :seq and seq <= :until", seq=seq, until=until))


def before_passage(rows: Rows, seqs: Sequence[int], *, most: int) -> dict[int, list[int]]:
    """The passages right before each of these in its session, as its turns were stored; the nearest first, at most so many."""
    return {seq: [int(one) for (one,) in _before(rows, seq, most)] for seq in dict.fromkeys(map(int, seqs))}


def _before(rows: Rows, seq: int, most: int) -> list[Row]:
    return rows.all(
        "select n.seq from passages p join passages n on n.session_seq = p.session_seq "
        "and (n.turn_seq, n.start_at, n.seq) < (p.turn_seq, p.start_at, p.seq) "
        "where p.seq = :seq order by n.turn_seq desc, n.start_at desc, n.seq desc limit :most",
        seq=seq,
        most=most,
    )


def newer_than(
    rows: Rows, seqs: Sequence[int], *, least: float, sure: float, most: int
) -> dict[int, list[tuple[int, float]]]:
    """Passage -> what follows it on the same matter with at least such a weight, the surest first.

    What follows more than `most` others with a weight of `sure` follows none: it is only like whatever is said there.
    What a user decides in a word or two the reply says in full: the threads of the reply's first passages are its, too, with
    ECHO of their weight.
    """
    if not seqs:
        return {}
    links: dict[int, dict[int, float]] = {}
    for older, other, weight in rows.all(
        f"with own as (select seq, session_seq, turn_seq from passages where seq in ({_keys(seqs)})) "  # noqa: S608
        "select o.seq, h.newer_seq, h.weight from own o join passage_threads h on h.older_seq = o.seq "
        f"where h.weight >= :least and {_FEW} union all "
        "select o.seq, h.newer_seq, h.weight * :echo from own o join turns t on t.seq = o.turn_seq and t.kind in ('user', 'relayed') "
        # By key: led by its index of sessions the planner would walk the whole session.
        "join passages r on r.seq > o.seq and r.seq <= o.seq + :replied and +r.session_seq = o.session_seq "
        "and r.turn_seq <> o.turn_seq join passage_threads h on h.older_seq = r.seq "
        f"where h.weight * :echo >= :least and {_FEW}",
        least=least,
        sure=sure,
        most=most,
        echo=ECHO,
        replied=REPLIED,
    ):
        known = links.setdefault(int(older), {})
        known[int(other)] = max(known.get(int(other), 0.0), float(weight))
    return {seq: sorted(of.items(), key=lambda row: (-row[1], row[0])) for seq, of in links.items()}


def link_passages(rows: Rows, older: int, newer: int, weight: float, *, most: int) -> None:
    """Notes that one passage follows another; of an older one's the `most` surest stay. What is gone is linked with nothing."""
    rows.run(
        "insert into passage_threads (older_seq, newer_seq, weight) select a.seq, b.seq, :weight from passages a, passages b "
        "where a.seq = :older and b.seq = :newer on conflict (older_seq, newer_seq) do update set weight = excluded.weight",
        older=older,
        newer=newer,
        weight=weight,
    )
    rows.run(
        "delete from passage_threads where older_seq = :older and newer_seq not in (select newer_seq from passage_threads "
        "where older_seq = :older order by weight desc, newer_seq limit :most)",
        older=older,
        most=most,
    )
