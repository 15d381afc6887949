"""What the assistant is good at here, told by how its sessions ended, and a warning when that gets clearly worse; pure.

A kind of work is told by what was run and what was changed. How it ended in a session: its own commands' last run
where it has commands, else how the session ended. What nobody can tell is not counted. A confidence is a share of
sessions, drawn to the middle while there are few; it says what was seen, and nothing of what will be.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import comb
from typing import Literal, NamedTuple

from csmd.distill.work import check_of

Ending = Literal["well", "badly", "undecided"]

#: How a session's outcome counts for the work that was done in it.
ENDINGS: Mapping[str, tuple[Ending, str]] = {
    "committed": ("well", "committed"),
    "checked": ("well", "checks passed in the end"),
    "failing": ("badly", "a check failed in the end"),
    "rejected": ("badly", "turned down or corrected in the end"),
    "corrected": ("badly", "corrected again and again"),
    "unchecked": ("undecided", "changed and not checked"),
    "answered": ("undecided", "nothing was changed"),
    "unanswered": ("undecided", "nothing was answered"),
}
#: Drift: the last RECENT sessions that are decided against at least EARLIER before them. A warning needs a share that
#: is lower by DROP and a difference that chance makes at most once in 1/CHANCE (Fisher's exact test, one-sided).
RECENT, EARLIER, DROP, CHANCE = 8, 8, 0.3, 0.05
#: Below so many decided sessions a confidence is told as few.
FEW = 3


class Kind(NamedTuple):
    """A kind of work: cues in commands, in paths of changed files, in the words of the goal (stems)."""

    commands: str = ""
    files: str = ""
    words: frozenset[str] = frozenset()
    check: str = ""


# fmt: off
KINDS: Mapping[str, Kind] = {
    "tests": Kind(check="tests"),
    "formatting": Kind(check="format"),
    "lint": Kind(check="lint"),
    "build": Kind(check="build"),
    "git": Kind(commands=r"git (?:-C \S+ )?(?:commit|merge|rebase|push|pull|cherry-pick|revert|reset|stash|tag|checkout|switch"
                r"|am|apply|bisect)\b"),
    "pull requests": Kind(commands=r"(?:gh (?:pr|issue|release|run|workflow)|glab mr)\b"),
    "dependencies": Kind(
        commands=r"(?:npm|yarn|pnpm|bun) (?:i|install|add|remove|update|upgrade)\b|pip3? install\b|uv (?:add|sync|lock|pip)\b"
        r"|poetry (?:add|update|lock)\b|cargo (?:add|update)\b|go (?:get|mod)\b|bundle (?:install|update)\b|composer \w+"),
    "database": Kind(
        commands=r"(?:psql|mysql|sqlite3|alembic|prisma|flyway|goose)\b|\S* ?db:migrate|\S*manage\.py (?:make)?migrat",
        files=r"\.sql$|(?:^|/)migrations?/"),
    "containers": Kind(commands=r"(?:docker|podman|kubectl|helm|terraform)\b", files=r"(?:^|/)Dockerfile|docker-compose|\.tf$"),
    "automation": Kind(files=r"(?:^|/)\.github/(?:workflows|actions)/|\.gitlab-ci|Jenkinsfile|(?:^|/)\.circleci/"),
    "scripts": Kind(files=r"\.(?:sh|bash|zsh|ps1)$"),
    "documentation": Kind(files=r"\.(?:md|rst|adoc|txt)$"),
    "frontend": Kind(files=r"\.(?:tsx|jsx|vue|svelte|css|scss|less|html)$"),
    "test code": Kind(files=r"(?:_test|\.test|\.spec|_spec)\.\w+$|(?:^|/)tests?/|(?:^|/)test_\w+\.py$"),
    "debugging": Kind(words=frozenset("bug fix error fail broken wrong crash panic issu debug why regress flaky".split())),
    "refactoring": Kind(words=frozenset("refactor renam extract cleanup simplifi simplify dedupl duplicat mov restructur split".split())),
    "new features": Kind(words=frozenset("add implement introduc creat support featur".split())),
    "review": Kind(words=frozenset("review feedback comment suggest".split())),
}
# fmt: on
_COMMANDS = {name: re.compile(kind.commands) for name, kind in KINDS.items() if kind.commands}
_FILES = {name: re.compile(kind.files) for name, kind in KINDS.items() if kind.files}


class Seen(NamedTuple):
    """One thing in a session's digest: its kind, what it says, where, how it ended."""

    kind: str
    text: str
    uuid: str
    state: str


class Ended(NamedTuple):
    """How work of a kind ended in a session: in which way, why, and the turn that shows it."""

    capability: str
    outcome: Ending
    why: str
    uuid: str


class Counted(NamedTuple):
    """One session's ending of one kind of work, as it is stored; in the order of their time."""

    capability: str
    outcome: str
    uuid: str
    session_id: str
    at: str


