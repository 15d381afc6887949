"""What the last sessions of a project came to and left open."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from csmd.extraction.digest import OUTCOME_WORDS
from csmd.recall import threads
from csmd.recall.compose import Block, Note
from csmd.store import digests, receipts, sessions
from csmd.store.sqlite import Rows
from csmd.text import display
from csmd.text.tokens import content_words

#: How many sessions are told of at a start, among how many of the latest they are looked for.
TOLD, LOOKED_AT = 2, 6
#: How many files and commits of each, how many open ends of all, and characters of each part.
FILES, COMMITS, OPEN = 3, 2, 3
#: Why they are told, as their receipts say.
HOW_ENDED, LEFT_OPEN = "what the last sessions came to", "what they left open"
ABOUT_SESSION, PART = 110, 90
SHORT_ID = 8
#: What a reader need not be told: it says that nothing is known to be wrong, or nothing at all.
_UNTOLD = frozenset({"answered", "unanswered", "committed"})
#: How a request begins; what follows says what the session was on.
_POLITE = re.compile(
    r"^\W*(?:(?:ok|okay|hi|hello|hey|so|now|please|yes|next|alright|also|plan(?=:))\b[\s,.!:]*){0,4}"
    r"(?:(?:(?:can|could|would|will) (?:you|we)(?: please| also| maybe| just)?|please|let['’]?s|i (?:want|need|would like)(?: you)? to"
    r"|i['’]d like (?:you )?to|we (?:need|want|have) to|help me(?: to)?)\s+){0,2}",
    re.IGNORECASE,
)
_FIRST = re.compile(r"^(.*?[.?!:])(?:\s|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A session as its digest's last version tells it; `items` are (kind, text)."""

    session_id: str
    at: str
    outcome: str
    items: tuple[tuple[str, str], ...]

    def of(self, kind: str) -> list[str]:
        """The texts of one kind of item, in order."""
        return [said for found, said in self.items if found == kind and said]

    @property
    def tail(self) -> str:
        """When it was, and the session's short id."""
        return f"{self.at[:10]}, session {self.session_id[:SHORT_ID]}"


def session_notes(ended: Sequence[Ended], *, every: bool = False) -> tuple[Note, ...]:
    """The last sessions that came to something, or `every` one that was on something; the latest first."""
    told = [note for one in ended[:LOOKED_AT] if (note := _note(one, every=every)) is not None]
    return tuple(told[:TOLD])


def open_end_notes(ended: Sequence[Ended]) -> tuple[Note, ...]:
    """What those sessions left to do, as they said it; what was only asked is no end."""
    found: list[Note] = []
    for one in [one for one in ended[:LOOKED_AT] if _note(one) is not None][:TOLD]:
        left = [said for said in one.of("open") if not said.rstrip("\"')*_").endswith("?")]
        found += [
            Note(id=one.session_id, text=display.cut(display.squeeze(said), PART * 2), tail=one.tail, reason=LEFT_OPEN)
            for said in left
            if not said.startswith("asked and not answered")
        ]
    return tuple(found[:OPEN])


def _note(one: Ended, *, every: bool = False) -> Note | None:
    about, files, commits = session_topic(one.of("goal")), one.of("file"), one.of("commit")
    if not (files or commits):
        return Note(id=one.session_id, text=about, tail=one.tail, reason=HOW_ENDED) if every and about else None
    parts: list[str] = []
    if commits:
        subjects = ['"' + display.cut(commit.partition(" ")[2], PART) + '"' for commit in commits[::-1][:COMMITS]]
        parts.append("committed " + _listed(subjects, len(commits)))
    elif files:
        names = [PurePosixPath(path).name for path in files[:FILES]]
        parts.append("changed " + _listed(names, len(files)))
    if one.outcome not in _UNTOLD:
        parts.append(OUTCOME_WORDS.get(one.outcome, one.outcome))  # type: ignore[call-overload]
    ended = "; ".join(parts)
    return Note(id=one.session_id, text=f"{about}: {ended}" if about else ended, tail=one.tail, reason=HOW_ENDED)


def session_topic(goals: Sequence[str]) -> str:
    """What a session was on, without the courtesy it was asked with; a question is quoted."""
    whole = display.squeeze(goals[0]) if goals else ""
    first = _FIRST.match(whole)
    said = first[1] if first and len(content_words(first[1])) >= 3 else whole
    bare = without_courtesy(said).rstrip(".:,; ")
    if bare == said.rstrip(".:,; ") and bare.endswith("?"):
        return f'asked "{display.cut(bare, ABOUT_SESSION)}"'
    return display.cut(bare.rstrip("?"), ABOUT_SESSION)


def without_courtesy(said: str) -> str:
    """What a request asks for, without the words that it begins with."""
    return _POLITE.sub("", said, count=1).strip()


def _listed(names: Sequence[str], of: int) -> str:
    """The names, each once, and how many more there are."""
    more = f" and {of - len(names)} more" if of > len(names) else ""
    return ", ".join(dict.fromkeys(names)) + more


# --- over the store


#: Of what a session came to somebody said these.
_SAID = ("goal", "open")
HEADINGS = ("The last sessions", "Left open")


def session_blocks(rows: Rows, *, places: Sequence[int], session_id: str) -> list[Block]:
    """What the last sessions of these places were on, came to and left open, but for what a session has in its context."""
    found = read_ended(rows, places=places, session_id=session_id)
    known = receipts.ids_in_context(rows, session_id) if session_id else ()
    kinds = zip(HEADINGS, (session_notes(found, every=True), open_end_notes(found)), (2.0, 1.5), strict=True)
    left = [(heading, tuple(one for one in of if one.id not in known), weight) for heading, of, weight in kinds]
    return [Block(heading=heading, notes=of, weight=weight) for heading, of, weight in left if of]


def read_ended(rows: Rows, *, places: Sequence[int], session_id: str) -> list[Ended]:
    """The latest sessions of these places but this one, as their digests tell them, the latest first."""
    own = [place for place in places if place]
    replaced = threads.read_replaced(rows, own)

    def overturned(kind: str, said: str, at: str, session: str) -> bool:
        return kind in _SAID and threads.find_echo(said, at=at, session=session, replaced=replaced) is not None

    latest = digests.latest(rows, projects=own, limit=LOOKED_AT + 1) if own else []
    named = sessions.named(rows, [row.session_seq for row in latest])
    return [
        Ended(
            session_id=named[row.session_seq],
            at=row.at,
            outcome=row.outcome,
            items=tuple(
                (kind, said)
                for kind, said, by, at in digests.headlines(rows, row.seq)
                # What was put in the user's place is nobody's word: a session is not called by it.
                if (kind != "goal" or by == "user") and not overturned(kind, said, at, named[row.session_seq])
            ),
        )
        for row in latest
        if named[row.session_seq] != session_id
    ]
