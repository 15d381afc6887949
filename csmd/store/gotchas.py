"""What failed, what mended it, in whose words it was reported and what was refuted; each known by the turn that says it.

An error is one row wherever it was seen: how often, in which sessions, first and last is counted from its turns, so
that a turn which goes, or comes late, needs nothing mended. Every write may come twice and changes nothing then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from csmd.store.cursors import Behind
from csmd.store.sqlite import Rows, match_expression

T = TypeVar("T")

STAGE = "gotchas"
#: A tool's answer stands at most so many turns behind its call.
CALL_BEFORE = 200


class Row(NamedTuple):
    """A turn as this stage reads it."""

    seq: int
    uuid: str
    kind: str
    text: str
    at: str
    ordinal: int
    tool_name: str
    tool_id: str


class Said(NamedTuple):
    """A memory as a turn of a session states it."""

    memory_seq: int
    memory_id: str
    text: str
    category: str
    authority: str
    uuid: str
    ordinal: int


class Open(NamedTuple):
    """A failure of a session that nothing is known to have mended; `ordinal` is its turn's, `turn_seq` its row."""

    error_seq: int
    turn_seq: int
    ordinal: int
    command: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known of an error in some projects; `fixed_by` is what mended it last, `memory_id` what tells why."""

    error_seq: int
    fingerprint: str
    command: str
    exit_code: int
    message: str
    times: int
    sessions: int
    first_at: str
    last_at: str
    fixed_at: str = ""
    fixed_files: tuple[str, ...] = ()
    fixed_by: str = ""
    fixed_uuid: str = ""
    memory_id: str = ""


# --- what the stage goes through


def behind(rows: Rows, *, after: str) -> list[Behind]:
    """The sessions that the stage `after` has come further with than this one, the oldest first; `turns` is how far."""
    found = rows.all(
        "select s.seq, s.id, coalesce(c.position, 0), d.position, s.last_at, s.settled_at, s.started_at, s.path "
        "from cursors d join sessions s on s.seq = cast(d.subject as integer) "
        "left join cursors c on c.stage = :stage and c.subject = d.subject "
        "where d.stage = :after and d.position > coalesce(c.position, 0) order by s.started_at, s.seq",
        stage=STAGE,
        after=after,
    )
    return [
        Behind(session_seq=a, session_id=b, position=c, turns=d, last_at=e, settled_at=f, started_at=g, path=h)
        for a, b, c, d, e, f, g, h in found
    ]


def turns(rows: Rows, session_seq: int, *, after: int, upto: int, spoken: bool = False) -> list[Row]:
    """A session's turns past an ordinal up to another one, those that its transcript holds; `spoken`: no tool traffic."""
    kinds = "('user', 'relayed', 'assistant', 'summary')"
    wanted = f"and t.kind in {kinds}" if spoken else ""
    return [
        Row(*row)
        for row in rows.all(
            "select t.seq, t.uuid, t.kind, t.text, t.at, st.ordinal, t.tool_name, t.tool_id from session_turn st "  # noqa: S608
            "join turns t on t.seq = st.turn_seq where st.session_seq = :session and st.ordinal > :after "
            f"and st.ordinal <= :upto and t.source = 'transcript' {wanted} order by st.ordinal",
            session=session_seq,
            after=after,
            upto=upto,
        )
    ]


def said_in(rows: Rows, session_seq: int, session_id: str) -> list[Said]:
    """The memories that turns of a session state or confirm, in the order of the turns."""
    return [
        Said(*row)
        for row in rows.all(
            "select m.seq, m.id, m.text, m.category, m.authority, p.uuid, st.ordinal from provenance p "
            "join memories m on m.seq = p.memory_seq join turns t on t.uuid = p.uuid "
            "join session_turn st on st.session_seq = :session and st.turn_seq = t.seq "
            "where p.session_id = :id and m.twin_of = 0 order by st.ordinal, m.seq",
            session=session_seq,
            id=session_id,
        )
    ]


