"""Tools on projects: list, alias, merge, split, lens.

Changes of what is visible where need a person at a terminal, so that no assistant lowers a wall.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import PurePosixPath

from csmd.capture import project_identity
from csmd.errors import BadInput, CsmdError
from csmd.memory import topic_tagging
from csmd.recall import lens
from csmd.store import files, project_merges, projects, tombstones, workspaces
from csmd.store.project_merges import MoveCounts
from csmd.store.sqlite import Rows
from csmd.store.workspaces import Lens, ProjectSummary
from csmd.tools.declaration import Json, ToolContext, Tools
from csmd.tools.present import refuse_secrets

TOOLS = Tools()
NAME_LIMIT = 60


class _Rehearsed(Exception):
    """Raised to roll back the writes of a dry run."""


@TOOLS.add("csm_project_list")
def _list(ctx: ToolContext, rows: Rows, asking: str = "") -> Json:
    """List projects, lenses and workspaces, and which lens holds here."""
    walled, here = workspaces.list_workspaces(rows), lens.find(rows, asking)
    return {
        "projects": [_project(row) for row in workspaces.list_projects(rows)],
        "workspaces": [dict(zip(("name", "projects", "memories"), row, strict=True)) for row in walled],
        "lenses": [_lens_json(each) for each in workspaces.list_lenses(rows)],
        "lens": here.name if here else "",
    }


def _project(row: ProjectSummary) -> Json:
    fields = {key: value for key, value in asdict(row).items() if key not in ("seq", "last_at", "other_places")}
    return {
        **fields,
        "merged": list(row.merged),
        "last": row.last_at,
        "gone": files.is_missing(row.root),
        "off": files.has_off_mark(row.root),
        "aliases": [{"path": path, "why": why} for path, why in row.other_places],
    }


@TOOLS.add("csm_project_alias", mutates=True)
def _alias(
    ctx: ToolContext, rows: Rows, place: str, other: str = "", remove: bool = False, by_person: bool = False
) -> Json:  # fmt: skip
    """Make a directory part of a project."""
    _need_person(by_person, f"csmd project alias {place}")
    identity = project_identity.identified(_absolute(place))

    def write(writing: Rows) -> Json:
        if remove:
            if not projects.remove_alias(writing, identity.key):
                raise BadInput(f"{identity.root} is no alias that you named", hint="`csmd project list` shows them")
            return {"path": identity.root, "project": "", "removed": True}
        if not other:
            raise BadInput("which project does it count to?", hint="csmd project alias PATH OTHER")
        own = projects.seq_of(writing, identity)
        target = find_project(writing, other)
        root = workspaces.root_of(writing, target)
        if own is not None and own != target:
            raise BadInput(
                f"{identity.root} is a project already, and an alias would leave behind what is in it",
                hint=f"csmd project merge '{identity.root}' '{root}'",
            )
        if own is None:
            projects.add_alias(writing, identity.key, target, path=identity.root, why="named", now=ctx.now())
        return {"path": identity.root, "project": root, "removed": False}

    return ctx.store.write(write)


@TOOLS.add("csm_project_merge", mutates=True)
def _merge(
    ctx: ToolContext, rows: Rows, source: str, into: str, dry_run: bool = False, by_person: bool = False
) -> Json:  # fmt: skip
    """Bring all of a project into another."""
    _need_person(by_person, f"csmd project merge {source} {into}")

    def write(writing: Rows) -> MoveCounts:
        merged, target = find_project(writing, source), find_project(writing, into)
        if merged == target:
            raise BadInput(f"{source} and {into} are one project already")
        if projects.everywhere_of(writing, merged) != projects.everywhere_of(writing, target):
            raise BadInput(
                f"a wall is between {source} and {into}: they are in different workspaces",
                hint="take the wall away first: csmd project lens NAME PATH --wall --remove",
            )
        return project_merges.merge_projects(writing, merged, target)

    return _move(ctx, write, dry_run=dry_run)


@TOOLS.add("csm_project_split", mutates=True)
def _split(
    ctx: ToolContext, rows: Rows, whole: str, place: str, dry_run: bool = False, by_person: bool = False
) -> Json:  # fmt: skip
    """Take a directory out of a project."""
    _need_person(by_person, f"csmd project split {whole} {place}")
    path = _absolute(place)
    directory = project_identity.identified(path).place

    def write(writing: Rows) -> MoveCounts:
        of = find_project(writing, whole)
        merged = workspaces.project_at_path(writing, path) or workspaces.project_at_path(writing, directory)
        if merged is not None and merged != of:
            if workspaces.merged_into(writing, merged) != of:
                raise BadInput(f"{path} is not in {whole}: it is a project of its own, or merged elsewhere")
            workspaces.copy_workspace(writing, merged, as_that_of=of)
            return project_merges.split_projects(writing, of, merged)
        root = workspaces.root_of(writing, of)
        if directory == root or not root:
            raise BadInput(f"{path} is all of {whole}", hint="name a directory in it, or one merged into it")
        key = hashlib.sha256(f"part:{of}:{directory}".encode()).hexdigest()[:16]
        name = PurePosixPath(directory).name
        part = workspaces.add_part(writing, key=key, root=directory, name=name, whole=of, now=ctx.now())
        moved = project_merges.split_projects(writing, of, part)
        if not moved.turns:
            raise BadInput(
                f"nothing of {whole} was said below {directory}", hint="`csmd project list` shows what is where"
            )
        return moved

    return _move(ctx, write, dry_run=dry_run)


def _move(ctx: ToolContext, write: Callable[[Rows], MoveCounts], *, dry_run: bool) -> Json:
    """Moves rows and counts them; with `dry_run` the move is rolled back."""
    moved: list[MoveCounts] = []

    def move(writing: Rows) -> None:
        moved.append(write(writing))
        if dry_run:
            raise _Rehearsed

    with suppress(_Rehearsed):
        ctx.store.write(move)
    return {**asdict(moved[-1]), "dry_run": dry_run}


# --- lenses

MAX_TOPICS = 20


@TOOLS.add("csm_project_lens", mutates=True)
def _set_lens(
    ctx: ToolContext, rows: Rows, name: str, places: str = "", topics: str = "", wall: bool = False,
    remove: bool = False,
    by_person: bool = False,
) -> Json:  # fmt: skip
    """Put projects and topics under a lens, which ranks them first, with `wall` behind a wall; or take them out."""
    _need_person(by_person, f"csmd project lens {name} PATH...")
    _check_name(name)
    named, about = _words(places), [topic_tagging.normalise_name(refuse_secrets(topic)) for topic in _words(topics)]
    if "" in about:
        raise BadInput("there is no topic in that text", hint="name it in a word or three")
    if not (named or about or (remove and not wall)):
        raise BadInput("which projects, or which topics?", hint=f"csmd project lens {name} PATH... --topic TOPIC")

    def write(writing: Rows) -> Json:
        change = _take_out if remove else _put_under
        return change(writing, name, named, about, wall=wall, ctx=ctx)

    return ctx.store.write(write)


def _put_under(rows: Rows, name: str, named: list[str], about: list[str], *, wall: bool, ctx: ToolContext) -> Json:
    seq = workspaces.ensure(rows, name, now=ctx.now())
    moved = _wall_in(rows, seq, named, now=ctx.now()) if wall else 0
    for place in () if wall else named:
        project, _ = _find_open(rows, place, seq, now=ctx.now())
        if not projects.everywhere_of(rows, project):
            workspaces.rank_first(rows, project, lens=seq)
    marks = tombstones.purged_marks(rows, ctx.store.hash_key)
    for topic in about:
        if marks.spans(topic):
            raise CsmdError("a part of that topic was purged", hint="`csmd forget --lift` lets purged text in again")
        workspaces.add_topic(rows, seq, topic)
    view = workspaces.find_lens(rows, seq)
    if view is None or len(view.topics) > MAX_TOPICS:
        raise BadInput(f"a lens has at most {MAX_TOPICS} topics", hint="name the few that tell it from others")
    return {**_lens_json(view), "moved": moved}


def _take_out(rows: Rows, name: str, named: list[str], about: list[str], *, wall: bool, ctx: ToolContext) -> Json:
    seq = workspaces.find_workspace(rows, name)
    view = workspaces.find_lens(rows, seq) if seq else None
    if view is None or view.is_empty:
        raise BadInput(f"there is no lens {name!r}", hint="`csmd project list` lists them")
    if wall:
        for place in named:
            project = find_project(rows, place)
            if projects.everywhere_of(rows, project) != seq:
                root = workspaces.root_of(rows, project)
                raise BadInput(f"{root} is not behind the wall of {name}", hint="`csmd project list` shows what is")
            workspaces.leave(rows, project, key=ctx.store.hash_key)
        named = []
    elif not (named or about):
        if view.walled:
            raise BadInput(
                f"{name} has a wall, which is not lowered at once",
                hint=f"name its projects: csmd project lens {name} PATH... --wall --remove",
            )
        named, about = list(view.ranked), list(view.topics)
    for place in named:
        project = find_project(rows, place)
        root = workspaces.root_of(rows, project)
        if root not in view.ranked:
            more = " --wall" if root in view.walled else ""
            hint = f"csmd project lens {name} '{root}' --wall --remove" if more else "`csmd project list` shows what is"
            raise BadInput(f"{root} is {'behind the wall of' if more else 'not under'} the lens {name}", hint=hint)
        workspaces.rank_first(rows, project, lens=0)
    for topic in about:
        if not workspaces.remove_topic(rows, view.seq, topic):
            raise BadInput(f"{topic!r} is no topic of the lens {name}", hint="`csmd project list` shows them")
    left = workspaces.find_lens(rows, view.seq)
    return {**_lens_json(left or view), "moved": 0}


def _words(lines: str) -> list[str]:
    return [line for line in lines.split("\n") if line]


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > NAME_LIMIT or not name.isprintable():
        raise BadInput(
            f"{name[:NAME_LIMIT]!r} is not a name for a lens", hint=f"choose one of at most {NAME_LIMIT} characters"
        )


def _wall_in(rows: Rows, seq: int, named: list[str], *, now: str) -> int:
    """Puts projects, and those below their directories, behind a wall; returns how many memories moved inside."""
    moved = 0
    for place in named:
        project, root = _find_open(rows, place, seq, now=now)
        moved += sum(workspaces.join(rows, seq, member) for member in (project, *workspaces.projects_below(rows, root)))
    return moved


def _find_open(rows: Rows, place: str, seq: int, *, now: str) -> tuple[int, str]:
    """A project and its directory; BadInput if it is behind the wall of another lens."""
    project = find_project(rows, place, make_at=now)
    there, root = projects.everywhere_of(rows, project), workspaces.root_of(rows, project)
    if there not in (0, seq):
        other = projects.name_of(rows, there)
        raise BadInput(
            f"{root} is behind the wall of {other}",
            hint=f"take it out first: csmd project lens {other} '{root}' --wall --remove",
        )
    return project, root


def _lens_json(view: Lens) -> Json:
    return {
        "name": view.name, "walled": list(view.walled), "ranked": list(view.ranked), "topics": list(view.topics),
        "projects": len(view.projects),
    }  # fmt: skip


def _need_person(by_person: bool, command: str) -> None:
    if not by_person:
        raise CsmdError(
            "what is seen where is changed by a person at a terminal only", hint=f"type `{command}` in a terminal"
        )


def _absolute(place: str) -> str:
    if not place.startswith("/"):
        raise BadInput(f"{place!r} is not an absolute path", hint="begin it with /")
    return place


def find_project(rows: Rows, word: str, *, make_at: str = "") -> int:
    """Finds a project by path, id or name; with `make_at` (a time) a directory without turns becomes one."""
    if word.startswith("/"):
        seq = project_identity.find_row(rows, word)
        if seq is None and make_at:
            place = project_identity.entering(rows, project_identity.identified(word))
            seq = projects.ensure_with_directory(rows, place, now=make_at).seq
        if seq is None:
            raise BadInput(f"nothing was said in {word} yet", hint="`csmd project list` lists the projects")
        return seq
    matches = workspaces.find_projects(rows, word)
    live = [row for row in matches if not workspaces.merged_into(rows, row[0])] or matches
    if len(live) != 1:
        many = ", ".join(root for _, root in live)
        raise BadInput(
            f"{word!r} is {f'the name of several projects: {many}' if many else 'no project'}",
            hint="`csmd project list` lists them with their ids",
        )
    into = workspaces.merged_into(rows, live[0][0])
    if into:
        raise BadInput(f"{live[0][1]} was merged into {workspaces.root_of(rows, into)}", hint="name that one")
    return live[0][0]
