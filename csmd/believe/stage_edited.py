"""The hands of what was edited since: which memories of a session speak of code that an edit changed behind them.

It is noted beside what speaks against a memory and takes nothing from its confidence; a turn that says it again after
the edit ends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from csmd import wire
from csmd.distill import edited
from csmd.distill.edited import Claim, Edit
from csmd.distill.gotchas import Spoken, Told
from csmd.errors import BadInput
from csmd.store import gotchas as stored
from csmd.store.memories import EDITED
from csmd.store.sqlite import Rows

#: Edits looked at, the last of a session: more than nearly all have.
MOST_EDITS = 2_000


class Edited(NamedTuple):
    """A memory by its row key, and the last edit of what it speaks of."""

    memory_seq: int
    edit: Edit


def look(rows: Rows, session_seq: int, turns: Sequence[Spoken], told: Sequence[Told], *, upto: int) -> list[Edited]:
    """The memories that `turns` of a session tell, as far as an edit changed their code behind the last of those turns."""
    users = {turn.uuid: turn.text for turn in turns if turn.kind == "user"}
    claims = [
        one
        for one in told
        if edited.is_claim(
            one.text, one.category, by_assistant=one.authority == "assistant", turn=users.get(one.uuid, "")
        )
    ]
    last = {one.key: one for one in sorted(claims, key=lambda one: one.ordinal)}
    if not last:
        return []
    first = min(one.ordinal for one in last.values())
    edits = list(_edits(stored.edits(rows, session_seq, after=first, upto=upto, most=MOST_EDITS)))
    found = edited.edited([Claim(one.key, one.text, one.ordinal) for one in last.values()], edits)
    return [Edited(key, edit) for key, edit in found.items()]


def note(rows: Rows, found: Iterable[Edited]) -> None:
    """Notes what was edited; to note it again changes nothing."""
    for memory, edit in found:
        stored.add_refutation(rows, memory, uuid=edit.uuid, at=edit.at, reason=EDITED, lowered=0.0)


def _edits(calls: Iterable[tuple[str, str, int, str]]) -> Iterator[Edit]:
    """What the inputs of calls replaced; one that was cut when it was stored is left out."""
    for uuid, at, ordinal, given in calls:
        try:
            value = wire.loads(given)
        except BadInput:
            continue
        path = _text(value, "file_path")
        several = value.get("edits") if isinstance(value, dict) else None
        for one in several if isinstance(several, list) else [value]:
            yield Edit(uuid, at, ordinal, path, _text(one, "old_string"), _text(one, "new_string"))


def _text(value: Any, name: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""