def memories_after(rows: Rows, seq: int, *, limit: int) -> list[tuple[int, str]]:
    """(memory, session id) past a memory's row key: which sessions have to be looked at again."""
    found = rows.all(
        "select m.seq, p.session_id from (select seq from memories where seq > :seq order by seq limit :limit) m "
        "join provenance p on p.memory_seq = m.seq order by m.seq",
        seq=seq,
        limit=limit,
    )
    return [(int(memory), str(session)) for memory, session in found]


def session_of(rows: Rows, ident: str) -> tuple[int, int] | None:
    """(row key, how far the stage has come with it) of a session."""
    found = rows.one(
        "select s.seq, coalesce(c.position, 0) from sessions s left join cursors c on c.stage = :stage "
        "and c.subject = cast(s.seq as text) where s.id = :id",
        stage=STAGE,
        id=ident,
    )
    return None if found is None else (int(found[0]), int(found[1]))


# --- errors


def add_error(
    rows: Rows, *, fingerprint: str, command: str, exit_code: int, message: str, turn: int, session: int, at: str
) -> None:
    """Notes that a turn shows an error."""
    rows.run(
        "insert into errors (fingerprint, command, exit_code, message) values (:fingerprint, :command, :code, :message) "
        "on conflict (fingerprint) do nothing",
        fingerprint=fingerprint,
        command=command,
        code=exit_code,
        message=message,
    )
    rows.run(
        "insert into error_seen (error_seq, turn_seq, session_seq, at) select e.seq, :turn, :session, :at "
        "from errors e where e.fingerprint = :fingerprint on conflict (error_seq, turn_seq) do nothing",
        fingerprint=fingerprint,
        turn=turn,
        session=session,
        at=at,
    )


def seen_in(rows: Rows, session_seq: int, *, before: int = 2**62) -> list[Open]:
    """The failures of a session up to an ordinal, in the order in which they happened."""
    return [
        Open(*row)
        for row in rows.all(
            "select x.error_seq, x.turn_seq, st.ordinal, e.command, e.fingerprint from error_seen x "
            "join errors e on e.seq = x.error_seq "
            "join session_turn st on st.session_seq = x.session_seq and st.turn_seq = x.turn_seq "
            "where x.session_seq = :session and st.ordinal < :before order by st.ordinal, x.error_seq",
            session=session_seq,
            before=before,
        )
    ]


def fixed_until(rows: Rows, session_seq: int, error_seq: int) -> int:
    """The ordinal of the turn in which an error was last seen mended in a session; 0 for never."""
    return int(
        rows.value(
            "select max(st.ordinal) from error_fixes f join session_turn st on st.session_seq = f.session_seq "
            "and st.turn_seq = f.turn_seq where f.error_seq = :error and f.session_seq = :session",
            error=error_seq,
            session=session_seq,
        )
        or 0
    )


def add_fix(
    rows: Rows, *, error: int, turn: int, session: int, uuid: str, at: str, files: Sequence[str], text: str
) -> None:
    """Notes what mended an error: the turn of the success, the files edited before it, the sentence of turn `uuid`."""
    rows.run(
        "insert into error_fixes (error_seq, turn_seq, session_seq, uuid, at, files, text) values "
        "(:error, :turn, :session, :uuid, :at, :files, :text) on conflict (error_seq, turn_seq) do nothing",
        error=error,
        turn=turn,
        session=session,
        uuid=uuid,
        at=at,
        files="\n".join(files),
        text=text,
    )


def listing(rows: Rows, projects: Sequence[int] | None, *, limit: int, fingerprint: str = "") -> list[Seen]:
    """The errors of some projects (None: all), the most often seen first; those of no command were only pasted."""
    places = "" if projects is None else f"and t.project_seq in ({', '.join(str(int(p)) for p in projects)})"
    found = rows.all(
        "select e.seq, e.fingerprint, e.command, e.exit_code, e.message, count(*), count(distinct x.session_seq), "  # noqa: S608
        "min(x.at), max(x.at) from errors e join error_seen x on x.error_seq = e.seq join turns t on t.seq = x.turn_seq "
        f"where (:fingerprint = '' or e.fingerprint = :fingerprint) {places} group by e.seq "
        "order by count(distinct x.session_seq) desc, count(*) desc, max(x.at) desc, e.seq limit :limit",
        fingerprint=fingerprint,
        limit=limit,
    )
    return [_seen(rows, row, places) for row in found]


