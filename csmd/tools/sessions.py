"""Tools on conversations, csmd's own session files, checkpoints, goals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import get_args
from uuid import uuid4

from csmd.capture import ingest, project_identity
from csmd.errors import BadInput, CsmdError
from csmd.extraction import work
from csmd.hosts import adapters, csmd_sessions
from csmd.hosts.csmd_sessions import EntryKind, Loaded, Message
from csmd.paths import file_of_transcript, folder_name, is_file
from csmd.privacy.fingerprints import PURGED, clean
from csmd.privacy.redaction import redact
from csmd.recall import checkpoint, visibility
from csmd.store import checkpoints, digests, files, memories, projects, search, sessions, tombstones, turns
from csmd.store.checkpoints import Goal, Row
from csmd.store.sessions import Session
from csmd.store.sqlite import Rows, ids_like
from csmd.text import display
from csmd.tools.memories import refuse_where_left_out
from csmd.tools.present import (
    as_json,
    check_words,
    find_session,
    normalise_typed_text,
    refuse_secrets,
    roots,
    turns_around,
)
from csmd.tools.registry import Json, Places, ToolContext, Tools, between, places, resolve_id
from csmd.values import Memory, SaidTurn
from csmd.vocabulary import TurnKind

SESSIONS = Tools()
CHECKPOINTS = Tools()

SESSION = "id project title about turns started_at last_at transcript"
SAID = "uuid kind at text tool=tool_name dropped_bytes=dropped"
#: Role -> the kinds of turns that are its.
ROLES: dict[str, tuple[TurnKind, ...]] = {
    "all": get_args(TurnKind), "user": ("user", "relayed", "command"), "assistant": ("assistant", "summary"),
    "tool": ("tool_call", "tool_result"),
}  # fmt: skip
MOST = 1000
#: How many prompts of a session are looked at for what it is about, characters of each, and of what is shown of it.
FIRST_PROMPTS, PROMPT_CHARACTERS, ABOUT_CHARACTERS = 5, 4_000, 120


@SESSIONS.add("csm_session_list")
def _list(ctx: ToolContext, rows: Rows, seen: Places = None, limit: int = 20, offset: int = 0) -> Json:
    """List sessions, the latest first."""
    listed = sessions.list_sessions(rows, projects=seen, limit=between(limit, MOST), offset=max(offset, 0))
    return {"sessions": [_session(rows, session) for session in listed]}


def _session(rows: Rows, session: Session) -> Json:
    return as_json(
        session, SESSION, about=session.title or _first_goal(rows, session), memories=sessions.memory_count(rows, session.id),
        transcript=transcript_state(session.path if session.is_read else ""),
    )  # fmt: skip


def _first_goal(rows: Rows, session: Session) -> str:
    """What the first prompts of a session are about in their own words; "" where they say nothing or are pasted."""
    prompts = sessions.first_prompts(rows, session.seq, most=FIRST_PROMPTS, characters=PROMPT_CHARACTERS)
    return display.cut(work.find_goal([prompt for prompt in prompts if prompt != PURGED]), ABOUT_CHARACTERS)


def transcript_state(path: str) -> str:
    """`there`, `gone` when the host has deleted it, or `none` when no line of one was ever read; looks at the disk."""
    if not path:
        return "none"
    return "gone" if files.is_missing(str(file_of_transcript(path))) else "there"


@SESSIONS.add("csm_session_show")
def _show(ctx: ToolContext, rows: Rows, id_: str, asking: str = "") -> Json:
    """Show what is known of a session."""
    if tombstones.purged_names(rows, "session", [id_], key=ctx.store.hash_key) and sessions.by_id(rows, id_) is None:
        hint = "`csmd forget --lift` with the same id lets it in again"
        raise BadInput(f"session {id_} was purged: nothing of it is left", hint=hint)
    session = find_session(rows, id_, asking)
    seen = visibility.find_visible_places(rows, asking=asking)  # a session that wandered was behind a wall for a while
    statements = sessions.statements(rows, session.seq, projects=seen)
    believed = sessions.memories_of(rows, session.id, projects=seen)
    versions = digests.of_session(rows, session.seq)
    return {
        **_session(rows, session),
        "purged": sessions.is_purged(rows, session.seq),
        **as_json(session, "path cwd parent host"),
        "own": Path(session.path).is_relative_to(ctx.config.paths.sessions) if session.path else False,
        **as_json(session, "model version"),
        "kinds": sessions.kinds(rows, session.seq, projects=seen),
        "agents": [
            as_json(agent, "id turns started_at model") for agent in sessions.agents(rows, session.id, projects=seen)
        ],
        "usage": _usage(rows, session),
        "digest": versions[-1].text if versions else "",
        "statements": [dict(zip(("text", "gate", "authority", "at"), row, strict=True)) for row in statements],
        "memories": [dict(zip(("id", "text", "role"), row, strict=True)) for row in believed],
        "injections": [
            dict(zip(("id", "event", "at", "tokens", "items"), row, strict=True))
            for row in sessions.injections_into(rows, session.id)
        ],
    }


def _usage(rows: Rows, session: Session) -> Json:
    """What a session took by its transcript, each message once; its sub-agents' and csmd's own apart."""
    times, tokens = sessions.tokens_injected(rows, session.id)
    return {
        **asdict(sessions.usage_of(rows, session.seq)),
        "context": session.context,
        "agents": asdict(sessions.usage_of_agents(rows, session.id)),
        "csmd": {"injections": times, "tokens": tokens},
    }


@SESSIONS.add("csm_session_transcript")
def _transcript(ctx: ToolContext, rows: Rows, id_: str, asking: str = "", limit: int = 0, offset: int = 0) -> Json:
    """The conversation of a session: all of it, or with `limit` a page, each turn with the memories that rest on it."""
    session = find_session(rows, id_, asking)
    if not limit:
        said = _conversation(rows, session, asking)
        conversation = [
            as_json(turn, SAID, tokens=turn.tokens or turn.counted, rewound=bool(turn.rewound)) for turn in said
        ]
    else:
        seen = visibility.find_visible_places(rows, asking=asking)
        said = sessions.conversation(
            rows, session.seq, projects=seen, limit=between(limit, MOST), offset=max(offset, 0)
        )
        resting = memories.memories_by_turn(rows, [turn.uuid for turn in said])
        conversation = [
            as_json(turn, SAID, tokens=turn.tokens or turn.counted, rewound=bool(turn.rewound), memories=[
                as_json(memory, "id text superseded_by") for memory in resting.get(turn.uuid, ())
                if _is_said_in(memory, turn.uuid) and (seen is None or memory.project_seq in seen)
            ])
            for turn in said
        ]  # fmt: skip
    return {**_session(rows, session), "conversation": conversation}


@SESSIONS.add("csm_memory_transcript")
def _conversation_of(
    ctx: ToolContext, rows: Rows, session: str = "", seen: Places = None, asking: str = "", role: str = "all",
    limit: int = 50,
) -> Json:  # fmt: skip
    """The last turns of a conversation, by `role` the user's, the assistant's, tools' or all; of the latest session unless named."""
    check_words({"role": role}, {"role": [*ROLES]})
    latest = [] if session else sessions.list_sessions(rows, projects=seen, limit=1)
    if not (session or latest):
        raise BadInput("there is no session here yet", hint="name one; `csmd session list --all-projects` shows them")
    named = find_session(rows, session, asking) if session else latest[0]
    visible = visibility.find_visible_places(rows, asking=asking)
    total = sum(
        number for kind, number in sessions.kinds(rows, named.seq, projects=visible).items() if kind in ROLES[role]
    )
    turns = sessions.conversation(
        rows,
        named.seq,
        projects=visible,
        among=ROLES[role],
        limit=(most := between(limit, MOST)),
        offset=max(total - most, 0),
    )
    return {
        **_session(rows, named),
        "of": total,
        "conversation": [
            as_json(turn, SAID, tokens=turn.tokens or turn.counted, rewound=bool(turn.rewound)) for turn in turns
        ],
    }


