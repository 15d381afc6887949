"""Trains csmd/data/relevance.json: how well a statement bears on a prompt, and which statements are of one thread; numpy only.

    python tests/bench/train_relevance.py prepare --eval DIR --homes DIR --model MODEL
    python tests/bench/train_relevance.py fit --eval DIR --homes DIR --model MODEL [--out relevance.json]
    python tests/bench/train_relevance.py judge --eval DIR --homes DIR --model MODEL [--leave-out PROJECT]

`prepare` makes five homes with the csmd on PATH (or --csmd). `fit` learns from the tune half of carry-over and from the
labelled questions, and writes the weights. `judge` prints figures of search and of what prompts are told, by the weights of
the package, or with --leave-out by weights that were fitted without that project. LoCoMo is never trained on.

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import relevance_data
from logistic import newton
from relevance_data import CARRY_OVER, LABELLED, Asker, Case, LabelledPair, RecallCase, Sets

from csmd.recall import ranking, results, visibility
from csmd.store.sqlite import Rows

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
TOLD_FROM = 0.3
#: What a candidate counts by the kind of its prompt: prompts of carry-over fully, few of the many ordinary turns.
COUNTS = {"question": 0.3, "unanswerable": 0.7, "ordinary": 0.1}
RIDGE, SCALE_RIDGE, ROUNDS, UNTIL = 1.0, 0.1, 100, 1e-9
#: Share of foreign tasks that stays silent alone and with ten together, by which `few` is weighed: with a model, by words.
SILENT, SILENT_WORDS = 0.62, 0.5
#: Share of foreign tasks that stays silent at 0.5 with ten together: with a model, by words.
FLOOR, FLOOR_WORDS = 0.61, 0.5


def main() -> int:
    args = arguments()
    sets = Sets(args.eval)
    if args.do == "prepare":
        args.homes.mkdir(parents=True, exist_ok=True)
        relevance_data.prepare(sets, args.homes, csmd=args.csmd, model=args.model)
        return 0
    if args.do == "fit":
        fitted = trained(sets, args.homes, args.model, args.snapshots)
        args.out.write_text(json.dumps({"weights": fitted}, indent=1) + "\n")
        print(f"wrote {args.out}")
        return 0
    weights, asker = ranking.weights(), Asker(args.model)
    if args.leave_out:
        cases = list(cases_of(sets, args.homes, asker, LABELLED))
        if not any(case.part == args.leave_out for case in cases):
            known = ", ".join(sorted({case.part for case in cases} - {"tune", "check"}))
            print(f"--leave-out {args.leave_out}: no such project; known: {known}", file=sys.stderr)
            return 2
        weights = weights | {"meaning": item_weights(cases, sets, args.homes, asker, leave_out=args.leave_out)}
    judge(sets, args.homes, asker, weights)
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="do", required=True)
    prepare = verbs.add_parser("prepare", help="import every set into a home of its own")
    prepare.add_argument("--csmd", default="csmd", help="the command to import with")
    fit = verbs.add_parser("fit", help="fit the weights and write them")
    fit.add_argument("--out", type=Path, default=ROOT / "csmd" / "data" / "relevance.json")
    fit.add_argument("--snapshots", type=Path, help="stores of real prompts; without them the weights of prompts stay")
    judged = verbs.add_parser("judge", help="print figures of search and of what prompts are told")
    judged.add_argument("--leave-out", metavar="PROJECT", help="fit without the questions of this project first")
    for verb in (prepare, fit, judged):
        verb.add_argument("--eval", type=Path, default=ROOT.parent / "shared" / "eval", help="the labelled sets")
        verb.add_argument("--homes", type=Path, required=True, help="where the homes are")
        verb.add_argument(
            "--model", type=Path, help="a directory for `csmd model add`; without it prompts are asked by words"
        )
    args = parser.parse_args()
    if args.do == "judge" and args.leave_out and args.model is None:
        judged.error("--leave-out needs --model: the weights of words are fitted on carry-over alone")
    return args


# --- fitting


def trained(sets: Sets, homes: Path, model: Path | None, snapshots: Path | None = None) -> dict[str, Weights]:
    """All sets of weights, rounded as they are stored; without a model those that need meaning are the package's own."""
    fitted = dict(ranking.weights())
    pairs = [pair for name in THREAD_HOMES for pair in relevance_data.labelled_pairs(sets, homes, name)]
    fitted["thread words"] = thread_weights(pairs, THREAD_WORDS)
    if model is not None:
        fitted["thread"] = thread_weights(pairs, THREAD)
        asker = Asker(model)
        fitted["meaning"] = item_weights(list(cases_of(sets, homes, asker, LABELLED)), sets, homes, asker)
        cases = list(relevance_data.recall_cases(sets, homes, "ten", asker))
        fitted["line"], fitted["line words"] = line_weights(cases, LINE), line_weights(cases, LINE_WORDS)
        if snapshots is not None:
            real = relevance_data.rows_of(sets.root / "prompts" / "prompts.jsonl")
            fitted["prompt"] = prompt_weights([*cases, *relevance_data.prompt_cases(snapshots, real, asker)])
    asker = Asker(None)
    fitted["words"] = item_weights(list(cases_of(sets, homes, asker, ())), sets, homes, asker, names=WORDS)
    return {name: {key: round(value, 3) for key, value in of.items()} for name, of in fitted.items()}


