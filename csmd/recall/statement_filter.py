"""Which statements a session may be shown: nothing forgotten, replaced, cold, in its context or of another checkout."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from csmd.cache import cached
from csmd.extraction import chooser
from csmd.knowledge import Memory
from csmd.memory import supersession
from csmd.recall import compose, hybrid_search
from csmd.recall.hybrid_search import ScoredStatement
from csmd.recall.visibility import attention, is_injectable, is_of_other_checkout, may_show
from csmd.store import memories, passages, session_context, tombstones, turns
from csmd.store.sqlite import Rows
from csmd.text import display, prose, tokens

#: Where a part of a sentence begins, how many of these are looked at, and how many sentences in a row may be one memory.
_BREAK = re.compile(r"[:;,]\s+|\s[-\u2013\u2014]+\s")
MAX_BREAKS, MAX_IN_A_ROW = 6, 5


class StatementFilter(Protocol):
    """Leaves out of some statements those that may not be shown; with `questions` those that only ask may be."""

    def __call__(self, statements: Sequence[ScoredStatement], *, questions: bool = False) -> list[ScoredStatement]: ...


def statement_filter(
    rows: Rows, *, places: Sequence[int], session_id: str, prompt: str, key: bytes, asking: str = ""
) -> StatementFilter:
    """A function that leaves out of some statements those that may not be shown to a session in the directory `asking`.

    What replaced a superseded memory takes its place. What is cold as a memory was still said, like all that never became
    one: it may stand next to what is not, and is marked.
    """
    in_context = session_context.ids_in_context(rows, session_id) if session_id else frozenset[str]()
    since = session_context.conversation_since(rows, session_id) if session_id else ""
    attention_of, near = attention(rows, places), session_context.recent_sessions(rows, places, session_id)
    normalised_prompt = tokens.normalise(prompt)

    def is_shown(memory: Memory) -> bool:
        if memory.project_seq not in places or memory.id in in_context or not is_injectable(memory):
            return False
        return may_show(memory, "WARM", near=near) and not is_of_other_checkout(rows, memory, asking=asking)

    def is_cold(memory: Memory) -> bool:
        return attention_of(memory) == "COLD" and not memory.pinned

    def tells(statement: ScoredStatement) -> bool:
        """Whether a statement says anything besides what is asked, questions and what its speaker is about to look at."""
        if statement.memory is not None and statement.memory.pinned:
            return True
        return tokens.normalise(statement.text) != normalised_prompt and compose.has_statement(statement.text)

    def choose(statements: Sequence[ScoredStatement], *, questions: bool = False) -> list[ScoredStatement]:
        # A thread may lead to what was moved out of these places, or behind a wall, since it was linked.
        statements = [
            statement
            for statement in statements
            if statement.passage is None or statement.passage.project_seq in places
        ]
        quoted = [statement.passage for statement in statements if statement.passage]
        quotable = turns.filter_quotable(
            rows,
            [passage.turn_seq for passage in quoted],
            session_id=session_id,
            since=since,
            hashed=lambda name: tokens.keyed_hash(name, key),
        )
        by_turn = memories.memories_by_turn(rows, [passage.uuid for passage in quoted])
        stated = [
            *itertools.chain(*by_turn.values()),
            *(statement.memory for statement in statements if statement.memory),
        ]
        superseded = {memory.id: memory for memory in stated if memory.superseded_by}
        replaced = supersession.read_replacements(rows, superseded.values())
        given_up = supersession.read_given_up(rows, places) if stated else {}
        chosen: list[ScoredStatement] = []
        quotes: dict[int, ScoredStatement] = {}
        for statement in statements:
            passage = statement.passage
            if passage and (hybrid_search.passage_id(passage) in in_context or passage.turn_seq not in quotable):
                continue
            of_turn = by_turn.get(passage.uuid, []) if passage else []
            own = (
                [statement.memory]
                if statement.memory
                else [each for each in of_turn if hybrid_search.states_memory(statement.text, each)]
            )
            if any(memory.gives_way or memory.id in given_up for memory in own):
                older = [memory for memory in own if memory.gives_way or memory.id in given_up]
                heirs = [supersession.find_heir(rows, given_up.get(memory.id, memory)) for memory in older]
                warm = [heir for heir in heirs if heir and is_shown(heir) and not is_cold(heir)]
                chosen += [replace(statement, memory=heir, passage=None, replaced=statement.text) for heir in warm]
                continue
            if not own and supersession.find_restated(
                statement.text, at=statement.at, session=statement.session_id, replaced=replaced
            ):
                continue
            if not all(map(is_shown, own)) or not (questions or tells(statement)):
                continue
            quote = replace(statement, memory=own[0] if own else None)
            if any(map(is_cold, own)):
                quote = replace(statement, memory=None, is_cold=True)
                if passage is None or statement.text != quote.text:
                    continue
            quotes[len(chosen)] = statement
            chosen.append(quote)
        forgotten = _find_forgotten(rows, list(quotes.values()), key)
        return [statement for at, statement in enumerate(chosen) if at not in quotes or quotes[at].key not in forgotten]

    return choose


def _find_forgotten(rows: Rows, statements: Sequence[ScoredStatement], key: bytes) -> set[tuple[int, str]]:
    """The keys of the statements that say what was forgotten; what no hash leads to is not looked up one by one."""
    if not tombstones.has_kind(rows, "memory"):
        return set()
    around = passages.surrounding_text(rows, [statement.passage for statement in statements if statement.passage])
    wordings: dict[tuple[int, str], Mapping[str, bool]] = {}
    for statement in statements:
        wordings_of_text = _wordings(
            statement.passage.text if statement.passage else statement.text, *around.get(statement.key[0], ())
        )
        wordings[statement.key] = (
            {**wordings_of_text, **_wordings(statement.text)} if statement.memory else wordings_of_text
        )
    hashes = {which: tombstones.hashes_of_texts(texts, key) for which, texts in wordings.items()}
    known_hashes = tombstones.match_hashes(rows, itertools.chain.from_iterable(hashes.values()))
    forgotten: set[tuple[int, str]] = set()
    for statement in statements:
        is_forgotten = partial(
            tombstones.is_forgotten,
            rows,
            authority="user" if statement.passage and statement.passage.kind == "user" else "assistant",
            project=statement.passage.project_seq if statement.passage else 0,
            at=statement.at,
            key=key,
        )
        if known_hashes & hashes[statement.key] and any(map(is_forgotten, wordings[statement.key])):
            forgotten.add(statement.key)
    return forgotten


@cached(256)
def _wordings(text: str, before: str = "", after: str = "") -> Mapping[str, bool]:
    """The forms in which a memory may say what a text says: what is chosen of it, each sentence, and its parts.

    A part is what follows a break in a sentence ("no, wrong: the port is 8443"), or several sentences in a row, of which the
    value is False: a memory has these in the very same words. With what a turn says `before` and `after` the text also
    the forms of which it is a part only.
    """
    if before or after:
        others = _wordings(before).keys() | _wordings(after).keys()
        longer = _wordings("\n".join([before, text, after]))
        return {**{form: nearly for form, nearly in longer.items() if form not in others}, **_wordings(text)}
    sentences = prose.split_sentences(display.squeeze(text))
    in_a_row = {
        " ".join(sentences[start : start + length]): False
        for length in range(2, MAX_IN_A_ROW + 1)
        for start in range(len(sentences) - length + 1)
    }
    parts = {
        sentence[at:]: True
        for sentence in sentences
        for at in (0, *(match.end() for match in itertools.islice(_BREAK.finditer(sentence), MAX_BREAKS)))
    }
    return {**in_a_row, **dict.fromkeys(chooser.find_wordings(text), True), **parts}
