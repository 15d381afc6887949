"""Projects, sessions, turns, events and cursors: what happened, each exactly once.

A turn is keyed by its transcript uuid. A hook's turn is provisional: when the transcript
brings the same text in the same session, the provisional row *becomes* the transcript's
(same seq, so what was distilled from it stays linked) and takes its place in the order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from csmd.model import SEARCHABLE, Event, Project, StoredTurn, Turn
from csmd.store.sqlite import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """How far a transcript has been read; `head` is a hash of its first bytes."""

    path: str
    device: int
    inode: int
    position: int
    head: str
    bad_lines: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """A session whose stage cursor stands before its last turn."""

    session_seq: int
    session_id: str
    position: int
    turns: int
    last_at: str
    settled_at: str
    started_at: str


def ensure_project(rows: Rows, project: Project, *, now: str) -> int:
    """The project's row key, made when it is new."""
    found = rows.value("select seq from projects where key = :key", key=project.key)
    if found is not None:
        return int(found)
    return int(
        rows.value(
            "insert into projects (key, root, name, kind, created_at) values (:key, :root, :name, :kind, :now) "
            "returning seq",
            key=project.key,
            root=project.root,
            name=project.name,
            kind=project.kind,
            now=now,
        )
    )


def project_seq(rows: Rows, key: str) -> int | None:
    """The row key of a known project, or None."""
    found = rows.value("select seq from projects where key = :key", key=key)
    return None if found is None else int(found)


def project_name(rows: Rows, seq: int) -> str:
    """The name of a project; "" for the scope of everything."""
    return str(rows.value("select name from projects where seq = :seq", seq=seq) or "") if seq else ""


