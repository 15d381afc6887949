"""Whether a later statement replaces an earlier one, certainly or perhaps; pure.

A certain replacement gives the same slot of the same subject another value, or denies just what the older statement
affirms. Reasons are left out first: two statements with one reason are not of one subject. Where one of them names more
of the subject than the other (an environment, a component, one use of several) it is doubtful, and a person decides;
where each names something that the other does not, they are of two things. In doubt both statements hold: what is
wrongly replaced is lost, what is wrongly kept is only old.
"""

from __future__ import annotations

import calendar
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, takewhile
from typing import NamedTuple

from csmd import data
from csmd.cache import cached
from csmd.text import prose, tokens
from csmd.text.tokens import STOP_WORDS
from csmd.text.tokens import stem as stem_of_word

# --- how sure a replacement is

#: Signal of a replacement -> how sure it alone makes that the newer statement replaces the older one, with an example.
SIGNALS: Mapping[str, float] = {
    "renamed": 0.95,  # "`cash` is now called `till`" for "The binary is called `cash`"
    "says-instead": 0.9,  # "Use pytest instead of unittest" for "Run the tests with unittest"
    "denied": 0.8,  # "Do not squash merge commits" for "Squash merge commits"
    "gone": 0.8,  # "The Redis cache was removed" for "The Redis cache holds carts"
    "prefers": 0.8,  # "I prefer tabs over spaces" for "Indent with spaces"
    "changed": 0.75,  # "We moved the site to Fly.io" for "The site runs on Heroku"
    "opposite": 0.7,  # "Always enable the linter" for "Always disable the linter"
    "number": 0.7,  # "The gateway listens on port 8443" for "The gateway listens on port 8080"
    "name": 0.65,  # "Orders are stored in Postgres" for "Orders are stored in MySQL"
    "value": 0.55,  # "Deploys are done by hand" for "Deploys are done by robots"
}
#: From this confidence on a replacement is certain and lowers the older memory without asking.
SURE = 0.5
#: The confidence of a possible replacement: a person decides.
DOUBTFUL = 0.4
#: Why a person is asked about a possible replacement.
UNSURE = "the newer one may replace the older, or be about something else"
#: What a replacement takes from the older statement's confidence: at least, and at most (design section 4).
LEAST, MOST = 0.20, 0.50
#: What is left of the older statement's confidence in any case.
LEAST_LEFT = 0.05

# --- words

_WORDS = data.word_table("contradiction_words.txt")
_IRREGULAR = dict(pair.split("/") for pair in _WORDS["irregular"])
#: Verbs that say nothing by themselves: in a slot they stand for any other.
WEAK = _WORDS["weak"]
#: Preposition -> the kind of slot it opens.
WAYS = {word: way for way in ("means", "place", "source", "extent", "form", "time") for word in _WORDS[way]}
COPULA = frozenset("is are was were be been being".split())
#: Punctuation that ends a clause.
STOPS = frozenset(",;:.!?()\u2014")
#: What ends a value, and a clause.
_VALUE_ENDS = (STOPS | _WORDS["break"] | COPULA | WAYS.keys()) - {"every"}
_CLAUSE_ENDS = STOPS | _WORDS["break"]
#: How a statement opens that tells what would be: "without this, the reference was not made".
_COUNTERFACTUAL = ("without", "otherwise")
#: What stands as one token: code, flags, paths, dotted names and versions, words.
TOKEN = re.compile(
    r"`[^`\n]{1,80}`|--?[a-z][\w-]*|[~.]?[\w-]*(?:[/.][\w-]+)+|[^\W_]+(?:[_'\u2019-][^\W_]+)*|[,;:.!?()\u2014]"
)
NAME = re.compile(r"^(?:`.*`|--?[a-z].*|.*[/._\d].*|[a-z]+[A-Z].*|[A-Z][a-z]+[A-Z].*|[A-Z]{2,}.*|.+[A-Z].*)$")


def stem(word: str) -> str:
    """A word as it is compared: code and names whole, other words by their stem."""
    bare = word.strip("`").replace("\u2019", "'").casefold()
    bare = bare.removesuffix("'s").removesuffix("()")
    if not bare.isalpha():
        return bare
    short = stem_of_word(_IRREGULAR.get(bare, bare))
    return short[:-1] if len(short) > 4 and short.endswith("y") else short  # retry as in retries


def _stems(word_class: str) -> frozenset[str]:
    return frozenset(map(stem, _WORDS[word_class]))


def _opposites(word_class: str, form: Callable[[str], str]) -> dict[str, set[str]]:
    """Maps each word of a class of pairs to its opposites, both in the same form."""
    opposites = defaultdict[str, set[str]](set)
    for pair in _WORDS[word_class]:
        left, right = map(form, pair.split("/"))
        opposites[left].add(right)
        opposites[right].add(left)
    return dict(opposites)


