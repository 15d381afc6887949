"""Finds the outcomes of each kind of work in sessions, and the kinds that succeed less often than before; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import comb
from typing import Literal, NamedTuple

from csmd.extraction.work import find_check

Ending = Literal["well", "badly", "undecided"]

#: A session's outcome -> the ending of work in it that no command decides, and the reason.
ENDINGS: Mapping[str, tuple[Ending, str]] = {
    "committed": ("well", "committed"), "checked": ("well", "checks passed in the end"),
    "failing": ("badly", "a check failed in the end"), "rejected": ("badly", "turned down or corrected in the end"),
    "corrected": ("badly", "corrected again and again"), "unchecked": ("undecided", "changed and not checked"),
    "answered": ("undecided", "nothing was changed"), "unanswered": ("undecided", "nothing was answered"),
}  # fmt: skip
#: Drift compares the last decided sessions with the ones before them.
RECENT_SESSIONS = 8
#: Fewest of the ones before.
MIN_EARLIER_SESSIONS = 8
#: Least fall of the share that ended well.
MIN_DROP = 0.3
#: Greatest probability that the fall is chance (Fisher's exact test, one-sided).
MAX_CHANCE = 0.05
#: A pattern without matches.
_NO_MATCH = re.compile(r"(?!)")


class Kind(NamedTuple):
    """A kind of work, recognised by a check, by commands, by changed files, or by stems of the goal's words."""

    check: str = ""
    commands: re.Pattern[str] = _NO_MATCH
    files: re.Pattern[str] = _NO_MATCH
    words: frozenset[str] = frozenset()

    def is_command(self, command: str) -> bool:
        """Whether a command is work of this kind."""
        return find_check(command) == self.check if self.check else self.commands.match(command) is not None


# fmt: off
KINDS: Mapping[str, Kind] = {
    "tests": Kind(check="tests"),
    "formatting": Kind(check="format"),
    "lint": Kind(check="lint"),
    "build": Kind(check="build"),
    "git": Kind(commands=re.compile(r"git (?:-C \S+ )?(?:commit|merge|rebase|push|pull|cherry-pick|revert|reset|stash|tag"
                                    r"|checkout|switch|am|apply|bisect)\b")),
    "pull requests": Kind(commands=re.compile(r"(?:gh (?:pr|issue|release|run|workflow)|glab mr)\b")),
    "dependencies": Kind(
        commands=re.compile(r"(?:npm|yarn|pnpm|bun) (?:i|install|add|remove|update|upgrade)\b|pip3? install\b"
        r"|uv (?:add|sync|lock|pip)\b"
        r"|poetry (?:add|update|lock)\b|cargo (?:add|update)\b|go (?:get|mod)\b|bundle (?:install|update)\b"
        r"|composer \w+")),
    "database": Kind(
        commands=re.compile(r"(?:psql|mysql|sqlite3|alembic|prisma|flyway|goose)\b|\S* ?db:migrate"
        r"|\S*manage\.py (?:make)?migrat"),
        files=re.compile(r"\.sql$|(?:^|/)migrations?/")),
    "containers": Kind(
        commands=re.compile(r"(?:docker|podman|kubectl|helm|terraform)\b"),
        files=re.compile(r"(?:^|/)Dockerfile|docker-compose|\.tf$")),
    "automation": Kind(
        files=re.compile(r"(?:^|/)\.github/(?:workflows|actions)/|\.gitlab-ci|Jenkinsfile|(?:^|/)\.circleci/")),
    "scripts": Kind(files=re.compile(r"\.(?:sh|bash|zsh|ps1)$")),
    "documentation": Kind(files=re.compile(r"\.(?:md|rst|adoc|txt)$")),
    "frontend": Kind(files=re.compile(r"\.(?:tsx|jsx|vue|svelte|css|scss|less|html)$")),
    "test code": Kind(files=re.compile(r"(?:_test|\.test|\.spec|_spec)\.\w+$|(?:^|/)tests?/|(?:^|/)test_\w+\.py$")),
    "debugging": Kind(
        words=frozenset("bug fix error fail broken wrong crash panic issu debug why regress flaky".split())),
    "refactoring": Kind(
        words=frozenset("refactor renam extract cleanup simplifi simplify dedupl duplicat mov restructur split".split())),
    "new features": Kind(words=frozenset("add implement introduc creat support featur".split())),
    "review": Kind(words=frozenset("review feedback comment suggest".split())),
}
# fmt: on


class DigestItem(NamedTuple):
    """One item of a session's digest: its kind, text, turn, and how it ended."""

    kind: str
    text: str
    uuid: str
    state: str


class WorkEnding(NamedTuple):
    """The ending of a kind of work in a session, with the reason and the turn that shows it."""

    capability: str
    outcome: Ending
    why: str
    uuid: str


class StoredEnding(NamedTuple):
    """One session's ending of one kind of work, as it is stored."""

    capability: str
    outcome: str
    uuid: str
    session_id: str
    at: str


class Capability(NamedTuple):
    """A kind of work over sessions: confidence (0-1), sessions that ended well and all decided ones, latest evidence."""

    name: str
    confidence: float
    well: int
    decided: int
    sessions: int
    since: str
    last_at: str
    evidence: tuple[str, ...]


