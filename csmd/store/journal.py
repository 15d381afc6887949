"""Sessions and turns: what was said, each exactly once.

A turn is keyed by its transcript uuid. A hook's turn is provisional: when the transcript
brings the same text in the same session, the provisional row *becomes* the transcript's
(same seq, so what was distilled from it stays linked) and takes its place in the order.
"""

from __future__ import annotations

from collections.abc import Sequence

from csmd.model import SEARCHABLE, StoredTurn, Turn, TurnKind
from csmd.store import projects, vectors
from csmd.store.purged import PURGED
from csmd.store.sqlite import Rows

#: What stands before an event's id in the uuid of the turn it reported.
HOOK_UUID = "hook:"
#: Event -> what the transcript may call what it reported: a prompt that no person wrote is a notification there.
_KINDS: dict[str, tuple[TurnKind, ...]] = {"prompt": ("user", "command", "notification")}
_KINDS_OF_ANSWERS: tuple[TurnKind, ...] = ("assistant", "notification")


def ensure_session(rows: Rows, turn: Turn, *, host: str, project: int, path: str, directory: int = 0) -> int:
    """The row key of the conversation `turn` belongs to, made when it is new."""
    found = rows.one("select seq, path from sessions where id = :id", id=turn.stream)
    if found is None:
        return int(
            rows.value(
                "insert into sessions (id, parent, host, project_seq, path, cwd, version, model, started_at, last_at, "
                "directory_seq) values (:id, :parent, :host, :project, :path, :cwd, :version, :model, :at, :at, "
                ":directory) returning seq",
                id=turn.stream,
                parent=turn.session_id if turn.agent_id else "",
                host=host,
                project=project,
                path=path,
                cwd=turn.cwd,
                version=turn.version,
                model=turn.model,
                at=turn.at,
                directory=directory,
            )
        )
    if path and not found[1]:
        rows.run("update sessions set path = :path where seq = :seq", path=path, seq=found[0])
    return int(found[0])


def _list_turn(rows: Rows, session_seq: int, turn_seq: int, turn: Turn) -> bool:
    """Puts a turn at the end of a session's order; False when it is listed there already."""
    done = rows.value(
        "insert into session_turn (session_seq, ordinal, turn_seq) "
        "select :session, s.turns + 1, :turn from sessions s where s.seq = :session "
        "on conflict (session_seq, turn_seq) do nothing returning ordinal",
        session=session_seq,
        turn=turn_seq,
    )
    if done is None:
        return False
    rows.run(
        "update sessions set turns = turns + 1, last_at = case when last_at < :at then :at else last_at end, "
        "started_at = case when started_at > :at then :at else started_at end, "
        "model = case when cast(:model as text) = '' then model else :model end, "
        "version = case when cast(:version as text) = '' then version else :version end where seq = :session",
        at=turn.at,
        model=turn.model,
        version=turn.version,
        session=session_seq,
    )
    return True


def add_turn(rows: Rows, turn: Turn, *, text_hash: str, host: str, project: int, path: str, directory: int = 0) -> bool:
    """Stores a transcript's turn once and lists it in its session; True when its uuid was new.

    `directory` is the row of the place it was said in, 0 for an unknown one.

    The hook's turn of the same session and text becomes it: the oldest that still waits, else the
    oldest that was given up waiting for.
    """
    session = ensure_session(rows, turn, host=host, project=project, path=path, directory=directory)
    known = rows.value("select seq from turns where uuid = :uuid", uuid=turn.uuid)
    if known is not None:
        listed = _list_turn(rows, session, int(known), turn)
        reported = _reported_turn(rows, turn, session, text_hash) if listed else None
        if reported is not None:
            # A fork's file was read before this one: the turn is stored already, and the hook's is its double.
            _merge(rows, *reported, into=int(known), uuid=turn.uuid)
        return False
    reported = _reported_turn(rows, turn, session, text_hash)
    if reported is None:
        seq = _insert_turn(
            rows, turn, session, text_hash=text_hash, project=project, source="transcript", directory=directory
        )
    else:
        seq, old = reported
        _become(rows, seq, turn, project=project, directory=directory)
        _move_provenance(rows, old, turn.uuid)
        rows.run("delete from session_turn where session_seq = :session and turn_seq = :seq", session=session, seq=seq)
    _list_turn(rows, session, seq, turn)
    projects.touch(rows, project, turn.at)
    return True


def _reported_turn(rows: Rows, turn: Turn, session: int, text_hash: str) -> tuple[int, str] | None:
    """(row key, uuid) of the hook's turn that a transcript's turn stands for, or None."""
    found = rows.one(
        "select seq, uuid from turns where session_seq = :session and text_hash = :hash and kind = :kind "
        "and source = 'hook' order by provisional desc, seq limit 1",
        session=session,
        hash=text_hash,
        kind=turn.kind,
    )
    return None if found is None else (int(found[0]), str(found[1]))


