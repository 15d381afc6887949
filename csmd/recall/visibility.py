"""What may be shown: which projects a place sees, which memories and passages a session may be offered, what it knows anyway."""

from __future__ import annotations

import itertools
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, Protocol

from csmd.cache import cached
from csmd.capture import project_identity
from csmd.errors import BadInput
from csmd.extraction import chooser
from csmd.hosts.adapters import of_session
from csmd.knowledge import Memory
from csmd.memory import confidence, scope, supersession
from csmd.recall import compose, hybrid_search
from csmd.recall.hybrid_search import ScoredStatement
from csmd.store import files, instruction_rows, memories, passages, projects, receipts, tombstones, turns
from csmd.store.sqlite import Rows
from csmd.text import display, prose, similarity, tokens
from csmd.vocabulary import OWNER, Attention, Tier

# --- places


def scopes(rows: Rows, path: str, *, start: str = "") -> list[int]:
    """The row keys that a place sees: its project's, its workspace's and everybody's; `start` is its session's."""
    return project_identity.scopes(rows, path, start=start)


def find_searchable_places(rows: Rows, project: str, *, asking: str) -> list[int] | None:
    """The project rows that a question may see: those of one project or, with "", of all; None for really all.

    A wall holds for both: what is behind one is seen only when `asking`, the directory in which the question is put, is
    behind it too. BadInput when the project that it is about is not.
    """
    if not project:
        return find_visible_places(rows, asking=asking)
    inside = project_identity.wall(rows, project) if asking not in ("", OWNER, project) else 0
    if inside and inside != project_identity.wall(rows, asking):
        raise BadInput(
            f"{project} is in the workspace {projects.name_of(rows, inside)}, and you are not",
            hint=f"ask from there: cd '{project}'",
        )
    return scopes(rows, project)


def find_visible_places(rows: Rows, *, asking: str) -> list[int] | None:
    """The project rows that may be seen from a directory, whatever the question is about; None for really all."""
    return None if asking == OWNER else projects.visible(rows, inside=project_identity.wall(rows, asking))


def is_visible(rows: Rows, project: int, *, asking: str) -> bool:
    """Whether what belongs to a project's row may be seen from a directory."""
    places = find_visible_places(rows, asking=asking)
    return places is None or project in places


# --- memories

#: Origins of what nobody said: saved by an assistant by itself, or counted over sessions.
UNSTATED = frozenset({"model_saved", "inferred"})


def attention(rows: Rows, places: Sequence[int]) -> Callable[[Memory], Attention]:
    """How present a memory of these places is today."""
    days = {place: projects.active_day(rows, place) for place in places}
    return lambda memory: confidence.attention(
        today=days[memory.project_seq], hot_until=memory.hot_until, warm_until=memory.warm_until
    )


def is_injectable(memory: Memory) -> bool:
    """Whether a memory may be shown unasked: not superseded, refuted or judged worthless, and from a speaker who is believed.

    What csmd counted, or an assistant saved by itself, waits until the user stated, pinned or reviewed it (design section 2).
    """
    believed = memory.authority != "external" or bool(memory.author)
    holds = not (memory.gives_way or memory.is_refuted) and (memory.pinned or memory.tell != "never")
    return holds and believed and (memory.pinned or memory.origin not in UNSTATED)


def is_of_other_checkout(rows: Rows, memory: Memory, *, asking: str) -> bool:
    """Whether a memory is about a worktree or branch ("this branch", "in ../spike") in another checkout than `asking`'s.

    What a branch is checked out as is not stored: what was said of one holds for the checkout that it was said in.
    """
    if memory.scope != "project":
        return False
    return _is_said_of_other_checkout(rows, memory.text, lambda rows: memories.directory_of(rows, memory), asking)


def is_quote_of_other_checkout(rows: Rows, text: str, turn_seq: int, *, asking: str) -> bool:
    """Whether words of a turn are about a worktree or branch in another checkout than `asking`'s."""
    return _is_said_of_other_checkout(rows, text, lambda rows: turns.directory_of(rows, turn_seq), asking)


def _is_said_of_other_checkout(rows: Rows, text: str, directory: Callable[[Rows], str], asking: str) -> bool:
    named = scope.named_checkout(text)
    said_in = directory(rows) if named else ""
    if not said_in:
        return False
    there = project_identity.checkout(said_in, disk=files)
    if named.startswith("../"):
        there = project_identity.checkout(posixpath.normpath(posixpath.join(there, named)), disk=files)
    return not asking or project_identity.checkout(asking, disk=files) != there


