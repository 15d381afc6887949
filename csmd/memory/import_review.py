"""What waits for review of each import as a whole: found, answered at once, and taken back at once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from csmd.errors import BadInput
from csmd.memory import review_answers
from csmd.memory.review_answers import ReviewAnswer
from csmd.store import belief_changes, exports, memories
from csmd.store.belief_changes import Answer
from csmd.store.sqlite import Rows

ImportVerb = Literal["keep", "drop"]
VERBS: tuple[ImportVerb, ...] = ("keep", "drop")
#: Memories that one write answers about: others wait for the writer meanwhile.
AT_ONCE = 20
MOST = 100_000
#: What comes before the program's name in the audit of a memory that was imported; of one of csmd's own export nothing does.
_FROM = "imported from "
OWN_EXPORT = "csmd export"
#: How the id of an import begins.
PREFIX = "i"


@dataclass(frozen=True, slots=True)
class Import:
    """One import: the program or `csmd export` that it was of, its file, "" where none is known, when, and what waits of it (ids)."""

    id: str
    source: str
    path: str
    at: str
    waiting: tuple[str, ...]


def read_imports(rows: Rows, places: Sequence[int] | None, *, since: str) -> list[Import]:
    """The imports of which something waits in some projects (None: in any), the latest first; `since` as of `unreviewed`."""
    seqs = belief_changes.unreviewed(rows, projects=places, below=review_answers.LOW, since=since, limit=MOST)
    found: dict[str, Import] = {}
    for ident, reason, at in exports.imported(rows, seqs):
        source, _, rest = reason.removeprefix(_FROM).partition(": ")
        source = source if reason.startswith(_FROM) else OWN_EXPORT
        _, slash, path = rest.rpartition(", /")
        key = PREFIX + hashlib.sha256(f"{source}:{at}".encode()).hexdigest()[:10]
        known = found.setdefault(key, Import(key, source, slash[2:] + path if slash else "", at, ()))
        found[key] = replace(known, waiting=(*known.waiting, ident))
    return sorted(found.values(), key=lambda one: (one.at, one.id), reverse=True)


def find_import(imports: Sequence[Import], typed: str) -> Import | None:
    """The import of an id or its beginning, of a program's name, or of a path; None for none, BadInput for several."""
    named = [one for one in imports if typed in (one.source, one.path) or (len(typed) > 1 and one.id.startswith(typed))]
    if len(named) > 1:
        ids = ", ".join(one.id for one in named)
        raise BadInput(f"{typed!r} names several imports: {ids}", hint="give the id of one; `csmd review` lists them")
    return named[0] if named else None


def answer_some(rows: Rows, idents: Sequence[str], asked: ReviewAnswer, *, item: str) -> Answer:
    """Keeps or drops some memories of the import `item`, and notes it as one answer."""

    def act() -> None:
        for ident in idents:
            memory = memories.by_id(rows, ident)
            if memory is not None and not memory.superseded_by:
                review_answers.answer_memory(rows, memory, asked)

    touched = belief_changes.changed_by(rows, act)
    first = next((memory for ident in idents if (memory := memories.by_id(rows, ident))), None)
    act()
    return belief_changes.put_answer(
        rows, item=item, answer=asked.verb, made="", was="", project=first.project_seq if first else 0, touched=touched,
        now=asked.at,
    )  # fmt: skip


def answers_beside(rows: Rows, answer: Answer) -> list[Answer]:
    """The answers that were given together with one: itself, and for an import all others of it, the latest first."""
    return belief_changes.answers_of(rows, answer) if answer.item.startswith(PREFIX) else [answer]
