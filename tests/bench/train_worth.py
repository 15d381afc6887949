"""Trains csmd/distill/worth.json: logistic regression over the features of units, with numpy only.

    python tests/bench/train_worth.py [--eval DIR] [--out worth.json] [--ridge 30]

Weights are fitted, and bars chosen by cross-validation over sessions, on the first half in time of one user's sessions
only; what was not trained on is scored and printed, never looked at for a choice. A unit counts as worth keeping when
it states a label by the set's strict rule. The same input gives the same file.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from labelled import Session, folder_of, found_by, line_of, scorer_of, sessions_of, sources_of, split
from logistic import newton

from csmd.distill import extract, worth
from csmd.distill.extract import Chosen, Option
from csmd.distill.features import Features
from csmd.distill.sources import Source
from csmd.distill.worth import Bars, Worth
from csmd.model import StoredTurn

RIDGE, FOLDS, ROUNDS = 60.0, 6, 25
#: A feature that fewer units have is left out.
RARE = 15
GRID = {"prompt": (0.4, 0.45, 0.5), "reply": (0.4, 0.45, 0.5, 0.55), "reply_too": (0.65, 0.75, 0.85)}
MIDWAY, FURTHER = 0.6, 0.75
#: Bars are the best by F1 among those with this precision when cross-validated: junk costs trust. And what a label of
#: each importance counts for: an engineer would be annoyed if one of 3 were forgotten.
PRECISION = 0.64
COUNTS_FOR = {3: 2.0}
#: What the part to train on cannot teach, for it holds no pasted plan: where a plan's few points stand was counted
#: over five other projects. Set by hand, on the scale of the weights.
PRIORS = {"document's point": 1.0, "document's detail": -0.7}


@dataclass
class Case:
    """An exchange's sources with what could be chosen from each, and the labels that each option states."""

    session: str
    sources: list[Source] = field(default_factory=list)
    by_source: list[list[Option]] = field(default_factory=list)
    states: dict[int, frozenset[int]] = field(default_factory=dict)
    weights: dict[int, float] = field(default_factory=dict)

    @property
    def prompt(self) -> StoredTurn | None:
        """What the exchange answers to."""
        return self.sources[0].turn if self.sources and self.sources[0].role == "prompt" else None

    @property
    def learned(self) -> list[Option]:
        """The options that weights are fitted to: of the prompt and the reply."""
        pairs = zip(self.sources, self.by_source, strict=True)
        return [option for source, options in pairs if source.role in ("prompt", "reply") for option in options]


class Told(Worth):
    """A worth that is known for every unit beforehand: by the identity of its features."""

    def of(self, found: Features) -> float:
        """What was told."""
        return self.weights[id(found)]  # type: ignore[index]


def cases_of(
    session: Session, states: Callable[[str, set[str], str], set[int]], importance: Sequence[int] = ()
) -> list[Case]:
    """What could be chosen from a session, exchange by exchange, labelled; `importance` is each label's."""
    cases: list[Case] = []
    for source in sources_of(session):
        if source.role == "prompt" or not cases:
            cases.append(Case(session.id))
        case = cases[-1]
        prompt = case.prompt
        case.sources.append(source)
        of = extract.of_prompt(source.turn) if source.role == "prompt" else extract.of_reply(source, prompt)
        case.by_source.append(of)
    for case in cases:
        reply = next((source.turn for source in case.sources if source.role == "reply"), None)
        for source, options in zip(case.sources, case.by_source, strict=True):
            role, other = ("prompt", reply) if source.role == "prompt" else ("reply", case.prompt)
            for option in options:
                lines = {line_of(source.turn.uuid)} | {line_of(one) for one in extract.cites(option.unit, other, role)}
                case.states[id(option.features)] = frozenset(states(session.id, lines, option.unit.text))
                most = max((importance[label] for label in case.states[id(option.features)] if importance), default=0)
                case.weights[id(option.features)] = COUNTS_FOR.get(most, 1.0)
    return cases


def fit(cases: Sequence[Case], ridge: float, leave_out: Callable[[str], bool] = lambda name: False) -> dict[str, float]:
    """The weights that fit best, by Newton's method; a long turn's units count for less each."""
    rows = [(option.features, case, len(case.learned)) for case in cases for option in case.learned]
    held = Counter(name for found, _, _ in rows for name in found)
    names = sorted(name for name, count in held.items() if count >= RARE and not leave_out(name) and name not in PRIORS)
    place = {name: number for number, name in enumerate(names)}
    matrix = np.zeros((len(rows), len(names)))
    for number, (found, _, _) in enumerate(rows):
        for name, value in found.items():
            if name in place:
                matrix[number, place[name]] = value
    wanted = np.array([bool(case.states[id(found)]) for found, case, _ in rows], float)
    counts = np.array([case.weights.get(id(found), 1.0) * 4 / math.sqrt(size) for found, case, size in rows])
    held_back = np.full(len(names), ridge)
    held_back[place["any"]] = 1e-3
    weights = newton(matrix, wanted, counts, held_back, rounds=ROUNDS, until=1e-5)
    return {name: round(float(weight), 4) for name, weight in zip(names, weights, strict=True)} | PRIORS


