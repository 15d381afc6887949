"""A sentence as what it affirms, what it speaks against and which values stand in which slots; pure, tables first.

No grammar is parsed: prepositions, negations and a few verbs cut a sentence into pieces, and each piece is the set of
its stems. What no table names is left as a word like any other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from csmd import text

#: Words by which people mark that they change their mind; they make an amendment surer and none by themselves.
CUE = re.compile(
    r"\b(?:actually|no longer|any ?more|instead|turn(?:s|ed) out|think(?:ing)? again|on second thought|wrong|"
    r"you(?:'|\u2019)re right|from now on|as of now|changed? (?:my|our) mind|scratch that|revert(?:ed)?)\b",
    re.IGNORECASE,
)
#: Verbs that say nothing by themselves: in a slot they stand for any other.
_WEAK = frozenset(
    "use run go be have make do get put need want should must support work come happen let send take".split()
)
_IRREGULAR = {
    "kept": "keep", "written": "write", "wrote": "write", "sent": "send", "built": "build", "rebuilt": "rebuild",
    "goes": "go", "went": "go", "gone": "go", "ran": "run", "running": "run", "made": "make", "took": "take",
    "taken": "take", "held": "hold", "stored": "store", "using": "use", "used": "use", "uses": "use", "has": "have",
    "came": "come", "does": "do", "putting": "put", "got": "get", "cutting": "cut", "drawn": "draw", "chosen": "choose",
    "children": "child", "indices": "index", "libraries": "library",
}  # fmt: skip
#: preposition -> the kind of slot it opens; `out` and `up` belong to the verb.
_WAYS = {
    **dict.fromkeys(("by", "with", "through", "via", "over", "using"), "means"),
    **dict.fromkeys(("in", "on", "at", "to", "into", "inside", "under", "onto", "within"), "place"),
    "from": "source", "for": "extent", "as": "form", "after": "time", "before": "time", "every": "time",
    "until": "time",
}  # fmt: skip
_TIMES = frozenset(
    "nightly daily weekly hourly monthly yearly always once twice monday tuesday wednesday thursday friday saturday "
    "sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays".split()
)
_COPULA = frozenset("is are was were be been being".split())
#: Words that end a slot and belong to none.
_BREAKS = frozenset("and or but because so which that when where if while then than of since unless".split())
#: Words behind which a clause depends on another.
_DEPENDS = frozenset(
    "if when whenever because since which who that where while until unless so as may might could".split()
)
_ADDS = re.compile(r"\b(?:also|too|as well|additionally|besides|in addition|both|each|another)\b", re.IGNORECASE)
_KEEPS = re.compile(r"\b(?:add|keep|restore|bring|re-?add|put back|use|support|allow|show|include)\b", re.IGNORECASE)
_CODE = re.compile(r"`([^`\n]{1,80})`|\"([^\"\n]{1,60})\"")
#: What stands as one token: code, flags, paths, dotted names and versions, words.
_TOKEN = re.compile(
    r"`[^`\n]{1,80}`|--?[a-z][\w-]*|[~.]?[\w-]*(?:[/.][\w-]+)+|[^\W_]+(?:[_'\u2019-][^\W_]+)*|[,;:.!?()\u2014]"
)
_NAME = re.compile(r"^(?:`.*`|--?[a-z].*|.*[/._\d].*|[a-z]+[A-Z].*|[A-Z][a-z]+[A-Z].*|[A-Z]{2,}.*|.+[A-Z].*)$")
_STOPS = frozenset(",;:.!?()\u2014")
#: "no" alone says what there is not, and seldom that something else said there is.
_NEGATIONS = frozenset("not never cannot neither nor".split())
#: Behind a negation these take it back: "don't forget to", "not only".
_NO_NEGATION = frozenset("forget hesitate only just sure necessarily".split())
_REMOVES = frozenset("remove removed drop dropped delete deleted ditch retire retired".split())
_ASIDE = frozenset(
    "completely entirely fully really simply actually currently already still legacy old all any more anymore longer at".split()
)

_OPPOSITES = """
accept reject; accept refuse; enable disable; allow forbid; allow deny; permit forbid; show hide; hidden visible;
include exclude; public private; synchronous asynchronous; sync async; manual automatic; required optional;
mandatory optional; always never; keep drop; keep remove; lazy eager; lazily eagerly; top bottom; first last; true false;
open close; lock unlock; before after; start end; encrypt plaintext; mutable immutable; local global; local remote;
upper lower; uppercase lowercase; left right; ascending descending; add remove; allow block; merge rebase; ignore reject;
increase decrease; static dynamic; single multiple; blocking nonblocking; tabs spaces; opt-in opt-out; on off; yes no
"""


#: Small words that turn a sentence round, where all else is the same.
TURNED = {"on": "off", "off": "on", "before": "after", "after": "before", "with": "without", "without": "with"}


def _stem(word: str) -> str:
    bare = word.strip("`").replace("\u2019", "'").casefold()
    bare = bare.removesuffix("'s").removesuffix("()")
    if not bare.isalpha():
        return bare
    stem = text.stem(_IRREGULAR.get(bare, bare))
    return stem[:-1] if len(stem) > 4 and stem.endswith("y") else stem  # retry as in retries


def _opposites() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for pair in _OPPOSITES.replace("\n", " ").split(";"):
        one, other = (_stem(word) for word in pair.split())
        found[one] = found.get(one, frozenset()) | {other}
        found[other] = found.get(other, frozenset()) | {one}
    return found


#: stem -> the stems of its opposites.
ANTONYMS = _opposites()
_WEAK_STEMS = frozenset(_stem(word) for word in _WEAK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A value in its place: the verb before it ("" for one that says nothing), the kind of preposition, its stems."""

    verb: str
    way: str
    value: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """Something a statement speaks against, and what else stands in the same clause: both stems."""

    what: frozenset[str]
    beside: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One statement taken apart; every set is of stems."""

    order: tuple[str, ...]
    stems: frozenset[str]
    parts: frozenset[str]
    """The stems with the parts of identifiers among them: `wrapper` of `entire-wrapper.sh`."""
    names: frozenset[str]
    """Those that are identifiers, paths, flags, numbers or proper names."""
    main: frozenset[str]
    """Those of its main clause."""
    positive: frozenset[str]
    """Those that it does not speak against anywhere."""
    denied: tuple[Against, ...]
    instead: tuple[Against, ...]
    removed: tuple[Against, ...]
    only: tuple[frozenset[str], ...]
    slots: tuple[Slot, ...]
    renames: tuple[tuple[str, str], ...]
    named: frozenset[str]
    """What it says that something is called."""
    turns: frozenset[str]
    """The small words in it that have an opposite: on, off, before, after."""
    adds: bool
    widens: bool
    keeps: bool
    asks: bool

    def has_near(self, what: frozenset[str]) -> bool:
        """Whether these stems stand close together in it."""
        at = [place for place, stem in enumerate(self.order) if stem in what]
        size = len(what & self.stems)
        return any(what & self.stems <= set(self.order[start : start + 2 * size + 2]) for start in at)


_INSTEAD = re.compile(
    r"\b(?:instead of|rather than|in place of|as opposed to)\s+([^.;:,()\n]{1,80})"
    r"|,\s*(?:and\s+)?(?:not|no)\s+(?!only\b|just\b|in\b|on\b|longer\b|need\b)([^.;:,()\n]{1,60})"
    r"|\bnot\s+(?!only\b|just\b)((?:[\w`'-]+ ){0,2}(?:by |from |in |on |with |at )?[^.;:,()\n]{1,60}?)\s+but\b"
    r"|\breplac(?:e|es|ed|ing)\s+([^.;:,()\n]{1,60}?)\s+(?:with|by)\b",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"[.;:,!?()]\s|[()\n]")
_MOVED = re.compile(
    r"\b(?:mov|migrat|switch|chang|convert|port)(?:e|es|ed|ing|ed over)?\b[^.;:\n]{0,60}?\bfrom\s+([^.;:,\n]{1,60}?)\s+(?:over\s+)?to\b",
    re.IGNORECASE,
)
_ONLY = re.compile(r"\b(?:only|just)\s+(?:the\s+|a\s+)?((?:[\w`./-]+\s*){1,3})", re.IGNORECASE)
_WIDENS = re.compile(r"\b(?:not\s+(?:only|just)|no longer (?:only|just))\b", re.IGNORECASE)
_A_NAME = r"[`\"']?((?:--?)?[\w~][\w./~-]*(?:\(\))?)[`\"']?"
_RENAMES = (
    re.compile(rf"\brenam(?:e|ed|ing)\s+(?:the\s+)?(?:\w+\s+)?{_A_NAME}\s+(?:\w+\s+)?(?:to|into|as)\s+{_A_NAME}", re.IGNORECASE),
    re.compile(rf"{_A_NAME}(?:\s+\w+)?\s+(?:was|were|is|are|has been|have been|got|gets)\s+renamed\s+(?:to|into|as)\s+{_A_NAME}", re.IGNORECASE),
    re.compile(rf"{_A_NAME}(?:\s+\w+)?\s+is\s+now\s+(?:called|named)\s+{_A_NAME}", re.IGNORECASE),
    re.compile(r"`([^`\n]{2,60})`\s+is\s+now\s+`([^`\n]{2,60})`", re.IGNORECASE),
)  # fmt: skip
_CALLED = re.compile(rf"\b(?:is|are|was|be)\s+(?:called|named)\s+{_A_NAME}", re.IGNORECASE)


@lru_cache(maxsize=2048)
def read(said: str) -> Said:
    """A statement taken apart."""
    tokens = [(word, _stem(word)) for word in _TOKEN.findall(said.replace("\u2019", "'"))]
    stems = frozenset(stem for word, stem in tokens if _counts(word, stem))
    names = frozenset(
        stem for at, (word, stem) in enumerate(tokens) if _counts(word, stem) and _is_name(word, first=at == 0)
    )
    denied, instead, moved = _negated(tokens), _against(_INSTEAD, said), _against(_MOVED, said)
    against = frozenset(stem for one in (*_negated(tokens, asides=True), *instead, *moved) for stem in one.what)
    return Said(
        order=tuple(stem for word, stem in tokens if _counts(word, stem)),
        stems=stems, parts=stems | _parts(said), names=names, main=_main(tokens) or stems, positive=stems - against, denied=tuple(denied),
        instead=(*instead, *moved), removed=tuple(_ordered(tokens)), only=_groups(_ONLY, said),
        slots=tuple(_slots(tokens)), renames=_renames(said),
        named=frozenset(found.casefold() for found in _CALLED.findall(said)),
        turns=frozenset(word.casefold() for word, _ in tokens) & TURNED.keys(),
        adds=bool(_ADDS.search(said)), widens=bool(_WIDENS.search(said)), keeps=bool(_KEEPS.search(said)),
        asks=said.rstrip().endswith("?"),
    )  # fmt: skip


def _counts(word: str, stem: str) -> bool:
    """Whether a token says something."""
    if word in _STOPS or not stem or word.endswith("n't"):
        return False
    if word[0] in "`-" or not stem.isalpha():
        return True
    plain = word.casefold()
    return (
        len(stem) > 1 and plain not in text.STOP_WORDS and plain not in text.TURNING_WORDS and stem not in _WEAK_STEMS
    )


def _is_name(word: str, *, first: bool) -> bool:
    return bool(_NAME.match(word)) or (not first and word[:1].isupper())


def _stems_of(said: str) -> frozenset[str]:
    return frozenset(stem for word in _TOKEN.findall(said) if _counts(word, stem := _stem(word)))


def _parts(said: str) -> frozenset[str]:
    return frozenset(_stem(part) for part in text.query_terms(" ".join(re.split(r"[-/._\s]", said))))


def _groups(pattern: re.Pattern[str], said: str) -> tuple[frozenset[str], ...]:
    found = (_stems_of(next(group for group in match.groups() if group)) for match in pattern.finditer(said))
    return tuple(stems for stems in found if stems)


def _against(pattern: re.Pattern[str], said: str) -> list[Against]:
    """What a phrase speaks against, with the rest of its clause; where a comma opens it, with the clause before that."""
    found: list[Against] = []
    for match in pattern.finditer(said):
        what = _stems_of(next(group for group in match.groups() if group))
        begin = len(said[: match.start()].rstrip(", "))
        start = max((stop.end() for stop in _CLAUSE_END.finditer(said, 0, begin)), default=0)
        end = _CLAUSE_END.search(said, match.end())
        beside = _stems_of(said[start : end.start() if end else len(said)]) - what
        if what:
            found.append(Against(what=what, beside=beside))
    return found


def _negated(tokens: list[tuple[str, str]], *, asides: bool = False) -> list[Against]:
    """What stands behind each negation, to the end of its clause and five words at most; what before it is beside."""
    found: list[Against] = []
    for at, (word, _) in enumerate(tokens):
        plain = word.casefold()
        behind = tokens[at + 1 : at + 2]
        no_longer = plain == "no" and bool(behind) and behind[0][0].casefold() == "longer"
        if not (plain in _NEGATIONS or plain.endswith("n't") or no_longer):
            continue
        if not asides and at and tokens[at - 1][0] == ",":
            continue  # "this, not that": _INSTEAD
        if behind and behind[0][0].casefold() in _NO_NEGATION:
            continue
        what = _clause(tokens, at + 1)
        if what and (asides or not _is_aside(tokens, at)):
            found.append(Against(what=what, beside=_before(tokens, at)))
    return found


def _ordered(tokens: list[tuple[str, str]]) -> list[Against]:
    """What is to be removed: an order or "we drop", not what some subject does."""
    found: list[Against] = []
    for at, (word, _) in enumerate(tokens):
        if word.casefold() in _REMOVES and not _before(tokens, at) and not _is_aside(tokens, at):
            what = _clause(tokens, at + 1)
            if what:
                found.append(Against(what=what, beside=frozenset()))
    return found


def _before(tokens: list[tuple[str, str]], at: int) -> frozenset[str]:
    """The stems of the same clause before a word."""
    part: set[str] = set()
    for word, stem in reversed(tokens[:at]):
        if word in _STOPS:
            break
        if _counts(word, stem) and word.casefold() not in _ASIDE:
            part.add(stem)
    return frozenset(part)


def _is_aside(tokens: list[tuple[str, str]], at: int) -> bool:
    """Whether a word stands in a question or a clause that depends on another: what is said there is not stated."""
    clause = [word.casefold() for word, _ in tokens[:at]]
    for back in range(len(clause) - 1, -1, -1):
        if clause[back] in _STOPS:
            break
        if clause[back] in _DEPENDS:
            return True
    return next((word for word, _ in tokens[at:] if word in ".!?"), "") == "?"


def _main(tokens: list[tuple[str, str]]) -> frozenset[str]:
    """The stems of a statement up to what depends on it: a reason, a condition, an example."""
    found: set[str] = set()
    for at, (word, stem) in enumerate(tokens):
        if at and (word in (";", "(", ":") or word.casefold() in _DEPENDS) and len(found) >= 2:
            break
        if _counts(word, stem):
            found.add(stem)
    return frozenset(found)


def _clause(tokens: list[tuple[str, str]], at: int) -> frozenset[str]:
    part: list[str] = []
    for word, stem in tokens[at:]:
        plain = word.casefold()
        if word in _STOPS or plain in _BREAKS or len(part) >= 5:
            break
        if plain not in _ASIDE and _counts(word, stem):
            part.append(stem)
    return frozenset(part)


def _slots(tokens: list[tuple[str, str]]) -> list[Slot]:
    """Every value behind a preposition, a copula or "use", with the verb before it; adverbs of time are values too."""
    found: list[Slot] = []
    for at, (word, _) in enumerate(tokens):
        plain = word.casefold()
        if plain in _TIMES and plain not in ("always", "once", "twice"):
            found.append(Slot(verb=_verb(tokens, at), way="time", value=frozenset((_stem(word),))))
        way = _WAYS.get(plain) or ("means" if plain in ("use", "using") else "")
        if not way and plain in _COPULA:
            way = "is"
        if not way:
            continue
        value = _value(tokens, at + 1, stop_at_ways=True)
        if way == "is" and at + 1 < len(tokens) and _followed_by_way(tokens, at + 1):
            continue  # "is kept for": the verb, not a value
        if value:
            way = "time" if value & _TIME_STEMS else way
            found.append(Slot(verb="" if way == "is" or plain == "use" else _verb(tokens, at), way=way, value=value))
    return found


_TIME_STEMS = frozenset(_stem(word) for word in _TIMES)


def _followed_by_way(tokens: list[tuple[str, str]], at: int) -> bool:
    """Whether the word here is a participle with a preposition or an adverb of time behind it."""
    rest = [word.casefold() for word, _ in tokens[at : at + 2]]
    return len(rest) == 2 and (rest[1] in _WAYS or rest[1] in _TIMES) and rest[0] not in _WAYS


def _value(tokens: list[tuple[str, str]], at: int, *, stop_at_ways: bool) -> frozenset[str]:
    part: list[str] = []
    for word, stem in tokens[at:]:
        plain = word.casefold()
        if (
            word in _STOPS
            or plain in _BREAKS
            or plain in _COPULA
            or (stop_at_ways and plain in _WAYS and plain != "every")
        ):
            break
        if _counts(word, stem):
            part.append(stem)
        if len(part) >= 4:
            break
    return frozenset(part)


def _verb(tokens: list[tuple[str, str]], at: int) -> str:
    """The word before a preposition; "" for one that says nothing, or none."""
    for word, stem in reversed(tokens[:at]):
        if word in _STOPS:
            return ""
        if word.casefold() in ("out", "up", "down", "off", "back"):
            continue
        return stem if _counts(word, stem) else ""
    return ""


def _renames(said: str) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for pattern in _RENAMES:
        for old, new in pattern.findall(said):
            one, other = (name.strip("`\"'.,").casefold() for name in (old, new))
            if one and other and one != other and len(one) > 2 and len(other) > 2 and one not in text.STOP_WORDS:
                found.append((one, other))
    return tuple(dict.fromkeys(found))
