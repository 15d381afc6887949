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
from csmd.tools.present import refuse_purged, refuse_secrets

TOOLS = Tools()
MAX_NAME_CHARACTERS = 60


class _DryRunDone(Exception):
    """Raised to roll back the writes of a dry run."""


@TOOLS.add("csm_project_list")
def _list_projects(ctx: ToolContext, rows: Rows, asking: str = "") -> Json:
    """List projects, lenses and workspaces, and the lens that applies here."""
    workspace_rows, current_lens = workspaces.list_workspaces(rows), lens.find_lens(rows, asking)
    return {
        "projects": [_project_json(row) for row in workspaces.list_projects(rows)],
        "workspaces": [dict(zip(("name", "projects", "memories"), row, strict=True)) for row in workspace_rows],
        "lenses": [_lens_json(lens_row) for lens_row in workspaces.list_lenses(rows)],
        "lens": current_lens.name if current_lens else "",
    }  # fmt: skip


def _project_json(row: ProjectSummary) -> Json:
    fields = {key: value for key, value in asdict(row).items() if key not in ("seq", "last_at", "other_places")}
    return {
        **fields, "merged": list(row.merged), "last": row.last_at, "gone": files.is_missing(row.root),
        "off": files.has_off_mark(row.root), "aliases": [{"path": path, "why": why} for path, why in row.other_places],
    }  # fmt: skip


@TOOLS.add("csm_project_alias", mutates=True)
def _set_alias(
    ctx: ToolContext, rows: Rows, place: str, other: str = "", remove: bool = False, dry_run: bool = False,
    by_person: bool = False,
) -> Json:  # fmt: skip
    """Make a directory part of a project."""
    _require_person(by_person, f"csmd project alias {place}")
    identity = project_identity.identify_directory(_check_absolute(place))

    def write(writing: Rows) -> Json:
        if remove:
            if not projects.remove_alias(writing, identity.key):
                raise BadInput(f"{identity.root} is not an alias that you added", hint="`csmd project list` shows them")
            return {"path": identity.root, "project": "", "removed": True}
        if not other:
            raise BadInput("the project is missing", hint="csmd project alias PATH OTHER")
        own_seq = projects.seq_of(writing, identity)
        target = find_project(writing, other)
        root = workspaces.root_of(writing, target)
        if own_seq is not None and own_seq != target:
            what = f"{identity.root} is already a project, and an alias would not move its content"
            raise BadInput(what, hint=f"csmd project merge '{identity.root}' '{root}'")
        if own_seq is None and not dry_run:
            projects.add_alias(writing, identity.key, target, path=identity.root, why="named", now=ctx.now())
        return {"path": identity.root, "project": root, "removed": False}

    return ctx.store.write(write)


@TOOLS.add("csm_project_merge", mutates=True)
def _merge_projects(
    ctx: ToolContext, rows: Rows, source: str, into: str, dry_run: bool = False, by_person: bool = False
) -> Json:  # fmt: skip
    """Merge a project into another."""
    _require_person(by_person, f"csmd project merge {source} {into}")

    def write(writing: Rows) -> MoveCounts:
        merged, target = find_project(writing, source), find_project(writing, into)
        if merged == target:
            raise BadInput(f"{source} and {into} are already one project")
        if projects.everywhere_of(writing, merged) != projects.everywhere_of(writing, target):
            what = f"a wall is between {source} and {into}: they are in different workspaces"
            hint = "remove the wall first: csmd project lens NAME PATH --wall --remove"
            raise BadInput(what, hint=hint)
        return project_merges.merge_projects(writing, merged, target)

    return _move_rows(ctx, write, dry_run=dry_run)


