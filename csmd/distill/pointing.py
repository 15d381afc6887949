"""What a statement, as it is told, points at and does not name; pure.

A table of forms (standing.py) sees one sentence; here it counts whether anything is named at all. Somebody's short order
about "it", a question without a decision, and definite words for what stands before the cut are clear to those who were
there and to nobody else. Names are code, paths, flags, quoted words and acronyms. Gaps in the patterns are bounded.
"""

from __future__ import annotations

import re

from csmd.distill.refused import Speaker
from csmd.patterns import at_first_use
from csmd.text import sentences, words

#: A user's order or verdict of at most so many words is about what was on the screen, unless it names something.
SHORT_WORDS = 25
#: So much of a statement is looked at.
LOOKED_AT = 1_200


def _re(pattern: str) -> re.Pattern[str]:
    return at_first_use(pattern, re.IGNORECASE)


_NAMED = re.compile(
    r"`|[\w-]\.[a-z]{2,5}\b|(?:^|\s)[./~][\w.]|\w/\w|\b[a-z]+[A-Z]\w|\b[A-Z][a-z]+[A-Z]\w|[A-Za-z]_[A-Za-z]|(?:^|\s)--?[a-z]"
    r"|\b[A-Z]{2,}[a-z\d]{0,4}\b|\w\(\)|[\"“][^\"”]{2,80}[\"”]|@\w|\b\w+-\w+\b|(?<=[a-z,] )(?!I\b)[A-Z][a-z]{2,}|\b\d{2,}\b"
)
#: A rule for more than this time.
_RULE = _re(
    r"\b(?:always|never|every|each|whenever|any ?time|from now on|as a rule|in general|wherever|everywhere|in (?:the )?future"
    r"|we (?:use|do not|don['’]t|prefer|keep|only)|prefer|convention|source of truth|consistent)\b"
)
_POINTER = _re(
    r"\b(?:this|it|them|those|the (?:others?|same|rest(?! of\b))|continue(?! (?:with|on) (?:the|our|my) (?!(?:same|other|next|last|first|second)\b)[a-z]{3,}))\b"
)
#: Words for something that stands before it in the same sentence, after a noun that they can mean.
_BACKWARD = frozenset({"it", "them", "those", "the rest", "the same"})
_NOUN = _re(
    r"\b(?:the|an?|our|my|your|each|every|any|all|some|no|these|two|three|more|new) (?!(?:issue|problem|point|thing|way|idea|question|need|one|same"
    r"|others?|rest)\b)[a-z]{3,}|^\W{0,3}(?!(?:is|was|as|thus|this|let['’]?s)\b)[a-z]{3,}s\b"
    r"|^\W{0,3}(?!(?:that|this|there|here|what|who|which|everything|something|nothing|all|both|one)\b)[a-z][\w-]{2,} (?:is|are|was|were|has|had)\b"
)
#: Set phrases in which "it" and "this" stand for nothing.
_SET_PHRASE = _re(
    r"\b(?:it(?:['’]s| is| was| would be| seems| looks| turns out) (?:\w+ )?(?:that|to|if|like|important|possible|better|fine)\b"
    r"|this (?:project|repo(?:sitory)?|codebase|week|month|year|sprint|team|company|machine|module|service|app)\b"
    r"|make it (?:\w+ )?to\b|it takes\b|\w{3,} it is[,.!;]|(?:found|got) it[:,.!]|as it is\b"
    r"|it(?:['’]s| is| was) (?:not )?(?:the|an?|our|my) (?:[\w-]+ ){1,4}(?:that|who|which|after all)\b)"
)
#: What one says of the work at hand as a whole, where what is said holds beyond the moment.
_AT_WORK = _re(
    r"\bthis (?:is|isn['’]t)\b|\b(?:on|of|in|for|with|to|at) this (?!(?:one|run|call|time|once|file|page|case|line|test|branch|commit"
    r"|function|moment|point|way|day|morning|afternoon)\b)[a-z]{4,}\b"
)
#: What a sentence that is no question states beside one.
_STATES = _re(
    r"\b(?:we|you|it|they|i) (?:\w+ )?(?:need|must|should|have to|has to|want|use|do not|don['’]t|can(?:['’]t|not)|will)\b|\blet['’]?s\b"
    r"|\b(?:because|since|otherwise|always|never|must|should|i['’]d like|instead|so that|not (?:correct|right|true))\b"
)
#: An order put as a question, about something it names.
_ASKS_FOR = _re(
    r"\b(?:can|could|should) (?:we|you) (?:(?:please|also|just|maybe|then|still|now) ){0,2}(?:add|allow|block|change|disable|drop|enable|have|hide|include"
    r"|keep|make|merge|move|print|rename|remove|replace|return|show|split|store|support|switch|use|write)\b"
)
_ASIDE = re.compile(r"\(([^()?]{8,200})\)")
#: What follows from what is asked about.
_CONSEQUENCE = _re(r"^\W{0,3}(?:if|when)\b[^?]{8,160}\b(?:then|that would|we should|we need)\b")
_NOT_SURE = _re(
    r"^\W{0,3}(?:i['’]m |i am |still )?(?:not (?:really |quite )?sure|unsure|no idea) (?:if|whether|that|what|how|why)\b"
)
#: A definite word for a part of the work, which means one that was named before it.
_DEFINITE = _re(
    r"\b(?:the|this|these|those|both|that|all (?:\d+|three|two|four)) (?:(?!of\b|in\b|is\b)[a-z-]{2,20} )?(?:checks?|places|functions|methods|wrappers?"
    r"|calculations?|settings?|conditions?|loops?|branches|handlers?|locations|calls|versions|fields|entries|lines|helpers?"
    r"|commands?)\b"
)
#: Who is to do something with what nobody named: the only thing named before "it" is who does it.
_DOES_IT = _re(
    r"^\W{0,3}(?!(?:if|when|once|because|since|after|before|to|for|in|as)\b)(?:[\w'’-]{1,30} ){1,5}?(?:should|must|needs? to|has to|have to|can|could|would|will|may)"
    r" (?:(?:also|just|always|somehow|already|either|first|need to|have to|be able to) ){0,3}(?:handle|do|fix|support|change|add|remove|prevent|show|use|cover|catch|solve|set|enable"
    r"|disable|allow|approve|switch|configure|move) (?:that(?: (?:automatically|too|as well|for|by|when|properly|correctly|now|instead)\b|[,.;!?]|$)|it\b)"
)
#: What speaks on about the sentence before it.
_GOES_ON = _re(
    r"^\W{0,3}(?:however|but|so|therefore|instead|otherwise),? (?:this|that|these|those|it|they)\b|^\W{0,3}this (?:could|may|might) (?:\w+ )?[a-z]"
)
#: Behind a question goes on what is no question, in small letters, too.
_ASKED = re.compile(r"(?<=\?) ")
_CLAUSE = re.compile(r"[;.!?]\s|\s[-–—]\s")