def _is_said_in(memory: Memory, uuid: str) -> bool:
    """Whether a turn states or confirms a memory, and is not only the other half of it."""
    return any(
        source.role != "beside" and source.uuid in (uuid, uuid.partition("/")[0]) for source in memory.provenance
    )


@SESSIONS.add("csm_context_rollover")
def _rollover(ctx: ToolContext, rows: Rows, id_: str, asking: str = "") -> Json:
    """The tokens that a session took, and csmd's share."""
    session = find_session(rows, id_, asking)
    return as_json(session, "id project last_at", **_usage(rows, session))


def _conversation(rows: Rows, session: Session, asking: str) -> list[SaidTurn]:
    return sessions.conversation(rows, session.seq, projects=visibility.find_visible_places(rows, asking=asking))


@SESSIONS.add("csm_turn_show")
def _turn(ctx: ToolContext, rows: Rows, id_: str, asking: str = "") -> Json:
    """Show one turn."""
    matches = search.turns_like(rows, id_) if id_ else []
    lines = {
        uuid.partition("/")[0] for _, uuid in matches
    }  # a line with several parts is one to who types its beginning
    if len(lines) > 1 and id_ not in lines:
        raise BadInput(f"{id_!r} begins several ids: {', '.join(sorted(lines))}", hint="type some more of it")
    exact = [seq for seq, uuid in matches if uuid == id_] or [seq for seq, _ in matches]
    turn = search.turns_by_seq(rows, exact[:1]).get(exact[0]) if exact else None
    if turn is None or not visibility.is_visible(rows, turn.project_seq, asking=asking):
        raise BadInput(
            f"there is no memory and no turn {id_!r}", hint="`csmd memories` and `csmd search` show their ids"
        )
    memories_of_turn = memories.by_seqs(rows, search.memories_of_turn(rows, turn.uuid)).values()
    left_out = sum(part.dropped for part in turns.left_out(rows, [turn.seq]))
    return as_json(
        turn, "id=uuid kind at text session_id project", dropped_bytes=left_out, around=turns_around(rows, turn, asking),
        memories=[as_json(memory, "id text") for memory in memories_of_turn if visibility.is_visible(rows, memory.project_seq, asking=asking)],
    )  # fmt: skip


