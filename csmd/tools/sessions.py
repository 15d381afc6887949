"""Tools on captured conversations: list, show, read and export them."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import get_args

from csmd.conversation import ExportedTurn
from csmd.errors import BadInput, CsmdError, NotFound
from csmd.extraction import work
from csmd.hosts import adapters
from csmd.knowledge import Memory
from csmd.paths import file_of_transcript
from csmd.privacy.fingerprints import PURGED
from csmd.recall import visibility
from csmd.store import digests, files, memories, search, session_contents, sessions, token_usage, tombstones, turns
from csmd.store.sessions import Session
from csmd.store.sqlite import Rows
from csmd.text import display
from csmd.tools.declaration import Json, Places, ToolContext, Tools, clamp_limit
from csmd.tools.present import as_json, check_words, find_session, refuse_ambiguous, surrounding_turns_json
from csmd.vocabulary import TurnKind

TOOLS = Tools()
SESSION_FIELDS = "id project title about turns started_at last_at transcript"
TURN_FIELDS = "uuid kind at text tool=tool_name dropped_bytes=dropped"
#: Role -> the kinds of turns that are its.
ROLES: dict[str, tuple[TurnKind, ...]] = {
    "all": get_args(TurnKind), "user": ("user", "relayed", "command"), "assistant": ("assistant", "summary"),
    "tool": ("tool_call", "tool_result"),
}  # fmt: skip
MAX_ROWS = 1000
#: Prompts from which a session without a title gets one.
FIRST_PROMPTS = 5
#: Characters read of each of these prompts.
MAX_PROMPT_CHARACTERS = 4_000
#: Characters of such a title.
MAX_TITLE_CHARACTERS = 120


@TOOLS.add("csm_session_list")
def _list_sessions(ctx: ToolContext, rows: Rows, seen: Places = None, limit: int = 20, offset: int = 0) -> Json:
    """List sessions, the latest first."""
    page = sessions.list_sessions(rows, projects=seen, limit=clamp_limit(limit, MAX_ROWS), offset=max(offset, 0))
    return {"sessions": [_session_json(rows, session) for session in page]}


def _session_json(rows: Rows, session: Session) -> Json:
    return as_json(
        session, SESSION_FIELDS, about=session.title or _find_first_goal(rows, session),
        memories=sessions.count_memories(rows, session.id),
        transcript=transcript_state(session.path if session.is_read else ""),
    )  # fmt: skip


def _find_first_goal(rows: Rows, session: Session) -> str:
    """Returns the first prompt that says what a session is about, shortened; "" if none does or all are pasted."""
    prompts = session_contents.read_first_prompts(
        rows, session.seq, limit=FIRST_PROMPTS, characters=MAX_PROMPT_CHARACTERS
    )
    return display.cut(work.find_goal([prompt for prompt in prompts if prompt != PURGED]), MAX_TITLE_CHARACTERS)


def transcript_state(path: str) -> str:
    """Returns `there`, `gone` (deleted by the assistant), or `none` (no transcript was read). Reads the disk."""
    if not path:
        return "none"
    return "gone" if files.is_missing(str(file_of_transcript(path))) else "there"


@TOOLS.add("csm_session_show")
def _show_session(ctx: ToolContext, rows: Rows, id_: str, asking: str = "") -> Json:
    """Show the facts about a session."""
    if tombstones.purged_names(rows, "session", [id_], key=ctx.store.hash_key) and sessions.by_id(rows, id_) is None:
        hint = "`csmd forget --lift` with the same id lets it in again"
        raise BadInput(f"session {id_} was purged", hint=hint)
    session = find_session(rows, id_, asking)
    seen = visibility.find_visible_places(rows, asking=asking)  # the session may have been behind a wall for a while
    statements = session_contents.read_statements(rows, session.seq, projects=seen)
    memories_of_session = session_contents.list_session_memories(rows, session.id, projects=seen)
    versions = digests.of_session(rows, session.seq)
    return {
        **_session_json(rows, session), "purged": sessions.is_purged(rows, session.seq),
        **as_json(session, "path cwd parent host"),
        "own": Path(session.path).is_relative_to(ctx.config.paths.sessions) if session.path else False,
        **as_json(session, "model version"), "kinds": session_contents.count_kinds(rows, session.seq, projects=seen),
        "agents": [
            as_json(agent, "id turns started_at model")
            for agent in sessions.list_agents(rows, session.id, projects=seen)
        ],
        "usage": _usage_json(rows, session), "digest": versions[-1].text if versions else "",
        "statements": [dict(zip(("text", "gate", "authority", "at"), row, strict=True)) for row in statements],
        "memories": [dict(zip(("id", "text", "role"), row, strict=True)) for row in memories_of_session],
        "injections": [
            dict(zip(("id", "event", "at", "tokens", "items"), row, strict=True))
            for row in session_contents.list_injections_into(rows, session.id)
        ],
    }  # fmt: skip


def _usage_json(rows: Rows, session: Session) -> Json:
    """Returns a session's tokens by its transcript, each message once; sub-agents and csmd's share are separate."""
    times, tokens = token_usage.sum_tokens_injected(rows, session.id)
    return {
        **asdict(token_usage.sum_usage(rows, session.seq)), "context": session.context,
        "agents": asdict(token_usage.sum_usage_of_agents(rows, session.id)),
        "csmd": {"injections": times, "tokens": tokens},
    }  # fmt: skip


@TOOLS.add("csm_session_transcript")
def _show_transcript(ctx: ToolContext, rows: Rows, id_: str, asking: str = "", limit: int = 0, offset: int = 0) -> Json:
    """Show a session's conversation: all of it, or with `limit` a page, each turn with the memories based on it."""
    session = find_session(rows, id_, asking)
    if not limit:
        conversation = [_turn_json(turn) for turn in _read_conversation(rows, session, asking)]
    else:
        seen = visibility.find_visible_places(rows, asking=asking)
        limit, offset = clamp_limit(limit, MAX_ROWS), max(offset, 0)
        page = session_contents.read_conversation(rows, session.seq, projects=seen, limit=limit, offset=offset)
        by_turn = memories.memories_by_turn(rows, [turn.uuid for turn in page])
        conversation = []
        for turn in page:
            stated = (memory for memory in by_turn.get(turn.uuid, ()) if _is_said_in(memory, turn.uuid))
            visible = [memory for memory in stated if seen is None or memory.project_seq in seen]
            memories_of_turn = [as_json(memory, "id text superseded_by") for memory in visible]
            conversation.append({**_turn_json(turn), "memories": memories_of_turn})
    return {**_session_json(rows, session), "conversation": conversation}


