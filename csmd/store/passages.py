"""Passages: the runs of sentences that are found and told, each a slice of its turn.

Triggers keep them in step with turns on every path (migration 0005).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from csmd import prose, quotations
from csmd.model import TurnKind
from csmd.store.fulltext import WORDS
from csmd.store.passage_index import is_full
from csmd.store.sqlite import Rows

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
