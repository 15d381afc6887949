"""Tools on goals and on everything open: promises, and what sessions left to do or asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from csmd.capture import ingest, project_identity
from csmd.errors import BadInput, CsmdError
from csmd.memory import open_matters
from csmd.memory.open_matters import OpenMatter
from csmd.memory.supersession import ASSISTANT, PERSON
from csmd.privacy.redaction import redact
from csmd.recall import last_sessions
from csmd.store import checkpoints, projects, sessions, tombstones
from csmd.store.checkpoints import Goal
from csmd.store.sqlite import Rows
from csmd.tools.declaration import Json, Places, ToolContext, Tools, places
from csmd.tools.memories import refuse_where_left_out
from csmd.tools.present import (
    as_json,
    find_session,
    normalise_typed_text,
    roots,
)

TOOLS = Tools()


@TOOLS.add("csm_goal_set", mutates=True)
def _set_goal(
    ctx: ToolContext, rows: Rows, text: str, project: str = "", asking: str = "", session: str = "",
    by_person: bool = False
) -> Json:  # fmt: skip
    """Declare what a project or a session is for."""
    body, key, now = normalise_typed_text(text), ctx.store.hash_key, ctx.now()
    if not by_person:
        refuse_where_left_out(ctx, project, asking)
    if tombstones.purged_marks(rows, key).spans(body):
        raise CsmdError("a part of this text was purged", hint="`csmd forget --lift` lets purged text in again")
    places(rows, project, asking)  # a wall also keeps out new goals from outside
    of_session = find_session(rows, session, asking) if session else None
    if of_session is None and not project:
        raise BadInput("a goal is a project's or a session's", hint="give project or session")
    place = None
    if of_session is None:
        place = project_identity.entering(rows, project_identity.identified(redact(project, Counter())))

    def write(writing: Rows) -> tuple[Goal, bool]:
        home = of_session.project_seq if of_session else 0
        if place is not None:
            home = projects.ensure_with_directory(
                writing, ingest.permitted_place(place, tombstones.purged_marks(writing, key)), now=now
            ).seq
        ident, new = checkpoints.add_goal(
            writing, project=home, session_id=of_session.id if of_session else "", text=body,
            authority="user" if by_person else "assistant", now=now,
        )  # fmt: skip
        return next(goal for goal in checkpoints.goals_like(writing, ident) if goal.id == ident), new

    made, new = ctx.store.write(write)
    fresh = {made.project_seq: place.root} if place is not None else {}  # the project may be as new as its goal
    return {**_goal(made, {**roots(rows), **fresh}), "new": new}


@TOOLS.add("csm_goal_list")
def _goals(ctx: ToolContext, rows: Rows, seen: Places = None, done: bool = False) -> Json:
    """List goals, the latest first."""
    root_of, listed = roots(rows), checkpoints.list_goals(rows, projects=seen, done=done)
    return {"goals": [_goal(goal, root_of) for goal in listed]}


def _goal(goal: Goal, root_of: dict[int, str]) -> Json:
    names = "id text authority project session_id created_at done_at"
    return as_json(goal, names, project=root_of.get(goal.project_seq, ""))


FIELDS = "id kind text at session_id authority"


def read_open(rows: Rows, seen: Places, *, key: bytes) -> list[OpenMatter]:
    """Everything open in some projects (None: all): goals, promises, unfinished work, questions; each latest first."""
    of = projects.list_seqs(rows) if seen is None else seen
    ended = last_sessions.read_session_summaries(rows, places=of, session_id="", key=key)
    home = sessions.projects_of(rows, [session.session_id for session in ended])
    left = [
        OpenMatter(
            last_sessions.open_id(session.session_id, text), "question" if is_question else "left open", text,
            session.at,
            home.get(session.session_id, 0), session.session_id, "assistant",
        )
        for session, text, is_question in last_sessions.left_open(ended)
    ]  # fmt: skip
    ends = [matter for matter in left if matter.kind == "left open"]
    questions = [matter for matter in left if matter.kind == "question"]
    return [*open_matters.read_goals(rows, seen), *open_matters.read_promises(rows, seen), *ends, *questions]


@TOOLS.add("csm_open_list")
def _list(ctx: ToolContext, rows: Rows, seen: Places = None) -> Json:
    """List what is open: goals, promises, and what sessions left to do or asked, each with its id and number."""
    root_of = roots(rows)
    listed = read_open(rows, seen, key=ctx.store.hash_key)
    return {"open": [{"number": number, **_matter(matter, root_of)} for number, matter in enumerate(listed, 1)]}


@TOOLS.add("csm_open_done", mutates=True)
def _done(ctx: ToolContext, rows: Rows, id_: str, project: str = "", asking: str = "", by_person: bool = False) -> Json:
    """Close what is open, by ids or by numbers as csm_open_list gives them."""
    key, asking = ctx.store.hash_key, asking or project
    here = read_open(rows, places(rows, project, asking), key=key)
    everywhere = read_open(rows, places(rows, "", asking), key=key) if project else here
    chosen = list(dict.fromkeys(_find(here, everywhere, typed) for typed in id_.replace(",", " ").split()))
    if not chosen:
        raise BadInput("nothing was named that could be closed", hint="`csmd done` lists what is open")
    users = [matter for matter in chosen if matter.authority == "user"]
    if users and not by_person:
        raise CsmdError(
            f"{users[0].id} was said by the user, and only a person at a terminal can call it done",
            hint=f"type `csmd done {users[0].id}` in a terminal",
        )
    by, why = (PERSON, "a person said so") if by_person else (ASSISTANT, "an assistant said so")
    now = ctx.now()
    answers = ctx.store.write(
        lambda writing: [open_matters.close(writing, matter, by=by, why=why, now=now) for matter in chosen]
    )
    ctx.poke()
    root_of = roots(rows)
    return {
        "closed": [
            {**_matter(matter, root_of), "answer": answer.id} for matter, answer in zip(chosen, answers, strict=True)
        ]
    }


def _find(here: Sequence[OpenMatter], everywhere: Sequence[OpenMatter], typed: str) -> OpenMatter:
    """Finds an open matter by its number here, or by the beginning of its id anywhere; BadInput for none or several."""
    if typed.isdigit() and 0 < int(typed) <= len(here):
        return here[int(typed) - 1]
    named = [matter for matter in everywhere if matter.id.startswith(typed)]
    if len(named) > 1:
        raise BadInput(
            f"{typed!r} begins several: {', '.join(matter.id for matter in named)}", hint="type some more of it"
        )
    if not named:
        raise BadInput(f"nothing open is {typed!r} here", hint="`csmd done` lists what is open, with numbers and ids")
    return named[0]


def _matter(matter: OpenMatter, root_of: dict[int, str]) -> Json:
    return as_json(matter, FIELDS, project=root_of.get(matter.project_seq, ""))
