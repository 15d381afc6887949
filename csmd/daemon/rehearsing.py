"""What was asked last in a project is looked for once more, for nobody, before somebody asks there.

A prompt of a large store reads thousands of pages from all over the file. When none of them is in memory, after a boot or
a night of other work, that takes longer than its hook waits. People ask in the words in which they asked before: once
those were looked for, what the next prompt needs is at hand. It is the reader for questions that does it, a prompt at a
time, so that neither a hook nor a question stands before more than one.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from functools import partial

from csmd.errors import DeadlineExceeded
from csmd.recall import stage_prompt
from csmd.store import nearby, search, sessions
from csmd.store.core import Store
from csmd.store.sqlite import Rows

#: A store of fewer turns answers in time from a cold disk.
LARGE_TURNS = 5_000
#: So many prompts are looked for, of each the beginning and for so long at most; and a project not again so soon.
PROMPTS, CHARACTERS, PATIENCE_S, AGAIN_S = 12, 400, 1.0, 1800.0


class Rehearsing:
    """Owns what is still to be looked for; `expect` from any thread, `step` on the steward's."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._expected: deque[int] = deque([0])
        """Projects in which somebody is about to ask; 0 for the one of the latest session."""
        self._prompts: deque[tuple[int, str]] = deque()
        self._at: dict[int, float] = {}

    def expect(self, project: int) -> None:
        """Says that a session begins in a project."""
        self._expected.append(project)

    def step(self, now: float) -> bool:
        """Looks for one prompt of what is expected at the monotonic time `now`; whether there was any."""
        while self._expected and not self._prompts:
            expected = self._expected.popleft()
            project, prompts = self._store.read(partial(_last_asked, project=expected), lane="main")
            if prompts and now >= self._at.get(project, float("-inf")) + AGAIN_S:
                self._at[project] = now
                self._prompts.extend((project, prompt) for prompt in prompts)
        if not self._prompts:
            return False
        project, prompt = self._prompts.popleft()
        with suppress(DeadlineExceeded):
            self._store.read(
                lambda rows: stage_prompt.found(rows, [project, 0], "", prompt, None, [], self._store.hash_key),
                lane="main",
                deadline_s=PATIENCE_S,
            )
        return True


def _last_asked(rows: Rows, project: int) -> tuple[int, list[str]]:
    """The project that is meant, and what users asked last in it, the latest first; nothing of a small store."""
    if search.last_turn(rows) < LARGE_TURNS:
        return project, []
    project = project or sessions.latest_project(rows)
    asked = nearby.asked_between(rows, "", "", projects=[project], limit=PROMPTS)
    turns = search.turns_by_seq(rows, [seq for seq, _ in asked])
    return project, [turns[seq].text[:CHARACTERS] for seq, _ in asked if seq in turns]
