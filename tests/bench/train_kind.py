"""Learns the weights of csmd.distill.kind from labelled sentences and writes them as a readable table; numpy only.

A linear model (multinomial logistic regression, L2) over the traits of users' sentences. Learned from are the true
memories of the first half in time of one developer's sessions and the written sentences of other projects and trades;
nothing of the sessions that the model is judged on. A run gives the same file byte for byte.

    python tests/bench/train_kind.py [--eval DIR] [--folds]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]

from kinds import Labelled, f1_of, memories, without, written  # noqa: E402
from labelled import folder_of  # noqa: E402
from sayings import sayings  # noqa: E402

from csmd.distill import kind as kinds  # noqa: E402
from csmd.distill.traits import traits  # noqa: E402

#: Strength of the pull to zero; how often a trait must be seen; steps of the descent and their size.
L2, SEEN, STEPS, RATE = 4.0, 2, 400, 0.05
#: A trait that moves no gate by this much is left out of the file.
SMALL = 0.05
HEAD = '''"""What each trait of a user's sentence adds for {gates}.

Learned by tests/bench/train_kind.py from {count} sentences; do not edit: policy stands in `kind`.
"""

from __future__ import annotations

'''


def learn(rows: list[Labelled]) -> tuple[tuple[float, ...], dict[str, tuple[float, ...]]]:
    """(bias, weights by trait) of the gates in the order of GATES."""
    seen = [traits(row.text, before=row.before) for row in rows]
    counts = Counter(name for found in seen for name in found)
    names = sorted(name for name, count in counts.items() if count >= SEEN)
    place = {name: at for at, name in enumerate(names)}
    inputs = np.zeros((len(rows), len(names) + 1))
    inputs[:, -1] = 1.0
    wanted = np.zeros((len(rows), len(kinds.GATES)))
    for at, (row, found) in enumerate(zip(rows, seen, strict=True)):
        inputs[at, [place[name] for name in found if name in place]] = 1.0
        wanted[at, kinds.GATES.index(row.gate)] = 1.0
    weights = np.zeros((len(names) + 1, len(kinds.GATES)))
    pulled = np.ones((len(names) + 1, 1))
    pulled[-1] = 0.0
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, STEPS + 1):
        sums = inputs @ weights
        sums -= sums.max(axis=1, keepdims=True)
        given = np.exp(sums)
        given /= given.sum(axis=1, keepdims=True)
        slope = inputs.T @ (given - wanted) + L2 * weights * pulled
        first = 0.9 * first + 0.1 * slope
        second = 0.99 * second + 0.01 * slope * slope
        weights -= RATE * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
    table = {name: tuple(round(float(value), 2) for value in weights[at]) for name, at in place.items()}
    table = {name: row for name, row in table.items() if max(map(abs, row)) >= SMALL}
    return tuple(round(float(value), 2) for value in weights[-1]), table


def as_module(bias: tuple[float, ...], table: dict[str, tuple[float, ...]], count: int) -> str:
    """The weights as the text of a module."""
    rows = "".join(f'    "{name}": {row},\n' for name, row in table.items())
    return (
        HEAD.format(gates=", ".join(kinds.GATES), count=count)
        + f"BIAS: tuple[float, ...] = {bias}\nWEIGHTS: dict[str, tuple[float, ...]] = {{\n{rows}}}\n"
    )


def folds(tune: list[Labelled], others: list[Labelled], check: list[Labelled]) -> None:
    """How well it does on written sentences that it has not seen, and on real ones with half of the written."""
    for learned, left in ((others[::2], others[1::2]), (others[1::2], others[::2])):
        bias, table = learn(tune + learned)
        with without(kinds, "BIAS", bias), without(kinds, "WEIGHTS", table):
            for name, rows in (("check", check), ("written, the other half", left)):
                found = f1_of(rows, lambda row: kinds.kind(row.text, speaker=row.speaker, before=row.before).gate)
                print(name, {gate: round(value, 3) for gate, value in found.items()})


def main() -> None:
    """Read, learn, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eval", default="../shared/eval", help="the labelled set; relative to the repository's root")
    parser.add_argument("--folds", action="store_true", help="print how it does on unseen halves; write nothing")
    options = parser.parse_args()
    folder = folder_of(options.eval)
    true = memories(folder)
    tune = [row for row in true if row.tune and row.speaker == "user"]
    others = written(folder)
    own = [Labelled(one.text, "user", "", one.gate, "written") for one in sayings() if one.gate != "none"]
    if options.folds:
        folds(tune + own, others, [row for row in true if not row.tune])
        return
    bias, table = learn(tune + others + own)
    target = Path(kinds.__file__).with_name("kind_weights.py")
    target.write_text(as_module(bias, table, len(tune) + len(others) + len(own)), encoding="utf-8")
    print(f"{target.name}: {len(table)} traits, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
