"""Sessions as listed, described and read; token usage; tampered transcripts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, get_args

from csmd.privacy.fingerprints import PURGED
from csmd.store import candidates, checkpoints, digests, failures, markdown_pages, memory_deletion
from csmd.store.sqlite import Rows, in_keys
from csmd.values import SaidTurn
from csmd.vocabulary import TurnKind

#: In the order of Session's fields.
_COLUMNS = (
    "s.seq, s.id, s.parent, s.host, p.root, s.path, s.cwd, s.title, s.version, s.model, s.started_at, s.last_at, "
    "(select count(*) from session_turn st where st.session_seq = s.seq), "
    "s.project_seq, s.context, "
    "exists(select 1 from session_turn st join turns t on t.seq = st.turn_seq where st.session_seq = s.seq "
    "and t.source = 'transcript')"
)


class Session(NamedTuple):
    """A conversation: `project` is its project's root, `path` its transcript's ("" when no line of it was read).

    `context` are the tokens that the latest message was made from, `is_read` whether a line of its transcript was ever
    read: until then only hooks have named it.
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
    """The sessions `s` that fulfil a condition, in the order that it may end with."""
    sql = f"select {_COLUMNS} from sessions s join projects p on p.seq = s.project_seq where {condition}"  # noqa: S608
    return rows.read(Session, sql, **values)


def list_sessions(rows: Rows, *, projects: Sequence[int] | None, limit: int, offset: int = 0) -> list[Session]:
    """The sessions of people (no sub-agents) in these projects (None: in all), the latest first, without the first `offset`."""
    people = f"s.parent = '' and s.host <> 'probe' and {in_keys('s.project_seq', projects)}"
    latest = f"{people} order by s.last_at desc, s.seq desc limit :limit offset :offset"
    return _where(rows, latest, limit=limit, offset=offset)


def memory_count(rows: Rows, ident: str) -> int:
    """How many memories rest on a session."""
    return rows.number("select count(distinct memory_seq) from provenance where session_id = :id", id=ident)


def by_id(rows: Rows, ident: str) -> Session | None:
    """One session, or a sub-agent's, by its whole id."""
    return next(iter(_where(rows, "s.id = :id", id=ident)), None)


def ids_like(rows: Rows, prefix: str) -> list[str]:
    """Up to five ids of sessions that begin with `prefix`, sub-agents' too where it names one."""
    sql = (
        "select id from sessions where substr(id, 1, :size) = :prefix and (parent = '' or :agents = 1) "
        "order by id limit 5"
    )
    return rows.column(sql, size=len(prefix), prefix=prefix, agents=int("/" in prefix))


def named(rows: Rows, seqs: Sequence[int]) -> dict[int, str]:
    """The ids of some sessions by their row keys."""
    return dict(rows.all(f"select seq, id from sessions where {in_keys('seq', seqs)}"))  # noqa: S608


def projects_of(rows: Rows, idents: Sequence[str]) -> dict[str, int]:
    """The row keys of the projects of some sessions, by their ids."""
    names = {f"id{number}": ident for number, ident in enumerate(idents)}
    keys = ", ".join(f":{name}" for name in names) or "null"
    return dict(rows.all(f"select id, project_seq from sessions where id in ({keys})", **names))  # noqa: S608


def ends(rows: Rows, *, projects: Sequence[int], other_than: str, limit: int) -> list[str]:
    """When the last sessions of some projects ended, in order, without one session and without agents' own."""
    sql = (
        f"select last_at from sessions where {in_keys('project_seq', projects)} and parent = '' and host <> 'probe' "  # noqa: S608
        "and id <> :own order by last_at desc limit :limit"
    )
    return sorted(str(at) for (at,) in rows.all(sql, own=other_than, limit=limit))


def first_prompts(rows: Rows, session_seq: int, *, most: int, characters: int) -> list[str]:
    """The beginnings of the first prompts of a session in order, without what a rewind left behind."""
    sql = (
        "select substr(t.text, 1, :characters) from session_turn st join turns t on t.seq = st.turn_seq where "
        "st.session_seq = :session and st.rewound = 0 and t.kind in ('user', 'relayed') order by st.ordinal limit :most"
    )
    return rows.column(sql, session=session_seq, most=most, characters=characters)


