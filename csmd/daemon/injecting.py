"""What an event's answer puts before the assistant: composed on the hooks' reader, its receipt noted on the writer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from csmd import text
from csmd.capture import transcripts as capture
from csmd.capture.hosts import claude, claude_environment
from csmd.config import Config
from csmd.daemon.context import Context
from csmd.errors import DeadlineExceeded
from csmd.model import Brief, Event
from csmd.recall import at_work, checkpoint, living_state, prompt, session_brief
from csmd.recall import compose as bracket
from csmd.recall import visibility as recall
from csmd.recall.compose import Note
from csmd.store import receipts
from csmd.store.sqlite import Rows

#: Longest that a prompt's vector may take; the words alone answer after that.
QUERY_VECTOR_S = 0.12
#: How long what a start is owed may take beside a prompt's own answer, and of what is left until its deadline which part.
OWED_S, OWED_PART = 0.5, 0.8
#: So many UTF-16 units a token has room for.
TOKEN_UNITS = 5


@dataclass(frozen=True, slots=True)
class Made:
    """What an event's answer tells: its own, and with a prompt what its session's start is owed (None for nothing)."""

    event: Event
    project: int
    own: Brief
    owed: Brief | None = None

    @property
    def text(self) -> str:
        """All of it, what is owed before what bears on the prompt."""
        return "\n".join(brief.text for brief in (self.owed, self.own) if brief is not None and brief.text)

    @property
    def settles(self) -> bool:
        """Whether the session's start has nothing left to be told once this is."""
        return self.event.name == "session_start" or self.owed is not None


def compose(
    rows: Rows, config: Config, context: Context, event: Event, left_s: float, *, beside: Brief | None = None
) -> tuple[Brief, int]:
    """What an event's session is told, and the project whose row it is; `left_s` until nobody waits.

    A start that is owed stands `beside` what a prompt is told: nothing of that, and within the room that it leaves.
    """
    settings = config.settings
    start = capture.started_in(Path(event.transcript_path)) if event.transcript_path else ""
    places = recall.scopes(rows, event.cwd, start=start)
    if event.name == "session_start":
        most, session = settings.brief_max_tokens, event.session_id
        besides = [item.id for item in beside.items] if beside else []
        if beside is not None:
            most = min(most, (claude.ANSWER_LIMIT_UNITS - text.utf16_units(beside.text)) // TOKEN_UNITS)
        if event.source == "compact":
            model, used = receipts.before(rows, session)
            most = bracket.at_compaction(used, claude_environment.window(model, used)).restored_tokens(most)
        living = settings.stages_advisory
        blocks = living_state.blocks(living_state.lines(rows, places=places, session_id=session)) if living else ()

        def brief(room: int, goals: Sequence[Note], before: str) -> Brief:
            return session_brief.session_brief(
                rows, places=places, session_id=session, max_tokens=room, goals=goals, blocks=blocks, before=before,
                today=event.at[:10], besides=besides, key=context.store.hash_key,
            )  # fmt: skip

        opened = checkpoint.opening(rows, event, places, key=context.store.hash_key, max_tokens=most, brief=brief)
        # After a compaction, and on resume: what is known of the files that it was at.
        files = at_work.file_block(rows, places=places, session_id=session, named="", besides=besides)
        return at_work.together(opened, files, max_tokens=most), places[0]
    if event.name == "pre_compact":
        return checkpoint.instructions(rows, event, places), places[0]
    if event.failure is not None:
        failed = at_work.failure_recall(
            rows,
            places=places,
            session_id=event.session_id,
            failed=event.failure,
            kept_bytes=settings.capture_tool_output_bytes,
        )
        return failed, places[0]
    model, used = receipts.filled(rows, event.session_id)
    policy = bracket.POLICY[bracket.of(used, claude_environment.window(model, used))]
    patience, most = min(QUERY_VECTOR_S, left_s / 2), policy.recall_tokens(settings.recall_max_tokens)
    recalled = prompt.recall(
        rows,
        places=places,
        session_id=event.session_id,
        prompt=event.text,
        floor=settings.recall_floor,
        max_tokens=most,
        max_items=settings.recall_max_items,
        embed=context.query_vector(deadline_s=patience, start=False),
        key=context.store.hash_key,
    )
    files = at_work.file_block(rows, places=places, session_id=event.session_id, named=event.text)
    return at_work.together(recalled, files, max_tokens=most), places[0]


def composed(rows: Rows, config: Config, context: Context, event: Event, left_s: float) -> Made:
    """All that an event's answer tells; that it was composed, and how long it took, is noted, also where it is nothing.

    Without time or room for both, what a start is owed waits for the next prompt.
    """
    until = time.monotonic() + left_s

    def told(asked: Event, beside: Brief | None = None) -> tuple[Brief, int]:
        began = time.monotonic()
        made = compose(rows, config, context, asked, until - began, beside=beside)
        context.noted.composed(asked, made[0], time.monotonic() - began)
        return made

    own, project = told(event)
    made = Made(event, project, own)
    start = context.owed.of(event.session_id) if event.name == "prompt" else None
    if start is None:
        return made
    try:  # what was slow once may be again: the prompt's own answer does not wait for it
        with rows.within(rows.share(OWED_S, part=OWED_PART)):
            both = replace(made, owed=told(replace(start, at=event.at), own)[0])
    except DeadlineExceeded:
        return made
    return both if text.utf16_units(both.text) <= claude.ANSWER_LIMIT_UNITS else made


def note(rows: Rows, made: Made, *, key: bytes) -> None:
    """Notes what an answer tells, a receipt for each event that it tells something; runs on the writer."""
    own, owed = _receipts(made.event)
    for receipt, name, brief in ((owed, "session_start", made.owed), (own, made.event.name, made.own)):
        if brief is not None and brief.text:
            receipts.add_receipt(
                rows,
                receipt_id=receipt,
                session_id=made.event.session_id,
                event=name,
                project=made.project,
                at=made.event.at,
                tokens=brief.tokens,
                text_hash=text.keyed_hash(brief.text, key),
                items=brief.items,
            )


def take_back(rows: Rows, event: Event) -> None:
    """Takes back what was noted of an event's answer: its hook did not read it; runs on the writer."""
    for receipt in _receipts(event):
        receipts.delete_receipt(rows, receipt)


def _receipts(event: Event) -> tuple[str, str]:
    """The ids of the receipts for what an event was told, and for what its session's start was told with it."""
    return f"r{event.id}", f"r{event.id}-start"
