"""Fits the weights of csmd/extraction/classifier.py and writes them to csmd/data/classifier.json; numpy only.

Learned from are the sentences written for it (tests/data/kinds.txt and sayings.txt), the rows of the labelled set's
sentences.jsonl whose text has an even SHA-256, and the labels of the projects (their memories, and the quotes that
share no row with the others). The rows with an odd SHA-256 are only ever scored. A run gives the same file byte for byte.

    python tests/bench/train_classifier.py [--eval DIR] [--folds | --score]

`--folds` scores on thirds of the even rows and with one project's labels left out, `--score` the shipped weights on the
odd rows; both write nothing.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import sys
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]

from sayings import sayings  # noqa: E402

from csmd.extraction import classifier  # noqa: E402
from csmd.extraction.classifier import GATES, HEADS, NONE, Model, Speaker  # noqa: E402
from csmd.text import tokens  # noqa: E402

WRITTEN = HERE.parent / "data" / "kinds.txt"
TARGET = HERE.parent.parent / "csmd" / "data" / "classifier.json"
BUCKETS, MIN_SEEN = 8192, 2
#: Pull to zero; steps and their size.
L2, STEPS, RATE = 0.33, 400, 0.05
#: What counts beside a labelled sentence (1): one written for training, a memory's label, and a head's default for one.
WRITTEN_COUNTS, LABEL, DEFAULT = 0.7, 0.5, 0.2
#: Two texts that share so many of the words of the shorter one are one sentence.
SAME = 0.6


class Row(NamedTuple):
    """A sentence with the classes it is labelled with, by head, and what each counts."""

    text: str
    speaker: Speaker
    truth: dict[str, str]
    counts: dict[str, float]
    source: str

    @property
    def gate(self) -> str:
        """Its gate, or none."""
        return self.truth.get("gate", "")


def is_odd(said: str) -> bool:
    """Whether a row may only be scored."""
    return int(hashlib.sha256(said.encode()).hexdigest(), 16) % 2 == 1


def written() -> list[Row]:
    """The sentences written for training, with every head where they are a statement."""
    rows, truth, speaker = [], {}, "user"
    for line in WRITTEN.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            told = line.strip("[]").split()
            speaker = "assistant" if told[-1] == "assistant" else "user"
            truth = dict(
                zip(("gate", "category", "scope", "decay") if told[0] != NONE else ("gate",), told, strict=False)
            )
        elif line and not line.startswith("#"):
            rows.append(Row(line, speaker, truth, dict.fromkeys(truth, WRITTEN_COUNTS), "written"))  # type: ignore[arg-type]
    return rows + [Row(one.text, "user", {"gate": one.gate}, {"gate": WRITTEN_COUNTS}, "written") for one in sayings()]


def sentences(folder: Path, *, odd: bool) -> list[Row]:
    """The labelled sentences of one half; a source of "real" or "other"."""
    held = [json.loads(line) for line in (folder / "sentences.jsonl").read_text().splitlines()]
    return [
        Row(one["text"], "user", {"gate": one["gate"]}, {"gate": 1.0}, "real" if one.get("session") else "other")
        for one in held
        if is_odd(one["text"]) == odd
    ]


def labels(folder: Path) -> list[Row]:
    """The labels of the projects: durable and of their project, for want of a label; none that is in an odd row."""
    scored = [_words(one.text) for one in sentences(folder, odd=True) if one.source == "real"]
    found = []
    for path in (folder / "memories.jsonl", folder / "projects" / "memories.jsonl"):
        for line in path.read_text().splitlines():
            one = json.loads(line)
            truth = {"gate": one["gate"], "category": one["category"], "scope": "project"}
            counts = {"gate": LABEL, "category": LABEL, "scope": DEFAULT}
            if one["durability"] == "durable" and one["gate"] != "promissory":
                truth["decay"], counts["decay"] = "durable", DEFAULT
            speaker: Speaker = "user" if one["speaker"] == "user" else "assistant"
            quote = one.get("quote", "")
            texts = [
                one["memory"],
                *([quote] if quote and not any(_same(_words(quote), row) for row in scored) else []),
            ]
            found += [Row(said, speaker, truth, counts, one["repo"]) for said in texts]
    return found


def _words(said: str) -> set[str]:
    return set(tokens.words_of(said))


def _same(one: set[str], other: set[str]) -> bool:
    return len(one & other) > SAME * min(len(one), len(other)) > 0


def fit(rows: Sequence[Row]) -> dict[str, Any]:
    """The weights, as they are written: every head by logistic regression with one matrix of hashed features."""
    found = [classifier.features(classifier.without_request(row.text), speaker=row.speaker) for row in rows]
    seen = Counter(name for names in found for name in names)
    kept = [[classifier.bucket(name, BUCKETS) for name in names if seen[name] >= MIN_SEEN] for names in found]
    columns = np.array(sorted({at for places in kept for at in places}))
    place = {at: number for number, at in enumerate(columns.tolist())}
    inputs = np.zeros((len(rows), len(columns)), dtype=np.float32)
    for at, (places, names) in enumerate(zip(kept, found, strict=True)):
        np.add.at(inputs[at], [place[one] for one in places], classifier.SCALE / np.sqrt(len(names)))
    total = np.zeros((BUCKETS, sum(map(len, HEADS.values()))), dtype=np.float32)
    biases: list[float] = []
    at = 0
    for head, names in HEADS.items():
        weights, bias = _regress(inputs, rows, head, names)
        total[columns, at : at + len(names)] = weights
        biases += [round(float(value), 3) for value in bias]
        at += len(names)
    scale = float(np.abs(total).max() / 127)
    whole = np.clip(np.rint(total / scale), -127, 127).astype(np.int8)
    return {
        "heads": {head: list(names) for head, names in HEADS.items()},
        "bias": biases,
        "scale": round(scale, 6),
        "weights": base64.b85encode(zlib.compress(whole.tobytes(), 9)).decode(),
    }


def _regress(inputs: Any, rows: Sequence[Row], head: str, names: tuple[str, ...]) -> tuple[Any, Any]:
    """(weights, bias) of one head, from the rows that are labelled for it."""
    of_head = [at for at, row in enumerate(rows) if head in row.truth]
    matrix = np.hstack([inputs[of_head], np.ones((len(of_head), 1), dtype=np.float32)])
    wanted = np.zeros((len(of_head), len(names)), dtype=np.float32)
    for at, row in enumerate(of_head):
        wanted[at, names.index(rows[row].truth[head])] = 1
    counts = np.array([[rows[row].counts[head]] for row in of_head], dtype=np.float32)
    pull = np.full((matrix.shape[1], 1), L2, dtype=np.float32)
    pull[-1] = 0
    weights = np.zeros((matrix.shape[1], len(names)), dtype=np.float32)
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, STEPS + 1):
        sums = matrix @ weights
        chances = np.exp(sums - sums.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        slope = matrix.T @ ((chances - wanted) * counts) + pull * weights
        first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope * slope
        rate = RATE * (1 - step / (STEPS + 1))
        weights -= rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
    return weights[:-1], weights[-1]


def guess(model: Model, row: Row, *, among: tuple[str, ...]) -> str:
    """The gate that a model gives a row, among some."""
    found = classifier.features(classifier.without_request(row.text), speaker=row.speaker)
    chances = model.chances(found)["gate"]
    return max(among, key=lambda name: chances[name])


def f1(pairs: Sequence[tuple[str, str]], names: Sequence[str]) -> dict[str, float]:
    """F1 of each class over (labelled, given), and their mean, "macro"."""
    found = {}
    for name in names:
        hits = sum(truth == given == name for truth, given in pairs)
        either = sum((truth == name) + (given == name) for truth, given in pairs)
        found[name] = 2 * hits / either if either else 0.0
    return found | {"macro": sum(found.values()) / len(names)}


def figures(rows: Sequence[Row], model: Model) -> dict[str, dict[str, float]]:
    """F1 with `none` as a class of its own, of the gates alone where there is one, and of the real sentences of these."""
    is_something = [row for row in rows if row.gate != NONE]
    real = [row for row in is_something if row.source == "real"]
    told = {
        "with none": f1([(row.gate, guess(model, row, among=HEADS["gate"])) for row in rows], HEADS["gate"]),
        "gates": f1([(row.gate, guess(model, row, among=GATES)) for row in is_something], GATES),
    }
    if real:
        judged = ("epistemic", "behavioral", "correction")
        told["gates, real"] = f1([(row.gate, guess(model, row, among=GATES)) for row in real], judged)
    return told


def show(title: str, told: dict[str, dict[str, float]]) -> None:
    """One line for each figure."""
    for name, found in told.items():
        print(f"{title:16} {name:12} " + "  ".join(f"{gate} {value:.3f}" for gate, value in found.items()), flush=True)


def folds(folder: Path) -> None:
    """Thirds of the even rows, then one project's labels, scored by weights that were fitted without them."""
    even = sorted(sentences(folder, odd=False), key=lambda row: hashlib.sha256(row.text.encode()).hexdigest())
    every = labels(folder)
    for third in range(3):
        left = even[third::3]
        words = [_words(row.text) for row in left if row.source == "real"]
        others = [row for row in every if not any(_same(_words(row.text), one) for one in words)]
        rest = [row for at, row in enumerate(even) if at % 3 != third]
        show(f"third {third}", figures(left, Model(fit([*written(), *rest, *others]))))
    for repo in sorted({row.source for row in every}):
        rest = [
            row for row in [*even, *every] if row.source != repo and not ("entire" in repo and row.source == "real")
        ]
        show(repo[-16:], figures([row for row in every if row.source == repo], Model(fit([*written(), *rest]))))


def main() -> None:
    """Read, fit, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eval", type=Path, default=HERE.parents[2] / "shared" / "eval", help="the labelled set")
    parser.add_argument("--folds", action="store_true", help="score with what is scored left out; write nothing")
    parser.add_argument("--score", action="store_true", help="score the shipped weights on the odd rows; write nothing")
    options = parser.parse_args()
    if options.folds:
        folds(options.eval)
    elif options.score:
        show("odd rows", figures(sentences(options.eval, odd=True), classifier.load_model()))
    else:
        rows = [*written(), *sentences(options.eval, odd=False), *labels(options.eval)]
        TARGET.write_text(json.dumps(fit(rows)) + "\n", encoding="utf-8")
        print(f"{TARGET.name}: {len(rows)} rows, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
