"""Turns past the cursor of their session become statements."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import NamedTuple

from csmd import text
from csmd.capture.hosts import claude_tool_calls
from csmd.extraction import chooser, sources
from csmd.extraction.chooser import Chosen
from csmd.extraction.sources import Source
from csmd.model import StoredTurn, TurnKind
from csmd.store import cursors, memories, sessions
from csmd.store import memories as beside_of
from csmd.store import turns as journal
from csmd.store import turns as told_of
from csmd.store.core import Store
from csmd.store.cursors import Behind
from csmd.store.sqlite import Rows

STAGE = "distill"
#: Kinds that somebody speaks in; between them tools work.
SPOKEN: tuple[TurnKind, ...] = ("user", "relayed", "assistant", "summary")
#: And those in which somebody is told something besides.
BESIDE: tuple[TurnKind, ...] = ("notification",)
#: Over so many exchanges without a word of the assistant's its last words are looked for.
LOOKS_BACK = 8


def behind(store: Store) -> list[Behind]:
    """The conversations with turns that were not distilled yet, oldest first."""
    return store.read(lambda rows: cursors.sessions_behind(rows, STAGE))


def is_settled(session: Behind, *, quiet_before: str) -> bool:
    """Whether nobody is in the middle of a turn: the host said so, or nothing came since `quiet_before`."""
    return session.settled_at >= session.last_at or session.last_at < quiet_before


class View(NamedTuple):
    """What is chosen from: the sources past the cursor, the words of each statement before them, the last reply before."""

    sources: list[Source]
    said: list[frozenset[str]]
    before: str


def distill(store: Store, session: Behind, *, settled: bool) -> int:
    """Distils one conversation as far as it is decided; the number of new statements.

    While the assistant is at work its latest message may not be its last: then the cursor
    stops at the last source that is decided and what follows is looked at again, from the prompt of
    its exchange on, so that what is chosen does not depend on when that was. What came after `session`
    was looked up waits: whether it is settled is not known. What only a hook reported gives no
    statement: the transcript says who spoke, an event anybody can forge. Nor does a transcript that
    a tool has written.
    """

    view = store.read(lambda rows: _view(rows, session, settled=settled, key=store.hash_key))
    told = chooser.choose(store.precedence.giving_way(view.sources), said=view.said, before=view.before)
    fresh = [one for one in told if one.turn.ordinal > session.position]
    beside = {one.uuid: one for one in (source.turn for source in view.sources) if one.ordinal > session.position}
    late = [one for one in told if one.turn.ordinal <= session.position and beside.keys() & set(one.statement.also)]
    decided = [source.turn.ordinal for source in view.sources if source.role != "reply"]
    reached = session.turns if settled else max(decided, default=session.position)
    if not fresh and not late and reached <= session.position:
        return 0

    def write(rows: Rows) -> int:
        new = 0
        for one in fresh:
            text_hash = text.keyed_hash(one.statement.text, store.hash_key)
            new += memories.add_statement(
                rows, one.statement, one.turn, session_seq=session.session_seq, text_hash=text_hash
            )
        for one in late:
            text_hash = text.keyed_hash(one.statement.text, store.hash_key)
            for uuid in one.statement.also:
                beside_of.cite_beside(rows, one.turn, beside[uuid], text_hash=text_hash)
        cursors.move_cursor(rows, STAGE, str(session.session_seq), max(reached, session.position))
        return new

    return store.write(write)


def choose_whole(rows: Rows, session: Behind, *, key: bytes) -> list[Chosen]:
    """What would be chosen now from a whole conversation, as if it were over; nothing is written."""
    view = _view(rows, replace(session, position=0), settled=True, key=key)
    return chooser.choose(view.sources, said=view.said, before=view.before)


def _view(rows: Rows, session: Behind, *, settled: bool, key: bytes) -> View:
    """What one conversation gives to choose from, from the beginning of the exchange that its cursor stands in."""
    if sessions.is_tampered(rows, text.keyed_hash(PurePath(session.path).name, key)):
        return View([], [], "")
    begun = cursors.exchange_begun(rows, session.session_seq, at=session.position)
    after, found = max(0, begun - 1), list[StoredTurn]()
    for _ in range(LOOKS_BACK):  # to what the assistant said last before that
        after = max(0, cursors.exchange_begun(rows, session.session_seq, at=after) - 1)
        found = journal.stream_turns(rows, session.session_seq, after=after, kinds=(*SPOKEN, *BESIDE), written=True)
        if after == 0 or any(turn.ordinal < begun and turn.kind == "assistant" for turn in found):
            break
    turns = [turn for turn in found if turn.ordinal <= session.turns]
    worked = sources.told_beside(turns)
    calls = told_of.tool_calls(
        rows, session.session_seq, after=after, tools=claude_tool_calls.CALLS, holding=claude_tool_calls.HOLDING
    )
    worked += [one for call in calls if (one := sources.called(call.turn, call.tool, call.result)) is not None]
    worked = [one for one in worked if begun <= one.turn.ordinal <= session.turns]
    spoken = [turn for turn in turns if turn.kind in SPOKEN]
    before = [turn.text for turn in spoken if turn.ordinal < begun and turn.kind == "assistant"]
    stated = memories.stated_before(rows, session.session_seq, begun)
    return View(
        sources=sources.sources([turn for turn in spoken if turn.ordinal >= begun], settled=settled, worked=worked),
        said=[frozenset(text.content_words(said)) for said in stated],
        before=before[-1] if before else "",
    )
