"""Whether one statement says all that another says, in whatever order and voice.

A merge rests on it: where nobody can tell, two statements are two.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from csmd.cache import cached
from csmd.data import word_table
from csmd.memory import contradiction
from csmd.text import display, similarity

#: What is replaced in a statement before it is compared: frames around it, and an order not to.
_FRAMES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), instead)
    for pattern, instead in (
        (r"^(?:as|like) (?:i|we|you)(?:'ve)? (?:said|mentioned|told you|wrote|agreed)(?: before| earlier| already| last time)?[,:]? ", ""),
        (r"^(?:again|to repeat|once more|reminder|remember|note|nb|fyi|important|decision|decided|rule|convention|preference|agreed)(?: again)?[:,] ", ""),
        (r"^(?:please )?(?:also )?(?:note|remember|keep in mind|be aware|bear in mind|don't forget|do not forget|make sure|ensure|be sure)(?:,| that| to)? ", ""),
        (r"^(?:(?:we|i|they|you)(?:'ve| have)? (?:all )?|it (?:was|has been|is) )(?:decided|agreed|settled|concluded)(?: that| to|(?= not to)) ?", ""),
        (r"^(?:you|i|the user|user) (?:told|asked|want|wants|would like|'d like) (?:me|you|us|claude|the assistant) (?:to |(?=not ))", ""),
        (r"^(?:(?:i|we)(?: really)? want|(?:i|we)(?:'d| would) like|(?:the )?user (?:wants|would like)) (?!to |you |us |me )", "use "),
        (r"^(?:the )?user (?=(?:always |never |really )?(?:prefer|like|dislike|hate|love)s\b)", "i "),
        (r"^(?:you |please )?(?:do not|don't|not to)(?= )", "never"),
        (r"\b(?:must|shall|should)(?: not|n't| never)\b", "never"),
        (r"\b(?:must|shall) (?=be (?:[a-z]+[a-df-z]ed|set|kept|run|read|put|done|made|built|written|sent)\b)", ""),
        (r"\b(?:you (?:must|shall|should)|please)\b", ""),
        (r"\b(?:in|for|within|of) (?:this|our|the) (?:repo|repository|project|codebase|code base)\b,?", ""),
    )
)  # fmt: skip
#: Behind these stands why, not what; not where "just" stands before it, which takes the rest back.
_REASON = re.compile(
    r"[,;:.(]?\s*(?<!just )(?<!only )(?<!simply )(?<!merely )(?<!not )\b(?:because|since(?! \d| v\d| version| the \d)|so that|due to|in order to|to (?:avoid|prevent|keep from)|as otherwise|otherwise)\b",
    re.IGNORECASE,
)
#: The words by class; `=name` and `<name` are those that stand for `name`.
_WORDS = word_table("wording_words.txt")
_EMPTY, _COPULA, _CONDITIONS, _DETERMINERS = (
    _WORDS[name] for name in ("empty", "copula", "condition", "determiner")
)  # fmt: skip
_LIMITS = _WORDS["limit"] | _CONDITIONS | similarity.TURNING_WORDS
_SAME_AS = {word: name[1:] for name, words in _WORDS.items() if name.startswith("=") for word in words}
_OPENERS = {word: name[1:] for name, words in _WORDS.items() if name.startswith("<") for word in words} | {
    word: word for word in _WORDS["opener"]
}
_OPENING = _CONDITIONS.union(_OPENERS)

_OUTER = re.compile(r"^[,;:?\"'`()\[\]{}“”‘’]+|[.,;:?!\"'`()\[\]{}“”‘’]+$|^[-–—]+$")
_ENDS_CLAUSE = re.compile(r"[,;:.!?][\"'`”’)\]]*$|^[-–—]+$")
_SENTENCE = re.compile(r"(?<=[.;])\s+|\s+(?=[-–—]+\s)")
#: So many words that say something make a statement that another one can hold.
_LEAST = 3
#: A passage of so many words that stands in another text as it is; words of the heading before it.
_QUOTED, _HEADING = 10, 6


@dataclass(frozen=True, slots=True)
class _Clause:
    """One clause: how it is joined to the one before it, what it denies, its words in order, its parts in any order.

    A part is what opens it ("" for adverbs) and its words; `plain` are all words as they stand there.
    """

    join: str
    denials: tuple[str, ...]
    words: tuple[str, ...]
    parts: tuple[tuple[str, tuple[str, ...]], ...]
    plain: frozenset[str]

    def says(self, other: _Clause) -> bool:
        """Whether it says the same as another one."""
        same = (self.join, self.denials, self.words) == (other.join, other.denials, other.words)
        return same and Counter(self.parts) == Counter(other.parts)


@dataclass(frozen=True, slots=True)
class _Statement:
    """A text taken apart: its clauses, the reasons it gives (as words), and whether it asks."""

    clauses: tuple[_Clause, ...]
    reasons: frozenset[tuple[str, ...]]
    asks: bool


@cached(4096)
def content(text: str) -> frozenset[str]:
    """The words that another text must have to say all of this one: of its clauses, without its reasons."""
    clauses = _taken_apart(text).clauses
    main = frozenset(word for one in clauses for word in (*one.denials, *one.words))
    return main.union(*(words for one in clauses for _, words in one.parts))


def says_same(one: str, other: str) -> bool:
    """Whether two texts say the same: in the same words but for frames, voice, order of parts and empty words."""
    left, right = _taken_apart(one), _taken_apart(other)
    same = bool(left.clauses) and (left.asks, left.reasons) == (right.asks, right.reasons)
    return same and len(left.clauses) == len(right.clauses) and all(map(_Clause.says, left.clauses, right.clauses))


def says_all(one: str, other: str) -> bool:
    """Whether one text says everything that the other says: the same, or the same and more that limits nothing."""
    if says_same(one, other) or _quotes(one, other):
        return True
    long, short = _taken_apart(one), _taken_apart(other)
    size = len(short.clauses)
    if len(content(other)) < _LEAST or long.asks or short.asks or not short.reasons <= long.reasons:
        return False
    if not 0 < size <= len(long.clauses) or not all(map(_Clause.says, long.clauses[: size - 1], short.clauses)):
        return False
    last, more = long.clauses[size - 1], long.clauses[size:]
    if not last.says(short.clauses[-1]) and (more or not _tells_how(last, short.clauses[-1])):
        return False
    return not (more and last.denials) and not any(map(_limits, more))


def _quotes(one: str, other: str) -> bool:
    """Whether one text is another one with a heading before it, or with that as a sentence of its own among others."""
    whole, part = (display.squeeze(text.replace("’", "'")).casefold().rstrip(" .;") for text in (one, other))
    if len(part.split()) < _QUOTED or part not in whole or part.endswith("?") or whole.endswith("?"):
        return False
    before, _, behind = whole.partition(part)
    around = list(map(_word, f"{before} {behind}".split()))
    heads = not before or (before.rstrip().endswith((":", ".")) and len(before.split()) <= _HEADING)
    opens = bool(before) and around[0] in _OPENING
    return heads and not opens and behind.lstrip()[:1] in ("", ".", ";") and not any(map(_is_limit, around))


def _tells_how(one: _Clause, other: _Clause) -> bool:
    """Whether a clause is another one with the means besides, at its end."""
    shorter = one.parts[: len(other.parts)]
    return (
        not one.denials
        and (one.join, other.denials, one.words, shorter) == (other.join, (), other.words, other.parts)
        and all(opener in _WORDS["means"] for opener, _ in one.parts[len(shorter) :])
        and not (one.plain - other.plain) & _LIMITS
    )


def _limits(clause: _Clause) -> bool:
    """Whether a further clause may limit what those before it say."""
    return bool(clause.join) or not clause.words or any(map(_is_limit, clause.plain))


def _is_limit(word: str) -> bool:
    return word in _LIMITS or word.endswith("n't")


# --- taking a text apart


@cached(4096)
def _taken_apart(text: str) -> _Statement:
    plain = display.squeeze(text.replace("’", "'"))
    asks = plain.rstrip(" \"'`)").endswith("?")
    core: list[str] = []
    reasons: list[str] = []
    for sentence in _SENTENCE.split(_without_frames(plain)):
        why = _REASON.search(sentence)
        if why and why.start() > 0 and not set(_bare(sentence[why.end() :])) & _WORDS["no_reason"]:
            core.append(f"{sentence[: why.start()]}.")
            reasons.append(sentence[why.end() :])
        else:
            core.append(sentence)
    return _Statement(tuple(_clauses(" ".join(core).split())), frozenset(map(_bare, reasons)), asks)


def _without_frames(text: str) -> str:
    """A text without the frames around it, and without the place where it holds anyway."""
    before = ""
    while before != text:
        before = text = display.squeeze(text.strip(" \"'"))
        for pattern, instead in _FRAMES:
            text = pattern.sub(instead, text, count=1) or text
    return text


def _bare(text: str) -> tuple[str, ...]:
    return tuple(_root(word) for word in map(_word, text.split()) if word and word not in _EMPTY)


def _word(token: str) -> str:
    return _OUTER.sub("", token).casefold()


def _clauses(tokens: list[str]) -> list[_Clause]:
    """The clauses of a text; one that is only a fronted part belongs to the next."""
    denies = any(word in _WORDS["denial"] or word == "only" or word.endswith("n't") for word in map(_word, tokens))
    empty = _EMPTY if denies else _EMPTY | _WORDS["weight"]
    found: list[_Clause] = []
    fronted: list[str] = []
    words: list[str] = []
    join = ""
    for token in [*tokens, "."]:
        word = _word(token)
        joins = word in ("and", "or", "but", "nor") and bool(words) and _CONDITIONS.isdisjoint(words)
        if word and not joins:
            words.append(word)
        if not words or not (joins or _ENDS_CLAUSE.search(token)):
            continue
        if not found and not fronted and words[0] in _OPENING and token.endswith(","):
            fronted, words = words, []
            continue
        found += _clause(join, fronted, words, empty)
        fronted, words, join = [], [], word if joins and word != "and" else ""
    return found + (_clause(join, [], fronted, empty) if fronted else [])


def _clause(join: str, fronted: list[str], words: list[str], empty: frozenset[str]) -> list[_Clause]:
    if not fronted and words[0] in _OPENERS:  # where the sentence itself begins behind a fronted part
        inside = (set(words[1:at]) <= _DETERMINERS or words[at - 1] in _OPENERS for at in range(2, len(words)))
        at = next(
            (
                at
                for at, is_inside in enumerate(inside, 2)
                if words[at] in _DETERMINERS | _WORDS["begin"] and not is_inside
            ),
            0,
        )
        fronted, words = words[:at], words[at:]
    main, denials, parts = _parts(words, empty)
    parts += _parts(fronted, empty)[2]
    if not (main or denials or parts):
        return []
    held = tuple((opener, tuple(inside)) for opener, inside in parts)
    return [_Clause(join, tuple(denials), tuple(main), held, frozenset((*fronted, *words)))]


def _parts(words: list[str], empty: frozenset[str]) -> tuple[list[str], list[str], list[tuple[str, list[str]]]]:
    """(the words of a clause itself, what it denies, its parts): what is done first, "secrets are stored" as "store secrets"."""
    main: list[str] = []
    behind: list[str] = []
    denials: list[str] = []
    parts: list[tuple[str, list[str]]] = []
    into, is_passive = main, False
    for at, word in enumerate(words):
        in_condition = bool(parts) and parts[-1][0] in _CONDITIONS  # which goes to the end of its clause
        if not in_condition and word in _OPENING:
            parts.append((_OPENERS.get(word, word), []))
            into = parts[-1][1]
        elif word in _COPULA:
            is_passive = is_passive or not in_condition
            into = into if in_condition else behind
        elif not in_condition and (word in ("not", "never") or word.endswith("n't")):
            denials.append("never" if word == "never" else "not")
        elif word.endswith("ly") and len(word) > 5:
            parts.insert(0, ("", [_root(word)]))
        elif word not in empty or _tells_how_often(words, at):
            into.append(word if _is_past(word) and at and not is_passive else _root(word))
    return [*behind[:1], *main, *behind[1:]], denials, parts


def _tells_how_often(words: list[str], at: int) -> bool:
    """Whether "every" or "all" tell how often, or how many."""
    behind = words[at + 1] if at + 1 < len(words) else ""
    return words[at] in ("every", "each", "all") and (behind in _WORDS["counts"] or behind[:1].isdigit())


def _is_past(word: str) -> bool:
    """Whether a word may tell what was done, where no copula stands before it: "the worker used Kafka"."""
    return word in _WORDS["past"] or (word.endswith("ed") and not word.endswith("eed") and len(word) > 4)


def _root(word: str) -> str:
    """The stem of a word, with the letter once that an ending has doubled: committing, commit."""
    word = _SAME_AS.get(word, word)
    if not word.isalpha() or similarity.turns_round(word):
        return word
    root = contradiction.stem(word)
    doubled = root != word and len(root) > 3 and root[-1] == root[-2] and root[-1] in "bgmnprt"
    return root[:-1] if doubled else root
