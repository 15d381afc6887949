"""A text taken apart into clauses, as wording is compared by; pure, tables in `frames`.

A clause is its words in order, and the parts that a preposition or a condition opens, in whatever order these stand: "In
an interrupt, never allocate" is "Never allocate in an interrupt". What is done is told the same whether it is ordered,
done by us, or done by nobody named: "secrets are stored" is "store secrets". Reasons are kept beside the clauses.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from csmd import text
from csmd.believe import phrases
from csmd.cache import cached
from csmd.dream import frames

_OUTER = re.compile(r"^[,;:?\"'`()\[\]{}“”‘’]+|[.,;:?!\"'`()\[\]{}“”‘’]+$")
_ENDS_CLAUSE = re.compile(r"[,;:.!?][\"'`”’)\]]*$|^[-–—]+$")
_SENTENCE = re.compile(r"(?<=[.;])\s+|\s+(?=[-–—]+\s)")
_DASH = re.compile(r"^[-–—]+$")
DENIED = re.compile(r"(?:n't|n’t)$")

#: A part of a clause: what opens it ("" for the adverbs), and its words.
Part = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Clause:
    """What one clause says: how it is joined to the one before it, its words in order, and its parts in any order.

    `plain` are its words as they stand there.
    """

    join: str
    words: tuple[str, ...]
    parts: tuple[Part, ...]
    plain: frozenset[str]

    @property
    def denies(self) -> bool:
        """Whether something in it is denied."""
        inside = (*self.words, *(word for _, words in self.parts for word in words))
        return any(word in ("not", "never", "no", "none", "cannot", "nor") for word in inside) or any(
            opener == "without" for opener, _ in self.parts
        )

    def says(self, other: Clause) -> bool:
        """Whether it says the same as another one."""
        return (self.join, self.words) == (other.join, other.words) and Counter(self.parts) == Counter(other.parts)


@dataclass(frozen=True, slots=True)
class Told:
    """A text taken apart: its clauses, the reasons it gives (as words), and whether it asks."""

    clauses: tuple[Clause, ...]
    reasons: tuple[tuple[str, ...], ...]
    asks: bool

    @property
    def size(self) -> int:
        """How many words say something."""
        return sum(len(one.words) + sum(len(words) for _, words in one.parts) for one in self.clauses)


@cached(4096)
def told(said: str) -> Told:
    """A text taken apart."""
    plain = text.squeeze(said.replace("’", "'"))
    asks = plain.rstrip(" \"'`)").endswith("?")
    core, reasons = _reasons(_unframed(plain))
    return Told(clauses=tuple(_clauses(core)), reasons=tuple(map(_bare, reasons)), asks=asks)


@cached(4096)
def content(said: str) -> frozenset[str]:
    """The words that another text must have to say all of this one: of its clauses, without its reasons."""
    return frozenset(
        word for one in told(said).clauses for words in (one.words, *(w for _, w in one.parts)) for word in words
    )


def _unframed(said: str) -> str:
    """A text without the frames around it, and without the place where it holds anyway."""
    said = said.strip(" \"'")
    again = True
    while again:
        again = False
        for pattern, instead in frames.OPENINGS:
            shorter = pattern.sub(instead, said, count=1)
            again = again or shorter not in (said, "")
            said = shorter or said
    return text.squeeze(frames.HERE.sub(" ", said)) or said


def _reasons(said: str) -> tuple[str, list[str]]:
    """(what is said, why): from where a reason begins to the end of its sentence."""
    core: list[str] = []
    found: list[str] = []
    for sentence in _SENTENCE.split(said):
        match = frames.REASON.search(sentence)
        cut = match is not None and match.start() > 0 and not set(_bare(sentence[match.end() :])) & frames.NO_REASON
        core.append(sentence[: match.start()] + "." if match and cut else sentence)
        found += [sentence[match.end() :]] if match and cut else []
    return " ".join(core), found


def _bare(said: str) -> tuple[str, ...]:
    return tuple(_root(word) for token in said.split() if (word := word_of(token)) and word not in frames.EMPTY)


def word_of(token: str) -> str:
    return "" if _DASH.match(token) else _OUTER.sub("", token).casefold()


def _clauses(said: str) -> list[Clause]:
    """The clauses of a text; one that is a fronted part only belongs to the next."""
    denies = any(
        word in frames.NEGATIONS or word in ("never", "only") or DENIED.search(word)
        for word in map(word_of, said.split())
    )
    empty = frames.EMPTY if denies else frames.EMPTY | frames.WEIGHT
    found: list[Clause] = []
    waiting: list[str] = []
    join = ""
    fronted: list[str] = []
    for token in [*said.split(), "."]:
        word = word_of(token)
        ends = bool(_ENDS_CLAUSE.search(token))
        if word in frames.JOINS and waiting and not _is_condition(waiting):
            found += _clause(join, fronted, waiting, empty)
            fronted, waiting, join = [], [], frames.JOINS[word]
            continue
        if word:
            waiting.append(word)
        if ends and waiting:
            if not found and not fronted and waiting[0] in frames.OPENERS and token.rstrip("\"'`)").endswith(","):
                fronted, waiting = waiting, []
                continue
            found += _clause(join, fronted, waiting, empty)
            fronted, waiting, join = [], [], ""
    if fronted:
        found += _clause(join, [], fronted, empty)
    return found


def _is_condition(words: list[str]) -> bool:
    return any(word in frames.CONDITIONS for word in words)


def _clause(join: str, fronted: list[str], words: list[str], empty: frozenset[str]) -> list[Clause]:
    if not fronted and words[0] in frames.OPENERS:
        fronted, words = _split(words)
    main, parts = _parted(words, empty)
    parts = [*parts, *(_parted(fronted, empty)[1] if fronted else [])]
    return [Clause(join, main, tuple(parts), frozenset((*fronted, *words)))] if main or parts else []


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """A clause that begins with a part, cut where the sentence itself begins; ([], all) where nobody can tell."""
    if words[0] in frames.CONDITIONS:
        return [], words
    for at in range(2, len(words)):
        of_part = words[at - 1] in frames.OPENERS or all(word in frames.DETERMINERS for word in words[1:at])
        if words[at] in frames.BEGINS and not of_part:
            return words[:at], words[at:]
    return [], words


def _parted(words: list[str], empty: frozenset[str]) -> tuple[tuple[str, ...], list[Part]]:
    """(the words of a clause itself, its parts)."""
    main: list[str] = []
    behind: list[str] = []
    adverbs: list[str] = []
    parts: list[tuple[str, list[str]]] = []
    inside: list[str] | None = None
    is_passive = False
    for at, word in enumerate(words):
        # A condition goes to the end of its clause, another part to the verb.
        conditional = bool(parts) and parts[-1][0] in frames.CONDITIONS
        if word in frames.OPENERS and not conditional:
            if not _belongs_to_verb(words, at):
                parts.append((frames.OPENERS[word], []))
                inside = parts[-1][1]
            continue
        if word in (frames.COPULA | frames.DUTY) and not conditional:
            inside = None
            is_passive = is_passive or (word in frames.COPULA and _is_participle(_next(words, at)))
        if word in frames.COPULA or _is_silent(words, at, empty):
            continue
        root = _root(_negation(words, at))
        if word.endswith("ly") and len(word) > 5 and word not in frames.NO_ADVERBS:
            adverbs.append(root)
        elif inside is not None:
            inside.append(root)
        elif is_passive:
            behind.append(root)
        else:
            main.append(f"{root} did" if _is_past(words, at) else root)
    found: list[Part] = [(opener, tuple(told)) for opener, told in parts]
    found += [("", (word,)) for word in sorted(adverbs)]
    return tuple(_in_order(main, behind)), found


def _belongs_to_verb(words: list[str], at: int) -> bool:
    """Whether a word that could open a part belongs to the one before it: "not to", "all of"."""
    before = words[at - 1] if at else ""
    return before in {"to": ("not", "need", "have", "has"), "of": ("all", "each", "free")}.get(words[at], ())


def _is_silent(words: list[str], at: int, empty: frozenset[str]) -> bool:
    """Whether a clause says the same without a word: an empty one, or that somebody must where it is an order anyway."""
    word, behind = words[at], words[at + 1 :]
    if word in ("every", "each", "all") and behind and (behind[0] in frames.COUNTS or behind[0][:1].isdigit()):
        return False  # how often, or how many
    if word not in frames.DUTY:
        return word in empty
    rest = [one for one in behind if one not in ("not", "never", "always", "only")]
    is_done = rest[:1] == ["be"] and _is_participle("".join(rest[1:2])) and word != "should"
    return is_done or (at > 0 and words[at - 1] in frames.ORDERED) or behind[:1] in (["not"], ["never"])


def _in_order(main: list[str], behind: list[str]) -> list[str]:
    """What is done, and to what: "secrets are stored" as "store secrets"; a denial stands first."""
    first = 2 if behind[:1] in (["not"], ["never"], ["only"]) else 1
    words = [*behind[:first], *main, *behind[first:]]
    denials = [word for word in words if word in ("not", "never")]
    return [*denials, *(word for word in words if word not in ("not", "never"))]


def _negation(words: list[str], at: int) -> str:
    """What a word denies: "never" what is never to be, "not" what only is not; any other word is itself."""
    word, before = words[at], words[at - 1] if at else ""
    if DENIED.search(word) and word not in ("can't", "won't"):
        word = "not"
    if word not in ("not", "never"):
        return word
    ordered = at < 2 or words[0] in frames.ORDERED or words[0] in frames.NEGATIONS
    forbids = word == "never" or at == 0 or before in frames.DUTY or (before == "do" and ordered)
    return "never" if forbids else "not"


def _next(words: list[str], at: int) -> str:
    """The next word that says what is done."""
    behind = (word for word in words[at + 1 :] if word not in frames.BETWEEN and not word.endswith("ly"))
    return next(behind, "")


def _is_participle(word: str) -> bool:
    return word in frames.PARTICIPLES or _ends_as_past(word)


def _is_past(words: list[str], at: int) -> bool:
    """Whether a word tells what was done, where no copula stands before it: "the worker used Kafka"."""
    past = words[at] in frames.IRREGULAR_PAST or _ends_as_past(words[at])
    return (
        past
        and at > 0
        and not any(one in frames.COPULA for one in words[:at])
        and words[at - 1] not in ("the", "a", "an")
    )


def _ends_as_past(word: str) -> bool:
    return word.endswith("ed") and not word.endswith("eed") and len(word) > 4


def _root(word: str) -> str:
    """The stem of a word, with the letter once that an ending has doubled: committing, commit."""
    word = frames.SAME_AS.get(word, word)
    if not word.isalpha() or text.turns_round(word):
        return word
    root = phrases.stem(word)
    doubled = root != word and len(root) > 3 and root[-1] == root[-2] and root[-1] in "bgmnprt"
    return root[:-1] if doubled else root