def _become(rows: Rows, seq: int, turn: Turn, *, project: int, directory: int) -> None:
    """Makes a hook's turn the transcript's, and what was made of it its project's."""
    moved = rows.value("select project_seq from turns where seq = :seq", seq=seq) != project
    rows.run(
        "update turns set uuid = :uuid, text = :text, at = :at, parent_uuid = :parent, message_id = :message, "
        "tokens = :tokens, project_seq = :project, directory_seq = :directory, source = 'transcript', provisional = 0, searchable = :searchable "
        "where seq = :seq",
        uuid=turn.uuid,
        text=turn.text,
        at=turn.at,
        parent=turn.parent_uuid,
        message=turn.message_id,
        tokens=turn.tokens,
        project=project,
        directory=directory,
        searchable=_is_searchable(turn),
        seq=seq,
    )
    if moved:
        rows.run("update statements set project_seq = :project where turn_seq = :seq", project=project, seq=seq)
        vectors.move_to(rows, "turn", seq, project)


def _merge(rows: Rows, seq: int, old: str, *, into: int, uuid: str) -> None:
    """Drops the hook's turn `seq`; what was made of it belongs to the stored turn `into` from now on."""
    _move_provenance(rows, old, uuid)
    rows.run(
        "update statements set turn_seq = :kept where turn_seq = :seq and not exists "
        "(select 1 from statements s where s.turn_seq = :kept and s.text_hash = statements.text_hash)",
        kept=into,
        seq=seq,
    )
    vectors.delete_for(rows, "turn", seq)
    rows.run("delete from turns where seq = :seq", seq=seq)


def _move_provenance(rows: Rows, old: str, new: str) -> None:
    """Names a turn by its new uuid wherever a memory rests on it; one that rests on both keeps the stronger role."""
    rows.run(
        "update provenance set role = 'states' where uuid = :new and exists "
        "(select 1 from provenance p where p.memory_seq = provenance.memory_seq and p.uuid = :old "
        "and p.role = 'states')",
        new=new,
        old=old,
    )
    rows.run(
        "update provenance set uuid = :new where uuid = :old and not exists "
        "(select 1 from provenance p where p.memory_seq = provenance.memory_seq and p.uuid = :new)",
        new=new,
        old=old,
    )
    rows.run("delete from provenance where uuid = :old", old=old)


def _is_searchable(turn: Turn) -> int:
    return 1 if turn.kind in SEARCHABLE and turn.text not in ("", PURGED) else 0


def _insert_turn(
    rows: Rows, turn: Turn, session: int, *, text_hash: str, project: int, source: str, directory: int
) -> int:
    return int(
        rows.value(
            "insert into turns (uuid, session_seq, project_seq, kind, text, text_hash, at, parent_uuid, message_id, "
            "tool_name, tool_id, tokens, source, provisional, searchable, directory_seq) values (:uuid, :session, "
            ":project, :kind, :text, :hash, :at, :parent, :message, :tool, :tool_id, :tokens, :source, :provisional, "
            ":searchable, :directory) returning seq",
            uuid=turn.uuid,
            session=session,
            project=project,
            kind=turn.kind,
            text=turn.text,
            hash=text_hash,
            at=turn.at,
            parent=turn.parent_uuid,
            message=turn.message_id,
            tool=turn.tool_name,
            tool_id=turn.tool_id,
            tokens=turn.tokens,
            source=source,
            provisional=1 if source == "hook" else 0,
            searchable=_is_searchable(turn),
            directory=directory,
        )
    )


def add_provisional(
    rows: Rows, turn: Turn, *, event: str, text_hash: str, host: str, project: int, path: str, directory: int = 0
) -> bool:
    """Stores a hook's turn unless the transcript has it already: its k-th event matches the k-th row of that text."""
    session = ensure_session(rows, turn, host=host, project=project, path=path, directory=directory)
    reported = rows.value(
        "select count(*) from events where stream = :stream and text_hash = :hash and name = :event",
        stream=turn.stream,
        hash=text_hash,
        event=event,
    )
    stored = rows.value(
        # In this order: few turns say the same, a session has thousands.
        "select count(*) from turns t cross join session_turn st "
        "where t.text_hash = :hash and t.kind = :kind and st.turn_seq = t.seq and st.session_seq = :session",
        session=session,
        hash=text_hash,
        kind=turn.kind,
    )
    if reported <= stored:
        return False
    seq = _insert_turn(rows, turn, session, text_hash=text_hash, project=project, source="hook", directory=directory)
    _list_turn(rows, session, seq, turn)
    projects.touch(rows, project, turn.at)
    return True


