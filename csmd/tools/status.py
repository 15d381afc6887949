"""Tools on the daemon's state and the soundness of its database."""

from __future__ import annotations

from csmd.errors import BadInput
from csmd.recall import results
from csmd.store import integrity, probes
from csmd.store.sqlite import Rows
from csmd.tools.declaration import Json, ToolContext, Tools
from csmd.vocabulary import PROBE_SESSION

TOOLS = Tools()


@TOOLS.add("csm_clients")
def _list_clients(ctx: ToolContext, rows: Rows) -> Json:
    """List the assistant's versions and directories in use."""
    return ctx.clients(rows)


@TOOLS.add("csm_store_check")
def _check_database(ctx: ToolContext, rows: Rows, indexes: bool = True) -> Json:
    """Check that the database is sound."""
    if not indexes:
        return {"problems": integrity.check_structure(rows) or integrity.check_content(rows)}
    # FTS5's check writes nothing but needs the writing connection.
    return {"problems": ctx.store.write(integrity.check_database)}


@TOOLS.add("csm_store_shape")
def _describe_database(ctx: ToolContext, rows: Rows) -> Json:
    """Describe the database without its content: tables, row counts, SQLite's settings."""
    return integrity.describe_database(rows)


@TOOLS.add("csm_runtime_pause", lane="status")
def _show_pause(ctx: ToolContext, rows: Rows) -> Json:
    """Show whether csmd is paused, read again from its file."""
    ctx.read_pauses()
    return {"paused": ctx.paused()}


@TOOLS.add("csm_runtime_status", lane="status")
def _show_status(ctx: ToolContext, rows: Rows) -> Json:
    """Show the daemon's state."""
    return ctx.status(rows)


@TOOLS.add("csm_runtime_alarms", lane=None)
def _list_alarms(ctx: ToolContext, rows: None) -> Json:
    """List alarms: reasons why nothing is being recorded."""
    return {"alarms": ctx.alarms()}


#: Turns that one marker can have: one for each event that brings a turn.
MAX_PROBE_TURNS = 10


@TOOLS.add("csm_probe_take", mutates=True)
def _take_probe(ctx: ToolContext, rows: Rows, id_: str) -> Json:
    """Find the turns that `csmd doctor` sent, and remove them.

    The search is by words alone, as the worker may take a while to make a vector.
    """
    word = id_.removeprefix(PROBE_SESSION)
    if word == id_ or not word.isalpha():
        raise BadInput(f"{id_!r} is not a marker of `csmd doctor`")
    if not probes.has_probe(rows, id_):
        ctx.poke()  # it may still be in the spool
        return {"found": [], "removed": 0}
    hits, _ = results.find(rows, word, projects=None, kind="turn", limit=MAX_PROBE_TURNS, embed=None)
    texts = [hit.text for hit in hits if hit.session_id == id_]
    return {"found": texts, "removed": ctx.store.write(lambda writing: probes.remove_probe(writing, session_id=id_))}