def cases_of(sets: Sets, homes: Path, asker: Asker, labelled: Iterable[str]) -> Iterator[Case]:
    """The prompts of carry-over in all its homes, then those of some labelled sets."""
    for name in CARRY_OVER:
        yield from relevance_data.carry_over_cases(sets, homes, name, asker)
    for name in labelled:
        yield from relevance_data.labelled_cases(sets, homes, name, asker)


def item_weights(
    cases: Sequence[Case], sets: Sets, homes: Path, asker: Asker, *, names: Sequence[str] = MEANING, leave_out: str = ""
) -> Weights:
    """The weights of items, calibrated: 0.5 is where csmd begins to tell."""
    by_words = names is WORDS
    raw = fit_items(cases, names, leave_out=leave_out)
    scaled = calibrate(raw, cases, silent=SILENT_WORDS if by_words else SILENT)
    kind = "words" if by_words else "meaning"
    with using({**ranking.weights(), kind: scaled}):
        foreign = list(foreign_scores(sets, homes, "ten", asker))
    return at_half(scaled, threshold(foreign, FLOOR_WORDS if by_words else FLOOR))


def fit_items(cases: Iterable[Case], names: Sequence[str], *, leave_out: str = "") -> Weights:
    """The weights by which right candidates are told from others: the tune half of carry-over and the labelled questions.

    A question of whose candidates none is right teaches nothing; neither does the check half, or the project that is left out.
    """
    rows, right, counts = [], [], []
    for case in cases:
        if case.part in ("check", leave_out):
            continue
        if case.kind == "question" and not any(one.right for one in case.candidates):
            continue
        for one in case.candidates:
            rows.append([one.features.get(name, 0.0) for name in names])
            right.append(one.right)
            counts.append(COUNTS.get(case.kind, 1.0))
    return logistic(rows, right, names, counts=counts)


def line_weights(cases: Iterable[RecallCase], names: Sequence[str]) -> Weights:
    """The weights by which the lines that a task needs are told from others of its conversations, on the tune half."""
    lines = [
        line
        for case in cases
        if case.kind == "task" and case.part == "tune" and any(one.right for one in case.lines)
        for line in case.lines
    ]
    return logistic(
        [[line.features.get(name, 0.0) for name in names] for line in lines], [line.right for line in lines], names
    )


def prompt_weights(cases: Iterable[RecallCase], *, leave_out: str = "") -> Weights:
    """The weights by which prompts that need something are told from others, 0.5 where telling begins."""
    of = [case for case in cases if case.part not in ("check", leave_out)]
    weights = logistic(
        [[case.values[name] for name in PROMPT] for case in of], [case.kind in ("task", "y") for case in of], PROMPT,
        counts=[PROMPT_COUNTS[case.kind] for case in of],
    )  # fmt: skip
    return at_half(weights, TOLD_FROM)


def thread_weights(pairs: Iterable[LabelledPair], names: Sequence[str]) -> Weights:
    """The weights by which a passage that changes a decision is told from others, on the tune half."""
    of = [pair for pair in pairs if pair.part == "tune"]
    return logistic(
        [[pair.features.get(name, 0.0) for name in names] for pair in of], [pair.right for pair in of], names
    )


