"""Trains csmd/data/chooser.json and judges what csmd chooses by leaving one project out; numpy only, no daemon, no store.

    python tests/bench/train_chooser.py prepare [--eval DIR]     writes the features of every candidate (FEATURES)
    python tests/bench/train_chooser.py fit [--out FILE]         writes the weights, from FEATURES and sayings.txt
    python tests/bench/train_chooser.py judge [--eval DIR]       fits on all projects but one and scores that one, each
    python tests/bench/train_chooser.py ablate [--eval DIR]      the same with one lever less each time

A candidate counts as worth keeping when it states a label (projects.py). Weights of the sentences that users state are
fitted to tests/data/sayings.txt and, with --eval, to half of the set's written sentences. The same input gives the same
file.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import hashlib
import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from labelled import ROOT, folder_of, line_of, scorer_of, sources_of
from logistic import newton
from projects import Figures, Project, checked, lines_of, projects_of
from sayings import sayings

from csmd.conversation import StoredTurn
from csmd.extraction import candidate_passages, chooser, passage_scores, prompt_assertions
from csmd.extraction.exchange_sources import Source
from csmd.extraction.passage_scores import FEATURES, Weights
from csmd.hosts.claude import transcript
from csmd.text.tokens import STOP_WORDS, normalise, words_of
from csmd.vocabulary import PROMPTS

DATA = ROOT / "tests" / "data" / "chooser_features.json.gz"
OUT = ROOT / "csmd" / "data" / "chooser.json"
#: What a passage must be worth; how much weights are held back; what a label of importance 3 counts for.
BAR, RIDGE, IMPORTANT = 0.52, 3.0, 2.0
#: The same of sentences; a word is known that so many of the written sentences have, and a sign that so many show.
SENTENCE_RIDGE, KNOWN_WORDS, RARE, SMALL = 2.0, 2, 3, 0.05


class Candidate(NamedTuple):
    """A candidate of a turn: its features, whether it states a label, and what it counts for."""

    features: list[float]
    wanted: bool
    counts: float


def candidates(project: Project) -> Iterator[Candidate]:
    """Every candidate of a project's sources; those of a long turn count for less each."""
    for session in project.sessions:
        prompt: StoredTurn | None = None
        for source in sources_of(session):
            if source.role in chooser.SKIPPED_ROLES or transcript.WRITTEN_FOR_USER.match(source.turn.text):
                continue
            if source.role == "prompt":
                prompt = source.turn
            yield from _of_source(project, session.id, source, None if source.role == "prompt" else prompt)


def _of_source(project: Project, session: str, source: Source, prompt: StoredTurn | None) -> Iterator[Candidate]:
    user = source.turn.kind in PROMPTS
    found = candidate_passages.find_passages(chooser.split_turn(source.turn), "user" if user else "assistant")
    prompt_content = chooser.read_content(prompt)
    for one in found:
        cites = [line_of(source.turn.uuid), *lines_of(chooser.cite(one.content, prompt, "reply"))]
        states = project.states(session, cites, one.text)
        important = any(project.labels[number].importance == 3 for number in states)
        yield Candidate(
            [
                round(value, 3)
                for value in passage_scores.measure_features(
                    one, user=user, prompt_content=prompt_content, among=len(found)
                )
            ],
            bool(states),
            round((IMPORTANT if important else 1.0) / math.sqrt(len(found)), 4),
        )


def fitted(rows: Sequence[Candidate], *, without: frozenset[str] = frozenset()) -> dict[str, float]:
    """The weights of FEATURES that fit candidates best."""
    kept = np.array([name not in without for name in FEATURES], float)
    matrix = np.array([row.features for row in rows], float) * kept
    wanted, counts = np.array([row.wanted for row in rows], float), np.array([row.counts for row in rows])
    held_back = np.full(len(FEATURES), RIDGE)
    held_back[0] = 1e-3
    found = newton(matrix, wanted, counts, held_back, rounds=30, until=1e-5)
    return {name: round(float(weight), 4) for name, weight in zip(FEATURES, found, strict=True)}


