"""Filters the statements that may be shown to a session.

Removes forgotten and replaced statements, those in the session's context, and those about another checkout.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from csmd.cache import cached
from csmd.extraction import chooser
from csmd.knowledge import Memory
from csmd.memory import supersession
from csmd.recall import compose
from csmd.recall.hybrid_search import ScoredStatement, passage_id, states_memory
from csmd.recall.visibility import attention, is_injectable, is_of_other_checkout, may_show
from csmd.store import memories, passages, session_context, tombstones, turns
from csmd.store.sqlite import Rows
from csmd.text import display, prose, tokens
from csmd.vocabulary import Authority

#: The start of a part of a sentence.
_BREAK = re.compile(r"[:;,]\s+|\s[-\u2013\u2014]+\s")
#: Most parts of a sentence that are compared.
MAX_BREAKS = 6
#: Most consecutive sentences that may be one memory.
MAX_RUN = 5


class StatementFilter:
    """Keeps the statements that may be shown to a session in the directory `asking`.

    A superseded memory is replaced by its successor. A cold memory's words are still returned as a quotation, marked
    `is_cold`.
    """

    def __init__(
        self, rows: Rows, *, places: Sequence[int], session_id: str, prompt: str, key: bytes, asking: str = ""
    ) -> None:
        self._rows = rows
        self._places = places
        self._session_id = session_id
        self._key = key
        self._asking = asking
        self._prompt = tokens.normalise(prompt)
        self._in_context = session_context.ids_in_context(rows, session_id)
        self._since = session_context.find_conversation_start(rows, session_id) if session_id else ""
        self._attention_of = attention(rows, places)
        self._near = session_context.recent_sessions(rows, places, session_id)

    def __call__(self, statements: Sequence[ScoredStatement], *, questions: bool = False) -> list[ScoredStatement]:
        """Returns the statements that may be shown; with `questions` also those that only ask."""
        rows, places = self._rows, self._places
        # A linked passage may since have moved to another project or been isolated.
        statements = [s for s in statements if s.passage is None or s.passage.project_seq in places]
        quoted = [statement.passage for statement in statements if statement.passage]
        quotable_turns = turns.filter_quotable(
            rows,
            [passage.turn_seq for passage in quoted],
            session_id=self._session_id,
            since=self._since,
            hashed=lambda name: tokens.keyed_hash(name, self._key),
        )
        by_turn = memories.memories_by_turn(rows, [passage.uuid for passage in quoted])
        stated = [*itertools.chain(*by_turn.values()), *(s.memory for s in statements if s.memory)]
        superseded = {memory.id: memory for memory in stated if memory.superseded_by}
        replaced = supersession.read_replacements(rows, superseded.values())
        withdrawn = supersession.read_given_up(rows, places) if stated else {}
        # (the statement to look up among the forgotten ones, the statement to show)
        allowed: list[tuple[ScoredStatement | None, ScoredStatement]] = []
        for statement in statements:
            passage = statement.passage
            if passage and (passage_id(passage) in self._in_context or passage.turn_seq not in quotable_turns):
                continue
            own = [statement.memory] if statement.memory else []
            if passage and not own:
                own = [memory for memory in by_turn.get(passage.uuid, []) if states_memory(statement.text, memory)]
            if older := [memory for memory in own if memory.gives_way or memory.id in withdrawn]:
                allowed += [(None, successor) for successor in self._find_successors(statement, older, withdrawn)]
                continue
            at, session = statement.at, statement.session_id
            if not own and supersession.find_restated(statement.text, at=at, session=session, replaced=replaced):
                continue
            candidate = self._quote(statement, own, questions=questions)
            if candidate is not None:
                allowed.append((statement, candidate))
        forgotten = _find_forgotten(rows, [original for original, _ in allowed if original], self._key)
        return [candidate for original, candidate in allowed if original is None or original.key not in forgotten]

    def _find_successors(
        self, statement: ScoredStatement, older: Sequence[Memory], withdrawn: Mapping[str, Memory]
    ) -> list[ScoredStatement]:
        """Returns the successors of a statement's superseded memories that may be shown."""
        heirs = [supersession.find_replacement(self._rows, withdrawn.get(memory.id, memory)) for memory in older]
        return [
            replace(statement, memory=heir, passage=None, replaced=statement.text)
            for heir in heirs
            if heir and self._is_shown(heir) and not self._is_cold(heir)
        ]

    def _quote(self, statement: ScoredStatement, own: Sequence[Memory], *, questions: bool) -> ScoredStatement | None:
        """Returns the statement with its memory, or only its words if that is cold; None if it may not be shown."""
        if not all(map(self._is_shown, own)) or not (questions or self._has_content(statement)):
            return None
        if not any(map(self._is_cold, own)):
            return replace(statement, memory=own[0] if own else None)
        if statement.passage is None:
            return None
        quote = replace(statement, memory=None, is_cold=True)
        return quote if statement.text == quote.text else None

    def _is_shown(self, memory: Memory) -> bool:
        if memory.project_seq not in self._places or memory.id in self._in_context or not is_injectable(memory):
            return False
        is_near = may_show(memory, "WARM", near=self._near)
        return is_near and not is_of_other_checkout(self._rows, memory, asking=self._asking)

    def _is_cold(self, memory: Memory) -> bool:
        return self._attention_of(memory) == "COLD" and not memory.pinned

    def _has_content(self, statement: ScoredStatement) -> bool:
        """Whether a statement adds something: not the prompt itself, a question or an announced step."""
        if statement.memory is not None and statement.memory.pinned:
            return True
        return tokens.normalise(statement.text) != self._prompt and compose.has_statement(statement.text)


