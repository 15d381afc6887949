"""Trains csmd/distill/saying.json: logistic regression over how sentences are put, with numpy only.

    python tests/bench/train_saying.py [--eval DIR] [--out saying.json] [--ridge 3]

Learned from are half of the labelled set's written sentences, its real sentences of the first half in time of one user's
sessions, and tests/data/sayings.txt. Which half a written sentence is in, a hash of its text tells. What was not learned
from is given to csmd as a prompt by itself: printed is, for each gate, how many become a memory, with and without the
model. The same input gives the same file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from extract_score import setting
from labelled import folder_of, scorer_of, sessions_of, split
from logistic import newton
from sayings import sayings

from csmd.distill import extract, saying, units
from csmd.distill.classifier import GATES
from csmd.distill.saying import Model
from csmd.distill.shape import shape
from csmd.model import StoredTurn

RIDGE, ROUNDS = 3.0, 25
#: What fewer sentences have is left out, and so is what is worth less.
RARE, SMALL = 2, 0.04
#: A real sentence that is nothing counts for so many: they are what csmd meets most.
REAL_NONE = 2.0


class Row(NamedTuple):
    """A sentence, its gate or "none", where it is from, and whether it may be learned from."""

    text: str
    gate: str
    source: str
    learned: bool

    @property
    def holds(self) -> bool:
        """Whether it holds."""
        return self.gate != "none"


def rows_of(folder: Path) -> list[Row]:
    """Every labelled sentence."""
    tune = split(sessions_of(folder))["tune"]
    rows = [Row(one.text, one.gate, "sayings", True) for one in sayings()]
    for row in scorer_of(folder).rd("sentences.jsonl"):
        written = row["source"] == "written"
        learned = first_half(row["text"]) if written else row["session"] in tune
        rows.append(Row(row["text"], row["gate"], "written" if written else "real", learned))
    return rows


def first_half(text: str) -> bool:
    """Whether a written sentence is in the half that is learned from."""
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % 2 == 0


def put(text: str) -> frozenset[str]:
    """How a sentence is put once its markup is gone."""
    found = units.pieces(text, "user")
    return shape(found[0].text if len(found) == 1 else text)


def fit(rows: Sequence[Row], ridge: float) -> dict[str, float]:
    """The weights that fit best, by Newton's method."""
    seen = [put(row.text) for row in rows]
    held = Counter(name for found in seen for name in found)
    names = ["any", *sorted(name for name, count in held.items() if count >= RARE)]
    place = {name: number for number, name in enumerate(names)}
    matrix = np.zeros((len(rows), len(names)))
    matrix[:, 0] = 1.0
    for number, found in enumerate(seen):
        matrix[number, [place[name] for name in found if name in place]] = 1.0
    wanted = np.array([row.holds for row in rows], float)
    counts = np.array([REAL_NONE if row.source == "real" and not row.holds else 1.0 for row in rows])
    held_back = np.full(len(names), ridge)
    held_back[0] = 1e-3
    weights = newton(matrix, wanted, counts, held_back, rounds=ROUNDS, until=1e-6)
    found = {name: round(float(weight), 2) for name, weight in zip(names, weights, strict=True)}
    return {name: weight for name, weight in found.items() if name == "any" or abs(weight) >= SMALL}


def kept(rows: Sequence[Row], model: Model) -> Counter[str]:
    """How many sentences of each gate become a memory when each is a prompt by itself."""
    found: Counter[str] = Counter()
    with setting(saying, "shipped", lambda: model):
        for row in rows:
            turn = StoredTurn(
                seq=1, uuid="u", session_id="s", project_seq=1, kind="user", text=row.text, at="", ordinal=1
            )
            found[row.gate] += bool(extract.statements(turn))
    return found


def told(rows: Sequence[Row], model: Model) -> None:
    """One line a source and half."""
    for source, learned in (("written", False), ("written", True), ("real", False), ("real", True), ("sayings", True)):
        part = [row for row in rows if row.source == source and row.learned is learned]
        every, found = Counter(row.gate for row in part), kept(part, model)
        shares = "  ".join(f"{gate} {found[gate]}/{every[gate]}" for gate in (*GATES, "none"))
        print(f"  {source + (' learned from' if learned else ' not seen'):21} {shares}")


def main() -> None:
    """Read, fit, print what becomes a memory, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eval", default="../shared/eval", help="the labelled set; relative to the repository's root")
    parser.add_argument("--out", type=Path, help="where to write the model; nowhere by default")
    parser.add_argument("--ridge", type=float, default=RIDGE)
    options = parser.parse_args()
    rows = rows_of(folder_of(options.eval))
    weights = fit([row for row in rows if row.learned], options.ridge)
    for name, model in (("by the tables alone", saying.NONE), ("with the model", Model("saying-1", weights))):
        print(name)
        told(rows, model)
    if options.out:
        held = {"format": saying.FORMAT, "name": "saying-1", "about": "docs/model-card.md", "weights": weights}
        options.out.write_text(json.dumps(held, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
