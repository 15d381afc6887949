"""Replays a project session by session: what its brief would have told each time, and what it cost.

    python tests/bench/bench_brief.py [--eval DIR] [--cwd PART] [--show N ...]

The sessions whose directory holds PART are imported in the order of time, each after the brief for it was taken. Of the
labels of importance 3 from earlier sessions, as long as no later one supersedes them, it says which share the brief
holds: at least 40 % of the content words of the label's quote or statement, in the whole brief (as `score.py inject`
counts) and, stricter, in one of its lines. The first half in time was tuned on, the second checks.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "bench")]

import labelled  # noqa: E402
from machine import Machine, temporary_directory  # noqa: E402

COVERED = 0.4


@dataclass
class Label:
    """Something worth knowing: in which session it was said, in which it was superseded, its words in two forms."""

    said: int
    superseded: int
    forms: list[set[str]]


@dataclass
class Told:
    """One brief: how many labels stood when it was taken, how many it held, its length and its notes."""

    labels: int
    whole: int
    in_a_line: int
    tokens: int
    items: set[str]
    text: str


def labels_of(scorer: object, order: dict[str, int]) -> list[Label]:
    rows = [row for row in scorer.rd("memories.jsonl") if row["session"] in order]
    found = []
    for row in (row for row in rows if row["importance"] == 3):
        later = [order[other["session"]] for other in rows if set(_lines(other["supersedes"])) & set(row["uuids"])]
        forms = [words for words in (scorer.words(row["quote"]), scorer.words(row["memory"])) if len(words) >= 3]
        found.append(Label(order[row["session"]], min(later, default=len(order)), forms))
    return found


def _lines(superseded: object) -> list[str]:
    return [superseded] if isinstance(superseded, str) else list(superseded or ())


def replay(machine: Machine, folder: Path, part: str, scorer: object) -> list[Told]:
    sessions = [one for one in labelled.sessions_of(folder) if part in one.cwd]
    paths = {path.stem: path for path in (folder / "transcripts").glob("*/*.jsonl")}
    labels = labels_of(scorer, {one.id: number for number, one in enumerate(sessions)})
    told = []
    for number, one in enumerate(sessions):
        brief = machine.call("csm_memory_context", project=one.cwd)
        whole = scorer.words(brief["text"])
        lines = [scorer.words(line) for line in brief["text"].splitlines() if line.startswith("- ")]
        stand = [label for label in labels if label.said < number <= label.superseded]
        told.append(
            Told(
                labels=len(stand),
                whole=sum(_holds(label, whole) for label in stand),
                in_a_line=sum(any(_holds(label, line) for line in lines) for label in stand),
                tokens=brief["tokens"], items={item["id"] for item in brief["items"]}, text=brief["text"],
            )
        )  # fmt: skip
        machine.csmd("import", str(paths[one.id]), "--no-vectors", "--json")
        print(f"\r{number + 1} of {len(sessions)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return told


def _holds(label: Label, words: set[str]) -> bool:
    return any(len(form & words) >= COVERED * len(form) for form in label.forms)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eval", default="../shared/eval")
    parser.add_argument("--cwd", default=labelled.TUNED_ON)
    parser.add_argument("--show", type=int, nargs="*", default=[], help="print the briefs before these sessions")
    args = parser.parse_args()
    folder = labelled.folder_of(args.eval)
    machine = Machine(root=temporary_directory())
    machine.assistant.mkdir()
    try:
        machine.start()
        told = replay(machine, folder, args.cwd, labelled.scorer_of(folder))
    finally:
        machine.end()
    half = len(told) // 2
    for name, some in (("first half (tuned on)", told[:half]), ("second half", told[half:]), ("all", told)):
        counted = [one for one in some if one.labels]
        kept = [len(a.items & b.items) / len(b.items) for a, b in itertools.pairwise(some) if b.items]
        print(
            f"{name}: {len(counted)} briefs; in the brief {mean(one.whole / one.labels for one in counted):.3f}, "
            f"in one line {mean(one.in_a_line / one.labels for one in counted):.3f} of the labels; "
            f"tokens median {median(one.tokens for one in counted):.0f}, most {max(one.tokens for one in counted)}; "
            f"{mean(len(one.items) for one in counted):.1f} notes, {mean(kept):.2f} of them in the brief before"
        )
    for number in args.show:
        print(f"\n== before session {number}\n{told[number].text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
