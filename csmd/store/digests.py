"""Session digests, links between sessions, outcomes by kind of work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from csmd.hook_events import EVENTS
from csmd.hosts.tool_calls import TODO_LIST
from csmd.store import cursors
from csmd.store.sqlite import Rows, columns, in_keys

#: The cursors of who reads digests: gone with them, so that what rests on them is made again.
DIGEST, SELF = "digest", "self"
#: A cursor of SELF that is 1 while the endings have changed and nobody has counted them since.
AGAIN = "endings"
#: Characters of the beginning and of the end of a text that are looked at.
HALF = 3000
_ENDS = ", ".join(f"'{name}'" for name, rule in EVENTS.items() if rule.ends)
#: In the order of Waiting's fields; the host's last word on a session is of the time of its last turn or later.
_SESSION = (
    "s.seq, s.id, s.turns, s.title, s.cwd, s.path, "  # noqa: S608
    f"coalesce((select e.name from events e where e.session_id = s.id and e.name in ({_ENDS}) "
    "and e.at >= s.last_at order by e.at desc, e.seq desc limit 1), '')"
)


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


_COLUMNS = columns(Row, "d")


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


def waiting(rows: Rows, *, limit: int, pace: cursors.Pace) -> list[Waiting]:
    """People's sessions that are due, were distilled to their end and whose digest does not reach as far, oldest first."""
    due = pace.due("s.turns")
    return rows.read(
        Waiting,
        f"select {_SESSION} from sessions s join cursors d on d.stage = 'distill' and d.subject = cast(s.seq as text) "  # noqa: S608
        "left join cursors c on c.stage = 'digest' and c.subject = cast(s.seq as text) "
        "where s.parent = '' and s.host <> 'probe' and s.turns > coalesce(c.position, 0) and d.position >= s.turns "
        f"and {due} order by s.started_at, s.seq limit :limit",
        limit=limit,
        quiet_before=pace.quiet_before,
        now=pace.now,
    )


def session(rows: Rows, session_seq: int) -> Waiting:
    """A session as it is now, whether it waits for a digest or not."""
    (found,) = rows.read(Waiting, f"select {_SESSION} from sessions s where s.seq = :seq", seq=session_seq)  # noqa: S608
    return found


#: Of a session that went on in another project what is behind that one's wall is told to nobody here.
ON_THIS_SIDE = (
    "(select p.workspace_seq from projects p where p.seq = t.project_seq) = "
    "(select p.workspace_seq from projects p join sessions s on s.project_seq = p.seq where s.seq = st.session_seq)"
)


def entries(rows: Rows, session_seq: int) -> list[tuple[Any, ...]]:
    """(ordinal, uuid, kind, text, time, tool, call, tokens) of the entries of a session's transcript, in order.

    Of what a rewind left behind, only the work. Of a long text, its beginning and its end, where what is harvested is: a
    session may hold 50 MB.
    """
    sql = (
        "select st.ordinal, t.uuid, t.kind, case when length(t.text) <= :most or t.tool_name = :todo then t.text "  # noqa: S608
        "else substr(t.text, 1, :half) || :gap || substr(t.text, length(t.text) - :half) end, "
        "t.at, t.tool_name, t.tool_id, t.tokens from session_turn st "
        "join turns t on t.seq = st.turn_seq where st.session_seq = :session and t.source = 'transcript' "
        f"and (st.rewound = 0 or t.kind in ('tool_call', 'tool_result')) and {ON_THIS_SIDE} order by st.ordinal"
    )
    return rows.all(sql, session=session_seq, most=2 * HALF, half=HALF, gap="\n\n", todo=TODO_LIST)


def session_statements(rows: Rows, session_seq: int) -> list[tuple[Any, ...]]:
    """(ordinal, text, gate, category, authority, confidence, uuid) of the statements of a session, in order."""
    return rows.all(
        "select st.ordinal, m.text, m.gate, m.category, m.authority, m.confidence, t.uuid from session_turn st "  # noqa: S608
        "join statements m on m.turn_seq = st.turn_seq join turns t on t.seq = st.turn_seq "
        f"where st.session_seq = :session and st.rewound = 0 and {ON_THIS_SIDE} order by st.ordinal, m.seq",
        session=session_seq,
    )


