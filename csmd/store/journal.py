"""Sessions and turns: what was said, each exactly once.

A turn is keyed by its transcript uuid. A hook's turn is provisional: when the transcript
brings the same text in the same session, the provisional row *becomes* the transcript's
(same seq, so what was distilled from it stays linked) and takes its place in the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from csmd.model import SEARCHABLE, StoredTurn, Turn, TurnKind
from csmd.store import checkpoints, digests, memories, packets, projects, queue, speakers, vectors
from csmd.store import room as room_of
from csmd.store.purged import PURGED
from csmd.store.sqlite import Rows

#: What the transcript may call what was submitted as a prompt.
SUBMITTED: tuple[TurnKind, ...] = ("user", "relayed", "command", "notification")


class Session(NamedTuple):
    """A conversation's row key, the file it is read from ("" for a hook's or an agent's) and how much of it is kept."""

    seq: int
    path: str
    bytes: int


def ensure_session(rows: Rows, turn: Turn, *, host: str, project: int, path: str, directory: int = 0) -> Session:
    """The conversation `turn` belongs to, made when it is new."""
    found = rows.one("select seq, path, cwd, bytes from sessions where id = :id", id=turn.stream)
    if found is None:
        seq = rows.value(
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
        return Session(int(seq), path, 0)
    seq, known_path, known_cwd, kept = found
    if (path and not known_path) or (turn.cwd and not known_cwd):
        rows.run(
            "update sessions set path = :path, cwd = :cwd where seq = :seq",
            path=known_path or path,
            cwd=known_cwd or turn.cwd,
            seq=seq,
        )
    return Session(int(seq), str(known_path or path), int(kept))


def list_turn(rows: Rows, session_seq: int, turn_seq: int, turn: Turn, *, grown: int = 0) -> bool:
    """Puts a turn at the end of a session's order; False when it is listed there already.

    `grown` is how many bytes of text are kept more than before.
    """
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
        "update sessions set turns = turns + 1, bytes = bytes + :grown, last_at = case when last_at < :at then :at else last_at end, "
        "started_at = case when started_at > :at then :at else started_at end, "
        "model = case when cast(:model as text) = '' then model else :model end, "
        "version = case when cast(:version as text) = '' then version else :version end, "
        "context = case when cast(:context as integer) = 0 then context else :context end where seq = :session",
        at=turn.at,
        context=turn.context,
        model=turn.model,
        version=turn.version,
        grown=grown,
        session=session_seq,
    )
    return True


def add_turn(
    rows: Rows,
    turn: Turn,
    *,
    text_hash: str,
    host: str,
    project: int,
    path: str,
    directory: int = 0,
    room: int = room_of.EVERYTHING,
    file: str = "",
) -> bool:
    """Stores a transcript's turn once and lists it in its session; True when the transcript had not brought it yet.

    What reported it before becomes it: the queue's turn of the same session and text, else the hook's, the oldest
    that still waits, else the oldest that was given up waiting for. `room` is how many bytes of text a session keeps,
    `directory` the row of the place it was said in, 0 for an unknown one; `file` the transcript that is read, also where it
    is a sub-agent's turn, whose session names no `path`.
    """
    session = ensure_session(rows, turn, host=host, project=project, path=path, directory=directory)
    if turn.form == "queued" and queue.is_known(rows, turn.uuid):
        return False
    known = rows.one("select seq, text_hash, session_seq, text, kind from turns where uuid = :uuid", uuid=turn.uuid)
    if known is not None:
        seq, hash_then, home, text_then, kind_then = known
        listed = list_turn(rows, session.seq, seq, turn)
        if home != session.seq or kind_then != turn.kind:
            _correct_speaker(rows, int(seq), turn, session, home=int(home), kind_then=kind_then, file=file)
        reported = _reported_turn(rows, turn, session.seq, text_hash) if listed else None
        if reported is not None:
            # A fork's file was read before this one: the turn is stored already, and the hook's is its double.
            merge(rows, *reported, into=int(seq), uuid=turn.uuid)
        if hash_then != text_hash and home == session.seq and path and path == session.path:
            _rewrite(rows, seq, turn, session, text_hash=text_hash, then=text_then, room=room)
        return False
    reported = _reported_turn(rows, turn, session.seq, text_hash)
    if reported is None:
        turn, size = room_of.fitting(rows, turn, session.bytes, room)
        seq = insert_turn(
            rows, turn, session.seq, text_hash=text_hash, project=project, source="transcript", directory=directory
        )
    else:
        seq, old = reported
        then = room_of.bytes_of(rows.value("select text from turns where seq = :seq", seq=seq))
        turn, size = room_of.fitting(rows, turn, session.bytes - then, room)
        size -= then
        _become(rows, seq, turn, project=project, directory=directory)
        memories.move_provenance(rows, old, turn.uuid)
        rows.run(
            "delete from session_turn where session_seq = :session and turn_seq = :seq", session=session.seq, seq=seq
        )
    list_turn(rows, session.seq, seq, turn, grown=size)
    if turn.form == "queued":
        queue.add(rows, turn.uuid, session=session.seq, turn=seq, at=turn.at)
    projects.touch(rows, project, turn.at)
    return reported is None or not queue.is_known(rows, reported[1])