def logistic(
    rows: Sequence[Sequence[float]], right: Sequence[bool], names: Sequence[str], *,
    counts: Sequence[float] | None = None, ridge: float = RIDGE,
) -> Weights:  # fmt: skip
    """Logistic regression with `ridge` on every weight but the intercept, which is named ""."""
    matrix = np.hstack([np.ones((len(rows), 1)), np.array(rows, dtype=np.float64)])
    each = np.ones(len(rows)) if counts is None else np.array(counts, dtype=np.float64)
    held_back = np.array([0.0, *[ridge] * len(names)])
    found = newton(matrix, np.array(right, dtype=np.float64), each, held_back, rounds=ROUNDS, until=UNTIL)
    return dict(zip(["", *names], map(float, found), strict=True))


# --- calibrating


def calibrate(raw: Weights, cases: Iterable[Case], *, silent: float) -> Weights:
    """Weights on the scale of a prompt: how surely its best candidate is of its own project.

    The scale comes from own against foreign and idle prompts. A good match by chance is likelier where there are more sessions:
    the weight of `few` makes the same share `silent` of foreign prompts, alone and with ten scenarios together.
    """
    rows, right = [], []
    foreign: dict[str, list[float]] = {"alone": [], "ten": []}
    few: dict[str, list[float]] = {"alone": [], "ten": []}
    for case in cases:
        if case.home not in foreign or not case.candidates:
            continue
        fewness = case.candidates[0].features["few"]
        few[case.home].append(fewness)
        if case.part != "tune" or case.kind not in ("task", "foreign", "idle"):
            continue
        best = max(linear(raw, one.features) for one in case.candidates)
        rows.append([best, fewness])
        right.append(case.kind == "task")
        if case.kind == "foreign":
            foreign[case.home].append(best)
    scale = logistic(rows, right, ["best", "few"], ridge=SCALE_RIDGE)
    bar = {name: float(np.quantile(of, silent)) for name, of in foreign.items()}
    apart = statistics.mean(few["alone"]) - statistics.mean(few["ten"])
    weights = {name: value * scale["best"] for name, value in raw.items()}
    weights[""] += scale[""]
    weights["few"] = scale["best"] * (bar["ten"] - bar["alone"]) / apart
    return weights


def linear(weights: Mapping[str, float], features: Mapping[str, float]) -> float:
    """The weighted sum of features, before the logistic."""
    return weights[""] + sum(weights.get(name, 0.0) * value for name, value in features.items())


def threshold(scores: Sequence[float], share: float) -> float:
    """The score that such a share of prompts does not reach."""
    ordered = sorted(scores)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def at_half(weights: Weights, bar: float) -> Weights:
    """The weights with their intercept moved such that what had the score `bar` has 0.5."""
    return {**weights, "": weights[""] - math.log(bar / (1 - bar))}


def foreign_scores(sets: Sets, homes: Path, name: str, asker: Asker) -> Iterator[float]:
    """The best score that would be told at each carry-over task in a foreign project, by the weights in use."""
    directories = relevance_data.directories_of(homes / name)
    with relevance_data.opened(homes / name) as rows:
        for one in sets.scenarios:
            foreign = relevance_data.foreign_directory(directories, directories[one["id"]])
            for task in one["prompts"] if foreign else ():
                yield asker.recall(rows, foreign, task["text"])[1]


@contextlib.contextmanager
def using(weights: dict[str, Weights]) -> Iterator[None]:
    """Has csmd score by other weights for a while."""
    kept: Callable[[], dict[str, Weights]] = ranking.weights
    ranking.weights = lambda: weights  # type: ignore[assignment]
    try:
        yield
    finally:
        ranking.weights = kept  # type: ignore[assignment]


# --- judging


def judge(sets: Sets, homes: Path, asker: Asker, weights: dict[str, Weights]) -> None:
    """Prints the figures of docs/benchmarks.md: carry-over in its three homes, then search and prompts of the labelled sets."""
    with using(weights):
        for name in CARRY_OVER:
            judge_carry_over(sets, homes, name, asker)
        for name in LABELLED:
            judge_labelled(sets, homes, name, asker)


