"""The digests' hands: sessions that were distilled to their end get theirs, rows and cursor in one transaction.

What is digested follows the distilling: a session is settled when that has come to its end. A transcript that a tool
has written gives no digest, as it gives no statement.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import PurePath

from csmd import text
from csmd.distill import digest
from csmd.distill.digest import Digest, Why
from csmd.distill.harvest import Stated
from csmd.distill.work import Entry
from csmd.errors import CsmdError
from csmd.store import cursors, digests, sessions, tombstones
from csmd.store.core import Store
from csmd.store.digests import DIGEST, Waiting
from csmd.store.purged import PURGED
from csmd.store.sqlite import Rows

#: Sessions in one step, and events looked at for those that have ended since.
BATCH, EVENTS = 5, 500
#: What the host's last word on a session makes its last version.
WHY: dict[str, Why] = {"session_end": "end", "pre_compact": "compaction"}


def step(store: Store, *, now: str) -> int:
    """Digests the next sessions; how many were looked at, 0 when nothing waits. `now` is not part of any digest."""
    del now
    heard = _hear(store)
    found = store.read(lambda rows: digests.waiting(rows, limit=BATCH))
    made = [(session, _digests(store, session)) for session in found]

    def write(rows: Rows) -> None:
        for session, versions in made:
            digests.replace(rows, session.session_seq, versions, turns=session.turns)

    if made:
        store.write(write)
    return len(found) or int(heard)


def _hear(store: Store) -> bool:
    """Has the sessions digested again that ended, or are about to be compacted, since events were looked at.

    Whether there may be more. Where nothing ended nothing is written: a write is a commit, and there is an event for
    every prompt.
    """
    after = store.read(lambda rows: cursors.cursor(rows, DIGEST, "events"))
    last, looked, sessions = store.read(lambda rows: digests.reopened(rows, after=after, limit=EVENTS))
    if not sessions and looked < EVENTS:
        return False

    def write(rows: Rows) -> None:
        for session in sessions:
            cursors.move_cursor(rows, DIGEST, str(session), 0)
        cursors.move_cursor(rows, DIGEST, "events", last)

    store.write(write)
    return looked == EVENTS


def digest_now(store: Store, rows: Rows, session_seq: int) -> None:
    """Digests a session as it is, before it is settled; read from `rows`. The stage looks at it again when it is."""
    purged = tombstones.purges(rows)
    made = _made(rows, digests.session(rows, session_seq), store.hash_key)()

    def write(writing: Rows) -> None:
        if tombstones.purges(writing) != purged:
            raise CsmdError("something was purged meanwhile, and the digest may quote it", hint="ask again")
        digests.replace(writing, session_seq, made, turns=0)

    store.write(write)


def _digests(store: Store, session: Waiting) -> list[Digest]:
    return store.read(lambda rows: _made(rows, session, store.hash_key))()


def _made(rows: Rows, session: Waiting, key: bytes) -> Callable[[], list[Digest]]:
    """Reads what a session's digests are made of; what it gives makes them, without the store."""
    if sessions.is_tampered(rows, text.keyed_hash(PurePath(session.path).name, key)):
        return list
    entries = [Entry(*row) for row in digests.entries(rows, session.session_seq)]
    stated = [Stated(*row) for row in digests.stated(rows, session.session_seq)]
    return partial(
        digest.versions,
        [entry for entry in entries if entry.ordinal <= session.turns and entry.text != PURGED],
        stated,
        title=session.title,
        cwd=session.cwd,
        why=WHY.get(session.why, "settled"),
    )
