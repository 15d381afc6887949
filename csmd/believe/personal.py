"""What users say of themselves and not of a project: name, place, time zone, languages, profession; pure.

Such a fact is as true in the next project, so it holds everywhere. Who says what they are in a project ("the release
manager here", "a reviewer of this repo") says it of that project, and so does whoever points at something near at hand.
"""

from __future__ import annotations

import re

from csmd.believe import score

_I_AM = r"\bI(?:['’]m| am)"
_NAME = r"[A-Z]\w+(?:[ -][A-Z]\w+)?"
_END = r"(?=\s*(?:[.,;:!()]|$|and\b|but\b|so\b))"
_PROFESSIONS = (
    r"develop|engineer|programm|cod|design|scientist|student|teach|professor|research|analyst|architect|writ|journalist|lawy|doctor"
    r"|physician|nurse|found|freelanc|consult|contract|manag|administrator|sysadmin|mathematician|physicist|biologist|economist"
    r"|accountant|artist|musician|hobbyist|beginn|newcom"
)
#: What somebody is asked for on a form -> how people say it of themselves. Names and places keep their capital letters.
SAID_OF_ONESELF: dict[str, re.Pattern[str]] = {
    "name": re.compile(
        rf"\b[Mm]y (?:full |first |last |real )?name(?: is|['’]s)\b|\b[Cc]all me {_NAME}{_END}|\bI go by {_NAME}{_END}"
        rf"|^(?:(?:[Hh]i|[Hh]ello|[Hh]ey)\b[ ,!.]*)?{_I_AM} {_NAME}{_END}"
    ),
    "place": re.compile(
        rf"\bI(?:['’]ve)? (?:live|lived|grew up)\b.{{0,20}}? (?:in|near|outside) {_NAME}"
        rf"|{_I_AM} (?:based |located |living |born )(?:in|near|out of) {_NAME}|{_I_AM} (?:in|from) {_NAME}{_END}"
        rf"|\b[Mm]y (?:home ?town|home|city|country) is {_NAME}"
    ),
    "time zone": re.compile(
        rf"\b[Mm]y (?:local )?time ?zone\b|\b[Mm]y (?:working|office) hours\b|\bI work (?:from )?\d.*\btime\b"
        rf"|{_I_AM} (?:in|on) (?:the )?(?:UTC|GMT|[A-Z]{{1,4}}T)\b"
    ),
    "pronouns": re.compile(r"\b[Mm]y pronouns\b|\bI use (?:she|he|they|xe|ze)/\w+"),
    "languages": re.compile(
        rf"\b[Mm]y (?:first|native|mother|second) (?:language|tongue)\b|\bI (?:only |also |mostly )?speak [A-Z]\w+"
        rf"|{_I_AM} (?:not )?a native (?:[A-Z]\w+ )?speaker|\bis(?:n['’]t| not) my (?:first|native) language"
    ),
    "profession": re.compile(
        rf"{_I_AM} (?:not )?an? (?:[\w-]+ ){{0,3}}(?:{_PROFESSIONS})\w*(?! (?:of|on|for)\b)|\bI work as an? \w+"
        r"|\b[Mm]y (?:job|profession|day job|job title) is\b"
    ),
    "body": re.compile(rf"{_I_AM} (?:colou?r[- ]?blind|blind|deaf|dyslexic|left-handed|hard of hearing)\b"),
}
#: They look like paths and point at nothing.
_ZONE_OR_PRONOUNS = re.compile(r"\b[A-Z]\w+/[A-Z]\w+\b|\b(?:she|he|they|xe|ze)/\w+(?:/\w+)?\b")
#: What somebody is now, or again, they are wherever they work.
_NOW = re.compile(r"\b(?:now|again)\b ?")


#: A capital letter in these is a name; one that all projects share (a language, a tool) is nobody's name nor home.
_NAMED = ("name", "place")


def is_of_the_user(said: str, *, project_name: str) -> bool:
    """Whether a user's sentence says who they are, wherever they work; False for a question and for a role in a project."""
    told = _NOW.sub("", said)
    bare = _ZONE_OR_PRONOUNS.sub(" ", told)
    if said.rstrip().endswith("?") or score.is_of_a_place(bare, project_name=project_name):
        return False
    return any(
        (found := pattern.search(told)) and not (kind in _NAMED and _is_shared(found[0]))
        for kind, pattern in SAID_OF_ONESELF.items()
    )


def _is_shared(said: str) -> bool:
    return any(word.lower() in score.EVERYWHERE for word in re.findall(r"\b[A-Z][\w+#-]+", said)[-2:])
