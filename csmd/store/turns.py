"""Stores each turn exactly once: from hooks, the assistant's queue and transcripts, within a session's room."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from csmd.conversation import Quote, StoredTurn, Turn
from csmd.paths import name_of_transcript
from csmd.privacy.fingerprints import PURGED
from csmd.store import (
    activity,
    checkpoints,
    compactions,
    digests,
    memories,
    packet_rows,
    projects,
    rewinds,
    speaker_reviews,
    tampered_transcripts,
    vectors,
)
from csmd.store.sqlite import Rows, in_keys
from csmd.text import display
from csmd.vocabulary import SEARCHABLE, TOOL_KINDS, TurnKind

#: Tenths of a session's room that tools may fill: the rest is kept for conversation.
TOOL_ROOM_TENTHS = 9
#: Unlimited room.
UNLIMITED_BYTES = 2**62
#: Replaces a text for which the session had no room; the turn keeps its hash.
NOT_KEPT = "[not kept: this session is beyond {room} MB; the transcript has it]"
#: The name of a text in the placeholder of one that was dropped for its age.
CONVERSATION_NAME = "conversation"
_NOT_KEPT = re.compile(
    re.escape(NOT_KEPT).replace(re.escape("{room}"), "[0-9.e+-]{1,20}")
    + rf"|\[{CONVERSATION_NAME} of \d{{1,15}} bytes dropped after \d{{1,9}} days\]"
)
#: The kinds that a submitted prompt can have in a transcript.
SUBMITTED_KINDS: tuple[TurnKind, ...] = ("user", "relayed", "command", "notification")
#: Kinds of prompts that can replace an earlier one.
_BRANCHING_KINDS: tuple[TurnKind, ...] = ("user", "relayed", "command")
#: The turns of one conversation past an ordinal as StoredTurn, without rewound ones.
_LISTED = """select t.seq, t.uuid, case when s.parent = '' then s.id else s.parent end, t.project_seq, t.kind,
    t.text, t.at, st.ordinal, case when s.parent = '' then '' else substr(s.id, length(s.parent) + 2) end, t.tool_name,
    t.tool_id from session_turn st join turns t on t.seq = st.turn_seq join sessions s on s.seq = st.session_seq
    where st.session_seq = :session and st.rewound = 0 and st.ordinal > :after """
_USER_PROMPTS = """select t.seq, t.uuid, t.project_seq, t.at, substr(t.text, 1, 4000)
    from turns t where t.kind = 'user' and t.provisional = 0"""


def fit_to_room(rows: Rows, turn: Turn, used: int, room: int) -> tuple[Turn, int]:
    """Returns (the turn with as much of its text as fits, its bytes); tools have less room than conversation."""
    size = count_stored_bytes(turn.text)
    if used + size <= (room * TOOL_ROOM_TENTHS // 10 if turn.kind in TOOL_KINDS else room) or not size:
        return turn, size
    activity.increment_counters(rows, [("turns not kept", 1)])
    return replace(turn, text=NOT_KEPT.format(room=f"{room / 1e6:g}")), 0


def is_placeholder(text: str) -> bool:
    """Whether a turn's text is the mark of a text that was not kept."""
    return _NOT_KEPT.fullmatch(text) is not None


def count_stored_bytes(text: str) -> int:
    """Returns the bytes of a turn's text that count towards its session's room; 0 for a placeholder."""
    return 0 if is_placeholder(text) else display.count_bytes(text)


class Session(NamedTuple):
    """A conversation's row key, its transcript ("" for a hook's or an agent's), the bytes of text stored."""

    seq: int
    path: str
    bytes: int


def ensure_session(rows: Rows, turn: Turn, *, host: str, project: int, path: str, directory: int = 0) -> Session:
    """Returns the conversation of `turn`, created if it is new."""
    row = rows.first("select seq, path, cwd, bytes from sessions where id = :id", id=turn.stream)
    if row is None:
        seq = rows.insert_keyed(
            "sessions", id=turn.stream, parent=turn.session_id if turn.agent_id else "", host=host, project_seq=project,
            path=path, cwd=turn.cwd, version=turn.version, model=turn.model, started_at=turn.at, last_at=turn.at,
            directory_seq=directory,
        )  # fmt: skip
        return Session(seq, path, 0)
    seq, known_path, known_cwd, stored = row
    if (path and not known_path) or (turn.cwd and not known_cwd):
        rows.update("sessions", seq, path=known_path or path, cwd=known_cwd or turn.cwd)
    return Session(seq, known_path or path, stored)


