"""Whether a later statement replaces an earlier one, certainly or perhaps; pure.

A certain replacement gives the same slot of the same subject another value, or denies just what the older statement
affirms. Reasons are left out first: two statements with one reason are not of one subject. Where one of them names more
of the subject than the other (an environment, a component, one use of several) it is doubtful, and a person decides;
where each names something that the other does not, they are of two things. Cue words make a replacement surer and never
make it one. In doubt both statements hold: what is wrongly replaced is lost, what is wrongly kept is only old.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from csmd.cache import cached
from csmd.text import prose, similarity
from csmd.text.patterns import at_first_use
from csmd.text.tokens import STOP_WORDS, query_terms
from csmd.text.tokens import stem as tokens_stem

#: Words by which people mark that they change their mind; they make an amendment surer and none by themselves.
CUE = at_first_use(
    r"\b(?:actually|no longer|any ?more|instead|turn(?:s|ed) out|think(?:ing)? again|on second thought|wrong|"
    r"you(?:'|\u2019)re right|from now on|as of now|changed? (?:my|our) mind|scratch that|revert(?:ed)?|moved|switched|migrated|replaced)\b",
    re.IGNORECASE,
)
#: Verbs that say nothing by themselves: in a slot they stand for any other.
WEAK = frozenset(
    "use run go be have make do get put need want should must support work come happen let send take".split()
)
IRREGULAR = {
    "kept": "keep", "written": "write", "wrote": "write", "sent": "send", "built": "build", "rebuilt": "rebuild",
    "goes": "go", "went": "go", "gone": "go", "ran": "run", "running": "run", "made": "make", "took": "take",
    "taken": "take", "held": "hold", "stored": "store", "using": "use", "used": "use", "uses": "use", "has": "have",
    "came": "come", "does": "do", "putting": "put", "got": "get", "cutting": "cut", "drawn": "draw", "chosen": "choose",
    "children": "child", "indices": "index", "libraries": "library",
}  # fmt: skip
#: preposition -> the kind of slot it opens; `out` and `up` belong to the verb.
WAYS = {
    **dict.fromkeys(("by", "with", "through", "via", "over", "using"), "means"),
    **dict.fromkeys(("in", "on", "at", "to", "into", "inside", "under", "onto", "within"), "place"),
    "from": "source", "for": "extent", "as": "form", "after": "time", "before": "time", "every": "time",
    "until": "time",
}  # fmt: skip
TIMES = frozenset(
    "nightly daily weekly hourly monthly yearly always once twice monday tuesday wednesday thursday friday saturday "
    "sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays".split()
)
COPULA = frozenset("is are was were be been being".split())
#: Words that end a slot and belong to none.
BREAKS = frozenset("and or but because so which that when where if while then than of since unless".split())
#: Words behind which a clause depends on another.
DEPENDS = frozenset(
    "if when whenever because since which who that where while until unless so as may might could".split()
)
#: Of those, what says of which things a statement holds, or when.
RESTRICTS = frozenset("if when whenever which who that where while until unless".split())
#: What opens a clause of which the next says what would be: "without this, the reference was not made".
COUNTERFACTUAL = frozenset(("without", "otherwise"))
#: Subjects that stand elsewhere.
POINTS_OUT = frozenset("it this that they these those he she".split())
ADDS = at_first_use(r"\b(?:also|too|as well|additionally|besides|in addition|both|each|another)\b", re.IGNORECASE)
#: What stands as one token: code, flags, paths, dotted names and versions, words.
TOKEN = at_first_use(
    r"`[^`\n]{1,80}`|--?[a-z][\w-]*|[~.]?[\w-]*(?:[/.][\w-]+)+|[^\W_]+(?:[_'\u2019-][^\W_]+)*|[,;:.!?()\u2014]"
)
NAME = at_first_use(r"^(?:`.*`|--?[a-z].*|.*[/._\d].*|[a-z]+[A-Z].*|[A-Z][a-z]+[A-Z].*|[A-Z]{2,}.*|.+[A-Z].*)$")
STOPS = frozenset(",;:.!?()\u2014")
#: "no" alone says what there is not, and seldom that something else said there is.
NEGATIONS = frozenset("not never cannot neither nor".split())
#: Behind a negation these take it back: "don't forget to", "not only".
NO_NEGATION = frozenset("forget hesitate only just sure necessarily".split())
REMOVES = frozenset("remove removed drop dropped delete deleted ditch retire retired".split())
ASIDE = frozenset(
    "completely entirely fully really simply actually currently already still legacy old all any more anymore longer at".split()
)

OPPOSITES = """
accept reject; accept refuse; enable disable; allow forbid; allow deny; permit forbid; show hide; hidden visible;
include exclude; public private; synchronous asynchronous; sync async; manual automatic; required optional;
mandatory optional; always never; keep drop; keep remove; lazy eager; lazily eagerly; top bottom; first last; true false;
open close; lock unlock; before after; start end; encrypt plaintext; mutable immutable; local global; local remote;
upper lower; uppercase lowercase; left right; ascending descending; add remove; allow block; merge rebase; ignore reject;
increase decrease; static dynamic; single multiple; blocking nonblocking; tabs spaces; opt-in opt-out; on off; yes no
"""


#: Small words that turn a sentence round, where all else is the same.
TURNED = {"on": "off", "off": "on", "before": "after", "after": "before", "with": "without", "without": "with"}


def stem(word: str) -> str:
    """A word as it is compared: code and names whole, other words by their stem."""
    bare = word.strip("`").replace("\u2019", "'").casefold()
    bare = bare.removesuffix("'s").removesuffix("()")
    if not bare.isalpha():
        return bare
    short = tokens_stem(IRREGULAR.get(bare, bare))
    return short[:-1] if len(short) > 4 and short.endswith("y") else short  # retry as in retries


def _opposites() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for pair in OPPOSITES.replace("\n", " ").split(";"):
        one, other = (stem(word) for word in pair.split())
        found[one] = found.get(one, frozenset()) | {other}
        found[other] = found.get(other, frozenset()) | {one}
    return found


#: stem -> the stems of its opposites.
ANTONYMS = _opposites()
WEAK_STEMS = frozenset(stem(word) for word in WEAK)
#: What replaces is no part of what is told beside it.
REPLACING = frozenset(stem(word) for word in "replaced switched switching moved migrated".split())
#: What says only that it holds where it is said, or of which kind a number is.
HERE = frozenset(stem(word) for word in "version project repo repository codebase here".split())
#: Where the same thing runs side by side: what is said of one of them says nothing of the others.
ENVIRONMENTS = frozenset(
    stem(word) for word in "production prod staging development dev test testing preview sandbox local locally".split()
)
#: Who decides against something denies it.
DECIDING = frozenset(stem(word) for word in "decide decided decision voted ruled".split())
#: How a rule says that it is one.
ALWAYS = frozenset((stem("always"), stem("please")))
TIME_STEMS = frozenset(stem(word) for word in TIMES)


def counts(word: str, stem: str) -> bool:
    """Whether a token says something."""
    if word in STOPS or not stem or word.endswith(("n't", "'re", "'m", "'ve", "'ll")):
        return False
    if word[0] in "`-" or not stem.isalpha():
        return True
    plain = word.casefold()
    return (
        len(stem) > 1 and plain not in STOP_WORDS and plain not in similarity.TURNING_WORDS and stem not in WEAK_STEMS
    )


def stems_of(said: str) -> list[str]:
    """The stems of what says something in a text, in order."""
    return [found for word in TOKEN.findall(said) if counts(word, found := stem(word))]


INSTEAD = at_first_use(
    r"\b(?:instead of|rather than|in place of|as opposed to)\s+(?!just\b|only\b)([^.;:,()\n]{1,80})"
    r"|,\s*(?:and\s+)?(?:not|no)\s+(?!only\b|just\b|in\b|on\b|longer\b|need\b)([^.;:,()\n]{1,60})"
    r"|(?<!\bdo )\bnot\s+(?!only\b|just\b)((?:[\w`'-]+ ){0,2}(?:by |from |in |on |with |at )?[^.;:,()\n]{1,60}?)\s+but\b"
    r"|\breplac(?:e|es|ed|ing)\s+([^.;:,()\n]{1,60}?)\s+(?:with|by)\b",
    re.IGNORECASE,
)
#: What somebody likes, and better than what.
_BETTER = r"\s+((?:[\w`'-]+ ){1,3}?)"
_WORSE = r"\s+([^.;:,()\n]{1,40}?)(?=\s+(?:now|from now on|again|please|any ?more)\b|[.;:,()\n!]|$)"
PREFERS = tuple(
    at_first_use(rf"\b(?:{verb})s?{_BETTER}(?:{than}){_WORSE}", re.IGNORECASE)
    for verb, than in (
        ("prefer", "over|to|more than|rather than|instead of"),
        ("like|want|use|choose", "over|more than|rather than"),
    )
)
#: What is not used, or not any more, whatever for.
GONE = at_first_use(
    r"\b(?:decided against(?: using)?|(?:decided|agreed) not to use|(?:moved|moving|switched|migrated) away from|gave up(?: on)?|got rid of"
    r"|abandon(?:ed|ing)|(?:will not|won['’]t|are not going to|aren['’]t going to) use)\s+([^.;:,()\n]{1,60}?)"
    r"(?=\s+(?:after|in favou?r|for now|and|so)\b|[.;:,()\n!]|$)"
    r"|(?:^|[.;:,()\n]|\b(?:and|but))\s*((?:[\w`'./-]+ ){1,3}?)(?:is|are|was|were|has been|have been) (?:now |all |finally |completely )?"
    r"(?:gone|removed|dropped|retired|abandoned|history|dead)\b(?! from\b)",
    re.IGNORECASE,
)
#: What people say besides: it names nothing and changes nothing.
FILLER = at_first_use(
    r"(?:\b(?:btw|by the way|fyi|ok|okay|oh|hey|well|hmm*|(?:it )?turns out(?: that)?|it turned out(?: that)?|thx|thanks|pls|plz|please)\b[,:]?\s*)+",
    re.IGNORECASE,
)
#: A clause that gives the reason for what the sentence says, to the sentence's end.
REASON = at_first_use(
    r"(?:,?\s+(?:because|since|so that|so as to|due to|given that|otherwise|in order to)|,\s+(?:so|as))\b(?:[^.;!?\n]|\.(?=\S))*",
    re.IGNORECASE,
)
#: Without one of these nothing is spoken against in such a way.
SPEAKS_AGAINST = at_first_use(
    rf"\b(?:{'|'.join(sorted(REMOVES))}|instead|rather|in place|opposed|not?|but|replac|from|prefer|over|more than|against|away|gave|rid"
    r"|abandon|won['\u2019]t|aren['\u2019]t|gone|history|dead)",
    re.IGNORECASE,
)
CLAUSE_END = at_first_use(r"[.;:,!?()]\s|[()\n]")
MOVED = at_first_use(
    r"\b(?:mov|migrat|switch|chang|convert|port)(?:e|es|ed|ing|ed over)?\b[^.;:\n]{0,60}?\bfrom\s+((?:[^.;:,\n]|\.(?=\w)){1,60}?)\s+(?:over\s+)?to\b",
    re.IGNORECASE,
)
A_NAME = r"[`\"']?((?<!\w)(?:--?)?[\w~][\w./~-]{0,80}(?:\(\))?)[`\"']?"
RENAMES = (
    at_first_use(rf"\brenam(?:e|ed|ing)\s+(?:the\s+)?(?:\w+\s+)?{A_NAME}\s+(?:\w+\s+)?(?:to|into|as)\s+{A_NAME}", re.IGNORECASE),
    at_first_use(rf"{A_NAME}(?:\s+\w+)?\s+(?:was|were|is|are|has been|have been|got|gets)\s+renamed\s+(?:to|into|as)\s+{A_NAME}", re.IGNORECASE),
    at_first_use(rf"{A_NAME}(?:\s+\w+)?\s+is\s+now\s+(?:called|named)\s+{A_NAME}", re.IGNORECASE),
    at_first_use(r"`([^`\n]{2,60})`\s+is\s+now\s+`([^`\n]{2,60})`", re.IGNORECASE),
)  # fmt: skip
#: Without one of these no pattern of RENAMES matches.
RENAMING = ("renam", "now")
CALLED = at_first_use(rf"\b(?:is|are|was|be)\s+(?:called|named)\s+{A_NAME}", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A value in its place: the verb before it ("" for one that says nothing), the kind of preposition, its stems."""

    verb: str
    way: str
    value: frozenset[str]


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


