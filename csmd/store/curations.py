"""Sessions that a language model was asked about, its answers, and its judgements of memories."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from csmd.store import cursors, memories, memory_deletion
from csmd.store.digests import ON_THIS_SIDE
from csmd.store.sqlite import Rows, in_keys

#: The link from a memory to the note that is shown in its place.
CURATED_AS = "curated_as"
#: The stage that counts how often kept answers were dropped.
ANSWERS_STAGE = "answers"
#: The origin of a memory made from a model's answer.
CURATED_ORIGIN = "curated"
#: Characters at the end of an assistant's message that are read.
MAX_PRECEDING_CHARACTERS = 600


class EndedSession(NamedTuple):
    """A session that has ended and waits to be asked about."""

    seq: int
    id: str
    project_seq: int
    root: str
    turns: int
    last_at: str
    asked_upto: int
    """The turn up to which it was asked about before; 0 for never."""


class Prompt(NamedTuple):
    """A prompt that the user typed in a session, and the end of what the assistant said before it."""

    ordinal: int
    uuid: str
    at: str
    text: str
    before: str


def list_waiting(rows: Rows, *, since: str, quiet_before: str, now: str) -> list[EndedSession]:
    """Returns the sessions of people that ended since a time, are fully digested and were not asked about since.

    Newest first.

    A session has ended if the host said so, or if it had no turn between `quiet_before` and `now`.
    """
    sql = """select s.seq, s.id, s.project_seq, p.root, s.turns, s.last_at, coalesce(c.turns, 0)
        from sessions s join projects p on p.seq = s.project_seq join cursors d on d.stage = 'digest'
        and d.subject = cast(s.seq as text) left join curations c on c.session_seq = s.seq where s.parent = ''
        and s.host <> 'probe' and s.turns > coalesce(c.turns, 0) and d.position >= s.turns and s.last_at >= :since
        and (s.last_at not between :quiet_before and :now or exists (select 1 from events e where e.session_id = s.id
        and e.name = 'session_end' and e.at >= s.last_at)) order by s.last_at desc, s.seq desc"""
    return rows.read(EndedSession, sql, since=since, quiet_before=quiet_before, now=now)


def list_stated_memories(rows: Rows, ended: EndedSession) -> list[tuple[int, int, str]]:
    """Returns (ordinal, row key, uuid) of memories first stated in a session since it was last asked about."""
    sql = f"""select st.ordinal, m.seq, p.uuid
        from memories m join provenance p on p.memory_seq = m.seq and p.role = 'states' and p.session_id = m.session_id
        join turns t on t.uuid = p.uuid join session_turn st on st.session_seq = :session and st.turn_seq = t.seq
        where m.session_id = :id and m.twin_of = 0 and m.origin = 'stated'
        and m.superseded_by = '' and m.tier <> 'archive' and st.rewound = 0 and st.ordinal > :after
        and st.ordinal <= :upto and t.project_seq = :project and {ON_THIS_SIDE} order by st.ordinal, m.seq"""  # noqa: S608
    return rows.all(
        sql, session=ended.seq, project=ended.project_seq, id=ended.id, after=ended.asked_upto, upto=ended.turns
    )


def list_prompts(rows: Rows, ended: EndedSession) -> list[Prompt]:
    """Returns the user's prompts in a session since it was last asked about, in order."""
    sql = f"""select st.ordinal, t.uuid, t.at, t.text, coalesce((select substr(b.text, -:end)
        from session_turn sb join turns b on b.seq = sb.turn_seq where sb.session_seq = st.session_seq
        and sb.ordinal < st.ordinal and b.kind = 'assistant' and b.text <> '' order by sb.ordinal desc limit 1), '')
        from session_turn st join turns t on t.seq = st.turn_seq where st.session_seq = :session
        and st.rewound = 0 and st.ordinal > :after and st.ordinal <= :upto and t.kind = 'user'
        and t.source = 'transcript' and t.project_seq = :project and {ON_THIS_SIDE} order by st.ordinal"""  # noqa: S608
    return rows.read(
        Prompt,
        sql,
        session=ended.seq,
        project=ended.project_seq,
        after=ended.asked_upto,
        upto=ended.turns,
        end=MAX_PRECEDING_CHARACTERS,
    )


def judged_sessions(rows: Rows, *, projects: Collection[int]) -> frozenset[str]:
    """Returns the sessions of some projects whose memories a model has judged."""
    sql = f"""select s.id
        from curations c join sessions s on s.seq = c.session_seq where {in_keys("s.project_seq", projects)}
        and exists (select 1 from memories m join judgements j on j.memory_seq = m.seq where m.session_id = s.id)"""  # noqa: S608
    judged_ids = rows.all(sql)
    return frozenset(session_id for (session_id,) in judged_ids)


