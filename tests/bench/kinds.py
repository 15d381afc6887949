"""Scores csmd.distill.kind: the gate of each labelled memory, given its quote, who said it and what was said before.

The rules and weights may be tuned on the first half in time of one developer's sessions (and on written sentences of
other projects); they are judged on that developer's second half and on everybody else's. Prints macro-F1 of epistemic,
behavioral and correction, the confusion, and an ablation of each lever.

    python tests/bench/kinds.py [--eval DIR] [--ablation]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]

from labelled import folder_of, line_of, scorer_of, sessions_of, split  # noqa: E402

from csmd.distill import kind as kinds  # noqa: E402
from csmd.distill import traits  # noqa: E402
from csmd.distill.classify import classify  # noqa: E402

#: The gates that the figure is the mean of; the other two are rare in real sessions.
JUDGED = ("epistemic", "behavioral", "correction")


class Labelled(NamedTuple):
    """A labelled quote: who said it, what was said before it, and whether it may be tuned on."""

    text: str
    speaker: kinds.Speaker
    before: str
    gate: str
    part: str

    @property
    def tune(self) -> bool:
        """Whether rules may be tuned on it."""
        return self.part in ("tune", "written")


Namer = Callable[[Labelled], str]


def memories(folder: Path) -> list[Labelled]:
    """The true memories with what was said before each, where their line is found."""
    sessions = sessions_of(folder)
    cut = split(sessions)
    parts = {ident: part for part in ("tune", "later") for ident in cut[part]}
    said: dict[tuple[str, str], tuple[str, str]] = {}
    for session in sessions:
        turns = [turn for turn in session.turns if turn.kind in ("user", "assistant")]
        for at, turn in enumerate(turns):
            said.setdefault((session.id, line_of(turn.uuid)), (turn.text, turns[at - 1].text if at else ""))
    found = []
    for row in scorer_of(folder).rd("memories.jsonl"):
        quote = " ".join(row["quote"].split())
        lines = [said.get((row["session"], uuid), ("", "")) for uuid in row["uuids"]]
        before = next((before for text, before in lines if quote[:60] in " ".join(text.split())), "")
        speaker: kinds.Speaker = "user" if row["speaker"] == "user" else "assistant"
        found.append(Labelled(row["quote"], speaker, before, row["gate"], parts.get(row["session"], "others")))
    return found


def written(folder: Path) -> list[Labelled]:
    """The written sentences of other projects that are something; nothing was said before them."""
    return [
        Labelled(row["text"], "user", "", row["gate"], "written")
        for row in scorer_of(folder).rd("sentences.jsonl")
        if row["source"] == "written" and row["gate"] != "none"
    ]


def f1_of(rows: list[Labelled], name: Namer) -> dict[str, float]:
    """F1 of each judged gate and their mean, `macro`."""
    pairs = [(row.gate, name(row)) for row in rows]
    found = {}
    for gate in JUDGED:
        hits = sum(truth == told == gate for truth, told in pairs)
        either = sum((truth == gate) + (told == gate) for truth, told in pairs)
        found[gate] = 2 * hits / either if either else 0.0
    found["macro"] = sum(found[gate] for gate in JUDGED) / len(JUDGED)
    return found


def as_shipped(row: Labelled) -> str:
    """The gate that csmd gives."""
    return kinds.kind(row.text, speaker=row.speaker, before=row.before).gate


def tables_of_classify(row: Labelled) -> str:
    """The gate of the sentence chooser's own cues; what it would not keep is the commonest gate."""
    found = classify(row.text, kind=row.speaker)
    return found.gate if found else "epistemic"


@contextmanager
def without(owner: Any, attribute: str, value: object) -> Iterator[None]:
    """One lever taken out for a while."""
    kept = getattr(owner, attribute)
    setattr(owner, attribute, value)
    try:
        yield
    finally:
        setattr(owner, attribute, kept)


def told(rows: dict[str, list[Labelled]], title: str, name: Namer = as_shipped) -> None:
    """One line of figures."""
    print(f"{title:34}", end="")
    for part in rows.values():
        found = f1_of(part, name)
        print(f" | {found['macro']:.3f}  " + " ".join(f"{found[gate]:.2f}" for gate in JUDGED), end="")
    print()


def main() -> None:
    """Read, name, score, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eval", default="../shared/eval", help="the labelled set; relative to the repository's root")
    parser.add_argument("--ablation", action="store_true", help="take out each lever in turn")
    options = parser.parse_args()
    folder = folder_of(options.eval)
    true = memories(folder)
    rows = {
        "tune": [row for row in true if row.tune],
        "check": [row for row in true if not row.tune],
        "his later": [row for row in true if row.part == "later"],
        "others": [row for row in true if row.part == "others"],
        "written": written(folder),
    }
    print(
        "macro-F1, then F1 of",
        ", ".join(JUDGED),
        "|",
        ", ".join(f"{name} ({len(part)})" for name, part in rows.items()),
    )
    told(rows, "as shipped")
    told(rows, "everything epistemic", lambda row: "epistemic")
    told(rows, "the chooser's own cues", tables_of_classify)
    if options.ablation:
        zero = (0.0,) * len(kinds.GATES)
        told(rows, "without what was said before", lambda row: as_shipped(row._replace(before="")))
        with without(kinds, "SURE", ()):
            told(rows, "without the sure rows")
        with without(kinds, "POLICY", {}):
            told(rows, "without policy weights")
        with without(kinds, "WEIGHTS", {}), without(kinds, "BIAS", zero):
            told(rows, "tables only, nothing learned")
        with without(kinds, "SURE", ()), without(kinds, "POLICY", {}):
            told(rows, "learned weights only")
        with without(traits, "SMALL_WORDS", frozenset()):
            told(rows, "without small words")
        with without(traits, "TOGETHER", ()):
            told(rows, "without pairs of traits")
        told(rows, "assistants judged as users", lambda row: as_shipped(row._replace(speaker="user")))
    for name in ("tune", "check"):
        print(f"\nconfusion, {name}: labelled -> told")
        for (truth, given), count in sorted(Counter((row.gate, as_shipped(row)) for row in rows[name]).items()):
            print(f"  {truth:11} {given:11} {count}")


if __name__ == "__main__":
    main()
