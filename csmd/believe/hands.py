"""Whether what somebody had in hand is another's by now: "billing is Ben's since Anna left"; pure.

Who owns a thing and who reviews it may be two people, so only the same part in the very same thing passes from one to
another, and the later statement must say that it did; "X is somebody's" is said of one alone. What another has for a
while, or besides, ends nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from csmd import text
from csmd.believe import phrases
from csmd.believe.verdict import Verdict

_NAME = r"((?-i:[A-Z])[\w-]{1,30}(?: (?-i:[A-Z])[\w-]{1,30})?|I|we)"
_THING = r"((?:[\w`'\u2019./&-]+,? ){0,7}?[\w`'\u2019./&-]+)"
_END = (
    r"(?=\s*(?:[,.;:!\n]|$)|\s+(?:now|since|because|after|from|instead|again|these days|by now|while|until|when|as)\b)"
)
_OWNER = "own"
#: (pattern with `who` and `what`, the part that is meant: "" for the one it names).
_PARTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern.replace("WHO", f"(?P<who>{_NAME})").replace("WHAT", f"(?P<what>{_THING})"), re.IGNORECASE), part)
    for pattern, part in (
        (r"^\W*(?:now |by now )?WHAT (?:is|are)(?: now)? (?:all )?WHO['\u2019]s(?: (?:responsibility|job|baby|area|turf|task|part|call|domain))?" + _END, "has"),
        (r"^\W*WHAT (?:is|are)(?: now)? (?:my (?:responsibility|job|area|task)|(?P<who>mine))" + _END, "has"),
        (r"^\W*WHAT (?:now )?belongs?(?: now)? to WHO" + _END, _OWNER),
        (r"^\W*WHAT (?:is|are)(?: now)? (?P<part>owned|maintained|led|managed|handled|reviewed) by WHO" + _END, ""),
        (r"^\W*WHO(?:['\u2019]s|['\u2019]m| is| am| are)(?: now)? (?:responsible for|in charge of|the owner of) WHAT" + _END, _OWNER),
        (r"^\W*WHO (?:now )?(?P<part>owns?|maintains?|leads?|manages?|handles?|reviews?) WHAT" + _END, ""),
        (r"^\W*WHO (?:took|takes|has taken|have taken|is taking)(?: now)? over WHAT" + _END, "any"),
    )
)  # fmt: skip
_SINCE = re.compile(
    r"\b(?:now|by now|took over|taken over|takes over|taking over|from now on|these days|nowadays|no longer|instead of|since (?-i:[A-Z])[a-z]+ (?!\d))",
    re.IGNORECASE,
)
_FOR_A_WHILE = re.compile(
    r"\b(?:while|until|during|if|when|for (?:this|the|now|a)|this (?:week|month|sprint)|today)\b", re.IGNORECASE
)
_AND = re.compile(r",\s*(?:and\s+)?|\s+(?:and|&)\s+")
#: What of a thing somebody has in hand says only that it is one.
_IDLE = frozenset(
    phrases.stem(word)
    for word in "module service team part area stuff package component app code everything now".split()
)
#: Who is no one.
_NOBODY = text.STOP_WORDS | frozenset(
    "please today monday tuesday wednesday thursday friday saturday sunday always never nobody everyone somebody".split()
)
_ROLES = {phrases.stem(word): phrases.stem(role) for word, role in (
    ("owned", "own"), ("owns", "own"), ("led", "lead"), ("maintained", "maintain"), ("managed", "manage"),
    ("handled", "handle"), ("reviewed", "review"),
)}  # fmt: skip
MOST_READ = 300


@dataclass(frozen=True, slots=True)
class Hold:
    """Who has a part in which things, each as its stems."""

    who: str
    part: str
    things: frozenset[frozenset[str]]


def judged(older: str, newer: str) -> Verdict:
    """Whether what one had in hand is another's; None where not both statements say who has something."""
    before, after = held(older), held(newer)
    if before is None or after is None:
        return None
    passed = before.things & after.things
    if not passed or before.who == after.who or not _one_part(before.part, after.part):
        return ""
    if _FOR_A_WHILE.search(newer) or phrases.ADDS.search(newer) or newer.rstrip().endswith("?"):
        return ""
    if not (_SINCE.search(newer) or before.part == after.part == "has"):
        return ""
    return "changed" if passed == before.things else "partly-changed"


@lru_cache(maxsize=1024)
def held(said: str) -> Hold | None:
    """Who has what, as a statement says."""
    for pattern, part in _PARTS:
        match = pattern.search(said[:MOST_READ])
        if match is None:
            continue
        groups = match.groupdict()
        who = (groups.get("who") or "I").casefold()
        who = "i" if who == "mine" else who
        things = frozenset(
            stems for one in _AND.split(groups["what"]) if (stems := frozenset(phrases.stems_of(one)) - _IDLE)
        )
        if (who not in ("i", "we") and who.split()[0] in _NOBODY) or not things:
            continue
        named = phrases.stem(groups.get("part") or part)
        return Hold(who, _ROLES.get(named, named), things)
    return None


def _one_part(one: str, other: str) -> bool:
    """Whether two parts are one: who has a thing is who owns it, and who takes it over takes whatever part there was."""
    owning = {_OWNER, "has", phrases.stem("has")}
    return one == other or "any" in (one, other) or (one in owning and other in owning)