@cached(2048)
def assertion(said: str) -> str:
    """What a statement asserts, without fillers and the reasons that it gives: who shares a reason shares no subject."""
    bare = FILLER.sub(" ", REASON.sub("", said)).strip()
    return bare if len(similarity.gist(bare).stems) >= 2 else said


@cached(2048)
def read(said: str) -> Said:
    """A statement taken apart."""
    tokens = [(word, stem(word)) for word in TOKEN.findall(said.replace("\u2019", "'").replace("()", ""))]
    stems = frozenset(stem for word, stem in tokens if counts(word, stem))
    names = frozenset(
        stem for at, (word, stem) in enumerate(tokens) if counts(word, stem) and _is_name(word, first=at == 0)
    )
    denied, instead, moved = (
        negated(tokens),
        phrased(INSTEAD, said),
        phrased(MOVED, said),
    )
    spoken = frozenset(stem for one in (*negated(tokens, asides=True), *instead, *moved) for stem in one.what)
    return Said(
        order=tuple(stem for word, stem in tokens if counts(word, stem)),
        stems=stems, parts=stems | _parts(said), names=names, main=_main(tokens) or stems, positive=stems - spoken, denied=tuple(denied),
        instead=(*instead, *moved), removed=tuple(ordered(tokens)), gone=_gone(tokens, said),
        prefers=_prefers(said),
        slots=tuple(_slots(tokens)), renames=renames(said),
        named=frozenset(found.casefold() for found in CALLED.findall(said)),
        turns=frozenset(word.casefold() for word, _ in tokens) & TURNED.keys(),
        topic=_topic(tokens), adds=bool(ADDS.search(said)),
        asks=said.rstrip().endswith("?"),
    )  # fmt: skip


