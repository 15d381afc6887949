"""For who looks on while csmd works: what has happened since the last look, and one line about a session.

Both are asked again and again: each answer costs a few look-ups by key, and stands before no hook.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from csmd import text
from csmd.capture.hosts import claude_windows
from csmd.daemon.now import now_iso
from csmd.daemon.tool import PLACE, REQUIRED, Params, Tool, places
from csmd.errors import BadInput
from csmd.recall import bracket
from csmd.store import activity, receipts
from csmd.store.activity import Happening
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools

#: Of one kind in one answer; who gets so many asks again at once.
MOST = 200
#: Characters of a text; `csmd session transcript` shows the whole.
TEXT_CHARACTERS = 1000
#: Of one project's rows so many of all projects' are looked through for the first look.
BACK = 20_000


def _tail(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    seen, last = places(rows, params), activity.positions(rows)
    if not params["cursor"]:
        limit = min(max(params["last"], 0), MOST)
        found = [one for kind in activity.KINDS for one in _latest(rows, kind, last[kind], seen, limit)]
        found = sorted(found, key=_order)[-limit:] if limit else []
        return {"cursor": _written(last), "more": False, "items": [_item(one) for one in found]}
    found, more = [], False
    for kind, position in _read(params["cursor"]).items():
        news = activity.happened_after(rows, kind, min(position, last[kind]), projects=seen, limit=MOST)
        if len(news) == MOST:
            last[kind], more = news[-1].seq, True
        found += news
    return {"cursor": _written(last), "more": more, "items": [_item(one) for one in sorted(found, key=_order)]}


def _latest(rows: Rows, kind: str, last: int, seen: list[int] | None, limit: int) -> list[Happening]:
    return activity.latest_positions(rows, kind, after=max(0, last - BACK), projects=seen, limit=limit)


def _order(one: Happening) -> tuple[str, int, int]:
    return one.at, activity.KINDS.index(one.kind), one.seq


def _written(positions: dict[str, int]) -> str:
    return ",".join(str(positions[kind]) for kind in activity.KINDS)


def _read(cursor: str) -> dict[str, int]:
    numbers = cursor.split(",")
    if len(numbers) != len(activity.KINDS) or not all(number.isdecimal() and len(number) < 19 for number in numbers):
        raise BadInput(f"csm_tail: {cursor!r} is no cursor", hint="give back what the last answer gave, or nothing")
    return dict(zip(activity.KINDS, map(int, numbers), strict=True))


def _item(one: Happening) -> dict[str, Any]:
    tokens, memories = one.amounts
    return {
        "kind": one.kind,
        "at": one.at,
        "project": one.project,
        "name": PurePath(one.project).name,
        "session": one.session,
        "what": one.word,
        "text": text.cut(one.text, TEXT_CHARACTERS),
        **({"tokens": tokens, "memories": memories} if one.kind == "injection" else {}),
    }


def _line(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    memories, tokens = receipts.injected(rows, params["id"])
    model, used = receipts.filled(rows, params["id"])
    window = claude_windows.window(model, used)
    return {
        "memories": memories,
        "tokens": tokens,
        "bracket": bracket.of(used, window),
        "line": line(
            memories,
            tokens,
            is_recording=not (tools.store.refuses or tools.store.refusing),
            is_paused=tools.steward.pauses().current(now_iso()) is not None,
            filled=filled(used, window),
        ),
    }


def filled(used: int, window: int) -> str:
    """How full a context is, in words; "" while that is nothing to look at."""
    found = bracket.of(used, window)
    return "" if found == "FRESH" else f"context {used * 100 // window} % ({found})"


def line(memories: int, tokens: int, *, is_recording: bool, is_paused: bool = False, filled: str = "") -> str:
    """What stands below a session, "" for nothing: what it was told and how full it is, or why csmd does not work for it."""
    if not is_recording:
        return "csmd: not recording"
    if is_paused:
        return "csmd: paused"
    said = [text.amount(memories, "memory"), text.amount(tokens, "token")] if memories else []
    said += [filled] if filled else []
    return f"csmd: {', '.join(said)}" if said else ""


TOOLS: dict[str, Tool] = {
    "csm_tail": Tool(
        summary="What has happened since a cursor", mutates=False, run=_tail, lane="status",
        parameters={"cursor": (str, ""), "last": (int, 10), **PLACE},
    ),
    "csm_session_line": Tool(
        summary="One line about what a session was told", mutates=False, run=_line, lane="status",
        parameters={"id": (str, REQUIRED)},
    ),
}  # fmt: skip
