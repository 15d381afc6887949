"""Whether one statement entails another, in whatever order and voice: it says the same, or the same and more.

A merge rests on it: where nobody can tell, two statements are two.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from csmd.cache import cached
from csmd.data import word_table
from csmd.memory import contradiction
from csmd.text import display, tokens

#: Patterns and replacements before statements are compared: frames around them, and orders not to do something.
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
#: A reason follows; not where "just" comes before, which takes the rest back.
_REASON = re.compile(
    r"[,;:.(]?\s*(?<!just )(?<!only )(?<!simply )(?<!merely )(?<!not )\b(?:because|since(?! \d| v\d| version| the \d)|so that|due to|in order to|to (?:avoid|prevent|keep from)|as otherwise|otherwise)\b",
    re.IGNORECASE,
)
#: The words by class; those of `=name` and `<name` stand for `name`.
_WORDS = word_table("entailment_words.txt")
_EMPTY, _COPULA, _CONDITIONS, _DETERMINERS = (
    _WORDS[name] for name in ("empty", "copula", "condition", "determiner")
)  # fmt: skip
_LIMITS = _WORDS["limit"] | _CONDITIONS | tokens.TURNING_WORDS
_SAME_AS = {word: name[1:] for name, words in _WORDS.items() if name.startswith("=") for word in words}
_OPENERS = {word: name[1:] for name, words in _WORDS.items() if name.startswith("<") for word in words} | {
    word: word for word in _WORDS["opener"]
}
_OPENING = _CONDITIONS.union(_OPENERS)

_OUTER = re.compile(r"^[,;:?\"'`()\[\]{}“”‘’]+|[.,;:?!\"'`()\[\]{}“”‘’]+$|^[-–—]+$")
_ENDS_CLAUSE = re.compile(r"[,;:.!?][\"'`”’)\]]*$|^[-–—]+$")
_SENTENCE = re.compile(r"(?<=[.;])\s+|\s+(?=[-–—]+\s)")
#: Fewest words of a statement that another one can entail by saying more.
_LEAST = 3
#: Fewest words of a passage that another text quotes as it is; most words of a heading before it.
_QUOTED, _HEADING = 10, 6


class _Clause(NamedTuple):
    """One clause: its conjunction, what it denies, its words in order, its parts in any order, all words as they are.

    A part is its opener ("" for adverbs) and its words.
    """

    join: str
    denials: tuple[str, ...]
    words: tuple[str, ...]
    parts: tuple[tuple[str, tuple[str, ...]], ...]
    plain: frozenset[str]

    def is_same(self, other: _Clause) -> bool:
        """Whether it says the same as another one."""
        return self[:3] == other[:3] and Counter(self.parts) == Counter(other.parts)

    def adds_means(self, other: _Clause) -> bool:
        """Whether it is another clause with the means besides, at its end."""
        shorter, added = self.parts[: len(other.parts)], self.parts[len(other.parts) :]
        return (
            not self.denials
            and (self.join, other.denials, self.words, shorter) == (other.join, (), other.words, other.parts)
            and all(opener in _WORDS["means"] for opener, _ in added)
            and not (self.plain - other.plain) & _LIMITS
        )

    def may_limit(self) -> bool:
        """Whether it may limit what the clauses before it say."""
        return bool(self.join) or not self.words or any(map(_is_limit, self.plain))


class _Statement(NamedTuple):
    """A parsed text: its clauses, the words of its reasons, and whether it asks."""

    clauses: tuple[_Clause, ...]
    reasons: frozenset[tuple[str, ...]]
    asks: bool


@cached(4096)
def required_words(text: str) -> frozenset[str]:
    """The words that another text must have to entail this one: those of its clauses, without its reasons."""
    clauses = _parse(text).clauses
    main = frozenset(word for clause in clauses for word in (*clause.denials, *clause.words))
    return main.union(*(words for clause in clauses for _, words in clause.parts))


def is_equivalent(one: str, other: str) -> bool:
    """Whether two texts say the same: in the same words but for frames, voice, order of parts and empty words."""
    left, right = _parse(one), _parse(other)
    same_form = left[1:] == right[1:] and 0 < len(left.clauses) == len(right.clauses)
    return same_form and all(map(_Clause.is_same, left.clauses, right.clauses))


def entails(one: str, other: str) -> bool:
    """Whether one text says everything that the other says: the same, or the same and more that limits nothing."""
    if is_equivalent(one, other) or _quotes(one, other):
        return True
    long, short = _parse(one), _parse(other)
    size = len(short.clauses)
    if len(required_words(other)) < _LEAST or long.asks or short.asks or not short.reasons <= long.reasons:
        return False
    if not 0 < size <= len(long.clauses) or not all(map(_Clause.is_same, long.clauses[: size - 1], short.clauses)):
        return False
    last, more = long.clauses[size - 1], long.clauses[size:]
    if not last.is_same(short.clauses[-1]) and (more or not last.adds_means(short.clauses[-1])):
        return False
    return not (more and last.denials) and not any(map(_Clause.may_limit, more))


def _quotes(one: str, other: str) -> bool:
    """Whether one text is another one with a heading before it, or has it as a sentence of its own among others."""
    whole, part = (display.squeeze(text.replace("’", "'")).casefold().rstrip(" .;") for text in (one, other))
    if len(part.split()) < _QUOTED or part not in whole or part.endswith("?") or whole.endswith("?"):
        return False
    before, _, after = whole.partition(part)
    around = list(map(_word, f"{before} {after}".split()))
    is_heading = not before or (before.rstrip().endswith((":", ".")) and len(before.split()) <= _HEADING)
    is_opener = bool(before) and around[0] in _OPENING
    is_whole = after.lstrip()[:1] in ("", ".", ";")
    return is_heading and not is_opener and is_whole and not any(map(_is_limit, around))


def _is_limit(word: str) -> bool:
    return word in _LIMITS or word.endswith("n't")


# --- parsing


@cached(4096)
def _parse(text: str) -> _Statement:
    plain = display.squeeze(text.replace("’", "'"))
    core: list[str] = []
    reasons: set[tuple[str, ...]] = set()
    for sentence in _SENTENCE.split(_without_frames(plain)):
        why = _REASON.search(sentence)
        if why and why.start() > 0:
            words = [word for word in map(_word, sentence[why.end() :].split()) if word and word not in _EMPTY]
            reason = tuple(map(_root, words))
            if not set(reason) & _WORDS["no_reason"]:
                core.append(f"{sentence[: why.start()]}.")
                reasons.add(reason)
                continue
        core.append(sentence)
    asks = plain.rstrip(" \"'`)").endswith("?")
    return _Statement(tuple(_clauses(" ".join(core).split())), frozenset(reasons), asks)


def _without_frames(text: str) -> str:
    """A text without frames around it, and without the place where it holds anyway."""
    before = ""
    while before != text:
        before = text = display.squeeze(text.strip(" \"'"))
        for pattern, instead in _FRAMES:
            text = pattern.sub(instead, text, count=1) or text
    return text


def _word(token: str) -> str:
    return _OUTER.sub("", token).casefold()


def _clauses(tokens: list[str]) -> list[_Clause]:
    """The clauses of a text; one that is only a fronted part belongs to the next."""
    denies = any(word in _WORDS["denial"] or word == "only" or word.endswith("n't") for word in map(_word, tokens))
    empty = _EMPTY if denies else _EMPTY | _WORDS["weight"]
    clauses: list[_Clause] = []
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
        if not clauses and not fronted and words[0] in _OPENING and token.endswith(","):
            fronted, words = words, []
            continue
        clauses += _clause(join, fronted, words, empty)
        fronted, words, join = [], [], word if joins and word != "and" else ""
    return clauses + (_clause(join, [], fronted, empty) if fronted else [])


def _clause(join: str, fronted: list[str], words: list[str], empty: frozenset[str]) -> list[_Clause]:
    """The clause of some words, [] for empty words alone."""
    if not fronted and words[0] in _OPENERS:  # the sentence itself begins after a fronted part

        def begins(at: int) -> bool:
            is_inside = set(words[1:at]) <= _DETERMINERS or words[at - 1] in _OPENERS
            return words[at] in _DETERMINERS | _WORDS["begin"] and not is_inside

        at = next(filter(begins, range(2, len(words))), 0)
        fronted, words = words[:at], words[at:]
    main, denials, parts = _split_words(words, empty)
    parts += _split_words(fronted, empty)[2]
    if not (main or denials or parts):
        return []
    openers = tuple((opener, tuple(inside)) for opener, inside in parts)
    return [_Clause(join, tuple(denials), tuple(main), openers, frozenset((*fronted, *words)))]


def _split_words(words: list[str], empty: frozenset[str]) -> tuple[list[str], list[str], list[tuple[str, list[str]]]]:
    """(A clause's own words, what it denies, its parts): the verb comes first, "secrets are stored" is "store secrets"."""
    subject: list[str] = []
    after: list[str] = []
    denials: list[str] = []
    parts: list[tuple[str, list[str]]] = []
    into, is_passive = subject, False
    for at, word in enumerate(words):
        in_condition = bool(parts) and parts[-1][0] in _CONDITIONS  # which goes to the end of its clause
        if not in_condition and word in _OPENING:
            parts.append((_OPENERS.get(word, word), []))
            into = parts[-1][1]
        elif word in _COPULA:
            is_passive = is_passive or not in_condition
            into = into if in_condition else after
        elif not in_condition and (word in ("not", "never") or word.endswith("n't")):
            denials.append("never" if word == "never" else "not")
        elif word.endswith("ly") and len(word) > 5:
            parts.insert(0, ("", [_root(word)]))
        elif word not in empty or _is_frequency(words, at):
            into.append(word if _may_be_past(word) and at and not is_passive else _root(word))
    return [*after[:1], *subject, *after[1:]], denials, parts


def _is_frequency(words: list[str], at: int) -> bool:
    """Whether "every" or "all" says how often, or how many."""
    after = words[at + 1] if at + 1 < len(words) else ""
    return words[at] in ("every", "each", "all") and (after in _WORDS["counts"] or after[:1].isdigit())


def _may_be_past(word: str) -> bool:
    """Whether a word may say what was done, where no copula comes before it: "the worker used Kafka"."""
    return word in _WORDS["past"] or (word.endswith("ed") and not word.endswith("eed") and len(word) > 4)


def _root(word: str) -> str:
    """The stem of a word, with a letter once that an ending has doubled: committing, commit."""
    word = _SAME_AS.get(word, word)
    if not word.isalpha() or tokens.turns_round(word):
        return word
    root = contradiction.stem(word)
    is_doubled = root != word and len(root) > 3 and root[-1] == root[-2] and root[-1] in "bgmnprt"
    return root[:-1] if is_doubled else root
