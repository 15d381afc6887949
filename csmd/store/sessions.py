"""Stored sessions: lists, finds, describes and withdraws them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from csmd.privacy.fingerprints import PURGED
from csmd.store import checkpoints, digests, stored_days
from csmd.store.sqlite import Rows, in_keys

#: In the order of Session's fields.
_COLUMNS = """s.seq, s.id,
    s.parent, s.host, p.root, s.path, s.cwd, s.title, s.version, s.model, s.started_at, s.last_at, (select count(*)
    from session_turn st where st.session_seq = s.seq), s.project_seq, s.context, exists(select 1
    from session_turn st join turns t on t.seq = st.turn_seq where st.session_seq = s.seq and t.source = 'transcript')"""
#: Turns at the beginning of a session in which its first prompt is looked for.
MAX_FIRST_TURNS = 100


class Session(NamedTuple):
    """A conversation: `project` is its project's root, `path` its transcript's ("" until a line of it is read).

    `context` are the input tokens of the latest message, `is_read` whether a line of its transcript was read: until
    then only hooks have reported it.
    """

    seq: int
    id: str
    parent: str
    host: str
    project: str
    path: str
    cwd: str
    title: str
    version: str
    model: str
    started_at: str
    last_at: str
    turns: int
    project_seq: int
    context: int
    is_read: bool


def _where(rows: Rows, condition: str, **values: Any) -> list[Session]:
    """Returns the sessions `s` that fulfil a condition, which may end with an order."""
    sql = f"select {_COLUMNS} from sessions s join projects p on p.seq = s.project_seq where {condition}"  # noqa: S608
    return rows.read(Session, sql, **values)


def list_sessions(rows: Rows, *, projects: Sequence[int] | None, limit: int, offset: int = 0) -> list[Session]:
    """Returns people's sessions in these projects (None: all), the latest first, from the `offset`th on."""
    people = f"s.parent = '' and s.host <> 'probe' and {in_keys('s.project_seq', projects)}"
    latest = f"{people} order by s.last_at desc, s.seq desc limit :limit offset :offset"
    return _where(rows, latest, limit=limit, offset=offset)


def count_memories(rows: Rows, session_id: str) -> int:
    """Returns the number of memories with a source in a session."""
    return rows.number("select count(distinct memory_seq) from provenance where session_id = :id", id=session_id)


def by_id(rows: Rows, session_id: str) -> Session | None:
    """Returns a session, or a sub-agent's, by its whole id."""
    return next(iter(_where(rows, "s.id = :id", id=session_id)), None)


def find_ids_by_prefix(rows: Rows, prefix: str) -> list[str]:
    """Returns up to five session ids that begin with `prefix`, sub-agents' only if it contains a slash."""
    sql = """select id
        from sessions where substr(id, 1, :size) = :prefix and (parent = '' or :agents = 1) order by id limit 5"""
    return rows.column(sql, size=len(prefix), prefix=prefix, agents=int("/" in prefix))


def ids_by_seq(rows: Rows, seqs: Sequence[int]) -> dict[int, str]:
    """Returns the ids of some sessions by row key."""
    return dict(rows.all(f"select seq, id from sessions where {in_keys('seq', seqs)}"))  # noqa: S608


def map_projects_of(rows: Rows, session_ids: Sequence[str]) -> dict[str, int]:
    """Returns the projects of some sessions by id."""
    names = {f"id{number}": session_id for number, session_id in enumerate(session_ids)}
    keys = ", ".join(f":{name}" for name in names) or "null"
    return dict(rows.all(f"select id, project_seq from sessions where id in ({keys})", **names))  # noqa: S608


def list_end_times(rows: Rows, *, projects: Sequence[int], other_than: str, limit: int) -> list[str]:
    """Returns the end times of the last people's sessions of some projects, in order, without one session."""
    sql = f"""select last_at from sessions where {in_keys("project_seq", projects)}
        and parent = '' and host <> 'probe' and id <> :own order by last_at desc limit :limit"""  # noqa: S608
    return sorted(str(at) for (at,) in rows.all(sql, own=other_than, limit=limit))


def is_purged(rows: Rows, session_seq: int) -> bool:
    """Whether a session has turns but no text left."""
    sql = """select count(*), coalesce(sum(case when t.text in ('', :purged) then 0 else 1 end), 0)
        from session_turn st join turns t on t.seq = st.turn_seq
        where st.session_seq = :session and t.kind in ('user', 'relayed', 'assistant')"""
    turns, remaining = rows.first(sql, session=session_seq, purged=PURGED) or (0, 0)
    return bool(turns) and not remaining


def list_agents(rows: Rows, session_id: str, *, projects: Sequence[int] | None) -> list[Session]:
    """Returns the sub-agents of a session in these projects (None: all), the earliest first."""
    return _where(
        rows, f"s.parent = :id and {in_keys('s.project_seq', projects)} order by s.started_at, s.seq", id=session_id
    )


def has_any(rows: Rows, ids: Sequence[str]) -> bool:
    """Whether one of these sessions is stored."""
    return any(rows.has("sessions", id=session_id) for session_id in ids)