def of_session(rows: Rows, session_seq: int) -> list[Row]:
    """Every version of a session's digest, the first first."""
    versions = f"select {_COLUMNS} from digests d where d.session_seq = :session order by d.version"  # noqa: S608
    return rows.read(Row, versions, session=session_seq)


def items(rows: Rows, digest_seq: int) -> list[ItemRow]:
    """What a digest was made of, in its order."""
    return rows.read(
        ItemRow,
        "select kind, text, uuid, state, amount from digest_items where digest_seq = :digest order by seq",
        digest=digest_seq,
    )


def headlines(rows: Rows, digest_seq: int) -> list[tuple[str, str, str, str]]:
    """(kind, text, kind and time of the turn it came from) of what a digest says in a line.

    Goal, files, commits and their reasons, branches, pull requests, open ends, how it ended; errors of checks that failed to the end are `failing`.
    """
    return rows.all(
        "select case i.kind when 'error' then 'failing' else i.kind end, i.text, coalesce(t.kind, ''), coalesce(t.at, '') "
        "from digest_items i left join turns t on t.uuid = i.uuid where i.digest_seq = :digest and (i.kind in "
        "('goal', 'file', 'commit', 'reason', 'pull', 'branch', 'open', 'last') or (i.kind = 'error' and i.state = 'failed')) order by i.seq",
        digest=digest_seq,
    )


def dated_items(rows: Rows, digest_seq: int) -> list[tuple[str, str, int, str]]:
    """(kind, text, amount, time of its turn) of everything in a digest; errors of checks that failed to the end are `failing`."""
    return rows.all(
        "select case when i.kind = 'error' and i.state = 'failed' then 'failing' else i.kind end, i.text, i.amount, "
        "coalesce(t.at, '') from digest_items i left join turns t on t.uuid = i.uuid where i.digest_seq = :digest order by i.seq",
        digest=digest_seq,
    )


def latest(rows: Rows, *, projects: Sequence[int] | None, limit: int) -> list[Row]:
    """The last version of the digests of sessions in these projects (None: in all), the latest session first."""
    return rows.read(
        Row,
        f"select {_COLUMNS} from sessions s join digests d on d.session_seq = s.seq "  # noqa: S608
        f"where s.parent = '' and {in_keys('s.project_seq', projects)} and d.version = (select max(o.version) from digests o "
        "where o.session_seq = s.seq) order by s.last_at desc, s.seq desc limit :limit",
        limit=limit,
    )


def replace(rows: Rows, session_seq: int, made: Sequence[Any], *, turns: int) -> int:
    """Writes a session's digests and its cursor; versions that say the same keep their row. How many were written."""
    known = {row.version: row for row in of_session(rows, session_seq)}
    written = 0
    for version, digest in enumerate(made, 1):
        old = known.pop(version, None)
        if old is not None and _same(rows, old, digest):
            continue
        if old is not None:
            rows.delete("digests", seq=old.seq)
        _insert(rows, session_seq, version, digest)
        written += 1
    for old in known.values():
        rows.delete("digests", seq=old.seq)
    cursors.move_cursor(rows, DIGEST, str(session_seq), turns)
    return written


def _same(rows: Rows, old: Row, digest: Any) -> bool:
    if (old.text, old.why, old.upto, old.outcome) != (digest.text, digest.why, digest.upto, digest.outcome):
        return False
    return [tuple(item) for item in items(rows, old.seq)] == [tuple(item) for item in digest.items]


def _insert(rows: Rows, session_seq: int, version: int, digest: Any) -> None:
    values = {
        name: getattr(digest, name) for name in ("why", "upto", "at", "text", "outcome", "prompts", "calls", "tokens")
    }
    seq = rows.insert_keyed("digests", session_seq=session_seq, version=version, **values)
    for item in digest.items:
        rows.insert("digest_items", digest_seq=seq, **{name: getattr(item, name) for name in ItemRow._fields})


