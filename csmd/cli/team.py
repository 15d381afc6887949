"""Commands about a team's server: join, share, unshare, leave, status; and the screen of a search there."""

from __future__ import annotations

from typing import Any

from csmd.cli import render, verb
from csmd.cli.render import Line, Screen, bold, dim, join, many, pairs
from csmd.errors import CsmdError
from csmd.text.ages import ago, when

VERBS = verb.Verbs()
TEAM = VERBS.add_group("team", "Share memories of the projects that you choose, on a server of your own.")
EVERYBODY = "*"
PROJECT = verb.argument("project", "[PROJECT]", required=False, default=".")
#: Copies that no deletion on the server reaches.
OUT_OF_REACH = "out of reach: the server's write-ahead log, replicas and backups, and what colleagues have read"


@TEAM.action("join", verb.argument("url", "URL"), verb.YES)
def join_team(url: str, yes: bool, as_json: bool) -> None:
    """Join a team server (PostgreSQL with pgvector).

    URL is postgresql://NAME@HOST/DATABASE. Joining shares nothing. The password is read from ~/.pgpass, or from the
    keyring: keyring set csmd URL.
    """
    effect = "It sends the projects of `csmd team share`, and receives those of colleagues."
    verb.confirm(f"Let csmd connect to {url}? {effect}", yes=yes)
    verb.print_answer(verb.run_job("csm_team_join", url=url, by_person=True), as_json, show_joined)


def show_joined(value: dict[str, Any]) -> Screen:
    """Shows the server that was joined, and the next commands."""
    created_note = "created the tables on the server" if value["is_new"] else ""
    return render.done(
        f"joined {value['url']} as {value['author']}", created_note, "`csmd team share` shares this directory's project",
        "Undo: csmd team leave (docs/team.md)",
    )  # fmt: skip


@TEAM.action(
    "share", PROJECT,
    verb.option("--with", "names", metavar="NAME", multiple=True,
    help="A role that may read it; all roles on the server by default."),
    verb.flag("--private", help="Let no other role read it."),
    verb.text("--as", "NAME", "Name of the project for the team (default: its git remote)."), verb.YES,
)  # fmt: skip
def share(project: str, names: tuple[str, ...], private: bool, yes: bool, as_json: bool, **options: Any) -> None:
    """Share a project's memories, links, topics and digests. Conversations stay here."""
    readers = "" if private else " ".join(names) or EVERYBODY
    path = verb.project_params(project)["project"]
    params = {"project": path, "name": options["as"], "readers": readers, "by_person": True}
    verb.ask("csm_team_share", **params, dry_run=True)
    verb.confirm(f"Share the memories of {path} with {describe_readers(readers)}?", yes=yes)
    value = verb.ask("csm_team_share", **params)
    verb.print_answer(value, as_json, show_shared)


def describe_readers(readers: str) -> str:
    """Returns the roles that may read a project, in words."""
    if readers == EVERYBODY:
        return "everybody on the team's server"
    return ", ".join(readers.split()) or "nobody else"


def show_shared(value: dict[str, Any]) -> Screen:
    """Shows the shared project and its readers."""
    return render.done(
        f"shared {value['project']} as {value['name']}, with {describe_readers(value['readers'])}",
        f"{many(value['waiting'], 'change')} to be sent (csmd team status)", "Undo: csmd team unshare",
    )  # fmt: skip


@TEAM.action("unshare", PROJECT)
def unshare(project: str, as_json: bool) -> None:
    """Stop sharing a project and delete it from the server."""
    value = verb.ask("csm_team_unshare", project=verb.project_params(project)["project"])
    verb.print_answer(value, as_json, show_unshared)


def show_unshared(value: dict[str, Any]) -> Screen:
    """Shows the project that is no longer shared, and the copies that no deletion reaches."""
    return render.done(f"unshared {value['project']}: removal from the server is queued", OUT_OF_REACH)


@TEAM.action("leave", verb.flag("--keep", help="Keep your projects on the server."), verb.YES)
def leave(keep: bool, yes: bool, as_json: bool) -> None:
    """Leave the server, and delete your projects from it.

    Colleagues' memories are deleted from this machine.
    """
    if not verb.ask("csm_team_status")["team"]:
        raise CsmdError("this home has joined no team", hint="`csmd team join URL` joins one")
    verb.confirm("Leave the team's server?", yes=yes)
    verb.print_answer(verb.run_job("csm_team_leave", keep=keep, by_person=True), as_json, show_left)


def show_left(value: dict[str, Any]) -> Screen:
    """Shows the server that was left, and the number of projects deleted from it."""
    return render.done(f"left {value['url']}; deleted {many(value['removed'], 'project')} from it", OUT_OF_REACH)


@TEAM.tool("status", "csm_team_status", scope="none")
@render.if_empty("team", "no team server was joined; `csmd team join URL` joins one")
def show_team(value: dict[str, Any]) -> Screen:
    """Show the server, the shared projects, and unsent changes."""
    team = value["team"]
    yield bold(f"{team['url']} as {team['author']}")
    yield from pairs([
        ("  reached", when(team["reached_at"]) if team["reached_at"] else "not yet"),
        ("  fails", team["failure"] and f"since {when(team['failing_since'])}: {team['failure']}"),
        ("  waiting", f"{many(team['waiting'], 'change')} to be sent" if team["waiting"] else "nothing"),
    ])  # fmt: skip
    for row in team["shares"]:
        text = f"shared {row['project']} as {row['name']}, with {describe_readers(row['readers'])}"
        yield Line(text, gap=row is team["shares"][0])
    for row in team["received"]:
        yield f"from {row['author']}: {many(row['memories'], 'memory')} in {row['project']}"


def status_rows(value: dict[str, Any], now: str) -> list[tuple[str, str, str]]:
    """Returns the lines of `csmd status`: (label, text, style)."""
    shared = f"{value['author']}, {many(len(value['shares']), 'project')} shared"
    waiting = value["waiting"] and f"{many(value['waiting'], 'change')} to be sent"
    reached = f"reached {ago(value['reached_at'], now)}" if value["reached_at"] else "not reached yet"
    rows = [("team", join(shared, reached, waiting, by="; "), "")]
    if value["failure"]:
        rows.append(("", f"fails since {when(value['failing_since'])}: {value['failure']}", "yellow"))
    return rows


def show_team_hits(value: dict[str, Any]) -> Screen:
    """Shows the hits of a search on the team's server, each with its author, day and project."""
    if not value["hits"]:
        yield f"nothing found for {value['query']!r} on the team's server"
    for number, hit in enumerate(value["hits"], 1):
        origin = join(hit["author"], hit["kind"], hit["gate"], hit["at"][:10], hit["id"][:11], hit["project"], by="  ")
        yield bold(origin, head=f"{number:>2}  ")
        yield Line(hit["text"], indent=2, head="> ", max_lines=6)
    yield dim("from the team's server")