def unnamed(said: str, speaker: Speaker, *, holds: bool = False) -> str:
    """What makes a statement of `speaker` point at something that it does not name; "" for one that can be followed.

    One that `holds` beyond the moment may say "this" of the work it is about.
    """
    said = said[:LOOKED_AT]
    if _DOES_IT.match(said) or _GOES_ON.match(said):
        return "unseen"
    if speaker == "assistant":
        return "unseen" if _begins_unseen(said) else ""
    named = _NAMED.search(said) is not None
    if _only_asks(said, named=named):
        return "asks"
    if (
        not named
        and len(words(said)) <= SHORT_WORDS
        and not _RULE.search(said)
        and points(_AT_WORK.sub(" ", said) if holds else said)
    ):
        return "unseen"
    return ""


def points(said: str) -> bool:
    """Whether any sentence has a word for something that neither it nor one before it holds."""
    noun = False
    for part in sentences(said):
        part = _SET_PHRASE.sub(" ", part)
        for found in _POINTER.finditer(part):
            known = noun or _NOUN.search(part[: found.start()]) is not None
            if not (known and found[0].lower() in _BACKWARD):
                return True
        noun = noun or _NOUN.search(part) is not None
    return False


def _only_asks(said: str, *, named: bool) -> bool:
    """Whether somebody asks or is in doubt, and states nothing beside it."""
    parts = [part for one in sentences(said) for part in _ASKED.split(one)]
    ends = said.rstrip(" )\"'*_").endswith("?")
    doubts = _NOT_SURE.match(said) is not None
    if not (ends or doubts or ("?" in said and not named)):
        return False
    plain = [part for part in parts if "?" not in part and not _NOT_SURE.match(part)]
    if any(_STATES.search(part) for part in (*plain, *_ASIDE.findall(said))) or _CONSEQUENCE.search(said):
        return False
    return not (named and (len(words(said)) > SHORT_WORDS or _ASKS_FOR.search(said)))


def _begins_unseen(said: str) -> bool:
    """Whether the first clause has a definite word for a part of the work, and nothing named before it."""
    first = _CLAUSE.split(said, maxsplit=1)[0]
    found = _DEFINITE.search(first)
    if found is None:
        return False
    return not (_NAMED.search(first[: found.end()]) or ":" in first[: found.start()])