def seen(rows: Rows, fingerprint: str, projects: Sequence[int] | None) -> Seen | None:
    """What is known of one error in some projects (None: all), None for one that was never seen there."""
    found = listing(rows, projects, limit=1, fingerprint=fingerprint)
    return found[0] if found else None


def _seen(rows: Rows, row: Sequence[object], places: str) -> Seen:
    fix = rows.one(
        "select f.at, f.files, f.text, f.uuid from error_fixes f join turns t on t.seq = f.turn_seq "  # noqa: S608
        f"where f.error_seq = :error {places} order by f.at desc, f.seq desc limit 1",
        error=row[0],
    ) or ("", "", "", "")
    told = rows.one(
        "select m.id from symptoms y join memories m on m.seq = y.memory_seq join provenance p on p.memory_seq = m.seq "  # noqa: S608
        f"join turns t on t.uuid = p.uuid where y.fingerprint = :fingerprint {places} "
        "and not exists (select 1 from refutations r where r.memory_seq = m.seq) "
        "order by m.confidence desc, m.confirmed_at desc, m.id limit 1",
        fingerprint=row[1],
    )
    ident, fingerprint, command, code, message, times, sessions, first, last = row
    return Seen(
        error_seq=int(str(ident)), fingerprint=str(fingerprint), command=str(command), exit_code=int(str(code)),
        message=str(message), times=int(str(times)), sessions=int(str(sessions)), first_at=str(first), last_at=str(last),
        fixed_at=fix[0], fixed_files=tuple(str(fix[1]).split("\n")) if fix[1] else (), fixed_by=fix[2], fixed_uuid=fix[3],
        memory_id=str(told[0]) if told else "",
    )  # fmt: skip


def same_message(rows: Rows, message: str, *, other_than: str) -> str:
    """The fingerprint of the command's failure that says what somebody pasted; "" for none."""
    found = rows.value(
        "select fingerprint from errors where message = :message and command <> '' and fingerprint <> :own "
        "order by seq limit 1",
        message=message,
        own=other_than,
    )
    return str(found or "")


def error(rows: Rows, seq: int) -> str:
    """The message of an error."""
    return str(rows.value("select message from errors where seq = :seq", seq=seq) or "")


def failures(rows: Rows, session_seq: int, as_: Callable[[str, str, str, str, str, int], T]) -> list[T]:
    """(fingerprint, command, message, uuid, time, ordinal) of a session's failures, each made into a value, in order."""
    return [
        as_(*row)
        for row in rows.all(
            "select e.fingerprint, e.command, e.message, t.uuid, x.at, st.ordinal from error_seen x "
            "join errors e on e.seq = x.error_seq join turns t on t.seq = x.turn_seq "
            "join session_turn st on st.session_seq = x.session_seq and st.turn_seq = x.turn_seq "
            "where x.session_seq = :session and e.command <> '' order by st.ordinal, e.seq",
            session=session_seq,
        )
    ]


# --- symptoms and refutations


def projects_of(rows: Rows, session_seq: int) -> list[int]:
    """The projects that a session's memories may stand in: its own."""
    return [
        int(seq) for (seq,) in rows.all("select project_seq from sessions where seq = :session", session=session_seq)
    ]


def says_in(rows: Rows, memory_seq: int, session_seq: int) -> bool:
    """Whether a session states or confirms a memory."""
    found = rows.value(
        "select 1 from provenance p join sessions s on s.id = p.session_id "
        "where p.memory_seq = :memory and s.seq = :session limit 1",
        memory=memory_seq,
        session=session_seq,
    )
    return found is not None


def is_listed(rows: Rows, turn_seq: int, session_seq: int) -> bool:
    """Whether a turn is one of a session's."""
    found = rows.value(
        "select 1 from session_turn where session_seq = :session and turn_seq = :turn",
        session=session_seq,
        turn=turn_seq,
    )
    return found is not None


def lowered(rows: Rows, memory_seq: int) -> float:
    """By how much what speaks against a memory has lowered it."""
    return float(
        rows.value("select max(lowered) from refutations where memory_seq = :memory", memory=memory_seq) or 0.0
    )