def list_turn(rows: Rows, session_seq: int, turn_seq: int, turn: Turn, *, grown: int = 0) -> bool:
    """Appends a turn to a session; False if the session already lists it.

    `grown` is how many more bytes of text are stored.
    """
    sql = """insert into session_turn (session_seq, ordinal, turn_seq) select :session, s.turns + 1, :turn
        from sessions s where s.seq = :session on conflict (session_seq, turn_seq) do nothing returning ordinal"""
    ordinal = rows.value(sql, session=session_seq, turn=turn_seq)
    if ordinal is None:
        return False
    sql = """update sessions set turns = turns + 1, bytes = bytes + :grown,
        last_at = case when last_at < :at then :at else last_at end, started_at = case when started_at > :at then :at
        else started_at end, model = case when cast(:model as text) = '' then model else :model end,
        version = case when cast(:version as text) = '' then version else :version end,
        context = case when cast(:context as integer) = 0 then context else :context end where seq = :session"""
    rows.run(
        sql, at=turn.at, context=turn.context, model=turn.model, version=turn.version, grown=grown, session=session_seq
    )
    return True


def place_by_time(rows: Rows, session_seq: int, turn_seq: int) -> None:
    """Moves a hook's turn, the last of its session, before later hooks' turns at the end.

    A hook spools an event while no daemon answers, and the next event may be answered first. Turns from a transcript
    stay in place. Nothing is derived from turns that only hooks reported, so the stages' cursors need no change.
    """
    sql = """select st.ordinal, t.at, t.uuid from session_turn st
        join turns t on t.seq = st.turn_seq where st.session_seq = :session and st.turn_seq = :turn"""
    turn = rows.first(sql, session=session_seq, turn=turn_seq)
    last, reported_at, uuid = turn or (0, "", "")
    sql = """select st.ordinal
        from session_turn st join turns t on t.seq = st.turn_seq where st.session_seq = :session and st.ordinal < :last
        and not (t.source = 'hook' and (t.at, t.uuid) > (:reported_at, :uuid)) order by st.ordinal desc limit 1"""
    previous = rows.value(sql, reported_at=reported_at, uuid=uuid, session=session_seq, last=last)
    first = rows.value("select min(ordinal) from session_turn where session_seq = :session", session=session_seq)
    target = previous + 1 if previous else first
    if target == last:
        return
    # Through unused ordinals, because an ordinal is unique at any time.
    sql = "update session_turn set ordinal = -cast(:target as integer) where session_seq = :session and ordinal = :last"
    rows.run(sql, session=session_seq, target=target, last=last)
    sql = """update session_turn set ordinal = -ordinal - 1
        where session_seq = :session and ordinal between :target and :last"""
    rows.run(sql, session=session_seq, target=target, last=last)
    sql = "update session_turn set ordinal = -ordinal where session_seq = :session and ordinal < 0"
    rows.run(sql, session=session_seq)
    sql = """update cursors set position = position + 1 where subject = :subject
        and position >= :target and stage in ('distill', 'tool words', 'packets', 'gotchas', 'digest')"""
    rows.run(sql, subject=str(session_seq), target=target)


