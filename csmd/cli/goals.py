"""Commands about goals, and about everything that is open."""

from __future__ import annotations

from typing import Any

from csmd.cli import render, verb
from csmd.cli.render import Line, Screen, dim, join, last_part
from csmd.config import assistant_session
from csmd.text import display
from csmd.text.ages import when

VERBS = verb.Verbs()


GOAL = VERBS.add_group("goal", "Project goals, shown to each session until done.")


@GOAL.action(
    "set", verb.argument("text"), verb.text("--session", "ID", "Show it only to this session."),
    verb.project_option("Its project; this directory's by default."),
)  # fmt: skip
def goal_set(session: str, **options: Any) -> None:
    """Declare a goal. Typed in a terminal it is yours; otherwise your assistant's, shown only in its session."""
    session = session or ("" if verb.is_interactive() else assistant_session()[2])
    verb.reply("csm_goal_set", show_goal, {"session": session, **options}, sends_by_person=True)


def show_goal(value: dict[str, Any]) -> Screen:
    """Shows a goal that was declared, and the sessions that are shown it."""
    if value["authority"] == "user":
        sessions = "its session" if value["session_id"] else f"each session in {value['project']}"
        state = f"shown to {sessions} until `csmd done {value['id']}`"
    elif value["session_id"]:
        state = "the assistant's: shown in its session as the assistant's"
    else:
        remedy = "run it in a terminal, or give --session"
        state = f"not typed in a terminal: it counts as the assistant's and is shown to no session; {remedy}"
    undo = [dim("Undo: csmd undo")] if value["authority"] == "user" and value["new"] else []
    return [Line(value["text"], head=f"{value['id']}  "), dim(state), *undo]


@GOAL.tool("list", "csm_goal_list", *verb.PROJECTS, verb.flag("--done", help="List finished goals, too."))
@render.if_empty("goals", "no open goals here; `csmd goal set TEXT` declares one")
def show_goals(value: dict[str, Any]) -> Screen:
    """List goals, the latest first."""
    for goal in value["goals"]:
        owner = "yours" if goal["authority"] == "user" else "the assistant's"
        session = goal["session_id"] and f"session {display.shorten_session_id(goal['session_id'])}"
        finished = goal["done_at"] and f"done {when(goal['done_at'])[:10]}"
        yield Line(goal["text"], head=f"{goal['id']}  ", max_lines=4)
        details = join(owner, f"since {when(goal['created_at'])[:10]}", session, finished)
        yield dim(details, indent=len(goal["id"]) + 2)


@VERBS.action("done", verb.argument("items", "[ID|NUMBER]...", nargs=-1), *verb.PROJECTS)
def done(items: tuple[str, ...], project: str | None, all_projects: bool, as_json: bool) -> None:
    """Close an open item: a goal, a promise, a question, a task left to do.

    Without ID or NUMBER list the open items. `csmd undo` opens one again.
    """
    scope = verb.project_params(project, all_projects)
    if items:
        closed = verb.ask("csm_open_done", id=" ".join(items), **scope, by_person=verb.is_interactive())
        verb.print_answer(closed, as_json, show_closed)
    else:
        verb.print_answer(verb.ask("csm_open_list", **scope), as_json, show_open, all_projects=all_projects)


@render.if_empty("open", "no open items here")
def show_open(value: dict[str, Any], *, all_projects: bool) -> Screen:
    """Shows the open items, numbered."""
    widest = len(str(len(value["open"])))
    for row in value["open"]:
        yield Line(row["text"], head=f"{row['number']:>{widest}}  ", max_lines=3)
        project = last_part(row["project"]) if all_projects else ""
        session = ""
        if row["kind"] not in ("goal", "promise"):
            session = f"session {display.shorten_session_id(row['session_id'])}"
        yield dim(join(row["kind"], when(row["at"])[:10], session, project, row["id"], by="  "), indent=widest + 2)
    yield dim("`csmd done NUMBER` or `csmd done ID` closes one", gap=True)


def show_closed(value: dict[str, Any]) -> Screen:
    """Shows the closed items, and how to open them again."""
    for row in value["closed"]:
        yield Line(row["text"], head=f"done: {row['id']}  ", max_lines=3)
    yield dim("Undo: csmd undo" if len(value["closed"]) == 1 else "Undo one: csmd undo ID")
