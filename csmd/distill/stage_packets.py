"""The hands of packets: turns past a cursor of their own to packets; rows and cursor in one transaction."""

from __future__ import annotations

from pathlib import PurePath

from csmd import text
from csmd.distill.packets import WINDOW, packets
from csmd.model import Heard
from csmd.store import candidates as stored
from csmd.store import cursors, sessions
from csmd.store.core import Store
from csmd.store.cursors import Behind
from csmd.store.sqlite import Rows

STAGE = "packets"
#: Sessions that one step looks at, and turns of each.
SESSIONS, BATCH = 8, 400


def step(store: Store, *, now: str) -> int:
    """Observes a part of some sessions that have new turns; how many turns were looked at, 0 for nothing left.

    Every turn is decided when it is there: nothing here waits for a session to end, so `now` decides nothing.
    """
    del now
    behind = store.read(lambda rows: cursors.sessions_behind(rows, STAGE))
    looked = sessions = 0
    for session in behind:
        turns = _observe(store, session)
        looked, sessions = looked + turns, sessions + (turns > 0)
        if sessions == SESSIONS:
            break
    return looked


def _observe(store: Store, session: Behind) -> int:
    """Observes the next turns of one session; how many. A transcript that a tool has written proves nothing."""

    def look(rows: Rows) -> tuple[list[Heard], int, bool]:
        upto = min(session.turns, session.position + BATCH)
        provisional = stored.first_provisional(rows, session.session_seq, after=session.position)
        upto = upto if provisional is None else min(upto, provisional - 1)
        noted = sessions.is_tampered(rows, text.keyed_hash(PurePath(session.path).name, store.hash_key))
        after = max(0, session.position - WINDOW)
        return stored.heard(rows, session.session_seq, after=after, upto=upto), upto, noted

    turns, upto, noted = store.read(look)
    if upto <= session.position:
        return 0
    found = [] if noted else packets(turns, after=session.position)

    def write(rows: Rows) -> int:
        stored.put_packets(rows, found)
        cursors.move_cursor(rows, STAGE, str(session.session_seq), upto)
        return upto - session.position

    return store.write(write)
