"""How full the contexts of the sessions are that go on now, and how much csmd adds to each."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from csmd.daemon import status_known
from csmd.daemon.tool import PLACE, Params, Tool, places
from csmd.recall import bracket
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools

MOST = 50


def _status(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    settings, seen = tools.config.settings, places(rows, params)
    most, brief = settings.recall_max_tokens, settings.brief_max_tokens
    return {
        "sessions": [
            {**one, "recall_tokens": bracket.POLICY[one["bracket"]].recall_tokens(most)}
            for one in status_known.live(rows, now=datetime.now(UTC), limit=MOST, among=seen)
        ],
        "brackets": [
            {
                "bracket": name,
                "from_percent": round(100 * begins),
                "recall_tokens": policy.recall_tokens(most),
                "restored_tokens": policy.restored_tokens(brief),
            }
            for (name, policy), begins in zip(
                bracket.POLICY.items(), [0.0, *(one.below for one in bracket.POLICY.values())], strict=False
            )
        ],
    }


TOOLS: dict[str, Tool] = {
    "csm_context_status": Tool(
        summary="How full the contexts of live sessions are, and how much is added to each", mutates=False, run=_status,
        parameters=PLACE, lane="status",
    ),
}  # fmt: skip