def count_prompts(rows: Rows, ident: str, *, since: str, most: int) -> int:
    """How many prompts a session has since a time, counted up to `most`."""
    return rows.number(
        "select count(*) from (select 1 from sessions s join session_turn st on st.session_seq = s.seq "
        "join turns t on t.seq = st.turn_seq where s.id = :ident and t.kind = 'user' and t.at >= :since order by st.ordinal limit :most)",
        ident=ident,
        since=since,
        most=most,
    )


def is_purged(rows: Rows, session_seq: int) -> bool:
    """Whether a session has turns and nothing is left of what was said in it."""
    sql = (
        "select count(*), coalesce(sum(case when t.text in ('', :purged) then 0 else 1 end), 0) from session_turn st "
        "join turns t on t.seq = st.turn_seq where st.session_seq = :session and t.kind in ('user', 'relayed', 'assistant')"
    )
    turns, left = rows.one(sql, session=session_seq, purged=PURGED) or (0, 0)
    return bool(turns) and not left


def agents(rows: Rows, ident: str, *, projects: Sequence[int] | None) -> list[Session]:
    """The sub-agents of a session in these projects (None: in all), the first first."""
    return _where(
        rows, f"s.parent = :id and {in_keys('s.project_seq', projects)} order by s.started_at, s.seq", id=ident
    )


def conversation(
    rows: Rows,
    session_seq: int,
    *,
    projects: Sequence[int] | None,
    limit: int = 2**31,
    offset: int = 0,
    among: Sequence[TurnKind] = get_args(TurnKind),
) -> list[SaidTurn]:
    """The turns of a session that were said in these projects (None: in any), in its order, from the `offset`th on.

    `among` are the kinds of turns that count.
    """
    kinds_named = ", ".join(f"'{kind}'" for kind in among)
    return rows.read(
        SaidTurn,
        "select t.uuid, t.kind, t.text, t.at, t.parent_uuid, t.message_id, t.tool_name, t.tool_id, t.tokens, "  # noqa: S608
        "coalesce(t.dropped, 0), st.rewound, coalesce(t.counted, 0) from session_turn st join turns t on t.seq = st.turn_seq "
        f"where st.session_seq = :session and {in_keys('t.project_seq', projects)} and t.kind in ({kinds_named}) "
        "order by st.ordinal limit :limit offset :offset",
        session=session_seq,
        limit=limit,
        offset=offset,
    )


def kinds(rows: Rows, session_seq: int, *, projects: Sequence[int] | None) -> dict[str, int]:
    """How many turns of each kind a session has in these projects (None: in all)."""
    return dict(
        rows.all(
            "select t.kind, count(*) from session_turn st join turns t on t.seq = st.turn_seq "  # noqa: S608
            f"where st.session_seq = :session and {in_keys('t.project_seq', projects)} group by t.kind order by t.kind",
            session=session_seq,
        )
    )


def statements(rows: Rows, session_seq: int, *, projects: Sequence[int] | None) -> list[tuple[str, str, str, str]]:
    """(text, gate, authority, time) of the sentences that were chosen from a session in these projects, in order."""
    return rows.all(
        "select t.text, t.gate, t.authority, t.at from session_turn st join statements t on "  # noqa: S608
        f"t.turn_seq = st.turn_seq where st.session_seq = :session and st.rewound = 0 and {in_keys('t.project_seq', projects)} "
        "order by st.ordinal, t.seq",
        session=session_seq,
    )


def memories_of(rows: Rows, ident: str, *, projects: Sequence[int] | None) -> list[tuple[str, str, str]]:
    """(id, text, role) of the memories of these projects (None: of all) that rest on a session, the first stated first."""
    return rows.all(
        "select m.id, m.text, max(p.role) from provenance p join memories m on m.seq = p.memory_seq "  # noqa: S608
        f"where p.session_id = :session and {in_keys('m.project_seq', projects)} group by m.id, m.text order by min(p.at), m.id",
        session=ident,
    )


def injections_into(rows: Rows, ident: str) -> list[tuple[str, str, str, int, int]]:
    """(receipt, event, time, tokens, memories) of what was injected into a session, in order."""
    return rows.all(
        "select n.id, n.event, n.at, n.tokens, (select count(*) from injection_items i where "
        "i.injection_seq = n.seq) from injections n where n.session_id = :session order by n.seq",
        session=ident,
    )


