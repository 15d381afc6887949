"""Conventions that can be counted: the form of commit subjects, of branch names, of test files; pure.

A form is told when nearly all have it and a colleague could not know it from the language alone: a Go test that is not
`*_test.go` does not run, and needs no note. What has none of the forms of a table counts against each.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

#: So many of a kind at least before a form is seen in them, in this share of them.
LEAST, NEARLY_ALL = 4, 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A commit's subject, a branch's name or a test file's path, with the session and the turn it comes from."""

    session_id: str
    name: str
    uuid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form that `seen` of `total` have; `name` is the same whatever the counts are."""

    name: str
    text: str
    seen: tuple[Named, ...]
    total: int


#: Nobody chose these names: they say nothing of a form.
_NOT_CHOSEN = re.compile(r"^(?:Merge|Revert) |^(?:fixup|squash)! ")
_COMMON_BRANCH = re.compile(r"^(?:main|master|trunk|develop|dev|HEAD|gh-pages|detached.*)$")
_TYPES = "feat|fix|chore|docs|refactor|test|tests|perf|build|ci|style|revert"
#: Name of a form of commit subjects -> (pattern, how it is told); the first that nearly all have.
SUBJECTS: dict[str, tuple[re.Pattern[str], str]] = {
    "conventional": (
        re.compile(rf"(?:{_TYPES})(?:\([^)]+\))?!?: \S"),
        "Commit subjects begin with a type (`feat:`, `fix(scope):`, ...)",
    ),
    "ticket": (re.compile(r"\[?[A-Z][A-Z0-9]+-\d+\]?\b"), "Commit subjects begin with the ticket"),
    "area": (
        re.compile(rf"(?!(?:{_TYPES})\b)[\w./-]{{2,30}}: \S"),
        "Commit subjects begin with the part that they change (`part: what`)",
    ),
    "lower case": (re.compile(r"[a-z][a-z]+ "), "Commit subjects begin with a small letter and name no type"),
}
_TICKET = re.compile(r"\b([A-Za-z]{2,10})-\d+\b")
_DAY = re.compile(r"\b20\d\d-?[01]\d-?[0-3]\d\b")
#: Ending of a test file's language -> the forms of which it leaves the choice; all others are the language's own.
_TESTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("*.test.*", re.compile(r"\.test\.(?:[cm]?[jt]s|[jt]sx)$")),
    ("*.spec.*", re.compile(r"\.spec\.(?:[cm]?[jt]s|[jt]sx)$")),
    ("test_*.py", re.compile(r"(?:^|/)test_[^/]+\.py$")),
    ("*_test.py", re.compile(r"_test\.py$")),
    ("*Test", re.compile(r"Test\.(?:java|kt|php|cs)$")),
    ("*Tests", re.compile(r"Tests\.(?:java|kt|cs|swift)$")),
)
_PLACES = ("tests", "test", "__tests__", "spec", "specs", "e2e")


def of_commits(subjects: Sequence[Named]) -> Form | None:
    """The form of commit subjects, None for none that nearly all have."""
    chosen = _distinct([one for one in subjects if not _NOT_CHOSEN.match(one.name)])
    for name, (pattern, text) in SUBJECTS.items():
        if form := _form(f"commit:{name}", text, [one for one in chosen if pattern.match(one.name)], len(chosen)):
            return form
    return None


def of_branches(names: Sequence[Named]) -> Form | None:
    """The form of branch names: what stands before the first slash, a ticket, a day; None for none."""
    chosen = _distinct([one for one in names if not _COMMON_BRANCH.match(one.name)])
    shapes = {one.name: _shape(one.name) for one in chosen}
    counted = Counter(shape for shape in shapes.values() if shape)
    if not counted:
        return None
    shape = min(counted, key=lambda one: (-counted[one], one))
    fitting = [one for one in chosen if shapes[one.name] == shape]
    return _form(f"branch:{shape}", f"Branches are named `{shape}`", fitting, len(chosen), least=LEAST - 1)


def _shape(name: str) -> str:
    """What of a branch's name others could have, too; "" for a name that shows no form."""
    before, slash, rest = name.rpartition("/")
    known = _TICKET.match(rest) or _DAY.match(rest)
    if not slash and not known:
        return ""
    told = "<what>"
    if known:
        told = (f"{known[1]}-<number>" if known.re is _TICKET else "<day>") + "-<what>" * (len(rest) > known.end())
    return f"{before}{slash}{told}"


def of_tests(paths: Sequence[Named]) -> Form | None:
    """How test files are named where the language leaves a choice, and where they lie; None for none."""
    kinds = [
        (form, one) for one in _distinct(paths) if (form := next((f for f, p in _TESTS if p.search(one.name)), ""))
    ]
    if not kinds:
        return None
    counted = Counter(form for form, _ in kinds)
    name = min(counted, key=lambda one: (-counted[one], one))
    fitting = [one for form, one in kinds if form == name]
    places = Counter(_place(one.name) for one in fitting)
    place = min(places, key=lambda one: (-places[one], one))
    if places[place] >= NEARLY_ALL * len(fitting):
        fitting = [one for one in fitting if _place(one.name) == place]
        where = f", below `{place}/`" if place else ", beside what they test"
    else:
        where = ""
    return _form(f"tests:{name}", f"Test files are named `{name}`{where}", fitting, len(kinds))


def _place(path: str) -> str:
    parts = PurePosixPath(path).parts[:-1]
    return next((part for part in parts if part in _PLACES), "")


def _form(name: str, text: str, seen: Sequence[Named], total: int, *, least: int = LEAST) -> Form | None:
    if len(seen) < max(least, NEARLY_ALL * total):
        return None
    return Form(name=name, text=text, seen=tuple(seen), total=total)


def _distinct(named: Sequence[Named]) -> list[Named]:
    """Each name once, as it was met first."""
    return list({one.name: one for one in reversed(named)}.values())[::-1]
