"""Digests of sessions: versions up to each compaction and to the end, with their items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from csmd.hook_events import EVENTS
from csmd.hosts.tool_calls import TODO_LIST
from csmd.store import cursors
from csmd.store.row_values import columns
from csmd.store.sqlite import Rows, in_keys

#: Stages that read digests; their cursors are deleted with a digest, so that their results are made again.
DIGEST_STAGE = "digest"
SELF_STAGE = "self"
#: The subject of SELF's cursor that is 1 while outcomes have changed and are not counted.
RECOUNT_SUBJECT = "endings"
#: Characters of the beginning and of the end of a text that are read.
HALF_CHARACTERS = 3000
_ENDS = ", ".join(f"'{name}'" for name, rule in EVENTS.items() if rule.digest_reason)
#: In the order of DueSession's fields; the host's last event about a session is at its last turn or later.
_SESSION = f"""s.seq, s.id, s.turns, s.title, s.cwd, s.path,
    coalesce((select e.name from events e where e.session_id = s.id and e.name in ({_ENDS}) and e.at >= s.last_at
    order by e.at desc, e.seq desc limit 1), '')"""  # noqa: S608
#: Excludes the parts of a session in a project of another workspace.
ON_THIS_SIDE = (
    "(select p.workspace_seq from projects p where p.seq = t.project_seq) = (select p.workspace_seq from projects p "
    "join sessions s on s.project_seq = p.seq where s.seq = st.session_seq)"
)


class DigestVersion(NamedTuple):
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


_COLUMNS = columns(DigestVersion, "d")


class ItemRow(NamedTuple):
    """One thing in a digest, with the turn it came from."""

    kind: str
    text: str
    uuid: str
    state: str
    amount: int


class DueSession(NamedTuple):
    """A session whose digest is due: how far it goes, and the host's last event about it."""

    session_seq: int
    id: str
    turns: int
    title: str
    cwd: str
    path: str
    why: str


def list_due(rows: Rows, *, limit: int, pace: cursors.Pace) -> list[DueSession]:
    """Returns people's sessions that are due, distilled to their end and not digested up to there, oldest first."""
    due = pace.due("s.turns")
    sql = f"""select {_SESSION}
        from sessions s join cursors d on d.stage = 'distill' and d.subject = cast(s.seq as text)
        left join cursors c on c.stage = 'digest' and c.subject = cast(s.seq as text)
        where s.parent = '' and s.host <> 'probe' and s.turns > coalesce(c.position, 0)
        and d.position >= s.turns and {due} order by s.started_at, s.seq limit :limit"""  # noqa: S608
    return rows.read(DueSession, sql, limit=limit, quiet_before=pace.quiet_before, now=pace.now)


def find_session(rows: Rows, session_seq: int) -> DueSession:
    """Returns a session, whether its digest is due or not."""
    (session,) = rows.read(DueSession, f"select {_SESSION} from sessions s where s.seq = :seq", seq=session_seq)  # noqa: S608
    return session


def read_entries(rows: Rows, session_seq: int) -> list[tuple[Any, ...]]:
    """Returns (ordinal, uuid, kind, text, time, tool, call, tokens) of the entries of a session's transcript, in order.

    Of rewound turns only tool traffic; of a long text its beginning and end, where outcomes are.
    """
    sql = f"""select st.ordinal, t.uuid, t.kind, case when length(t.text) <= :most or t.tool_name = :todo then t.text
        else substr(t.text, 1, :half) || :gap || substr(t.text, length(t.text) - :half) end,
        t.at, t.tool_name, t.tool_id, t.tokens from session_turn st
        join turns t on t.seq = st.turn_seq where st.session_seq = :session and t.source = 'transcript'
        and (st.rewound = 0 or t.kind in ('tool_call', 'tool_result')) and {ON_THIS_SIDE} order by st.ordinal"""  # noqa: S608
    return rows.all(
        sql, session=session_seq, most=2 * HALF_CHARACTERS, half=HALF_CHARACTERS, gap="\n\n", todo=TODO_LIST
    )


def read_statements(rows: Rows, session_seq: int) -> list[tuple[Any, ...]]:
    """Returns (ordinal, text, gate, category, authority, confidence, uuid) of the statements of a session, in order."""
    sql = f"""select st.ordinal, m.text, m.gate, m.category, m.authority, m.confidence, t.uuid
        from session_turn st join statements m on m.turn_seq = st.turn_seq join turns t on t.seq = st.turn_seq
        where st.session_seq = :session and st.rewound = 0 and {ON_THIS_SIDE} order by st.ordinal, m.seq"""  # noqa: S608
    return rows.all(sql, session=session_seq)


def of_session(rows: Rows, session_seq: int) -> list[DigestVersion]:
    """Returns every version of a session's digest, in order."""
    versions = f"select {_COLUMNS} from digests d where d.session_seq = :session order by d.version"  # noqa: S608
    return rows.read(DigestVersion, versions, session=session_seq)


def list_items(rows: Rows, digest_seq: int) -> list[ItemRow]:
    """Returns the items of a digest in order."""
    sql = "select kind, text, uuid, state, amount from digest_items where digest_seq = :digest order by seq"
    return rows.read(ItemRow, sql, digest=digest_seq)