def is_of_one_project(rows: Rows, ended: EndedSession) -> bool:
    """Whether all turns of a session are of its own project, so that its digest tells of no other."""
    sql = """select 1 from session_turn st
        join turns t on t.seq = st.turn_seq where st.session_seq = :session and t.project_seq <> :project limit 1"""
    return not rows.all(sql, session=ended.seq, project=ended.project_seq)


def find_note(rows: Rows, memory_seq: int) -> str:
    """Returns the id of the note that is shown in a memory's place; "" if there is none."""
    sql = """select n.id from links l join memories n on n.seq = l.to_seq
        where l.from_seq = :seq and l.relationship = 'curated_as' order by l.created_at desc limit 1"""
    return rows.text(sql, seq=memory_seq)


def record_curation(
    rows: Rows, ended: EndedSession, *, questions: int, candidates: int, notes: int, dropped: str, now: str
) -> None:
    """Records that a session was asked about up to its end, with what result, and deletes its kept answers."""
    rows.delete("kept_answers", session_seq=ended.seq)
    figures = {"questions": questions, "candidates": candidates, "notes": notes, "dropped": dropped}
    rows.upsert("curations", "session_seq", session_seq=ended.seq, turns=ended.turns, at=now, **figures)


def find_kept_answer(rows: Rows, session_seq: int, question_hash: str) -> str | None:
    """Returns the kept answer to a question about a session; None if there is none."""
    return rows.find("kept_answers", "text", session_seq=session_seq, question_hash=question_hash)  # type: ignore[no-any-return]


def keep_answer(rows: Rows, session_seq: int, *, question_hash: str, text: str, drops: int, now: str) -> None:
    """Keeps an answer until it is carried out, unless kept answers were dropped since `drops` was read."""
    if count_answer_drops(rows) == drops:
        answer = {"question_hash": question_hash, "text": text, "at": now}
        rows.upsert("kept_answers", "session_seq, question_hash", session_seq=session_seq, **answer)


def drop_answers(rows: Rows) -> None:
    """Drops all kept answers, and those awaited: any of them may contain what was forgotten, purged or redacted."""
    rows.run("delete from kept_answers")
    cursors.move_cursor(rows, ANSWERS_STAGE, "dropped", count_answer_drops(rows) + 1)


def count_answer_drops(rows: Rows) -> int:
    """Returns how often kept answers were dropped."""
    return cursors.read_cursor(rows, ANSWERS_STAGE, "dropped")


def drop_old_answers(rows: Rows, *, before: str) -> None:
    """Drops the answers from before a time, whose sessions are not asked about any more."""
    rows.run("delete from kept_answers where at < :before", before=before)


def record_work_state(rows: Rows, memory_seq: int, *, uuid: str, ended: EndedSession, at: str) -> None:
    """Records that a memory says in what state a session left the work."""
    where = {"session_seq": ended.seq, "turns": ended.turns, "at": at}
    rows.upsert("stands", "memory_seq, uuid", memory_seq=memory_seq, uuid=uuid, **where)


def read_work_states(rows: Rows, session_seqs: Collection[int]) -> dict[str, tuple[str, str]]:
    """Returns session -> (the state in which it left the work, when that was said), of those without later turns."""
    sql = f"""select s.id, m.text, m.created_at from stands x
        join sessions s on s.seq = x.session_seq and s.turns = x.turns join memories m on m.seq = x.memory_seq
        where {in_keys("x.session_seq", session_seqs)} and m.superseded_by = '' order by x.at, m.id"""  # noqa: S608
    newest = rows.all(sql)
    return {session: (text, at) for session, text, at in newest}


def delete_notes_of_turn(rows: Rows, turn_seq: int) -> None:
    """Deletes what a model made of the sessions of a turn whose text has changed, because it may contain that text."""
    drop_answers(rows)
    sql = """select m.seq from session_turn st join stands x on x.session_seq = st.session_seq
        join memories m on m.seq = x.memory_seq where st.turn_seq = :turn and m.origin = :curated and m.pinned = 0"""
    note_seqs = rows.column(sql, turn=turn_seq, curated=CURATED_ORIGIN)
    for memory in memories.by_seqs(rows, note_seqs).values():
        memory_deletion.delete_memory(rows, memory)


def record_judgement(rows: Rows, memory_seq: int, *, uuid: str, tell: str, at: str) -> None:
    """Records when a memory is worth showing; replaces an earlier judgement."""
    rows.delete("judgements", memory_seq=memory_seq)
    rows.insert("judgements", memory_seq=memory_seq, uuid=uuid, tell=tell, at=at)
