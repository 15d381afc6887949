"""Errors with their fixes, and the symptoms and refutations of memories that explain them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from csmd.conversation import CommandFailure
from csmd.store.sqlite import Row, Rows, in_keys


class OpenFailure(NamedTuple):
    """An unfixed failure of a session; `ordinal` and `turn_seq` are its turn's."""

    error_seq: int
    turn_seq: int
    ordinal: int
    command: str
    fingerprint: str


class PresentContext(NamedTuple):
    """A session's present context; turns since `since` ("": all) are in it and need not be shown."""

    session: str
    since: str = ""


NO_CONTEXT = PresentContext("")


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRecord:
    """An error in some projects; `fixed_by` is its last fix, `memory_id` the memory that explains it."""

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
        """The id of an error as users see it."""
        return format_error_id(self.fingerprint)


def format_error_id(fingerprint: str) -> str:
    """Returns the id of an error: x and ten hex digits of its fingerprint."""
    return f"x{fingerprint[:10]}"


def find_error_by_id(rows: Rows, error_id: str, projects: Sequence[int] | None) -> ErrorRecord | None:
    """Returns the error with an id, or None."""
    if not error_id.startswith("x") or len(error_id) < 2:
        return None
    sql = """select fingerprint
        from errors where fingerprint >= :prefix and fingerprint < :prefix || 'g' order by fingerprint limit 1"""
    fingerprint = rows.value(sql, prefix=error_id[1:])
    return None if fingerprint is None else find_error(rows, fingerprint, projects)


def add_error(
    rows: Rows, *, fingerprint: str, command: str, exit_code: int, message: str, turn: int, session: int, at: str
) -> None:
    """Records that a turn shows an error."""
    error = {"fingerprint": fingerprint, "command": command, "exit_code": exit_code, "message": message}
    rows.insert("errors", "on conflict do nothing", **error)
    seq = rows.find("errors", "seq", fingerprint=fingerprint)
    rows.insert("error_seen", "on conflict do nothing", error_seq=seq, turn_seq=turn, session_seq=session, at=at)


def list_failures(rows: Rows, session_seq: int, *, before: int = 2**62) -> list[OpenFailure]:
    """Returns the failures of a session before an ordinal, in order."""
    sql = """select x.error_seq, x.turn_seq, st.ordinal, e.command, e.fingerprint from error_seen x join errors e
        on e.seq = x.error_seq join session_turn st on st.session_seq = x.session_seq and st.turn_seq = x.turn_seq
        where x.session_seq = :session and st.ordinal < :before order by st.ordinal, x.error_seq"""
    return rows.read(OpenFailure, sql, session=session_seq, before=before)


def find_last_fix_ordinal(rows: Rows, session_seq: int, error_seq: int) -> int:
    """Returns the ordinal of the turn in which a session last fixed an error; 0 for never."""
    sql = """select max(st.ordinal) from error_fixes f join session_turn st on st.session_seq = f.session_seq
        and st.turn_seq = f.turn_seq where f.error_seq = :error and f.session_seq = :session"""
    return rows.number(sql, error=error_seq, session=session_seq)


def add_fix(
    rows: Rows, *, error: int, turn: int, session: int, uuid: str, at: str, files: Sequence[str], text: str
) -> None:
    """Records a fix: the turn of the success, the files edited before it, the sentence of turn `uuid`."""
    shown = {"error_seq": error, "turn_seq": turn, "session_seq": session, "uuid": uuid, "at": at}
    rows.insert("error_fixes", "on conflict do nothing", **shown, files="\n".join(files), text=text)


def list_errors(rows: Rows, projects: Sequence[int] | None, *, limit: int) -> list[ErrorRecord]:
    """Returns the errors of some projects (None: all), by sessions; errors without a command were only pasted."""
    return _read_errors(rows, "true", projects, NO_CONTEXT, limit=limit)


