"""Beliefs: one is superseded by another because somebody says so, or a wrong supersession is undone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from csmd.believe import stage_rest
from csmd.believe import stage_supersede as superseding
from csmd.daemon.answers.memory import one
from csmd.daemon.now import now_iso
from csmd.daemon.tool import ASKING, REQUIRED, Params, Tool
from csmd.errors import BadInput, CsmdError
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools


def _supersede(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    if not params["new"] and not params["undo"]:
        raise BadInput("csm_memory_supersede needs the memory that holds", hint="give new=ID, or undo=true")
    old = one(rows, params["old"], asking=params[ASKING])
    new = one(rows, params["new"], asking=params[ASKING]) if params["new"] else None
    by = superseding.PERSON if params["by_person"] else superseding.ASSISTANT

    def write(writing: Rows) -> dict[str, Any]:
        memory = one(writing, old.id, asking=params[ASKING])  # as it is now
        if memory.authority == "user" and not params["by_person"]:
            raise CsmdError(
                f"{memory.id} was said by the user, and only a person at a terminal can settle whether it holds",
                hint=f"type `csmd supersede {memory.id} {'--undo' if params['undo'] else params['new']}` in a terminal",
            )
        was = memory.superseded_by
        if params["undo"]:
            if new is not None and was != new.id:
                raise BadInput(f"{new.id} does not supersede {memory.id}", hint=f"`csmd show {memory.id}`")
            memory = superseding.undo(writing, memory, by=by, now=now_iso())
        elif new is not None:
            memory = superseding.by_hand(
                writing, memory, one(writing, new.id, asking=params[ASKING]), by=by, now=now_iso(),
                key=tools.store.hash_key,
            )  # fmt: skip
        rest = stage_rest.of(writing, memory.id)
        return {
            "id": memory.id, "text": memory.text, "confidence": memory.confidence, "undone": params["undo"],
            "superseded_by": memory.superseded_by, "was_superseded_by": was,
            "rest": {"id": rest.id, "text": rest.text} if rest else None,
        }  # fmt: skip

    return tools.store.write(write)


TOOLS: dict[str, Tool] = {
    "csm_memory_supersede": Tool(
        summary="Have one memory supersede another, or undo that", mutates=True, run=_supersede,
        parameters={
            "old": (str, REQUIRED), "new": (str, ""), "undo": (bool, False), ASKING: (str, ""), "by_person": (bool, False),
        },
    ),
}  # fmt: skip
