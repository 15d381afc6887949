"""Reads for retrieval: texts, neighbours and filters of search results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from csmd.knowledge import Memory
from csmd.store import memories
from csmd.store.fulltext import JOIN_SEARCHABLE, count_rows_with, text_hits
from csmd.store.row_values import as_value
from csmd.store.sqlite import IS_LISTED, Rows, in_keys, listed, starts_with
from csmd.vocabulary import TurnKind

#: How many passages are searched for each turn to find.
PASSAGES_PER_TURN = 3
#: How many places ahead in a session a turn is looked for: tool calls are between what people say.
MAX_TURN_DISTANCE = 60
#: How far from an exchange's ends a turn is looked at; a turn further away is next to its neighbours.
MAX_EXCHANGE_TURNS = 200
#: What was said in the session of `me`.
_SEARCHABLE_TURNS = f"from session_turn n join {JOIN_SEARCHABLE} where n.session_seq = me.session_seq"
#: Kind of rows -> its key, its tables, its time, and the condition that it is of a session.
_OF_SESSION = "s.id = :session or s.parent = :session"
_FILTERED_TABLES = {
    "turn": ("t.seq", "turns t join sessions s on s.seq = t.session_seq", "t.at", _OF_SESSION),
    "passage": (
        "p.seq",
        "passages p join turns t on t.seq = p.turn_seq join sessions s on s.seq = p.session_seq",
        "t.at",
        _OF_SESSION,
    ),
    "memory": (
        "m.seq",
        "memories m",
        "m.confirmed_at",
        "exists (select 1 from provenance p where p.memory_seq = m.seq and p.session_id = :session)",
    ),
}


class TurnRow(NamedTuple):
    """A turn in a search result."""

    seq: int
    uuid: str
    kind: TurnKind
    text: str
    at: str
    session_seq: int
    session_id: str
    project: str
    project_seq: int


class DigestRow(NamedTuple):
    """A version of a session's digest in a search result; `items` are (text, uuid)."""

    seq: int
    session_id: str
    text: str
    at: str
    project: str
    items: tuple[tuple[str, str], ...]


def turns_by_seq(rows: Rows, seqs: Sequence[int]) -> dict[int, TurnRow]:
    """Returns turns by row key, with their session and project root."""
    sql = f"""select t.seq, t.uuid,
        t.kind, t.text, t.at, s.seq, case when s.parent = '' then s.id else s.parent end, p.root, p.seq from turns t
        join sessions s on s.seq = t.session_seq join projects p on p.seq = t.project_seq where t.seq {IS_LISTED}"""  # noqa: S608
    turns = rows.read(TurnRow, sql, listed=listed(seqs))
    return {turn.seq: turn for turn in turns}


def memories_matching(rows: Rows, terms: Sequence[str], *, projects: Sequence[int] | None, limit: int) -> list[Memory]:
    """Returns the memories that contain any of `terms`, the best match first; `projects` None is all."""
    hits = [int(seq) for seq, _ in text_hits(rows, "memory", terms, projects=projects, limit=limit)]
    by_seq = memories.by_seqs(rows, hits)
    return [by_seq[seq] for seq in hits if seq in by_seq]


def find_turns_matching(rows: Rows, terms: Sequence[str], *, projects: Sequence[int] | None, limit: int) -> list[int]:
    """Returns the turns that contain any of `terms`, the best first, by their passages."""
    hits = [seq for seq, _ in text_hits(rows, "passage", terms, projects=projects, limit=PASSAGES_PER_TURN * limit)]
    passages = rows.all(f"select seq, turn_seq from passages where {in_keys('seq', hits)} and text = ''")  # noqa: S608
    turns: dict[int, int] = dict(passages)
    return list(dict.fromkeys(turns[seq] for seq in hits if seq in turns))[:limit]


def map_digests_by_seq(rows: Rows, seqs: Sequence[int]) -> dict[int, DigestRow]:
    """Returns digests by row key, with their session, its project's root and the turns of their items."""
    sql = f"""select digest_seq, text, uuid
        from digest_items where {in_keys("digest_seq", seqs)} and kind <> 'word' and uuid <> '' order by seq"""  # noqa: S608
    items = rows.grouped(sql)
    sql = f"""select d.seq, s.id, d.text, d.at, p.root from digests d join sessions s on s.seq = d.session_seq
        join projects p on p.seq = s.project_seq where {in_keys("d.seq", seqs)}"""  # noqa: S608
    digests = rows.all(sql)
    return {seq: as_value(DigestRow, (seq, *digest, tuple(items[seq]))) for seq, *digest in digests}


def map_project_roots(rows: Rows) -> dict[int, str]:
    """Returns the directory of each project by its row key."""
    return dict(rows.all("select seq, root from projects where seq > 0 and kind <> 'workspace' and merged_into = 0"))