def find_error(
    rows: Rows, fingerprint: str, projects: Sequence[int] | None, *, already_in: PresentContext = NO_CONTEXT
) -> ErrorRecord | None:
    """Returns an error in some projects (None: all); None if it was seen only in the context `already_in` or nowhere."""
    errors = _read_errors(rows, "e.fingerprint = :fingerprint", projects, already_in, limit=1, fingerprint=fingerprint)
    return errors[0] if errors else None


def _read_errors(
    rows: Rows, where: str, projects: Sequence[int] | None, already_in: PresentContext, *, limit: int, **values: Any
) -> list[ErrorRecord]:
    sql = f"""select e.seq, e.fingerprint, e.command, e.exit_code, e.message, count(*), count(distinct x.session_seq),
        min(x.at), max(x.at) from errors e join error_seen x on x.error_seq = e.seq join turns t on t.seq = x.turn_seq
        where {where} and {in_keys("t.project_seq", projects)} and {_outside_context_sql("x")}
        group by e.seq order by count(distinct x.session_seq) desc, count(*) desc, max(x.at) desc, e.seq limit :limit"""  # noqa: S608
    errors = rows.read(ErrorRecord, sql, session=already_in.session, since=already_in.since, limit=limit, **values)
    return [_add_fix_and_cause(rows, error, projects, already_in) for error in errors]


def _add_fix_and_cause(
    rows: Rows, error: ErrorRecord, projects: Sequence[int] | None, already_in: PresentContext
) -> ErrorRecord:
    """Returns an error with its last fix and the memory that explains it."""
    fixed_at, files, text, uuid = rows.first(
        f"""select f.at, f.files, f.text, f.uuid from error_fixes f join turns t on t.seq = f.turn_seq
            where f.error_seq = :error and {in_keys("t.project_seq", projects)} and {_outside_context_sql("f")}
            order by f.at desc, f.seq desc limit 1""",  # noqa: S608
        error=error.error_seq,
        session=already_in.session,
        since=already_in.since,
    ) or ("", "", "", "")
    sql = f"""select m.id from symptoms y join memories m on m.seq = y.memory_seq
        join provenance p on p.memory_seq = m.seq join turns t on t.uuid = p.uuid
        where y.fingerprint = :fingerprint and y.fingerprint <> '' and {in_keys("t.project_seq", projects)}
        and not exists (select 1 from refutations r where r.memory_seq = m.seq and r.lowered > 0)
        order by m.confidence desc, m.confirmed_at desc, m.id limit 1"""  # noqa: S608
    memory = rows.value(sql, fingerprint=error.fingerprint)
    edited = tuple(files.split("\n")) if files else ()
    return replace(error, fixed_at=fixed_at, fixed_files=edited, fixed_by=text, fixed_uuid=uuid, memory_id=memory or "")


def _outside_context_sql(alias: str) -> str:
    """Returns the condition that a row is outside `:session` ("" for none) and its agents, or in it before `:since`."""
    own = f"exists (select 1 from sessions o where o.seq = {alias}.session_seq and :session in (o.id, o.parent))"  # noqa: S608
    return f"(cast(:session as text) = '' or {alias}.at < :since or not {own})"


def find_others_with_message(
    rows: Rows, message: str, *, other_than: str, projects: Sequence[int] | None, limit: int, order: str = "desc"
) -> list[str]:
    """Returns the fingerprints of other failed commands there with the same message, the latest first."""
    sql = (
        "select e.fingerprint from errors e where e.message = :message and e.command <> '' and e.fingerprint <> :own "  # noqa: S608
        # Only failures of these projects, so that others do not fill the limit.
        "and exists (select 1 from error_seen x join turns t on t.seq = x.turn_seq where x.error_seq = e.seq "
        f"and {in_keys('t.project_seq', projects)}) order by e.seq {order} limit :limit"
    )
    return rows.column(sql, message=message, own=other_than, limit=limit)


def find_same_message(rows: Rows, message: str, *, other_than: str, projects: Sequence[int] | None = None) -> str:
    """Returns the fingerprint of a failed command with a pasted message in some projects (None: all); "" for none."""
    return "".join(
        find_others_with_message(rows, message, other_than=other_than, projects=projects, limit=1, order="asc")
    )