@TOOLS.add("csm_project_split", mutates=True)
def _split_project(
    ctx: ToolContext, rows: Rows, whole: str, place: str, dry_run: bool = False, by_person: bool = False
) -> Json:  # fmt: skip
    """Split a directory from a project."""
    _require_person(by_person, f"csmd project split {whole} {place}")
    path = _check_absolute(place)
    directory = project_identity.identify_directory(path).place

    def write(writing: Rows) -> MoveCounts:
        whole_seq = find_project(writing, whole)
        part_seq = workspaces.project_at_path(writing, path) or workspaces.project_at_path(writing, directory)
        if part_seq is not None and part_seq != whole_seq:
            if workspaces.merged_into(writing, part_seq) != whole_seq:
                raise BadInput(f"{path} is not in {whole}: it is a project of its own, or merged elsewhere")
            workspaces.copy_workspace(writing, part_seq, as_that_of=whole_seq)
            return project_merges.split_projects(writing, whole_seq, part_seq)
        root = workspaces.root_of(writing, whole_seq)
        if directory == root or not root:
            raise BadInput(f"{path} is all of {whole}", hint="name a directory in it, or one merged into it")
        key = hashlib.sha256(f"part:{whole_seq}:{directory}".encode()).hexdigest()[:16]
        name = PurePosixPath(directory).name
        part_seq = workspaces.add_part(writing, key=key, root=directory, name=name, whole=whole_seq, now=ctx.now())
        moved = project_merges.split_projects(writing, whole_seq, part_seq)
        if not moved.turns:
            what = f"nothing of {whole} was said below {directory}"
            raise BadInput(what, hint="`csmd project list` shows what is where")
        return moved

    return _move_rows(ctx, write, dry_run=dry_run)


def _move_rows(ctx: ToolContext, write: Callable[[Rows], MoveCounts], *, dry_run: bool) -> Json:
    """Moves rows and counts them; with `dry_run` the move is rolled back."""
    moved: list[MoveCounts] = []

    def move(writing: Rows) -> None:
        moved.append(write(writing))
        if dry_run:
            raise _DryRunDone

    with suppress(_DryRunDone):
        ctx.store.write(move)
    return {**asdict(moved[-1]), "dry_run": dry_run}


# --- lenses

MAX_TOPICS = 20


@TOOLS.add("csm_project_lens", mutates=True)
def _set_lens(
    ctx: ToolContext, rows: Rows, name: str, places: str = "", topics: str = "", wall: bool = False,
    remove: bool = False, by_person: bool = False,
) -> Json:  # fmt: skip
    """Add projects and topics to a lens, which ranks them first, with `wall` behind a wall; or remove them."""
    _require_person(by_person, f"csmd project lens {name} PATH...")
    _check_name(name)
    paths = _split_lines(places)
    topic_names = [topic_tagging.normalise_name(refuse_secrets(topic)) for topic in _split_lines(topics)]
    if "" in topic_names:
        raise BadInput("the text contains no topic", hint="name it in one to three words")
    if not (paths or topic_names or (remove and not wall)):
        raise BadInput("no project or topic was given", hint=f"csmd project lens {name} PATH... --topic TOPIC")

    def write(writing: Rows) -> Json:
        change = _remove_from_lens if remove else _add_to_lens
        return change(writing, name, paths, topic_names, wall=wall, ctx=ctx)

    return ctx.store.write(write)


def _add_to_lens(rows: Rows, name: str, paths: list[str], topics: list[str], *, wall: bool, ctx: ToolContext) -> Json:
    seq = workspaces.ensure(rows, name, now=ctx.now())
    moved = _move_behind_wall(rows, seq, paths, now=ctx.now()) if wall else 0
    for path in () if wall else paths:
        project, _ = _find_unwalled(rows, path, seq, now=ctx.now())
        if not projects.everywhere_of(rows, project):
            workspaces.rank_first(rows, project, lens=seq)
    marks = tombstones.purged_marks(rows, ctx.store.hash_key)
    for topic in topics:
        refuse_purged(marks, topic, "topic")
        workspaces.add_topic(rows, seq, topic)
    view = workspaces.find_lens(rows, seq)
    if view is None or len(view.topics) > MAX_TOPICS:
        raise BadInput(f"a lens has at most {MAX_TOPICS} topics", hint="choose the few that distinguish it")
    return {**_lens_json(view), "moved": moved}