def find_kind(rows: Rows, uuid: str) -> str:
    """Returns the kind of a turn; "" if it is not stored."""
    return rows.text("select kind from turns where uuid = :uuid", uuid=uuid)


def find_surrounding_turns(rows: Rows, seq: int, *, each: int) -> tuple[list[int], list[int]]:
    """Returns the searchable turns before and after a turn in its session, in order, at most `each` on either side."""
    sides = []
    for operator, order in (("<", "desc"), (">", "asc")):
        sql = f"""select n.turn_seq from turns own join session_turn me on me.turn_seq = own.seq
            and me.session_seq = own.session_seq join session_turn n on n.session_seq = me.session_seq
            and n.ordinal {operator} me.ordinal join turns t on t.seq = n.turn_seq and t.searchable = 1
            where own.seq = :seq order by n.ordinal {order} limit :each"""  # noqa: S608
        side = rows.all(sql, seq=seq, each=each)
        sides.append([seq for (seq,) in side])
    return sides[0][::-1], sides[1]


def map_turns_after(rows: Rows, seqs: Sequence[int], *, limit: int) -> dict[int, list[int]]:
    """Returns the searchable turns after each of these in its session, in order, at most `limit`."""
    sql = f"""select me.turn_seq, n.turn_seq from turns own join session_turn me on me.turn_seq = own.seq
        and me.session_seq = own.session_seq join session_turn n on n.session_seq = me.session_seq
        and n.ordinal > me.ordinal and n.ordinal <= me.ordinal + :furthest
        join {JOIN_SEARCHABLE} where {in_keys("own.seq", seqs)} order by me.turn_seq, n.ordinal"""  # noqa: S608
    later = rows.grouped(sql, furthest=MAX_TURN_DISTANCE)
    return {seq: [turn for (turn,) in later[seq]][:limit] for seq in seqs}


def turns_of_uuids(rows: Rows, uuids: Sequence[str]) -> dict[str, int]:
    """Returns the row keys of turns by uuid."""
    seqs = {uuid: rows.find("turns", "seq", uuid=uuid) for uuid in uuids}
    return {uuid: seq for uuid, seq in seqs.items() if seq is not None}


def list_memories_of_turn(rows: Rows, uuid: str) -> list[int]:
    """Returns the row keys of the memories that a turn states or confirms."""
    return rows.column("select memory_seq from provenance where uuid = :uuid order by memory_seq", uuid=uuid)


def turns_with_prefix(rows: Rows, prefix: str) -> list[tuple[int, str]]:
    """Returns (row key, uuid) of turns whose uuid begins with a prefix, at most 5."""
    return rows.all(f"select seq, uuid from turns where {starts_with('uuid')} order by uuid limit 5", prefix=prefix)  # noqa: S608


def list_memory_texts(rows: Rows, seqs: Sequence[int]) -> list[str]:
    """Returns the texts of memories said in a session by row key, the oldest first."""
    return rows.column(
        f"select text from memories where {in_keys('seq', seqs)} and authority <> 'external' order by created_at, id"  # noqa: S608
    )


def count_memories_with(rows: Rows, term: str) -> int:
    """Counts the memories with a term (stemmed), up to a limit."""
    return count_rows_with(rows, "memory", term)


def find_last_turn_seq(rows: Rows) -> int:
    """Returns the row key of the turn stored last, about the number of turns; 0 for none."""
    return rows.number("select max(seq) from turns")


def count_memories(rows: Rows) -> int:
    """Returns the number of memories."""
    return rows.number("select count(*) from memories")


class TurnNeighbours(NamedTuple):
    """A turn's place: its session's row, its time, and the turns before and after it there (0: none).

    An assistant talks while it works, so only the prompt and the last answer of an exchange count: a prompt has its
    answer after it, the answer its prompt before it, and a turn between the two (`midway`) has both.
    """

    session: int
    at: str
    before: int
    after: int
    midway: bool = False


