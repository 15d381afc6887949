"""Corrects statements and memories of a prompt that was taken for the user's, once the transcript names the speaker.

The words of a program, the prompt of a sub-agent and quotations are not the user's statements. Checking a turn twice
changes nothing more.
"""

from __future__ import annotations

from dataclasses import replace

from csmd.extraction import verbatim_statements
from csmd.knowledge import Memory
from csmd.store import activity, belief_changes, memories, speaker_reviews
from csmd.store.core import Store
from csmd.store.speaker_reviews import Prompt
from csmd.store.sqlite import Rows
from csmd.text import quotations

RULE = "rule"
#: Turns that one write checks.
BATCH = 20


def step(store: Store, *, now: str) -> int:
    """Checks the next turns that are due; returns their number."""
    if not store.read(speaker_reviews.is_speaker_due):
        return 0
    return store.write(lambda rows: _check_turns(rows, now))


def _check_turns(rows: Rows, now: str) -> int:
    prompts = speaker_reviews.list_speakers_due(rows, limit=BATCH)
    for prompt in prompts:
        _correct_statements(rows, prompt, now)
        speaker_reviews.settle_speaker(rows, prompt)
    return len(prompts)


def _correct_statements(rows: Rows, prompt: Prompt, now: str) -> None:
    """Corrects the statements chosen from a turn, and the memories that rest on it."""
    for sentence in speaker_reviews.list_sentences(rows, prompt):
        if not _is_stated(prompt.kind, prompt.of_agent, sentence.text, prompt.text):
            speaker_reviews.drop_sentence(rows, sentence)
        elif prompt.kind != "user" and sentence.authority == "user":
            speaker_reviews.relay_sentence(rows, sentence)
    for of_turn in memories.memories_by_turn(rows, [prompt.uuid]).values():
        for memory in of_turn:
            if memory.authority == "user" and not belief_changes.is_of_person(rows, memory):
                _correct_memory(rows, memory, now)


def _correct_memory(rows: Rows, memory: Memory, now: str) -> None:
    """Gives a memory the authority of those who said it; archives one without a speaker."""
    sources = speaker_reviews.list_sources(rows, memory)
    speakers = [kind for kind, agent, text in sources if not kind or _is_stated(kind, bool(agent), memory.text, text)]
    if any(kind in ("", "user") for kind in speakers):  # a deleted turn may have been the user's
        return
    nobody = "it is a program's words or a quotation, not a statement"
    reason = "a program handed it in; it is not known to be typed" if speakers else nobody
    if speakers or memory.tier != "archive":
        belief_changes.lower_authority(rows, memory, reason=reason, by=RULE, now=now)
    if not speakers and memory.tier != "archive":
        lowered = replace(memory, authority="assistant")
        belief_changes.archive_memory(rows, lowered, reason=reason, by=RULE, now=now)
    counter = speaker_reviews.LOWERED_COUNTER if speakers else speaker_reviews.ARCHIVED_COUNTER
    activity.increment_counters(rows, [(counter, 1)])


def _is_stated(kind: str, of_agent: bool, statement: str, text: str) -> bool:
    """Whether a statement was made in a turn of this kind and text by its speaker, and not quoted."""
    if kind == "notification" or of_agent:
        return False
    if kind not in ("user", "relayed") or statement in verbatim_statements.find_picks(text):
        return True
    return not quotations.is_of_another(statement, text)