def list_headlines(rows: Rows, digest_seq: int) -> list[tuple[str, str, str, str]]:
    """Returns (kind, text, kind and time of its turn) of the items of a digest that fit a line.

    Goal, files, commits and their reasons, branches, pull requests, open ends, outcome; errors of checks that failed to
    the end have the kind `failing`.
    """
    sql = """select case i.kind when 'error' then 'failing' else i.kind end, i.text, coalesce(t.kind, ''),
        coalesce(t.at, '') from digest_items i left join turns t on t.uuid = i.uuid where i.digest_seq = :digest
        and (i.kind in ('goal', 'file', 'commit', 'reason', 'pull', 'branch', 'open', 'last')
        or (i.kind = 'error' and i.state = 'failed')) order by i.seq"""
    return rows.all(sql, digest=digest_seq)


def list_dated_items(rows: Rows, digest_seq: int) -> list[tuple[str, str, int, str]]:
    """Returns (kind, text, amount, time of its turn) of every item; the kind of an error that stayed is `failing`."""
    sql = """select case when i.kind = 'error' and i.state = 'failed' then 'failing' else i.kind end,
        i.text, i.amount, coalesce(t.at, '')
        from digest_items i left join turns t on t.uuid = i.uuid where i.digest_seq = :digest order by i.seq"""
    return rows.all(sql, digest=digest_seq)


def list_latest(rows: Rows, *, projects: Sequence[int] | None, limit: int) -> list[DigestVersion]:
    """Returns the last digests of sessions in these projects (None: all), the latest session first."""
    sql = f"""select {_COLUMNS} from sessions s join digests d on d.session_seq = s.seq
        where s.parent = '' and {in_keys("s.project_seq", projects)} and d.version = (select max(o.version)
        from digests o where o.session_seq = s.seq) order by s.last_at desc, s.seq desc limit :limit"""  # noqa: S608
    return rows.read(DigestVersion, sql, limit=limit)


def replace(rows: Rows, session_seq: int, digests: Sequence[Any], *, turns: int) -> int:
    """Replaces a session's digests and its cursor; equal versions keep their rows. Returns how many were written."""
    versions = {row.version: row for row in of_session(rows, session_seq)}
    written = 0
    for version, digest in enumerate(digests, 1):
        old = versions.pop(version, None)
        if old is not None and _is_equal(rows, old, digest):
            continue
        if old is not None:
            rows.delete("digests", seq=old.seq)
        _insert(rows, session_seq, version, digest)
        written += 1
    for old in versions.values():
        rows.delete("digests", seq=old.seq)
    cursors.move_cursor(rows, DIGEST_STAGE, str(session_seq), turns)
    return written


def _is_equal(rows: Rows, old: DigestVersion, digest: Any) -> bool:
    if (old.text, old.why, old.upto, old.outcome) != (digest.text, digest.why, digest.upto, digest.outcome):
        return False
    return [tuple(item) for item in list_items(rows, old.seq)] == [tuple(item) for item in digest.items]


def _insert(rows: Rows, session_seq: int, version: int, digest: Any) -> None:
    values = {
        name: getattr(digest, name) for name in ("why", "upto", "at", "text", "outcome", "prompts", "calls", "tokens")
    }
    seq = rows.insert_keyed("digests", session_seq=session_seq, version=version, **values)
    for item in digest.items:
        rows.insert("digest_items", digest_seq=seq, **{name: getattr(item, name) for name in ItemRow._fields})


def clear_sessions_of_turn(rows: Rows, turn_seq: int) -> None:
    """Clears the sessions that list a turn whose text changed."""
    for session in rows.column("select session_seq from session_turn where turn_seq = :turn", turn=turn_seq):
        clear(rows, session)


def clear(rows: Rows, session_seq: int) -> None:
    """Deletes a session's digests, links and outcomes, and the cursors of their stages, so that they are rebuilt."""
    rows.delete("digests", session_seq=session_seq)
    rows.delete("self_capabilities", session_seq=session_seq)
    rows.run("delete from session_links where to_seq = :session or from_seq = :session", session=session_seq)
    sql = """delete from candidate_evidence where session_id = (select s.id from sessions s where s.seq = :session)
        and candidate_seq in (select m.seq from candidates m where m.source = 'selfmodel')"""
    rows.run(sql, session=session_seq)
    mark_endings_changed(rows)
    for stage in (DIGEST_STAGE, SELF_STAGE):
        rows.delete("cursors", stage=stage, subject=str(session_seq))


def mark_endings_changed(rows: Rows) -> None:
    """Schedules a new count of the outcomes."""
    cursors.move_cursor(rows, SELF_STAGE, RECOUNT_SUBJECT, 1)


def clear_comparisons(rows: Rows, projects: Sequence[int]) -> None:
    """Schedules a new comparison of the sessions of these projects, after a merge or split."""
    sql = f"""delete from cursors where stage = 'self'
        and subject in (select cast(s.seq as text) from sessions s where {in_keys("s.project_seq", projects)})"""  # noqa: S608
    rows.run(sql)
    # Only sessions of one project continue each other.
    sql = """delete from session_links where from_seq > 0 and (select f.project_seq
        from sessions f where f.seq = from_seq) <> (select t.project_seq from sessions t where t.seq = to_seq)"""
    rows.run(sql)
    mark_endings_changed(rows)