#: When a memory of a tier is shown on a prompt that it matches; what a start is told says evidence.py. "near" is only to the
#: session that said it and the one after. How long each lasts is stored, in active days (memory/confidence.py).
ON_MATCH: dict[Tier, Literal["always", "near", "never"]] = {
    "session": "near",
    "daily": "always",
    "durable": "always",
    "archive": "never",
}


def may_show(memory: Memory, attention: Attention, *, near: Collection[str]) -> bool:
    """Whether a memory may be shown to a session that it matches; `near` are that session and the one before it."""
    if memory.pinned:
        return memory.tier != "archive"
    when = ON_MATCH[memory.tier]
    if attention == "COLD" or when == "never":
        return False
    return when == "always" or any(source.session_id in near for source in memory.provenance)


# --- passages

#: Where a part of a sentence begins, how many of these are looked at, and how many sentences in a row may be one memory.
_BREAK = re.compile(r"[:;,]\s+|\s[-\u2013\u2014]+\s")
MOST_BREAKS, MOST_IN_A_ROW = 6, 5


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
    in_context = receipts.ids_in_context(rows, session_id) if session_id else frozenset[str]()
    since = receipts.said_since(rows, session_id) if session_id else ""
    attention_of, near = attention(rows, places), receipts.recent_sessions(rows, places, session_id)
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
        quotable = turns.quotable(
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
    if not tombstones.has(rows, "memory"):
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
    sentences = prose.sentences(display.squeeze(text))
    in_a_row = {
        " ".join(sentences[start : start + length]): False
        for length in range(2, MOST_IN_A_ROW + 1)
        for start in range(len(sentences) - length + 1)
    }
    parts = {
        sentence[at:]: True
        for sentence in sentences
        for at in (0, *(match.end() for match in itertools.islice(_BREAK.finditer(sentence), MOST_BREAKS)))
    }
    return {**in_a_row, **dict.fromkeys(chooser.wordings(text), True), **parts}


# --- what the assistant is told anyway

#: A longer line is a paste, not an instruction.
LONGEST_LINE = 2000


def never(statement: str) -> bool:
    """A filter for a reader who is told nothing anyway."""
    del statement
    return False


def instructions_filter(rows: Rows, places: Sequence[int], session_id: str) -> Callable[[str], bool]:
    """A function that says whether what a session's assistant loads anyway states something in these places.

    Of directories that were merged each must state it: it is unknown from which of them the request comes.
    """
    indexes: list[list[SentenceIndex]] = []
    host = of_session(session_id).host
    for place in filter(None, places):
        texts = [
            instruction_rows.instruction_texts(rows, [merged], host)
            for merged in sorted(projects.with_merged(rows, place))
        ]
        indexes.append([index_sentences(tuple(some)) for some in texts if some])
    return lambda statement: any(of_place and all(index.says(statement) for index in of_place) for of_place in indexes)


class SentenceIndex:
    """Sentences found by their words."""

    def __init__(self, sentences: Sequence[str]) -> None:
        self._sentences = sentences
        self._with: dict[str, list[int]] = {}
        for number, sentence in enumerate(sentences):
            for stem in tokens.content_stems(sentence):
                self._with.setdefault(stem, []).append(number)

    def says(self, statement: str) -> bool:
        """Whether each sentence of a statement is said here, in the same words or among more."""
        sentences = prose.sentences(display.squeeze(statement))
        telling = [sentence for sentence in sentences if similarity.gist(sentence).stems]
        return bool(telling) and all(map(self._says, telling))

    def _says(self, sentence: str) -> bool:
        stems = similarity.gist(sentence).stems
        shared = Counter(number for stem in stems for number in self._with.get(stem, ()))
        candidates = (
            self._sentences[at] for at, count in shared.items() if count >= similarity.SAME_SHARE * len(stems)
        )
        return any(similarity.repeats(sentence, candidate, within=True) for candidate in candidates)


@cached(8)
def index_sentences(texts: tuple[str, ...]) -> SentenceIndex:
    """An index of what these texts say; the same texts are parsed once."""
    lines = [line for text in texts for line in prose.lines_of_prose(text) if len(line) <= LONGEST_LINE]
    return SentenceIndex(list(dict.fromkeys(sentence for line in lines for sentence in prose.sentences(line))))