def add_symptom(rows: Rows, memory: int, *, uuid: str, at: str, text: str, fingerprint: str) -> bool:
    """Notes in which words somebody reported what a memory explains; False when that is known."""
    new = rows.all(
        "insert into symptoms (memory_seq, uuid, at, text, fingerprint) values (:memory, :uuid, :at, :text, :print) "
        "on conflict (memory_seq, uuid) do nothing returning seq",
        memory=memory,
        uuid=uuid,
        at=at,
        text=text,
        print=fingerprint,
    )
    return bool(new)


def symptoms_of(rows: Rows, memory_seqs: Sequence[int]) -> dict[int, list[tuple[str, str, str]]]:
    """(turn's uuid, time, words) of what was reported, by memory."""
    found: dict[int, list[tuple[str, str, str]]] = {}
    keys = ", ".join(str(int(seq)) for seq in memory_seqs)
    for memory, uuid, at, said in rows.all(
        f"select memory_seq, uuid, at, text from symptoms where memory_seq in ({keys}) order by memory_seq, at, uuid"  # noqa: S608
    ):
        found.setdefault(int(memory), []).append((str(uuid), str(at), str(said)))
    return found


def symptom_hits(
    rows: Rows, terms: Sequence[str], *, projects: Sequence[int] | None, limit: int
) -> list[tuple[int, float]]:
    """(memory, bm25 with higher better) of the memories of which a symptom holds any of `terms`."""
    expression = match_expression(terms)
    if not expression:
        return []
    scope = "" if projects is None else f"and b.project_seq in ({', '.join(str(int(p)) for p in projects)})"
    found = rows.all(
        "select y.memory_seq, -bm25(symptoms_fts) as score from symptoms_fts "  # noqa: S608
        "join symptoms y on y.seq = symptoms_fts.rowid join memories b on b.seq = y.memory_seq "
        f"where symptoms_fts match :expression {scope} order by score desc, y.seq limit :limit",
        expression=expression,
        limit=limit,
    )
    best: dict[int, float] = {}
    for memory, score in found:
        best.setdefault(int(memory), float(score))
    return list(best.items())


def add_refutation(rows: Rows, memory: int, *, uuid: str, at: str, reason: str, lowered: float) -> bool:
    """Notes what speaks against a memory; False when that is known."""
    new = rows.all(
        "insert into refutations (memory_seq, uuid, at, reason, lowered) values (:memory, :uuid, :at, :reason, :lowered) "
        "on conflict (memory_seq, uuid) do nothing returning memory_seq",
        memory=memory,
        uuid=uuid,
        at=at,
        reason=reason,
        lowered=lowered,
    )
    return bool(new)


def refutations_of(rows: Rows, memory_seq: int) -> list[tuple[str, str, str]]:
    """(turn's uuid, time, reason) of what speaks against a memory."""
    found = rows.all(
        "select uuid, at, reason from refutations where memory_seq = :memory order by at, uuid", memory=memory_seq
    )
    return [(str(uuid), str(at), str(reason)) for uuid, at, reason in found]


def forget_turn(rows: Rows, seq: int, uuid: str) -> None:
    """Takes out what was made of a turn, and the errors that were seen nowhere else."""
    shown = rows.all("delete from error_seen where turn_seq = :seq returning error_seq", seq=seq)
    rows.run("delete from error_fixes where turn_seq = :seq or uuid = :uuid", seq=seq, uuid=uuid)
    rows.run("delete from symptoms where uuid = :uuid", uuid=uuid)
    rows.run("delete from refutations where uuid = :uuid", uuid=uuid)
    for (error,) in shown:
        rows.run(
            "delete from errors where seq = :seq and not exists (select 1 from error_seen x where x.error_seq = :seq)",
            seq=error,
        )


def forget_session(rows: Rows, session_seq: int) -> None:
    """Takes out what was made of a session's turns."""
    for seq, uuid in rows.all(
        "select t.seq, t.uuid from session_turn st join turns t on t.seq = st.turn_seq where st.session_seq = :session",
        session=session_seq,
    ):
        forget_turn(rows, int(seq), str(uuid))