def _is_name(word: str, *, first: bool) -> bool:
    return bool(NAME.match(word)) or (not first and word[:1].isupper())


def _parts(said: str) -> frozenset[str]:
    return frozenset(stem(part) for part in query_terms(" ".join(re.split(r"[-/._\s]", said))))


def _gone(tokens: list[tuple[str, str]], said: str) -> tuple[frozenset[str], ...]:
    """What a statement says is removed, or used no more, without asking and without a condition."""
    if said.rstrip().endswith("?"):
        return ()
    found = [one.what for one in ordered(tokens)]
    for match in GONE.finditer(said):
        start = max(said.rfind(end, 0, match.start()) for end in ".;\n") + 1
        opening = TOKEN.findall(said[start : match.end()])
        if not any(word.casefold() in RESTRICTS for word in opening):
            found.append(frozenset(stems_of(match[1] or match[2])))
    return tuple(stems for stems in found if stems)


def _prefers(said: str) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    """(what is liked, what it is liked better than) of each time a statement says so and does not ask."""
    if said.rstrip().endswith("?"):
        return ()
    pairs = [pair for pattern in PREFERS for pair in pattern.findall(said)]
    found = ((frozenset(stems_of(one)), frozenset(stems_of(other))) for one, other in pairs)
    return tuple((one, other) for one, other in found if one and other)


def _main(tokens: list[tuple[str, str]]) -> frozenset[str]:
    """The stems of a statement's first sentence up to what depends on it: a reason, a condition, an example."""
    found: set[str] = set()
    for at, (word, stem) in enumerate(tokens):
        if at and (word in (";", "(", ":", ".", "!") or word.casefold() in DEPENDS) and len(found) >= 2:
            break
        if counts(word, stem):
            found.add(stem)
    return frozenset(found)


def _topic(tokens: list[tuple[str, str]]) -> frozenset[str]:
    words = [word.casefold() for word, _ in tokens]
    at = next((place for place, word in enumerate(words) if word in COPULA), 0)
    return frozenset(stem for word, stem in tokens[:at] if counts(word, stem))


def _slots(tokens: list[tuple[str, str]]) -> list[Slot]:
    """Every value behind a preposition, a copula or "use", with the verb before it; adverbs of time are values too."""
    found: list[Slot] = []
    for at, (word, _) in enumerate(tokens):
        plain = word.casefold()
        if plain in TIMES and plain not in ("always", "once", "twice"):
            found.append(Slot(verb=_verb(tokens, at), way="time", value=frozenset((stem(word),))))
        way = WAYS.get(plain) or ("means" if plain in ("use", "using") else "")
        if not way and plain in COPULA:
            way = "is"
        if not way:
            continue
        value = _value(tokens, at + 1, stop_at_ways=True)
        if way == "is" and at + 1 < len(tokens) and _followed_by_way(tokens, at + 1):
            continue  # "is kept for": the verb, not a value
        if value:
            way = "time" if value & TIME_STEMS else way
            found.append(Slot(verb="" if way == "is" or plain == "use" else _verb(tokens, at), way=way, value=value))
    return found