def add_turn(
    rows: Rows,
    turn: Turn,
    *,
    text_hash: str,
    host: str,
    project: int,
    path: str,
    directory: int = 0,
    room: int = UNLIMITED_BYTES,
    file: str = "",
) -> bool:
    """Stores a transcript's turn once and lists it in its session; True if no transcript had it before.

    Replaces an earlier report: the queued turn of the same session and text, else the hook's turn, first the oldest
    that still waits, then the oldest that no longer does. `room` is how many bytes of text a session keeps, `directory`
    the row of the working directory (0 if unknown), `file` the transcript, also for a sub-agent, whose session has no
    `path`.
    """
    session = ensure_session(rows, turn, host=host, project=project, path=path, directory=directory)
    if turn.form == "queued" and is_queued(rows, turn.uuid):
        return False
    stored = rows.first("select seq, text_hash, session_seq, text, kind from turns where uuid = :uuid", uuid=turn.uuid)
    if stored is not None:
        seq, hash_then, home, text_then, kind_then = stored
        is_listed = list_turn(rows, session.seq, seq, turn)
        if is_listed and rows.exists("select 1 from session_turn where turn_seq = :turn and rewound = 1", turn=seq):
            rows.update("turns", int(seq), searchable=_is_searchable(turn))  # a fork from before a rewind
        _mark_rewound(rows, turn, session.seq, int(seq))
        if home != session.seq or kind_then != turn.kind:
            _correct_speaker(rows, int(seq), turn, session, home=int(home), kind_then=kind_then, file=file)
        reported = _find_reported_turn(rows, turn, session.seq, text_hash) if is_listed else None
        if reported is not None:
            # A fork's file was read before this one: the turn is stored, and the hook's turn is its double.
            merge_double(rows, *reported, into=int(seq), uuid=turn.uuid)
        if hash_then != text_hash and home == session.seq and path and path == session.path:
            _rewrite(rows, seq, turn, session, text_hash=text_hash, then=text_then, room=room)
        return False
    reported = _find_reported_turn(rows, turn, session.seq, text_hash)
    text = turn.text
    if reported is None:
        turn, size = fit_to_room(rows, turn, session.bytes, room)
        seq = insert_turn(
            rows, turn, session.seq, text_hash=text_hash, project=project, source="transcript", directory=directory
        )
    else:
        seq, old = reported
        then = count_stored_bytes(rows.find("turns", "text", seq=seq))
        turn, size = fit_to_room(rows, turn, session.bytes - then, room)
        size -= then
        _replace_provisional(rows, seq, turn, project=project, directory=directory)
        memories.move_provenance(rows, old, turn.uuid)
        rows.delete("session_turn", session_seq=session.seq, turn_seq=seq)
    _record_loss(rows, seq, turn, text)
    list_turn(rows, session.seq, seq, turn, grown=size)
    _mark_rewound(rows, turn, session.seq, seq)
    if turn.form == "queued":
        add_to_queue(rows, turn.uuid, session=session.seq, turn=seq, at=turn.at)
    projects.record_active_day(rows, project, turn.at)
    return reported is None or not is_queued(rows, reported[1])


def _mark_rewound(rows: Rows, turn: Turn, session: int, seq: int) -> None:
    """Marks the turns that a prompt left behind by replacing an earlier one, except those that it continues."""
    if turn.is_prompt_line and turn.kind in _BRANCHING_KINDS and turn.parent_uuid and not turn.agent_id:
        for standing in rewinds.restore_branch(rows, session, parent=turn.parent_uuid):
            kind, text = rows.all("select kind, text from turns where seq = :seq", seq=standing)[0]
            rows.update("turns", standing, searchable=_is_searchable_text(kind, text))
        rewinds.mark_rewound(rows, session, seq, parent=turn.parent_uuid)


def _correct_speaker(
    rows: Rows, seq: int, turn: Turn, session: Session, *, home: int, kind_then: TurnKind, file: str
) -> None:
    """Stores the speaker of a line that was taken for the user's; only the session's own file can correct it."""
    origin = rows.first("select id, path from sessions where seq = :home", home=home)
    if origin != (turn.session_id, file):
        return
    if home != session.seq:
        searchable = _is_searchable(turn)
        speaker_reviews.move_to_agent(rows, seq, turn.kind, searchable=searchable, session=home, agent=session.seq)
    elif kind_then == "user":
        speaker_reviews.correct_speaker(rows, seq, turn.kind)


def _rewrite(rows: Rows, seq: int, turn: Turn, session: Session, *, text_hash: str, then: str, room: int) -> None:
    """Stores what a line says after its own file was rewritten; a fork's or another file cannot change it."""
    text = turn.text
    turn, size = fit_to_room(rows, turn, session.bytes - count_stored_bytes(then), room)
    rows.update(
        "turns",
        seq,
        text=turn.text,
        text_hash=text_hash,
        kind=turn.kind,
        searchable=_is_searchable(turn),
        counted=None,
        gone=0,
    )
    compactions.delete_record(rows, seq)
    _record_loss(rows, seq, turn, text)
    grown = size - count_stored_bytes(then)
    rows.run("update sessions set bytes = bytes + :grown where seq = :seq", grown=grown, seq=session.seq)
    digests.clear_sessions_of_turn(rows, seq)
    checkpoints.delete_turn(rows, seq)