def is_any_known(rows: Rows, ids: Sequence[str]) -> bool:
    """Whether one of these sessions is stored."""
    return any(rows.exists("select 1 from sessions where id = :id", id=ident) for ident in ids)


def transcript_paths(rows: Rows) -> list[tuple[int, str]]:
    """(session, its transcript) of each session of a person for which a transcript was ever named."""
    return rows.all("select seq, path from sessions where parent = '' and path <> ''")


def transcripts_with(rows: Rows, turn_seq: int) -> list[str]:
    """The transcripts that may hold a turn: of its sessions, forks too, and for a sub-agent's its own file and its parent's."""
    return rows.column(
        "select path from (select s.path as path, s.seq as seq from session_turn st "
        "join sessions s on s.seq = st.session_seq where st.turn_seq = :turn union all select f.path, s.seq from session_turn st join sessions s on s.seq = st.session_seq join files f on s.parent <> '' "
        "and f.path like '%' || substr(s.id, length(s.parent) + 2) || '.jsonl' where st.turn_seq = :turn "
        "union all select p.path, p.seq from session_turn st join sessions s on s.seq = st.session_seq "
        "join sessions p on p.id = s.parent where st.turn_seq = :turn) found where path <> '' group by path order by min(seq)",
        turn=turn_seq,
    )


def read_among(rows: Rows, sessions: Sequence[int]) -> int:
    """Of how many of these sessions a line of the transcript was ever read: until then only hooks have named it."""
    sql = (
        f"select count(*) from sessions s where {in_keys('s.seq', sessions)} and exists (select 1 from session_turn st "  # noqa: S608
        "join turns t on t.seq = st.turn_seq where st.session_seq = s.seq and t.source = 'transcript')"
    )
    return rows.number(sql)


def live_sessions(
    rows: Rows, *, since: str, limit: int, projects: Sequence[int] | None = None
) -> list[tuple[str, str, str, str, int]]:
    """(id, project's root, model, last turn, tokens in its context) of people's sessions that go on, the latest first.

    Those with a turn at or after `since` that no event has ended since; in these projects (None: in all).
    """
    sql = (
        "select s.id, p.root, s.model, s.last_at, s.context from sessions s join projects p on p.seq = s.project_seq "  # noqa: S608
        f"where s.parent = '' and s.host <> 'probe' and {in_keys('s.project_seq', projects)} and s.last_at >= :since "
        "and not exists (select 1 from events e where e.session_id = s.id and e.name = 'session_end' "
        "and e.at >= s.last_at) order by s.last_at desc limit :limit"
    )
    return rows.all(sql, since=since, limit=limit)


#: Turns at the beginning of a session among which its first prompt is looked for.
FIRST_TURNS = 100


def count_typed(rows: Rows, *, latest: int) -> tuple[int, int]:
    """(how many of people's latest sessions began with prompts, in how many of them a person typed one)."""
    seqs = rows.column(
        "select seq from sessions where parent = '' and host <> 'probe' order by last_at desc limit :latest",
        latest=latest,
    )
    # A row for each session with prompts: 0 where only programs spoke, else 1.
    sql = (
        "select max(t.kind = 'user') from session_turn st join turns t on t.seq = st.turn_seq "  # noqa: S608
        f"where {in_keys('st.session_seq', seqs)} and st.ordinal <= :first and t.kind in ('user', 'relayed') "
        "group by st.session_seq"
    )
    typed = rows.column(sql, first=FIRST_TURNS)
    return len(typed), sum(typed)


def withdraw(rows: Rows, path: str, uuid: str) -> bool:
    """Takes a turn out that its session's own file says is deleted, with what was chosen from it; whether it was there.

    Only a turn of the session whose file this is. A memory that was made of it stays: `forget` is for those.
    """
    sql = "select t.seq from turns t join sessions s on s.seq = t.session_seq where t.uuid = :uuid and s.path = :path"
    seq = rows.value(sql, uuid=uuid, path=path)
    if seq is None:
        return False
    markdown_pages.take_back_days(rows, int(seq))
    digests.take_back(rows, int(seq))
    checkpoints.take_back(rows, int(seq))
    rows.delete("turns", seq=seq)
    return True


def tools_called(rows: Rows, uuid: str) -> list[str]:
    """The names of the tools that were called in one line of a transcript, or in a line with several calls."""
    sql = "select tool_name from turns where kind = 'tool_call' and (uuid = :uuid or uuid like :parts)"
    return rows.column(sql, uuid=uuid, parts=f"{uuid}/%")


