"""The hands of what was edited since: which memories of a session speak of code that an edit changed behind them.

It is noted beside what speaks against a memory and takes nothing from its confidence; a turn that says it again after
the edit ends it.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from csmd import wire
from csmd.believe import stage_scenes
from csmd.distill import edited, scene
from csmd.distill.calls import file_of
from csmd.distill.edited import Claim, Edit
from csmd.distill.gotchas import Spoken, Told
from csmd.distill.scene import Said
from csmd.errors import BadInput
from csmd.store import failures as stored
from csmd.store.memories import EDITED
from csmd.store.sqlite import Rows

#: Edits looked at, the last of a session: more than nearly all have.
MOST_EDITS = 2_000


class Edited(NamedTuple):
    """A memory by its row key, and the last edit of what it speaks of, or the turn that says so, with its time."""

    memory_seq: int
    uuid: str
    at: str


def look(rows: Rows, session_seq: int, turns: Sequence[Spoken], told: Sequence[Told], *, upto: int) -> list[Edited]:
    """The memories that `turns` of a session tell, as far as an edit changed their code behind the last of those turns.

    The answer beside what a user states tells what was done about it: it does not state it again.
    """
    users = {turn.uuid: turn.text for turn in turns if turn.kind == "user"}
    beside = stored.beside(rows, session_seq)
    claims = [
        one
        for one in told
        if (one.key, one.uuid) not in beside
        and edited.is_claim(
            one.text, one.category, by_assistant=one.authority == "assistant", turn=users.get(one.uuid, "")
        )
    ]
    last = {one.key: one for one in sorted(claims, key=lambda one: one.ordinal)}
    if not last:
        return []
    first = min(one.ordinal for one in last.values())
    edits = list(_edits(stored.edits(rows, session_seq, after=first, upto=upto, most=MOST_EDITS)))
    prompts = stage_scenes.prompts(rows, session_seq, upto=upto)
    asked = [_claim(one, users, [prompt.ordinal for prompt in prompts]) for one in last.values()]
    found = [Edited(key, edit.uuid, edit.at) for key, edit in edited.edited(asked, edits).items()]
    changes, _ = stage_scenes.changes(rows, session_seq, upto=upto)
    said = [Said(one.key, one.text, one.uuid, one.ordinal, one.authority == "user", "") for one in last.values()]
    found += [Edited(key, change.uuid, change.at) for key, change in scene.written_anew(said, changes, prompts).items()]
    return list({one.memory_seq: one for one in reversed(found)}.values())


def _claim(one: Told, users: Mapping[str, str], prompts: Sequence[int]) -> Claim:
    """What a memory claims, with the remark around it; what is done before the next prompt answers that."""
    around = edited.remark(one.text, one.category, users.get(one.uuid, ""))
    after = bisect_right(prompts, one.ordinal)
    answered = prompts[after] if after < len(prompts) else sys.maxsize
    return Claim(one.key, one.text, one.ordinal, around, answered if around else 0)


def note(rows: Rows, found: Iterable[Edited]) -> None:
    """Notes what was edited; to note it again changes nothing."""
    for memory, uuid, at in found:
        stored.add_refutation(rows, memory, uuid=uuid, at=at, reason=EDITED, lowered=0.0)


def _edits(calls: Iterable[tuple[str, str, int, str]]) -> Iterator[Edit]:
    """What the inputs of calls replaced; of one that was cut when it was stored its file is all that is known."""
    for uuid, at, ordinal, given in calls:
        try:
            value = wire.loads(given)
        except BadInput:
            value = {"file_path": file_of(given)}
        path = _text(value, "file_path")
        several = value.get("edits") if isinstance(value, dict) else None
        for one in several if isinstance(several, list) else [value]:
            yield Edit(
                uuid, at, ordinal, path, _text(one, "old_string"), _text(one, "new_string") or _text(one, "content")
            )


def _text(value: Any, name: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""
