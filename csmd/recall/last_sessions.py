"""What the last sessions of a place came to, for a session's start and for who asks where they stopped."""

from __future__ import annotations

from collections.abc import Sequence

from csmd.recall import echo, outcome, stage_holds
from csmd.recall.compose import Block
from csmd.recall.outcome import Ended
from csmd.store import digests, sessions
from csmd.store.sqlite import Rows

#: Of what a session came to somebody said these.
_SAID = ("goal", "open")
HEADING, LEFT = "The last sessions", "Left open"


def blocks(rows: Rows, *, places: Sequence[int], session_id: str) -> list[Block]:
    """What the last sessions of these places came to and left open, as far as there is anything to tell."""
    found = ended(rows, places=places, session_id=session_id)
    told = [
        Block(heading=HEADING, notes=outcome.notes(found), weight=2.0),
        Block(heading=LEFT, notes=outcome.open_ends(found), weight=1.5),
    ]
    return [block for block in told if block.notes]


def ended(rows: Rows, *, places: Sequence[int], session_id: str) -> list[Ended]:
    """The latest sessions of these places but this one, as their digests tell them, the latest first."""
    own = [place for place in places if place]
    replaced = stage_holds.replaced_in(rows, own)

    def overturned(kind: str, said: str, at: str, session: str) -> bool:
        return kind in _SAID and echo.of(said, at=at, session=session, replaced=replaced) is not None

    latest = digests.latest(rows, projects=own, limit=outcome.LOOKED_AT + 1) if own else []
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