def _remove_from_lens(
    rows: Rows, name: str, paths: list[str], topics: list[str], *, wall: bool, ctx: ToolContext
) -> Json:
    seq = workspaces.find_workspace(rows, name)
    view = workspaces.find_lens(rows, seq) if seq else None
    if view is None or view.is_empty:
        raise BadInput(f"there is no lens {name!r}", hint="`csmd project list` lists them")
    if wall:
        for path in paths:
            project = find_project(rows, path)
            if projects.everywhere_of(rows, project) != seq:
                root = workspaces.root_of(rows, project)
                raise BadInput(f"{root} is not behind the wall of {name}", hint="`csmd project list` shows what is")
            workspaces.leave(rows, project, key=ctx.store.hash_key)
        paths = []
    elif not (paths or topics):
        if view.walled:
            hint = f"name its projects: csmd project lens {name} PATH... --wall --remove"
            raise BadInput(f"{name} has a wall, which is not removed as a whole", hint=hint)
        paths, topics = list(view.ranked), list(view.topics)
    for path in paths:
        project = find_project(rows, path)
        root = workspaces.root_of(rows, project)
        if root not in view.ranked:
            is_walled = root in view.walled
            hint = "`csmd project list` shows what is"
            if is_walled:
                hint = f"csmd project lens {name} '{root}' --wall --remove"
            relation = "behind the wall of" if is_walled else "not under"
            raise BadInput(f"{root} is {relation} the lens {name}", hint=hint)
        workspaces.rank_first(rows, project, lens=0)
    for topic in topics:
        if not workspaces.remove_topic(rows, view.seq, topic):
            raise BadInput(f"{topic!r} is not a topic of the lens {name}", hint="`csmd project list` shows them")
    remaining = workspaces.find_lens(rows, view.seq)
    return {**_lens_json(remaining or view), "moved": 0}


def _split_lines(lines: str) -> list[str]:
    return [line for line in lines.split("\n") if line]


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        hint = f"choose one of at most {MAX_NAME_CHARACTERS} characters"
        raise BadInput(f"{name[:MAX_NAME_CHARACTERS]!r} is not a name for a lens", hint=hint)


def _move_behind_wall(rows: Rows, seq: int, paths: list[str], *, now: str) -> int:
    """Puts projects, and those below their directories, behind a wall; returns how many memories moved inside."""
    moved = 0
    for path in paths:
        project, root = _find_unwalled(rows, path, seq, now=now)
        moved += sum(
            workspaces.join(rows, seq, member) for member in (project, *workspaces.list_projects_below(rows, root))
        )
    return moved


def _find_unwalled(rows: Rows, path: str, seq: int, *, now: str) -> tuple[int, str]:
    """Returns a project and its directory; BadInput if it is behind the wall of another lens."""
    project = find_project(rows, path, create_at=now)
    wall, root = projects.everywhere_of(rows, project), workspaces.root_of(rows, project)
    if wall not in (0, seq):
        other = projects.name_of(rows, wall)
        hint = f"remove it first: csmd project lens {other} '{root}' --wall --remove"
        raise BadInput(f"{root} is behind the wall of {other}", hint=hint)
    return project, root


def _lens_json(view: Lens) -> Json:
    return {
        "name": view.name, "walled": list(view.walled), "ranked": list(view.ranked), "topics": list(view.topics),
        "projects": len(view.projects),
    }  # fmt: skip


def _require_person(by_person: bool, command: str) -> None:
    if not by_person:
        hint = f"run `{command}` in a terminal"
        raise CsmdError("only a person at a terminal can change what is seen where", hint=hint)


def _check_absolute(path: str) -> str:
    if not path.startswith("/"):
        raise BadInput(f"{path!r} is not an absolute path", hint="begin it with /")
    return path


def find_project(rows: Rows, word: str, *, create_at: str = "") -> int:
    """Finds a project by path, id or name; with `create_at` (a time) a directory without turns becomes one."""
    if word.startswith("/"):
        seq = project_identity.find_row(rows, word)
        if seq is None and create_at:
            identity = project_identity.add_marks_if_new(rows, project_identity.identify_directory(word))
            seq = projects.ensure_with_directory(rows, identity, now=create_at).seq
        if seq is None:
            raise BadInput(f"nothing was said in {word} yet", hint="`csmd project list` lists the projects")
        return seq
    matches = workspaces.find_projects(rows, word)
    current = [row for row in matches if not workspaces.merged_into(rows, row[0])] or matches
    if len(current) != 1:
        roots = ", ".join(root for _, root in current)
        what = f"the name of several projects: {roots}" if roots else "not a project"
        raise BadInput(f"{word!r} is {what}", hint="`csmd project list` lists them with their ids")
    into = workspaces.merged_into(rows, current[0][0])
    if into:
        raise BadInput(f"{current[0][1]} was merged into {workspaces.root_of(rows, into)}", hint="name that one")
    return current[0][0]