def latest_project(rows: Rows) -> int:
    """The project of the session that was at work last; 0 when there is none."""
    return rows.number("select project_seq from sessions where parent = '' order by last_at desc limit 1")


@dataclass(frozen=True, slots=True)
class Spent:
    """The tokens that a message of a conversation (a `Turn.stream`) took, as its transcript says."""

    stream: str
    message_id: str
    input: int
    output: int
    cache_read: int
    cache_write: int


@dataclass(frozen=True, slots=True)
class Sum:
    """The messages of a conversation and their tokens."""

    messages: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


def note_usage(rows: Rows, spent: Iterable[Spent]) -> None:
    """Writes down what messages took, in the transaction of their turns; of a message that comes again the latest."""
    for one in {(one.stream, one.message_id): one for one in spent}.values():
        values = asdict(one)
        session = rows.value("select seq from sessions where id = :stream", stream=values.pop("stream"))
        if session is not None:
            rows.upsert("usage", "session_seq, message_id", session_seq=session, **values)


def usage_of(rows: Rows, session_seq: int) -> Sum:
    """The token usage of one conversation; a sub-agent's is counted separately."""
    return _sum(rows, "usage u where u.session_seq = :session", session=session_seq)


def usage_of_agents(rows: Rows, ident: str) -> Sum:
    """The token usage of a session's sub-agents together."""
    source = "sessions s join usage u on u.session_seq = s.seq where s.parent = :id"
    return _sum(rows, source, id=ident)


def _sum(rows: Rows, source: str, **values: Any) -> Sum:
    sums = ", ".join(f"coalesce(sum(u.{name}), 0)" for name in ("input", "output", "cache_read", "cache_write"))
    return rows.read(Sum, f"select count(*), {sums} from {source}", **values)[0]  # noqa: S608


def tokens_injected(rows: Rows, ident: str) -> tuple[int, int]:
    """(how often, tokens) csmd put something before a session in all."""
    sql = "select count(*), coalesce(sum(tokens), 0) from injections where session_id = :id"
    return rows.one(sql, id=ident) or (0, 0)


#: The kind of the tombstones with the hashed names of transcripts that a tool wrote.
TAMPERED = "tampered"


def note_tampered(rows: Rows, names: Iterable[str], *, at: str, hashed: Callable[[str], str]) -> None:
    """Remembers transcripts that a tool wrote at a time, by the hashes of their file names; the first time counts."""
    for name in names:
        conflict = "on conflict (kind, hash, part_of) do nothing"
        if rows.insert("tombstones", conflict, kind=TAMPERED, hash=hashed(name), created_at=at):
            for seq, ident in _read_since(rows, name, at):
                _take_back(rows, seq, ident)


def _read_since(rows: Rows, name: str, at: str) -> list[tuple[int, str]]:
    """The sessions whose transcript has this file name and was read after a time.

    SQLite compares the names: hashing those of twenty thousand would hold the writer longer than a hook waits.
    """
    sql = (
        "select s.seq, s.id from sessions s where (substr(s.path, length(s.path) - length(:tail) + 1) = :tail "
        "or s.path like '%' || :inside || '%') "
        "and exists (select 1 from files f where f.path = s.path and f.read_at > :at)"
    )
    return rows.all(sql, tail=f"/{name}", inside=f"/{name}/", at=at)


def is_tampered(rows: Rows, name: str) -> bool:
    """Whether a transcript of this hashed name was written by a tool."""
    return rows.exists("select 1 from tombstones where kind = :kind and hash = :name", kind=TAMPERED, name=name)


def _take_back(rows: Rows, session_seq: int, ident: str) -> None:
    """Removes the statements and packets of a session, and the memories that have no other source."""
    memory_deletion.drop_sources(
        rows,
        "session_id = :id and uuid in "
        "(select t.uuid from statements st join turns t on t.seq = st.turn_seq where st.session_seq = :seq)",
        id=ident,
        seq=session_seq,
    )
    rows.delete("statements", session_seq=session_seq)
    digests.clear(rows, session_seq)
    markdown_pages.clear_days(rows, session_seq)
    checkpoints.clear(rows, session_seq)
    candidates.take_back_session_packets(rows, session_seq)
    failures.forget_session(rows, session_seq)
