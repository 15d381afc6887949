"""The words and phrases by which statements are taken apart: tables of English, and nothing else.

Prepositions open slots, negations and a few verbs speak against something; what is in no table is a word like any other.
"""

from __future__ import annotations

import re

from csmd import text
from csmd.patterns import at_first_use

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
    short = text.stem(IRREGULAR.get(bare, bare))
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
    return len(stem) > 1 and plain not in text.STOP_WORDS and plain not in text.TURNING_WORDS and stem not in WEAK_STEMS


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