def take_back(rows: Rows, turn_seq: int) -> None:
    """Removes what was made of the sessions that list a turn: its words have changed, and it is made again."""
    for session in rows.column("select session_seq from session_turn where turn_seq = :turn", turn=turn_seq):
        clear(rows, session)


def clear(rows: Rows, session_seq: int) -> None:
    """Removes a session's digests, links and outcomes, and the cursors that would keep them away."""
    rows.delete("digests", session_seq=session_seq)
    rows.delete("self_capabilities", session_seq=session_seq)
    rows.run("delete from session_links where to_seq = :session or from_seq = :session", session=session_seq)
    rows.run(
        "delete from candidate_evidence where session_id = (select s.id from sessions s where s.seq = :session) "
        "and candidate_seq in (select m.seq from candidates m where m.source = 'selfmodel')",
        session=session_seq,
    )
    mark_endings_changed(rows)
    for stage in (DIGEST, SELF):
        rows.delete("cursors", stage=stage, subject=str(session_seq))


def mark_endings_changed(rows: Rows) -> None:
    """Has the endings counted anew when everything is in."""
    cursors.move_cursor(rows, SELF, AGAIN, 1)


def clear_comparisons(rows: Rows, projects: Sequence[int]) -> None:
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
    mark_endings_changed(rows)


class Behind(NamedTuple):
    """A session whose last digest was not compared with the others yet."""

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


def sessions_to_compare(rows: Rows, *, limit: int) -> list[Behind]:
    """The sessions with a last digest that was not compared, oldest first."""
    return rows.read(
        Behind,
        "select s.seq, s.project_seq, d.seq from digests d join sessions s on s.seq = d.session_seq "
        "left join cursors c on c.stage = 'self' and c.subject = cast(s.seq as text) "
        "where d.seq > coalesce(c.position, 0) and d.version = (select max(o.version) from digests o "
        "where o.session_seq = d.session_seq) order by s.started_at, s.seq limit :limit",
        limit=limit,
    )


def session_starts(rows: Rows, sessions: Sequence[int]) -> list[str]:
    """When some sessions began."""
    return rows.column(f"select started_at from sessions where {in_keys('seq', sessions)}")  # noqa: S608


def digests_of_project(rows: Rows, project: int, *, since: str, until: str) -> list[tuple[Any, ...]]:
    """(session, id, start, end, its last digest, outcome) of a project's digested sessions that began in a span, in order."""
    sql = (
        "select s.seq, s.id, s.started_at, s.last_at, d.seq, d.outcome from sessions s join digests d on d.session_seq = s.seq "
        "where s.project_seq = :project and s.started_at >= :since and s.started_at <= :until "
        "and d.version = (select max(o.version) from digests o where o.session_seq = s.seq) "
        "order by s.started_at, s.last_at, s.id"
    )
    return rows.all(sql, project=project, since=since, until=until)


def items_of(rows: Rows, digests: Sequence[int]) -> list[tuple[Any, ...]]:
    """(digest, kind, text, uuid, state) of everything that sessions are compared by, in its order."""
    return rows.all(
        f"select digest_seq, kind, text, uuid, state from digest_items where {in_keys('digest_seq', digests)} "  # noqa: S608
        "and kind not in ('decision', 'correction', 'open', 'last') order by seq"
    )


def sessions_sharing_turns(rows: Rows, session_seq: int) -> list[tuple[int, str]]:
    """(session, the first turn) for each other conversation of people that lists turns which this one lists, too."""
    return rows.all(
        "select o.session_seq, min(t.uuid) from session_turn st join session_turn o on o.turn_seq = st.turn_seq "
        "and o.session_seq <> st.session_seq join sessions s on s.seq = o.session_seq and s.parent = '' "
        "join turns t on t.seq = st.turn_seq where st.session_seq = :session group by o.session_seq order by o.session_seq",
        session=session_seq,
    )


def stored_sessions(rows: Rows, idents: Sequence[str]) -> frozenset[str]:
    """Those of some sessions' ids that are stored."""
    return frozenset(ident for ident in idents if rows.exists("select 1 from sessions where id = :id", id=ident))