def list_transcript_paths(rows: Rows) -> list[tuple[int, str]]:
    """Returns (session, transcript) of each person's session with a known transcript."""
    return rows.all("select seq, path from sessions where parent = '' and path <> ''")


def list_transcripts_with(rows: Rows, turn_seq: int) -> list[str]:
    """Returns the transcripts that may hold a turn: of its sessions and forks, and of a sub-agent and its parent."""
    sql = """select path from (select s.path as path, s.seq as seq from session_turn st
        join sessions s on s.seq = st.session_seq where st.turn_seq = :turn union all select f.path, s.seq
        from session_turn st join sessions s on s.seq = st.session_seq join files f on s.parent <> ''
        and f.path like '%' || substr(s.id, length(s.parent) + 2) || '.jsonl' where st.turn_seq = :turn
        union all select p.path, p.seq from session_turn st join sessions s on s.seq = st.session_seq
        join sessions p on p.id = s.parent where st.turn_seq = :turn) found
        where path <> '' group by path order by min(seq)"""
    return rows.column(sql, turn=turn_seq)


def count_with_transcript(rows: Rows, sessions: Sequence[int]) -> int:
    """Counts those of some sessions with a turn from their transcript; only hooks reported the others."""
    sql = f"""select count(*)
        from sessions s where {in_keys("s.seq", sessions)} and exists (select 1 from session_turn st
        join turns t on t.seq = st.turn_seq where st.session_seq = s.seq and t.source = 'transcript')"""  # noqa: S608
    return rows.number(sql)


def list_live_sessions(
    rows: Rows, *, since: str, limit: int, projects: Sequence[int] | None = None
) -> list[tuple[str, str, str, str, int]]:
    """Returns (id, project's root, model, last turn, tokens in its context) of running sessions, the latest first.

    People's sessions with a turn at or after `since` that no event has ended since, in these projects (None: all).
    """
    sql = f"""select s.id, p.root, s.model, s.last_at, s.context from sessions s join projects p
        on p.seq = s.project_seq where s.parent = '' and s.host <> 'probe' and {in_keys("s.project_seq", projects)}
        and s.last_at >= :since and not exists (select 1 from events e where e.session_id = s.id
        and e.name = 'session_end' and e.at >= s.last_at) order by s.last_at desc limit :limit"""  # noqa: S608
    return rows.all(sql, since=since, limit=limit)


class VersionSpan(NamedTuple):
    """When sessions used a model or a client's version: `what` is "model" or "version"."""

    what: str
    name: str
    since: str
    until: str
    sessions: int


def list_version_spans(rows: Rows, *, projects: Sequence[int] | None) -> list[VersionSpan]:
    """Returns when each model and client version was used in sessions of these projects (None: all), by time."""
    spans: list[VersionSpan] = []
    for column in ("model", "version"):
        sql = f"""select '{column}', s.{column}, min(s.started_at), max(s.last_at), count(*)
            from sessions s where s.parent = '' and s.{column} <> '' and {in_keys("s.project_seq", projects)}
            group by s.{column} order by min(s.started_at), s.{column}"""  # noqa: S608
        spans += rows.read(VersionSpan, sql)
    return spans


def count_typed(rows: Rows, *, latest: int) -> tuple[int, int]:
    """Returns (how many of people's latest sessions began with prompts, in how many a person typed one)."""
    sql = "select seq from sessions where parent = '' and host <> 'probe' order by last_at desc limit :latest"
    seqs = rows.column(sql, latest=latest)
    # A row for each session with prompts: 0 if only programs wrote them, else 1.
    sql = f"""select max(t.kind = 'user') from session_turn st join turns t on t.seq = st.turn_seq
        where {in_keys("st.session_seq", seqs)} and st.ordinal <= :first and t.kind in ('user', 'relayed')
        group by st.session_seq"""  # noqa: S608
    typed = rows.column(sql, first=MAX_FIRST_TURNS)
    return len(typed), sum(typed)


def withdraw_turn(rows: Rows, path: str, uuid: str) -> bool:
    """Deletes a turn that its session's own file says is deleted, with its statements; returns whether it was there.

    The file must be the session's. Memories made of it stay: `forget` is for those.
    """
    sql = "select t.seq from turns t join sessions s on s.seq = t.session_seq where t.uuid = :uuid and s.path = :path"
    seq = rows.value(sql, uuid=uuid, path=path)
    if seq is None:
        return False
    stored_days.take_back_days(rows, int(seq))
    digests.clear_sessions_of_turn(rows, int(seq))
    checkpoints.delete_turn(rows, int(seq))
    rows.delete("turns", seq=seq)
    return True


def list_tools_called(rows: Rows, uuid: str) -> list[str]:
    """Returns the names of the tools called in one line of a transcript."""
    sql = "select tool_name from turns where kind = 'tool_call' and (uuid = :uuid or uuid like :parts)"
    return rows.column(sql, uuid=uuid, parts=f"{uuid}/%")


def find_latest_project(rows: Rows) -> int:
    """Returns the project of the session with the latest turn; 0 if there is none."""
    return rows.number("select project_seq from sessions where parent = '' order by last_at desc limit 1")
