"""Who spoke in a stored turn, where it was taken for the user: put right, with what was observed and chosen of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from csmd.model import SEARCHABLE, Authority, Memory, TurnKind
from csmd.store import activity, belief_changes, candidates, checkpoints, digests, memories
from csmd.store.sqlite import Rows

#: Counters of what was corrected: prompts that no user wrote, memories that have the assistant's authority since, and
#: those that are archived.
TURNS, LOWERED, ARCHIVED = "speakers turns", "speakers lowered", "speakers archived"
#: The change of a memory's authority in its history.
AUTHORITY = "authority"
RULE = "rule"


class Prompt(NamedTuple):
    """A turn that is due; `said` is the kind it is stored with."""

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


def correct(rows: Rows, seq: int, kind: TurnKind) -> None:
    """Gives a turn that was taken for the user's the kind that it has; what was made of it is looked at once more."""
    if rows.run("update turns set kind = :kind where seq = :seq and kind = 'user'", kind=kind, seq=seq):
        if kind not in SEARCHABLE:
            rows.run("update turns set searchable = 0 where seq = :seq", seq=seq)
        activity.count(rows, [(TURNS, 1)])
        look_again(rows, seq)


def move_to_agent(rows: Rows, seq: int, kind: TurnKind, *, searchable: int, session: int, agent: int) -> None:
    """Takes a turn out of a session for the conversation of its sub-agent, which lists it already."""
    was = rows.value("select kind from turns where seq = :seq", seq=seq)
    activity.count(rows, [(TURNS, int(was == "user"))])
    rows.run(
        "update turns set session_seq = :agent, kind = :kind, searchable = :searchable where seq = :seq",
        agent=agent,
        kind=kind,
        searchable=searchable,
        seq=seq,
    )
    look_again(rows, seq)
    rows.run("delete from session_turn where turn_seq = :seq and session_seq = :session", seq=seq, session=session)


def look_again(rows: Rows, seq: int) -> None:
    """Has a turn's statements looked at once more, and takes back what else was made of it."""
    candidates.take_back_packets(rows, str(rows.value("select uuid from turns where seq = :seq", seq=seq)))
    digests.take_back(rows, seq)
    checkpoints.take_back(rows, seq)
    rows.insert("speakers_due", "on conflict do nothing", turn_seq=seq)


def due(rows: Rows, *, limit: int) -> list[Prompt]:
    """The next turns that are to be looked at."""
    found = rows.all(
        "select t.seq, t.uuid, t.kind, t.text, s.parent from speakers_due d join turns t on t.seq = d.turn_seq "
        "join sessions s on s.seq = t.session_seq order by d.turn_seq limit :limit",
        limit=limit,
    )
    return [Prompt(int(a), str(b), c, str(d), bool(e)) for a, b, c, d, e in found]


def is_behind(rows: Rows) -> bool:
    """Whether a turn is to be looked at."""
    return rows.value("select 1 from speakers_due limit 1") is not None


def corrected(rows: Rows, counters: Mapping[str, int]) -> dict[str, int]:
    """What was corrected so far, and how many turns are still to be looked at."""
    left = int(rows.value("select count(*) from speakers_due"))
    names = {"prompts": TURNS, "lowered": LOWERED, "archived": ARCHIVED}
    return {**{name: counters.get(counter, 0) for name, counter in names.items()}, "left": left}


def settle(rows: Rows, prompt: Prompt) -> None:
    """Notes that a turn was looked at."""
    rows.run("delete from speakers_due where turn_seq = :seq", seq=prompt.seq)


def handed_over(rows: Rows, prompt: Prompt, *, tools: Sequence[str]) -> list[str]:
    """What the calls of some tools before a turn in its session were given, as JSON; of a turn that answers another, none."""
    marks = ", ".join(f"'{name}'" for name in tools)
    return rows.column(
        "select c.text from turns t join session_turn here on here.turn_seq = t.seq "  # noqa: S608
        "join session_turn there on there.session_seq = here.session_seq and there.ordinal < here.ordinal "
        "join turns c on c.seq = there.turn_seq where t.seq = :seq and t.parent_uuid = '' and c.kind = 'tool_call' "
        f"and c.tool_name in ({marks})",
        seq=prompt.seq,
    )


def sentences(rows: Rows, prompt: Prompt) -> list[Sentence]:
    """What was chosen from a turn."""
    return rows.read(
        Sentence, "select seq, text, authority from statements where turn_seq = :seq order by seq", seq=prompt.seq
    )


def relay(rows: Rows, sentence: Sentence) -> None:
    """Gives a statement the assistant's authority."""
    rows.run("update statements set authority = 'assistant' where seq = :seq", seq=sentence.seq)


def drop(rows: Rows, sentence: Sentence) -> None:
    """Takes a statement away: nobody in the session said it."""
    rows.run("delete from statements where seq = :seq", seq=sentence.seq)


def sources(rows: Rows, memory: Memory) -> list[tuple[str, TurnKind, bool, str]]:
    """(uuid, kind, whether a sub-agent's, text) of the stored turns that state or confirm a memory; kind "" for one that is gone."""
    found = rows.all(
        "select p.uuid, coalesce(t.kind, ''), coalesce(s.parent, '') <> '', coalesce(t.text, '') from provenance p "
        "left join turns t on t.uuid = p.uuid left join sessions s on s.seq = t.session_seq "
        "where p.memory_seq = :seq and p.role <> 'beside' order by p.at, p.uuid",
        seq=memory.seq,
    )
    return [(str(uuid), kind, bool(agent), str(said)) for uuid, kind, agent, said in found]


def is_of_person(rows: Rows, memory: Memory) -> bool:
    """Whether a person has pinned, told, reviewed or changed a memory: what becomes of it is theirs to say."""
    if memory.pinned or memory.origin != "stated":
        return True
    answered = rows.value(
        "select 1 from answers where item = :id or made = :id union all select 1 from belief_changes "
        "where memory_id = :id and by_whom = 'person' and undone_at = '' limit 1",
        id=memory.id,
    )
    return answered is not None


def lower(rows: Rows, memory: Memory, *, reason: str, now: str) -> None:
    """Gives a memory the assistant's authority; what is written of it says why."""
    memories.update_belief(rows, replace(memory, authority="assistant"))
    belief_changes.note(rows, memory.id, AUTHORITY, memory.authority, "assistant", reason, RULE, now)


def leave(rows: Rows, memory: Memory, *, reason: str, now: str) -> None:
    """Leaves to explicit search a memory that nobody stated."""
    lower(rows, memory, reason=reason, now=now)
    belief_changes.archive_memory(rows, replace(memory, authority="assistant"), reason=reason, by=RULE, now=now)