def replace_links(rows: Rows, to_seq: int, made: Sequence[Any], kinds: Mapping[str, str]) -> None:
    """Writes what a session builds on in the place of what was written before; what is the same keeps its row."""
    known = {
        tuple(link): seq
        for seq, *link in rows.all(
            "select seq, from_seq, rule, about from session_links where to_seq = :session", session=to_seq
        )
    }
    for link in made:
        same = {"from_seq": link.from_seq, "rule": link.rule, "about": link.about}
        seq = known.pop(tuple(same.values()), 0) or rows.insert_keyed(
            "session_links", to_seq=to_seq, kind=kinds[link.rule], weight=link.weight, **same
        )
        rows.update("session_links", seq, weight=link.weight, evidence=" ".join(sorted(set(link.evidence))))
    for seq in known.values():
        rows.delete("session_links", seq=seq)


def links_of_session(rows: Rows, session_seq: int, *, projects: Sequence[int] | None) -> list[LinkRow]:
    """The links from and to a session, whose other end is in these projects (None: in any), the surest first."""
    return rows.read(
        LinkRow,
        "select l.seq, coalesce(f.id, ''), t.id, l.rule, l.kind, l.about, l.weight, coalesce(s.started_at, t.started_at), l.evidence "  # noqa: S608
        "from session_links l join sessions t on t.seq = l.to_seq left join sessions f on f.seq = l.from_seq "
        "left join sessions s on s.seq = case when l.to_seq = :session then l.from_seq else l.to_seq end "
        f"where (l.to_seq = :session or l.from_seq = :session) and (l.from_seq = 0 or {in_keys('s.project_seq', projects)}) order by l.weight desc, l.seq",
        session=session_seq,
    )


def link_counts(rows: Rows, *, projects: Sequence[int] | None) -> dict[str, int]:
    """How many links of each kind there are to sessions of these projects (None: of all)."""
    return dict(
        rows.all(
            f"select l.kind, count(*) from session_links l join sessions s on s.seq = l.to_seq where {in_keys('s.project_seq', projects)} "  # noqa: S608
            "group by l.kind order by l.kind"
        )
    )


def replace_outcomes(rows: Rows, session_seq: int, ended: Sequence[Any], *, at: str) -> None:
    """Writes how the work of a session ended, and what it was held with, in the place of what was written before."""
    rows.delete("self_capabilities", session_seq=session_seq)
    for outcome in ended:
        how = {"capability": outcome.capability, "outcome": outcome.outcome, "why": outcome.why, "uuid": outcome.uuid}
        rows.insert("self_capabilities", session_seq=session_seq, at=at, **how)


def outcomes_counted(rows: Rows, *, projects: Sequence[int] | None) -> list[tuple[Any, ...]]:
    """(capability, outcome, uuid, session, time) of the sessions of these projects (None: of all), in order of time."""
    return rows.all(
        "select c.capability, c.outcome, c.uuid, s.id, c.at from self_capabilities c "  # noqa: S608
        f"join sessions s on s.seq = c.session_seq and {in_keys('s.project_seq', projects)} order by c.at, s.id, c.capability"
    )


def continuity(rows: Rows, *, projects: Sequence[int] | None) -> list[tuple[str, str, str, str, int]]:
    """(model or version, its name, since, until, sessions) of what sessions of these projects were held with, in order."""
    found: list[tuple[str, str, str, str, int]] = []
    for column in ("model", "version"):
        found += rows.all(
            f"select '{column}', s.{column}, min(s.started_at), max(s.last_at), count(*) from sessions s "  # noqa: S608
            f"where s.parent = '' and s.{column} <> '' and {in_keys('s.project_seq', projects)} "
            f"group by s.{column} order by min(s.started_at), s.{column}"
        )
    return found


def projects_held(rows: Rows) -> list[int]:
    """The projects with sessions whose work was counted."""
    return rows.column(
        "select distinct s.project_seq from self_capabilities c join sessions s on s.seq = c.session_seq order by s.project_seq"
    )


def warned(rows: Rows) -> list[int]:
    """The projects for which a warning of the self model waits."""
    return rows.column(
        "select distinct project_seq from candidates where source = 'selfmodel' and status in ('open', 'needs_review') "
        "order by project_seq"
    )