def _record_loss(rows: Rows, seq: int, turn: Turn, text: str) -> None:
    """Records what is not stored of a turn's `text`: tools are trimmed, and a session has limited room."""
    if turn.kind in TOOL_KINDS or turn.text != text:
        compactions.record_trim(rows, seq, uuid=turn.uuid, original=text, stored=turn.text)


def _find_reported_turn(rows: Rows, turn: Turn, session: int, text_hash: str) -> tuple[int, str] | None:
    """Returns (row key, uuid) of the queued or hook's turn that a transcript's turn replaces, or None."""
    if turn.form != "queued" and turn.kind in SUBMITTED_KINDS:
        queued_turn = find_queued(rows, session=session, text_hash=text_hash, absorbed=turn.form == "absorbed")
        if queued_turn is not None:
            return queued_turn
    # A hook does not know whether a person wrote a prompt; the transcript does.
    sql = """select seq, uuid from turns where session_seq = :session and text_hash = :hash
        and (kind = :kind or :kind = 'notification') and source = 'hook' order by provisional desc, seq limit 1"""
    return rows.first(sql, session=session, hash=text_hash, kind="user" if turn.kind == "relayed" else turn.kind)


def _replace_provisional(rows: Rows, seq: int, turn: Turn, *, project: int, directory: int) -> None:
    """Replaces a hook's turn by the transcript's, and moves what was made of it to the transcript's project."""
    stored_project, kind = rows.all("select project_seq, kind from turns where seq = :seq", seq=seq)[0]
    is_moved = stored_project != project
    rows.update(
        "turns", seq, uuid=turn.uuid, kind=turn.kind, text=turn.text, at=turn.at, parent_uuid=turn.parent_uuid,
        message_id=turn.message_id, tokens=turn.tokens, project_seq=project, directory_seq=directory,
        source="transcript", provisional=0, searchable=_is_searchable(turn), counted=None,
        mode=turn.mode,
    )  # fmt: skip
    if kind == "user" != turn.kind:  # the queue does not say who typed, so a statement may have been chosen already
        speaker_reviews.recheck_turn(rows, seq)
    if is_moved:
        rows.run("update statements set project_seq = :project where turn_seq = :seq", project=project, seq=seq)
        vectors.move_passages(rows, seq, project)


def merge_double(rows: Rows, seq: int, old: str, *, into: int, uuid: str) -> None:
    """Deletes the hook's or queued turn `seq`; what was made of it belongs to the stored turn `into`."""
    memories.move_provenance(rows, old, uuid)
    packet_rows.take_back_packets(rows, old)
    sql = """update statements set turn_seq = :kept where turn_seq = :seq
        and not exists (select 1 from statements s where s.turn_seq = :kept and s.text_hash = statements.text_hash)"""
    rows.run(sql, kept=into, seq=seq)
    # The queue's line stays known: read again, it would store its turn again.
    rows.run("update queued set turn_seq = :kept where turn_seq = :seq", kept=into, seq=seq)
    home, text = rows.all("select session_seq, text from turns where seq = :seq", seq=seq)[0]
    rows.run("update sessions set bytes = bytes - :size where seq = :seq", size=count_stored_bytes(text), seq=home)
    rows.delete("turns", seq=seq)


def _is_searchable(turn: Turn) -> int:
    return _is_searchable_text(turn.kind, turn.text)


def _is_searchable_text(kind: TurnKind, text: str) -> int:
    return 1 if kind in SEARCHABLE and text not in ("", PURGED) and not is_placeholder(text) else 0