@SESSIONS.add("csm_session_export")
def _export(ctx: ToolContext, rows: Rows, id_: str, asking: str = "") -> Json:
    """A transcript that the assistant resumes."""
    session = find_session(rows, id_, asking)
    if session.parent:
        raise CsmdError(
            f"{session.id} is a sub-agent's conversation, and the assistant resumes only its own",
            hint=f"csmd session export {session.parent}; `csmd session transcript {session.id}` shows this one",
        )
    cwd = session.cwd or session.project
    transcript = adapters.EXPORT(
        _conversation(rows, session, asking), session_id=session.id, cwd=cwd, version=session.version,
        model=session.model, title=session.title,
    )  # fmt: skip
    if not any('"message"' in line for line in transcript.lines):
        raise CsmdError(f"nothing of {session.id} is stored that could be resumed")
    return {
        "id": session.id,
        "session_id": transcript.session_id,
        "place": transcript.place,
        "resume": transcript.command,
        "left_out": transcript.left_out,
        "transcript": transcript_state(session.path),
        "lines": list(transcript.lines),
    }


# --- csmd's own session files


@SESSIONS.add("csm_session_write_user", mutates=True)
def _write_user(
    ctx: ToolContext, rows: Rows, id_: str, text: str, project: str = "", asking: str = "", parent: str = "",
    by_person: bool = False,
) -> Json:  # fmt: skip
    """Write what the user says into a session of csmd's own."""
    return _append(ctx, rows, id_, asking, "user", text, project=project, parent=parent, by_person=by_person)


@SESSIONS.add("csm_session_write_assistant", mutates=True)
def _write_assistant(
    ctx: ToolContext, rows: Rows, id_: str, text: str, project: str = "", asking: str = "", parent: str = ""
) -> Json:
    """Write what the assistant says into one."""
    return _append(ctx, rows, id_, asking, "assistant", text, project=project, parent=parent)


