"""Defines a search result: a passage, the memory that it states, or both, with its score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from csmd.knowledge import Memory
from csmd.recall import ranking
from csmd.recall.query import drop_quoted_lines
from csmd.store.passages import Passage
from csmd.text import display, similarity
from csmd.vocabulary import PROMPTS

#: Characters of a turn's id that are shown; `csmd show` accepts them.
SHOWN_ID_CHARACTERS = 8
#: Least share of a memory's words in a passage that states it.
MIN_STATED_SHARE = 0.6


@dataclass(frozen=True, kw_only=True)
class ScoredStatement:
    """A statement with its score: a passage, the memory that it states, or a memory without its passage.

    `words` is its bm25, 0 if only meaning matched. An `is_cold` statement is never offered by itself. `replaced` is the text
    of the superseded statement that matched, if this one takes its place.
    """

    score: float
    features: Mapping[str, float]
    passage: Passage | None = None
    memory: Memory | None = None
    words: float = 0.0
    is_cold: bool = False
    replaced: str = ""

    @property
    def key(self) -> tuple[int, str]:
        """Returns the passage's row key and the memory's id, which identify the statement."""
        return (self.passage.seq if self.passage else 0, self.memory.id if self.memory else "")

    @cached_property
    def text(self) -> str:
        """Returns the passage's text, or the memory's if there is no passage or a person edited or pinned the memory."""
        memory, passage = self.memory, self.passage
        if memory is not None and (passage is None or memory.is_edited or memory.pinned):
            return memory.text
        assert passage is not None
        # Lines that a user quotes with `>` are another speaker's.
        return display.squeeze(drop_quoted_lines(passage.text) if passage.kind in PROMPTS else passage.text)

    @property
    def at(self) -> str:
        """Returns the time of the last statement."""
        return max(self.memory.confirmed_at if self.memory else "", self.passage.at if self.passage else "")

    @property
    def is_by_user(self) -> bool:
        """Whether the user stated it."""
        if self.memory:
            return self.memory.is_personal
        return self.passage is not None and self.passage.kind in PROMPTS

    @property
    def session_id(self) -> str:
        """Returns the session in which it was stated."""
        source = self.passage or self.memory
        return source.session_id if source else ""


def passage_id(passage: Passage) -> str:
    """Returns the id of a passage in receipts: its turn and its offset."""
    return f"{passage.uuid}#{passage.start}"


def cite_passage(passage: Passage) -> str:
    """Returns the speaker, day and short turn id of a passage."""
    speaker = f"the {passage.kind}" if passage.kind in ("user", "assistant") else passage.kind
    return f"{speaker}, {display.day_of(passage.at)}, {passage.uuid[:SHOWN_ID_CHARACTERS]}"


def states_memory(text: str, memory: Memory) -> bool:
    """Whether a passage states a memory."""
    return similarity.share(ranking.stems(memory.text), ranking.stems(text)) >= MIN_STATED_SHARE