class Capability(NamedTuple):
    """A kind of work over sessions: confidence 0-1, how many ended well of those decided, the latest evidence."""

    name: str
    confidence: float
    well: int
    decided: int
    sessions: int
    since: str
    last_at: str
    evidence: tuple[str, ...]


class Drift(NamedTuple):
    """A kind of work that ends clearly worse than it did: sessions before and lately, how likely by chance."""

    capability: str
    earlier_well: int
    earlier: int
    recent_well: int
    recent: int
    chance: float
    since: str
    against: tuple[Counted, ...]
    """The recent sessions that ended badly."""


def endings(outcome: str, seen: Sequence[Seen]) -> list[Ended]:
    """How each kind of work that was done in a session ended, in the order of KINDS."""
    whole, why = ENDINGS.get(outcome, ("undecided", outcome))
    changed = [one for one in seen if one.kind == "file"]
    words = {one.text: one for one in seen if one.kind == "word"}
    found: list[Ended] = []
    for name, kind in KINDS.items():
        ran = [one for one in seen if one.kind == "command" and _is_of(name, kind, one.text)]
        if ran:
            failed = [one for one in ran if one.state == "failed"]
            if kind.check:  # which of its commands came last is what the session's outcome was made of
                failed = failed if outcome == "failing" or len(failed) == len(ran) else []
            last = (failed or ran)[-1]
            said = f"`{last.text}` {'failed' if failed else 'passed'} in the end"
            found.append(Ended(name, "badly" if failed else "well", said, last.uuid))
            continue
        touched = [one for one in changed if name in _FILES and _FILES[name].search(one.text)]
        cue = next((words[word] for word in sorted(kind.words) if word in words), None)
        if touched:
            found.append(Ended(name, whole, why, touched[0].uuid))
        elif cue is not None and changed:
            found.append(Ended(name, whole, why, changed[0].uuid))
    return found


def capabilities(counted: Sequence[Counted]) -> list[Capability]:
    """What each kind of work amounts to over sessions, what ended badly most often first; a turn of two sessions counts once."""
    by: dict[str, list[Counted]] = {}
    for one in _once(counted):
        by.setdefault(one.capability, []).append(one)
    found = []
    for name, some in by.items():
        decided = [one for one in some if one.outcome != "undecided"]
        well = sum(one.outcome == "well" for one in decided)
        shown = tuple(one.uuid for one in reversed(decided or some))[:4]
        found.append(
            Capability(
                name, confidence(well, len(decided)), well, len(decided), len(some), some[0].at, some[-1].at, shown
            )
        )
    return sorted(found, key=lambda one: (one.well - one.decided, -one.decided, -one.sessions, one.name))


def confidence(well: int, decided: int) -> float:
    """The share that ended well, drawn to the middle by two sessions that nobody saw (Laplace): never 0 and never 1."""
    return round((well + 1) / (decided + 2), 2)


def drifts(counted: Sequence[Counted]) -> list[Drift]:
    """The kinds of work that end clearly worse lately than before."""
    by: dict[str, list[Counted]] = {}
    for one in _once(counted):
        if one.outcome != "undecided":
            by.setdefault(one.capability, []).append(one)
    found = []
    for name, some in sorted(by.items()):
        before, lately = some[:-RECENT], some[-RECENT:]
        if len(before) < EARLIER:
            continue
        a, b = (sum(one.outcome == "well" for one in part) for part in (before, lately))
        chance = fewer_by_chance(a, len(before), b, len(lately))
        if a / len(before) - b / len(lately) >= DROP and chance <= CHANCE:
            bad = tuple(one for one in lately if one.outcome == "badly")
            found.append(Drift(name, a, len(before), b, len(lately), round(chance, 4), lately[0].at, bad))
    return found


def fewer_by_chance(well: int, of: int, lately_well: int, lately: int) -> float:
    """How likely it is that so few, or fewer, of the latest ended well if nothing has changed (Fisher, one-sided)."""
    total, good = of + lately, well + lately_well
    ways = sum(
        comb(good, k) * comb(total - good, lately - k) for k in range(max(0, lately - (total - good)), lately_well + 1)
    )
    return ways / comb(total, lately)


def told(drift: Drift) -> str:
    """A warning in words: what was seen, neither advice nor a rule."""
    return (
        f"{drift.capability}: {drift.recent_well} of the last {drift.recent} sessions ended well, "
        f"{drift.earlier_well} of {drift.earlier} before {drift.since[:10]}"
    )


def _is_of(name: str, kind: Kind, command: str) -> bool:
    if kind.check:
        return check_of(command) == kind.check
    return name in _COMMANDS and bool(_COMMANDS[name].match(command))


def _once(counted: Sequence[Counted]) -> list[Counted]:
    """Without what a fork holds of its trunk: the same turn shows the same ending."""
    kept: dict[tuple[str, str], Counted] = {}
    for one in sorted(counted, key=lambda one: (one.at, one.session_id)):
        kept.setdefault((one.capability, one.uuid), one)
    return list(kept.values())