@SESSIONS.add("csm_session_write_system", mutates=True)
def _write_system(
    ctx: ToolContext, rows: Rows, id_: str, text: str, project: str = "", asking: str = "", parent: str = ""
) -> Json:
    """Write a remark of neither into one."""
    return _append(ctx, rows, id_, asking, "system", text, project=project, parent=parent)


@SESSIONS.add("csm_session_write_summary", mutates=True)
def _summarise(ctx: ToolContext, rows: Rows, id_: str, text: str, replaces: str = "", asking: str = "") -> Json:
    """Let a summary stand for messages of one."""
    loaded = _loaded(ctx, rows, id_, asking)
    names = replaces.replace(",", " ").split() or [message.uuid for message in loaded.messages]
    if not names:
        raise BadInput("there is nothing that a summary could stand for", hint="write messages first")
    _must_have(loaded, names, id_)
    return _append(ctx, rows, id_, asking, "summary", text, names=names)


@SESSIONS.add("csm_session_tombstone", mutates=True)
def _tombstone(ctx: ToolContext, rows: Rows, id_: str, uuid: str, asking: str = "") -> Json:
    """Withdraw a message of one."""
    _must_have(_loaded(ctx, rows, id_, asking), [uuid], id_)
    return {**_append(ctx, rows, id_, asking, "tombstone", "", names=[uuid]), "tombstoned": uuid}


def _append(
    ctx: ToolContext, rows: Rows, ident: str, asking: str, kind: EntryKind, body: str, *, project: str = "",
    parent: str = "", by_person: bool = False, names: Sequence[str] = (),
) -> Json:  # fmt: skip
    files.check_session_id(ident)
    marks = tombstones.marks(rows, ctx.store.hash_key)
    for what, text in (("text", body), ("path", project), ("session's name", ident)):
        if marks.spans(text):
            raise CsmdError(f"a part of this {what} was purged", hint="`csmd forget --lift` lets purged text in again")
    path = _path(ctx, rows, ident, project, asking)
    session = sessions.by_id(rows, ident)
    if session is not None and session.path != str(path):
        raise CsmdError(f"{ident} is a session of the assistant, and only it writes that", hint="choose another name")
    if kind != "tombstone" and not body.strip():
        raise BadInput("there is nothing in that text to write")
    loaded = _loaded(ctx, rows, ident, asking)
    if parent:
        _must_have(loaded, [parent], ident)
    elif loaded.messages:
        parent = loaded.messages[-1].uuid
    message = Message(uuid=str(uuid4()), parent=parent, kind=kind, text=body, at=ctx.now(), by_person=by_person)
    cwd, key = project or _cwd(ctx, ident), ctx.store.hash_key
    files.append_lines(path, csmd_sessions.encode(message, session=ident, cwd=cwd, key=key, names=names))
    ctx.hint(str(path))
    return {"id": ident, "uuid": message.uuid, "parent": parent, "path": str(path)}


def _must_have(loaded: Loaded, names: Sequence[str], ident: str) -> None:
    for name in names:
        if not loaded.has(name):
            raise BadInput(f"{ident} has no message {name[:60]!r}", hint=f"`csmd session load {ident}` shows them")


def _file(ctx: ToolContext, rows: Rows, ident: str, asking: str) -> Path | None:
    """The session's file, None for none; BadInput for one behind a wall that who asks is not behind."""
    files.check_session_id(ident)
    path = files.session_file(ctx.config.paths.sessions, ident)
    session = sessions.by_id(rows, ident)  # the directory in the file may be purged
    walled = (
        projects.everywhere(rows, session.project_seq) if session else project_identity.wall(rows, _cwd(ctx, ident))
    )
    inside = walled if path else 0
    if inside and inside != project_identity.wall(rows, asking):
        raise _no_file(ident)
    return path


def _no_file(ident: str) -> BadInput:
    return BadInput(
        f"csmd has no session file {ident!r}", hint="`csmd session transcript` shows the assistant's sessions"
    )


def _path(ctx: ToolContext, rows: Rows, ident: str, project: str, asking: str) -> Path:
    """The session's file, or where it will be: in the folder of the project it is begun in."""
    folder = ctx.config.paths.sessions / folder_name(project or "/")
    return _file(ctx, rows, ident, asking) or folder / f"{ident}{files.SESSION_SUFFIX}"