#: Small words that reverse a sentence in which all else is the same, and the stems of other opposites.
TURNED = _opposites("turned", str)
OPPOSITES = _opposites("opposite", stem)
_WEAK_STEMS = _stems("weak")
#: What replaces is no part of what is told beside it.
_REPLACING = _stems("replacing")
#: What says only that it holds where it is said, or of which kind a number is.
_HERE = _stems("here")
#: Where the same thing runs side by side: what is said of one of them says nothing of the others.
_ENVIRONMENTS = _stems("environment")
#: Words beside what somebody likes that say no more: "prefer tabs", "use tabs for indentation".
_LIKING = _stems("liking")
#: In these ways a thing has what can be changed: where it runs or is kept, and with what; not who wrote it.
_HOLDING = _stems("holding") | {""}
_MONTHS = frozenset(stem(month) for month in (*calendar.month_name[1:], *calendar.month_abbr[1:]))
#: How a rule says that it is one.
_ALWAYS = frozenset((stem("always"), stem("please")))

# --- phrases

INSTEAD = re.compile(
    r"\b(?:instead of|rather than|in place of|as opposed to)\s+(?!just\b|only\b)([^.;:,()\n]{1,80})"
    r"|,\s*(?:and\s+)?(?:not|no)\s+(?!only\b|just\b|in\b|on\b|longer\b|need\b)([^.;:,()\n]{1,60})"
    r"|(?<!\bdo )\bnot\s+(?!only\b|just\b)((?:[\w`'-]+ ){0,2}(?:by |from |in |on |with |at )?[^.;:,()\n]{1,60}?)\s+but\b"
    r"|\breplac(?:e|es|ed|ing)\s+([^.;:,()\n]{1,60}?)\s+(?:with|by)\b",
    re.IGNORECASE,
)
#: What somebody likes, and better than what.
PREFERS = re.compile(
    r"\bprefers?\s+((?:[\w`'-]+ ){1,3}?)(?:over|to|more than|rather than|instead of)\s+([^.;:,()\n]{1,40}?)"
    r"(?=\s+(?:now|from now on|again|please|any ?more)\b|[.;:,()\n!]|$)",
    re.IGNORECASE,
)
#: What is not used, or not any more, whatever for.
GONE = re.compile(
    r"\b(?:decided against(?: using)?|(?:decided|agreed) not to use|(?:moved|moving|switched|migrated) away from|gave up(?: on)?|got rid of"
    r"|abandon(?:ed|ing)|(?:will not|won['’]t|are not going to|aren['’]t going to) use)\s+([^.;:,()\n]{1,60}?)"
    r"(?=\s+(?:after|in favou?r|for now|and|so)\b|[.;:,()\n!]|$)"
    r"|(?:^|[.;:,()\n]|\b(?:and|but))\s*((?:[\w`'./-]+ ){1,3}?)(?:is|are|was|were|has been|have been) (?:now |all |finally |completely )?"
    r"(?:gone|removed|dropped|retired|abandoned|history|dead)\b(?! from\b)",
    re.IGNORECASE,
)
MOVED = re.compile(
    r"\b(?:mov|migrat|switch|chang|convert|port)(?:e|es|ed|ing|ed over)?\b[^.;:\n]{0,60}?\bfrom\s+((?:[^.;:,\n]|\.(?=\w)){1,60}?)\s+(?:over\s+)?to\b",
    re.IGNORECASE,
)
#: Without one of these nothing is spoken against in such a way.
SPEAKS_AGAINST = re.compile(
    rf"\b(?:{'|'.join(sorted(_WORDS['remove']))}|instead|rather|in place|opposed|not?|but|replac|from|prefer|over|more than|against|away|gave|rid"
    r"|abandon|won['\u2019]t|aren['\u2019]t|gone|history|dead)",
    re.IGNORECASE,
)
#: What people say besides: it names nothing and changes nothing.
FILLER = re.compile(
    r"(?:\b(?:btw|by the way|fyi|ok|okay|oh|hey|well|hmm*|(?:it )?turns out(?: that)?|it turned out(?: that)?|thx|thanks|pls|plz|please)\b[,:]?\s*)+",
    re.IGNORECASE,
)
#: A clause that gives the reason for what the sentence says, to the sentence's end.
REASON = re.compile(
    r"(?:,?\s+(?:because|since|so that|so as to|due to|given that|otherwise|in order to)|,\s+(?:so|as))\b(?:[^.;!?\n]|\.(?=\S))*",
    re.IGNORECASE,
)
#: Who names one more thing takes nothing back.
ADDS = re.compile(r"\b(?:also|too|as well|additionally|besides|in addition|both|each|another)\b", re.IGNORECASE)
_CLAUSE_END = re.compile(r"[.;:,!?()]\s|[()\n]")
_A_NAME = r"[`\"']?((?<!\w)(?:--?)?[\w~][\w./~-]{0,80}(?:\(\))?)[`\"']?"
RENAMES = (
    re.compile(rf"\brenam(?:e|ed|ing)\s+(?:the\s+)?(?:\w+\s+)?{_A_NAME}\s+(?:\w+\s+)?(?:to|into|as)\s+{_A_NAME}", re.IGNORECASE),
    re.compile(rf"{_A_NAME}(?:\s+\w+)?\s+(?:was|were|is|are|has been|have been|got|gets)\s+renamed\s+(?:to|into|as)\s+{_A_NAME}", re.IGNORECASE),
    re.compile(rf"{_A_NAME}(?:\s+\w+)?\s+is\s+now\s+(?:called|named)\s+{_A_NAME}", re.IGNORECASE),
    re.compile(r"`([^`\n]{2,60})`\s+is\s+now\s+`([^`\n]{2,60})`", re.IGNORECASE),
)  # fmt: skip
#: Without one of these no pattern of RENAMES matches.
RENAMING = ("renam", "now")
CALLED = re.compile(rf"\b(?:is|are|was|be)\s+(?:called|named)\s+{_A_NAME}", re.IGNORECASE)


