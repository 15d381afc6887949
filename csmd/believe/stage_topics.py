"""Topics' hands: looks for what a project's memories are about when they have changed, and writes what is other than before.

A project's newest memories are looked at together, for what is shared is told by all of them; so a large one waits until
enough has changed.
"""

from __future__ import annotations

from csmd.believe import topics
from csmd.store import topics as stored
from csmd.store.core import Store
from csmd.store.sqlite import Rows

#: Unasked, a project is looked at again when one of so many memories is new; while more is on its way, of so many.
WHEN_AT_REST, WHEN_READING = 200, 4
#: Memories of one project that are looked at, the newest: each takes a millisecond of a processor that hooks need, too.
MOST = 5000
#: Tags of one write: hooks wait behind it.
PART = 200


def step(store: Store, *, force: bool, reading: bool) -> int:
    """Tags the memories of the next project that has changed enough, with `force` at all; how many, 0 for none is left.

    Finding them takes seconds of the caller's time, and neither a reader's nor the writer's; `reading` is whether more
    of the past is being read in, or changed.
    """
    found = store.read(lambda rows: _look(rows, force=force, reading=reading))
    if found is None:
        return 0
    project, told = found
    tags = [(tag.seq, tag.topic, tag.weight) for tag in topics.tags(told)]
    since = told[0].seq if len(told) == MOST else 0
    other = store.read(lambda rows: stored.other(rows, project.project_seq, tags, since=since))
    for start in range(0, len(other), PART):
        part = other[start : start + PART]
        store.write(lambda rows, part=part: stored.put(rows, project.project_seq, part))  # type: ignore[misc]
    store.write(lambda rows: stored.looked_at(rows, project))
    return max(1, project.memories)


def _look(rows: Rows, *, force: bool, reading: bool) -> tuple[stored.Due, list[topics.Told]] | None:
    share = WHEN_READING if reading else WHEN_AT_REST
    for project in stored.due(rows):
        if force or project.changes * share >= project.memories:
            return project, [
                topics.Told(seq=seq, text=said, session_id=session)
                for seq, said, session in stored.told(rows, project.project_seq, limit=MOST)
            ]
    return None