def _cwd(ctx: ToolContext, ident: str) -> str:
    """The project that a session was begun in; "/" for one that was begun nowhere."""
    path = files.session_file(ctx.config.paths.sessions, ident)
    return (path and csmd_sessions.begun_in(files.session_lines(path), session=ident)) or "/"


def _loaded(ctx: ToolContext, rows: Rows, ident: str, asking: str, *, texts: bool = False) -> Loaded:
    path = _file(ctx, rows, ident, asking)
    lines = files.session_lines(path) if path else ()
    return csmd_sessions.load(lines, session=ident, key=ctx.store.hash_key, texts=texts)


@SESSIONS.add("csm_session_load")
def _load(ctx: ToolContext, rows: Rows, id_: str, asking: str = "") -> Json:
    """The messages of one, without what was withdrawn."""
    if _file(ctx, rows, id_, asking) is None:
        raise _no_file(id_)
    return {"id": id_, **asdict(_loaded(ctx, rows, id_, asking, texts=True))}


@SESSIONS.add("csm_session_path")
def _where(ctx: ToolContext, rows: Rows, id_: str, project: str = "", asking: str = "") -> Json:
    """Where the file of one is, or would be."""
    path = _path(ctx, rows, id_, project, asking)
    return {"id": id_, "path": str(path), "exists": is_file(path)}


# --- checkpoints

NOTE_CHARACTERS = 400
CHECKPOINT = (
    "id session_id why at asked_at summary_uuid whole note goal pieces captured restored_at restored_for"
)  # fmt: skip


@CHECKPOINTS.add("csm_checkpoint_create", mutates=True)
def _create(
    ctx: ToolContext, rows: Rows, session: str = "", seen: Places = None, asking: str = "", note: str = ""
) -> Json:
    """Keep a session's state as it is now."""
    target, key = _latest_session(rows, session, seen, asking), ctx.store.hash_key
    note = display.cut(refuse_secrets(note), NOTE_CHARACTERS)
    note = clean(note, tombstones.marks(rows, key))[0]
    ident = checkpoint.request_checkpoint(ctx.store, rows, target.seq, now=ctx.now(), note=note)
    if ident is None:
        raise CsmdError(f"nothing is stored of the session {target.id}", hint="`csmd sync` takes in what is on disk")
    ctx.hint_of_hook(target.path)  # what its transcript has more is added
    ctx.poke()

    def shown(fresh: Rows) -> Json:
        row = checkpoints.by_id(fresh, ident)
        if row is None:
            raise CsmdError("what was to be kept was purged meanwhile")
        return _checkpoint(fresh, row, key)

    return {**ctx.store.write(shown), "made": True}


def _latest_session(rows: Rows, named: str, seen: Places, asking: str) -> Session:
    """The session that is named, or the latest one there."""
    if named:
        return find_session(rows, named, asking)
    latest = sessions.list_sessions(rows, projects=seen, limit=1)
    if not latest:
        raise CsmdError("no session is known here", hint="name one with --session ID; `csmd session list` shows them")
    return latest[0]


@CHECKPOINTS.add("csm_checkpoint_list")
def _checkpoints(
    ctx: ToolContext, rows: Rows, session: str = "", seen: Places = None, asking: str = "", limit: int = 20
) -> Json:
    """List checkpoints, the latest first."""
    ident = find_session(rows, session, asking).id if session else ""
    listed = checkpoints.list_checkpoints(rows, projects=seen, session_id=ident, limit=between(limit, MOST))
    return {"checkpoints": [_summary(rows, row, ctx.store.hash_key) for row in listed]}


@CHECKPOINTS.add("csm_checkpoint_show")
def _checkpoint_show(ctx: ToolContext, rows: Rows, id_: str, asking: str = "", raw: bool = False) -> Json:
    """Show a checkpoint, with the turns that it captured."""
    row = _find_checkpoint(rows, id_, asking)
    shown = _checkpoint(rows, row, ctx.store.hash_key)
    if raw:
        names = ("uuid", "kind", "tool", "at", "text")
        shown["raw"] = [dict(zip(names, turn, strict=True)) for turn in checkpoints.captured_turns(rows, row.seq)]
    return shown


