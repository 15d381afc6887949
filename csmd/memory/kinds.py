"""What a statement is as a memory: its type and id, and whether it is of the person."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass

from csmd.memory import confidence
from csmd.model import CATEGORIES, MemoryType, Statement
from csmd.text import tokens

#: The origin of what the assistant's self model states.
SELF = "self"
#: An assistant on itself: what it cannot do here, what it keeps doing.
_ON_ITSELF = re.compile(
    r"\bI(?:'m| am)? (?:can't|cannot|can not|not able to|unable to|tend to|keep (?:\w+ing)|always|never)\b",
    re.IGNORECASE,
)
#: How a failure shows itself.
_FAILURE = re.compile(
    r"\b(?:errors?|exception|traceback|panics?|segfaults?|core dump|stack trace|exit(?:s|ed)? (?:code|status|with)|"
    r"crash(?:es|ed)?|fail(?:s|ed|ure|ing)?|times? out|timed out|refused|denied)\b|\b\w+(?:Error|Exception)\b",
    re.IGNORECASE,
)
#: What was done, told by who did it.
_DONE = re.compile(
    r"^\W*(?:(?:I|we)(?:'ve| have)? |done[:.,] )?(?:now |also |just )?(?:added|changed|created|deleted|extracted|fixed|implemented|"
    r"introduced|merged|moved|refactored|released|removed|renamed|replaced|rewrote|reverted|simplified|switched|updated|wrote)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Said:
    """A statement with where it came from: `kind` of the turn that says it ("" for none), `origin` of the memory."""

    statement: Statement
    kind: str
    origin: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A type, when it is the one, and that condition in words."""

    type: MemoryType
    why: str
    fits: Callable[[Said], bool]


def _by_assistant(said: Said) -> bool:
    return said.statement.authority == "assistant"


RULES: tuple[Rule, ...] = (
    Rule("self_continuity", "stated by the self model, or by the assistant of itself",
         lambda said: said.origin == SELF or (_by_assistant(said) and bool(_ON_ITSELF.search(said.statement.text)))),
    Rule("conversation", "told by a summary of the conversation", lambda said: said.kind == "summary"),
    Rule("error", "a gotcha that shows how something fails",
         lambda said: said.statement.category == "gotcha" and bool(_FAILURE.search(said.statement.text))),
    Rule("episodic", "the assistant tells what it did, or a session's digest does",
         lambda said: "digest" in said.statement.reasons or (_by_assistant(said) and bool(_DONE.search(said.statement.text)))),
)  # fmt: skip


def type_of(statement: Statement, *, kind: str, origin: str) -> MemoryType:
    """The type of the memory that a statement becomes."""
    said = Said(statement, kind, origin)
    return next((rule.type for rule in RULES if rule.fits(said)), CATEGORIES[statement.category].type)


def of(project: int, body: str) -> str:
    """The id of what is said in a scope: `m` and ten hex digits."""
    return "m" + hashlib.sha256(f"{project}:{tokens.normalise(body)}".encode()).hexdigest()[:10]


