"""The verbs about goals: what a project or a session is for, as somebody declared it."""

from __future__ import annotations

import click

from csmd.cli import show_checkpoint
from csmd.cli.ask import ask, here, json_option, looking, out, person_is_there, project_options
from csmd.config import assistant_session


@click.group()
def goal() -> None:
    """What this project is for, told to each session until then."""


@goal.command("set")
@click.argument("text")
@click.option("--session", metavar="ID", default="", help="It is this session's, and told to no other.")
@click.option("--project", metavar="PATH", help="The project it is for; this directory's by default.")
@json_option
def set_(text: str, session: str, project: str | None, as_json: bool) -> None:
    """Declare a goal. Typed in a terminal it is yours; else your assistant's, and told in its own session only."""
    by_person = person_is_there()
    its = session or ("" if by_person else assistant_session()[1])
    found = ask("csm_goal_set", text=text, **looking(project), session=its, by_person=by_person)
    out(found, as_json, show_checkpoint.goal)


@goal.command("list")
@project_options
@click.option("--done", is_flag=True, help="Those that are done, too.")
@json_option
def list_(project: str | None, all_projects: bool, done: bool, as_json: bool) -> None:
    """List goals, the latest first."""
    found = ask("csm_goal_list", **looking(project, all_projects), done=done)
    out(found, as_json, show_checkpoint.goals)


@goal.command("done")
@click.argument("ident", metavar="ID")
@json_option
def done_(ident: str, as_json: bool) -> None:
    """Note that a goal is done. No session is told it any more."""
    found = ask("csm_goal_done", id=ident, asking=here(None), by_person=person_is_there())
    out(found, as_json, show_checkpoint.goal)


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (goal,)
