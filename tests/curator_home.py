"""Sessions as their stages leave them in a store, and a model that answers by a function; not a test."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

from memory_factory import add_turn

from csmd.config import Settings
from csmd.conversation import Project, Turn
from csmd.curator import curate
from csmd.curator.contract import CapReached, Question, Reply
from csmd.curator.question import Sheet
from csmd.dream import steps
from csmd.extraction import digest, statements
from csmd.knowledge import Memory
from csmd.memory import remember
from csmd.store import dreams, memories, projects
from csmd.store.core import Store, run_to_end
from csmd.store.dreams import Dream
from csmd.store.sqlite import Rows
from csmd.tools.dreams import count_facts
from csmd.vocabulary import TurnKind

NOW = "2026-03-20T10:00:00.000Z"
ROOT = "/p/shop"
#: What somebody says: (kind, text).
Line = tuple[TurnKind, str]
#: What a model answers: the question's records as they were sent -> its answer.
Model = Callable[[list[dict[str, str]]], str]


def add_session(store: Store, name: str, lines: Sequence[Line], *, day: int, root: str = ROOT) -> None:
    """Takes in a session of a day of March and lets every stage make of it what it makes."""

    def write(rows: Rows) -> None:
        home = projects.ensure(rows, Project(key=root, root=root, name=root.rpartition("/")[2], kind="path"), now=NOW)
        for number, (kind, text) in enumerate(lines):
            at = f"2026-03-{day:02}T10:{number:02}:00.000Z"
            turn = Turn(uuid=f"{name}-{number}", session_id=name, kind=kind, text=text, at=at, cwd=root)
            add_turn(rows, turn, project=home, path=f"/t/{name}.jsonl")
        projects.record_active_day(rows, home, f"2026-03-{day:02}T10:00:00.000Z")

    store.write(write)
    for session in statements.list_behind(store):
        statements.distill(store, session, settled=True)
    while remember.believe(store)[0]:
        pass
    while digest.step(store):
        pass


def records(question: Question) -> list[dict[str, str]]:
    """The data of a question, record by record."""
    return [json.loads(line) for line in question.text.splitlines()]


def sheets_of(store: Store) -> list[Sheet]:
    """The questions about all sessions that wait, in order."""
    waiting = store.read(lambda rows: curate.find_waiting(rows, now=NOW, settings=Settings()))
    return [sheet for ended in waiting for sheet in store.read(lambda rows, e=ended: curate.read_sheets(rows, e, {}))]  # type: ignore[misc]


def dream(store: Store, model: Model | None, *, most: int = 100, asked: list[Question] | None = None) -> Dream:
    """A dream as the daemon has it, without pages: asks at most so many questions, consolidates, believes, consolidates."""
    left = most

    def ask_one(question: Question) -> Generator[None, None, Reply]:
        nonlocal left
        yield
        if left == 0 or model is None:
            raise CapReached("enough")
        left -= 1
        if asked is not None:
            asked.append(question)
        return Reply(text=model(records(question)), tokens_in=1, tokens_out=1)

    def consolidate() -> None:
        facts = run_to_end(count_facts(store.read))
        run_to_end(steps.carry_out_everywhere(store, made, now=NOW, key=store.hash_key, facts=facts))

    answered = (
        run_to_end(curate.ask(store, ask_one, may_ask=lambda: True, now=NOW, settings=Settings())) if model else []
    )
    made = store.write(lambda rows: dreams.begin(rows, why="asked for", sessions=0, now=NOW))
    consolidate()
    if run_to_end(curate.believe(store, made, answered, now=NOW)):
        consolidate()
    store.write(lambda rows: dreams.end(rows, made.seq, state="done", now=NOW))
    return made


def answer(
    notes: Iterable[dict[str, Any]] = (), never: Iterable[str] = (), done: Iterable[dict[str, Any]] = (), **more: Any
) -> str:
    """An answer in the form that is asked for; what a note does not say is as usual."""
    usual = {"tell": "starts", "does": "rule", "whose": "user", "scope": "project", "lasts": "always", "replaces": []}
    return json.dumps({"notes": [usual | note for note in notes], "never": [*never], "done": [*done], **more})


def label(sent: Sequence[dict[str, str]], words: str, kind: str = "candidate") -> str:
    """The label of the record of a kind that says these words."""
    return next(record[kind] for record in sent if kind in record and words in record["says"])


def all_memories(store: Store) -> dict[str, Memory]:
    """Every memory by what it says."""
    return {one.text: one for one in store.read(lambda rows: memories.list_memories(rows, projects=None))}
