"""Where a memory holds: in the project it was said in, for its user, or everywhere."""

from __future__ import annotations

import hashlib
import re

from csmd import data
from csmd.text import tokens
from csmd.vocabulary import Gate, Scope

#: Something only one repository has: a path, a file name, a CamelCase or snake_case identifier, a flag, code.
_SPECIFIC = re.compile(
    r"`[^`]+`|(?:^|\s)[~.]?/[\w.-]+|\w-*+/[\w./-]|\w-*+\.(?:py|go|ts|tsx|js|rs|md|ya?ml|json|toml|sh|sql|java|rb|c|h|cpp)\b"
    r"|\b[a-z]++_[a-z_]++\b|\b[a-z]++[A-Z]\w|\b[A-Z][a-z]++[A-Z]|(?:^|\s)--?[a-z][\w-]+"
)
#: "now" beside what somebody likes says that it was otherwise before, and points at nothing.
_NOW = re.compile(r"(?<=\bI )now (?=prefer\b|like\b)|(?<=\w),? now(?=[.!]?$)", re.IGNORECASE)
_ALL_OVER = re.compile(
    r"\b(?:in|for|across) (?:all|every|any) (?:of )?(?:my |our )?(?:other )?(?:project|repo|repositor|session)\w*",
    re.IGNORECASE,
)
#: A part of one project, named or not: "the gull module", "our billing service".
_PART = re.compile(
    r"\b(?:the|our|my|this|that) (?:[\w.-]++ ){0,3}(?:modul|packag|servic|repo|repositor|project|app|applicat|component|librar|crate|plugin"
    r"|codebase|backend|frontend|server|client|daemon|cli|api|sdk|screen|page|dashboard|pipeline|table|database|schema|branch|folder"
    r"|director|script|class|struct|handler|endpoint|command|feature|product|website|site|workspace|monorepo)(?:s|e|es|y|ies|ion|ions)?\b"
    r"|\w-*+ (?:module|package|service|repo|component|crate|plugin|codebase)\b",
    re.IGNORECASE,
)
#: Where a rule that holds everywhere may say that it holds: kinds of work and of text, and names that no project owns.
EVERYWHERE = data.word_table("scope_words.txt")["everywhere"]
_WHERE = re.compile(r"\b(?:in|inside|within|for|of|on) (?:(?:the|our|my|a|an) )?([a-z][\w+#-]*)", re.IGNORECASE)
#: A name in the middle of a sentence.
_NAMED = re.compile(r"(?<=[\w,;)] )(?!I\b)([A-Z][\w+#-]*)")
#: Words that point at something near at hand.
_POINTS_AT = re.compile(
    r"\b(?:this|that|these|those|it|here|there|we|our|us|the (?:same|above|other|first|second)|undo|revert|again|now)\b"
    r"|\byou(?:['’](?:ve|re)| have| are| did| \w+ed)\b",
    re.IGNORECASE,
)


def scope_of(said: str, *, gate: Gate, about_speaker: bool, project_name: str) -> Scope:
    """Where a memory holds: in the project it was said in, unless its words are general.

    Only behavioral statements and corrections can hold elsewhere, if they are about the speaker (classifier) or name
    all projects, and nothing in them points at a place: no path, identifier, name of the project or of a part of it
    ("in the gull module", "in gull"), "this" or "we", and no name that is not common. What leaks into other projects
    does more harm than what is said twice.
    """
    plain, all_over = _ALL_OVER.subn(" ", said)
    plain = _NOW.sub("", plain)
    if gate not in ("behavioral", "correction") or not (all_over or about_speaker):
        return "project"
    named = _WHERE.findall(plain) + _NAMED.findall(plain)
    if is_of_a_place(plain, project_name=project_name) or any(name.lower() not in EVERYWHERE for name in named):
        return "project"
    return "global" if gate == "correction" else "user"


def identity(project: int, said: str) -> str:
    """The id of a statement in a scope: `m` and ten hex digits."""
    return "m" + hashlib.sha256(f"{project}:{tokens.normalise(said)}".encode()).hexdigest()[:10]


def is_of_a_place(said: str, *, project_name: str) -> bool:
    """Whether a text points at a project, at a part of one, or at something near at hand."""
    if any(pattern.search(said) for pattern in (_SPECIFIC, _POINTS_AT, _PART)):
        return True
    parts = re.findall(r"[a-z0-9]+", project_name.lower())
    words = re.findall(r"[a-z0-9]+", said.lower())
    whole = len(project_name) > 2 and any(words[at : at + len(parts)] == parts for at in range(len(words)))
    return whole or "".join(parts) in {word for word in words if len(word) > 2}


#: Who says who they are says it at once: a longer text is looked at so far.
LOOKED_AT = 400
_I_AM = r"\bI(?:['’]m| am)"
_A_NAME = r"[A-Z]\w++(?:[ -][A-Z]\w++){0,2}"
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
        rf"\b[Mm]y (?:full |first |last |real )?name(?: is|['’]s) {_A_NAME}{_END}|\b[Cc]all me {_A_NAME}{_END}"
        rf"|\bI go by {_A_NAME}{_END}|^(?:[Hh]i|[Hh]ello|[Hh]ey)\b[ ,!.]*+{_I_AM} {_A_NAME}{_END}"
    ),
    "place": re.compile(
        rf"\bI(?:['’]ve)? (?:live|lived|grew up)\b.{{0,20}}? (?:in|near|outside) {_A_NAME}"
        rf"|{_I_AM} (?:based |located |living |born )(?:in|near|out of) {_A_NAME}|{_I_AM} from {_A_NAME}{_END}"
        rf"|\b[Mm]y (?:home ?town|home|city|country) is {_A_NAME}{_END}"
    ),
    "time zone": re.compile(
        rf"\b[Mm]y (?:local |home )?time ?zone(?: is|['’]s|:) (?:the )?(?:{_ZONE}|{_A_NAME}{_END})"
        r"|\b[Mm]y (?:working|office) hours(?: are|:)(?: \w+){0,2} \d"
        r"|\bI work (?:from )?\d.{0,40}?\btime\b"
        rf"|{_I_AM} (?:in|on) (?:{_A_NAME}[ ,(]++(?:so )?)?(?:the )?{_CLOCK}"
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
_AS_OF_NOW = re.compile(rf"(?:(?<=\b[Im] )|(?<=\bam )|(?<=\bis ))now |(?P<name>\b[A-Z][\w/+]*+),? (?:now|again){_END}")


#: A capital letter in these is a name; one that all projects share (a language, a tool) is nobody's name nor home.
_ENDS_WITH_NAME = ("name", "place")
_LAST_NAMES = re.compile(rf"{_A_NAME}$")


def is_of_the_user(said: str, *, project_name: str) -> bool:
    """Whether a user's sentence says who they are, wherever they work; False for a question and for a role in a project."""
    plain = _AS_OF_NOW.sub(lambda match: match["name"] or "", said)
    if said.rstrip().endswith("?") or is_of_a_place(_NO_PATH.sub(" ", plain), project_name=project_name):
        return False
    return any(
        (match := pattern.search(plain[:LOOKED_AT])) and not (kind in _ENDS_WITH_NAME and _is_common(match[0]))
        for kind, pattern in SAID_OF_ONESELF.items()
    )


def _is_common(phrase: str) -> bool:
    """Whether the name at the end of a phrase is one that all projects share."""
    name = _LAST_NAMES.search(phrase)
    return name is not None and any(word.lower() in EVERYWHERE for word in re.split(r"[ -]", name[0]))
