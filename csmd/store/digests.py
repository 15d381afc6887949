"""Digests of sessions as rows: written as a whole for a session, and taken back when what was said there changes.

Nothing of a digest is anything but a session's: its project is its session's, whatever was merged or split since.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from csmd.store import cursors
from csmd.store.sqlite import Rows

#: The cursors of who reads digests: gone with them, so that what rests on them is made again.
DIGEST, SELF = "digest", "self"
#: A cursor of SELF that is 1 while the endings have changed and nobody has counted them since.
AGAIN = "endings"
#: Characters of the beginning and of the end of a text that are looked at.
HALF = 3000
#: In the order of Waiting's fields; the host's last word on a session is of the time of its last turn or later.
_SESSION = (
    "s.seq, s.id, s.turns, s.title, s.cwd, s.path, "
    "coalesce((select e.name from events e where e.session_id = s.id and e.name in ('session_end', 'pre_compact') "
    "and e.at >= s.last_at order by e.at desc, e.seq desc limit 1), '')"
)
_COLUMNS = "d.seq, d.session_seq, d.version, d.why, d.upto, d.at, d.text, d.outcome, d.prompts, d.calls, d.tokens"


class Row(NamedTuple):
    """A stored version of a session's digest."""

    seq: int
    session_seq: int
    version: int
    why: str
    upto: int
    at: str
    text: str
    outcome: str
    prompts: int
    calls: int
    tokens: int


class ItemRow(NamedTuple):
    """One thing in a digest, with the turn it came from."""

    kind: str
    text: str
    uuid: str
    state: str
    amount: int


class Waiting(NamedTuple):
    """A session whose digest is to be made: how far it goes, and what the host's last word on it was."""

    session_seq: int
    id: str
    turns: int
    title: str
    cwd: str
    path: str
    why: str


def waiting(rows: Rows, *, limit: int) -> list[Waiting]:
    """People's sessions that were distilled to their end and whose digest does not reach as far, oldest first."""
    found = rows.all(
        f"select {_SESSION} from sessions s join cursors d on d.stage = 'distill' and d.subject = cast(s.seq as text) "  # noqa: S608
        "left join cursors c on c.stage = 'digest' and c.subject = cast(s.seq as text) "
        "where s.parent = '' and s.host <> 'probe' and s.turns > coalesce(c.position, 0) and d.position >= s.turns "
        "order by s.started_at, s.seq limit :limit",
        limit=limit,
    )
    return [Waiting(*row) for row in found]


def session(rows: Rows, session_seq: int) -> Waiting:
    """A session as it is now, whether it waits for a digest or not."""
    found = rows.all(f"select {_SESSION} from sessions s where s.seq = :seq", seq=session_seq)  # noqa: S608
    return Waiting(*found[0])


def reopened(rows: Rows, *, after: int, limit: int) -> tuple[int, int, list[int]]:
    """(the last event past `after` that was looked at, how many were, sessions that one of them ended or compacts)."""
    found = rows.all(
        "select e.seq, coalesce(s.seq, 0), e.name from events e left join sessions s on s.id = e.session_id "
        "where e.seq > :after order by e.seq limit :limit",
        after=after,
        limit=limit,
    )
    ended = [int(session) for _, session, name in found if name in ("session_end", "pre_compact") and session]
    return (int(found[-1][0]) if found else after), len(found), list(dict.fromkeys(ended))


def entries(rows: Rows, session_seq: int) -> list[tuple[Any, ...]]:
    """(ordinal, uuid, kind, text, time, tool, call, tokens) of what stands in a session's transcript, in order.

    Of a long text its beginning and its end: a session may hold 50 MB, and what is harvested stands there.
    """
    return rows.all(
        "select st.ordinal, t.uuid, t.kind, case when length(t.text) <= :most or t.tool_name = 'TodoWrite' then t.text "
        "else substr(t.text, 1, :half) || :gap || substr(t.text, length(t.text) - :half) end, "
        "t.at, t.tool_name, t.tool_id, t.tokens from session_turn st "
        "join turns t on t.seq = st.turn_seq where st.session_seq = :session and t.source = 'transcript' "
        "order by st.ordinal",
        session=session_seq,
        most=2 * HALF,
        half=HALF,
        gap="\n\n",
    )


def stated(rows: Rows, session_seq: int) -> list[tuple[Any, ...]]:
    """(ordinal, text, gate, category, authority, confidence, uuid) of the statements of a session, in order."""
    return rows.all(
        "select st.ordinal, m.text, m.gate, m.category, m.authority, m.confidence, t.uuid from session_turn st "
        "join statements m on m.turn_seq = st.turn_seq join turns t on t.seq = st.turn_seq "
        "where st.session_seq = :session order by st.ordinal, m.seq",
        session=session_seq,
    )


def of_session(rows: Rows, session_seq: int) -> list[Row]:
    """Every version of a session's digest, the first first."""
    found = rows.all(
        f"select {_COLUMNS} from digests d where d.session_seq = :session order by d.version",  # noqa: S608
        session=session_seq,
    )
    return [Row(*row) for row in found]


def items(rows: Rows, digest_seq: int) -> list[ItemRow]:
    """What a digest was made of, in its order."""
    found = rows.all(
        "select kind, text, uuid, state, amount from digest_items where digest_seq = :digest order by seq",
        digest=digest_seq,
    )
    return [ItemRow(*row) for row in found]