def asserting(folder: Path | None) -> dict[str, float]:
    """The weights of a sentence's signs; the words that count are the language's and those of the written sentences."""
    own = sayings()
    rows = [(one.text, one.gate != "none") for one in own]
    common = collections.Counter(word for one in own for word in set(words_of(one.text)))
    known = {word for word, count in common.items() if count >= KNOWN_WORDS} | STOP_WORDS
    if folder is not None:
        written = [row for row in scorer_of(folder).rd("sentences.jsonl") if row["source"] == "written"]
        rows += [(row["text"], row["gate"] != "none") for row in written if is_learned(row["text"])]
    signs = [passage_scores.sentence_features(said) for said, _ in rows]
    shown = collections.Counter(
        sign for each in signs for sign in each if sign.strip("^") in known or not sign[-1:].isalpha()
    )
    names = ["", *sorted(sign for sign, count in shown.items() if count >= RARE)]
    place = {name: number for number, name in enumerate(names)}
    matrix = np.zeros((len(rows), len(names)))
    matrix[:, 0] = 1.0
    for number, each in enumerate(signs):
        matrix[number, [place[sign] for sign in each if sign in place]] = 1.0
    held_back = np.full(len(names), SENTENCE_RIDGE)
    held_back[0] = 1e-3
    wanted = np.array([holds for _, holds in rows], float)
    found = newton(matrix, wanted, np.ones(len(rows)), held_back, rounds=25, until=1e-4)
    pairs = zip(names, found, strict=True)
    return {name: round(float(weight), 3) for name, weight in pairs if abs(weight) >= SMALL or not name}


def is_learned(text: str) -> bool:
    """Whether a written sentence is of the half that is learned from: those with an even hash."""
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % 2 == 0


def memories(project: Project, weights: Weights) -> Iterator[tuple[str, list[str], str]]:
    """(session, cited lines, text) of what csmd chooses; a text that was said before confirms and adds nothing."""
    known: set[str] = set()
    for session in project.sessions:
        for one in chooser.choose(sources_of(session), weights=weights):
            if (key := normalise(one.statement.text)) not in known:
                known.add(key)
                yield session.id, lines_of([one.turn.uuid, *one.statement.also]), one.statement.text


def judged(
    projects: Sequence[Project], asserted: dict[str, float], *, without: frozenset[str] = frozenset(), bar: float = BAR
) -> dict[str, Figures]:
    """The figures of each project by weights that it had no part in."""
    rows = {project.name: list(candidates(project)) for project in projects}
    found = {}
    for project in projects:
        others = [row for name, of in rows.items() if name != project.name for row in of]
        weights = Weights(bar, fitted(others, without=without), asserted)
        found[project.name] = project.figures(memories(project, weights))
    return found


def told(found: dict[str, Figures]) -> str:
    """The figures of all projects on one line, and their means."""
    each = "   ".join(
        f"{name} {one.f1:.3f} ({one.precision:.2f} {one.recall:.2f} {one.important:.2f} {one.memories})"
        for name, one in found.items()
    )
    return f"{each}   mean F1 {_mean(found, 'f1'):.3f} i3 {_mean(found, 'important'):.3f}"


def _mean(found: dict[str, Figures], name: str) -> float:
    return sum(getattr(one, name) for one in found.values()) / len(found)


