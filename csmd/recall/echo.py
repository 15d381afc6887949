"""What repeats something that no longer holds, in other words or at the side of it: an echo; pure.

A decision that was overturned has its own memory, which says so. What was said around it has none: the assistant's
"okay, I will use Redis", the order that a session began with, a checkpoint's pieces. They are told from what they say:
the words that what was superseded has for itself, none of what replaced it, and said before that was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from csmd import text
from csmd.believe import clauses

#: Of the words that only the old has so many are an echo of it, in its own session; elsewhere so many of all its words, too.
OWN_SHARE, WHOLE_SHARE = 0.5, 0.5

Stems = frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """Something superseded, and what (`heir`, its id) holds in its place since `since`; `sessions` are those that state it."""

    text: str
    heir: str
    heir_text: str
    since: str
    sessions: frozenset[str]


def stems(said: str) -> Stems:
    """The stems of what a text says."""
    return frozenset(text.stem(word) for word in text.content_words(said))


def of(said: str, *, at: str, session: str, replaced: Sequence[Replaced]) -> Replaced | None:
    """The first of these that a text of a session and time repeats, with nothing of what replaced it; None for none."""
    shown = stems(said) if replaced else frozenset()
    return next((one for one in replaced if _is_echo(shown, at, session, one)), None)


def _is_echo(shown: Stems, at: str, session: str, one: Replaced) -> bool:
    old, new = stems(one.text), _affirmed(one.heir_text)
    own = old - new
    if at >= one.since or not own or shown & (new - old) or len(shown & own) < OWN_SHARE * len(own):
        return False
    return session in one.sessions or len(shown & old) >= WHOLE_SHARE * len(old)


def _affirmed(said: str) -> Stems:
    """The stems of a text but for those that it speaks against: "pnpm, not npm" says nothing for npm."""
    read = clauses.read(said)
    return stems(said).difference(*(one.what for one in (*read.denied, *read.instead, *read.removed)))
