"""What failed and what mended it, known by the turns that show it.

An error is one row wherever it was seen: how often, in which sessions, first and last is counted from its turns, so
that a turn which goes, or comes late, needs nothing mended. Every write may come twice and changes nothing then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from csmd.store.sqlite import Rows

T = TypeVar("T")
_COUNTED = (
    "e.seq, e.fingerprint, e.command, e.exit_code, e.message, count(*), count(distinct x.session_seq), "
    "min(x.at), max(x.at)"
)


class Open(NamedTuple):
    """A failure of a session that nothing is known to have mended; `ordinal` is its turn's, `turn_seq` its row."""

    error_seq: int
    turn_seq: int
    ordinal: int
    command: str
    fingerprint: str


class Told(NamedTuple):
    """A session's present context: what it shows since it began (`since`, "" when unknown: all of it) needs no telling."""

    session: str
    since: str = ""


NOWHERE = Told("")


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

    @property
    def id(self) -> str:
        """What an error is called where it is told or asked for."""
        return called(self.fingerprint)


def called(fingerprint: str) -> str:
    """The id of an error by its fingerprint: an x and ten hex digits."""
    return f"x{fingerprint[:10]}"


def by_id(rows: Rows, ident: str, projects: Sequence[int] | None) -> Seen | None:
    """What is known of the error that is called so, None for none."""
    if not ident.startswith("x") or len(ident) < 2:
        return None
    found = rows.value(
        "select fingerprint from errors where fingerprint >= :prefix and fingerprint < :prefix || 'g' "
        "order by fingerprint limit 1",
        prefix=ident[1:],
    )
    return None if found is None else seen(rows, str(found), projects)


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


def listing(rows: Rows, projects: Sequence[int] | None, *, limit: int) -> list[Seen]:
    """The errors of some projects (None: all), those of the most sessions first; those of no command were only pasted."""
    among = _among(projects)
    found = rows.all(
        f"select {_COUNTED} from errors e join error_seen x on x.error_seq = e.seq "  # noqa: S608
        f"join turns t on t.seq = x.turn_seq where true {among} group by e.seq "
        "order by count(distinct x.session_seq) desc, count(*) desc, max(x.at) desc, e.seq limit :limit",
        limit=limit,
    )
    return [_seen(rows, row, among) for row in found]


def seen(rows: Rows, fingerprint: str, projects: Sequence[int] | None, *, but_in: Told = NOWHERE) -> Seen | None:
    """What is known of one error in some projects (None: all), None for one that was never seen there.

    What the context `but_in` shows itself is left out.
    """
    among, apart = _among(projects), _elsewhere("x")
    found = rows.all(
        f"select {_COUNTED} from errors e join error_seen x on x.error_seq = e.seq "  # noqa: S608
        f"join turns t on t.seq = x.turn_seq where e.fingerprint = :fingerprint {among} {apart} group by e.seq",
        fingerprint=fingerprint,
        session=but_in.session,
        since=but_in.since,
    )
    return _seen(rows, found[0], among, but_in) if found else None


def saying(rows: Rows, message: str, *, other_than: str, projects: Sequence[int] | None, limit: int) -> list[str]:
    """The fingerprints of the other failures of commands there with the same message, the latest known first."""
    found = rows.all(
        "select e.fingerprint from errors e where e.message = :message and e.command <> '' and e.fingerprint <> :own "  # noqa: S608
        f"{_seen_in(projects)} order by e.seq desc limit :limit",
        message=message,
        own=other_than,
        limit=limit,
    )
    return [str(fingerprint) for (fingerprint,) in found]


def _seen_in(projects: Sequence[int] | None) -> str:
    """That an error `e` was seen in these projects; what others failed with says nothing here, and must not crowd it out."""
    if projects is None:
        return ""
    return (
        "and exists (select 1 from error_seen x join turns t on t.seq = x.turn_seq "  # noqa: S608
        f"where x.error_seq = e.seq {_among(projects)})"
    )


def _elsewhere(alias: str) -> str:
    """That something was in another session than `:session` ("" for none) and its agents' ones, or there before `:since`."""
    own = f"exists (select 1 from sessions o where o.seq = {alias}.session_seq and :session in (o.id, o.parent))"  # noqa: S608
    return f"and (cast(:session as text) = '' or {alias}.at < :since or not {own})"


def _among(projects: Sequence[int] | None) -> str:
    return "" if projects is None else f"and t.project_seq in ({', '.join(str(int(p)) for p in projects)})"


def _seen(rows: Rows, row: Sequence[object], among: str, but_in: Told = NOWHERE) -> Seen:
    apart = _elsewhere("f")
    fix = rows.one(
        "select f.at, f.files, f.text, f.uuid from error_fixes f join turns t on t.seq = f.turn_seq "  # noqa: S608
        f"where f.error_seq = :error {among} {apart} order by f.at desc, f.seq desc limit 1",
        error=row[0],
        session=but_in.session,
        since=but_in.since,
    ) or ("", "", "", "")
    told = rows.one(
        "select m.id from symptoms y join memories m on m.seq = y.memory_seq join provenance p on p.memory_seq = m.seq "  # noqa: S608
        f"join turns t on t.uuid = p.uuid where y.fingerprint = :fingerprint and y.fingerprint <> '' {among} "
        "and not exists (select 1 from refutations r where r.memory_seq = m.seq and r.lowered > 0) "
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


def same_message(rows: Rows, message: str, *, other_than: str, projects: Sequence[int] | None = None) -> str:
    """The fingerprint of the command's failure there (None: anywhere) that says what somebody pasted; "" for none."""
    found = rows.value(
        "select e.fingerprint from errors e where e.message = :message and e.command <> '' and e.fingerprint <> :own "  # noqa: S608
        f"{_seen_in(projects)} order by e.seq limit 1",
        message=message,
        own=other_than,
    )
    return str(found or "")


def message(rows: Rows, seq: int) -> str:
    """The message of an error."""
    return str(rows.value("select message from errors where seq = :seq", seq=seq) or "")


def of_session(rows: Rows, session_seq: int, as_: Callable[[str, str, str, str, str, int], T]) -> list[T]:
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


def forget_turn(rows: Rows, seq: int, uuid: str) -> None:
    """Takes out what was made of a turn, and the errors that were seen nowhere else."""
    shown = rows.all("delete from error_seen where turn_seq = :seq returning error_seq", seq=seq)
    rows.run("delete from error_fixes where turn_seq = :seq or uuid = :uuid", seq=seq, uuid=uuid)
    for (error,) in shown:
        gone = rows.value(
            "delete from errors where seq = :seq and not exists (select 1 from error_seen x where x.error_seq = :seq) "
            "returning fingerprint",
            seq=error,
        )
        if gone is not None:
            rows.run("delete from injection_items where memory_id = :id", id=called(str(gone)))