def read_message(rows: Rows, seq: int) -> str:
    """Returns the message of an error."""
    return rows.text("select message from errors where seq = :seq", seq=seq)


def list_failed_commands(rows: Rows, session_seq: int) -> list[CommandFailure]:
    """Returns the failed commands of a session, in order."""
    sql = """select e.fingerprint, e.command, e.message, t.uuid, x.at, st.ordinal
        from error_seen x join errors e on e.seq = x.error_seq join turns t on t.seq = x.turn_seq
        join session_turn st on st.session_seq = x.session_seq and st.turn_seq = x.turn_seq
        where x.session_seq = :session and e.command <> '' order by st.ordinal, e.seq"""
    return rows.read(CommandFailure, sql, session=session_seq)


def read_confidence_loss(rows: Rows, memory_seq: int) -> float:
    """Returns the reduction of a memory's confidence by refutations (0-1)."""
    return float(rows.value("select max(lowered) from refutations where memory_seq = :seq", seq=memory_seq) or 0)


def add_symptom(rows: Rows, memory: int, *, uuid: str, at: str, text: str, fingerprint: str) -> bool:
    """Records the words in which a person reported what a memory explains; False if they are known."""
    reported = {"uuid": uuid, "at": at, "text": text, "fingerprint": fingerprint}
    return rows.insert("symptoms", "on conflict do nothing", memory_seq=memory, **reported)


def list_symptoms(rows: Rows, memory_seqs: Sequence[int]) -> dict[int, list[Row]]:
    """Returns (uuid, time, words) of the symptoms, by memory."""
    sql = f"""select memory_seq, uuid, at, text
        from symptoms where {in_keys("memory_seq", memory_seqs)} order by memory_seq, at, uuid"""  # noqa: S608
    return rows.grouped(sql)


def add_refutation(rows: Rows, memory: int, *, uuid: str, at: str, reason: str, lowered: float) -> bool:
    """Records a refutation of a memory; False if it is known."""
    against = {"uuid": uuid, "at": at, "reason": reason, "lowered": lowered}
    return rows.insert("refutations", "on conflict do nothing", memory_seq=memory, **against)


def list_refutations(rows: Rows, memory_seq: int) -> list[tuple[str, str, str]]:
    """Returns (uuid, time, reason) of the refutations of a memory."""
    sql = "select uuid, at, reason from refutations where memory_seq = :memory order by at, uuid"
    return rows.all(sql, memory=memory_seq)


def delete_errors(rows: Rows, seq: int, uuid: str) -> None:
    """Deletes a turn's errors, and those that were seen nowhere else."""
    error_seqs = rows.column("delete from error_seen where turn_seq = :seq returning error_seq", seq=seq)
    rows.run("delete from error_fixes where turn_seq = :seq or uuid = :uuid", seq=seq, uuid=uuid)
    for error in error_seqs:
        sql = """delete from errors where seq = :seq and not exists (select 1 from error_seen x where x.error_seq = :seq)
            returning fingerprint"""
        fingerprint = rows.value(sql, seq=error)
        if fingerprint is not None:
            rows.delete("injection_items", memory_id=format_error_id(fingerprint))


def delete_turn(rows: Rows, seq: int, uuid: str) -> None:
    """Deletes everything derived from a turn."""
    delete_errors(rows, seq, uuid)
    for table in ("symptoms", "refutations", "scenes", "judgements", "stands"):
        rows.run(f"delete from {table} where uuid = :uuid", uuid=uuid)  # noqa: S608


def delete_session(rows: Rows, session_seq: int) -> None:
    """Deletes everything derived from a session's turns."""
    sql = (
        "select t.seq, t.uuid from session_turn st join turns t on t.seq = st.turn_seq where st.session_seq = :session"
    )
    for seq, uuid in rows.all(sql, session=session_seq):
        delete_turn(rows, seq, uuid)
