"""Composes what an event's answer tells the assistant, with its receipt."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from csmd.capture import ingest
from csmd.config import Config
from csmd.daemon.context import Context
from csmd.errors import DeadlineExceeded
from csmd.hosts.claude import environment, hooks
from csmd.model import Brief, Event
from csmd.recall import at_work, brief, checkpoint, compose, living_state, prompt, visibility
from csmd.recall.compose import Note
from csmd.store import receipts, search, sessions
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import display, tokens

#: Longest that a prompt's vector may take; the words alone answer after that.
QUERY_VECTOR_S = 0.12
#: How long what a start is owed may take beside a prompt's own answer, and of what is left until its deadline which part.
OWED_S, OWED_PART = 0.5, 0.8
#: So many UTF-16 units a token has room for.
TOKEN_UNITS = 5


@dataclass(frozen=True, slots=True)
class Injection:
    """What an event's answer tells: its own, and with a prompt what its session's start is owed (None for nothing)."""

    event: Event
    project: int
    own: Brief
    owed: Brief | None = None

    @property
    def text(self) -> str:
        """All of it, what is owed before what bears on the prompt."""
        return "\n".join(made.text for made in (self.owed, self.own) if made is not None and made.text)

    @property
    def settles(self) -> bool:
        """Whether the session's start has nothing left to be told once this is."""
        return self.event.name == "session_start" or self.owed is not None