def insert_turn(
    rows: Rows, turn: Turn, session: int, *, text_hash: str, project: int, source: str, directory: int = 0
) -> int:
    """Stores a row, provisional if it is a hook's, and returns its key."""
    return rows.insert_keyed(
        "turns", uuid=turn.uuid, session_seq=session, project_seq=project, kind=turn.kind, text=turn.text,
        text_hash=text_hash, at=turn.at, parent_uuid=turn.parent_uuid, message_id=turn.message_id,
        tool_name=turn.tool_name, tool_id=turn.tool_id, tokens=turn.tokens, source=source, mode=turn.mode,
        provisional=int(source == "hook"), searchable=_is_searchable(turn), directory_seq=directory,
    )  # fmt: skip


def set_title(rows: Rows, session_id: str, title: str, *, first: bool = False) -> bool:
    """Sets a session's title, with `first` only if it has none; returns whether it changed."""
    sql = """update sessions set title = :title
        where id = :id and title <> :title and (title = '' or :first = 0) returning seq"""
    return rows.exists(sql, title=title, id=session_id, first=int(first))


def read_stream_turns(
    rows: Rows,
    session_seq: int,
    *,
    after: int,
    until: int = 2**31,
    limit: int = 100_000,
    kinds: Sequence[TurnKind] = (),
    written: bool = False,
) -> list[StoredTurn]:
    """Returns a conversation's turns in order, past the ordinal `after` up to `until`, of all kinds or of `kinds`.

    `written` excludes turns that only a hook reported: their speaker is unproven.
    """
    filters = f"and t.kind in ({_quote_names(kinds)})" if kinds else ""
    filters += " and t.source = 'transcript'" if written else ""
    sql = f"{_LISTED} and st.ordinal <= :until {filters} order by st.ordinal limit :limit"
    return rows.read(StoredTurn, sql, session=session_seq, after=after, until=until, limit=limit)


def _quote_names(names: Iterable[str]) -> str:
    """Returns csmd's own names (kinds of turns, tools) as SQL literals."""
    return ", ".join(f"'{name}'" for name in sorted(names))


def is_queued(rows: Rows, key: str) -> bool:
    """Whether this line of the queue is stored."""
    return rows.has("queued", key=key)


def add_to_queue(rows: Rows, key: str, *, session: int, turn: int, at: str) -> None:
    """Records a prompt that was put into the queue."""
    rows.insert("queued", key=key, session_seq=session, turn_seq=turn, at=at)


def mark_unqueued(rows: Rows, session_id: str, *, at: str, text_hash: str, absorbed: bool, nth: int) -> None:
    """Records that a prompt left the queue: the oldest (with this text), as the `nth` (from 0) at that moment."""
    sql = """update queued set left_at = :at, absorbed = :absorbed where key = (select q.key
        from sessions s join queued q on q.session_seq = s.seq join turns t on t.seq = q.turn_seq where s.id = :session
        and q.left_at = '' and q.at <= :at and (select count(*) from queued d where d.session_seq = s.seq
        and d.left_at = :at) <= :nth order by case when t.text_hash = :hash then 0 else 1 end, q.at, q.key limit 1)"""
    rows.run(sql, session=session_id, at=at, hash=text_hash, absorbed=int(absorbed), nth=nth)


def find_queued(rows: Rows, *, session: int, text_hash: str, absorbed: bool) -> tuple[int, str] | None:
    """Returns (row key, uuid) of the queued turn that a line with this text repeats: the last to leave, or the oldest.

    A line follows its queued turn at once; a turn that left long ago is not repeated.
    """
    sql = """select t.seq, t.uuid from queued q
        join turns t on t.seq = q.turn_seq where q.session_seq = :session and t.uuid = q.key and t.text_hash = :hash
        and (q.left_at = '' or q.absorbed = :absorbed) order by q.left_at desc, q.at, q.key limit 1"""
    return rows.first(sql, session=session, hash=text_hash, absorbed=int(absorbed))


class Call(NamedTuple):
    """A tool call with its result if it has one."""

    turn: StoredTurn
    tool: str
    result: StoredTurn | None


