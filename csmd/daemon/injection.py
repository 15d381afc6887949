"""Composes the text that answers an event, with its receipt."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace

from csmd.briefs import Brief
from csmd.capture import ingest
from csmd.conversation import Event
from csmd.daemon import assistants_in_use
from csmd.daemon.context import Context
from csmd.errors import DeadlineExceeded
from csmd.hosts.adapter import ANSWER_LIMIT_UNITS
from csmd.hosts.adapters import ADAPTERS, CLAUDE
from csmd.machine import run_bounded
from csmd.recall import advisory, brief, checkpoint, compose, prompt, visibility, work_notes
from csmd.recall.compose import Note
from csmd.store import receipts, search, session_context, sessions
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import display, tokens

#: After this time without a prompt's vector only words are compared.
VECTOR_TIMEOUT_S = 0.12
#: Longest time for a pending start's brief after the prompt's own, and its share of the time until the deadline.
START_TIMEOUT_S = 0.5
START_SHARE = 0.8
#: The disk is asked this long whether a session's directory is one that csmd does not read.
NOTICE_TIMEOUT_S = 0.03
#: UTF-16 units reserved for each token.
TOKEN_UNITS = 5
#: A store of fewer turns answers in time from a cold disk, without a rehearsal.
MIN_TURNS = 5_000
#: Latest prompts of a project that are rehearsed, and characters of each.
MAX_PROMPTS = 12
MAX_PROMPT_CHARACTERS = 400
REHEARSAL_TIMEOUT_S = 1.0
#: How soon a project is rehearsed again.
REHEARSE_AGAIN_S = 1800.0


@dataclass(frozen=True, slots=True)
class Injection:
    """The answer to an event: its own brief, and for a prompt the brief of its session's pending start."""

    event: Event
    project: int
    own: Brief
    start: Brief | None = None
    notice: str = ""
    """A warning for the user at a session's start; no model reads it."""

    @property
    def text(self) -> str:
        """The text of both briefs, the start's first."""
        return "\n".join(part.text for part in (self.start, self.own) if part is not None and part.text)

    @property
    def settles_start(self) -> bool:
        """Whether this answer includes the brief of the session's start."""
        return self.event.name == "session_start" or self.start is not None


def compose_injection(rows: Rows, context: Context, event: Event, left_s: float) -> Injection:
    """Composes the answer to an event, and logs it with the time it took; the hook leaves after `left_s`.

    A pending start waits for the next prompt if there is no time or room for both briefs.
    """
    until = time.monotonic() + left_s

    def compose_logged(about: Event, own_brief: Brief | None = None) -> tuple[Brief, int]:
        began = time.monotonic()
        composed, project = _compose_brief(rows, context, about, until - began, own_brief)
        context.lookups.log_brief(about, composed, time.monotonic() - began)
        return composed, project

    event_brief, project = compose_logged(event)
    injection = Injection(event, project, event_brief, notice=_compose_notice(context, event))
    start = context.starts.find(event.session_id) if event.name == "prompt" else None
    if start is None:
        return injection
    try:
        with rows.deadline(rows.limit_seconds(START_TIMEOUT_S, part=START_SHARE)):
            extended_injection = replace(injection, start=compose_logged(replace(start, at=event.at), event_brief)[0])
    except DeadlineExceeded:  # the prompt's own answer does not wait for what was too slow before
        return injection
    return extended_injection if display.count_utf16_units(extended_injection.text) <= ANSWER_LIMIT_UNITS else injection


def _compose_notice(context: Context, event: Event) -> str:
    """Returns a warning, once a day, that csmd does not read a session's Claude Code directory; "" if it does."""
    folder, _ = assistants_in_use.find_config_dir(event.transcript_path)
    if event.host != CLAUDE.host or event.name != "session_start" or event.source == "compact" or folder is None:
        return ""
    today, name, config = event.at[:10], str(folder), context.config
    if folder in config.assistant_dirs or context.notice_days.get(name) == today:
        return ""
    if not run_bounded(lambda: assistants_in_use.find_unread_directories([name], config, [""]), NOTICE_TIMEOUT_S):
        return ""
    context.notice_days[name] = today
    return f"csmd: {display.remove_unseen(assistants_in_use.warn_of_unread(name))}"