@CHECKPOINTS.add("csm_checkpoint_restore", mutates=True)
def _restore(ctx: ToolContext, rows: Rows, id_: str, asking: str = "", session: str = "") -> Json:
    """Have the next session told what a checkpoint holds."""
    row, now = _find_checkpoint(rows, id_, asking), ctx.now()
    named = find_session(rows, session, asking) if session else None
    if named is not None and named.project_seq != row.project_seq:  # a wall may stand between the two
        raise BadInput(
            f"{row.id} is of another project than the session {named.id}", hint="restore it without --session"
        )
    ident = named.id if named else ""
    ctx.store.write(lambda writing: checkpoints.restore(writing, row.seq, at=now, session_id=ident))
    return {**_checkpoint(rows, row, ctx.store.hash_key), "restored_at": now, "restored_for": ident}


def _find_checkpoint(rows: Rows, ident: str, asking: str) -> Row:
    """A checkpoint by its id or the beginning of it; one behind a wall is none for who asks from elsewhere."""
    row = checkpoints.by_id(rows, resolve_id(ident, ids_like(rows, "checkpoints", ident)))
    if row is None or not visibility.is_visible(rows, row.project_seq, asking=asking):
        raise BadInput(f"there is no checkpoint {ident!r}", hint="`csmd checkpoint list` shows them with their ids")
    return row


def _summary(rows: Rows, row: Row, key: bytes) -> Json:
    pieces = checkpoint.read_pieces(rows, row, key)
    goal = next((piece.text for piece in pieces if piece.kind == "goal"), "")
    captured = checkpoints.capture_count(rows, row.seq)
    return as_json(row, CHECKPOINT, whole=not row.awaits, goal=goal, pieces=len(pieces), captured=captured)


def _checkpoint(rows: Rows, row: Row, key: bytes) -> Json:
    restored = checkpoint.read_restored(rows, row, key)
    essentials = checkpoint.essentials(restored)
    return {
        **_summary(rows, row, key),
        "cwd": checkpoints.session_state(rows, row.session_seq).cwd,
        "parts": [piece._asdict() for piece in restored.pieces],
        "text": essentials.text,
        "tokens": essentials.tokens,
    }


# --- goals


@CHECKPOINTS.add("csm_goal_set", mutates=True)
def _set_goal(
    ctx: ToolContext, rows: Rows, text: str, project: str = "", asking: str = "", session: str = "", by_person: bool = False
) -> Json:  # fmt: skip
    """Declare what a project or a session is for."""
    body, key, now = normalise_typed_text(text), ctx.store.hash_key, ctx.now()
    if not by_person:
        refuse_where_left_out(ctx, project, asking)
    if tombstones.marks(rows, key).spans(body):
        raise CsmdError("a part of this text was purged", hint="`csmd forget --lift` lets purged text in again")
    places(rows, project, asking)  # a wall keeps out what would be put behind it as well
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
                writing, ingest.permitted_place(place, tombstones.marks(writing, key)), now=now
            ).seq
        ident, new = checkpoints.add_goal(
            writing, project=home, session_id=of_session.id if of_session else "", text=body,
            authority="user" if by_person else "assistant", now=now,
        )  # fmt: skip
        return next(goal for goal in checkpoints.goals_like(writing, ident) if goal.id == ident), new

    made, new = ctx.store.write(write)
    fresh = {made.project_seq: place.root} if place is not None else {}  # it may be as new as its goal
    return {**_goal(made, {**roots(rows), **fresh}), "new": new}


@CHECKPOINTS.add("csm_goal_list")
def _goals(ctx: ToolContext, rows: Rows, seen: Places = None, done: bool = False) -> Json:
    """List goals, the latest first."""
    root_of, listed = roots(rows), checkpoints.goal_list(rows, projects=seen, done=done)
    return {"goals": [_goal(goal, root_of) for goal in listed]}


def _goal(goal: Goal, root_of: dict[int, str]) -> Json:
    names = "id text authority project session_id created_at done_at"
    return as_json(goal, names, project=root_of.get(goal.project_seq, ""))
