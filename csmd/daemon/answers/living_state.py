"""The living state: what a session would be told of it, and why each of its lines is told or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from csmd.daemon.answers.memory import brief_json
from csmd.daemon.tool import ASKING, REQUIRED, Params, Tool
from csmd.recall import living_state
from csmd.recall import stage as recall
from csmd.recall.living_state import Line
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools


def _lines(rows: Rows, params: Params) -> list[Line]:
    places = recall.asked(rows, params["project"] or "/", asking=params[ASKING]) or [0]
    return living_state.lines(rows, places=places)


def _told(tools: Tools, lines: list[Line]) -> dict[str, Any]:
    made = living_state.fenced(living_state.blocks(lines), max_tokens=living_state.MAX_TOKENS)
    return {
        "note": living_state.LABEL,
        "enabled": tools.config.settings.stages_advisory,
        "max_tokens": living_state.MAX_TOKENS,
        **brief_json(tools, made),
    }


def _preview(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    return _told(tools, _lines(rows, params))


def _debug(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    lines = _lines(rows, params)
    return {
        **_told(tools, lines),
        "trimmed": [part for part, _ in sorted(living_state.PARTS.items(), key=lambda row: row[1].stays)],
        "lines": [
            {
                "part": one.part,
                "id": one.id,
                "text": one.text,
                "tail": one.tail,
                "told": one.why == "told",
                "why": one.why,
            }
            for one in lines
        ],
    }


_PLACE: dict[str, tuple[type, Any]] = {"project": (str, REQUIRED), ASKING: (str, "")}
TOOLS: dict[str, Tool] = {
    "csm_living_state_preview": Tool(
        summary="Preview of the living state: recent experience, signals, how work ended, what is held", mutates=False,
        run=_preview, parameters=_PLACE,
    ),
    "csm_living_state_debug": Tool(
        summary="Why each line of the living state is told or not", mutates=False, run=_debug, parameters=_PLACE
    ),
}  # fmt: skip
