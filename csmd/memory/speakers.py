"""Looks once more at who spoke in prompts that were stored as the user's, and at what was believed because of them.

A program's words, a sub-agent's prompt and what a prompt quotes are not what a user stated. Killed anywhere it goes on
with the next turn; a turn that is looked at twice is found as it was left.
"""

from __future__ import annotations

from csmd.extraction import shell_commands
from csmd.hosts.claude import tool_calls, transcript
from csmd.model import Memory
from csmd.store import activity, memories, speakers
from csmd.store.core import Store
from csmd.store.speakers import Prompt
from csmd.store.sqlite import Rows
from csmd.text import quotations

#: Turns of one write.
BATCH = 20
#: A prompt of a sub-agent that is shorter could be the user's own words as well.
LEAST_PROMPT = 40


def step(store: Store, *, now: str) -> int:
    """Looks at the next turns that are due; how many."""
    if not store.read(speakers.is_behind):
        return 0
    return store.write(lambda rows: _look(rows, now))


def _look(rows: Rows, now: str) -> int:
    found = speakers.due(rows, limit=BATCH)
    for prompt in found:
        if prompt.kind == "user" and not prompt.of_agent and _is_of_program(rows, prompt):
            speakers.correct(rows, prompt.seq, "notification")
            prompt = prompt._replace(kind="notification")
        _put_right(rows, prompt, now)
        speakers.settle(rows, prompt)
    return len(found)


def _is_of_program(rows: Rows, prompt: Prompt) -> bool:
    if transcript.prompt_kind(prompt.text) == "notification":
        return True
    if len(prompt.text) < LEAST_PROMPT:
        return False
    calls = speakers.handed_over(rows, prompt, tools=tool_calls.AGENTS)
    return any(shell_commands.given(call, "prompt").strip() == prompt.text for call in calls)


def _put_right(rows: Rows, prompt: Prompt, now: str) -> None:
    """Puts right what was chosen from a turn and believed because of it."""
    for sentence in speakers.sentences(rows, prompt):
        if not _stands(prompt.kind, prompt.of_agent, sentence.text, prompt.text):
            speakers.drop(rows, sentence)
        elif prompt.kind != "user" and sentence.authority == "user":
            speakers.relay(rows, sentence)
    for of_turn in memories.stated_in(rows, [prompt.uuid]).values():
        for memory in of_turn:
            if memory.authority == "user" and not speakers.is_of_person(rows, memory):
                _judge(rows, memory, now)


def _judge(rows: Rows, memory: Memory, now: str) -> None:
    """Gives a memory the authority of those who said it; one that nobody said is left to search."""
    standing = [
        kind
        for uuid, kind, of_agent, said in speakers.sources(rows, memory)
        if not kind or _stands(kind, of_agent, memory.text, said)
    ]
    if any(kind in ("", "user") for kind in standing):  # a turn that is gone may have been the user's
        return
    if standing:
        speakers.lower(rows, memory, reason="a program handed it in; nobody is known to have typed it", now=now)
    elif memory.tier != "archive":
        speakers.leave(rows, memory, reason="it is a program's words or a quotation: nobody stated it", now=now)
    activity.count(rows, [(speakers.LOWERED if standing else speakers.ARCHIVED, 1)])


def _stands(kind: str, of_agent: bool, statement: str, said: str) -> bool:
    """Whether somebody in the session said a statement in a turn."""
    if kind == "notification" or of_agent:
        return False
    return kind not in ("user", "relayed") or not quotations.is_of_another(statement, said)