def list_tool_calls(
    rows: Rows, session_seq: int, *, after: int, tools: Collection[str], holding: Mapping[str, str]
) -> list[Call]:
    """Returns the calls of `tools` in a session's transcript past the ordinal `after`, in order.

    A call of a tool in `holding` must match its pattern (SQL like).
    """

    def called(alias: str) -> str:
        named = f"{alias}.kind = 'tool_call' and {alias}.source = 'transcript' and {alias}.tool_name in ({_quote_names(tools)})"
        with_words = (
            f"and ({alias}.tool_name <> '{name}' or {alias}.text like '%{words}%')" for name, words in holding.items()
        )
        return f"{named} {' '.join(with_words)}"

    calls = rows.read(StoredTurn, f"{_LISTED} and {called('t')} order by st.ordinal", session=session_seq, after=after)
    answers = f"""{_LISTED} and t.kind = 'tool_result' and t.source = 'transcript'
        and t.tool_id <> '' and t.tool_id in (select c.tool_id from session_turn sc join turns c on c.seq = sc.turn_seq
        where sc.session_seq = :session and sc.ordinal > :after and {called("c")}) order by st.ordinal"""  # noqa: S608
    answered = rows.read(StoredTurn, answers, session=session_seq, after=after) if calls else []
    results = {turn.tool_id: turn for turn in answered}
    return [Call(turn, turn.tool_name, results.get(turn.tool_id)) for turn in calls]


def list_last_tool_inputs(rows: Rows, session_id: str, tools: Collection[str], *, back: int, limit: int) -> list[str]:
    """Returns the inputs of the latest calls of these tools in a session's last `back` turns, the latest first."""
    sql = f"""select t.text from sessions s
        join session_turn st on st.session_seq = s.seq join turns t on t.seq = st.turn_seq where s.id = :session
        and st.ordinal > (select max(o.ordinal) from session_turn o where o.session_seq = s.seq) - :back
        and t.kind = 'tool_call' and t.tool_name in ({_quote_names(tools)}) order by st.ordinal desc limit :limit"""  # noqa: S608
    return rows.column(sql, session=session_id, back=back, limit=limit)


def filter_quotable(
    rows: Rows, seqs: Sequence[int], *, session_id: str, since: str, hashed: Callable[[str], str]
) -> set[int]:
    """Returns those of some turns (row keys) that may be quoted to a session, as their transcripts have them.

    Excluded are turns of unknown speakers (reported only by a hook, or in a transcript that a tool wrote; `hashed`
    returns a name's keyed hash), turns in the session's own context (listed at `since` or later, a fork's copies too),
    turns of sub-agents and tools, and turns that are no longer indexed.
    """
    sql = f"""select t.seq, s.path from turns t join sessions s on s.seq = t.session_seq
        where {in_keys("t.seq", seqs)} and t.searchable = 1 and t.kind in ('user', 'relayed', 'assistant')
        and t.source = 'transcript' and s.parent = '' and not exists (select 1 from session_turn o
        join sessions own on own.seq = o.session_seq where o.turn_seq = t.seq and own.id = :session and t.at >= :since)"""  # noqa: S608
    turns = rows.all(sql, session=session_id, since=since)
    written = {
        path
        for path in {path for _, path in turns}
        if tampered_transcripts.is_tampered(rows, hashed(name_of_transcript(path)))
    }
    return {seq for seq, path in turns if path not in written}


def read_text(rows: Rows, uuid: str) -> str:
    """Returns the present text of a turn; "" if it is gone."""
    return rows.text("select text from turns where uuid = :uuid", uuid=uuid)


class CutTurn(NamedTuple):
    """A tool's turn or one that is not stored whole: its stored text, the bytes missing, and whether all are."""

    seq: int
    uuid: str
    kind: TurnKind
    text: str
    at: str
    tool_name: str
    tool_id: str
    dropped: int
    is_gone: bool
    session_id: str
    project_seq: int


def find_cut(rows: Rows, seqs: Sequence[int]) -> list[CutTurn]:
    """Returns those of these turns (row keys) that are a tool's or not stored whole."""
    sql = f"""select t.seq, t.uuid, t.kind, t.text, t.at, t.tool_name, t.tool_id,
        coalesce(t.dropped, 0), t.gone, case when s.parent = '' then s.id else s.parent end, t.project_seq
        from turns t join sessions s on s.seq = t.session_seq where {in_keys("t.seq", seqs)}
        and (t.kind in ('tool_call', 'tool_result') or t.dropped is not null) order by t.seq"""  # noqa: S608
    rows_of_turns = rows.all(sql)
    turns = [CutTurn(*row) for row in rows_of_turns]
    return [turn._replace(is_gone=bool(turn.is_gone) or is_placeholder(turn.text)) for turn in turns]


