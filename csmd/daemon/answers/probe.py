"""What `csmd doctor` asks when its hooks have run: are the marker's turns found? Then they go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from csmd.daemon.tool import REQUIRED, Params, Tool
from csmd.errors import BadInput
from csmd.model import PROBE_SESSION
from csmd.recall import results
from csmd.store import events
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools

#: A marker has a turn for each event that reports one.
MOST_TURNS = 10


def _take(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    """Found by words alone: that a vector is made for it is the worker's business, and may take a while."""
    session = params["id"]
    word = session.removeprefix(PROBE_SESSION)
    if word == session or not word.isalpha():
        raise BadInput(f"{session!r} is no marker of `csmd doctor`")
    if not events.is_probe_there(rows, session):
        tools.steward.poke()  # it may wait in the spool
        return {"found": [], "removed": 0}
    hits, _ = results.find(rows, word, projects=None, kind="turn", limit=MOST_TURNS, embed=None)
    found = [hit.text for hit in hits if hit.session_id == session]
    removed = tools.store.write(lambda writing: events.remove_probe(writing, session_id=session))
    return {"found": found, "removed": removed}


TOOLS: dict[str, Tool] = {
    "csm_probe_take": Tool(
        summary="Find the turns that `csmd doctor` sent, and take them away", mutates=True, run=_take, parameters={"id": (str, REQUIRED)}
    ),
}  # fmt: skip
