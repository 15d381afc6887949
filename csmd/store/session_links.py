"""Links between sessions, and what sessions are compared by; a link is seen where both of its sessions are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from csmd.store.sqlite import Rows

#: Row keys in one statement.
AT_ONCE = 500


class Behind(NamedTuple):
    """A session whose last digest was not compared with the others yet."""

    session_seq: int
    project_seq: int
    digest_seq: int


class LinkRow(NamedTuple):
    """A stored link; `from_id` is "" for a gap."""

    seq: int
    from_id: str
    to_id: str
    rule: str
    kind: str
    about: str
    weight: float
    at: str


def behind(rows: Rows, *, limit: int) -> list[Behind]:
    """The sessions with a last digest that was not compared, oldest first."""
    found = rows.all(
        "select s.seq, s.project_seq, d.seq from digests d join sessions s on s.seq = d.session_seq "
        "left join cursors c on c.stage = 'self' and c.subject = cast(s.seq as text) "
        "where d.seq > coalesce(c.position, 0) and d.version = (select max(o.version) from digests o "
        "where o.session_seq = d.session_seq) order by s.started_at, s.seq limit :limit",
        limit=limit,
    )
    return [Behind(*row) for row in found]


def starts(rows: Rows, sessions: Sequence[int]) -> list[str]:
    """When some sessions began."""
    keys = ", ".join(str(int(seq)) for seq in sessions)
    return [str(at) for (at,) in rows.all(f"select started_at from sessions where seq in ({keys})")]  # noqa: S608


def of_project(rows: Rows, project: int, *, since: str, until: str) -> list[tuple[Any, ...]]:
    """(session, id, start, end, its last digest, outcome) of a project's digested sessions that began in a span, in order."""
    return rows.all(
        "select s.seq, s.id, s.started_at, s.last_at, d.seq, d.outcome from sessions s join digests d on d.session_seq = s.seq "
        "where s.project_seq = :project and s.started_at >= :since and s.started_at <= :until "
        "and d.version = (select max(o.version) from digests o where o.session_seq = s.seq) "
        "order by s.started_at, s.last_at, s.id",
        project=project,
        since=since,
        until=until,
    )


def items_of(rows: Rows, digests: Sequence[int]) -> list[tuple[Any, ...]]:
    """(digest, kind, text, uuid, state) of everything that sessions are compared by, in its order."""
    found: list[tuple[Any, ...]] = []
    for begin in range(0, len(digests), AT_ONCE):
        keys = ", ".join(str(int(seq)) for seq in digests[begin : begin + AT_ONCE])
        found += rows.all(
            f"select digest_seq, kind, text, uuid, state from digest_items where digest_seq in ({keys}) "  # noqa: S608
            "and kind not in ('decision', 'correction', 'open', 'last') order by seq"
        )
    return found


def shared(rows: Rows, session_seq: int) -> list[tuple[int, str]]:
    """(session, the first turn) for each other conversation of people that lists turns which this one lists, too."""
    found = rows.all(
        "select o.session_seq, min(t.uuid) from session_turn st join session_turn o on o.turn_seq = st.turn_seq "
        "and o.session_seq <> st.session_seq join sessions s on s.seq = o.session_seq and s.parent = '' "
        "join turns t on t.seq = st.turn_seq where st.session_seq = :session group by o.session_seq order by o.session_seq",
        session=session_seq,
    )
    return [(int(seq), str(uuid)) for seq, uuid in found]


def captured(rows: Rows, idents: Sequence[str]) -> frozenset[str]:
    """Those of some sessions' ids that are stored."""
    return frozenset(
        ident for ident in idents if rows.value("select 1 from sessions where id = :id", id=ident) is not None
    )


def replace(rows: Rows, to_seq: int, made: Sequence[Any], kinds: Mapping[str, str]) -> None:
    """Writes what a session builds on in the place of what was written before; what is the same keeps its row."""
    known = {
        (int(one), str(rule), str(about)): int(seq)
        for seq, one, rule, about in rows.all(
            "select seq, from_seq, rule, about from session_links where to_seq = :session", session=to_seq
        )
    }
    for link in made:
        seq = known.pop((link.from_seq, link.rule, link.about), 0)
        if not seq:
            seq = rows.value(
                "insert into session_links (from_seq, to_seq, kind, rule, about, weight) values "
                "(:one, :session, :kind, :rule, :about, :weight) returning seq",
                one=link.from_seq,
                session=to_seq,
                kind=kinds[link.rule],
                rule=link.rule,
                about=link.about,
                weight=link.weight,
            )
        rows.run("update session_links set weight = :weight where seq = :seq", weight=link.weight, seq=seq)
        rows.run("delete from session_link_evidence where link_seq = :seq", seq=seq)
        for uuid in link.evidence:
            rows.run("insert into session_link_evidence (link_seq, uuid) values (:seq, :uuid)", seq=seq, uuid=uuid)
    for seq in known.values():
        rows.run("delete from session_links where seq = :seq", seq=seq)


def of_session(rows: Rows, session_seq: int, *, projects: Sequence[int] | None) -> list[LinkRow]:
    """The links from and to a session, whose other end is in these projects (None: in any), the surest first."""
    among = (
        ""
        if projects is None
        else f"and (l.from_seq = 0 or s.project_seq in ({', '.join(str(int(p)) for p in projects)}))"
    )
    found = rows.all(
        "select l.seq, coalesce(f.id, ''), t.id, l.rule, l.kind, l.about, l.weight, coalesce(s.started_at, t.started_at) "  # noqa: S608
        "from session_links l join sessions t on t.seq = l.to_seq left join sessions f on f.seq = l.from_seq "
        "left join sessions s on s.seq = case when l.to_seq = :session then l.from_seq else l.to_seq end "
        f"where (l.to_seq = :session or l.from_seq = :session) {among} order by l.weight desc, l.seq",
        session=session_seq,
    )
    return [LinkRow(*row) for row in found]


def evidence(rows: Rows, link_seq: int) -> list[str]:
    """The uuids that a link rests on."""
    return [
        str(uuid)
        for (uuid,) in rows.all(
            "select uuid from session_link_evidence where link_seq = :seq order by uuid", seq=link_seq
        )
    ]


def counts(rows: Rows, *, projects: Sequence[int] | None) -> dict[str, int]:
    """How many links of each kind there are to sessions of these projects (None: of all)."""
    among = "" if projects is None else f"where s.project_seq in ({', '.join(str(int(p)) for p in projects)})"
    return {
        str(kind): int(count)
        for kind, count in rows.all(
            f"select l.kind, count(*) from session_links l join sessions s on s.seq = l.to_seq {among} "  # noqa: S608
            "group by l.kind order by l.kind"
        )
    }