# --- a statement taken apart


class Word(NamedTuple):
    """A token in small letters, and its stem, "" where it says nothing."""

    plain: str
    stem: str


class Against(NamedTuple):
    """Something a statement speaks against, and what else stands in the same clause: both stems.

    `is_qualified`: a clause behind it says of which, or when.
    """

    what: frozenset[str]
    beside: frozenset[str]
    is_qualified: bool = False


class Slot(NamedTuple):
    """A value in its place: the verb before it ("" for one that says nothing), the kind of preposition, its stems."""

    verb: str
    way: str
    value: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedStatement:
    """One statement taken apart; every set is of stems."""

    order: tuple[str, ...]
    stems: frozenset[str]
    names: frozenset[str]
    """Those that are identifiers, paths, flags, numbers or proper names."""
    main: frozenset[str]
    """Those of its first sentence, up to what depends on it: a reason, a condition, an example."""
    positive: frozenset[str]
    """Those that it does not speak against anywhere."""
    denied: tuple[Against, ...]
    instead: tuple[Against, ...]
    gone: tuple[frozenset[str], ...]
    """What it says is removed, or used no more, whatever for."""
    prefers: tuple[tuple[frozenset[str], frozenset[str]], ...]
    """(what is liked, what it is liked better than)."""
    slots: tuple[Slot, ...]
    renames: tuple[tuple[str, str], ...]
    named: frozenset[str]
    """What it says that something is called."""
    topic: frozenset[str]
    """What it says that it is, or has been: what stands before its first copula."""
    turns: frozenset[str]
    """The small words in it that have an opposite: on, off, before, after."""
    adds: bool
    asks: bool

    def has_near(self, what: frozenset[str]) -> bool:
        """Whether these stems stand close together in it."""
        at = [place for place, stem in enumerate(self.order) if stem in what]
        size = len(what & self.stems)
        return any(what & self.stems <= set(self.order[start : start + 2 * size + 2]) for start in at)


def _words(text: str) -> list[Word]:
    return [Word(word.casefold(), _content_stem(word)) for word in _tokens(text)]


@cached(8192)
def _content_stem(word: str) -> str:
    """The stem of a token that carries meaning, "" for any other."""
    found, plain = stem(word), word.casefold()
    if word in STOPS or word.endswith(("n't", "'re", "'m", "'ve", "'ll")):
        return ""
    if word[0] in "`-" or not found.isalpha():
        return found
    is_empty = plain in STOP_WORDS or plain in tokens.TURNING_WORDS or found in _WEAK_STEMS
    return found if len(found) > 1 and not is_empty else ""


def _stems_of(said: str) -> list[str]:
    """The stems of a text's meaningful words, in order."""
    return [word.stem for word in _words(said) if word.stem]


@cached(4096)
def _stem_set(said: str) -> frozenset[str]:
    """The stems of a statement: without one in common, two statements need not be taken apart."""
    return frozenset(_stems_of(said))


@cached(2048)
def assertion(said: str) -> str:
    """Strips fillers and reasons from a statement: two statements with one reason need not share a subject."""
    return FILLER.sub(" ", REASON.sub("", said)).strip()


@cached(2048)
def parse_statement(said: str) -> ParsedStatement:
    """Takes a statement apart."""
    words, asks = _words(said), said.rstrip().endswith("?")
    order = tuple(word.stem for word in words if word.stem)
    instead = (*_phrased(INSTEAD, said), *_phrased(MOVED, said))
    against = {stem for one in (*_negated(words, asides=True), *instead) for stem in one.what}
    pairs = [] if asks else [tuple(frozenset(_stems_of(side)) for side in pair) for pair in PREFERS.findall(said)]
    copula = next((at for at, word in enumerate(words) if word.plain in COPULA), 0)
    return ParsedStatement(
        order=order, stems=frozenset(order), names=_names(said, words), main=_main(words) or frozenset(order),
        positive=frozenset(order) - against, denied=tuple(_negated(words)), instead=instead,
        gone=() if asks else tuple(_removals(words, said)),
        prefers=tuple((liked, other) for liked, other in pairs if liked and other), slots=tuple(_slots(words)),
        renames=renames(said), named=frozenset(found.casefold() for found in CALLED.findall(said)),
        turns=frozenset(word.plain for word in words) & TURNED.keys(),
        topic=_until(words[:copula]), adds=bool(ADDS.search(said)), asks=asks,
    )  # fmt: skip


def _tokens(text: str) -> list[str]:
    return TOKEN.findall(text.replace("\u2019", "'").replace("()", ""))