def judge_carry_over(sets: Sets, homes: Path, name: str, asker: Asker, *, floor: float = 0.5) -> None:
    """Prints how many tasks are told what they need, all and of the check half, and how many prompts are met with silence."""
    directories, carry = relevance_data.directories_of(homes / name), sets.carry
    told: dict[str, list[bool]] = {"tune": [], "check": []}
    old, tokens, idle = [], [], []
    with relevance_data.opened(homes / name) as rows:
        for one in sets.scenarios:
            part = "tune" if one["id"] in sets.tune else "check"
            for task in one["prompts"]:
                text, best = asker.recall(rows, directories[one["id"]], task["text"])
                text = text if best >= floor else ""
                told[part].append(carry.tells(text, task["says"]))
                if task.get("stale"):
                    old.append(carry.tells_old(text, task))
                if text:
                    tokens.append(-(-len(text.encode()) // 4))
            nothing = [each["text"] for each in one["silent"] if not each.get("work", True)]
            idle += [asker.recall(rows, directories[one["id"]], said)[1] < floor for said in nothing]
    silent = [score < floor for score in foreign_scores(sets, homes, name, asker)]
    print(
        f"carry-over, {name}: told {mean(told['tune'] + told['check']):.3f}, check {mean(told['check']):.3f}; "
        f"old in its place {sum(old)} of {len(old)}; foreign silent {sum(silent)} of {len(silent)}, idle {sum(idle)} of {len(idle)}; "
        f"tokens median {statistics.median(tokens or [0]):.0f}, most {max(tokens, default=0)}"
    )


def judge_labelled(sets: Sets, homes: Path, name: str, asker: Asker, *, floor: float = 0.5) -> None:
    """Prints hit@5 of search, superseded turns above valid ones, and what questions are told, project by project."""
    scorer, questions = sets.scorer(name), sets.questions(name)
    with relevance_data.opened(homes / name) as rows:
        for project in sorted({relevance_data.project_of(one, name) for one in questions}):
            of = [one for one in questions if relevance_data.project_of(one, name) == project]
            found = {one["question"]: search(rows, one, asker) for one in of}
            told = {}
            for one in of:
                text, best = asker.recall(rows, one["cwd"], one["question"])
                told[one["question"]] = text if best >= floor else ""
            answerable = [one for one in of if one["evidence"]]
            evidence = [_tells(told[one["question"]], one, scorer) for one in answerable]
            unanswerable = [not told[one["question"]] for one in of if not one["evidence"]]
            print(
                f"{project}: {retrieval(scorer, found, of)}; evidence told {mean(evidence):.3f}, "
                f"unanswerable silent {sum(unanswerable)} of {len(unanswerable)}"
            )
        if name == "eval":
            cwd, ordinary = questions[0]["cwd"], list({one["text"]: one for one in sets.ordinary()}.values())
            silent = [asker.recall(rows, one.get("cwd", cwd), one["text"])[1] < floor for one in ordinary]
            print(f"ordinary turns silent {sum(silent)} of {len(silent)}")


Hit = dict[str, Any]


def search(rows: Rows, question: Mapping[str, Any], asker: Asker) -> list[Hit]:
    """The ten best hits of a question in its directory."""
    rows.of_this_read = {}
    hits, _ = results.find(
        rows, question["question"], projects=visibility.scopes(rows, question["cwd"]), kind="all", limit=10,
        embed=asker.embed(rows), now=datetime.now(UTC),
    )  # fmt: skip
    return [
        {"uuids": [name.partition("/")[0] for name in hit.source_uuids], "session": hit.session_id, "text": hit.text}
        for hit in hits
    ]


def retrieval(scorer: Any, found: Mapping[str, list[Hit]], questions: list[dict[str, Any]]) -> str:
    """The figures of search by a set's own scorer, of some of its questions."""
    if hasattr(scorer, "retrieve"):
        scorer.rd = lambda _: questions
        scored = scorer.retrieve(found, quiet=True)
        turn, session, stale = scored["turn"]["hit@5"], scored["session"]["hit@5"], scored["stale_above_new"]
    else:
        scorer.load = lambda _: questions
        scored = scorer.score_retrieval(found, quiet=True)
        turn, session = scored["turn@5"], scored["session@5"]
        stale = f"{scored['stale_above_new']}/{scored['with_superseded']}"
    return f"turn hit@5 {turn:.3f}, session {session:.3f}, stale above new {stale}"


def _quotes(question: Mapping[str, Any], scorer: ModuleType) -> Iterator[tuple[str, set[str]]]:
    for each in question["evidence"]:
        yield each["uuid"], set(each["quote_words"]) if "quote_words" in each else scorer.words(each.get("quote"))


def _tells(text: str, question: Mapping[str, Any], scorer: ModuleType) -> bool:
    said = scorer.words(text)
    return any(len(quote) >= 3 and len(quote & said) >= 0.4 * len(quote) for _, quote in _quotes(question, scorer))


def mean(values: Sequence[bool]) -> float:
    """The share that is true."""
    return sum(values) / max(1, len(values))


if __name__ == "__main__":
    sys.exit(main())
