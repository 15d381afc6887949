"""Sessions as their transcripts would bring them, written into a store turn by turn; not a test."""

from __future__ import annotations

from typing import Any

from memory_factory import project_in

from csmd import wire
from csmd.conversation import Turn
from csmd.extraction import statements as distill
from csmd.memory import failure_links, remember
from csmd.store import turns
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import tokens

NOW = "2026-03-01T10:00:00.000Z"


class Talk:
    """Writes the turns of a session as its transcript would bring them."""

    def __init__(self, store: Store, session: str = "s1", *, project: str = "alpha", day: int = 1) -> None:
        self.store, self.session, self.project, self.day, self.number = store, session, project, day, 0

    def say(self, kind: str, body: str, **more: Any) -> str:
        self.number += 1
        turn = Turn(
            uuid=f"{self.session}-{self.number}", session_id=self.session, kind=kind, text=body,  # type: ignore[arg-type]
            at=f"2026-03-{self.day:02d}T10:{self.number:02d}:00.000Z", cwd=f"/p/{self.project}", **more,
        )  # fmt: skip

        def write(rows: Rows) -> None:
            place = project_in(rows, self.project)
            hashed = tokens.keyed_hash(f"{body} {turn.uuid}", self.store.hash_key)
            path = f"/{self.session}.jsonl"
            turns.add_turn(rows, turn, text_hash=hashed, host="claude", project=place, path=path)

        self.store.write(write)
        return turn.uuid

    def call(self, tool: str, answer: str, **given: str) -> str:
        ident = f"{self.session}-t{self.number}"
        self.say("tool_call", wire.dumps(given), tool_name=tool, tool_id=ident)
        return self.say("tool_result", answer, tool_id=ident)

    def run(self, line: str, answer: str) -> str:
        return self.call("Bash", answer, command=line)

    def mend(self, path: str = "/p/alpha/till/tree.go") -> None:
        self.call("Edit", "done", file_path=path, old_string="a", new_string="b")


def go_through(store: Store) -> int:
    """Distils, believes and goes through everything; how much the last of the three looked at."""
    for session in distill.list_behind(store):
        distill.distill(store, session, settled=True)
    while remember.believe(store)[0]:
        pass
    total = 0
    for session in failure_links.find_pending(store):
        total += failure_links.relate_session(store, session, now=NOW)
    while looked := failure_links.recheck_sessions(store, now=NOW):
        total += looked
    return total
