"""Tools that compose what a session would be given: at its start, with a prompt, for a file."""

from __future__ import annotations

from csmd.recall import advisory, brief, checkpoint, prompt, visibility, work_notes
from csmd.store.sqlite import Rows
from csmd.tools.declaration import VECTOR_TIMEOUT_S, Json, ToolContext, Tools
from csmd.tools.present import brief_json

TOOLS = Tools()


def find_session_places(rows: Rows, project: str, asking: str) -> list[int]:
    """Returns row keys of the projects that a session in a project sees."""
    return visibility.find_searchable_places(rows, project or "/", asking=asking) or [0]


@TOOLS.add("csm_memory_context")
def _compose_start_brief(ctx: ToolContext, rows: Rows, project: str, asking: str = "") -> Json:
    """Show the brief that a new session would get."""
    settings, seen = ctx.config.settings, find_session_places(rows, project, asking)
    goals = checkpoint.goals_block(rows, seen, "")
    composed = brief.session_brief(
        rows, places=seen, session_id="", today=ctx.now()[:10], max_tokens=settings.brief_max_tokens,
        goals=goals.notes if goals else (), asking=project, key=ctx.store.hash_key,
    )  # fmt: skip
    if settings.stages_advisory:
        lines = advisory.read_lines(rows, places=seen)
        composed = advisory.append_advisory(composed, lines, max_tokens=settings.brief_max_tokens)
    return brief_json(ctx, composed)


@TOOLS.add("csm_memory_recall")
def _recall_prompt(ctx: ToolContext, rows: Rows, *, project: str, asking: str = "", prompt_: str) -> Json:
    """Show the notes that a prompt would get."""
    settings = ctx.config.settings
    recalled = prompt.recall(
        rows, places=find_session_places(rows, project, asking), session_id="", prompt=prompt_, floor=settings.recall_floor,
        max_tokens=settings.recall_max_tokens, max_items=settings.recall_max_items,
        embed=ctx.query_vector(deadline_s=VECTOR_TIMEOUT_S, start=True), key=ctx.store.hash_key, asking=project,
    )  # fmt: skip
    return brief_json(ctx, recalled)


@TOOLS.add("csm_memory_file_recall")
def _recall_file(ctx: ToolContext, rows: Rows, *, project: str, asking: str = "", file: str) -> Json:
    """Show the notes about a file."""
    max_tokens, key = ctx.config.settings.recall_max_tokens, ctx.store.hash_key
    seen = find_session_places(rows, project, asking)
    recalled = work_notes.recall_file(rows, file, places=seen, max_tokens=max_tokens, key=key)
    return brief_json(ctx, recalled)