def settle(rows: Rows, session_id: str, *, at: str) -> None:
    """Notes that the assistant has finished its turn, or the session its life, at this time."""
    rows.run(
        "update sessions set settled_at = :at where (id = :id or parent = :id) and settled_at < :at",
        at=at,
        id=session_id,
    )


def close_provisional(rows: Rows, *, before: str) -> tuple[int, int]:
    """Ends the wait for turns that the transcript has passed by; (dropped as doubles, kept as hook-only).

    Looks at provisional turns older than `before` whose session lists later transcript turns; those
    may be stored under another session, a fork of this one. A turn is a double when the transcript
    has as many of its text as hooks reported: what was said twice and is there once was said twice.
    """
    waiting = rows.all(
        "select t.seq, t.uuid, t.session_seq, t.text_hash, t.at from turns t join sessions s on s.seq = t.session_seq "
        "where t.source = 'hook' and t.provisional = 1 and t.at < :before and s.last_at > t.at order by t.at, t.seq",
        before=before,
    )
    dropped = kept = 0
    silent: set[int] = set()  # nothing is later than a turn: then nothing is later than a later one
    for seq, uuid, session, text_hash, at in waiting:
        if session in silent:
            continue
        if not _went_on(rows, session, after=at):
            silent.add(session)
            continue
        double = _double(rows, str(uuid), session, text_hash)
        if double is not None:
            _merge(rows, int(seq), str(uuid), into=double[0], uuid=double[1])
            dropped += 1
        else:
            rows.run("update turns set provisional = 0 where seq = :seq", seq=seq)
            kept += 1
    return dropped, kept


def _went_on(rows: Rows, session: int, *, after: str) -> bool:
    """Whether the transcript of a session has a turn later than a time; asked from its end, where that one stands."""
    later = rows.value(
        "select n.seq from session_turn st join turns n on n.seq = st.turn_seq where st.session_seq = :session "
        "and n.source = 'transcript' and n.at > :after order by st.ordinal desc limit 1",
        session=session,
        after=after,
    )
    return later is not None


def _double(rows: Rows, uuid: str, session: int, text_hash: str) -> tuple[int, str] | None:
    """(row key, uuid) of the transcript's turn that a hook's turn is the double of; None when it has none left."""
    reported = rows.one(
        "select e.name, count(*) from events own join events e on e.stream = own.stream "
        "and e.text_hash = own.text_hash and e.name = own.name where own.id = :event group by e.name",
        event=uuid.removeprefix(HOOK_UUID),
    )
    if reported is None:
        return None
    kinds = _KINDS.get(reported[0], _KINDS_OF_ANSWERS)
    stored = [
        (int(seq), str(of))
        for seq, of, kind in rows.all(
            "select t.seq, t.uuid, t.kind from turns t cross join session_turn st where t.text_hash = :hash "
            "and t.source = 'transcript' and st.turn_seq = t.seq and st.session_seq = :session order by st.ordinal",
            hash=text_hash,
            session=session,
        )
        if kind in kinds
    ]
    return stored[reported[1] - 1] if len(stored) >= reported[1] else None


def set_title(rows: Rows, session_id: str, title: str, *, first: bool = False) -> None:
    """Names a session as the host does; with `first` only one that has no name yet."""
    rows.run(
        "update sessions set title = :title where id = :id and (title = '' or :first = 0)",
        title=title,
        id=session_id,
        first=int(first),
    )


def stream_turns(
    rows: Rows,
    session_seq: int,
    *,
    after: int,
    limit: int = 100_000,
    kinds: Sequence[TurnKind] = (),
    written: bool = False,
) -> list[StoredTurn]:
    """A conversation's turns in order, from the first past the ordinal `after`; of all kinds, or of `kinds` only.

    With `written` only those that stand in a transcript: what a hook alone reported, anybody may have.
    """
    marks = ", ".join(f"'{kind}'" for kind in kinds)
    wanted = f"and t.kind in ({marks})" if kinds else ""
    wanted += " and t.source = 'transcript'" if written else ""
    found = rows.all(
        "select t.seq, t.uuid, s.id, t.project_seq, t.kind, t.text, t.at, st.ordinal, s.parent from session_turn st "  # noqa: S608
        "join turns t on t.seq = st.turn_seq join sessions s on s.seq = st.session_seq "
        f"where st.session_seq = :session and st.ordinal > :after {wanted} order by st.ordinal limit :limit",
        session=session_seq,
        after=after,
        limit=limit,
    )
    return [
        StoredTurn(
            seq=seq, uuid=uuid, session_id=parent or ident, project_seq=project, kind=kind, text=text, at=at,
            ordinal=ordinal, agent_id=ident[len(parent) + 1 :] if parent else "",
        )
        for seq, uuid, ident, project, kind, text, at, ordinal, parent in found
    ]  # fmt: skip
