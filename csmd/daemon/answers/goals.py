"""Goals: declared by a person or an assistant, listed, and done; who declared one is always told."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from csmd.capture import stage_place
from csmd.capture import stage_purge as purging
from csmd.capture.redact import redact
from csmd.daemon.answers import memory, wording
from csmd.daemon.answers import sessions as of_sessions
from csmd.daemon.now import now_iso
from csmd.daemon.tool import ASKING, PLACE, REQUIRED, Params, Tool, places
from csmd.errors import BadInput, CsmdError
from csmd.recall import stage as recall
from csmd.store import checkpoints, projects, tombstones
from csmd.store.checkpoints import Goal
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools


def _set(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    body, key, now = wording.worded(params["text"]), tools.store.hash_key, now_iso()
    by_person = params["by_person"]
    if not by_person:
        memory.refuse_where_left_out(tools, params)
    if tombstones.marks(rows, key).spans(body):
        raise CsmdError("a part of this text was purged", hint="`csmd forget --lift` lets purged text in again")
    places(rows, params)  # a wall keeps out what would be put behind it as well
    session = of_sessions.one(rows, {"id": params["session"], ASKING: params[ASKING]}) if params["session"] else None
    if session is None and not params["project"]:
        raise BadInput("a goal is a project's or a session's", hint="give project or session")
    directory = redact(params["project"], Counter())
    place = stage_place.entering(rows, stage_place.identify(directory)) if session is None else None

    def write(writing: Rows) -> tuple[Goal, bool]:
        home = session.project_seq if session else 0
        if place is not None:
            home = projects.settle(writing, purging.permitted_place(writing, place, key=key), now=now).seq
        ident, new = checkpoints.add_goal(
            writing, project=home, session_id=session.id if session else "", text=body,
            authority="user" if by_person else "assistant", now=now,
        )  # fmt: skip
        return next(one for one in checkpoints.goals_like(writing, ident) if one.id == ident), new

    made, new = tools.store.write(write)
    fresh = {made.project_seq: place.root} if place is not None else {}  # it may be as new as its goal
    return {**_json(made, {**memory.roots(rows), **fresh}), "new": new}


def _list(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    roots = memory.roots(rows)
    return {
        "goals": [
            _json(one, roots) for one in checkpoints.goal_list(rows, projects=places(rows, params), done=params["done"])
        ]
    }


def _done(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    ident = params["id"]
    found = [
        one
        for one in checkpoints.goals_like(rows, ident)
        if recall.is_seen(rows, one.project_seq, asking=params[ASKING])
    ]
    exact = [one for one in found if one.id == ident] or found
    if not ident or not exact:
        raise BadInput(f"there is no goal {ident!r}", hint="`csmd goal list` shows them with their ids")
    if len(exact) > 1:
        raise BadInput(
            f"{ident!r} begins several ids: {', '.join(one.id for one in exact)}", hint="type some more of it"
        )
    if exact[0].authority == "user" and not params["by_person"]:
        raise CsmdError(
            f"{exact[0].id} was declared by the user, and only a person at a terminal can call it done",
            hint=f"type `csmd goal done {exact[0].id}` in a terminal",
        )
    now = now_iso()
    changed = tools.store.write(lambda writing: checkpoints.finish_goal(writing, exact[0].id, now=now))
    return {**_json(exact[0], memory.roots(rows)), "done_at": now if changed else exact[0].done_at, "changed": changed}


def _json(goal: Goal, roots: dict[int, str]) -> dict[str, Any]:
    return {
        "id": goal.id, "text": goal.text, "authority": goal.authority, "project": roots.get(goal.project_seq, ""),
        "session_id": goal.session_id, "created_at": goal.created_at, "done_at": goal.done_at,
    }  # fmt: skip


TOOLS: dict[str, Tool] = {
    "csm_goal_set": Tool(
        summary="Declare what a project or a session is for", mutates=True, run=_set,
        parameters={"text": (str, REQUIRED), **PLACE, "session": (str, ""), "by_person": (bool, False)},
    ),
    "csm_goal_list": Tool(
        summary="List goals, the latest first", mutates=False, run=_list,
        parameters={**PLACE, "done": (bool, False)},
    ),
    "csm_goal_done": Tool(
        summary="Note that a goal is done", mutates=True, run=_done,
        parameters={"id": (str, REQUIRED), ASKING: (str, ""), "by_person": (bool, False)},
    ),
}  # fmt: skip