def values(cases: Iterable[Case], weights: dict[str, float]) -> dict[int, float]:
    """The worth of every option by the identity of its features."""
    model = Worth("", weights, worth.TABLES.bars)
    every = (option for case in cases for options in case.by_source for option in options)
    return {id(option.features): model.of(option.features) for option in every}


def figures(cases: Sequence[Case], told: dict[int, float], bars: Bars, labels: int) -> tuple[float, float, float, int]:
    """(F1, precision, recall, how many) of what is chosen; a text that was said before adds nothing."""
    model = Told("", told, bars)  # type: ignore[arg-type]
    known: set[str] = set()
    stated: set[int] = set()
    right = total = 0
    for case in cases:
        given: list[Chosen] = []
        for source, options in zip(case.sources, case.by_source, strict=True):
            if source.role == "prompt":
                more = extract.from_prompt(source.turn, model, options)
            else:
                more = extract.from_reply(source, case.prompt, given=given, model=model, options=options)
            given += more
            by_unit = {option.unit: case.states[id(option.features)] for option in options}
            for one in more:
                if one.statement.text in known:
                    continue
                known.add(one.statement.text)
                total += 1
                right += bool(by_unit[one.unit] - stated)
                stated |= by_unit[one.unit]
    precision, recall = right / max(1, total), len(stated) / max(1, labels)
    return 2 * precision * recall / max(1e-9, precision + recall), precision, recall, total


def told_in(found: tuple[float, float, float, int]) -> str:
    """Figures as one reads them."""
    f1, precision, recall, total = found
    return f"F1 {f1:.3f} P {precision:.3f} R {recall:.3f} n {total}"


def grid() -> Iterable[Bars]:
    """The bars that are tried."""
    for prompt, reply, too in itertools.product(*GRID.values()):
        yield Bars(prompt=prompt, reply=reply, reply_too=too, midway=MIDWAY, further=FURTHER)


def cross_validated(
    cases: Sequence[Case], ridge: float, leave_out: Callable[[str], bool] = lambda name: False
) -> dict[int, float]:
    """The worth of every option by weights that its session had no part in."""
    ids = list(dict.fromkeys(case.session for case in cases))
    told: dict[int, float] = {}
    for fold in range(FOLDS):
        held_out = set(ids[fold::FOLDS])
        weights = fit([case for case in cases if case.session not in held_out], ridge, leave_out)
        told |= values([case for case in cases if case.session in held_out], weights)
    return told


def best_bars(cases: Sequence[Case], told: dict[int, float], labels: int) -> Bars:
    """The bars with the best F1 among the precise."""
    tried = [(figures(cases, told, bars, labels), bars) for bars in grid()]
    return max(tried, key=lambda one: (min(one[0][1], PRECISION), one[0][0]))[1]


def main() -> None:
    """Read, fit, choose the bars, print what it is worth, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eval", default="../shared/eval", help="the labelled set; relative to the repository's root")
    parser.add_argument("--out", type=Path, help="where to write the model; nowhere by default")
    parser.add_argument("--ridge", type=float, default=RIDGE)
    options = parser.parse_args()
    folder = folder_of(options.eval)
    scorer = scorer_of(folder)
    labels = scorer.Labels()
    sessions = sessions_of(folder)
    states = found_by(scorer, labels)
    parts = split(sessions)
    importance = [label["importance"] for label in labels.mem]
    cases = [case for session in sessions for case in cases_of(session, states, importance)]

    def part(name: str) -> tuple[list[Case], int]:
        return (
            [case for case in cases if case.session in parts[name]],
            sum(label["session"] in parts[name] for label in labels.mem),
        )

    tune, count = part("tune")
    told = cross_validated(tune, options.ridge)
    bars = best_bars(tune, told, count)
    weights = fit(tune, options.ridge)
    every = values(cases, weights)
    tables = values(cases, dict(worth.TABLES.weights))
    print(f"{'cross-validated':18} {told_in(figures(tune, told, bars, count))}  {bars}")
    for name in parts:
        chosen, count = part(name)
        by_model = told_in(figures(chosen, every, bars, count))
        by_tables = told_in(figures(chosen, tables, worth.TABLES.bars, count))
        print(f"{name:18} {by_model}   tables {by_tables}")
    if options.out:
        held = {
            "format": worth.FORMAT,
            "name": "worth-1",
            "about": "docs/model-card.md",
            "bars": {name: getattr(bars, name) for name in Bars.__dataclass_fields__},
            "weights": weights,
        }
        options.out.write_text(json.dumps(held, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