def ensure_session(rows: Rows, turn: Turn, *, host: str, project: int, path: str) -> int:
    """The row key of the conversation `turn` belongs to, made when it is new."""
    found = rows.one("select seq, path from sessions where id = :id", id=turn.stream)
    if found is None:
        return int(
            rows.value(
                "insert into sessions (id, parent, host, project_seq, path, cwd, version, model, started_at, last_at) "
                "values (:id, :parent, :host, :project, :path, :cwd, :version, :model, :at, :at) returning seq",
                id=turn.stream,
                parent=turn.session_id if turn.agent_id else "",
                host=host,
                project=project,
                path=path,
                cwd=turn.cwd,
                version=turn.version,
                model=turn.model,
                at=turn.at,
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


def add_turn(rows: Rows, turn: Turn, *, text_hash: str, host: str, project: int, path: str) -> bool:
    """Stores a transcript's turn once and lists it in its session; True when its uuid was new.

    A provisional turn of the same session and text is replaced by it, the oldest first.
    """
    session = ensure_session(rows, turn, host=host, project=project, path=path)
    known = rows.value("select seq from turns where uuid = :uuid", uuid=turn.uuid)
    if known is not None:
        _list_turn(rows, session, int(known), turn)
        return False
    provisional = rows.value(
        "select seq from turns where session_seq = :session and text_hash = :hash and kind = :kind and provisional = 1 "
        "order by seq limit 1",
        session=session,
        hash=text_hash,
        kind=turn.kind,
    )
    if provisional is None:
        seq = _insert_turn(rows, turn, session, text_hash=text_hash, project=project, source="transcript")
    else:
        seq = int(provisional)
        old = str(rows.value("select uuid from turns where seq = :seq", seq=seq))
        rows.run(
            "update turns set uuid = :uuid, text = :text, at = :at, parent_uuid = :parent, message_id = :message, "
            "tokens = :tokens, project_seq = :project, source = 'transcript', provisional = 0 where seq = :seq",
            uuid=turn.uuid,
            text=turn.text,
            at=turn.at,
            parent=turn.parent_uuid,
            message=turn.message_id,
            tokens=turn.tokens,
            project=project,
            seq=seq,
        )
        rows.run(
            "update provenance set uuid = :uuid where uuid = :old and not exists "
            "(select 1 from provenance p where p.memory_seq = provenance.memory_seq and p.uuid = :uuid)",
            uuid=turn.uuid,
            old=old,
        )
        rows.run("delete from session_turn where session_seq = :session and turn_seq = :seq", session=session, seq=seq)
    _list_turn(rows, session, seq, turn)
    _touch_activity(rows, project, turn.at)
    return True


def _insert_turn(rows: Rows, turn: Turn, session: int, *, text_hash: str, project: int, source: str) -> int:
    return int(
        rows.value(
            "insert into turns (uuid, session_seq, project_seq, kind, text, text_hash, at, parent_uuid, message_id, "
            "tool_name, tokens, source, provisional, searchable) values (:uuid, :session, :project, :kind, :text, "
            ":hash, :at, :parent, :message, :tool, :tokens, :source, :provisional, :searchable) returning seq",
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
            tokens=turn.tokens,
            source=source,
            provisional=1 if source == "hook" else 0,
            searchable=1 if turn.kind in SEARCHABLE and turn.text else 0,
        )
    )


def _touch_activity(rows: Rows, project: int, at: str) -> None:
    for scope in {project, 0}:
        rows.run(
            "insert into activity (project_seq, day) values (:scope, :day) on conflict do nothing",
            scope=scope,
            day=at[:10],
        )


def active_day(rows: Rows, project: int) -> int:
    """How many days the scope has been active so far; ages are differences of this number."""
    return int(rows.value("select count(*) from activity where project_seq = :project", project=project))


def record_event(rows: Rows, event: Event, *, text_hash: str, payload_hash: str) -> bool:
    """Notes a hook's event; False when it is known: by its id, or as the same report from a second command.

    A second command (a plugin's beside the settings') reports the same payload within 2 s, and
    nothing else happens in the session between the two.
    """
    if _reported_twice(rows, event, payload_hash):
        return False
    added = rows.value(
        "insert into events (id, host, name, session_id, stream, text_hash, payload_hash, source, at) values "
        "(:id, :host, :name, :session, :stream, :hash, :payload, :source, :at) "
        "on conflict (id) do nothing returning seq",
        id=event.id,
        host=event.host,
        name=event.name,
        session=event.session_id,
        stream=f"{event.session_id}/{event.agent_id}" if event.agent_id else event.session_id,
        hash=text_hash,
        payload=payload_hash,
        source=event.source,
        at=event.at,
    )
    return added is not None


def _reported_twice(rows: Rows, event: Event, payload_hash: str) -> bool:
    for (at,) in rows.all(
        "select at from events where session_id = :session and name = :name and payload_hash = :payload "
        "order by seq desc limit 5",
        session=event.session_id,
        name=event.name,
        payload=payload_hash,
    ):
        between = rows.value(
            "select count(*) from events where session_id = :session and name <> :name and at > :first and at < :last",
            session=event.session_id,
            name=event.name,
            first=min(at, event.at),
            last=max(at, event.at),
        )
        if not between and _within_2_s(at, event.at):
            return True
    return False


def _within_2_s(one: str, other: str) -> bool:
    from datetime import datetime

    return abs((datetime.fromisoformat(one) - datetime.fromisoformat(other)).total_seconds()) <= 2.0


def add_provisional(rows: Rows, turn: Turn, *, event: str, text_hash: str, host: str, project: int, path: str) -> bool:
    """Stores a hook's turn unless the transcript has it already: its k-th event matches the k-th row of that text."""
    session = ensure_session(rows, turn, host=host, project=project, path=path)
    reported = rows.value(
        "select count(*) from events where stream = :stream and text_hash = :hash and name = :event",
        stream=turn.stream,
        hash=text_hash,
        event=event,
    )
    stored = rows.value(
        "select count(*) from session_turn st join turns t on t.seq = st.turn_seq "
        "where st.session_seq = :session and t.text_hash = :hash and t.kind = :kind",
        session=session,
        hash=text_hash,
        kind=turn.kind,
    )
    if reported <= stored:
        return False
    seq = _insert_turn(rows, turn, session, text_hash=text_hash, project=project, source="hook")
    _list_turn(rows, session, seq, turn)
    _touch_activity(rows, project, turn.at)
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

    Looks at provisional turns older than `before` whose session has later transcript turns.
    """
    waiting = rows.all(
        "select t.seq, t.session_seq, t.text_hash, t.at from turns t where t.provisional = 1 and t.at < :before "
        "and exists (select 1 from turns n where n.session_seq = t.session_seq and n.source = 'transcript' "
        "and n.at > t.at)",
        before=before,
    )
    dropped = kept = 0
    for seq, session, text_hash, _ in waiting:
        double = rows.value(
            "select count(*) from turns where session_seq = :session and text_hash = :hash and source = 'transcript'",
            session=session,
            hash=text_hash,
        )
        if double:
            rows.run("delete from turns where seq = :seq", seq=seq)
            dropped += 1
        else:
            rows.run("update turns set provisional = 0 where seq = :seq", seq=seq)
            kept += 1
    return dropped, kept


def set_title(rows: Rows, session_id: str, title: str) -> None:
    """Names a session as the host does."""
    rows.run("update sessions set title = :title where id = :id", title=title, id=session_id)


def file_state(rows: Rows, path: str) -> FileState | None:
    """How far a transcript has been read, or None for one never seen."""
    row = rows.one("select path, device, inode, position, head, bad_lines from files where path = :path", path=path)
    if row is None:
        return None
    return FileState(path=row[0], device=row[1], inode=row[2], position=row[3], head=row[4], bad_lines=row[5])


def save_file(rows: Rows, state: FileState, *, now: str) -> None:
    """Moves a transcript's cursor; in the same transaction as the turns it stands for."""
    rows.run(
        "insert into files (path, device, inode, position, head, bad_lines, read_at) values "
        "(:path, :device, :inode, :position, :head, :bad, :now) on conflict (path) do update set "
        "device = excluded.device, inode = excluded.inode, position = excluded.position, head = excluded.head, "
        "bad_lines = excluded.bad_lines, read_at = excluded.read_at",
        path=state.path,
        device=state.device,
        inode=state.inode,
        position=state.position,
        head=state.head,
        bad=state.bad_lines,
        now=now,
    )


def known_positions(rows: Rows) -> dict[str, int]:
    """Every transcript's path and how far it has been read."""
    return {str(path): int(position) for path, position in rows.all("select path, position from files")}


def files_read_since(rows: Rows, at: str) -> list[str]:
    """The transcripts that brought something since a time."""
    return [str(path) for (path,) in rows.all("select path from files where read_at >= :at", at=at)]


def cursor(rows: Rows, stage: str, subject: str) -> int:
    """How far a stage has come with a subject; 0 at first."""
    found = rows.value(
        "select position from cursors where stage = :stage and subject = :subject", stage=stage, subject=subject
    )
    return int(found or 0)


def move_cursor(rows: Rows, stage: str, subject: str, position: int) -> None:
    """Sets a stage's cursor; in the same transaction as the rows it stands for."""
    rows.run(
        "insert into cursors (stage, subject, position) values (:stage, :subject, :position) "
        "on conflict (stage, subject) do update set position = excluded.position",
        stage=stage,
        subject=subject,
        position=position,
    )


def sessions_behind(rows: Rows, stage: str) -> list[Behind]:
    """The conversations of people (no sub-agents) with turns that `stage` has not seen, oldest first."""
    found = rows.all(
        "select s.seq, s.id, coalesce(c.position, 0), s.turns, s.last_at, s.settled_at, s.started_at from sessions s "
        "left join cursors c on c.stage = :stage and c.subject = cast(s.seq as text) "
        "where s.parent = '' and s.turns > coalesce(c.position, 0) order by s.started_at, s.seq",
        stage=stage,
    )
    return [
        Behind(session_seq=a, session_id=b, position=c, turns=d, last_at=e, settled_at=f, started_at=g)
        for a, b, c, d, e, f, g in found
    ]


def stream_turns(rows: Rows, session_seq: int, *, after: int, limit: int = 100_000) -> list[StoredTurn]:
    """A conversation's turns in order, from the first past the ordinal `after`."""
    found = rows.all(
        "select t.seq, t.uuid, s.id, t.project_seq, t.kind, t.text, t.at, st.ordinal, s.parent from session_turn st "
        "join turns t on t.seq = st.turn_seq join sessions s on s.seq = st.session_seq "
        "where st.session_seq = :session and st.ordinal > :after order by st.ordinal limit :limit",
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


def count(rows: Rows, names: Iterable[tuple[str, int]]) -> None:
    """Adds to named counters (bad lines, redactions by kind, ...)."""
    for name, amount in names:
        rows.run(
            "insert into counters (name, value) values (:name, :amount) "
            "on conflict (name) do update set value = counters.value + excluded.value",
            name=name,
            amount=amount,
        )


def counters(rows: Rows) -> dict[str, int]:
    """Every counter and its value."""
    return {str(name): int(value) for name, value in rows.all("select name, value from counters order by name")}


#: What `csmd status` counts; every table is a word of the glossary.
COUNTED: Sequence[tuple[str, str]] = (
    ("projects", "select count(*) from projects where seq > 0"),
    ("sessions", "select count(*) from sessions where parent = ''"),
    ("agents", "select count(*) from sessions where parent <> ''"),
    ("turns", "select count(*) from turns"),
    ("provisional", "select count(*) from turns where provisional = 1"),
    ("hook_only", "select count(*) from turns where source = 'hook' and provisional = 0"),
    ("events", "select count(*) from events"),
    ("statements", "select count(*) from statements"),
    ("memories", "select count(*) from memories"),
    ("vectors", "select count(*) from vectors"),
    ("injections", "select count(*) from injections"),
)


def counts(rows: Rows) -> dict[str, int]:
    """How many rows of each kind there are."""
    return {name: int(rows.value(sql)) for name, sql in COUNTED}


def last_event(rows: Rows) -> dict[str, str]:
    """When each kind of hook event was last seen."""
    return {str(name): str(at) for name, at in rows.all("select name, max(at) from events group by name order by name")}


def projects(rows: Rows) -> list[tuple[int, str, str, int, int, str]]:
    """(seq, root, name, sessions, memories, last activity) of every project, the latest first."""
    return [
        (int(a), str(b), str(c), int(d), int(e), str(f or ""))
        for a, b, c, d, e, f in rows.all(
            "select p.seq, p.root, p.name, (select count(*) from sessions s where s.project_seq = p.seq and "
            "s.parent = ''), (select count(*) from memories m where m.project_seq = p.seq), "
            "(select max(s.last_at) from sessions s where s.project_seq = p.seq) as last "
            "from projects p where p.seq > 0 order by last desc"
        )
    ]