def _names(text: str, words: Sequence[Word]) -> frozenset[str]:
    is_name = [NAME.match(word) or (at and word[:1].isupper()) for at, word in enumerate(_tokens(text))]
    return frozenset(compress((word.stem for word in words), is_name)) - {""}


def _until(
    words: Iterable[Word], ends: frozenset[str] = frozenset(), *, most: int = 99, leaving: frozenset[str] = frozenset()
) -> frozenset[str]:
    """The stems of at most `most` words before one of `ends`."""
    found: list[str] = []
    for word in words:
        if word.plain in ends or len(found) >= most:
            break
        if word.stem and word.plain not in leaving:
            found.append(word.stem)
    return frozenset(found)


def _main(words: Sequence[Word]) -> frozenset[str]:
    found: set[str] = set()
    for word in words:
        if len(found) >= 2 and (word.plain in (";", "(", ":", ".", "!") or word.plain in _WORDS["depend"]):
            break
        found |= {word.stem} - {""}
    return frozenset(found)


def _clause(words: Sequence[Word], at: int) -> frozenset[str]:
    """The stems from a word on to the end of its clause, five at most."""
    return _until(words[at:], _CLAUSE_ENDS, most=5, leaving=_WORDS["aside"])


def _before(words: Sequence[Word], at: int) -> frozenset[str]:
    """The stems of the same clause before a word."""
    return _until(reversed(words[:at]), STOPS, leaving=_WORDS["aside"])


def _is_aside(words: Sequence[Word], at: int) -> bool:
    """Whether a word stands in a dependent or counterfactual clause: what is said there is not stated."""
    clause = takewhile(lambda word: word.plain not in STOPS, reversed(words[:at]))
    return words[0].plain in _COUNTERFACTUAL or any(word.plain in _WORDS["depend"] for word in clause)


def _negated(words: Sequence[Word], *, asides: bool = False) -> list[Against]:
    """What follows each negation, to the end of its clause and five words at most, with what precedes it.

    `asides` includes those of dependent clauses.
    """
    found: list[Against] = []
    for at, (plain, _) in enumerate(words):
        no_longer = plain == "no" and [word.plain for word in words[at + 1 : at + 2]] == ["longer"]
        if not (plain in _WORDS["negation"] or plain.endswith("n't") or no_longer):
            continue
        if not asides and at and words[at - 1].plain == ",":
            continue  # "this, not that": INSTEAD
        what = _clause(words, at + 1)
        if what and (asides or not _is_aside(words, at)):
            rest = [word.plain for word in words[at + 1 :]]
            end = next((place for place, plain in enumerate(rest) if plain in STOPS), len(rest))
            found.append(Against(what, _before(words, at), not _WORDS["restrict"].isdisjoint(rest[:end])))
    return found


def _phrased(pattern: re.Pattern[str], said: str) -> list[Against]:
    """What a phrase speaks against, with the rest of its clause, or the clause before the comma that opens it."""
    found: list[Against] = []
    for match in pattern.finditer(said):
        what = frozenset(_stems_of(next(filter(None, match.groups()))))
        begin = len(said[: match.start()].rstrip(", "))
        start = max((stop.end() for stop in _CLAUSE_END.finditer(said, 0, begin)), default=0)
        end = _CLAUSE_END.search(said, match.end())
        beside = frozenset(_stems_of(said[start : end.start() if end else len(said)])) - what - _REPLACING
        if what:
            found.append(Against(what, beside))
    return found


def _removals(words: Sequence[Word], said: str) -> list[frozenset[str]]:
    """What a statement says is removed (an order or "we drop"), or used no more, without a condition."""
    found = [
        _clause(words, at + 1)
        for at, word in enumerate(words)
        if word.plain in _WORDS["remove"] and not _before(words, at) and not _is_aside(words, at)
    ]
    for match in GONE.finditer(said):
        start = max(said.rfind(end, 0, match.start()) for end in ".;\n") + 1
        if _WORDS["restrict"].isdisjoint(word.plain for word in _words(said[start : match.end()])):
            found.append(frozenset(_stems_of(match[1] or match[2])))
    return [stems for stems in found if stems]


def _slots(words: Sequence[Word]) -> list[Slot]:
    """Every value behind a preposition, a copula or "use", with the verb before it; adverbs of time are values too."""
    found: list[Slot] = []
    for at, (plain, _) in enumerate(words):
        if plain in _WORDS["when"]:
            found.append(Slot(_verb(words, at), "time", frozenset((stem(plain),))))
        way = "means" if plain == "use" else "is" if plain in COPULA else WAYS.get(plain, "")
        value = _until(words[at + 1 :], _VALUE_ENDS, most=4) if way else frozenset[str]()
        behind = [word.plain in WAYS or word.plain in _WORDS["when"] for word in words[at + 1 : at + 3]]
        is_participle = way == "is" and behind == [False, True]  # "is kept for": the verb, not a value
        if value and not is_participle:
            verb = "" if way == "is" or plain == "use" else _verb(words, at)
            found.append(Slot(verb, way, value))
    return found


def _verb(words: Sequence[Word], at: int) -> str:
    """The stem of the word before a preposition; "" for a weak one, or none."""
    return next((word.stem for word in reversed(words[:at]) if word.plain not in ("out", "up", "down", "back")), "")


