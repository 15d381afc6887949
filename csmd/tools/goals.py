"""Tools on goals and on everything open: promises, and what sessions left to do or asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from csmd.capture import ingest, project_identity
from csmd.errors import BadInput
from csmd.memory import open_matters
from csmd.memory.open_matters import OpenMatter
from csmd.memory.supersession import ASSISTANT, PERSON
from csmd.privacy.redaction import redact
from csmd.recall import last_sessions
from csmd.store import goals, projects, sessions, tombstones
from csmd.store.goals import Goal
from csmd.store.sqlite import Rows
from csmd.tools.declaration import Json, Places, ToolContext, Tools, find_places, refuse_users_statement
from csmd.tools.memories import refuse_if_excluded
from csmd.tools.present import as_json, find_session, normalise_typed_text, read_roots, refuse_ambiguous, refuse_purged

TOOLS = Tools()


@TOOLS.add("csm_goal_set", mutates=True)
def _set_goal(
    ctx: ToolContext, rows: Rows, text: str, project: str = "", asking: str = "", session: str = "",
    by_person: bool = False
) -> Json:  # fmt: skip
    """Declare a goal of a project or a session."""
    body, key, now = normalise_typed_text(text), ctx.store.hash_key, ctx.now()
    if not by_person:
        refuse_if_excluded(ctx, project, asking)
    refuse_purged(tombstones.purged_marks(rows, key), body, "text")
    find_places(rows, project, asking)  # a wall also keeps out new goals from outside
    of_session = find_session(rows, session, asking) if session else None
    if of_session is None and not project:
        raise BadInput("no project or session was given for the goal", hint="give project or session")
    directory = None
    if of_session is None:
        identity = project_identity.identify_directory(redact(project, Counter()))
        directory = project_identity.add_marks_if_new(rows, identity)

    def write(writing: Rows) -> tuple[Goal, bool]:
        project_seq = of_session.project_seq if of_session else 0
        if directory is not None:
            project_seq = ingest.ensure_project(writing, directory, key=key, now=now)
        return open_matters.declare_goal(
            writing, text=body, project=project_seq, session_id=of_session.id if of_session else "",
            by_person=by_person, now=now,
        )  # fmt: skip

    goal, is_new = ctx.store.write(write)
    fresh = {goal.project_seq: directory.root} if directory is not None else {}  # the project may be as new as its goal
    return {**_goal_json(goal, {**read_roots(rows), **fresh}), "new": is_new}


@TOOLS.add("csm_goal_list")
def _list_goals(ctx: ToolContext, rows: Rows, seen: Places = None, done: bool = False) -> Json:
    """List goals, the latest first."""
    root_of, page = read_roots(rows), goals.list_goals(rows, projects=seen, with_done=done)
    return {"goals": [_goal_json(goal, root_of) for goal in page]}


def _goal_json(goal: Goal, root_of: dict[int, str]) -> Json:
    names = "id text authority project session_id created_at done_at"
    return as_json(goal, names, project=root_of.get(goal.project_seq, ""))


MATTER_FIELDS = "id kind text at session_id authority"


def read_open(rows: Rows, seen: Places, *, key: bytes) -> list[OpenMatter]:
    """Reads the open matters of projects (None: all): goals, promises, unfinished work, questions; each latest first."""
    project_seqs = projects.list_seqs(rows) if seen is None else seen
    summaries = last_sessions.read_session_summaries(rows, places=project_seqs, session_id="", key=key)
    project_of = sessions.map_projects_of(rows, [session.session_id for session in summaries])
    matters = [
        OpenMatter(
            last_sessions.open_id(session.session_id, text), "question" if is_question else "left open", text,
            session.at, project_of.get(session.session_id, 0), session.session_id, "assistant",
        )
        for session, text, is_question in last_sessions.left_open(summaries)
    ]  # fmt: skip
    unfinished = [matter for matter in matters if matter.kind == "left open"]
    questions = [matter for matter in matters if matter.kind == "question"]
    return [*open_matters.read_goals(rows, seen), *open_matters.read_promises(rows, seen), *unfinished, *questions]


@TOOLS.add("csm_open_list")
def _list_open(ctx: ToolContext, rows: Rows, seen: Places = None) -> Json:
    """List open matters: goals, promises, unfinished work and questions, each with its id and number."""
    root_of = read_roots(rows)
    matters = read_open(rows, seen, key=ctx.store.hash_key)
    return {"open": [{"number": number, **_matter_json(matter, root_of)} for number, matter in enumerate(matters, 1)]}


@TOOLS.add("csm_open_done", mutates=True)
def _close_matters(
    ctx: ToolContext, rows: Rows, id_: str, project: str = "", asking: str = "", by_person: bool = False
) -> Json:
    """Close open matters, by the ids or numbers of csm_open_list."""
    key, asking = ctx.store.hash_key, asking or project
    numbered = read_open(rows, find_places(rows, project, asking), key=key)
    everywhere = read_open(rows, find_places(rows, "", asking), key=key) if project else numbered
    selected = list(dict.fromkeys(_find_matter(numbered, everywhere, word) for word in id_.replace(",", " ").split()))
    if not selected:
        raise BadInput("no open item was given", hint="`csmd done` lists them")
    for matter in selected:
        refuse_users_statement(matter, f"csmd done {matter.id}", by_person=by_person)
    by, why = (PERSON, "a person said so") if by_person else (ASSISTANT, "an assistant said so")
    now = ctx.now()
    close = partial(open_matters.close, by=by, why=why, now=now)
    answers = ctx.store.write(lambda writing: [close(writing, matter) for matter in selected])
    ctx.poke()
    root_of = read_roots(rows)
    closed = zip(selected, answers, strict=True)
    return {"closed": [{**_matter_json(matter, root_of), "answer": answer.id} for matter, answer in closed]}


def _find_matter(numbered: Sequence[OpenMatter], everywhere: Sequence[OpenMatter], word: str) -> OpenMatter:
    """Finds an open matter by its number here, or by the beginning of its id anywhere; BadInput for none or several."""
    if word.isdigit() and 0 < int(word) <= len(numbered):
        return numbered[int(word) - 1]
    matches = [matter for matter in everywhere if matter.id.startswith(word)]
    refuse_ambiguous(word, [matter.id for matter in matches])
    if not matches:
        raise BadInput(f"there is no open item {word!r}", hint="`csmd done` lists them with numbers and ids")
    return matches[0]


def _matter_json(matter: OpenMatter, root_of: dict[int, str]) -> Json:
    return as_json(matter, MATTER_FIELDS, project=root_of.get(matter.project_seq, ""))