@contextmanager
def setting(module: Any, name: str, value: Any) -> Iterator[None]:
    """A name of a module as another value for a while."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def levers() -> dict[str, tuple[Any, str, Any]]:
    """What can be left out, and what is set, where, for that; features are left out by name."""
    found: dict[str, tuple[Any, str, Any]] = {
        "no way of its own for assertions": (prompt_assertions, "DOCUMENT_ROWS", 0),
        "one statement of a summary, too": (chooser, "MAX_STATEMENTS", {}),
        "at most two statements of any turn": (
            chooser,
            "MAX_STATEMENTS",
            dict.fromkeys(("prompt", "reply", "midway", "plan", "commit"), 2) | chooser.MAX_STATEMENTS,
        ),
        "agents' reports, too": (chooser, "SKIPPED_ROLES", frozenset()),
        "no work in between": (chooser, "SKIPPED_ROLES", chooser.SKIPPED_ROLES | {"midway"}),
        "no commits": (chooser, "SKIPPED_ROLES", chooser.SKIPPED_ROLES | {"commit"}),
        "no summaries": (chooser, "SKIPPED_ROLES", chooser.SKIPPED_ROLES | {"summary"}),
        "no plans": (chooser, "SKIPPED_ROLES", chooser.SKIPPED_ROLES | {"plan"}),
        "replies may repeat their prompt": (chooser, "MIN_PROMPT_SHARED", 9.0),
        "what the session said is no bar": (chooser, "MAX_SHARED", 9.0),
        "passages of 30 words": (candidate_passages, "MAX_CONTENT_WORDS", 30),
        "no title leads in": (candidate_passages, "MAX_TITLE_WORDS", -1),
        "sections of steps and checks stay": (candidate_passages, "POOR_TITLE", frozenset()),
        "nothing refused": (
            candidate_passages,
            "REFUSED_KINDS",
            dict.fromkeys(candidate_passages.REFUSED_KINDS, frozenset()),
        ),
        "a rule needs to be as sure as any": (prompt_assertions, "MIN_LASTING_CERTAINTY", 9.0),
    }
    for kind in sorted(set().union(*candidate_passages.REFUSED_KINDS.values())):
        without = {speaker: kinds - {kind} for speaker, kinds in candidate_passages.REFUSED_KINDS.items()}
        found[f"not refused: {kind}"] = (candidate_passages, "REFUSED_KINDS", without)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("prepare", "fit", "judge", "ablate"))
    parser.add_argument("--eval", default="../shared/eval", help="the labelled set; relative to the repository's root")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--leave-out", help="judge only this project")
    parser.add_argument("--show", action="store_true", help="print what is chosen")
    parser.add_argument("--bar", type=float, default=BAR)
    options = parser.parse_args()
    if options.do == "fit":
        return _fit(options.out, options.bar, folder_of(options.eval))
    projects = projects_of(folder_of(options.eval))
    if options.do == "prepare":
        rows = {project.name: list(candidates(project)) for project in projects}
        DATA.write_bytes(gzip.compress(json.dumps({"features": FEATURES, "rows": rows}).encode(), mtime=0))
        print({name: (len(of), sum(row.wanted for row in of)) for name, of in rows.items()})
        return 0
    asserted = asserting(folder_of(options.eval))
    if options.do == "judge":
        return _judge(projects, asserted, options)
    print(f"{'all levers':40} {told(judged(projects, asserted, bar=options.bar))}", flush=True)
    for name in FEATURES[1:]:
        print(
            f"{'- ' + name:40} {told(judged(projects, asserted, without=frozenset({name}), bar=options.bar))}",
            flush=True,
        )
    for name, (module, constant, value) in levers().items():
        with setting(module, constant, value):
            print(f"{name:40} {told(judged(projects, asserted, bar=options.bar))}", flush=True)
    return 0


def _fit(out: Path, bar: float, folder: Path) -> int:
    held = json.loads(gzip.decompress(DATA.read_bytes()))
    if tuple(held["features"]) != FEATURES:
        print("the features have changed: prepare them again", file=sys.stderr)
        return 1
    rows = [Candidate(*row) for of in held["rows"].values() for row in of]
    weights = {"about": "docs/extending.md", "bar": bar, "passage": fitted(rows), "assertion": asserting(folder)}
    out.write_text(json.dumps(weights, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{out}: {len(weights['passage'])} features, {len(weights['assertion'])} signs, {len(rows)} candidates")
    return 0


def _judge(projects: Sequence[Project], asserted: dict[str, float], options: argparse.Namespace) -> int:
    found = judged(projects, asserted, bar=options.bar)
    for name, figures in found.items():
        if options.leave_out in (None, name):
            print(f"{name:20} {figures}")
    print(f"{'mean':20} F1 {_mean(found, 'f1'):.3f}  i3 {_mean(found, 'important'):.3f}")
    rows = [row for project in projects for row in candidates(project)]
    whole = Weights(options.bar, fitted(rows), asserted)
    for project in projects:
        chosen = list(memories(project, whole))
        print(f"{project.name + ', all in':20} {project.figures(chosen)}")
        if project is projects[0]:
            print(f"{project.name + ', check':20} {project.figures(chosen, checked(project))}")
        if options.show and options.leave_out in (None, project.name):
            for session, lines, text in chosen:
                print(f"{'+' if project.states(session, lines, text) else '-'} {session[:8]} {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
