"""Tools on what is open: goals, promises, and what sessions left to do or asked."""

from __future__ import annotations

from collections.abc import Sequence

from csmd.errors import BadInput, CsmdError
from csmd.memory import open_matters
from csmd.memory.open_matters import OpenMatter
from csmd.memory.supersession import ASSISTANT, PERSON
from csmd.recall import last_sessions
from csmd.store import projects, sessions
from csmd.store.sqlite import Rows
from csmd.tools.present import as_json, roots
from csmd.tools.registry import Json, Places, ToolContext, Tools, places

OPEN = Tools()
FIELDS = "id kind text at session_id authority"


def read_open(rows: Rows, seen: Places, *, key: bytes) -> list[OpenMatter]:
    """Everything open in some projects (None: in all): goals, promises, what sessions left to do, questions; the latest first of each."""
    of = projects.all_seqs(rows) if seen is None else seen
    ended = last_sessions.read_session_summaries(rows, places=of, session_id="", key=key)
    home = sessions.projects_of(rows, [session.session_id for session in ended])
    left = [
        OpenMatter(
            last_sessions.open_id(session.session_id, text), "question" if is_question else "left open", text, session.at,
            home.get(session.session_id, 0), session.session_id, "assistant",
        )
        for session, text, is_question in last_sessions.left_open(ended)
    ]  # fmt: skip
    ends = [matter for matter in left if matter.kind == "left open"]
    questions = [matter for matter in left if matter.kind == "question"]
    return [*open_matters.read_goals(rows, seen), *open_matters.read_promises(rows, seen), *ends, *questions]


@OPEN.add("csm_open_list")
def _list(ctx: ToolContext, rows: Rows, seen: Places = None) -> Json:
    """List what is open: goals, promises, and what sessions left to do or asked, each with its id and number."""
    root_of = roots(rows)
    listed = read_open(rows, seen, key=ctx.store.hash_key)
    return {"open": [{"number": number, **_matter(matter, root_of)} for number, matter in enumerate(listed, 1)]}


@OPEN.add("csm_open_done", mutates=True)
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
    """The open matter of a number here or of an id's beginning anywhere; BadInput for none, or for several."""
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
