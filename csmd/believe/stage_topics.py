"""Topics' hands: looks for what a project's memories are about when they have changed, and writes what is other than before.

What is shared is told by all of a project, so its newest memories are looked at together, and a large one waits until
enough has changed. Neither a reader nor the writer is held: what is read is compared here, and written bit by bit.
"""

from __future__ import annotations

from functools import partial

from csmd.believe import topics
from csmd.believe.topics import Told
from csmd.store import topics as stored
from csmd.store.core import Store
from csmd.store.sqlite import Rows

#: Unasked, a project is looked at again when one of so many memories is new; while more is on its way, of so many.
WHEN_AT_REST, WHEN_READING = 200, 4
#: Memories of one project that are looked at, the newest: comparing takes a millisecond for each.
MOST = 4000
#: Memories whose tags one write compares: hooks wait behind it.
BATCH = 100


def step(store: Store, *, force: bool, reading: bool) -> int:
    """Tags the memories of the next project that has changed enough, with `force` at all; how many, 0 for none is left.

    `reading` is whether more of the past is being read in.
    """
    found = store.read(lambda rows: _look(rows, force=force, reading=reading))
    if found is None:
        return 0
    project, told = found
    tags = [(tag.seq, tag.topic, tag.weight) for tag in topics.tags(told)]
    ends = [one.seq for one in told[BATCH - 1 :: BATCH]]
    # The last part goes on to whatever has come since: it is none of these.
    begin = told[0].seq - 1 if len(told) == MOST else 0
    parts = list(zip([begin, *ends], [*ends, NEWER], strict=True))
    for number, (after, upto) in enumerate(parts, start=1):
        part = [one for one in tags if after < one[0] <= upto]
        store.write(partial(stored.put, looked=project, tags=part, after=after, upto=upto, last=number == len(parts)))
    return max(1, len(told))


#: Past every row key.
NEWER = 2**62


def _look(rows: Rows, *, force: bool, reading: bool) -> tuple[stored.Due, list[Told]] | None:
    share = WHEN_READING if reading else WHEN_AT_REST
    for project in stored.due(rows):
        if force or project.changes * share >= project.memories:
            return project, [
                Told(seq=seq, text=said, session_id=session)
                for seq, said, session in stored.told(rows, project.project_seq, limit=MOST)
            ]
    return None
