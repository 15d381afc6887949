"""Lists, declares, closes and reopens goals and promises, and closes the promises that the user says are fulfilled.

A goal is marked done, a promise archived. A task that a session left open has no row of its own: an answer with its id
closes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from csmd import data
from csmd.errors import CsmdError
from csmd.knowledge import Memory
from csmd.memory.supersession import ASSISTANT, PERSON, RULE
from csmd.memory.undo import undo_answer
from csmd.store import belief_changes, cursors, goals, journal, memories, turns
from csmd.store.core import Store
from csmd.store.journal import DONE, GOAL, ChangeSet
from csmd.store.sqlite import Rows, in_keys
from csmd.text import prose, sentence, similarity, tokens

Kind = Literal["goal", "promise", "left open", "question"]
STAGE = "open matters"
#: The most promises that are listed or compared with prompts.
MAX_PROMISES = 50
#: New prompts that one step reads.
PROMPT_BATCH = 200
#: Earlier prompts that one step compares with a new promise, which may come from an import.
MAX_PROMPTS_SINCE = 500
#: A sentence is about a promise if it has this share (0-1) of the promise's content words, and MIN_SHARED_STEMS.
MIN_FULFILLED_SHARE = 0.6
MIN_SHARED_STEMS = 2
_TIME_WORDS = data.word_table("word_classes.txt")["when"]


class OpenMatter(NamedTuple):
    """An open goal, promise, task or question; `authority` is that of its speaker."""

    id: str
    kind: Kind
    text: str
    at: str
    project_seq: int
    session_id: str
    authority: str


# --- open matters


def read_goals(rows: Rows, projects: Sequence[int] | None) -> list[OpenMatter]:
    """Returns the open goals of some projects (None: of all), the latest first."""
    return [_to_matter("goal", goal) for goal in goals.list_goals(rows, projects=projects, with_done=False)]


def read_promises(rows: Rows, projects: Sequence[int] | None) -> list[OpenMatter]:
    """Returns the open promises of the user in some projects (None: in all), the latest first."""
    return [_to_matter("promise", promise) for promise in _read_promise_memories(rows, projects)]


def _to_matter(kind: Kind, row: goals.Goal | Memory) -> OpenMatter:
    return OpenMatter(row.id, kind, row.text, row.created_at, row.project_seq, row.session_id, row.authority)


def _read_promise_memories(rows: Rows, projects: Sequence[int] | None, *, after: int = 0) -> list[Memory]:
    return memories.where(
        rows,
        "m.seq > :after and m.gate = 'promissory' and m.authority = 'user' and m.tier <> 'archive' "
        f"and m.superseded_by = '' and m.twin_of = 0 and {memories.NOT_COLLEAGUES} and {in_keys('m.project_seq', projects)} "
        f"order by m.created_at desc, m.seq desc limit {MAX_PROMISES}",
        after=after,
    )


# --- declaring and closing


def declare_goal(
    rows: Rows, *, text: str, project: int, session_id: str, by_person: bool, now: str
) -> tuple[goals.Goal, bool]:
    """Declares a goal and records it in the journal; returns the goal and whether it is new or open again.

    A goal that is open already is declared again only if it becomes the user's.
    """
    authority, by = ("user", PERSON) if by_person else ("assistant", ASSISTANT)
    existing = goals.find_goal(rows, text, project=project, session_id=session_id)
    if existing and not existing.done_at and existing.authority in ("user", authority):
        return existing, False

    def act() -> str:
        return goals.add_goal(rows, project=project, session_id=session_id, text=text, authority=authority, now=now)

    ident = journal.record_answer(rows, act, kind=GOAL, item="", project=project, by=by, now=now).made
    return goals.read_goal(rows, ident), existing is None or existing.done_at != ""


def close(rows: Rows, matter: OpenMatter, *, by: str, why: str, now: str) -> ChangeSet:
    """Closes a matter, and records the answer, so that `reopen` can undo it."""

    def act() -> str:
        if matter.kind == "goal":
            goals.finish_goal(rows, matter.id, now=now)
        elif matter.kind == "promise" and (memory := memories.by_id(rows, matter.id)) is not None:
            belief_changes.archive_memory(rows, memory, reason=why, by=by, now=now)
        return ""

    return journal.record_answer(rows, act, kind=DONE, item=matter.id, project=matter.project_seq, by=by, now=now)


def reopen(rows: Rows, answer: ChangeSet, *, key: bytes, now: str) -> str:
    """Undoes the answer of `close`; returns the text of a goal or promise, "" for a task that a session left open."""
    if memories.by_id(rows, answer.item) is not None or journal.changed_rows(rows, answer.seq):
        return undo_answer(rows, answer, now=now, key=key)
    if answer.undone_at:
        raise CsmdError(f"the answer {answer.id} cannot be undone: it is undone already")
    journal.mark_undone(rows, answer, now=now)
    return goals.reopen_goal(rows, answer.item)


# --- promises that the user says are fulfilled


def is_fulfilled_by(promise: str, text: str) -> bool:
    """Whether a sentence says, without a doubt or a denial and in the words of a promise, that it is fulfilled."""
    parsed = sentence.parse(text)
    if parsed.kind not in ("states", "reports") or sentence.ends_with_question(text) or parsed.is_musing:
        return False
    has = {name for name in ("unfinished", "left", "done", "did") if sentence.has(name, "en", text)}
    if any(map(tokens.turns_round, parsed.words)) or has & {"unfinished", "left"} or not has & {"done", "did"}:
        return False
    subject, words = _subject_stems(promise), tokens.content_stems(text)
    return len(subject & words) >= MIN_SHARED_STEMS and similarity.share(subject, words) >= MIN_FULFILLED_SHARE


def _subject_stems(promise: str) -> frozenset[str]:
    """Returns the stems of the subject of a promise, without its speaker and its date."""
    words = [word for word in tokens.content_words(promise) if "'" not in word and word not in _TIME_WORDS]
    return frozenset(map(tokens.stem, words))


def step(store: Store, *, now: str) -> int:
    """Closes the promises that prompts say are fulfilled; returns the number of new prompts and promises compared."""
    plan = store.read(_plan_step)
    if not (plan.promise or plan.prompt):
        return 0

    def write(rows: Rows) -> None:
        for promise, said_in in plan.fulfilled:
            memory = memories.by_id(rows, promise.id)
            if memory is not None and memory.tier != "archive" and not memory.superseded_by:
                close(rows, _to_matter("promise", memory), by=RULE, why=f"the user said so ({said_in})", now=now)
        for subject, seq in (("memories", plan.promise), ("turns", plan.prompt)):
            if seq:
                cursors.move_cursor(rows, STAGE, subject, seq)

    store.write(write)
    return plan.compared


class _Plan(NamedTuple):
    """The result of a step's reading: the row keys of the last promise and the last prompt (0 if there is none).

    `compared` counts the promises and prompts read, `fulfilled` are promises with the uuid of the prompt that says so.
    """

    promise: int
    prompt: int
    compared: int
    fulfilled: list[tuple[Memory, str]]


def _plan_step(rows: Rows) -> _Plan:
    """Compares the next new promise with the prompts since, or the next prompts with their projects' promises."""
    new_promises = _read_promise_memories(rows, None, after=cursors.read_cursor(rows, STAGE, "memories"))
    if new_promises:
        promise = min(new_promises, key=lambda memory: memory.seq)
        project = promise.project_seq
        prompts_since = turns.list_prompts_since(rows, promise.created_at, project=project, limit=MAX_PROMPTS_SINCE)
        return _Plan(promise.seq, 0, 1, _find_fulfilled([promise], prompts_since))
    prompts = turns.list_prompts_after(rows, cursors.read_cursor(rows, STAGE, "turns"), limit=PROMPT_BATCH)
    fulfilled: list[tuple[Memory, str]] = []
    for project in dict.fromkeys(turn.project_seq for turn in prompts):
        if promises := _read_promise_memories(rows, [project, 0]):
            fulfilled += _find_fulfilled(promises, [turn for turn in prompts if turn.project_seq == project])
    return _Plan(0, prompts[-1].seq if prompts else 0, len(prompts), fulfilled)


def _find_fulfilled(promises: Sequence[Memory], prompts: Sequence[turns.UserPrompt]) -> list[tuple[Memory, str]]:
    """Returns the promises that a prompt declares fulfilled, each with the uuid of the first such prompt."""
    subjects = {promise.id: _subject_stems(promise.text) for promise in promises}
    fulfilled: dict[str, tuple[Memory, str]] = {}
    for turn in prompts:
        words = tokens.content_stems(turn.text)
        for promise in promises:
            if turn.at <= promise.confirmed_at or similarity.share(subjects[promise.id], words) < MIN_FULFILLED_SHARE:
                continue
            if any(is_fulfilled_by(promise.text, text) for text in prose.split_sentences(turn.text)):
                fulfilled.setdefault(promise.id, (promise, turn.uuid))
    return list(fulfilled.values())