def _compose_brief(
    rows: Rows, context: Context, event: Event, left_s: float, own_brief: Brief | None
) -> tuple[Brief, int]:
    """Composes the brief for an event; returns it and the row of its project.

    `own_brief` is the brief that the same prompt gets already.
    """
    places = visibility.scopes(rows, event.cwd, start=ingest.read_start_directory(event.transcript_path))
    match event.name:
        case "session_start":
            composed = _compose_start_brief(rows, context, event, places, own_brief)
        case "prompt":
            composed = _compose_prompt_brief(rows, context, event, places, left_s)
        case "pre_compact":
            composed = checkpoint.compose_instructions(rows, event, places)
        case "tool_failure" if event.failure is not None:
            kept_bytes = context.config.settings.capture_tool_output_bytes
            composed = work_notes.recall_failure(
                rows, places=places, session_id=event.session_id, failed=event.failure, kept_bytes=kept_bytes
            )
        case _:
            raise ValueError(f"nothing is composed for the event {event.name!r}")
    return composed, places[0]


def _compose_start_brief(
    rows: Rows, context: Context, event: Event, places: list[int], own_brief: Brief | None
) -> Brief:
    """Composes the brief for a session's start.

    With a prompt it repeats nothing of `own_brief` and fits into the room next to it.
    """
    settings, session, key = context.config.settings, event.session_id, context.store.hash_key
    max_tokens, shown_ids = settings.brief_max_tokens, [item.id for item in own_brief.items] if own_brief else []
    if own_brief is not None:
        max_tokens = min(max_tokens, (ANSWER_LIMIT_UNITS - display.count_utf16_units(own_brief.text)) // TOKEN_UNITS)
    if event.source == "compact":
        model, used = session_context.read_last_context_size(rows, session)
        policy = compose.policy_after_compaction(used, ADAPTERS[event.host].window(model, used))
        max_tokens = int(max_tokens * policy.restored)

    def session_brief(room: int, goals: Sequence[Note], before: str) -> Brief:
        return brief.session_brief(
            rows, places=places, session_id=session, max_tokens=room, goals=goals, before=before,
            today=event.at[:10], exclude=shown_ids, asking=event.cwd, key=key,
        )  # fmt: skip

    opening = checkpoint.compose_opening(rows, event, places, key=key, max_tokens=max_tokens, brief=session_brief)
    # After a compaction and on resume, notes on the session's files follow.
    files = work_notes.file_block(
        rows, places=places, session_id=session, named="", exclude=shown_ids, asking=event.cwd
    )
    opening = work_notes.append_files(opening, files, max_tokens=max_tokens)
    if not settings.stages_advisory:
        return opening
    lines = advisory.read_lines(rows, places=places, session_id=session)
    return advisory.append_advisory(opening, lines, max_tokens=max_tokens)


def _compose_prompt_brief(rows: Rows, context: Context, event: Event, places: list[int], left_s: float) -> Brief:
    settings, session = context.config.settings, event.session_id
    model, used = session_context.read_context_size(rows, session)
    policy = compose.POLICY[compose.bracket_of(used, ADAPTERS[event.host].window(model, used))]
    max_tokens = int(settings.recall_max_tokens * policy.recall)
    recalled = prompt.recall(
        rows, places=places, session_id=session, prompt=event.text, floor=settings.recall_floor, max_tokens=max_tokens,
        max_items=settings.recall_max_items,
        embed=context.query_vector(deadline_s=min(VECTOR_TIMEOUT_S, left_s / 2), start=False), asking=event.cwd,
        key=context.store.hash_key,
    )  # fmt: skip
    files = work_notes.file_block(rows, places=places, session_id=session, named=event.text, asking=event.cwd)
    return work_notes.append_files(recalled, files, max_tokens=max_tokens)


def write_receipts(rows: Rows, injection: Injection, *, key: bytes) -> None:
    """Writes a receipt for each brief of an answer that is not empty."""
    event = injection.event
    own_id, start_id = _make_receipt_ids(event)
    briefs = ((start_id, "session_start", injection.start), (own_id, event.name, injection.own))
    for receipt_id, name, brief_of_event in briefs:
        if brief_of_event is not None and brief_of_event.text:
            receipts.add_receipt(
                rows, receipt_id=receipt_id, session_id=event.session_id, event=name, project=injection.project,
                at=event.at, tokens=brief_of_event.tokens, text_hash=tokens.keyed_hash(brief_of_event.text, key),
                items=brief_of_event.items,
            )  # fmt: skip


def delete_receipts(rows: Rows, event: Event) -> None:
    """Deletes the receipts of an event's answer, which its hook did not read."""
    for receipt_id in _make_receipt_ids(event):
        receipts.delete_receipt(rows, receipt_id)


def _make_receipt_ids(event: Event) -> tuple[str, str]:
    """Returns the ids of the receipts for an event's own brief, and for that of its session's start."""
    return f"r{event.id}", f"r{event.id}-start"


class Rehearsal:
    """Repeats a project's latest searches, so that the next prompt finds the database's pages in memory.

    `expect_prompt` is for any thread, `step` for the background thread, which never waits; `done` is called on the reader's
    thread when the next search may begin.
    """

    def __init__(self, store: Store, notify: Callable[[], None]) -> None:
        self._store = store
        self._done = notify
        self._expected: deque[int] = deque([0])
        """Projects in which a prompt is expected; 0 for the one of the latest session."""
        self._prompts: deque[tuple[int, str]] = deque()
        self._rehearsed_at: dict[int, float] = {}
        self._reading: Future[tuple[int, list[str]]] | None = None
        """The running read of a project and the prompts to be rehearsed in it."""

    def expect_prompt(self, project: int) -> None:
        """Notes that a session begins in a project."""
        self._expected.append(project)

    @property
    def is_reading(self) -> bool:
        """Whether the reader is rehearsing."""
        return self._reading is not None and not self._reading.done()

    def step(self, now: float) -> bool:
        """Starts the next read at the monotonic time `now`; whether there was one."""
        if self.is_reading:
            return False
        if self._reading is not None:
            reading, self._reading = self._reading, None
            with suppress(DeadlineExceeded):
                project, prompts = reading.result()
                if prompts and now >= self._rehearsed_at.get(project, float("-inf")) + REHEARSE_AGAIN_S:
                    self._rehearsed_at[project] = now
                    self._prompts.extend((project, text) for text in prompts)
        if self._prompts:
            project, text = self._prompts.popleft()
            self._read(lambda rows: _rehearse_prompt(rows, project, text), deadline_s=REHEARSAL_TIMEOUT_S)
        elif self._expected:
            project = self._expected.popleft()
            self._read(lambda rows: _read_latest_prompts(rows, project), deadline_s=None)
        else:
            return False
        return True

    def _read(self, run: Callable[[Rows], tuple[int, list[str]]], *, deadline_s: float | None) -> None:
        self._store.hook_priority.give_way()
        self._reading = self._store.submit_read(run, lane="main", deadline_s=deadline_s)
        self._reading.add_done_callback(lambda _: self._done())


def _rehearse_prompt(rows: Rows, project: int, text: str) -> tuple[int, list[str]]:
    prompt.find_relevant(rows, places=[project, 0], prompt=text, embed=None, degraded=[])
    return project, []


def _read_latest_prompts(rows: Rows, project: int) -> tuple[int, list[str]]:
    """Returns a project and the latest prompts in it, latest first; [] for a small store.

    With `project` 0 it is the latest session's project.
    """
    if search.find_last_turn_seq(rows) < MIN_TURNS:
        return project, []
    project = project or sessions.find_latest_project(rows)
    latest = search.list_user_turns_between(rows, "", "", projects=[project], limit=MAX_PROMPTS)
    turns = search.turns_by_seq(rows, [seq for seq, _ in latest])
    return project, [turns[seq].text[:MAX_PROMPT_CHARACTERS] for seq, _ in latest if seq in turns]
