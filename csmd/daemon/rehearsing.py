"""What was asked last in a project is looked for once more, for nobody, before somebody asks there.

A prompt of a large store reads thousands of pages from all over the file. When none of them is in memory, after a boot or
a night of other work, that takes longer than its hook waits. People ask in the words in which they asked before: once
those were looked for, what the next prompt needs is at hand. It is the reader for questions that does it, a prompt at a
time, so that neither a hook nor a question stands before more than one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TypeVar

from csmd.errors import DeadlineExceeded
from csmd.recall import prompt as prompts
from csmd.store import search, sessions
from csmd.store.core import Store
from csmd.store.sqlite import Rows

T = TypeVar("T")

#: A store of fewer turns answers in time from a cold disk.
LARGE_TURNS = 5_000
#: So many prompts are looked for, of each the beginning and for so long at most; and a project not again so soon.
PROMPTS, CHARACTERS, PATIENCE_S, AGAIN_S = 12, 400, 1.0, 1800.0


class Rehearsing:
    """Owns what is still to be looked for; `expect` from any thread, `step` on the steward's, which waits for none of it.

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
                self._prompts.extend((project, prompt) for prompt in prompts)
        if self._prompts:
            project, prompt = self._prompts.popleft()
            self._found = self._read(partial(self._look, project=project, prompt=prompt), deadline_s=PATIENCE_S)
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

    def _look(self, rows: Rows, *, project: int, prompt: str) -> object:
        return prompts.bearing(rows, places=[project, 0], prompt=prompt, embed=None, degraded=[])


def _last_asked(rows: Rows, project: int) -> tuple[int, list[str]]:
    """The project that is meant, and what users asked last in it, the latest first; nothing of a small store."""
    if search.last_turn(rows) < LARGE_TURNS:
        return project, []
    project = project or sessions.latest_project(rows)
    asked = search.asked_between(rows, "", "", projects=[project], limit=PROMPTS)
    turns = search.turns_by_seq(rows, [seq for seq, _ in asked])
    return project, [turns[seq].text[:CHARACTERS] for seq, _ in asked if seq in turns]
