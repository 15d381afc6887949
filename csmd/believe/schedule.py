"""Whether a later statement gives something that was to be on a date another one; pure.

A statement is read as appointments: what is to be, and when. One that was moved ends the statement that told it only
where nothing else stands in that: of "freeze November 28, release December 3" the half about the release holds, so both
stand and a person is asked. Of what two statements name differently ("the release", "the release party") neither ends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from csmd.believe import phrases
from csmd.believe.verdict import Verdict

#: "may" is a month where it is written like one: "session 1 may have ended".
_MONTH = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|(?-i:May)|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_DAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_NTH = r"\d{1,2}(?:st|nd|rd|th)?"
#: Behind one of these a month alone is meant as one.
_BEHIND = "|".join(rf"(?<=\b{word} )" for word in ("in", "to", "by", "for", "until", "till"))
_DATE = (
    rf"(?:{_DAY},? )?(?:(?:the )?\b{_NTH}\.? (?:of )?(?:{_MONTH})\b\.?|\b(?:{_MONTH}|may)\.? (?:the )?{_NTH}\b)(?:,? \d{{4}}\b)?"
    rf"|\b\d{{4}}-\d\d-\d\d(?![\w-])|\b\d{{1,2}}\.\d{{1,2}}\.\d{{4}}\b|\b(?:next |this |the following )?{_DAY}\b"
    rf"|\b(?:next|the following) (?:week|month|quarter|sprint)\b|(?:{_BEHIND}|\b(?:early|mid|late|end of)[ -])(?:{_MONTH}|may)\b(?! \w+ing\b)"
    r"|\bq[1-4]\b(?: \d{4})?|\bthe \d{1,2}(?:st|nd|rd|th)\b|\b\d{1,2}:\d\d(?![:\d])(?: ?[ap]m\b)?|\b\d{1,2} ?[ap]m\b"
)
_HOUR = re.compile(r"\d{1,2}(?::\d\d)?(?: ?[ap]m)?", re.IGNORECASE)
_IS_DATE = re.compile(_DATE, re.IGNORECASE)
_THING = r"((?:[\w`'’./-]+ ){0,7}?[\w`'’./-]+)"
_SHIFT = (
    r"(?:moved|slipped|slid|pushed|postponed|delayed|deferred|shifted|rescheduled|extended|brought|pulled|changed|put off)"
    r"(?: (?:back|out|up|forward|over|again))?"
)
_TO_SHIFT = (
    r"(?:move|push|postpone|delay|defer|shift|reschedule|extend|bring|pull|put off)(?: (?:back|out|up|forward))?"
)
_SHIFTING = (
    r"(?:moving|pushing|postponing|delaying|deferring|shifting|rescheduling|extending)(?: (?:back|out|up|forward))?"
)
_FROM = rf"(?: from (?:{_DATE}))?"
#: What was moved, and to when: "we postponed X to DATE", "X slipped to DATE", "X is now on DATE".
_MOVED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:we|i|they|he|she|[a-z]+) (?:have |has |['’]ve )?(?:just |now |already )?(?:{_SHIFT}) (?:the |our |its )?{_THING}{_FROM} (?:to|until|till) (?:be (?:on )?)?(?P<date>{_DATE})",
        rf"\b(?:we|they|i)(?:['’]re|['’]m| are| am) (?:now )?{_SHIFTING} {_THING}{_FROM} (?:to|until|till) (?P<date>{_DATE})",
        rf"\b(?:had to|have to|decided to|agreed to|let['’]s|let us) {_TO_SHIFT} {_THING}{_FROM} (?:to|until|till) (?P<date>{_DATE})",
        rf"{_THING} (?:(?:has|have) been |was |were |is |are |got |gets |has |have )?(?:now |just )?{_SHIFT}{_FROM} (?:to|until|till) (?P<date>{_DATE})",
        rf"{_THING} will (?:now )?(?:be )?(?:{_TO_SHIFT}|{_SHIFT}){_FROM} (?:to|until|till) (?P<date>{_DATE})",
        rf"{_THING} (?:is|are|starts?|ships?) now (?:due |planned |scheduled |set )?(?:on |by |for |in )?(?P<date>{_DATE})",
        rf"{_THING} (?:is|are|starts?|ships?) (?:due |planned |scheduled |set )?(?:on |by |for |in )?(?P<date>{_DATE}) (?:now|instead)\b",
    )
)
_PLANNED = r"(?:is|are|will be|ships?|starts?|begins?|launches|happens?|ends?|lands?|takes place|goes live|due|stays?|remains?)"
#: What is to be, and when; of a list the verb stands in the first half only: "the release December 3".
_IS = re.compile(
    rf"^\W*{_THING}(?P<says> {_PLANNED}|:)?(?: (?:due|planned|scheduled|set|fixed|still|currently))*(?: (?:on|by|for|at|in|until))? (?P<date>{_DATE})",
    re.IGNORECASE,
)
_PART = re.compile(
    rf"(?<!\d),(?: and\b)?\s+|,\s+(?!\d{{4}}\b)|[;!?()\n]+\s*|\.(?=\s+[A-Z]|\s*$)|:\s+(?!\d|(?:{_MONTH})\b)|\s+[-—–]\s+|\s+(?:and|but|while)\s+",
    re.IGNORECASE,
)
#: A second thing that is moved by the same verb: "and the release to December 10".
_TOO = re.compile(rf"^\W*{_THING} (?:to|until|till) (?P<date>{_DATE})", re.IGNORECASE)
#: Before a date these say that it is none, or none yet.
_OPEN = re.compile(
    r"n['’]t\b|\b(?:not|never|if|when|once|unless|should|could|would|might|may|want|almost|nearly|why|did|maybe|perhaps|probably)\b",
    re.IGNORECASE,
)
#: What begins in such a way gives a reason or a place, or what follows: it falls with the date, and tells nothing else.
_DEPENDS = re.compile(
    r"^\W*(?:so|because|since|which|as|that|not|instead of|no longer|for|in|on|at|with|by|after|before|due to|ok|note|update|fyi|reminder)\b",
    re.IGNORECASE,
)
#: What was moved so comes back to where it was.
_ONCE = re.compile(r"\b(?:only|this time|just this|(?:this|for) once|as an exception)\b", re.IGNORECASE)
_STAYS = re.compile(r"\b(?:stays?|remains?|still|unchanged|as planned|is not affected|keeps?)\b", re.IGNORECASE)
#: Of what is to be they say only that it is, or is a day.
_IDLE = frozenset(
    phrases.stem(word)
    for word in "date day target due planned scheduled set fixed ships ship starts start begins begin launches launch happens "
    "stays stay remains remain ends end lands land takes place goes live will now just again currently also every each heads up".split()
)
#: Of these no statement speaks.
_NEVER = frozenset(phrases.stem(word) for word in "will now just again currently also".split())
#: Of an older thing's words so many must be said of what was moved ("the freeze" of "the code freeze").
_LEAST_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Appointment:
    """What is to be, as stems in their order, when, whether that is an hour; whether it is told with a verb, and as moved."""

    event: tuple[str, ...]
    date: frozenset[str]
    hour: bool
    told: bool
    moved: bool

    @property
    def head(self) -> str:
        """What kind of thing it is: "party" of "the release party"."""
        return self.event[-1]


@dataclass(frozen=True, slots=True)
class Plan:
    """The appointments of a statement, what it says stays, and whether it says more than these."""

    appointments: tuple[Appointment, ...]
    staying: tuple[frozenset[str], ...]
    more: bool


def judged(older: str, newer: str) -> Verdict:
    """What becomes of an older plan; None where the two are not both plans."""
    before, after = read(older), read(newer)
    if not before.appointments or not after.appointments:
        return None
    if _ONCE.search(newer):
        return ""
    over, open_, perhaps = 0, int(before.more), False
    for old in before.appointments:
        moves = [_moves(old, new) for new in after.appointments]
        over += "yes" in moves
        perhaps = perhaps or "perhaps" in moves
        told = any(new.date == old.date and set(new.event) == set(old.event) for new in after.appointments)
        stays = any(old.head in staying for staying in after.staying)
        open_ += not ("yes" in moves or told or stays)
    if over:
        return "partly-changed" if open_ else "changed"
    if perhaps:
        return "perhaps-changed"
    return None if any(_of_one(old, new) for old in before.appointments for new in after.appointments) else ""


def _of_one(old: Appointment, new: Appointment) -> bool:
    """Whether two dates are told of one thing: "the backup runs at 02:00" is no plan, and other ways tell of it."""
    return set(old.event) == set(new.event)


def _moves(old: Appointment, new: Appointment) -> str:
    """Whether the newer gives what the older tells another date: "yes", "perhaps", or not."""
    if old.date == new.date or old.hour != new.hour:
        return ""
    one, other = set(old.event), set(new.event)
    if _of_one(old, new):
        return "yes" if new.moved or (new.told and len(old.date) == len(new.date)) else ""
    named = any(any(sign.isdigit() for sign in stem) for stem in one ^ other)
    if (
        not new.moved
        or old.head != new.head
        or not (other < one or (one < other and len(other - one) == 1 and not named))
    ):
        return ""
    return "yes" if other < one and not named and len(other) >= _LEAST_SHARE * len(one) else "perhaps"


@lru_cache(maxsize=2048)
def read(said: str) -> Plan:
    """A statement as a plan."""
    nothing = Plan((), (), more=False)
    if said.rstrip().endswith("?") or len(said) > 600 or not _IS_DATE.search(said):
        return nothing
    found: list[Appointment] = []
    staying: list[frozenset[str]] = []
    more = False
    for part in (part for part in _PART.split(said) if part and part.strip()):
        one = _appointment(part, too=bool(found) and found[-1].moved)
        if one is not None:
            found.append(one)
        elif _STAYS.search(part):
            staying.append(frozenset(phrases.stems_of(part)))
        elif not _DEPENDS.search(part) and frozenset(phrases.stems_of(part)) - _IDLE:
            more = True
    return Plan(tuple(found), tuple(staying), more)


def _appointment(part: str, *, too: bool) -> Appointment | None:
    """What a part of a statement says is to be; `too`: the part before it said that something was moved."""
    for pattern in (*_MOVED, *([_TOO] * too), _IS):
        match = pattern.search(part)
        if match is None or _OPEN.search(part[: match.start("date")]):
            continue
        event, date = _event(match[1]), _date(match["date"])
        rest = _IS_DATE.sub("", part[match.end("date") :])
        if not event or (pattern is _IS and len(phrases.stems_of(rest)) > 2):
            continue
        moved = pattern is not _IS
        hour = bool(_HOUR.fullmatch(match["date"].strip()))
        return Appointment(event, date, hour=hour, told=moved or bool(match["says"]), moved=moved)
    return None


def _event(thing: str) -> tuple[str, ...]:
    """The stems of what is to be; what stands behind a preposition before what it belongs to, as in a compound."""
    head, *rest = re.split(r"\b(?:for|of|with|at|in|from)\b", thing, maxsplit=1, flags=re.IGNORECASE)
    stems = [*(stem for part in rest for stem in phrases.stems_of(part)), *phrases.stems_of(head)]
    return tuple(stem for stem in stems if stem not in _IDLE) or tuple(stem for stem in stems if stem not in _NEVER)


def _date(said: str) -> frozenset[str]:
    """A date as its parts, whatever it is written like: a month by three letters, a day without its ending."""
    iso = re.fullmatch(r"\d{4}-(\d\d)-(\d\d)", said.strip())
    if iso:
        return frozenset((_MONTHS[int(iso[1]) - 1], str(int(iso[2])))) if 1 <= int(iso[1]) <= 12 else frozenset((said,))
    words = re.findall(r"\d+|[a-z]+\d?", said.casefold())
    parts = {word[:3] if word[:3] in _MONTHS else word for word in words if len(word) != 4 or not word.isdigit()}
    return frozenset(str(int(part)) if part.isdigit() else part for part in parts - _SMALL) or frozenset((said,))


_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_SMALL = frozenset("the of st nd rd th".split())