#: Who says who they are says it at once: a longer text is looked at so far.
LOOKED_AT = 400
_I_AM = r"\bI(?:['’]m| am)"
_NAME = r"[A-Z]\w++(?:[ -][A-Z]\w++){0,2}"
_END = r"(?=\s*(?:[.,;:!()]|$|and\b|but\b|so\b))"
_CLOCK = r"(?:(?:UTC|GMT)(?:[+-]\d{1,2})?|[ECMP][SD]?T|WES?T|CES?T|EES?T|MSK|BST|IST|JST|KST|HKT|SGT|BRT|SAST|PKT|A[CEW][SD]T|NZ[SD]T)\b"
_ZONE = rf"(?:{_CLOCK}|[A-Z]\w+/[A-Z]\w+)"
_OF_LANGUAGE = r"(?:first|native|mother|second) (?:language|tongue)"
_PROFESSIONS = (
    r"develop|engineer|programm|cod|design|scientist|student|teach|professor|research|analyst|architect|writ|journalist|lawy|doctor"
    r"|physician|nurse|found|freelanc|consult|contract|manag|administrator|sysadmin|mathematician|physicist|biologist|economist"
    r"|accountant|artist|musician|hobbyist|beginn|newcom"
)
#: What somebody is asked for on a form -> how people say it of themselves. Names and places keep their capital letters.
#: "I'm Blocked" and "I'm in Slack" have the form of "I'm Marta" and "I'm in Lisbon": it takes a greeting, or "from".
SAID_OF_ONESELF: dict[str, re.Pattern[str]] = {
    "name": re.compile(
        rf"\b[Mm]y (?:full |first |last |real )?name(?: is|['’]s) {_NAME}{_END}|\b[Cc]all me {_NAME}{_END}"
        rf"|\bI go by {_NAME}{_END}|^(?:[Hh]i|[Hh]ello|[Hh]ey)\b[ ,!.]*+{_I_AM} {_NAME}{_END}"
    ),
    "place": re.compile(
        rf"\bI(?:['’]ve)? (?:live|lived|grew up)\b.{{0,20}}? (?:in|near|outside) {_NAME}"
        rf"|{_I_AM} (?:based |located |living |born )(?:in|near|out of) {_NAME}|{_I_AM} from {_NAME}{_END}"
        rf"|\b[Mm]y (?:home ?town|home|city|country) is {_NAME}{_END}"
    ),
    "time zone": re.compile(
        rf"\b[Mm]y (?:local |home )?time ?zone(?: is|['’]s|:) (?:the )?(?:{_ZONE}|{_NAME}{_END})"
        r"|\b[Mm]y (?:working|office) hours(?: are|:)(?: \w+){0,2} \d"
        r"|\bI work (?:from )?\d.{0,40}?\btime\b"
        rf"|{_I_AM} (?:in|on) (?:{_NAME}[ ,(]++(?:so )?)?(?:the )?{_CLOCK}"
    ),
    "pronouns": re.compile(
        r"\b[Mm]y pronouns(?: are|['’]re|:) (?:she|he|they|xe|ze|it|any)\b|\bI use (?:she|he|they|xe|ze)/\w+"
    ),
    "languages": re.compile(
        rf"\b[Mm]y {_OF_LANGUAGE} is(?:n['’]t| not)? [A-Z]\w+|\bI (?:only |also |mostly )?speak [A-Z]\w+"
        rf"|{_I_AM} (?:not )?a native (?:[A-Z]\w+ )?speaker|\b[A-Z]\w+ is(?:n['’]t| not)? my {_OF_LANGUAGE}"
    ),
    "profession": re.compile(
        rf"{_I_AM} (?:not )?an? (?:[\w-]++ ){{0,3}}(?:{_PROFESSIONS})\w*+(?! (?:of|on|for)\b)|\bI work as an? \w+"
        rf"|\b[Mm]y (?:day job|job title|job|profession) is (?:to be |being )?an? (?:[\w-]++ ){{0,3}}(?:{_PROFESSIONS})\w*+{_END}"
    ),
    "body": re.compile(rf"{_I_AM} (?:colou?r[- ]?blind|blind|deaf|dyslexic|left-handed|hard of hearing)\b"),
}
_COLOUR = r"(?:[Rr]ed|[Gg]reen|[Bb]lue|[Yy]ellow|orange|purple|pink|brown|black|white|gr[ae]y|cyan|magenta)"
#: They look like paths and point at nothing.
_NO_PATH = re.compile(
    rf"\b[A-Z]\w+/[A-Z]\w+(?:/[A-Z]\w+)?\b|\b(?:she|he|they|xe|ze)/\w+(?:/\w+)?\b|\b{_COLOUR}/{_COLOUR}\b"
)
#: That something was otherwise before points at nothing: "I now live", "my timezone is CET again".
_NOW = re.compile(rf"(?:(?<=\b[Im] )|(?<=\bam )|(?<=\bis ))now |(?P<name>\b[A-Z][\w/+]*+),? (?:now|again){_END}")


#: A capital letter in these is a name; one that all projects share (a language, a tool) is nobody's name nor home.
_NAMED = ("name", "place")
_LAST_NAMES = re.compile(rf"{_NAME}$")


def is_of_the_user(said: str, *, project_name: str) -> bool:
    """Whether a user's sentence says who they are, wherever they work; False for a question and for a role in a project."""
    told = _NOW.sub(lambda found: found["name"] or "", said)
    if said.rstrip().endswith("?") or confidence.is_of_a_place(_NO_PATH.sub(" ", told), project_name=project_name):
        return False
    return any(
        (found := pattern.search(told[:LOOKED_AT])) and not (kind in _NAMED and _is_shared(found[0]))
        for kind, pattern in SAID_OF_ONESELF.items()
    )


def _is_shared(said: str) -> bool:
    """Whether what ends with a name ends with one that is everybody's."""
    named = _LAST_NAMES.search(said)
    return named is not None and any(word.lower() in confidence.EVERYWHERE for word in re.split(r"[ -]", named[0]))
