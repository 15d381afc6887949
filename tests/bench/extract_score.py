"""Scores what distillation chooses on labelled real transcripts, read directly: no daemon, no store.

Rules and weights are tuned on the first half in time of one developer's sessions only, and checked on that developer's
second half and on everybody else. Prints one row per part, for the trained model and for the tables alone, and with
`--ablation` what each lever is worth; `--out` writes what was chosen.

    python tests/bench/extract_score.py [--eval DIR] [--out system.json] [--show N] [--ablation]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from labelled import Session, folder_of, line_of, score, scorer_of, sessions_of, sources_of, split

from csmd import text
from csmd.distill import extract, listed, saying, standing, units, worth
from csmd.distill.worth import Worth
from csmd.model import Statement, StoredTurn

COLUMNS = {
    "n": "system_memories",
    "P": "strict_precision",
    "R": "strict_recall",
    "F1": "strict_f1",
    "imp-3": "strict_recall_imp3",
    "loose P": "precision",
    "loose R": "recall",
    "negative turns": "negative_turns_cited_share",
}
Choose = Callable[[list[Session], Worth], list[tuple[StoredTurn, Statement]]]


def chosen(sessions: list[Session], model: Worth, *, replies: bool = True) -> list[tuple[StoredTurn, Statement]]:
    """The statements of all sessions; a text said again, in whichever session, confirms and adds nothing."""
    known: set[str] = set()
    found: list[tuple[StoredTurn, Statement]] = []
    for session in sessions:
        taken = [one for one in sources_of(session) if replies or one.role == "prompt"]
        for one in extract.chosen(taken, model=model):
            key = text.normalise(one.statement.text)
            if key not in known:
                known.add(key)
                found.append((one.turn, one.statement))
    return found


def as_memories(found: list[tuple[StoredTurn, Statement]], *, beside: bool = True) -> list[dict[str, Any]]:
    """What the set's scorer reads."""
    return [
        {
            "text": statement.text,
            "source_uuids": [line_of(uuid) for uuid in (turn.uuid, *(statement.also if beside else ()))],
            "session": turn.session_id,
            "gate": statement.gate,
            "category": statement.category,
            "confidence": statement.confidence,
            "authority": statement.authority,
            "reasons": list(statement.reasons),
        }
        for turn, statement in found
    ]


@contextmanager
def setting(module: Any, name: str, value: Any) -> Iterator[None]:
    """A constant of a module as another value for a while."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def without(model: Worth, **bars: float) -> Worth:
    """A model with other bars."""
    return replace(model, bars=replace(model.bars, **bars))


def levers(sessions: list[Session], model: Worth) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """What is chosen with one lever less each time."""
    full = chosen(sessions, model)
    yield "all levers", as_memories(full)
    yield "tables instead of the model", as_memories(chosen(sessions, worth.TABLES))
    yield "the other half of the exchange is not cited", as_memories(full, beside=False)
    yield "prompts only, no replies", as_memories(chosen(sessions, model, replies=False))
    alone = without(model, reply_too=model.bars.reply)
    yield "turn by turn: a reply beside its prompt's at the same bar", as_memories(chosen(sessions, alone))
    yield "nothing of work in between", as_memories(chosen(sessions, without(model, midway=1.1)))
    yield "at most one of a turn", as_memories(chosen(sessions, without(model, further=1.1)))
    with setting(extract, "PLAIN_VALUE", 9.0):
        yield "short plain sentences by the model only", as_memories(chosen(sessions, model))
    with setting(saying, "shipped", lambda: saying.NONE):
        yield "a sentence is not told by how it is put", as_memories(chosen(sessions, model))
    with setting(standing, "leaning", lambda said, speaker: ""):
        yield "units that lean are weighed as others", as_memories(chosen(sessions, model))
    with setting(listed, "completed", lambda found, unit, speaker, *, lead, told, apart: (unit, lead + told)):
        yield "of a list no other items", as_memories(chosen(sessions, model))
    with setting(extract, "WORKED", dict.fromkeys(extract.WORKED, (0, "further"))):
        yield "no plans, commits, reports and summaries", as_memories(chosen(sessions, model))
    for pieces in (1, 2):
        with setting(units, "MAX_PIECES", pieces):
            yield f"units of at most {pieces} piece{'s' * (pieces > 1)}", as_memories(chosen(sessions, model))
    weights = {name: weight for name, weight in model.weights.items() if not name.endswith("tables")}
    yield "the model without the tables", as_memories(chosen(sessions, replace(model, weights=weights)))


def row(result: dict[str, Any]) -> str:
    """The columns of one result."""
    return "  ".join(f"{name} {result.get(column, '-')}" for name, column in COLUMNS.items())


def main() -> None:
    """Read, choose, score, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eval", default="../shared/eval", help="the labelled set; relative to the repository's root")
    parser.add_argument("--out", default="", help="where to write system.json; nowhere by default")
    parser.add_argument("--show", type=int, default=0, help="print that many of the chosen statements, evenly spread")
    parser.add_argument("--ablation", action="store_true", help="what each lever is worth on what was not tuned on")
    options = parser.parse_args()
    folder = folder_of(options.eval)
    scorer = scorer_of(folder)
    sessions = sessions_of(folder)
    parts = split(sessions)
    for name, model in (("model", worth.shipped()), ("tables", worth.TABLES)):
        started = time.perf_counter()
        found = chosen(sessions, model)
        print(
            f"== {name} {model.model}: {len(sessions)} sessions, {len(found)} statements, {time.perf_counter() - started:.2f} s"
        )
        for part, ids in parts.items():
            print(f"{part:19} {row(score(scorer, as_memories(found), ids))}")
    if options.ablation:
        print("== one lever less, on what was not tuned on")
        for name, memories in levers(sessions, worth.shipped()):
            print(f"{name:58} {row(score(scorer, memories, parts['check']))}")
    found = chosen(sessions, worth.shipped())
    if options.out:
        Path(options.out).write_text(json.dumps(as_memories(found), indent=1))
    for turn, statement in found[:: max(1, len(found) // options.show)] if options.show else ():
        print(f"{turn.kind[0]} {statement.gate[:5]}/{statement.category} {statement.confidence:.2f}", end=" ")
        print(f"{','.join(statement.reasons)} | {statement.text}")


if __name__ == "__main__":
    main()
