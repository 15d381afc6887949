"""Fits the weights of csmd/recall/{asking,relevance}.py on half of a labelled set, and scores what prompts are told on both halves.

    python tests/bench/train_recall.py --home HOME --model DIR [--eval DIR] [--fit]

HOME (a CSMD_HOME whose daemon is down) holds the set; DIR is the embedding model it was made with. Tuned on: questions
and ordinary turns of the user's sessions (labelled.TUNED_ON) up to the middle of their time, every second unanswerable
prompt; of the prompts that were written for ten invented projects (tests/data/prompts.json) five projects'. Without --fit only the figures are printed, by half and by question kind, with a vector and by words alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import labelled

from csmd.config import Settings
from csmd.recall import asking, relevance, stage, stage_prompt
from csmd.store import embed_worker, sqlite

RIDGE = 0.1
STEPS = 60
#: How much an unanswerable prompt counts beside an answerable one, of which the set has many more.
UNANSWERABLE = 3.0
#: What is asked of each fit on the half it is made on: the share of prompts that must be silent, or be told.
SILENT = 0.87
WRITTEN = Path(__file__).resolve().parent.parent / "data" / "prompts.json"
TOLD = {"turn": 0.97, "words": 0.65}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--eval", default="../shared/eval")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--show", action="store_true", help="what is silent or told against its label")
    args = parser.parse_args()
    folder = labelled.folder_of(args.eval)
    score = labelled.scorer(folder) if hasattr(labelled, "scorer") else _scorer(folder)
    encode = embed_worker.load_encoder(args.model)
    with sqlite.opened(args.home / "csmd.db", readonly=True) as rows:
        name = str(rows.value("select name from vector_models order by seq desc limit 1"))
        prompts = _prompts(rows, folder)
        key = b"no tombstone is looked for"
        vectors = {one["prompt"]: encode([one["prompt"]])[0] for one in prompts}
        for one in prompts:
            embed = lambda asked: (vectors[asked], name)  # noqa: E731
            places = stage.scopes(rows, one["cwd"])
            for way, hand in (("turn", embed), ("words", None)):
                one[way] = stage_prompt.found(rows, places, "", one["prompt"], hand, [], key)
        if args.fit:
            _fit(prompts)
        settings = Settings()
        for hand in (True, False):
            for one in prompts:
                places = stage.scopes(rows, one["cwd"])
                embed = (lambda asked: (vectors[asked], name)) if hand else None
                one["told"] = stage_prompt.prompt_recall(
                    rows, places=places, session_id="", prompt=one["prompt"], floor=settings.recall_floor,
                    max_tokens=settings.recall_max_tokens, max_items=settings.recall_max_items, embed=embed,
                    key=key,
                ).text  # fmt: skip
            print(f"== {'with a vector' if hand else 'by words alone'}")
            for half, ones in (
                ("tuned on", [o for o in prompts if o["tune"]]), ("checked on", [o for o in prompts if not o["tune"]]),
                ("all", prompts),
            ):  # fmt: skip
                print(half, _figures(ones, score))
            if args.show:
                _show(prompts, score)
    return 0


def _scorer(folder: Path) -> Any:
    import importlib.util

    spec = importlib.util.spec_from_file_location("labelled_score", folder / "score.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _prompts(rows: sqlite.Rows, folder: Path) -> list[dict[str, Any]]:
    began = {str(ident): str(at) for ident, at in rows.all(
        "select s.id, min(t.at) from sessions s join turns t on t.session_seq = s.seq group by s.id"
    )}  # fmt: skip
    read = lambda name: [json.loads(line) for line in (folder / name).read_text().splitlines() if line.strip()]  # noqa: E731
    questions, ordinary = read("questions.jsonl"), {row["text"]: row for row in read("negatives.jsonl")}
    home = next(q["cwd"] for q in questions if labelled.TUNED_ON in q["cwd"])
    his = [began.get(q["evidence"][0]["session"], "9") for q in questions if q["evidence"] and q["cwd"] == home]
    middle = sorted(his)[len(his) // 2]
    found: list[dict[str, Any]] = []
    for number, q in enumerate(questions):
        kind = "answerable" if q["evidence"] else "unanswerable"
        first = (
            q["cwd"] == home and began.get(q["evidence"][0]["session"], "9") < middle if q["evidence"] else number % 2
        )
        found.append({"prompt": q["question"], "cwd": q["cwd"], "kind": kind, "tune": bool(first), "row": q})
    for row in ordinary.values():
        first = began.get(row["session"], "9") < middle
        found.append({"prompt": row["text"], "cwd": home, "kind": "ordinary", "tune": first, "row": row})
    return found


def _answers(one: dict[str, Any], score: Any) -> bool:
    said = score.words(one["told"])
    quotes = [score.words(e["quote"]) for e in one["row"]["evidence"]]
    return any(len(q) >= 3 and len(q & said) >= 0.4 * len(q) for q in quotes)


def _figures(ones: Sequence[dict[str, Any]], score: Any) -> str:
    of = {kind: [o for o in ones if o["kind"] == kind] for kind in ("answerable", "unanswerable", "ordinary")}
    got = [o for o in of["answerable"] if _answers(o, score)]
    size = sorted(len(o["told"]) / 4 for o in of["answerable"])
    kinds: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for one in of["answerable"]:
        kinds[one["row"]["kind"]][0] += one in got
        kinds[one["row"]["kind"]][1] += 1
    silent = {kind: f"{sum(not o['told'] for o in rows)}/{len(rows)}" for kind, rows in of.items()}
    share = f"{len(got) / max(1, len(size)):.3f}"
    return f"evidence {share}, tokens {median(size):.0f}/{max(size):.0f}, silent {silent}, by kind " + ", ".join(
        f"{kind} {a}/{b}" for kind, (a, b) in sorted(kinds.items())
    )


def _show(prompts: Sequence[dict[str, Any]], score: Any) -> None:
    for one in prompts:
        wrong = not _answers(one, score) if one["kind"] == "answerable" else bool(one["told"])
        if wrong:
            sure = asking.asks(one["prompt"]), relevance.grounded(one["turn"].ground)
            print(
                f"{one['kind'][:5]} {'told' if one['told'] else '-':4} {sure[0]:.2f} {sure[1]:.2f} {one['prompt'][:100]!r}"
            )


def _fit(prompts: Sequence[dict[str, Any]]) -> None:
    tuned = [one for one in prompts if one["tune"]]
    asked = [(asking.form(o["prompt"]), float(o["kind"] != "ordinary")) for o in tuned]
    told = _even([*asked, *((asking.form(prompt), wanted) for prompt, wanted in written(learned=True))])
    weights = _logistic(told)
    silent = sorted(_value(weights, f) for f, wanted in asked if not wanted)
    _print(asking, "WEIGHTS", weights, silent[min(len(silent) - 1, int(SILENT * len(silent)))] + 1e-6)
    for half in (True, False):
        values = [
            (_value(weights, asking.form(prompt)) + asking.WEIGHTS[""] - weights[""], wanted)
            for prompt, wanted in written(learned=half)
        ]
        right = {kind: [(value > 0) == bool(kind) for value, wanted in values if wanted == kind] for kind in (1.0, 0.0)}
        print(
            "written,",
            "learned" if half else "unseen",
            {kind: f"{sum(ones)}/{len(ones)}" for kind, ones in right.items()},
        )
    for way, constant in (("turn", "GROUND_WEIGHTS"), ("words", "WORDS_WEIGHTS")):
        spoken = [
            (relevance.features(o[way].ground), float(o["kind"] == "answerable"), UNANSWERABLE if o["kind"] != "answerable" else 1.0)
            for o in tuned
            if o["kind"] != "ordinary"
        ]  # fmt: skip
        weights = _logistic(spoken)
        told = sorted(_value(weights, f) for f, wanted, _ in spoken if wanted)
        _print(relevance, constant, weights, told[int((1 - TOLD[way]) * len(told))])


def written(*, learned: bool) -> list[tuple[str, float]]:
    """The written prompts of the projects that are learned from, or of the others, each with whether it asks."""
    projects = [one for one in json.loads(WRITTEN.read_text()).values() if one["learned"] is learned]
    asks = [(prompt, 1.0) for one in projects for prompt in one["asks"]]
    return asks + [(prompt, 0.0) for one in projects for prompt in one["ordinary"]]


def _even(examples: Sequence[tuple[dict[str, float], float]]) -> list[tuple[dict[str, float], float, float]]:
    """Examples weighted so that what asks and what does not count the same."""
    asks = sum(wanted for _, wanted in examples)
    return [(found, wanted, (len(examples) - asks) / asks if wanted else 1.0) for found, wanted in examples]


def _value(weights: dict[str, float], features: dict[str, float]) -> float:
    return weights[""] + sum(weights[name] * value for name, value in features.items())


def _print(module: Any, name: str, weights: dict[str, float], threshold: float) -> None:
    shifted = {**weights, "": weights[""] - threshold}
    print(name, "=", {key: round(value, 2) for key, value in shifted.items()})
    getattr(module, name).clear()
    getattr(module, name).update({key: round(value, 2) for key, value in shifted.items()})


def _logistic(examples: Sequence[tuple[dict[str, float], float, float]]) -> dict[str, float]:
    """Newton's steps of a ridge regression; the intercept is free."""
    import numpy

    names = list(examples[0][0])
    x = numpy.array([[1.0, *(f[name] for name in names)] for f, _, _ in examples])
    y, share = numpy.array([e[1] for e in examples]), numpy.array([e[2] for e in examples])
    ridge, b = RIDGE * numpy.diag([1e-6, *([1.0] * len(names))]), numpy.zeros(len(names) + 1)
    for _ in range(STEPS):
        p = 1 / (1 + numpy.exp(-(x @ b)))
        slope = x.T @ (share * (p - y)) + ridge @ b
        b = b - numpy.linalg.solve((x * (share * p * (1 - p))[:, None]).T @ x + ridge, slope)
    return dict(zip(["", *names], (float(value) for value in b), strict=True))


if __name__ == "__main__":
    sys.exit(main())
