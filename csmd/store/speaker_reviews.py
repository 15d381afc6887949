"""Turns whose speaker a transcript corrected after they were distilled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from csmd.knowledge import Memory
from csmd.store import activity, checkpoints, digests, packet_rows
from csmd.store.sqlite import Rows
from csmd.vocabulary import SEARCHABLE, Authority, TurnKind

#: Names of counters.
CORRECTED_COUNTER = "speakers turns"
LOWERED_COUNTER = "speakers lowered"
ARCHIVED_COUNTER = "speakers archived"


class Prompt(NamedTuple):
    """A turn whose speaker is to be reviewed; `kind` is the stored one."""

    seq: int
    uuid: str
    kind: TurnKind
    text: str
    of_agent: bool


class Sentence(NamedTuple):
    """A statement that was chosen from a turn."""

    seq: int
    text: str
    authority: Authority


def correct_speaker(rows: Rows, seq: int, kind: TurnKind) -> None:
    """Corrects the kind of a turn that was taken for the user's, and schedules its review."""
    if rows.run("update turns set kind = :kind where seq = :seq and kind = 'user'", kind=kind, seq=seq):
        if kind not in SEARCHABLE:
            rows.update("turns", seq, searchable=0)
        activity.increment_counters(rows, [(CORRECTED_COUNTER, 1)])
        recheck_turn(rows, seq)


def move_to_agent(rows: Rows, seq: int, kind: TurnKind, *, searchable: int, session: int, agent: int) -> None:
    """Moves a turn from a session to its sub-agent's conversation, which already lists it."""
    was = rows.find("turns", "kind", seq=seq)
    activity.increment_counters(rows, [(CORRECTED_COUNTER, int(was == "user"))])
    rows.update("turns", seq, session_seq=agent, kind=kind, searchable=searchable)
    recheck_turn(rows, seq)
    rows.delete("session_turn", turn_seq=seq, session_seq=session)


def recheck_turn(rows: Rows, seq: int) -> None:
    """Schedules a review of a turn's statements, and removes everything else that was made of it."""
    packet_rows.take_back_packets(rows, str(rows.find("turns", "uuid", seq=seq)))
    digests.clear_sessions_of_turn(rows, seq)
    checkpoints.delete_turn(rows, seq)
    rows.update("turns", seq, speaker_due=1)


def list_speakers_due(rows: Rows, *, limit: int) -> list[Prompt]:
    """Returns the next turns whose speaker is to be reviewed."""
    sql = """select t.seq, t.uuid, t.kind, t.text, s.parent
        from turns t join sessions s on s.seq = t.session_seq where t.speaker_due = 1 order by t.seq limit :limit"""
    return rows.read(Prompt, sql, limit=limit)


def is_speaker_due(rows: Rows) -> bool:
    """Whether the speaker of any turn is to be reviewed."""
    return rows.exists("select 1 from turns where speaker_due = 1 limit 1")


def settle_speaker(rows: Rows, prompt: Prompt) -> None:
    """Marks the speaker of a turn as reviewed."""
    rows.update("turns", prompt.seq, speaker_due=0)


def count_corrected_speakers(rows: Rows, counters: Mapping[str, int]) -> dict[str, int]:
    """Counts of corrected speakers, and how many turns still wait for review."""
    names = {"prompts": CORRECTED_COUNTER, "lowered": LOWERED_COUNTER, "archived": ARCHIVED_COUNTER}
    waiting = rows.number("select count(*) from turns where speaker_due = 1")
    return {**{name: counters.get(counter, 0) for name, counter in names.items()}, "left": waiting}


def list_sentences(rows: Rows, prompt: Prompt) -> list[Sentence]:
    """Returns the statements chosen from a turn."""
    chosen = "select seq, text, authority from statements where turn_seq = :seq order by seq"
    return rows.read(Sentence, chosen, seq=prompt.seq)


def relay_sentence(rows: Rows, sentence: Sentence) -> None:
    """Gives a statement the assistant's authority."""
    rows.update("statements", sentence.seq, authority="assistant")


def drop_sentence(rows: Rows, sentence: Sentence) -> None:
    """Deletes a statement that was not made in the session."""
    rows.delete("statements", seq=sentence.seq)


def list_sources(rows: Rows, memory: Memory) -> list[tuple[TurnKind, int, str]]:
    """Returns (kind, whether a sub-agent's, text) of a memory's stored source turns; kind "" for one that is gone."""
    sql = """select coalesce(t.kind, ''), coalesce(s.parent, '') <> '', coalesce(t.text, '')
        from provenance p left join turns t on t.uuid = p.uuid left join sessions s on s.seq = t.session_seq
        where p.memory_seq = :seq and p.role <> 'beside' order by p.at, p.uuid"""
    return rows.all(sql, seq=memory.seq)
