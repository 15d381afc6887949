"""The labelled projects that choosing is learned from and judged on: sessions, and which labels a text states; no test.

    csmd memories --all-projects --all --json > memories.json
    python tests/bench/projects.py [--eval DIR] < memories.json

prints the figures of what a running daemon has made of them.

A memory states a label when it holds 30 % of the content words of its quote or its memory and cites its line, or 60 %
of them without, in at most 45 content words; a second memory of a label is junk. The words of each set are counted as
its own scorer counts them.
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from labelled import Session, folder_of, line_of, scorer_of, sessions_of, split

MAX_WORDS, BY_LINE, BY_WORDS = 45, 0.3, 0.6


class Figures(NamedTuple):
    """Strict F1, precision and recall, the recall of importance 3, and how many memories."""

    f1: float
    precision: float
    recall: float
    important: float
    memories: int

    def __str__(self) -> str:
        return (
            f"F1 {self.f1:.3f}  P {self.precision:.3f}  R {self.recall:.3f}  i3 {self.important:.3f}  n {self.memories}"
        )


class Label(NamedTuple):
    """A statement worth keeping: where it stands, and two sets of words that state it."""

    lines: frozenset[str]
    sessions: frozenset[str]
    words: tuple[frozenset[str], ...]
    importance: int


@dataclass(frozen=True)
class Project:
    """A project's labelled sessions, oldest first, with its labels."""

    name: str
    sessions: Sequence[Session]
    labels: Sequence[Label]
    words: Callable[[str], set[str]]
    same: Callable[[str, str], bool]

    def states(self, session: str, lines: Iterable[str], text: str) -> frozenset[int]:
        """The numbers of the labels that a text of a session states, which cites some lines."""
        said = self.words(text)
        if len(said) > MAX_WORDS:
            return frozenset()
        found = set()
        for number, label in enumerate(self.labels):
            share = max((len(each & said) / len(each) for each in label.words if len(each) >= 3), default=0.0)
            cites = share >= BY_LINE and any(self.same(own, line) for own in label.lines for line in lines)
            if cites or (share >= BY_WORDS and session in label.sessions):
                found.add(number)
        return frozenset(found)

    def figures(self, memories: Iterable[tuple[str, Iterable[str], str]], sessions: set[str] | None = None) -> Figures:
        """What (session, cited lines, text) of some of its sessions are worth."""
        among = {number for number, label in enumerate(self.labels) if sessions is None or label.sessions & sessions}
        found: set[int] = set()
        right = total = 0
        for session, lines, text in memories:
            if sessions is None or session in sessions:
                states = self.states(session, list(lines)[:4], text) & among
                right, total = right + bool(states - found), total + 1
                found |= states
        precision, recall = right / max(1, total), len(found) / max(1, len(among))
        important = {number for number in among if self.labels[number].importance == 3}
        f1 = 2 * precision * recall / max(1e-9, precision + recall)
        return Figures(f1, precision, recall, len(found & important) / max(1, len(important)), total)


def projects_of(folder: Path) -> list[Project]:
    """The set's own project, then those of its folder `projects`."""
    scorer = scorer_of(folder)
    named = set(scorer.Labels().sessions)
    own = [
        Label(
            frozenset(row["uuids"]), frozenset([row["session"]]),
            (frozenset(scorer.words(row["quote"])), frozenset(scorer.words(row["memory"]))), row["importance"],
        )
        for row in scorer.rd("memories.jsonl")
    ]  # fmt: skip
    found = [Project("entire", _of(sessions_of(folder), named), own, scorer.words, str.__eq__)]
    further = scorer_of(folder / "projects")
    rows: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    for row in further.load("memories.jsonl"):
        rows[row["repo"]].append(row)
    for repo, of_repo in rows.items():
        labels = [
            Label(
                frozenset(row["uuids"]), frozenset(row["sessions"]),
                (frozenset(row["quote_words"]), frozenset(further.words(row["memory"]))), row["importance"],
            )
            for row in of_repo
        ]  # fmt: skip
        named = {name for label in labels for name in label.sessions}
        named |= {row["session"] for row in further.load("negatives.jsonl") if row["repo"] == repo}
        place = folder / "projects" / "transcripts" / repo.replace("/", "__")
        sessions = _of(sessions_of(place, inside="."), named)
        found.append(Project(repo.rpartition("/")[2], sessions, labels, further.words, further.same))
    return found


def checked(project: Project) -> set[str]:
    """The sessions of the first project that rules were never tuned on."""
    return split(list(project.sessions))["check"]


def _of(sessions: Iterable[Session], named: set[str]) -> list[Session]:
    return [one for one in sessions if one.id in named]


def lines_of(uuids: Iterable[str]) -> list[str]:
    """The lines of the transcript that turns stand in."""
    return [line_of(uuid) for uuid in uuids]


def main() -> None:
    """Scores memories that hold, in the order in which they were said: of two that state a label the later is junk."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eval", default="../shared/eval", help="the labelled set; relative to the repository's root")
    folder = folder_of(parser.parse_args().eval)
    listed = [row for row in json.load(sys.stdin)["memories"] if not row["superseded_by"] and not row["is_refuted"]]
    said = [
        (row["session_id"], row["source_uuids"], row["text"])
        for row in sorted(listed, key=lambda row: str(row["created_at"]))
    ]
    for number, project in enumerate(projects_of(folder)):
        own = {session.id for session in project.sessions}
        of_project = [one for one in said if one[0] in own]
        if of_project:
            print(f"{project.name:20} {project.figures(of_project)}")
            if number == 0:
                print(f"{project.name + ', check':20} {project.figures(of_project, checked(project))}")


if __name__ == "__main__":
    main()
