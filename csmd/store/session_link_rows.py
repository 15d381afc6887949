"""How sessions continue earlier ones, and what their digests are compared by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from csmd.store.sqlite import Rows, in_keys


class Behind(NamedTuple):
    """A session whose last digest is not yet compared with the others."""

    session_seq: int
    project_seq: int
    digest_seq: int


class LinkRow(NamedTuple):
    """A stored link; `from_id` is "" for a session that was not captured, `evidence` are uuids of turns."""

    seq: int
    from_id: str
    to_id: str
    rule: str
    kind: str
    about: str
    weight: float
    at: str
    evidence: tuple[str, ...]


def list_sessions_to_compare(rows: Rows, *, limit: int) -> list[Behind]:
    """Returns the sessions whose last digest is not yet compared, oldest first."""
    sql = """select s.seq, s.project_seq, d.seq from digests d join sessions s on s.seq = d.session_seq
        left join cursors c on c.stage = 'self' and c.subject = cast(s.seq as text)
        where d.seq > coalesce(c.position, 0) and d.version = (select max(o.version)
        from digests o where o.session_seq = d.session_seq) order by s.started_at, s.seq limit :limit"""
    return rows.read(Behind, sql, limit=limit)


def list_session_starts(rows: Rows, sessions: Sequence[int]) -> list[str]:
    """Returns the start times of some sessions."""
    return rows.column(f"select started_at from sessions where {in_keys('seq', sessions)}")  # noqa: S608


def list_digests_of_project(rows: Rows, project: int, *, since: str, until: str) -> list[tuple[Any, ...]]:
    """Returns (session, id, start, end, last digest, outcome) of a project's digested sessions that began in a span."""
    sql = """select s.seq, s.id, s.started_at, s.last_at, d.seq, d.outcome from sessions s
        join digests d on d.session_seq = s.seq where s.project_seq = :project and s.started_at >= :since
        and s.started_at <= :until and d.version = (select max(o.version) from digests o where o.session_seq = s.seq)
        order by s.started_at, s.last_at, s.id"""
    return rows.all(sql, project=project, since=since, until=until)


def list_items_of(rows: Rows, digests: Sequence[int]) -> list[tuple[Any, ...]]:
    """Returns (digest, kind, text, uuid, state) of the items by which sessions are compared, in order."""
    sql = f"""select digest_seq, kind, text, uuid, state from digest_items where {in_keys("digest_seq", digests)}
        and kind not in ('decision', 'correction', 'open', 'last') order by seq"""  # noqa: S608
    return rows.all(sql)


def list_sessions_sharing_turns(rows: Rows, session_seq: int) -> list[tuple[int, str]]:
    """Returns (session, first shared turn) for each other conversation of a person that lists turns of this one."""
    sql = """select o.session_seq, min(t.uuid) from session_turn st join session_turn o on o.turn_seq = st.turn_seq
        and o.session_seq <> st.session_seq join sessions s on s.seq = o.session_seq and s.parent = '' join turns t
        on t.seq = st.turn_seq where st.session_seq = :session group by o.session_seq order by o.session_seq"""
    return rows.all(sql, session=session_seq)


def filter_stored_sessions(rows: Rows, session_ids: Sequence[str]) -> frozenset[str]:
    """Returns those of some session ids that are stored."""
    return frozenset(session_id for session_id in session_ids if rows.has("sessions", id=session_id))


def replace_links(rows: Rows, to_seq: int, links: Sequence[Any], kinds: Mapping[str, str]) -> None:
    """Replaces the links of a session to earlier ones; equal links keep their rows."""
    sql = "select seq, from_seq, rule, about from session_links where to_seq = :session"
    stored = {tuple(link): seq for seq, *link in rows.all(sql, session=to_seq)}
    for link in links:
        same = {"from_seq": link.from_seq, "rule": link.rule, "about": link.about}
        seq = stored.pop(tuple(same.values()), 0) or rows.insert_keyed(
            "session_links", to_seq=to_seq, kind=kinds[link.rule], weight=link.weight, **same
        )
        rows.update("session_links", seq, weight=link.weight, evidence=" ".join(sorted(set(link.evidence))))
    for seq in stored.values():
        rows.delete("session_links", seq=seq)


def list_links_of_session(rows: Rows, session_seq: int, *, projects: Sequence[int] | None) -> list[LinkRow]:
    """Returns the links from and to a session with the other end in these projects (None: any), the surest first."""
    sql = f"""select l.seq,
        coalesce(f.id, ''), t.id, l.rule, l.kind, l.about, l.weight, coalesce(s.started_at, t.started_at), l.evidence
        from session_links l join sessions t on t.seq = l.to_seq left join sessions f on f.seq = l.from_seq
        left join sessions s on s.seq = case when l.to_seq = :session then l.from_seq else l.to_seq end
        where (l.to_seq = :session or l.from_seq = :session)
        and (l.from_seq = 0 or {in_keys("s.project_seq", projects)}) order by l.weight desc, l.seq"""  # noqa: S608
    return rows.read(LinkRow, sql, session=session_seq)


def count_links(rows: Rows, *, projects: Sequence[int] | None) -> dict[str, int]:
    """Returns the number of links of each kind to sessions of these projects (None: all)."""
    sql = f"""select l.kind, count(*) from session_links l
        join sessions s on s.seq = l.to_seq where {in_keys("s.project_seq", projects)} group by l.kind order by l.kind"""  # noqa: S608
    return dict(rows.all(sql))