class Drift(NamedTuple):
    """A kind of work that ends clearly worse than before; `chance` is the probability (0-1) that this is chance."""

    capability: str
    earlier_well: int
    earlier: int
    recent_well: int
    recent: int
    chance: float
    since: str
    against: tuple[StoredEnding, ...]
    """The recent sessions that ended badly."""


def find_endings(outcome: str, items: Sequence[DigestItem]) -> list[WorkEnding]:
    """Finds the ending of each kind of work in a session, in the order of KINDS; `outcome` is the session's."""
    default, default_why = ENDINGS.get(outcome, ("undecided", outcome))
    files = [item for item in items if item.kind == "file"]
    commands = [item for item in items if item.kind == "command"]
    words = {item.text for item in items if item.kind == "word"}
    endings: list[WorkEnding] = []
    for name, kind in KINDS.items():
        runs = [item for item in commands if kind.is_command(item.text)]
        changed = [item for item in files if kind.files.search(item.text)]
        if runs:
            failed = [item for item in runs if item.state == "failed"]
            if kind.check and outcome != "failing" and len(failed) < len(runs):
                failed = []  # the session's outcome is that of its last check
            last = (failed or runs)[-1]
            reason = f"`{last.text}` {'failed' if failed else 'passed'} in the end"
            endings.append(WorkEnding(name, "badly" if failed else "well", reason, last.uuid))
        elif changed or (files and kind.words & words):
            endings.append(WorkEnding(name, default, default_why, (changed or files)[0].uuid))
    return endings


def sum_up_capabilities(endings: Sequence[StoredEnding]) -> list[Capability]:
    """Sums up each kind of work over sessions, those that ended badly most often first.

    A turn of two sessions counts once.
    """
    results = []
    for name, of_kind in _group_by_capability(endings).items():
        decided = _drop_undecided(of_kind)
        well = _count_well(decided)
        evidence = tuple(ending.uuid for ending in reversed(decided or of_kind))[:4]
        success = estimate_success(well, len(decided))
        times = of_kind[0].at, of_kind[-1].at
        results.append(Capability(name, success, well, len(decided), len(of_kind), *times, evidence))
    return sorted(results, key=lambda kind: (kind.well - kind.decided, -kind.decided, -kind.sessions, kind.name))


def estimate_success(well: int, decided: int) -> float:
    """Estimates the share that ends well, by Laplace's rule of succession: never 0 and never 1."""
    return round((well + 1) / (decided + 2), 2)


def find_drifts(endings: Sequence[StoredEnding]) -> list[Drift]:
    """Finds the kinds of work that end clearly worse recently than before."""
    results = []
    for name, of_kind in sorted(_group_by_capability(endings).items()):
        decided = _drop_undecided(of_kind)
        earlier, recent = decided[:-RECENT_SESSIONS], decided[-RECENT_SESSIONS:]
        if len(earlier) < MIN_EARLIER_SESSIONS:
            continue
        earlier_well, recent_well = _count_well(earlier), _count_well(recent)
        chance = probability_of_fewer(earlier_well, len(earlier), recent_well, len(recent))
        if earlier_well / len(earlier) - recent_well / len(recent) >= MIN_DROP and chance <= MAX_CHANCE:
            against = tuple(ending for ending in recent if ending.outcome == "badly")
            counts = earlier_well, len(earlier), recent_well, len(recent)
            results.append(Drift(name, *counts, round(chance, 4), recent[0].at, against))
    return results


def _drop_undecided(endings: Sequence[StoredEnding]) -> list[StoredEnding]:
    return [ending for ending in endings if ending.outcome != "undecided"]


def _count_well(endings: Sequence[StoredEnding]) -> int:
    return sum(ending.outcome == "well" for ending in endings)


def probability_of_fewer(earlier_well: int, earlier: int, recent_well: int, recent: int) -> float:
    """Returns the probability of at most `recent_well` successes without a change (Fisher's exact test, one-sided)."""
    total, well = earlier + recent, earlier_well + recent_well
    fewest = max(0, recent - (total - well))
    ways = sum(comb(well, k) * comb(total - well, recent - k) for k in range(fewest, recent_well + 1))
    return ways / comb(total, recent)


def describe_drift(drift: Drift) -> str:
    """Describes a drift in words: the counts, without advice."""
    recent = f"{drift.recent_well} of the last {drift.recent} sessions ended well"
    return f"{drift.capability}: {recent}, {drift.earlier_well} of {drift.earlier} before {drift.since[:10]}"


def _group_by_capability(endings: Sequence[StoredEnding]) -> dict[str, list[StoredEnding]]:
    """Groups endings by kind of work, in order of time; the turns that a fork shares with its trunk count once."""
    by_name: dict[str, dict[str, StoredEnding]] = {}
    for ending in sorted(endings, key=lambda ending: (ending.at, ending.session_id)):
        by_name.setdefault(ending.capability, {}).setdefault(ending.uuid, ending)
    return {name: list(by_turn.values()) for name, by_turn in by_name.items()}
