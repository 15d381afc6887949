"""How a day's file words what a session asked and said: a prompt as a heading, each thing once; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from csmd.recall.last_sessions import without_courtesy
from csmd.text import alike, cut, gist, squeeze

HEADING = 100
#: Two that begin with so many characters the same say the same, or that have this share of their words in common.
SAME, MOSTLY = 60, 0.6
#: A heading has so many characters before a clause's end that it is cut at.
LEAST_HEADING = 40
#: So many words stand before what a terminal printed where they are a heading by themselves.
LEAST_SAID = 4
#: How long an entry may be, and how much of one that is longer has to stand before the end of a clause that it is cut at.
ENTRY, LEAST_ENTRY = 240, 80
#: A word that is no name of anything.
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?[,;:.?!]?(?: |$)")
#: What an assistant offers at its end: nobody left anything open by it.
_OFFERS = re.compile(r"\b(?:would you like|(?:do you |\A)want(?: me)? to|shall i|should i|let me know)\b", re.I)
#: An assistant's question whether it may go on.
_MAY_I = re.compile(
    r"\A\W*(?:(?:ok(?:ay)?|all good|good|ready|done)\b[^.!?]{0,40}|(?:does|do|is) (?:this|that|it|these) (?:look|sound|work|make|ok(?:ay)?|fine|good)\b[^.!?]{0,60})\?\W*\Z",
    re.I,
)
#: What a terminal shows before what was typed into it, or what it printed.
_PRINTED = re.compile(r"[\s:,]*[❯⎿⏺│├└✓✗]")
_END = re.compile(r"[.;!?](?= )")
_CLAUSE = re.compile(r"[,;:.?!](?= )| (?=[-(–—] ?)| (?=(?:and|but|because|so that|when|which|where|since) )")


def distinct(entries: Iterable[str], *, but: Iterable[str] = ()) -> tuple[str, ...]:
    """What says something of its own: no more than begins as what is in `but` or told already, or says mostly the same."""
    told = list(but)
    seen = {squeeze(entry)[:SAME].casefold() for entry in told}
    found = []
    for entry in entries:
        begins = squeeze(entry)[:SAME].casefold()
        if begins not in seen and not any(alike(gist(entry), gist(other), share=MOSTLY) for other in told):
            seen.add(begins)
            told.append(entry)
            found.append(entry)
    return tuple(found)


def title(goal: str) -> str:
    """A prompt as a heading: what it asks for, without the phrase that asks, cut where a clause ends."""
    whole = squeeze(goal)
    said = without_courtesy(whole)
    said = said if said == whole else said.rstrip(" ?")
    if (shown := _PRINTED.search(said)) and len(said[: shown.start()].split()) >= LEAST_SAID:
        said = said[: shown.start()]
    said = said.rstrip(" :;,")
    if _WORD.match(said):
        said = said[0].upper() + said[1:]
    if len(said) <= HEADING:
        return said
    ends = [found.start() for found in _CLAUSE.finditer(said, LEAST_HEADING, HEADING)]
    head = said[: ends[-1]] if ends else cut(said, HEADING).removesuffix("…")
    for opens, is_open in (("`", head.count("`") % 2), ("(", head.count("(") > head.count(")"))):
        if is_open and head.rfind(opens) >= LEAST_HEADING:
            head = head[: head.rfind(opens)]
    return f"{head.rstrip(' ,;:.?!')}…"


def entry(said: str) -> str:
    """What was said as an entry: whole, else up to where its last sentence or clause ends that has room, with an ellipsis."""
    whole = squeeze(said)
    whole = squeeze(whole.replace("**", "")) if whole.count("**") % 2 else whole
    if len(whole) <= ENTRY:
        return whole
    ends = [found.end() for found in _END.finditer(whole, LEAST_ENTRY, ENTRY - 1)]
    at = next((end for end in reversed(ends) if not _is_open(whole[:end])), 0)
    return f"{whole[:at].rstrip(';')} …" if at else cut(whole, ENTRY)


def _is_open(head: str) -> bool:
    """Whether a text ends within code or parentheses."""
    return head.count("`") % 2 > 0 or head.count("(") > head.count(")")


def subjects(commits: Sequence[str]) -> tuple[str, ...]:
    """Commits by their subjects: one that was amended is told once, as it is now."""
    last = {commit.partition(" ")[2] or commit: commit for commit in commits}
    return tuple(last.values())


def is_offer(entry: str) -> bool:
    """Whether an entry is what an assistant offers, or asks its user to choose, at its end."""
    return bool(_OFFERS.search(entry) or _MAY_I.match(entry))
