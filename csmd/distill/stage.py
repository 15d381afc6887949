"""Distillation's hands: turns past the cursor to statements; rows and cursor in one transaction."""

from __future__ import annotations

from pathlib import PurePath

from csmd import text
from csmd.distill import extract
from csmd.model import PROMPTS, Statement, StoredTurn, TurnKind
from csmd.store import cursors, journal, memories, tampered
from csmd.store.core import Store
from csmd.store.cursors import Behind
from csmd.store.sqlite import Rows

STAGE = "distill"
#: Kinds that can stand before a statement and give it its context.
SPOKEN: tuple[TurnKind, ...] = ("user", "relayed", "assistant", "summary")


def behind(store: Store) -> list[Behind]:
    """The conversations with turns that were not distilled yet, oldest first."""
    return store.read(lambda rows: cursors.sessions_behind(rows, STAGE))


def is_settled(session: Behind, *, quiet_before: str) -> bool:
    """Whether nobody is in the middle of a turn: the host said so, or nothing came since `quiet_before`."""
    return session.settled_at >= session.last_at or session.last_at < quiet_before


def distill(store: Store, session: Behind, *, settled: bool) -> int:
    """Distils one conversation as far as it is decided; the number of new statements.

    While the assistant is at work its latest message may not be its last: then the cursor
    stops at the last prompt and what follows is looked at again. What came after `session`
    was looked up waits: whether it is settled is not known. What only a hook reported gives no
    statement: the transcript says who spoke, an event anybody can forge. Nor does a transcript that
    a tool has written.
    """

    def look(rows: Rows) -> list[StoredTurn]:
        if tampered.is_noted(rows, text.keyed_hash(PurePath(session.path).name, store.hash_key)):
            return []
        after = max(0, session.position - 1)
        return journal.stream_turns(rows, session.session_seq, after=after, kinds=SPOKEN, written=True)

    turns = [turn for turn in store.read(look) if turn.ordinal <= session.turns]
    before = next((turn.text for turn in turns if turn.ordinal <= session.position), "")
    fresh = [turn for turn in turns if turn.ordinal > session.position]
    found: list[tuple[StoredTurn, Statement]] = []
    chosen = {turn.seq for turn in extract.final_turns(fresh, settled=settled)}
    for turn in fresh:
        if turn.seq in chosen:
            found += [(turn, statement) for statement in extract.statements(turn, before=before)]
        before = turn.text
    prompts = [turn.ordinal for turn in fresh if turn.kind in PROMPTS]
    reached = session.turns if settled else max(prompts, default=session.position)
    if not found and reached == session.position:
        return 0

    def write(rows: Rows) -> int:
        new = sum(
            memories.add_statement(
                rows,
                statement,
                turn,
                session_seq=session.session_seq,
                text_hash=text.keyed_hash(statement.text, store.hash_key),
            )
            for turn, statement in found
        )
        cursors.move_cursor(rows, STAGE, str(session.session_seq), reached)
        return new

    return store.write(write)