def map_turn_neighbours(
    rows: Rows, seqs: Sequence[int], *, projects: Sequence[int] | None
) -> dict[int, TurnNeighbours]:
    """Returns the place of each of these turns in its session, among the turns of these projects (None: all)."""
    spoken = f"{_SEARCHABLE_TURNS} and {in_keys('t.project_seq', projects)}"
    sql = f"""select own.seq, own.session_seq, own.at, case when own.kind = 'assistant' then (select n.turn_seq {spoken}
        and n.ordinal < me.ordinal and n.ordinal > me.ordinal - :most and t.kind <> 'assistant'
        order by n.ordinal desc limit 1) end, (select n.turn_seq {spoken} and n.ordinal < me.ordinal
        order by n.ordinal desc limit 1), (select n.turn_seq {spoken}
        and n.ordinal > me.ordinal and n.ordinal < coalesce((select n.ordinal {spoken}
        and n.ordinal > me.ordinal and n.ordinal < me.ordinal + :most and t.kind <> 'assistant' order by n.ordinal
        limit 1), me.ordinal + :most) order by n.ordinal desc limit 1), (select n.turn_seq {spoken}
        and n.ordinal > me.ordinal order by n.ordinal limit 1), own.kind = 'assistant'
        from turns own join session_turn me on me.turn_seq = own.seq and me.session_seq = own.session_seq
        where {in_keys("own.seq", seqs)}"""  # noqa: S608
    neighbours = rows.all(sql, most=MAX_EXCHANGE_TURNS)
    return {
        seq: TurnNeighbours(
            session=session, at=said_at, before=prompt or previous or 0, after=answered or next_turn or 0,
            midway=bool(answers and answered),
        )
        for seq, session, said_at, prompt, previous, answered, next_turn, answers in neighbours
    }  # fmt: skip


def list_stating_turns(
    rows: Rows, memory_seqs: Sequence[int], *, projects: Sequence[int] | None
) -> list[tuple[int, int]]:
    """Returns (memory, turn) row keys of the turns of these projects (None: all) that state or confirm these memories.

    The memories come first: otherwise the planner would walk every searchable turn.
    """
    sql = f"""select p.memory_seq, t.seq from provenance p
        cross join turns t where t.uuid = p.uuid and {in_keys("p.memory_seq", memory_seqs)} and p.role <> 'beside'
        and t.searchable = 1 and {in_keys("t.project_seq", projects)} order by p.memory_seq, t.seq"""  # noqa: S608
    return rows.all(sql)


def list_superseded_by_turn(rows: Rows, turn_seqs: Sequence[int]) -> list[tuple[int, int]]:
    """Returns (turn, memory) row keys of the superseded memories that these turns state or confirm."""
    sql = f"""select t.seq, m.seq from turns t cross join provenance p on p.uuid = t.uuid and p.role <> 'beside'
        cross join memories m on m.seq = p.memory_seq and m.superseded_by <> '' where {in_keys("t.seq", turn_seqs)}"""  # noqa: S608
    return rows.all(sql)


def list_user_turns_between(
    rows: Rows, since: str, until: str, *, projects: Sequence[int] | None, limit: int
) -> list[tuple[int, str]]:
    """Returns (turn, time) of what users said from `since` on and before `until`, by session, the latest first.

    The sessions come first, as the memories do in `list_stating_turns`.
    """
    sql = f"""select t.seq, t.at from (select s.seq from sessions s where s.parent = ''
        and s.last_at >= :since and (:until = '' or s.started_at < :until) and {in_keys("s.project_seq", projects)}
        order by s.last_at desc limit :limit) own cross join session_turn st cross join turns t
        where st.session_seq = own.seq and t.seq = st.turn_seq and t.kind in ('user', 'relayed') and t.searchable = 1
        and t.at >= :since and (:until = '' or t.at < :until) and {in_keys("t.project_seq", projects)}
        order by t.at desc, t.seq desc limit :limit"""  # noqa: S608
    return rows.all(sql, since=since, until=until, limit=limit)


class SearchFilter(NamedTuple):
    """The limits of a search, "" for none: stored times from `since` on and before `until`, a whole session id."""

    since: str = ""
    until: str = ""
    session: str = ""
    gate: str = ""
    category: str = ""
    type: str = ""

    @property
    def is_all(self) -> bool:
        """Whether there is no limit."""
        return self == SearchFilter()

    @property
    def selects_memories(self) -> bool:
        """Whether only memories can pass: a limit is on a field that only they have."""
        return bool(self.gate or self.category or self.type)


def filter_rows(rows: Rows, kind: str, seqs: Sequence[int], filters: SearchFilter) -> set[int]:
    """Returns those of these turns, passages or memories (`kind`) that a limited search may show.

    A sub-agent's turns are its session's; a memory's time is its last confirmation.
    """
    key, source, at, of_session = _FILTERED_TABLES[kind]
    wanted = f"where {in_keys(key, seqs)} and (:since = '' or {at} >= :since) and (:until = '' or {at} < :until) "
    wanted += f"and (:session = '' or {of_session})"
    values = {"since": filters.since, "until": filters.until, "session": filters.session}
    if kind == "memory":
        for name in ("gate", "category", "type"):
            wanted += f" and (:{name} = '' or m.{name} = :{name})"
            values[name] = getattr(filters, name)
    return set(rows.column(f"select {key} from {source} {wanted}", **values))  # noqa: S608