def compose_answer(
    rows: Rows, config: Config, context: Context, event: Event, left_s: float, *, beside: Brief | None = None
) -> tuple[Brief, int]:
    """What an event's session is told, and the project whose row it is; `left_s` until nobody waits.

    A start that is owed stands `beside` what a prompt is told: nothing of that, and within the room that it leaves.
    """
    settings = config.settings
    start = ingest.started_in(event.transcript_path)
    places = visibility.scopes(rows, event.cwd, start=start)
    if event.name == "session_start":
        most, session = settings.brief_max_tokens, event.session_id
        besides = [item.id for item in beside.items] if beside else []
        if beside is not None:
            most = min(most, (hooks.ANSWER_LIMIT_UNITS - display.utf16_units(beside.text)) // TOKEN_UNITS)
        if event.source == "compact":
            model, used = receipts.previous_context_size(rows, session)
            most = compose.policy_after_compaction(used, environment.window(model, used)).restored_tokens(most)
        living = settings.stages_advisory
        blocks = (
            living_state.advisory_blocks(living_state.read_lines(rows, places=places, session_id=session))
            if living
            else ()
        )

        def session_brief(room: int, goals: Sequence[Note], before: str) -> Brief:
            return brief.session_brief(
                rows, places=places, session_id=session, max_tokens=room, goals=goals, blocks=blocks, before=before,
                today=event.at[:10], besides=besides, key=context.store.hash_key,
            )  # fmt: skip

        opened = checkpoint.compose_opening(
            rows, event, places, key=context.store.hash_key, max_tokens=most, brief=session_brief
        )
        # After a compaction, and on resume: what is known of the files that it was at.
        files = at_work.file_block(rows, places=places, session_id=session, named="", besides=besides)
        return at_work.append_files(opened, files, max_tokens=most), places[0]
    if event.name == "pre_compact":
        return checkpoint.compose_instructions(rows, event, places), places[0]
    if event.failure is not None:
        failed = at_work.recall_failure(
            rows,
            places=places,
            session_id=event.session_id,
            failed=event.failure,
            kept_bytes=settings.capture_tool_output_bytes,
        )
        return failed, places[0]
    model, used = receipts.context_size(rows, event.session_id)
    policy = compose.POLICY[compose.bracket_of(used, environment.window(model, used))]
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
    return at_work.append_files(recalled, files, max_tokens=most), places[0]


def compose_injection(rows: Rows, config: Config, context: Context, event: Event, left_s: float) -> Injection:
    """All that an event's answer tells; that it was composed, and how long it took, is noted, also where it is nothing.

    Without time or room for both, what a start is owed waits for the next prompt.
    """
    until = time.monotonic() + left_s

    def told(asked: Event, beside: Brief | None = None) -> tuple[Brief, int]:
        began = time.monotonic()
        made = compose_answer(rows, config, context, asked, until - began, beside=beside)
        context.noted.composed(asked, made[0], time.monotonic() - began)
        return made

    own, project = told(event)
    made = Injection(event, project, own)
    start = context.owed.of(event.session_id) if event.name == "prompt" else None
    if start is None:
        return made
    try:  # what was slow once may be again: the prompt's own answer does not wait for it
        with rows.within(rows.share(OWED_S, part=OWED_PART)):
            both = replace(made, owed=told(replace(start, at=event.at), own)[0])
    except DeadlineExceeded:
        return made
    return both if display.utf16_units(both.text) <= hooks.ANSWER_LIMIT_UNITS else made


def note(rows: Rows, made: Injection, *, key: bytes) -> None:
    """Notes what an answer tells, a receipt for each event that it tells something; runs on the writer."""
    own, owed = _receipts(made.event)
    for receipt, name, told in ((owed, "session_start", made.owed), (own, made.event.name, made.own)):
        if told is not None and told.text:
            receipts.add_receipt(
                rows,
                receipt_id=receipt,
                session_id=made.event.session_id,
                event=name,
                project=made.project,
                at=made.event.at,
                tokens=told.tokens,
                text_hash=tokens.keyed_hash(told.text, key),
                items=told.items,
            )


def take_back(rows: Rows, event: Event) -> None:
    """Takes back what was noted of an event's answer: its hook did not read it; runs on the writer."""
    for receipt in _receipts(event):
        receipts.delete_receipt(rows, receipt)


def _receipts(event: Event) -> tuple[str, str]:
    """The ids of the receipts for what an event was told, and for what its session's start was told with it."""
    return f"r{event.id}", f"r{event.id}-start"


T = TypeVar("T")

#: A store of fewer turns answers in time from a cold disk.
LARGE_TURNS = 5_000
#: So many prompts are looked for, of each the beginning and for so long at most; and a project not again so soon.
PROMPTS, CHARACTERS, PATIENCE_S, AGAIN_S = 12, 400, 1.0, 1800.0


class Rehearsing:
    """Owns what is still to be looked for; `expect` from any thread, `step` on the background thread, which waits for none of it.

    `done` is called, on the reader's thread, when the next one may be looked for.
    """

    def __init__(self, store: Store, done: Callable[[], None]) -> None:
        self._store = store
        self._done = done
        self._expected: deque[int] = deque([0])
        """Projects in which somebody is about to ask; 0 for the one of the latest session."""
        self._prompts: deque[tuple[int, str]] = deque()
        self._at: dict[int, float] = {}
        self._asked: Future[tuple[int, list[str]]] | None = None
        self._found: Future[object] | None = None

    def expect(self, project: int) -> None:
        """Says that a session begins in a project."""
        self._expected.append(project)

    @property
    def is_reading(self) -> bool:
        """Whether the reader is at work for it."""
        return any(one is not None and not one.done() for one in (self._asked, self._found))

    def step(self, now: float) -> bool:
        """Has one prompt of what is expected looked for, at the monotonic time `now`; whether it had anything done."""
        if self.is_reading:
            return False
        if self._found is not None:
            found, self._found = self._found, None
            with suppress(DeadlineExceeded):
                found.result()
        if self._asked is not None:
            asked, self._asked = self._asked, None
            project, prompts = asked.result()
            if prompts and now >= self._at.get(project, float("-inf")) + AGAIN_S:
                self._at[project] = now
                self._prompts.extend((project, asked) for asked in prompts)
        if self._prompts:
            project, said = self._prompts.popleft()
            self._found = self._read(partial(self._look, project=project, said=said), deadline_s=PATIENCE_S)
        elif self._expected:
            self._asked = self._read(partial(_last_asked, project=self._expected.popleft()), deadline_s=None)
        else:
            return False
        return True

    def _read(self, run: Callable[[Rows], T], *, deadline_s: float | None) -> Future[T]:
        self._store.precedence.give_way()
        reading = self._store.submit_read(run, lane="main", deadline_s=deadline_s)
        reading.add_done_callback(lambda _: self._done())
        return reading

    def _look(self, rows: Rows, *, project: int, said: str) -> object:
        return prompt.find_bearing(rows, places=[project, 0], prompt=said, embed=None, degraded=[])


def _last_asked(rows: Rows, project: int) -> tuple[int, list[str]]:
    """The project that is meant, and what users asked last in it, the latest first; nothing of a small store."""
    if search.last_turn(rows) < LARGE_TURNS:
        return project, []
    project = project or sessions.latest_project(rows)
    asked = search.user_turns_between(rows, "", "", projects=[project], limit=PROMPTS)
    turns = search.turns_by_seq(rows, [seq for seq, _ in asked])
    return project, [turns[seq].text[:CHARACTERS] for seq, _ in asked if seq in turns]
