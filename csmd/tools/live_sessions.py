"""Tools on live sessions: how full their context is, and what they were shown."""

from __future__ import annotations

from csmd.hosts import adapters
from csmd.recall import compose
from csmd.store import session_context, sessions
from csmd.store.sqlite import Rows
from csmd.text import display
from csmd.tools.declaration import Json, Places, ToolContext, Tools

TOOLS = Tools()
MAX_SESSIONS = 50
#: Seconds without a turn after which a session is not live.
LIVE_S = 3600


def list_live_sessions(rows: Rows, *, since: str, limit: int, among: list[int] | None = None) -> list[Json]:
    """Returns live sessions, latest first: tokens in the context, its size, and the bracket."""
    live = []
    for session, project, model, last, tokens in sessions.list_live_sessions(
        rows, since=since, limit=limit, projects=among
    ):
        window = adapters.adapter_of_session(session).window(model, tokens)
        live.append({
            "session": session, "project": project, "model": model, "last": last, "tokens": tokens, "window": window,
            "bracket": compose.bracket_of(tokens, window),
        })  # fmt: skip
    return live


@TOOLS.add("csm_context_status", lane="status")
def _show_context_use(ctx: ToolContext, rows: Rows, seen: Places = None) -> Json:
    """Show how full the contexts of live sessions are, and how much is added to each."""
    settings = ctx.config.settings
    max_tokens, starts = settings.recall_max_tokens, [0.0, *(policy.below for policy in compose.POLICY.values())]
    return {
        "sessions": [
            {**session, "recall_tokens": int(max_tokens * compose.POLICY[session["bracket"]].recall)}
            for session in list_live_sessions(rows, since=ctx.before(LIVE_S), limit=MAX_SESSIONS, among=seen)
        ],
        "brackets": [
            {
                "bracket": name, "from_percent": round(100 * start), "recall_tokens": int(max_tokens * policy.recall),
                "restored_tokens": int(settings.brief_max_tokens * policy.restored),
            }
            for (name, policy), start in zip(compose.POLICY.items(), starts, strict=False)
        ],
    }  # fmt: skip


@TOOLS.add("csm_session_line", lane="status")
def _show_status_line(ctx: ToolContext, rows: Rows, id_: str) -> Json:
    """Show one line about the notes of a session, for the assistant's status line."""
    memories, tokens = session_context.sum_injections(rows, id_)
    model, context_tokens = session_context.read_context_size(rows, id_)
    window = adapters.adapter_of_session(id_).window(model, context_tokens)
    bracket = compose.bracket_of(context_tokens, window)
    status_line = format_status_line(
        memories, tokens, is_recording=ctx.store.takes_writes and not ctx.store.last_write_error,
        is_paused=ctx.paused() is not None,
        context_use="" if bracket == "FRESH" else f"context {context_tokens * 100 // window} % ({bracket})",
    )  # fmt: skip
    return {"memories": memories, "tokens": tokens, "bracket": bracket, "line": status_line}


def format_status_line(
    memories: int, tokens: int, *, is_recording: bool, is_paused: bool = False, context_use: str = ""
) -> str:
    """Returns the status line of a session: what it was shown and how full it is, or why csmd does not work; "" for
    none."""
    if not is_recording:
        return "csmd: not recording"
    if is_paused:
        return "csmd: paused"
    parts = [display.amount(memories, "memory"), display.amount(tokens, "token")] if memories else []
    parts += [context_use] if context_use else []
    return f"csmd: {', '.join(parts)}" if parts else ""