# --- what changed

_DID = r"(?:moved|migrated|switched|ported|transitioned)(?: over)?"
_NP = r"((?:[\w`'./-]+ ){0,5}[\w`'./-]+)"
#: "THING is now VALUE": where the value is a name; "the tests are now green" tells of no other thing.
_IS_NOW = re.compile(
    rf"{_NP}? (?:is|are) now (?!(?:in|on|at|from|with|for|behind|under|part|of|to|by|done|only)\b){_NP}", re.IGNORECASE
)
#: "we're back on VALUE for THING".
_BACK_ON = re.compile(
    rf"\b(?:we|i)(?:['\u2019]re|['\u2019]m| are| am| went| go) (?:now )?back (?:on|to|with) {_NP}? (?:for|as|in) {_NP}",
    re.IGNORECASE,
)
#: The thing is the first group and its value the second, but for _BACK_ON: "we're on NAME VERSION now", "we moved THING
#: to VALUE", "THING [was] moved to VALUE", "THING is 9191 now"; a clause ends where the next begins.
_PATTERNS = (
    _BACK_ON,
    re.compile(
        r"\b(?:we|i)(?:['\u2019]re|['\u2019]m| are| am) (?:now )?(?:back )?(?:on|at) ([\w.+#-]*[a-z][\w.+#-]*) v?(\d[\w.]*)", re.IGNORECASE
    ),
    re.compile(rf"\b(?:we|i|they|have|has|['\u2019]ve) (?:\w+ly |now |just |all |finally )?{_DID} {_NP}? (?:over )?(?:to|onto) {_NP}", re.IGNORECASE),
    re.compile(rf"{_NP}? (?:(?:has|have) been|was|were|is|are|got|has|have)? ?(?:now |just )?{_DID} (?:to|onto) {_NP}", re.IGNORECASE),
    re.compile(rf"{_NP}? (?:is|are) ((?:[\w`'./-]+ ){{0,2}}[\w`'./-]*\d[\w`'./-]*) now\b", re.IGNORECASE),
    _IS_NOW,
)  # fmt: skip
#: Without one of these nothing is said to have changed.
_CHANGING = re.compile(r"moved|migrated|switched|ported|transitioned| now| back |re on | are on ", re.IGNORECASE)
#: What nobody uses any more.
_UNUSED = re.compile(
    r"\b(?:no longer|don['\u2019]t|do not) use ([\w`'./-]+)(?! for\b)|\bstopped using ([\w`'./-]+)", re.IGNORECASE
)
#: Before the verb these say that nothing was changed, or not yet.
_UNDONE = re.compile(
    r"n['\u2019]t\b|\b(?:not|never|if|when|once|until|before|unless|should|could|would|might|may|will|want|plan|almost|nearly|why|did)\b",
    re.IGNORECASE,
)
_COMMON = re.compile(r"(?:the|a|an|its|their|our|his|her|my|your|another|some|this|that)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"[.;:!?,()\n]+(?:\s+|$)")
#: Characters of a statement that are read: people say at once that something has changed, and a pattern's time is bounded.
MOST_READ = 600


class Change(NamedTuple):
    """A thing and the value it has now, both as stems; `is_common`: the value is some thing and not a name.

    `unused` is what the statement says nobody uses any more.
    """

    thing: frozenset[str]
    value: frozenset[str]
    is_common: bool
    unused: frozenset[str]


@cached(2048)
def changes(said: str) -> tuple[Change, ...]:
    """What a statement says was changed, and to what."""
    said = said[:MOST_READ]
    if not _CHANGING.search(said):
        return ()
    found: list[Change] = []
    unused = frozenset(stem for pair in _UNUSED.findall(said) for stem in _stems_of(" ".join(pair)))
    for part in _SENTENCE.split(said):
        match = next((match for pattern in _PATTERNS if (match := pattern.search(part))), None)
        if match is None or not match[1] or _UNDONE.search(part[: match.start(2)]):
            continue
        of, into = (2, 1) if match.re is _BACK_ON else (1, 2)
        thing, value = frozenset(_stems_of(match[of])), frozenset(_stems_of(match[into])[:4])
        is_named = any(NAME.match(word) or word[:1].isupper() for word in match[into].split())
        if thing and value and (is_named or match.re is not _IS_NOW):
            found.append(Change(thing, value, bool(_COMMON.match(match[into])) and not is_named, unused))
    return tuple(found)


def _changes_value(change: Change, slot: Slot, before: ParsedStatement) -> bool:
    """Whether a slot of an older statement gives the changed thing another value."""
    # A number takes a number's place, in 2026-12-15 as in "port 8080"; "green" nothing's.
    numbers = _is_date_or_number(slot.value - change.thing) and _is_date_or_number(change.value)
    if not numbers and (slot.way not in ("means", "place") or slot.verb not in _HOLDING):
        return False
    if slot.value & change.value or (slot.value & change.thing and not numbers):
        return False
    if slot.value & before.names and change.is_common:
        return False
    # The thing is all that the older one speaks of: a part of it, or one of several, stays where it is.
    subject = before.positive - (slot.value - change.thing) - {slot.verb} - _HERE
    return bool(slot.value & change.unused) or len(change.thing) >= MOST_OF_SUBJECT * len(subject)


def _is_date_or_number(value: frozenset[str]) -> bool:
    return _has_number(value) and all(stem[0].isdigit() or stem in _MONTHS for stem in value)


def _has_number(stems: frozenset[str]) -> bool:
    return any(stem[0].isdigit() for stem in stems)


# --- several things in one statement

#: Where one part ends and another begins: rows of a list, numbers that count off, a full stop before a small letter.
_CUTS = re.compile(r"; |\n+|(?:^|(?<=[\s:;,.]))\(?\d{1,2}[.)] |(?<=\w{3}[.!]) +(?=[a-z])")
#: Joins two clauses, where each says of something how it is, with what, or where.
_AND = re.compile(r",? and (?:also )?", re.IGNORECASE)
#: What goes on about the part before it.
_GOES_ON = re.compile(
    r"\W*(?:it|this|that|these|those|they|he|she|we then|then|so|because|since|but|and|or|however|instead|otherwise|therefore|which|as|not|except|unless"
    r"|e\.g|for example|the reason|reason)\b",
    re.IGNORECASE,
)


@cached(1024)
def parts(said: str) -> tuple[str, ...]:
    """Splits a statement into list items, sentences or joined clauses, each with the clauses that continue it.

    A heading, which ends with a colon, is left out.
    """

    def has_content(clause: str) -> bool:
        return len(tokens.gist(clause).stems) >= 2 or bool(parse_statement(clause).slots)

    found: list[str] = []
    clauses = [clause for row in _CUTS.split(said) for one in prose.sentences(row) for clause in _clauses(one)]
    for clause in clauses:
        if clause.endswith(":") and not found:
            continue
        if found and (_GOES_ON.match(clause) or not has_content(clause)):
            found[-1] = f"{found[-1]} {clause}"
        elif clause.strip():
            found.append(clause.strip())
    return tuple(filter(has_content, found))


def _clauses(sentence: str) -> list[str]:
    """Splits a sentence at the first "and" that has a value on both sides."""
    for match in _AND.finditer(sentence):
        sides = [sentence[: match.start()], sentence[match.end() :]]
        if all(parse_statement(side).slots for side in sides):
            return sides
    return [sentence]


def text_without(said: str, ended: Sequence[str]) -> str:
    """Removes some of a statement's `parts` and keeps its heading; "" if nothing is left."""
    left = [part for part in parts(said) if part not in ended]
    if not left:
        return ""
    first = _CUTS.split(said)[0].strip()
    heading = f"{first} " if first.endswith(":") and first not in left else ""
    return heading + "".join(part + (" " if part.endswith((".", "!")) else "; ") for part in left[:-1]) + left[-1]


def mentioned_parts(older: str, newer: str) -> tuple[str, ...]:
    """The parts of the older statement that share a word of their own with the newer; its only part in any case."""
    said = parts(older)
    if len(said) < 2:
        return said
    stems, told = [tokens.gist(part).stems for part in said], tokens.gist(newer).stems
    own = [one.difference(*(other for other in stems if other is not one)) for one in stems]
    return tuple(part for part, words in zip(said, own, strict=True) if words & told)


def is_partly(older: str, newer: str) -> bool:
    """Whether the newer statement mentions some parts of the older one, but not all."""
    return 0 < len(mentioned_parts(older, newer)) < len(parts(older))


# --- signals

#: A denial names so much of what it denies.
MOST_OF_IT = 0.6
#: Of the shorter statement's words so many are in the other, or they speak of two things.
SAME_SUBJECT = 0.5
#: Of the subject of an older statement a changed thing is so much, or it is only a part of what the older one says.
MOST_OF_SUBJECT = 0.6
#: `X instead of Y`: of the words beside Y so many are in the older statement, for a plain Y and for one of several words.
BESIDE_PLAIN, BESIDE_SPECIAL = 0.4, 0.5
#: What is left of two statements without their values is one subject when so much of the longer rest is shared.
SAME_REST = 0.5


def _signals(
    before: ParsedStatement, after: ParsedStatement, unfollowed: ParsedStatement, newer: str
) -> dict[str, bool]:
    """Finds the signals of a replacement: signal -> whether the subject certainly is the same."""
    if any(old in unfollowed.named for old, _ in after.renames):
        return {"renamed": True}
    found: dict[str, bool] = {}
    if not before.asks and any(
        change.thing <= before.stems and any(_changes_value(change, slot, before) for slot in before.slots)
        for change in changes(newer)
    ):
        found["changed"] = True
    if any(_likes_better(liked, other, before) for liked, other in after.prefers):
        found["prefers"] = True
    for what in after.gone:
        if what <= before.positive and before.has_near(what):
            if before.topic == what or 2 * len(what) >= len(before.stems):
                found["gone"] = True
            elif what & before.names or any(slot.value == what for slot in before.slots):
                found.setdefault("gone", False)
    shared = before.stems & after.stems
    if len(shared) < SAME_SUBJECT * min(len(before.stems), len(after.main)):
        return found
    if any(_says_instead(one, before) for one in after.instead):
        found["says-instead"] = not _names_another_end(before, after)
    if any(_denies(one, before) for one in after.denied):
        found["denied"] = True
    return found | _opposite(before, after, shared) | _other_value(before, after)


def _names_another_end(before: ParsedStatement, after: ParsedStatement) -> bool:
    """Whether each statement names something that the other does not, besides the value that was exchanged."""
    verbs = {slot.verb for slot in before.slots}
    exchanged = {stem for one in after.instead for stem in one.what}
    own = before.positive - after.positive - verbs - exchanged - _HERE
    return bool(own) and len(after.positive - before.stems) > 1


def _likes_better(liked: frozenset[str], other: frozenset[str], before: ParsedStatement) -> bool:
    """Whether an older statement is for what is now liked less, and of nothing but that."""
    rest = before.stems - other - _LIKING
    is_liked = any(liked <= what for what, _ in before.prefers)
    return other <= before.positive and rest in (frozenset(), liked) and not is_liked


def _says_instead(one: Against, before: ParsedStatement) -> bool:
    """`X instead of Y`: Y stands in the older one, with what stands beside it in the newer."""
    if not one.what <= before.positive or not before.has_near(one.what):
        return False
    if one.beside and one.beside <= before.stems - before.positive:
        return True  # "use black, not ruff": what is wanted now is what the older one spoke against
    beside = len(one.beside & before.stems)
    if not beside and len(one.beside) <= 1 and _is_all(one.what, before):
        return True  # "use pytest instead of unittest" speaks of no subject, and the older one of little else
    special = len(one.what) > 1 or one.what & before.names
    return (beside >= 2 and beside >= BESIDE_PLAIN * len(one.beside)) or (
        bool(special) and 1 <= beside >= BESIDE_SPECIAL * len(one.beside)
    )


def _is_all(what: frozenset[str], before: ParsedStatement) -> bool:
    """Whether a statement says by what something is done, or where ("we deploy to Fly.io"), and hardly what."""
    beside, slots = before.positive - what - _ALWAYS, [slot for slot in before.slots if slot.value == what]
    placed = {slot.verb for slot in slots if slot.way == "place"} & _HOLDING if what <= before.names else None
    return bool(placed and beside <= placed) or (len(beside) <= 2 and any(slot.way == "means" for slot in slots))


def _denies(one: Against, before: ParsedStatement) -> bool:
    """A negation: the older one affirms just what is denied, of the same subject; without a subject nearly all of it."""
    if one.is_qualified or not one.what <= before.positive or not before.has_near(one.what):
        return False
    return one.beside <= before.stems and len(one.what | one.beside) >= MOST_OF_IT * len(before.main)


def _opposite(before: ParsedStatement, after: ParsedStatement, shared: frozenset[str]) -> dict[str, bool]:
    """The signal of two that differ in a word and its opposite and in nothing else; doubtful where one says more."""
    old, new = before.stems - shared, after.stems - shared
    for old_word in sorted(old):
        for new_word in sorted(OPPOSITES.get(old_word, set()) & new):
            rests = before.stems - {old_word}, after.stems - {new_word}
            if _same_subject(*rests):
                return {"opposite": rests[0] == rests[1]}
    alike = len(shared) >= tokens.SAME_SHARE * len(before.stems | after.stems)
    turned = any(TURNED[word] & (after.turns - before.turns) for word in before.turns - after.turns)
    return {"opposite": True} if alike and turned else {}


def _other_value(before: ParsedStatement, after: ParsedStatement) -> dict[str, bool]:
    """The kind of a value that changed: of one slot, where the rest of both statements is the same subject."""
    if after.asks or after.adds or before.positive < after.positive or after.positive < before.positive:
        return {}  # one says what the other does, and more
    for old in before.slots:
        for new in after.slots:
            one_verb = old.verb == new.verb or not old.verb or not new.verb
            if old.way != new.way or not (one_verb or (old.verb in after.stems and new.verb in before.stems)):
                continue
            if old.value <= new.value or new.value <= old.value:
                continue
            slot = old.value | new.value | {old.verb, new.verb}
            subject, other = before.stems - slot, after.stems - slot
            kind = _kind_of_value(old.value - new.value, new.value - old.value, before, after)
            if kind and _same_subject(subject, other):
                return {kind: subject == other}
    return {}


def _kind_of_value(
    changed: frozenset[str], into: frozenset[str], before: ParsedStatement, after: ParsedStatement
) -> str:
    """The signal that a value of one kind gives when it takes another's place; "" for two that are of different kinds."""
    numbers = _has_number(changed), _has_number(into)
    if all(numbers):
        return "number"
    if changed & before.names and into & after.names:
        return "name"
    return "value" if numbers[0] == numbers[1] else ""


def _same_subject(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether what is left of two statements is one subject: of what one says more, the other has no counterpart."""
    both = one & other
    if not both or (one - other and other - one):
        return False
    return len(both) >= SAME_REST * max(len(one), len(other))


# --- replacements


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """How a later statement replaces an earlier one: certainly (SURE and more) or perhaps.

    `reasons` name the signals: those of a certain one by confidence, those of a possible one as they were found.
    """

    confidence: float
    reasons: tuple[str, ...]

    @property
    def lowers(self) -> float:
        """By how much the older one's confidence falls, by clarity."""
        clarity = (self.confidence - SURE) / (1.0 - SURE)
        return round(LEAST + (MOST - LEAST) * min(1.0, max(0.0, clarity)), 4)


def certain_replacement(older: str, newer: str, renames: Mapping[str, str] | None = None) -> Replacement | None:
    """How `newer` certainly replaces `older`; None if it does not."""
    found = replacement(older, newer, renames)
    return found if found is not None and found.confidence >= SURE else None


def possible_replacement(older: str, newer: str, renames: Mapping[str, str] | None = None) -> Replacement | None:
    """How `newer` perhaps replaces `older`, so that a person must decide; None if it certainly does or does not."""
    found = replacement(older, newer, renames)
    return found if found is not None and found.confidence < SURE else None


def ended_parts(
    older: str, newer: str, renames: Mapping[str, str] | None = None
) -> tuple[Replacement, tuple[str, ...]] | None:
    """Which of several parts of `older` are certainly replaced, and how the first of them is.

    None if it has one part, or none is replaced.
    """
    said = parts(older)
    found = (
        {part: replaced for part in said if (replaced := certain_replacement(part, newer, renames))}
        if len(said) > 1
        else {}
    )
    return (next(iter(found.values())), tuple(found)) if found else None


def replacement(older: str, newer: str, renames: Mapping[str, str] | None = None) -> Replacement | None:
    """How `newer`, or a part of it, replaces `older`, certainly or perhaps; None if it does not.

    The surest replacement is taken. Where `newer` mentions only some parts of `older` the first one is, as a possible
    replacement.
    """
    of_parts = (_replacement_by_part(older, part, renames) for part in dict.fromkeys((newer, *parts(newer))))
    found = [one for one in of_parts if one is not None]
    if found and is_partly(older, newer):
        return replace(found[0], confidence=DOUBTFUL)
    return max(found, key=lambda one: one.confidence, default=None)


def _replacement_by_part(older: str, newer: str, renames: Mapping[str, str] | None) -> Replacement | None:
    """How one part of a newer statement replaces the older one; None if it does not."""
    older, newer = assertion(older), assertion(newer)
    renamed = with_new_names(older, renames or {})
    if _stem_set(renamed).isdisjoint(_stem_set(newer)):
        return None
    before, after = parse_statement(renamed), parse_statement(newer)
    only_before, only_after = before.stems - after.stems, after.stems - before.stems
    if before.asks or (_ENVIRONMENTS & only_before and _ENVIRONMENTS & only_after):
        return None
    found = _signals(before, after, parse_statement(older), newer)
    certain = sorted((name for name, is_certain in found.items() if is_certain), key=lambda name: -SIGNALS[name])
    if certain:
        return Replacement(confidence=SIGNALS[certain[0]], reasons=tuple(certain))
    return Replacement(confidence=DOUBTFUL, reasons=tuple(found)) if found else None


def why_not_replaced(*, pinned: bool) -> str:
    """Why a person is asked about a memory that stays although a newer one contradicts it."""
    why = "is pinned" if pinned else "was said with more authority, or holds in more places"
    return f"the newer one says otherwise, but the older one {why}"


# --- names that changed


@cached(1024)  # the same fifty memories are asked for every statement
def renames(said: str) -> tuple[tuple[str, str], ...]:
    """(old, new) names that a statement says were changed, in small letters."""
    if not any(word in said.casefold() for word in RENAMING):
        return ()
    pairs = [[name.strip("`\"'.,").casefold() for name in pair] for rule in RENAMES for pair in rule.findall(said)]
    return tuple(
        dict.fromkeys(
            (old, new) for old, new in pairs if old != new and min(len(old), len(new)) > 2 and old not in STOP_WORDS
        )
    )


def rename_table(statements: Sequence[str]) -> dict[str, str]:
    """Maps old names to present ones, from statements in order of time; chains are followed."""
    now: dict[str, str] = {}
    for statement in statements:
        for old, new in renames(statement):
            now.pop(new, None)  # a name that is taken up again is no old one
            now = {earlier: new if current == old else current for earlier, current in now.items()}
            now[old] = new
    return {old: new for old, new in now.items() if old != new}


def mentions_name(said: str, name: str) -> bool:
    """Whether a text mentions a name as a whole word."""
    return name in said.casefold() and bool(_name_pattern(name).search(said))


def with_new_names(said: str, renames: Mapping[str, str]) -> str:
    """Replaces each old name in a text by its new one."""
    present = [old for old in renames if old in said.casefold()]
    for old in present:
        said = _name_pattern(old).sub(lambda _, new=renames[old]: new, said)  # type: ignore[misc]
    return said


@cached(512)
def _name_pattern(name: str) -> re.Pattern[str]:
    """A name where it stands alone: not as a part of a longer one."""
    return re.compile(rf"(?<![\w/.-]){re.escape(name)}(?![\w/-]|\.\w)", re.IGNORECASE)