def _followed_by_way(tokens: list[tuple[str, str]], at: int) -> bool:
    """Whether the word here is a participle with a preposition or an adverb of time behind it."""
    rest = [word.casefold() for word, _ in tokens[at : at + 2]]
    return len(rest) == 2 and (rest[1] in WAYS or rest[1] in TIMES) and rest[0] not in WAYS


def _value(tokens: list[tuple[str, str]], at: int, *, stop_at_ways: bool) -> frozenset[str]:
    part: list[str] = []
    for word, stem in tokens[at:]:
        plain = word.casefold()
        if word in STOPS or plain in BREAKS or plain in COPULA or (stop_at_ways and plain in WAYS and plain != "every"):
            break
        if counts(word, stem):
            part.append(stem)
        if len(part) >= 4:
            break
    return frozenset(part)


def _verb(tokens: list[tuple[str, str]], at: int) -> str:
    """The word before a preposition; "" for one that says nothing, or none."""
    for word, stem in reversed(tokens[:at]):
        if word in STOPS:
            return ""
        if word.casefold() in ("on", "off"):
            return word.casefold()  # "is off in": a state, which another place has for itself
        if word.casefold() in ("out", "up", "down", "back"):
            continue
        return stem if counts(word, stem) else ""
    return ""


@cached(1024)  # the same fifty memories are asked for every statement
def renames(said: str) -> tuple[tuple[str, str], ...]:
    """(old, new) names that a statement says were changed, case folded."""
    if not any(word in said.casefold() for word in RENAMING):
        return ()
    found: list[tuple[str, str]] = []
    for pattern in RENAMES:
        for old, new in pattern.findall(said):
            one, other = (name.strip("`\"'.,").casefold() for name in (old, new))
            if one and other and one != other and len(one) > 2 and len(other) > 2 and one not in STOP_WORDS:
                found.append((one, other))
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """Something a statement speaks against, and what else stands in the same clause: both stems."""

    what: frozenset[str]
    beside: frozenset[str]
    is_qualified: bool = False
    """Whether a clause behind it says of which, or when."""


def phrased(pattern: re.Pattern[str], said: str) -> list[Against]:
    """What a phrase speaks against, with the rest of its clause; where a comma opens it, with the clause before that."""
    found: list[Against] = []
    for match in pattern.finditer(said):
        what = frozenset(stems_of(next(group for group in match.groups() if group)))
        begin = len(said[: match.start()].rstrip(", "))
        start = max((stop.end() for stop in CLAUSE_END.finditer(said, 0, begin)), default=0)
        end = CLAUSE_END.search(said, match.end())
        beside = frozenset(stems_of(said[start : end.start() if end else len(said)])) - what - REPLACING
        if what:
            found.append(Against(what=what, beside=beside))
    return found


def negated(tokens: list[tuple[str, str]], *, asides: bool = False) -> list[Against]:
    """What stands behind each negation, to the end of its clause and five words at most; what before it is beside."""
    found: list[Against] = []
    for at, (word, _) in enumerate(tokens):
        plain = word.casefold()
        behind = tokens[at + 1 : at + 2]
        no_longer = plain == "no" and bool(behind) and behind[0][0].casefold() == "longer"
        decided = plain == "against" and at > 0 and tokens[at - 1][1] in DECIDING
        if not (plain in NEGATIONS or plain.endswith("n't") or no_longer or decided):
            continue
        if not asides and at and tokens[at - 1][0] == ",":
            continue  # "this, not that": phrases.INSTEAD
        if behind and behind[0][0].casefold() in NO_NEGATION:
            continue
        what, beside = clause(tokens, at + 1), _before(tokens, at) - DECIDING
        if not asides and not beside and _points_out(tokens, at):
            continue
        if what and (asides or not _is_aside(tokens, at)):
            found.append(Against(what=what, beside=beside, is_qualified=_is_qualified(tokens, at + 1)))
    return found


def ordered(tokens: list[tuple[str, str]]) -> list[Against]:
    """What is to be removed: an order or "we drop", not what some subject does."""
    found: list[Against] = []
    for at, (word, _) in enumerate(tokens):
        if word.casefold() in REMOVES and not _before(tokens, at) and not _is_aside(tokens, at):
            owned = _behind_owner(tokens, at + 1)
            what = clause(tokens, owned)
            if what:
                found.append(Against(what=what, beside=frozenset()))
    return found


def _is_qualified(tokens: list[tuple[str, str]], at: int) -> bool:
    """Whether a clause goes on with one that restricts it: "comments that repeat the code", "when it is empty"."""
    words = [word for word, _ in tokens[at:]]
    end = next((place for place, word in enumerate(words) if word in STOPS), len(words))
    return any(word.casefold() in RESTRICTS for word in words[:end])


def _behind_owner(tokens: list[tuple[str, str]], at: int) -> int:
    """Where what is named begins: of "the network's VPN" behind the owner."""
    for place, (word, _) in enumerate(tokens[at : at + 5], at):
        if word in STOPS:
            break
        if word.endswith("'s"):
            return place + 1
    return at


def _points_out(tokens: list[tuple[str, str]], at: int) -> bool:
    """Whether the subject before a word is one that stands elsewhere: what "it" does not do, nobody can tell."""
    for word, _ in reversed(tokens[:at]):
        if word in STOPS:
            break
        if word.casefold() in POINTS_OUT:
            return True
    return False


def _before(tokens: list[tuple[str, str]], at: int) -> frozenset[str]:
    """The stems of the same clause before a word."""
    part: set[str] = set()
    for word, stem in reversed(tokens[:at]):
        if word in STOPS:
            break
        if counts(word, stem) and word.casefold() not in ASIDE:
            part.add(stem)
    return frozenset(part)


