"""Tools on a team's server: join and leave it, share projects on it, search it."""

from __future__ import annotations

from csmd.capture import project_identity
from csmd.errors import BadInput
from csmd.store import projects, team, workspaces
from csmd.store.sqlite import Rows
from csmd.store.team import EVERYBODY
from csmd.tools.declaration import Json, ToolContext, Tools, clamp_limit
from csmd.tools.projects import find_project

TOOLS = Tools()
MAX_HITS = 50


@TOOLS.add("csm_team_join", mutates=True, person="join a team's server")
def _join(ctx: ToolContext, rows: Rows, url: str) -> Json:
    """Join a team server (PostgreSQL with pgvector); shares nothing by itself; returns a job."""
    return {"job": ctx.submit("team", order={"do": "join", "url": url})}


@TOOLS.add("csm_team_leave", mutates=True, person="leave a team's server")
def _leave(ctx: ToolContext, rows: Rows, keep: bool = False) -> Json:
    """Leave the team server: delete shared memories there (unless `keep`) and colleagues' here; returns a job."""
    return {"job": ctx.submit("team", order={"do": "leave", "keep": keep})}


@TOOLS.add("csm_team_share", mutates=True, person="share a project")
def _share(
    ctx: ToolContext, rows: Rows, project: str, name: str = "", readers: str = EVERYBODY, dry_run: bool = False
) -> Json:
    """Share a project's memories on the team's server; `readers` are roles separated by spaces, * for all."""
    if wrong := [role for role in readers.split() if role != EVERYBODY and not team.ROLE.fullmatch(role)]:
        raise BadInput(f"{wrong[0]!r} is not a role", hint="use a colleague's name in the database")

    def write(writing: Rows) -> Json:
        if team.find_team(writing) is None:
            raise BadInput("this home has joined no team", hint="csmd team join postgresql://NAME@HOST/DATABASE")
        seq = find_project(writing, project)
        if readers == EVERYBODY and projects.everywhere_of(writing, seq):
            wall = projects.name_of(writing, projects.everywhere_of(writing, seq))
            hint = "name its readers: --with NAME, or --private"
            raise BadInput(f"{project} is behind the wall {wall}", hint=hint)
        shared_name = name or team.find_remote(writing, seq)
        if not shared_name:
            raise BadInput(f"{project} has no git remote to name it for the team", hint="choose a name: --as NAME")
        if any(share.name == shared_name and share.project_seq != seq for share in team.list_shares(writing)):
            raise BadInput(f"another project is shared as {shared_name}", hint="choose another name: --as NAME")
        if not dry_run:
            team.share_project(writing, seq, name=shared_name, readers=readers, now=ctx.now())
        return {
            "project": workspaces.root_of(writing, seq), "name": shared_name, "readers": readers,
            "waiting": team.count_waiting(writing),
        }  # fmt: skip

    shared = ctx.store.write(write)
    ctx.poke()
    return shared


@TOOLS.add("csm_team_unshare", mutates=True)
def _unshare(ctx: ToolContext, rows: Rows, project: str) -> Json:
    """Stop sharing a project, and remove it from the team's server."""
    name = ctx.store.write(lambda writing: team.unshare_project(writing, find_project(writing, project)))
    if not name:
        raise BadInput(f"{project} is not shared", hint="`csmd team status` shows what is")
    ctx.poke()
    return {"project": project, "name": name}


@TOOLS.add("csm_team_status")
def _show_status(ctx: ToolContext, rows: Rows) -> Json:
    """Show the team server: shared projects, unsent changes, and projects shared by colleagues."""
    return {"team": ctx.status(rows)["team"]}


@TOOLS.add("csm_team_search", mutates=True)
def _search(ctx: ToolContext, rows: Rows, query: str, limit: int = 10, asking: str = "") -> Json:
    """Search everything readable on the team server, within the caller's wall; returns a job."""
    wall = projects.name_of(rows, project_identity.find_wall(rows, asking))
    order = {"do": "search", "query": query, "wall": wall, "limit": clamp_limit(limit, MAX_HITS)}
    return {"job": ctx.submit("team", order=order)}
