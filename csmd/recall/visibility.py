"""Which projects a place sees, what is HOT there, what is known anyway."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from csmd.cache import cached
from csmd.capture import project_identity
from csmd.errors import BadInput
from csmd.memory import confidence
from csmd.memory import confidence as belief
from csmd.model import Attention, Memory, Tier
from csmd.store import projects
from csmd.store.sqlite import Rows
from csmd.text import display, prose, similarity, tokens


def scopes(rows: Rows, path: str, *, start: str = "") -> list[int]:
    """The row keys a place sees: its project's, its workspace's and everybody's; `start` is its session's."""
    return project_identity.scopes(rows, path, start=start)


def places_asked(rows: Rows, project: str, *, asking: str) -> list[int] | None:
    """The rows a question may see: about one project or, with "", about all; None for really all.

    A wall holds for both: what is behind one is seen only when `asking`, the directory in which the
    question is put, is behind it too. BadInput when the project it is about is not.
    """
    if not project:
        return places_seen(rows, asking=asking)
    found = scopes(rows, project)
    if asking and asking != project:
        inside = project_identity.wall(rows, project)
        if inside and inside != project_identity.wall(rows, asking):
            raise BadInput(
                f"{project} is in the workspace {projects.name_of(rows, inside)}, and you are not",
                hint=f"ask from there: cd '{project}'",
            )
    return found


def places_seen(rows: Rows, *, asking: str) -> list[int] | None:
    """The rows that may be seen from a directory, whatever the question is about; None for really all."""
    return projects.visible(rows, inside=project_identity.wall(rows, asking))


def is_seen(rows: Rows, project: int, *, asking: str) -> bool:
    """Whether what belongs to a project's row may be seen from a directory."""
    open_ones = places_seen(rows, asking=asking)
    return open_ones is None or project in open_ones


def attention(rows: Rows, places: Sequence[int]) -> Callable[[Memory], Attention]:
    """How present a memory of these places is today."""
    days = {place: projects.active_day(rows, place) for place in places}
    return lambda memory: belief.attention(
        today=days[memory.project_seq], hot_until=memory.hot_until, warm_until=memory.warm_until
    )


def instructions_filter(rows: Rows, places: Sequence[int]) -> Callable[[str], bool]:
    """Whether CLAUDE.md, or the assistant's own memory, says something already in these places.

    Of directories that were merged each must say it: nobody asks here from which of them.
    """
    sides = [
        [known_sentences(told) for one in sorted(projects.with_merged(rows, place)) if (told := projects.instruction_texts(rows, [one]))]
        for place in places
        if place
    ]  # fmt: skip
    return lambda statement: any(side and all(one.says(statement) for one in side) for side in sides)


#: Fewer words than this stand in many a sentence that says something else.
LEAST_WORDS = 3
#: Words that make a difference of the order of the others, beside those that turn a sentence round.
ORDERING = frozenset({"from", "to", "into", "rather", "but"})
#: A line that is longer is a paste, not an instruction.
LONGEST_LINE = 2000


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence: what it is compared by, its content words in order, and whether their order matters."""

    gist: similarity.Gist
    order: tuple[str, ...]
    ordered: bool


class Known:
    """The sentences of instructions, found by their words; taken apart further when something is like them."""

    def __init__(self, sentences: Sequence[str]) -> None:
        self._sentences = sentences
        self._with: dict[str, list[int]] = {}
        stems: dict[str, str] = {}
        for number, sentence in enumerate(sentences):
            for word in set(tokens.content_words(sentence)):
                stem = stems.get(word) or stems.setdefault(word, tokens.stem(word))
                self._with.setdefault(stem, []).append(number)

    def says(self, statement: str) -> bool:
        """Whether the instructions say what `statement` says, or more in the same words; each of its sentences."""
        asked = [one for part in prose.sentences(display.squeeze(statement)) if (one := said(part)).gist.stems]
        return bool(asked) and all(self._says(one) for one in asked)

    def _says(self, asked: Said) -> bool:
        shared = Counter(number for stem in asked.gist.stems for number in self._with.get(stem, ()))
        enough = similarity.SAME_SHARE * len(asked.gist.stems)
        return any(count >= enough and _holds(said(self._sentences[number]), asked) for number, count in shared.items())


def _holds(told: Said, asked: Said) -> bool:
    if told.gist.turns != asked.gist.turns:
        return False
    contained = len(asked.gist.stems) >= LEAST_WORDS and asked.gist.stems <= told.gist.stems
    replaced = asked.gist.stems - told.gist.stems and told.gist.stems - asked.gist.stems
    same = not replaced and similarity.alike(asked.gist, told.gist, share=similarity.SAME_SHARE)
    if not (contained or same):
        return False
    return not (told.ordered or asked.ordered) or _in_order(asked.order, told.order)


def _in_order(some: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Whether the words that both have come in one in the order of the other; in between may stand more."""
    both = set(some) & set(others)
    left = [word for word in some if word in both]
    right = [word for word in others if word in both]
    shorter, longer = sorted((left, right), key=len)
    rest = iter(longer)
    return all(word in rest for word in shorter)


@cached(512)
def said(sentence: str) -> Said:
    """A sentence as it is compared."""
    gist = similarity.gist(sentence)
    words = tokens.words_of(sentence.replace("\u2019", "'"))
    order = tuple(stem for word in words if (stem := tokens.stem(word)) in gist.stems)
    return Said(gist, order, bool(gist.turns) or not ORDERING.isdisjoint(words))


def known_sentences(texts: Sequence[str]) -> Known:
    """What these texts say, sentence by sentence; the same texts are taken apart once."""
    return _known(tuple(texts))


@cached(8)
def _known(texts: tuple[str, ...]) -> Known:
    lines = [line for body in texts for line in prose.lines_of_prose(body) if len(line) <= LONGEST_LINE]
    return Known(list(dict.fromkeys(sentence for line in lines for sentence in prose.sentences(line))))


def never(statement: str) -> bool:
    """Where nobody is told anything anyway."""
    del statement
    return False


def is_injectable(memory: Memory) -> bool:
    """Whether a memory may be shown unasked: neither superseded nor refuted, and said by somebody we believe.

    What an assistant saved by itself waits until the user stated or reviewed it (design section 2).
    """
    holds = not memory.superseded_by and not memory.is_refuted
    return holds and memory.authority != "external" and memory.origin != "model_saved"


When = Literal["always", "near", "never"]


@dataclass(frozen=True, slots=True)
class Reach:
    """When a tier is put before a session at its start, and when on a prompt that it matches."""

    start: When
    match: When


#: How long each lasts is stored with a memory, in active days: what is COLD reaches nobody (memory/confidence.py).
TIERS: dict[Tier, Reach] = {
    "session": Reach("near", "near"),
    "daily": Reach("near", "always"),
    "durable": Reach("always", "always"),
    "archive": Reach("never", "never"),
}


def is_promised(memory: Memory, *, today: str) -> bool:
    """Whether a memory is a promise for a day (ISO) that has not passed yet."""
    until = confidence.due(memory.text, gate=memory.gate, at=memory.created_at)
    return bool(until) and until >= today and memory.tier != "archive" and not memory.superseded_by


def reaches(memory: Memory, attention: Attention, *, at: Literal["start", "match"], near: Collection[str]) -> bool:
    """Whether a memory may be told at a session's start, or on a match; `near` are that session and the one before it."""
    if memory.pinned:
        return memory.tier != "archive"
    when: When = getattr(TIERS[memory.tier], at)
    if attention == "COLD" or when == "never":
        return False
    return when == "always" or any(source.session_id in near for source in memory.provenance)