def _is_aside(tokens: list[tuple[str, str]], at: int) -> bool:
    """Whether a word stands in a question or a clause that depends on another: what is said there is not stated."""
    words = [word.casefold() for word, _ in tokens[:at]]
    for back in range(len(words) - 1, -1, -1):
        if words[back] in STOPS:
            if words[back] == "," and _opening(words, back) in COUNTERFACTUAL:
                return True
            break
        if words[back] in DEPENDS:
            return True
    return next((word for word, _ in tokens[at:] if word in ".!?"), "") == "?"


def _opening(words: list[str], at: int) -> str:
    """The word with which the clause before a comma begins."""
    start = max((place + 1 for place, word in enumerate(words[:at]) if word in STOPS), default=0)
    return words[start] if start < at else ""


def clause(tokens: list[tuple[str, str]], at: int) -> frozenset[str]:
    part: list[str] = []
    for word, stem in tokens[at:]:
        plain = word.casefold()
        if word in STOPS or plain in BREAKS or len(part) >= 5:
            break
        if plain not in ASIDE and counts(word, stem):
            part.append(stem)
    return frozenset(part)


@dataclass(frozen=True, slots=True)
class Change:
    """A thing and the value it has now, both as stems; `common`: the value is some thing and not a name.

    `gone` is what the statement says nobody uses any more.
    """

    thing: frozenset[str]
    value: frozenset[str]
    common: bool
    gone: frozenset[str] = frozenset()