def list_latest_prompts(rows: Rows, *, limit: int) -> list[str]:
    """Returns the user's latest prompts, the newest first."""
    sql = "select substr(text, 1, 600) from turns where kind = 'user' order by seq desc limit :limit"
    return rows.column(sql, limit=limit)


class UserPrompt(NamedTuple):
    """The beginning of a user's prompt, which may say that something was done."""

    seq: int
    uuid: str
    project_seq: int
    at: str
    text: str


def list_prompts_after(rows: Rows, seq: int, *, limit: int) -> list[UserPrompt]:
    """Returns the next prompts of transcripts past a row key, in order."""
    sql = f"{_USER_PROMPTS} and t.seq > :seq order by t.seq limit :limit"
    return rows.read(UserPrompt, sql, seq=seq, limit=limit)


def list_prompts_since(rows: Rows, at: str, *, project: int, limit: int) -> list[UserPrompt]:
    """Returns the prompts of a project (0: all) after a time, the latest first."""
    sql = f"{_USER_PROMPTS} and t.at > :at and (:project = 0 or t.project_seq = :project) order by t.seq desc limit :limit"
    return rows.read(UserPrompt, sql, at=at, project=project, limit=limit)


def find_quote(rows: Rows, uuid: str) -> Quote | None:
    """Returns a quoted turn; None if it is gone."""
    sql = """select t.uuid, t.kind, t.text, t.at, s.id, t.project_seq
        from turns t join sessions s on s.seq = t.session_seq where t.uuid = :uuid and t.searchable = 1"""
    return rows.read_one(Quote, sql, uuid=uuid)


class WorkItem(NamedTuple):
    """One item of a session's last digest; `cwd` is where the session began, `root` its project's root."""

    session_id: str
    kind: str
    text: str
    uuid: str
    cwd: str
    root: str


class FailureTurn(NamedTuple):
    """A turn that shows an error, or its fix if `mended`; a sub-agent's session is its parent's."""

    session_id: str
    uuid: str
    mended: bool
    files: str
    text: str


def list_work(rows: Rows, project: int, *, sessions: int) -> list[WorkItem]:
    """Returns the files, commits and branches in the last digests of a project's latest sessions, the latest first."""
    sql = """select s.id, i.kind, i.text, i.uuid, s.cwd, p.root
        from (select seq, id, cwd, last_at, project_seq from sessions where project_seq = :project and parent = ''
        and host <> 'probe' order by last_at desc, seq desc limit :limit) s join projects p on p.seq = s.project_seq
        join digests d on d.session_seq = s.seq join digest_items i on i.digest_seq = d.seq
        where d.version = (select max(o.version) from digests o where o.session_seq = s.seq)
        and i.kind in ('branch', 'commit', 'file') order by s.last_at desc, s.seq desc, i.seq"""
    return rows.read(WorkItem, sql, project=project, limit=sessions)


def list_failure_turns(rows: Rows, error_seq: int, project: int, *, limit: int) -> list[FailureTurn]:
    """Returns the turns of a project that show errors or fixes, the earliest first."""
    sql = """select case when s.parent = '' then s.id else s.parent end, t.uuid, 0, '', '', x.at, t.seq
        from error_seen x join turns t on t.seq = x.turn_seq join sessions s on s.seq = x.session_seq
        where x.error_seq = :error and t.project_seq = :project union all select case when s.parent = '' then s.id
        else s.parent end, case when f.uuid = '' then t.uuid else f.uuid end, 1, f.files, f.text, f.at, t.seq
        from error_fixes f join turns t on t.seq = f.turn_seq join sessions s on s.seq = f.session_seq
        where f.error_seq = :error and t.project_seq = :project order by 6, 3, 7 limit :limit"""
    return rows.read(FailureTurn, sql, error=error_seq, project=project, limit=limit)


# --- who spoke in a turn that was taken for the user's


def find_directory(rows: Rows, turn_seq: int) -> str:
    """Returns the directory in which a turn was said; "" if unknown."""
    sql = "select d.path from turns t join directories d on d.seq = t.directory_seq where t.seq = :seq"
    return rows.text(sql, seq=turn_seq)
