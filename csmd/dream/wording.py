"""Whether one statement says all that another says, whatever its frame, voice, order of parts and empty words; pure.

A merge rests on it: where nobody can tell, two statements are two.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from csmd.cache import cached
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
#: What a reason may not hold: there is more in it than why.
_NO_REASON = frozenset("unless except but only if when until however although though".split())

#: Words without which a sentence says the same. Tense, number, negation and "may" are none of them.
_EMPTY = frozenset(
    "a an the that please ok okay well we you i our your us it them its note this these those do does".split()
)
#: Words without which it does where nothing is denied: "not always" and "not all" tell something.
_WEIGHT = frozenset("really very also so then always now currently actually basically simply all every each".split())
#: Before one of these, or a number, "every" and "all" tell how often, or how many.
_COUNTS = frozenset(
    "second other third fourth few two three four five six seven eight nine ten dozen hundred half".split()
)
_COPULA = frozenset("is are be being been get gets".split())
_DENIALS = frozenset("not never no none nor cannot without".split())
#: What opens a part of a clause -> what opens the same kind of part.
_OPENERS = {
    **{word: word for word in "in on at to for from of with as by before after during per under over against between across through without than".split()},
    "within": "in", "inside": "in", "into": "to", "onto": "to", "via": "by", "using": "with", "prior": "before",
}  # fmt: skip
#: What these open is a condition, to the end of its clause.
_CONDITIONS = frozenset("if when while unless until except whenever where wherever although though".split())
_OPENING = _CONDITIONS.union(_OPENERS)
#: What these open tells more of a positive statement and limits nothing: by what means, as what.
_MEANS = frozenset(("by", "as", "through"))
#: A clause with one of these may take back what was said before it, or limit it.
_LIMITS = similarity.TURNING_WORDS | _CONDITIONS | frozenset(
    """but however only maybe perhaps might may could should would was were had formerly previously usually mostly
    sometimes rather else otherwise whether wrong false untrue doubt ask asks asked think thinks thought always yet
    ever anymore longer true sure necessarily soon long far""".split()
)  # fmt: skip
#: Behind a fronted part the sentence itself begins with one of these.
_DETERMINERS = frozenset("the a an our all each every".split())
_BEGINS = _DETERMINERS | frozenset("we you i it always never don't please use run keep must should no not".split())
#: One word for those that say the same of code and of where things are.
_SAME_AS = {
    "docs": "documentation", "config": "configuration", "db": "database", "prod": "production", "env": "environment",
    "dir": "directory", "folder": "directory", "folders": "directory", "repo": "repository", "repos": "repository",
    "k8s": "kubernetes", "color": "colour", "colors": "colour", "keep": "store", "keeps": "store", "kept": "store",
    "keeping": "store", "lives": "sit", "live": "sit", "resides": "sit", "reside": "sit", "lies": "sit",
    "located": "sit", "execute": "run", "executes": "run", "executed": "run", "executing": "run",
}  # fmt: skip
_IRREGULAR_PAST = frozenset("kept stored wrote sent built ran made took held came put went said told gave".split())

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
        and all(opener in _MEANS for opener, _ in one.parts[len(shorter) :])
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
        if why and why.start() > 0 and not set(_bare(sentence[why.end() :])) & _NO_REASON:
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
    denies = any(word in _DENIALS or word == "only" or word.endswith("n't") for word in map(_word, tokens))
    empty = _EMPTY if denies else _EMPTY | _WEIGHT
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
        at = next((at for at, is_inside in enumerate(inside, 2) if words[at] in _BEGINS and not is_inside), 0)
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
    return words[at] in ("every", "each", "all") and (behind in _COUNTS or behind[:1].isdigit())


def _is_past(word: str) -> bool:
    """Whether a word may tell what was done, where no copula stands before it: "the worker used Kafka"."""
    return word in _IRREGULAR_PAST or (word.endswith("ed") and not word.endswith("eed") and len(word) > 4)


def _root(word: str) -> str:
    """The stem of a word, with the letter once that an ending has doubled: committing, commit."""
    word = _SAME_AS.get(word, word)
    if not word.isalpha() or similarity.turns_round(word):
        return word
    root = contradiction.stem(word)
    doubled = root != word and len(root) > 3 and root[-1] == root[-2] and root[-1] in "bgmnprt"
    return root[:-1] if doubled else root
