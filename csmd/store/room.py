"""How much text of a session is kept: beyond its room a turn says that it was not, tools' output first."""

from __future__ import annotations

import re
from dataclasses import replace

from csmd.model import TOOL_KINDS, Turn
from csmd.store import counts
from csmd.store.sqlite import Rows

#: The share of a session's room that tools may fill: the rest is kept for what was said.
TOOLS_TENTHS = 9
#: As much room as anybody could want, for who sets no limit.
EVERYTHING = 2**62
#: What stands in place of a text for which there was no room; the turn is there, with the hash of what it said.
NOT_KEPT = "[not kept: this session is beyond {room} MB; the transcript has it]"
_NOT_KEPT = re.compile(re.escape(NOT_KEPT).replace(re.escape("{room}"), "[0-9.e+-]{1,20}"))


def fitting(rows: Rows, turn: Turn, used: int, room: int) -> tuple[Turn, int]:
    """The turn as far as there is room for its text, and the bytes it takes: tools give way before conversation does."""
    size = bytes_of(turn.text)
    if used + size <= (room * TOOLS_TENTHS // 10 if turn.kind in TOOL_KINDS else room) or not size:
        return turn, size
    counts.count(rows, [("turns not kept", 1)])
    return replace(turn, text=NOT_KEPT.format(room=f"{room / 1e6:g}")), 0


def is_not_kept(text: str) -> bool:
    """Whether a turn's text is the mark that stands for one that was not kept."""
    return _NOT_KEPT.fullmatch(text) is not None


def bytes_of(text: str) -> int:
    return 0 if is_not_kept(text) else len(text.encode("utf-8", "replace"))