def _turn_json(turn: ExportedTurn) -> Json:
    return as_json(turn, TURN_FIELDS, tokens=turn.tokens or turn.counted, rewound=bool(turn.rewound))


@TOOLS.add("csm_memory_transcript")
def _show_last_turns(
    ctx: ToolContext, rows: Rows, session: str = "", seen: Places = None, asking: str = "", role: str = "all",
    limit: int = 50,
) -> Json:  # fmt: skip
    """Show the last turns of a session (default: the latest); `role` is user, assistant, tool or all."""
    check_words({"role": role}, {"role": [*ROLES]})
    latest = [] if session else sessions.list_sessions(rows, projects=seen, limit=1)
    if not (session or latest):
        raise BadInput("there is no session here yet", hint="name one; `csmd session list --all-projects` shows them")
    target = find_session(rows, session, asking) if session else latest[0]
    visible = visibility.find_visible_places(rows, asking=asking)
    counts = session_contents.count_kinds(rows, target.seq, projects=visible)
    total, max_turns = sum(counts.get(kind, 0) for kind in ROLES[role]), clamp_limit(limit, MAX_ROWS)
    read = partial(session_contents.read_conversation, rows, target.seq, projects=visible, among=ROLES[role])
    turns = read(limit=max_turns, offset=max(total - max_turns, 0))
    return {**_session_json(rows, target), "of": total, "conversation": [_turn_json(turn) for turn in turns]}


def _is_said_in(memory: Memory, uuid: str) -> bool:
    """Whether a turn states or confirms a memory."""
    sources = (source for source in memory.provenance if source.role != "beside")
    return any(source.uuid in (uuid, uuid.partition("/")[0]) for source in sources)


@TOOLS.add("csm_context_rollover")
def _show_usage(ctx: ToolContext, rows: Rows, id_: str, asking: str = "") -> Json:
    """Show the tokens that a session took, and csmd's share."""
    session = find_session(rows, id_, asking)
    return as_json(session, "id project last_at", **_usage_json(rows, session))


def _read_conversation(rows: Rows, session: Session, asking: str) -> list[ExportedTurn]:
    seen = visibility.find_visible_places(rows, asking=asking)
    return session_contents.read_conversation(rows, session.seq, projects=seen)


@TOOLS.add("csm_turn_show")
def _show_turn(ctx: ToolContext, rows: Rows, id_: str, asking: str = "") -> Json:
    """Show one turn."""
    matches = search.turns_with_prefix(rows, id_) if id_ else []
    lines = {
        uuid.partition("/")[0] for _, uuid in matches
    }  # turns of one transcript line share the beginning of their id
    if id_ not in lines:
        refuse_ambiguous(id_, sorted(lines))
    exact = [seq for seq, uuid in matches if uuid == id_] or [seq for seq, _ in matches]
    turn = search.turns_by_seq(rows, exact[:1]).get(exact[0]) if exact else None
    if turn is None or not visibility.is_visible(rows, turn.project_seq, asking=asking):
        hint = "`csmd memories` and `csmd search` show their ids"
        raise NotFound(f"there is no memory and no turn {id_!r}", hint=hint)
    memories_of_turn = memories.by_seqs(rows, search.list_memories_of_turn(rows, turn.uuid)).values()
    left_out = sum(part.dropped for part in turns.find_cut(rows, [turn.seq]))
    return as_json(
        turn, "id=uuid kind at text session_id project", dropped_bytes=left_out,
        around=surrounding_turns_json(rows, turn, asking),
        memories=[as_json(memory, "id text") for memory in memories_of_turn if visibility.is_visible(rows,
        memory.project_seq, asking=asking)],
    )  # fmt: skip


@TOOLS.add("csm_session_export")
def _export_session(ctx: ToolContext, rows: Rows, id_: str, asking: str = "") -> Json:
    """Write a session as a transcript that the assistant can resume."""
    session = find_session(rows, id_, asking)
    if session.parent:
        what = f"{session.id} is a sub-agent's session, which the assistant cannot resume"
        hint = f"csmd session export {session.parent}; `csmd session transcript {session.id}` shows this one"
        raise CsmdError(what, hint=hint)
    cwd = session.cwd or session.project
    transcript = adapters.EXPORT(
        _read_conversation(rows, session, asking), session_id=session.id, cwd=cwd, version=session.version,
        model=session.model, title=session.title,
    )  # fmt: skip
    if not any('"message"' in line for line in transcript.lines):
        raise CsmdError(f"{session.id} has no stored message to resume from")
    return {
        "id": session.id, "session_id": transcript.session_id, "place": transcript.place, "resume": transcript.command,
        "left_out": transcript.left_out, "transcript": transcript_state(session.path), "lines": list(transcript.lines),
    }  # fmt: skip
