"""Commands about goals, and about everything that is open."""

from __future__ import annotations

from typing import Any

from csmd.cli import render, verb
from csmd.cli.render import Line, Screen, dim, join, last_part
from csmd.config import assistant_session
from csmd.text import display
from csmd.text.ages import when

#: The verbs of this module.
VERBS = verb.Verbs()


GOAL = VERBS.add_group("goal", "Project goals, shown to each session until done.")


@GOAL.action(
    "set", verb.argument("text"), verb.text("--session", "ID", "It is this session's, and told to no other."),
    verb.project_of("The project it is for; this directory's by default."),
)  # fmt: skip
def goal_set(session: str, **options: Any) -> None:
    """Declare a goal. Typed in a terminal it is yours; else your assistant's, and told in its own session only."""
    session = session or ("" if verb.is_interactive() else assistant_session()[2])
    verb.reply("csm_goal_set", show_goal, {"session": session, **options}, sends_by_person=True)


def show_goal(value: dict[str, Any]) -> Screen:
    """A goal that was declared, and which sessions are shown it."""
    if value["authority"] == "user":
        whom = "its session" if value["session_id"] else f"each session in {value['project']}"
        state = f"told to {whom} until `csmd done {value['id']}`"
    elif value["session_id"]:
        state = "the assistant's: told in its session as the assistant's"
    else:
        state = (
            "nobody typed this in a terminal, so it counts as the assistant's and no session is told it: type it in a "
            "terminal, or name its session with --session"
        )
    return [Line(value["text"], head=f"{value['id']}  "), dim(state)]


@GOAL.tool("list", "csm_goal_list", *verb.PROJECTS, verb.flag("--done", help="Those that are done, too."))
@render.if_empty("goals", "no goal is open here; `csmd goal set TEXT` declares one")
def show_goals(value: dict[str, Any]) -> Screen:
    """List goals, the latest first."""
    for goal in value["goals"]:
        owner = "yours" if goal["authority"] == "user" else "the assistant's"
        session = goal["session_id"] and f"session {display.shorten_session_id(goal['session_id'])}"
        finished = goal["done_at"] and f"done {when(goal['done_at'])[:10]}"
        yield Line(goal["text"], head=f"{goal['id']}  ", most=4)
        about = join(owner, f"since {when(goal['created_at'])[:10]}", session, finished)
        yield dim(about, indent=len(goal["id"]) + 2)


@VERBS.action("done", verb.argument("what", "[ID|NUMBER]...", nargs=-1), *verb.PROJECTS)
def done(what: tuple[str, ...], project: str | None, all_projects: bool, as_json: bool) -> None:
    """Close a goal, a promise, a question or what was left to do.

    Without ID or NUMBER list what is open. `csmd undo` opens it again.
    """
    where = verb.project_params(project, all_projects)
    if what:
        closed = verb.ask("csm_open_done", id=" ".join(what), **where, by_person=verb.is_interactive())
        verb.print_answer(closed, as_json, show_closed)
    else:
        verb.print_answer(verb.ask("csm_open_list", **where), as_json, show_open, all_projects=all_projects)


@render.if_empty("open", "nothing is open here")
def show_open(value: dict[str, Any], *, all_projects: bool) -> Screen:
    """What is open, numbered."""
    widest = len(str(len(value["open"])))
    for row in value["open"]:
        yield Line(row["text"], head=f"{row['number']:>{widest}}  ", most=3)
        place = last_part(row["project"]) if all_projects else ""
        session = (
            "" if row["kind"] in ("goal", "promise") else f"session {display.shorten_session_id(row['session_id'])}"
        )
        yield dim(join(row["kind"], when(row["at"])[:10], session, place, row["id"], by="  "), indent=widest + 2)
    yield dim("`csmd done NUMBER` or ID closes one", gap=True)


def show_closed(value: dict[str, Any]) -> Screen:
    """What was closed, and how it is opened again."""
    for row in value["closed"]:
        yield Line(row["text"], head=f"done: {row['id']}  ", most=3)
    yield dim("`csmd undo` opens it again" if len(value["closed"]) == 1 else "`csmd undo ID` opens one again")