def _correct_speaker(
    rows: Rows, seq: int, turn: Turn, session: Session, *, home: int, kind_then: TurnKind, file: str
) -> None:
    """Stores who speaks in a line that was taken for the user's in its own session's file; no other file can tell."""
    of = rows.one("select id, path from sessions where seq = :home", home=home)
    if of != (turn.session_id, file):
        return
    if home != session.seq:
        searchable = _is_searchable(turn)
        speakers.move_to_agent(rows, seq, turn.kind, searchable=searchable, session=home, agent=session.seq)
    elif kind_then == "user":
        speakers.correct(rows, seq, turn.kind)


def _rewrite(rows: Rows, seq: int, turn: Turn, session: Session, *, text_hash: str, then: str, room: int) -> None:
    """Stores what a line says since its own file was rewritten; a fork's or a foreign file cannot do that."""
    turn, size = room_of.fitting(rows, turn, session.bytes - room_of.bytes_of(then), room)
    rows.run(
        "update turns set text = :text, text_hash = :hash, kind = :kind, searchable = :searchable where seq = :seq",
        text=turn.text,
        hash=text_hash,
        kind=turn.kind,
        searchable=_is_searchable(turn),
        seq=seq,
    )
    rows.run(
        "update sessions set bytes = bytes + :grown where seq = :seq",
        grown=size - room_of.bytes_of(then),
        seq=session.seq,
    )
    digests.take_back(rows, seq)
    checkpoints.take_back(rows, seq)
    vectors.delete_for(rows, "turn", seq)


def _reported_turn(rows: Rows, turn: Turn, session: int, text_hash: str) -> tuple[int, str] | None:
    """(row key, uuid) of the turn of a queue or a hook that a transcript's turn stands for, or None."""
    if turn.form != "queued" and turn.kind in SUBMITTED:
        found = queue.waiting(rows, session=session, text_hash=text_hash, absorbed=turn.form == "absorbed")
        if found is not None:
            return found
    # Only the transcript says that no person wrote a prompt: a hook's does not say who did.
    report = rows.one(
        "select seq, uuid from turns where session_seq = :session and text_hash = :hash "
        "and (kind = :kind or :kind = 'notification') and source = 'hook' order by provisional desc, seq limit 1",
        session=session,
        hash=text_hash,
        kind="user" if turn.kind == "relayed" else turn.kind,
    )
    return None if report is None else (int(report[0]), str(report[1]))


def _become(rows: Rows, seq: int, turn: Turn, *, project: int, directory: int) -> None:
    """Makes a hook's turn the transcript's, and what was made of it its project's."""
    place, kind = rows.all("select project_seq, kind from turns where seq = :seq", seq=seq)[0]
    moved = place != project
    rows.run(
        "update turns set uuid = :uuid, kind = :kind, text = :text, at = :at, parent_uuid = :parent, "
        "message_id = :message, tokens = :tokens, project_seq = :project, directory_seq = :directory, "
        "source = 'transcript', provisional = 0, searchable = :searchable where seq = :seq",
        uuid=turn.uuid,
        kind=turn.kind,
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
    if kind == "user" != turn.kind:  # the queue does not say who typed; something may have been chosen already
        speakers.look_again(rows, seq)
    if moved:
        rows.run("update statements set project_seq = :project where turn_seq = :seq", project=project, seq=seq)
        vectors.move_to(rows, "turn", seq, project)


def merge(rows: Rows, seq: int, old: str, *, into: int, uuid: str) -> None:
    """Drops the hook's or the queue's turn `seq`; what was made of it belongs to the stored turn `into` from now on."""
    memories.move_provenance(rows, old, uuid)
    packets.take_back(rows, old)
    rows.run(
        "update statements set turn_seq = :kept where turn_seq = :seq and not exists "
        "(select 1 from statements s where s.turn_seq = :kept and s.text_hash = statements.text_hash)",
        kept=into,
        seq=seq,
    )
    # A queue's line stays known: read again it would bring its turn back.
    rows.run("update queued set turn_seq = :kept where turn_seq = :seq", kept=into, seq=seq)
    vectors.delete_for(rows, "turn", seq)
    home, said = rows.all("select session_seq, text from turns where seq = :seq", seq=seq)[0]
    rows.run("update sessions set bytes = bytes - :size where seq = :seq", size=room_of.bytes_of(said), seq=home)
    rows.run("delete from turns where seq = :seq", seq=seq)


def _is_searchable(turn: Turn) -> int:
    return 1 if turn.kind in SEARCHABLE and turn.text not in ("", PURGED) and not room_of.is_not_kept(turn.text) else 0


def insert_turn(
    rows: Rows, turn: Turn, session: int, *, text_hash: str, project: int, source: str, directory: int = 0
) -> int:
    """Stores a row; a hook's is provisional."""
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


def set_title(rows: Rows, session_id: str, title: str, *, first: bool = False) -> bool:
    """Names a session as the host does, with `first` only one that has no name yet; whether that is news."""
    changed = rows.value(
        "update sessions set title = :title where id = :id and title <> :title and (title = '' or :first = 0) "
        "returning seq",
        title=title,
        id=session_id,
        first=int(first),
    )
    return changed is not None


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
