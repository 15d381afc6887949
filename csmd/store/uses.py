"""What sessions made of what they were told: which receipts can be judged, what they told, the verdicts and their sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from csmd.store.context import FRESH_CONTEXT
from csmd.store.sqlite import Rows

#: In the order of Waiting's fields.
_COLUMNS = (
    "n.seq, n.session_id, coalesce(s.seq, 0), n.event, n.at, coalesce((select max(t.seq) from events e "
    "join turns t on t.text_hash = e.text_hash and t.session_seq = s.seq "
    "where n.event = 'prompt' and 'r' || e.id = n.id and e.session_id = n.session_id and e.text_hash <> ''), 0) "
    "from injections n left join sessions s on s.id = n.session_id"
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A receipt that can be judged; `prompt_seq` is the row of the prompt that it answered, 0 where none is stored."""

    seq: int
    session_id: str
    session_seq: int
    event: str
    at: str
    prompt_seq: int


@dataclass(frozen=True, slots=True)
class Told:
    """Receipts since a time: how many, their tokens, what they told, of how much use could be judged and was seen."""

    injections: int
    tokens: int
    items: int
    judged: int
    used: int


def waiting(rows: Rows, *, answered: str, still: str, over: str, limit: int) -> list[Waiting]:
    """Receipts whose time is over, of one session after the other.

    A prompt's is over with the next prompt, a start's with the session's end or its next fresh context, when that was
    before `answered`; or when nothing was said in the session since `still`, for a start since `over`.
    """
    marks = ", ".join(f"'{source}'" for source in FRESH_CONTEXT)
    found = rows.all(
        f"select {_COLUMNS} where n.judged = 0 and ("  # noqa: S608
        "s.seq is null and n.at < :over "
        "or s.last_at < case when n.event = 'session_start' then :over else :still end and n.at < :still "
        "or exists (select 1 from events e where e.session_id = n.session_id and e.at > n.at and e.at < :answered and ("
        f"e.name = 'session_end' or (e.name = 'session_start' and e.source in ({marks})) "
        "or (e.name = 'prompt' and n.event <> 'session_start')))) order by n.session_id, n.at limit :limit",
        answered=answered,
        still=still,
        over=over,
        limit=limit,
    )
    return [Waiting(*row) for row in found]


def receipt(rows: Rows, seq: int) -> Waiting | None:
    """One receipt as it is judged, whether its time is over or not."""
    row = rows.one(f"select {_COLUMNS} where n.seq = :seq", seq=seq)
    return None if row is None else Waiting(*row)


def items(rows: Rows, seq: int) -> list[tuple[str, str]]:
    """(id, text as it is now) of what a receipt told; "" where it is neither a memory nor said in a turn, or gone.

    A passage is known by its turn's id, "#" and where it begins in it.
    """
    found = rows.all(
        "select i.memory_id, m.text from injection_items i left join memories m on m.id = i.memory_id "
        "where i.injection_seq = :seq order by i.memory_id",
        seq=seq,
    )
    return [(str(ident), _quoted(rows, str(ident)) if said is None else str(said)) for ident, said in found]


def _quoted(rows: Rows, ident: str) -> str:
    """What was quoted of a turn: one passage, or all of it; "" where it is gone."""
    uuid, _, start = ident.partition("#")
    found = rows.one(
        "select t.text, p.text, p.start_at, p.end_at from turns t left join passages p on p.turn_seq = t.seq "
        "and p.start_at = :start where t.uuid = :uuid",
        uuid=uuid,
        start=int(start) if start.isdecimal() else -1,
    )
    if found is None:
        return ""
    whole, words, begin, end = found
    return str(words or (whole if begin is None else whole[begin:end]))


def around(rows: Rows, session_seq: int, at: str) -> int:
    """The place of the last turn of a session at or before a time; 0 for none."""
    found = rows.value(
        "select max(st.ordinal) from session_turn st join turns t on t.seq = st.turn_seq "
        "where st.session_seq = :session and t.at <= :at",
        session=session_seq,
        at=at,
    )
    return int(found or 0)


def note(rows: Rows, seq: int, verdicts: Mapping[str, tuple[bool, str]]) -> None:
    """Writes down what was decided of a receipt: (used, by which kind of mark) for each item that could be judged."""
    for ident, (used, by) in verdicts.items():
        rows.run(
            "update injection_items set used = :used, used_by = :by where injection_seq = :seq and memory_id = :id",
            used=int(used),
            by=by,
            seq=seq,
            id=ident,
        )
    rows.run("update injections set judged = 1 where seq = :seq", seq=seq)


def told_since(rows: Rows, since: str, *, projects: Sequence[int] | None = None) -> Told:
    """What was told at or after a time, in these projects or in all, and what of it was used."""
    wanted = "" if projects is None else f"and n.project_seq in ({', '.join(str(int(seq)) for seq in projects)})"
    injections, tokens = rows.one(
        f"select count(*), coalesce(sum(n.tokens), 0) from injections n where n.at >= :since {wanted}",  # noqa: S608
        since=since,
    ) or (0, 0)
    told, judged, used = rows.one(
        "select count(*), count(i.used), coalesce(sum(i.used), 0) from injections n "  # noqa: S608
        f"join injection_items i on i.injection_seq = n.seq where n.at >= :since {wanted}",
        since=since,
    ) or (0, 0, 0)
    return Told(int(injections), int(tokens), int(told), int(judged), int(used))