_DID = r"(?:moved|migrated|switched|ported|transitioned)(?: over)?"
_NP = r"((?:[\w`'./-]+ ){0,5}[\w`'./-]+)"
#: "we moved THING to VALUE", and "THING [was] moved to VALUE"; a clause ends where the next begins.
_CHANGED = (
    re.compile(rf"\b(?:we|i|they|have|has|['\u2019]ve) (?:\w+ly |now |just |all |finally )?{_DID} {_NP}? (?:over )?(?:to|onto) {_NP}", re.IGNORECASE),
    re.compile(rf"{_NP}? (?:(?:has|have) been|was|were|is|are|got|has|have)? ?(?:now |just )?{_DID} (?:to|onto) {_NP}", re.IGNORECASE),
)  # fmt: skip
#: "THING is now VALUE": where the value is a name; "the tests are now green" tells of no other thing.
_IS_NOW = re.compile(
    rf"{_NP}? (?:is|are) now (?!(?:in|on|at|from|with|for|behind|under|part|of|to|by|done|only)\b){_NP}", re.IGNORECASE
)
#: "we're back on VALUE for THING", and "we're on NAME VERSION now".
_BACK_ON = re.compile(
    rf"\b(?:we|i)(?:['\u2019]re|['\u2019]m| are| am| went| go) (?:now )?back (?:on|to|with) {_NP}? (?:for|as|in) {_NP}",
    re.IGNORECASE,
)
_ON_VERSION = re.compile(
    r"\b(?:we|i)(?:['\u2019]re|['\u2019]m| are| am) (?:now )?(?:back )?(?:on|at) ([\w.+#-]*[a-z][\w.+#-]*) v?(\d[\w.]*)",
    re.IGNORECASE,
)
#: "THING is 9191 now".
_NUMBER_NOW = re.compile(rf"{_NP}? (?:is|are) ((?:[\w`'./-]+ ){{0,2}}[\w`'./-]*\d[\w`'./-]*) now\b", re.IGNORECASE)
#: Who has something in hand: "Ines owns billing".
_IN_HAND = re.compile(
    r"^\W*((?:[A-Z][\w'-]{1,30} ){1,2})(?:now )?(owns|maintains|leads|manages|handles|reviews) ([^.,;:\n]{2,80})"
)
_SINCE = re.compile(r"\b(?:now|by now|took over|from now on|these days|nowadays)\b", re.IGNORECASE)
#: What nobody uses any more.
_GONE = re.compile(
    r"\b(?:no longer|don['\u2019]t|do not) use ([\w`'./-]+)(?! for\b)|\bstopped using ([\w`'./-]+)", re.IGNORECASE
)
#: Before the verb these say that nothing was changed, or not yet.
_UNDONE = re.compile(
    r"n['\u2019]t\b|\b(?:not|never|if|when|once|until|before|unless|should|could|would|might|may|will|want|plan|almost|nearly|why|did)\b",
    re.IGNORECASE,
)
#: The thing is the first group and its value the second, but for _BACK_ON.
_PATTERNS = (_BACK_ON, _ON_VERSION, *_CHANGED, _NUMBER_NOW, _IS_NOW)
_COMMON = re.compile(r"(?:the|a|an|its|their|our|his|her|my|your|another|some|this|that)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"[.;:!?,()\n]+(?:\s+|$)")
#: In these ways a thing has what can be changed like this: where it runs or is kept, and with what; not who wrote it.
HOLDING = frozenset(
    stem(word)
    for word in "use run keep store live host go deploy do serve manage track work sit stay handle ship report render hold listen".split()
) | {""}
_MONTHS = frozenset(
    stem(word)
    for word in "january february march april may june july august september october november december jan feb mar apr jun "
    "jul aug sep sept oct nov dec".split()
)
#: What of a thing somebody has in hand says only that it is one.
_PARTS_OF_WORK = frozenset(stem(word) for word in "module service team part area stuff package component app".split())
MOST_OF_VALUE = 4
#: Characters of a statement that are read: people say at once that something has changed, and a pattern's time is bounded.
MOST_READ = 600


@cached(2048)
def changes(said: str) -> tuple[Change, ...]:
    """What a statement says was changed, and into what."""
    said = said[:MOST_READ]
    if not any(
        word in said.casefold()
        for word in ("moved", "migrated", "switched", "ported", "transitioned", " now", " back ", "re on ", " are on ")
    ):
        return ()
    found: list[Change] = []
    gone = frozenset(stem for pair in _GONE.findall(said) for stem in stems_of(" ".join(pair)))
    for part in _SENTENCE.split(said):
        match = next((match for pattern in _PATTERNS if (match := pattern.search(part))), None)
        if match is None or not match[1] or _UNDONE.search(part[: match.start(2)]):
            continue
        of, into = (2, 1) if match.re is _BACK_ON else (1, 2)
        thing, value = frozenset(stems_of(match[of])), frozenset(stems_of(match[into])[:MOST_OF_VALUE])
        if thing and value and not part.rstrip().endswith("?"):
            named = any(NAME.match(word) or word[:1].isupper() for word in match[into].split())
            if named or match.re is not _IS_NOW:
                found.append(Change(thing, value, bool(_COMMON.match(match[into])) and not named, gone))
    return tuple(found)


def overturns(change: Change, before: Said) -> bool:
    """Whether an older statement gives the thing that was changed another value."""
    if not change.thing <= before.stems or before.asks:
        return False
    return any(_is_other(change, slot, before) for slot in before.slots)


def handed_on(older: str, newer: str) -> bool:
    """Whether what somebody had in hand is another's by now."""
    before, after = _IN_HAND.match(older), _IN_HAND.match(newer)
    if before is None or after is None or before[2] != after[2] or not _SINCE.search(newer):
        return False
    one, other = (frozenset(stems_of(found[3])) for found in (before, after))
    one, other = one - _PARTS_OF_WORK, other - _PARTS_OF_WORK
    return before[1] != after[1] and len(one & other) * 2 >= max(1, min(len(one), len(other)))


def _is_other(change: Change, slot: Slot, before: Said) -> bool:
    # A number takes a number's place, in 2026-12-15 as in "port 8080"; "green" nothing's.
    numbers = _is_number(slot.value - change.thing) and _is_number(change.value)
    if slot.way == "is":
        if not numbers:
            return False
    elif slot.way not in ("means", "place") or slot.verb not in HOLDING:
        return False
    if slot.value & change.value or (slot.value & change.thing and not numbers):
        return False
    if slot.value & before.names and change.common:
        return False
    if slot.value & change.gone:
        return True
    # The thing is all that the older one speaks of: a part of it, or one of several, stays where it is.
    subject = before.positive - (slot.value - change.thing) - {slot.verb} - HERE
    return len(change.thing) >= 0.6 * len(subject)


def _is_number(value: frozenset[str]) -> bool:
    return any(stem[0].isdigit() for stem in value) and all(stem[0].isdigit() or stem in _MONTHS for stem in value)


#: Where one part ends and another begins: rows of a list, numbers that count off, a full stop before a small letter.
_CUTS = re.compile(r"; |\n+|(?:^|(?<=[\s:;,.]))\(?\d{1,2}[.)] |(?<=\w{3}[.!]) +(?=[a-z])")
#: Joins two clauses, where each says of something how it is, with what, or where.
_AND = re.compile(r",? and (?:also )?", re.IGNORECASE)
#: What goes on about the part before it.
_GOES_ON = at_first_use(
    r"\W*(?:it|this|that|these|those|they|he|she|we then|then|so|because|since|but|and|or|however|instead|otherwise|therefore|which|as|not|except|unless"
    r"|e\.g|for example|the reason|reason)\b",
    re.IGNORECASE,
)
#: A part has so many words with content.
LEAST_PARTS = 2


@cached(1024)
def parts(said: str) -> tuple[str, ...]:
    """The parts of a statement in its own words: its list's items, sentences or joined clauses, each with what goes on about it.

    A heading, which ends with a colon, is none.
    """
    found: list[str] = []
    for row in _CUTS.split(said):
        for sentence in prose.sentences(row):
            for clause in _clauses(sentence):
                if clause.endswith(":") and not found:
                    continue
                if found and (_GOES_ON.match(clause) or not _says_something(clause)):
                    found[-1] = f"{found[-1]} {clause}"
                elif clause.strip():
                    found.append(clause.strip())
    return tuple(part for part in found if _says_something(part))


def _says_something(clause: str) -> bool:
    return len(similarity.gist(clause).stems) >= LEAST_PARTS or bool(read(clause).slots)


def _clauses(sentence: str) -> list[str]:
    """A sentence cut at its first "and" where a value is given on both sides; else whole."""
    for match in _AND.finditer(sentence):
        sides = (sentence[: match.start()], sentence[match.end() :])
        if all(read(side).slots for side in sides):
            return list(sides)
    return [sentence]


def without(said: str, ended: Sequence[str]) -> str:
    """What is left of a statement without some of its `parts`, its heading kept; "" where nothing is."""
    left = [part for part in parts(said) if part not in ended]
    if not left:
        return ""
    first = _CUTS.split(said)[0].strip()
    heading = f"{first} " if first.endswith(":") and first not in left else ""
    return heading + "".join(part + (" " if part.endswith((".", "!")) else "; ") for part in left[:-1]) + left[-1]


def spoken_of(older: str, newer: str) -> tuple[str, ...]:
    """The parts of the older one that the newer one speaks of, by words that only they say; all where it has one part."""
    said = parts(older)
    if len(said) < 2:
        return said
    stems, told = [similarity.gist(part).stems for part in said], similarity.gist(newer).stems
    own = [one.difference(*(other for other in stems if other is not one)) for one in stems]
    return tuple(part for part, words in zip(said, own, strict=True) if words & told)


def is_partly(older: str, newer: str) -> bool:
    """Whether the newer one speaks of some of the parts of the older one, and of others it says nothing."""
    return 0 < len(spoken_of(older, newer)) < len(parts(older))


#: Words beside what somebody likes that say no more: "prefer tabs", "use tabs for indentation".
LIKING = frozenset(
    stem(word) for word in "prefer like want choose love over indent indentation indenting style always".split()
)
#: A denial names so much of what it denies.
MOST_OF_IT = 0.6
#: Of the shorter statement's words so many are in the other, or they speak of two things.
SAME_SUBJECT = 0.5


def signals(before: Said, after: Said, unfollowed: Said, shared: frozenset[str], newer: str) -> dict[str, bool]:
    """By what the newer one replaces the older: signal -> whether it certainly is the same subject."""
    if any(old in unfollowed.named for old, _ in after.renames):
        return {"renamed": True}
    found = {"changed": True} if _changed(before, newer) else {}
    if any(_likes_better(one, other, before) for one, other in after.prefers):
        found["prefers"] = True
    for what in after.gone:
        if what <= before.positive and before.has_near(what) and not before.gone:
            is_subject = before.topic == what
            if is_subject or 2 * len(what) >= len(before.stems):
                found["gone"] = True
            elif what & before.names or any(slot.value == what for slot in before.slots):
                found.setdefault("gone", False)
    if len(shared) < SAME_SUBJECT * min(len(before.stems), len(after.main)):
        return found
    if any(_says_against(one, before) for one in after.instead):
        found["says-instead"] = not _names_another_end(before, after)
    if any(_denies(one, before) for one in after.denied):
        found["denied"] = True
    if (opposite := _opposite(before, after, shared)) is not None:
        found["opposite"] = opposite
    return found | _signals_slots(before, after)


def _changed(before: Said, newer: str) -> bool:
    return any(overturns(change, before) for change in changes(newer))


def _names_another_end(before: Said, after: Said) -> bool:
    """Whether each statement names something that the other does not, besides the value that was exchanged."""
    left = before.positive & after.positive
    verbs = frozenset(slot.verb for slot in before.slots)
    gone = frozenset(stem for one in after.instead for stem in one.what) | HERE
    return bool(before.positive - left - verbs - gone) and len(after.positive - before.stems - REPLACING) > 1


def _likes_better(one: frozenset[str], other: frozenset[str], before: Said) -> bool:
    """Whether an older statement is for what is now liked less, and of nothing but that."""
    rest = before.stems - other - LIKING
    return (
        other <= before.positive
        and (one <= rest or not one & rest)
        and not rest - one
        and not before.denied
        and (not any(one <= liked for liked, _ in before.prefers))
    )


def _says_against(one: Against, before: Said) -> bool:
    """`X instead of Y`: Y stands in the older one, with what stands beside it in the newer."""
    if not one.what <= before.positive or not before.has_near(one.what):
        return False
    if one.beside and one.beside <= before.stems - before.positive:
        return True  # "use black, not ruff": what is wanted now is what the older one spoke against
    beside = len(one.beside & before.parts)
    if not beside and len(one.beside) <= 1 and _is_all(one.what, before):
        return True  # "use pytest instead of unittest" speaks of no subject, and the older one of little else
    special = len(one.what) > 1 or one.what & before.names
    return (beside >= 2 and beside >= 0.4 * len(one.beside)) or (bool(special) and 1 <= beside >= 0.5 * len(one.beside))


def _is_all(what: frozenset[str], before: Said) -> bool:
    """Whether a statement says by what something is done, or where ("we deploy to Fly.io"), and hardly what."""
    beside, slots = before.positive - what - ALWAYS, [slot for slot in before.slots if slot.value == what]
    placed = {slot.verb for slot in slots if slot.way == "place"} & HOLDING if what <= before.names else None
    return bool(placed and beside <= placed) or (len(beside) <= 2 and any(slot.way == "means" for slot in slots))


def _denies(one: Against, before: Said) -> bool:
    """A negation: the older one affirms just what is denied, of the same subject; without a subject nearly all of it."""
    if one.is_qualified or not one.what <= before.positive or not before.has_near(one.what):
        return False
    if not one.beside and len(one.what) < 2:
        return before.positive == one.what
    return one.beside <= before.parts and len(one.what | one.beside) >= MOST_OF_IT * len(before.main)


def _opposite(before: Said, after: Said, shared: frozenset[str]) -> bool | None:
    """Whether they differ in a word and its opposite and in nothing else; False where one says more, None if otherwise."""
    old, new = before.stems - shared, after.stems - shared
    for one in old:
        for other in ANTONYMS.get(one, frozenset()) & new:
            if _same_subject(before.stems - {one}, after.stems - {other}):
                return before.stems - {one} == after.stems - {other}
    alike = len(shared) >= similarity.SAME_SHARE * len(before.stems | after.stems)
    if alike and any(TURNED[word] in after.turns - before.turns for word in before.turns - after.turns):
        return True
    return None


def _signals_slots(before: Said, after: Said) -> dict[str, bool]:
    """The kinds of values that changed: of one slot, where the rest of both statements is the same subject."""
    if after.adds or after.asks:
        return {}
    if before.positive < after.positive or after.positive < before.positive:
        return {}  # one says what the other does, and more
    for old in before.slots:
        for new in after.slots:
            if old.way != new.way or not _one_verb(old.verb, new.verb, before, after):
                continue
            if old.value <= new.value or new.value <= old.value:
                continue
            verbs = {old.verb, new.verb}
            subject, other = before.stems - old.value - verbs - new.value, after.stems - new.value - verbs - old.value
            if not _same_subject(subject, other):
                continue
            kind = _kind(old.value - new.value, new.value - old.value, before, after, is_time=old.way == "time")
            if kind and (subject == other or kind != "value"):
                return {kind: subject == other}
    return {}


def _kind(changed: frozenset[str], into: frozenset[str], before: Said, after: Said, *, is_time: bool) -> str:
    """The signal that a value of one kind gives when it takes another's place; "" for two that are of different kinds."""
    if _signals_is_number(changed) and _signals_is_number(into):
        return "number"
    if changed & before.names and into & after.names:
        return "name"
    return "value" if _signals_is_number(changed) == _signals_is_number(into) or is_time else ""


def _one_verb(old: str, new: str, before: Said, after: Said) -> bool:
    """Whether two slots stand behind the same word, or behind one that says nothing or stands in both statements."""
    return old == new or not old or not new or (old in after.stems and new in before.stems)


def _same_subject(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether what is left of two statements is one subject: of what one says more, the other has no counterpart."""
    both = one & other
    if not both or (one - other and other - one):
        return False
    return len(both) >= 0.5 * max(len(one), len(other))


def _signals_is_number(stems: frozenset[str]) -> bool:
    return any(stem[0].isdigit() for stem in stems)


#: What an amendment takes from the older statement's confidence: at least, and at most (design section 4).
LEAST, MOST = 0.20, 0.50
#: And what is left of it in any case.
LEAST_LEFT = 0.05
#: Sure enough to lower the older one.
SURE = 0.5
#: signal -> how sure it alone makes that the older is amended.
SIGNALS: Mapping[str, float] = {
    "renamed": 0.95,
    "says-instead": 0.9,
    "denied": 0.8,
    "gone": 0.8,
    "prefers": 0.8,
    "changed": 0.75,
    "opposite": 0.7,
    "number": 0.7,
    "name": 0.65,
    "value": 0.55,
}
#: Why a person is asked.
UNSURE = "the newer one may replace it, or be about something else"
#: How sure what may be a replacement is: only a person can tell.
DOUBTFUL = 0.4
CUE_ADDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """How a later statement replaces an earlier one: certainly (SURE and more) or perhaps; `reasons` name the signals, the surest first."""

    confidence: float
    reasons: tuple[str, ...]

    @property
    def lowers(self) -> float:
        """By how much the older one's confidence falls, by clarity."""
        clarity = (self.confidence - SURE) / (1.0 - SURE)
        return round(LEAST + (MOST - LEAST) * min(1.0, max(0.0, clarity)), 4)


def amendment(older: str, newer: str, renames: Mapping[str, str] | None = None) -> Replacement | None:
    """How `newer` amends `older`, None where it does not: the one relation that is asked for of every memory that is near."""
    found = replacement(older, newer, renames)
    return found if found is not None and found.confidence >= SURE else None


def doubt(older: str, newer: str, renames: Mapping[str, str] | None = None) -> Replacement | None:
    """How `newer` may amend `older`, where only a person can tell whether it does; None where it does or does not."""
    found = replacement(older, newer, renames)
    return found if found is not None and found.confidence < SURE else None


def ended_parts(
    older: str, newer: str, renames: Mapping[str, str] | None = None
) -> tuple[Replacement, tuple[str, ...]] | None:
    """Which of the several parts of `older` are certainly replaced, and how; None where it is one thing, or none is."""
    said = parts(older)
    found = {part: replaced for part in said if (replaced := amendment(part, newer, renames))} if len(said) > 1 else {}
    return (next(iter(found.values())), tuple(found)) if found else None


def replacement(older: str, newer: str, renames: Mapping[str, str] | None = None) -> Replacement | None:
    """How `newer`, or the surest of its parts, replaces `older`: certainly (SURE and more) or doubtfully; None where it does not."""
    of_parts = (_of_one(older, part, renames) for part in dict.fromkeys((newer, *parts(newer))))
    found = [one for one in of_parts if one is not None]
    if found and is_partly(older, newer):
        return replace(found[0], confidence=DOUBTFUL)
    return max(found, key=lambda one: one.confidence, default=None)


def _of_one(older: str, newer: str, renames: Mapping[str, str] | None) -> Replacement | None:
    older, newer = assertion(older), assertion(newer)
    before, after = read(followed(older, renames or {})), read(newer)
    shared = before.stems & after.stems
    if not shared or before.asks:
        return None
    if ENVIRONMENTS & before.stems - after.stems and ENVIRONMENTS & after.stems - before.stems:
        return None
    found = signals(before, after, read(older), shared, newer)
    if handed_on(older, newer):
        found["changed"] = True
    if not found:
        return None
    certain = sorted((name for name, is_certain in found.items() if is_certain), key=lambda name: -SIGNALS[name])
    if not certain:
        return Replacement(confidence=DOUBTFUL, reasons=tuple(found))
    confidence = min(1.0, SIGNALS[certain[0]] + CUE_ADDS * bool(CUE.search(newer)))
    return Replacement(confidence=round(confidence, 2), reasons=tuple(certain))


def stands(*, pinned: bool) -> str:
    """Why a memory stands that is spoken against."""
    return "it is pinned" if pinned else "it was said with more authority, or holds in more places"


# --- names that changed


def table(statements: Sequence[str]) -> dict[str, str]:
    """Old name -> the one it has now, from statements in the order they were made; chains are followed."""
    now: dict[str, str] = {}
    for statement in statements:
        for old, new in renames(statement):
            now.pop(new, None)  # a name that is taken up again is no old one
            for earlier, current in list(now.items()):
                if current == old:
                    now[earlier] = new
            now[old] = new
    return {old: new for old, new in now.items() if old != new}


def names(said: str, name: str) -> bool:
    """Whether a text names something by this name."""
    return name in said.casefold() and bool(_whole(name).search(said))


def followed(said: str, renames: Mapping[str, str]) -> str:
    """A text with each old name replaced by the new one."""
    present = [old for old in renames if old in said.casefold()]
    for old in present:
        said = _whole(old).sub(lambda _, new=renames[old]: new, said)  # type: ignore[misc]
    return said


@cached(512)
def _whole(name: str) -> re.Pattern[str]:
    """A name where it stands alone: not as a part of a longer one."""
    return re.compile(rf"(?<![\w/.-]){re.escape(name)}(?![\w/-]|\.\w)", re.IGNORECASE)