def headlines(rows: Rows, digest_seq: int) -> list[tuple[str, str, str, str]]:
    """(kind, text, kind and time of the turn it came from) of what a digest says in a line.

    Goal, files, commits, open ends.
    """
    found = rows.all(
        "select i.kind, i.text, coalesce(t.kind, ''), coalesce(t.at, '') from digest_items i left join turns t on t.uuid = i.uuid "
        "where i.digest_seq = :digest and i.kind in ('goal', 'file', 'commit', 'open') order by i.seq",
        digest=digest_seq,
    )
    return [(str(kind), str(said), str(by), str(at)) for kind, said, by, at in found]


def latest(rows: Rows, *, projects: Sequence[int] | None, limit: int) -> list[Row]:
    """The last version of the digests of sessions in these projects (None: in all), the latest session first."""
    among = "" if projects is None else f"and s.project_seq in ({', '.join(str(int(p)) for p in projects)})"
    found = rows.all(
        f"select {_COLUMNS} from sessions s join digests d on d.session_seq = s.seq "  # noqa: S608
        f"where s.parent = '' {among} and d.version = (select max(o.version) from digests o "
        "where o.session_seq = s.seq) order by s.last_at desc, s.seq desc limit :limit",
        limit=limit,
    )
    return [Row(*row) for row in found]


def replace(rows: Rows, session_seq: int, made: Sequence[Any], *, turns: int) -> int:
    """Writes a session's digests and its cursor; versions that say the same keep their row. How many were written."""
    known = {row.version: row for row in of_session(rows, session_seq)}
    written = 0
    for version, one in enumerate(made, 1):
        old = known.pop(version, None)
        if old is not None and _same(rows, old, one):
            continue
        if old is not None:
            rows.run("delete from digests where seq = :seq", seq=old.seq)
        _insert(rows, session_seq, version, one)
        written += 1
    for old in known.values():
        rows.run("delete from digests where seq = :seq", seq=old.seq)
    cursors.move_cursor(rows, DIGEST, str(session_seq), turns)
    return written


def _same(rows: Rows, old: Row, one: Any) -> bool:
    if (old.text, old.why, old.upto, old.outcome) != (one.text, one.why, one.upto, one.outcome):
        return False
    return [tuple(item) for item in items(rows, old.seq)] == [tuple(item) for item in one.items]


def _insert(rows: Rows, session_seq: int, version: int, one: Any) -> None:
    seq = rows.value(
        "insert into digests (session_seq, version, why, upto, at, text, outcome, prompts, calls, tokens) values "
        "(:session, :version, :why, :upto, :at, :text, :outcome, :prompts, :calls, :tokens) returning seq",
        session=session_seq,
        version=version,
        why=one.why,
        upto=one.upto,
        at=one.at,
        text=one.text,
        outcome=one.outcome,
        prompts=one.prompts,
        calls=one.calls,
        tokens=one.tokens,
    )
    for item in one.items:
        rows.run(
            "insert into digest_items (digest_seq, kind, text, uuid, state, amount) values "
            "(:digest, :kind, :text, :uuid, :state, :amount)",
            digest=seq,
            kind=item.kind,
            text=item.text,
            uuid=item.uuid,
            state=item.state,
            amount=item.amount,
        )


def take_back(rows: Rows, turn_seq: int) -> None:
    """Removes what was made of the sessions that list a turn: its words have changed, and it is made again."""
    for (session,) in rows.all("select session_seq from session_turn where turn_seq = :turn", turn=turn_seq):
        clear(rows, int(session))


def clear(rows: Rows, session_seq: int) -> None:
    """Removes a session's digests, links and outcomes, and the cursors that would keep them away."""
    for table in ("digests", "self_capabilities", "self_continuity"):
        rows.run(f"delete from {table} where session_seq = :session", session=session_seq)  # noqa: S608
    rows.run("delete from session_links where to_seq = :session or from_seq = :session", session=session_seq)
    rows.run(
        "delete from candidate_evidence where session_id = (select s.id from sessions s where s.seq = :session) "
        "and candidate_seq in (select m.seq from candidates m where m.source = 'selfmodel')",
        session=session_seq,
    )
    count_again(rows)
    for stage in (DIGEST, SELF):
        rows.run(
            "delete from cursors where stage = :stage and subject = :subject", stage=stage, subject=str(session_seq)
        )


def count_again(rows: Rows) -> None:
    """Has the endings counted anew when everything is in."""
    cursors.move_cursor(rows, SELF, AGAIN, 1)


def compare_again(rows: Rows, projects: Sequence[int]) -> None:
    """Has the sessions of these projects compared anew: others are beside them now, or no longer."""
    keys = ", ".join(str(int(seq)) for seq in projects)
    rows.run(
        f"delete from cursors where stage = 'self' and subject in "  # noqa: S608
        f"(select cast(s.seq as text) from sessions s where s.project_seq in ({keys}))"
    )
    # Two sessions of one project build on each other; of what is no longer one, nothing is said.
    rows.run(
        "delete from session_links where from_seq > 0 and (select f.project_seq from sessions f where f.seq = from_seq) "
        "<> (select t.project_seq from sessions t where t.seq = to_seq)"
    )
    count_again(rows)