def _find_forgotten(rows: Rows, statements: Sequence[ScoredStatement], key: bytes) -> set[tuple[int, str]]:
    """Returns the keys of the statements that were forgotten; looks up only statements with a matching hash."""
    if not tombstones.has_kind(rows, "memory"):
        return set()
    context = passages.read_surrounding_text(rows, [statement.passage for statement in statements if statement.passage])
    wordings: dict[tuple[int, str], Mapping[str, bool]] = {}
    for statement in statements:
        text = statement.passage.text if statement.passage else statement.text
        of_memory = _find_wordings(statement.text) if statement.memory else {}
        wordings[statement.key] = {**_find_wordings(text, *context.get(statement.key[0], ())), **of_memory}
    hashes = {statement_key: tombstones.hash_texts(texts, key) for statement_key, texts in wordings.items()}
    known_hashes = tombstones.match_hashes(rows, itertools.chain.from_iterable(hashes.values()))
    forgotten: set[tuple[int, str]] = set()
    for statement in statements:
        passage = statement.passage
        authority: Authority = "user" if passage and passage.kind == "user" else "assistant"
        project = passage.project_seq if passage else 0
        is_forgotten = partial(
            tombstones.is_forgotten, rows, authority=authority, project=project, at=statement.at, key=key
        )
        if known_hashes & hashes[statement.key] and any(map(is_forgotten, wordings[statement.key])):
            forgotten.add(statement.key)
    return forgotten


@cached(256)
def _find_wordings(text: str, before: str = "", after: str = "") -> Mapping[str, bool]:
    """Returns the wordings that a memory of this text may have, each with whether a near match counts.

    These are the chosen statements, each sentence, its part after a break ("no, wrong: the port is 8443"), and runs of
    sentences, which match only word for word. `before` and `after` are the rest of the turn, into which runs may extend.
    """
    if before or after:
        others = _find_wordings(before).keys() | _find_wordings(after).keys()
        longer = _find_wordings("\n".join([before, text, after]))
        longer = {wording: is_near for wording, is_near in longer.items() if wording not in others}
        return {**longer, **_find_wordings(text)}
    sentences = prose.split_sentences(display.squeeze(text))
    wordings: dict[str, bool] = {}
    for length in range(2, MAX_RUN + 1):
        starts = range(len(sentences) - length + 1)
        wordings |= {" ".join(sentences[start : start + length]): False for start in starts}
    wordings |= dict.fromkeys(chooser.find_wordings(text), True)
    for sentence in sentences:
        breaks = itertools.islice(_BREAK.finditer(sentence), MAX_BREAKS)
        wordings |= {sentence[start:]: True for start in (0, *(match.end() for match in breaks))}
    return wordings
