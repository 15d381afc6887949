"""Trains csmd/data/relevance.json: how well a statement bears on a prompt, and which statements are of one thread; numpy only.

    python tests/bench/train_relevance.py prepare --eval DIR --homes DIR --model MODEL
    python tests/bench/train_relevance.py fit --eval DIR --homes DIR --model MODEL [--out relevance.json] [NAME ...]
    python tests/bench/train_relevance.py judge --eval DIR --homes DIR --model MODEL

`prepare` makes the homes with the csmd on PATH (or --csmd), of each repository with labelled prompts a store before every
session whose prompts are labelled. `fit` writes the weights, all or those of the given names. `judge` prints what prompts
are told, at real prompts by weights fitted without their repository. LoCoMo is never trained on.

The threads of a home are those of the weights that it was imported with: after a change of these, prepare new homes.
The same homes give the same file.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import relevance_data
from logistic import newton
from relevance_data import CARRY_OVER, LABELLED, Asker, Case, LabelledPair, Sets

from csmd.recall import prompt, ranking

Weights = dict[str, float]

ROOT = Path(__file__).resolve().parent.parent.parent
SHARED = ["rarest", "user", "asks", "binding", "identifiers", "telling", "kept"]
#: The features of an item with a model and without, of a thread with a model and without.
MEANING = ["meaning", "near meaning", "session meaning", "near shared", *SHARED]
WORDS = ["shared", "near shared", "session shared", *SHARED]
THREAD_WORDS = ["shared", "rarest", "overlap", "lead shared", "user", "telling", "same session"]
THREAD = ["meaning", "lead meaning", *THREAD_WORDS]
#: The homes of whose pairs the threads are fitted: with all scenarios in one project nearly all pairs are of two scenarios.
THREAD_HOMES = ("alone", "ten")
#: The features of a line with a model and without, and of a prompt with what was found for it.
LINE = ["meaning", "warm", "led", "user", "lasting", "telling"]
LINE_WORDS = ["shared", *LINE[1:]]
PROMPT = ["lift", "shared", "subject"]
#: What a prompt counts by its kind, and how likely one needs something that is told something.
PROMPT_COUNTS = {"task": 1.0, "foreign": 1.0, "silent": 0.3, "idle": 1.0, "y": 3.0, "n": 1.5}
TOLD_FROM = 0.25
#: What a candidate counts by the kind of its prompt: prompts of carry-over fully, few of the many ordinary turns.
COUNTS = {"question": 0.3, "unanswerable": 0.7, "ordinary": 0.1}
RIDGE, ROUNDS, UNTIL = 1.0, 100, 1e-9


def main() -> int:
    args = arguments()
    sets = Sets(args.eval)
    if args.do == "prepare":
        relevance_data.prepare(sets, args.homes, csmd=args.csmd, model=args.model)
    elif args.do == "fit":
        fitted = ranking.weights() | trained(sets, args.homes, Asker(args.model), args.names)
        args.out.write_text(json.dumps({"weights": fitted}, indent=1) + "\n")
        print(f"wrote {args.out}")
    else:
        judge(sets, args.homes, Asker(args.model))
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="do", required=True)
    prepare = verbs.add_parser("prepare", help="import every set into a home of its own")
    prepare.add_argument("--csmd", default="csmd", help="the command to import with")
    fit = verbs.add_parser("fit", help="fit the weights and write them")
    fit.add_argument("--out", type=Path, default=ROOT / "csmd" / "data" / "relevance.json")
    fit.add_argument("names", nargs="*", help="the weights to fit; the others stay", metavar="NAME")
    judged = verbs.add_parser("judge", help="print what prompts are told")
    for verb in (prepare, fit, judged):
        verb.add_argument("--eval", type=Path, default=ROOT.parent / "shared" / "eval", help="the labelled sets")
        verb.add_argument("--homes", type=Path, required=True, help="where the homes are")
        verb.add_argument("--model", type=Path, required=True, help="a directory for `csmd model add`")
    return parser.parse_args()


# --- fitting


def trained(sets: Sets, homes: Path, asker: Asker, names: Sequence[str]) -> dict[str, Weights]:
    """The sets of weights of these names (of all for none), rounded as they are stored."""

    @cache
    def lines() -> list[Case]:
        return list(relevance_data.recall_cases(sets, homes, "ten", asker))

    @cache
    def pairs() -> list[LabelledPair]:
        return [pair for name in THREAD_HOMES for pair in relevance_data.labelled_pairs(sets, homes, name)]

    fits: dict[str, Callable[[], Weights]] = {
        "meaning": lambda: item_weights(cases_of(sets, homes, asker, LABELLED), MEANING),
        "words": lambda: item_weights(cases_of(sets, homes, Asker(None), ()), WORDS),
        "thread": lambda: thread_weights(pairs(), THREAD),
        "thread words": lambda: thread_weights(pairs(), THREAD_WORDS),
        "line": lambda: line_weights(lines(), LINE),
        "line words": lambda: line_weights(lines(), LINE_WORDS),
        "prompt": lambda: prompt_weights([*lines(), *relevance_data.prompt_cases(sets, homes, asker)]),
    }
    return {
        name: {key: round(value, 3) for key, value in fit().items()}
        for name, fit in fits.items()
        if name in (names or fits)
    }


def cases_of(sets: Sets, homes: Path, asker: Asker, labelled: Iterable[str]) -> Iterator[Case]:
    """The prompts of carry-over in all its homes, then those of some labelled sets."""
    for name in CARRY_OVER:
        yield from relevance_data.carry_over_cases(sets, homes, name, asker)
    for name in labelled:
        yield from relevance_data.labelled_cases(sets, homes, name, asker)


def item_weights(cases: Iterable[Case], names: Sequence[str]) -> Weights:
    """The weights by which right candidates are told from others: the tune half of carry-over and the labelled questions.

    They only order what is found for a prompt. A question of whose candidates none is right teaches nothing.
    """
    rows, right, counts = [], [], []
    for case in cases:
        if case.part == "check" or (case.kind == "question" and not any(one.right for one in case.candidates)):
            continue
        for one in case.candidates:
            rows.append([one.features.get(name, 0.0) for name in names])
            right.append(one.right)
            counts.append(COUNTS.get(case.kind, 1.0))
    return logistic(rows, right, names, counts)


def line_weights(cases: Iterable[Case], names: Sequence[str]) -> Weights:
    """The weights by which the lines that a task needs are told from others of its conversations, on the tune half."""
    lines = [
        line
        for case in cases
        if case.kind == "task" and case.part == "tune" and any(one.right for one in case.candidates)
        for line in case.candidates
    ]
    rows = [[line.features.get(name, 0.0) for name in names] for line in lines]
    return logistic(rows, [line.right for line in lines], names)


def prompt_weights(cases: Iterable[Case], *, leave_out: str = "") -> Weights:
    """The weights by which prompts that need something are told from others, 0.5 where telling begins.

    Neither the check half nor the repository that is left out teaches anything, nor a prompt that is never told something.
    """
    of = [
        case
        for case in cases
        if case.part not in ("check", leave_out) and (case.kind != "n" or case.values["subject"] >= prompt.MIN_SUBJECT)
    ]
    rows = [[case.values[name] for name in PROMPT] for case in of]
    right = [case.kind in ("task", "y") for case in of]
    weights = logistic(rows, right, PROMPT, [PROMPT_COUNTS[case.kind] for case in of])
    return {**weights, "": weights[""] - math.log(TOLD_FROM / (1 - TOLD_FROM))}


def thread_weights(pairs: Iterable[LabelledPair], names: Sequence[str]) -> Weights:
    """The weights by which a passage that changes a decision is told from others, on the tune half."""
    of = [pair for pair in pairs if pair.part == "tune"]
    rows = [[pair.features.get(name, 0.0) for name in names] for pair in of]
    return logistic(rows, [pair.right for pair in of], names)


def logistic(
    rows: Sequence[Sequence[float]], right: Sequence[bool], names: Sequence[str], counts: Sequence[float] = ()
) -> Weights:
    """Logistic regression held back by RIDGE but for its intercept, which is named ""; every row counts 1 without `counts`."""
    matrix = np.hstack([np.ones((len(rows), 1)), np.array(rows, dtype=np.float64)])
    each = np.array(counts or [1.0] * len(rows), dtype=np.float64)
    held_back = np.array([0.0, *[RIDGE] * len(names)])
    found = newton(matrix, np.array(right, dtype=np.float64), each, held_back, rounds=ROUNDS, until=UNTIL)
    return dict(zip(["", *names], map(float, found), strict=True))


# --- judging


def judge(sets: Sets, homes: Path, asker: Asker) -> None:
    """Prints the figures of docs/benchmarks.md: carry-over alone and ten together, then real prompts of each repository."""
    for name in THREAD_HOMES:
        judge_carry_over(sets, homes, name, asker)
    cases = [*relevance_data.recall_cases(sets, homes, "ten", asker)]
    cases += relevance_data.prompt_cases(sets, homes, asker)
    total: Counter[str] = Counter()
    for repo, counts in judge_prompts(sets, homes, asker, lambda repo: prompt_weights(cases, leave_out=repo)):
        print(f"{repo}: {_figures(counts)}")
        total += counts
    print(f"real prompts: {_figures(total)}")


def judge_carry_over(sets: Sets, homes: Path, name: str, asker: Asker) -> None:
    """Prints how many tasks are told what they need, all and of the check half, and what is told that nobody needs."""
    directories, carry = relevance_data.directories_of(homes / name), sets.carry
    told: dict[str, list[bool]] = {"tune": [], "check": []}
    old, tokens, idle, foreign = [], [], [], []
    with relevance_data.opened(homes / name) as rows:
        for one in sets.scenarios:
            own = directories[one["id"]]
            for task in one["prompts"]:
                text = asker.recall(rows, own, task["text"])
                told[relevance_data.part_of(sets, one)].append(carry.tells(text, task["says"]))
                old += [carry.tells_old(text, task)] if task.get("stale") else []
                tokens.append(len(text.encode()) // 4)
                elsewhere = asker.recall(rows, relevance_data.foreign_directory(directories, own), task["text"])
                foreign.append(len(elsewhere.encode()) // 4)
            idle += [not asker.recall(rows, own, one["text"]) for one in one["silent"] if not one.get("work", True)]
    print(
        f"carry-over, {name}: told {statistics.mean(told['tune'] + told['check']):.3f}, check {statistics.mean(told['check']):.3f}; "
        f"old in its place {sum(old)} of {len(old)}; idle silent {sum(idle)} of {len(idle)}; "
        f"tokens median {statistics.median(tokens):.0f}, in a foreign project mean {statistics.mean(foreign):.0f}"
    )


def judge_prompts(
    sets: Sets, homes: Path, asker: Asker, fitted: Callable[[str], Weights]
) -> Iterator[tuple[str, Counter[str]]]:
    """What is told at the real prompts of each repository by the weights that are `fitted` for it, counted as their scorer counts."""
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    by_repo: dict[str, Weights] = {}
    for rows, store, asked in relevance_data.snapshots(sets, homes):
        repo = store["repo"]
        by_repo[repo] = by_repo.get(repo) or fitted(repo)
        with using({**ranking.weights(), "prompt": by_repo[repo]}):
            for one in asked:
                text = asker.recall(rows, store["cwd"], one["prompt"])
                counted[repo].update(_count(sets, one, text))
    yield from counted.items()


def _count(sets: Sets, one: dict[str, Any], text: str) -> Iterator[str]:
    """What is counted of a prompt and what it was told; a pointer is one line with the beginning of its session's id."""
    words, pieces = sets.replay.words, sets.replay.pieces
    pointers = [line for line in text.splitlines() if line.startswith("earlier: ") or "`csmd session show" in line]
    is_told = bool(text) and not pointers
    yield from [one["need"]] + [f"{one['need']} told"] * is_told + [f"{one['need']} tokens"] * (len(text.encode()) // 4)
    needed = [each for each in one["candidates"] if each["label"] == 2]
    if needed:
        said = words(text) if is_told else set()
        wanted = [words(piece) for each in needed for piece in pieces(each["text"])]
        hit = any(len(said & piece) >= 0.4 * len(piece) for piece in wanted if len(piece) >= 5)
        pointed = not hit and any(each["session"][:6] in line for each in needed for line in pointers)
        yield from ["findable"] + ["findable told"] * hit + ["findable pointed"] * pointed


def _figures(of: Counter[str]) -> str:
    return (
        f"need nothing {of['n']}: told {of['n told'] / max(1, of['n']):.2f}, tokens {of['n tokens'] / max(1, of['n']):.0f}; "
        f"findable {of['findable']}: told {of['findable told']}, pointed at {of['findable pointed']}"
    )


@contextlib.contextmanager
def using(weights: dict[str, Weights]) -> Iterator[None]:
    """Has csmd score by other weights for a while."""
    kept: Callable[[], dict[str, Weights]] = ranking.weights
    ranking.weights = lambda: weights  # type: ignore[assignment]
    try:
        yield
    finally:
        ranking.weights = kept  # type: ignore[assignment]


if __name__ == "__main__":
    sys.exit(main())
