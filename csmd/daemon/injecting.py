"""What an event's answer puts before the assistant: composed on the hooks' reader, its receipt noted on the writer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from csmd import text
from csmd.capture import stage as capture
from csmd.capture.hosts import claude_windows
from csmd.config import Config
from csmd.model import Brief, Event
from csmd.recall import (
    bracket,
    stage_advisory,
    stage_brief,
    stage_checkpoint,
    stage_failure,
    stage_file,
    stage_prompt,
)
from csmd.recall import stage as recall
from csmd.recall.compose import Note
from csmd.store import context
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools

#: Longest that a prompt's vector may take; the words alone answer after that.
QUERY_VECTOR_S = 0.12


def compose(rows: Rows, config: Config, tools: Tools, event: Event, left_s: float) -> tuple[Brief, int]:
    """What an event's session is told, and the project whose row it is; `left_s` until nobody waits."""
    settings = config.settings
    start = capture.started_in(Path(event.transcript_path)) if event.transcript_path else ""
    places = recall.scopes(rows, event.cwd, start=start)
    if event.name == "session_start":
        most, session = settings.brief_max_tokens, event.session_id
        if event.source == "compact":
            model, used = context.before(rows, session)
            most = bracket.at_compaction(used, claude_windows.window(model, used)).restored_tokens(most)
        living = settings.stages_advisory
        blocks = stage_advisory.blocks(rows, places=places, session_id=session) if living else ()

        def brief(room: int, goals: Sequence[Note], before: str) -> Brief:
            return stage_brief.session_brief(
                rows, places=places, session_id=session, max_tokens=room, goals=goals, blocks=blocks, before=before,
                today=event.at[:10],
            )  # fmt: skip

        opened = stage_checkpoint.opening(rows, event, places, key=tools.store.hash_key, max_tokens=most, brief=brief)
        # After a compaction, and on resume: what is known of the files that it was at.
        files = stage_file.block(rows, places=places, session_id=session, named="")
        return stage_file.together(opened, files, max_tokens=most), places[0]
    if event.name == "pre_compact":
        return stage_checkpoint.instructions(rows, event, places), places[0]
    if event.failure is not None:
        failed = stage_failure.failure_recall(
            rows,
            places=places,
            session_id=event.session_id,
            failed=event.failure,
            kept_bytes=settings.capture_tool_output_bytes,
        )
        return failed, places[0]
    model, used = context.filled(rows, event.session_id)
    policy = bracket.POLICY[bracket.of(used, claude_windows.window(model, used))]
    patience, most = min(QUERY_VECTOR_S, left_s / 2), policy.recall_tokens(settings.recall_max_tokens)
    recalled = stage_prompt.prompt_recall(
        rows,
        places=places,
        session_id=event.session_id,
        prompt=event.text,
        floor=settings.recall_floor,
        max_tokens=most,
        max_items=settings.recall_max_items,
        embed=tools.query_vector(deadline_s=patience, start=False),
        key=tools.store.hash_key,
    )
    files = stage_file.block(rows, places=places, session_id=event.session_id, named=event.text)
    return stage_file.together(recalled, files, max_tokens=most), places[0]


def composed(rows: Rows, config: Config, tools: Tools, event: Event, left_s: float) -> tuple[Brief, int]:
    """As `compose`; that it was, and how long it took, is noted, also where it came to nothing."""
    began = time.monotonic()
    made = compose(rows, config, tools, event, left_s)
    tools.steward.noted.composed(event, made[0], time.monotonic() - began)
    return made


def note(rows: Rows, receipt: str, event: Event, brief: Brief, project: int, *, key: bytes) -> None:
    """Notes what an event's answer tells; runs on the writer."""
    context.add_receipt(
        rows,
        receipt_id=receipt,
        session_id=event.session_id,
        event=event.name,
        project=project,
        at=event.at,
        tokens=brief.tokens,
        text_hash=text.keyed_hash(brief.text, key),
        items=brief.items,
    )
