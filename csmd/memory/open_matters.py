"""What is open: goals and promises, how each is closed and opened again, and what the user says to have done.

A goal is done, a promise is archived. What a session left to do is no row of its own: an answer with its id closes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from csmd import data
from csmd.errors import CsmdError
from csmd.memory.supersession import RULE
from csmd.memory.undo import undo_answer
from csmd.store import belief_changes, checkpoints, cursors, journal, memories, turns
from csmd.store.core import Store
from csmd.store.journal import DONE, ChangeSet
from csmd.store.sqlite import Rows, in_keys
from csmd.text import prose, sentence, similarity, tokens
from csmd.values import Memory

Kind = Literal["goal", "promise", "left open", "question"]
STAGE = "open matters"
#: Most promises that are listed and compared with what is said.
MOST_PROMISES = 50
#: Turns that one step reads, and those after a promise that came in late.
TURNS, TURNS_SINCE = 200, 500
#: A sentence that says that something was done is about a promise of which it has this share of the content words, two at least.
DONE_SHARE, LEAST_SHARED = 0.6, 2
_WHEN = data.word_table("word_classes.txt")["when"]


class OpenMatter(NamedTuple):
    """One open matter; `session_id` is that of the goal, promise or session, `authority` who said it."""

    id: str
    kind: Kind
    text: str
    at: str
    project_seq: int
    session_id: str
    authority: str


# --- what is open


def read_goals(rows: Rows, places: Sequence[int] | None) -> list[OpenMatter]:
    """The open goals of some projects (None: of all), the latest first."""
    return [
        OpenMatter(goal.id, "goal", goal.text, goal.created_at, goal.project_seq, goal.session_id, goal.authority)
        for goal in checkpoints.goal_list(rows, projects=places, done=False)
    ]


def read_promises(rows: Rows, places: Sequence[int] | None) -> list[OpenMatter]:
    """What the user promised in some projects (None: in all) and nothing closed, the latest first."""
    return list(map(_as_matter, _open_promises(rows, places)))


def _as_matter(promise: Memory) -> OpenMatter:
    return OpenMatter(
        promise.id,
        "promise",
        promise.text,
        promise.created_at,
        promise.project_seq,
        promise.session_id,
        promise.authority,
    )


def _open_promises(rows: Rows, places: Sequence[int] | None, *, after: int = 0) -> list[Memory]:
    return memories.where(
        rows,
        "m.seq > :after and m.gate = 'promissory' and m.authority = 'user' and m.tier <> 'archive' and m.superseded_by = '' and m.twin_of = 0 "
        f"and {memories.OWN} and {in_keys('m.project_seq', places)} order by m.created_at desc, m.seq desc limit {MOST_PROMISES}",
        after=after,
    )


# --- closing


def close(rows: Rows, matter: OpenMatter, *, by: str, why: str, now: str) -> ChangeSet:
    """Closes one matter, and notes what opening it again needs."""

    def act() -> str:
        if matter.kind == "goal":
            checkpoints.finish_goal(rows, matter.id, now=now)
        elif matter.kind == "promise" and (memory := memories.by_id(rows, matter.id)) is not None:
            belief_changes.archive_memory(rows, memory, reason=why, by=by, now=now)
        return ""

    return journal.record_answer(rows, act, kind=DONE, item=matter.id, project=matter.project_seq, by=by, now=now)


def reopen(rows: Rows, answer: ChangeSet, *, key: bytes, now: str) -> str:
    """Takes an answer of `close` back; the text of a goal or a promise, "" of what a session left to do."""
    if memories.by_id(rows, answer.item) is not None:
        return undo_answer(rows, answer, now=now, key=key)
    if answer.undone_at:
        raise CsmdError(f"the answer {answer.id} cannot be undone: it is undone already")
    journal.mark_undone(rows, answer, now=now)
    return checkpoints.reopen_goal(rows, answer.item)


# --- what is said to be done


def is_fulfilled_by(promise: str, text: str) -> bool:
    """Whether a sentence says that what was promised is done: with its words, of what was done, without a doubt or a denial."""
    read = sentence.parse(text)
    if read.kind not in ("states", "reports") or sentence.ends_with_question(text) or read.is_musing:
        return False
    if any(map(tokens.turns_round, read.words)) or any(
        sentence.has(name, "en", text) for name in ("unfinished", "left")
    ):
        return False
    if not (sentence.has("done", "en", text) or sentence.has("did", "en", text)):
        return False
    subject, words = _subject(promise), tokens.content_stems(text)
    return len(subject & words) >= LEAST_SHARED and similarity.share(subject, words) >= DONE_SHARE


def _subject(promise: str) -> frozenset[str]:
    """The stems of what a promise is about, without who gives it and until when."""
    words = [word for word in tokens.content_words(promise) if "'" not in word and word not in _WHEN]
    return frozenset(map(tokens.stem, words))


def step(store: Store, *, now: str) -> int:
    """Closes the promises that turns of the user say to be done; how many new turns and promises it looked at."""
    looked = store.read(_look)
    if not (looked.promise or looked.last):
        return 0

    def write(rows: Rows) -> None:
        for promise, said_in in looked.kept:
            memory = memories.by_id(rows, promise.id)
            if memory is not None and memory.tier != "archive" and not memory.superseded_by:
                close(rows, _as_matter(memory), by=RULE, why=f"the user said so ({said_in})", now=now)
        for subject, seq in (("memories", looked.promise), ("turns", looked.last)):
            if seq:
                cursors.move_cursor(rows, STAGE, subject, seq)

    store.write(write)
    return looked.amount


class _Looked(NamedTuple):
    """A step of the stage: the last promise and the last prompt that it read (row keys, 0 for none), and which promises are kept, as which turn says."""

    promise: int
    last: int
    amount: int
    kept: list[tuple[Memory, str]]


def _look(rows: Rows) -> _Looked:
    """Compares the next promise that came in with what was said since, else the next prompts with the promises of their projects."""
    late = _open_promises(rows, None, after=cursors.cursor(rows, STAGE, "memories"))
    if late:
        promise = min(late, key=lambda memory: memory.seq)
        since = turns.prompts_since(rows, promise.created_at, project=promise.project_seq, limit=TURNS_SINCE)
        return _Looked(promise.seq, 0, 1, _find_kept([promise], since))
    fresh = turns.prompts_after(rows, cursors.cursor(rows, STAGE, "turns"), limit=TURNS)
    kept: list[tuple[Memory, str]] = []
    for project in dict.fromkeys(turn.project_seq for turn in fresh):
        if promises := _open_promises(rows, [project, 0]):
            kept += _find_kept(promises, [turn for turn in fresh if turn.project_seq == project])
    return _Looked(0, fresh[-1].seq if fresh else 0, len(fresh), kept)


def _find_kept(promises: Sequence[Memory], prompts: Sequence[turns.Prompted]) -> list[tuple[Memory, str]]:
    """The promises that a sentence of these prompts says to be done, each with the prompt's uuid."""
    subjects = {promise.id: _subject(promise.text) for promise in promises}
    kept: dict[str, tuple[Memory, str]] = {}
    for turn in prompts:
        words = tokens.content_stems(turn.text)
        for promise in promises:
            if turn.at <= promise.confirmed_at or similarity.share(subjects[promise.id], words) < DONE_SHARE:
                continue
            if any(is_fulfilled_by(promise.text, text) for text in prose.sentences(turn.text)):
                kept.setdefault(promise.id, (promise, turn.uuid))
    return list(kept.values())
