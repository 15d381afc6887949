"""Finds a project's naming conventions for commit subjects, branches and test files; pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from csmd.dream.actions import Fact, make_fact
from csmd.store.turns import WorkItem

#: Fewest names that show a convention.
MIN_NAMES = 4
#: Projects have fewer branches than commits.
MIN_BRANCHES = 3
#: Least share (0-1) of all names that must follow a convention.
MIN_SHARE = 0.8
#: Commit subjects that tools write.
_TOOL_SUBJECT = re.compile(r"^(?:Merge|Revert) |^(?:fixup|squash)! ")
_TYPES = "feat|fix|chore|docs|refactor|test|tests|perf|build|ci|style|revert"


class SubjectConvention(NamedTuple):
    """A convention for commit subjects, and the sentence that states it."""

    pattern: re.Pattern[str]
    sentence: str


#: The first convention that nearly all subjects follow is the project's.
SUBJECT_CONVENTIONS: dict[str, SubjectConvention] = {
    "conventional": SubjectConvention(re.compile(rf"(?:{_TYPES})(?:\([^)]+\))?!?: \S"),
                                      "Commit subjects begin with a type (`feat:`, `fix(scope):`, ...)"),
    "ticket": SubjectConvention(re.compile(r"\[?[A-Z][A-Z0-9]+-\d+\]?\b"),
                                "Commit subjects begin with a ticket number"),
    "area": SubjectConvention(re.compile(rf"(?!(?:{_TYPES})\b)[\w./-]{{2,30}}: \S"),
                              "Commit subjects begin with the part that they change (`part: what`)"),
    "lower case": SubjectConvention(re.compile(r"[a-z][a-z]+ "),
                                    "Commit subjects begin with a lower-case word, without a type"),
}  # fmt: skip
_COMMON_BRANCH = re.compile(r"^(?:main|master|trunk|develop|dev|HEAD|gh-pages|detached.*)$")
_TICKET = re.compile(r"\b([A-Za-z]{2,10})-\d+\b")
_DAY = re.compile(r"\b20\d\d-?[01]\d-?[0-3]\d\b")
#: Patterns of test files in languages that allow several.
_TEST_FILE_PATTERNS: dict[str, re.Pattern[str]] = {
    "*.test.*": re.compile(r"\.test\.(?:[cm]?[jt]s|[jt]sx)$"),
    "*.spec.*": re.compile(r"\.spec\.(?:[cm]?[jt]s|[jt]sx)$"), "test_*.py": re.compile(r"(?:^|/)test_[^/]+\.py$"),
    "*_test.py": re.compile(r"_test\.py$"), "*Test": re.compile(r"Test\.(?:java|kt|php|cs)$"),
    "*Tests": re.compile(r"Tests\.(?:java|kt|cs|swift)$"),
}  # fmt: skip
_TEST_FOLDERS = ("tests", "test", "__tests__", "spec", "specs", "e2e")


def find_commit_convention(subjects: Sequence[WorkItem], project: int) -> Fact | None:
    """Returns the convention that nearly all commit subjects follow, or None."""
    own = _drop_repeated([item for item in subjects if not _TOOL_SUBJECT.match(item.text)])
    for name, (pattern, sentence) in SUBJECT_CONVENTIONS.items():
        fitting = [item for item in own if pattern.match(item.text)]
        if fact := _make_convention(f"commit:{name}", sentence, fitting, len(own), project):
            return fact
    return None


def find_branch_convention(branches: Sequence[WorkItem], project: int) -> Fact | None:
    """Returns the pattern of nearly all branch names (a prefix, a ticket, a date), or None."""
    own = _drop_repeated([item for item in branches if not _COMMON_BRANCH.match(item.text)])
    by_pattern: dict[str, list[WorkItem]] = defaultdict(list)
    for item in own:
        if pattern := _find_branch_pattern(item.text):
            by_pattern[pattern].append(item)
    if not by_pattern:
        return None
    pattern, fitting = _find_largest(by_pattern)
    name, text = f"branch:{pattern}", f"Branches are named `{pattern}`"
    return _make_convention(name, text, fitting, len(own), project, min_names=MIN_BRANCHES)


def _find_branch_pattern(name: str) -> str:
    """Returns the part of a branch's name that other branches could share, as a pattern, or ""."""
    prefix, slash, rest = name.rpartition("/")
    ticket = _TICKET.match(rest)
    mark = ticket or _DAY.match(rest)
    if not mark:
        return f"{prefix}/<what>" if slash else ""
    pattern = f"{ticket[1]}-<number>" if ticket else "<day>"
    suffix = "-<what>" if len(rest) > mark.end() else ""
    return f"{prefix}{slash}{pattern}{suffix}"


def find_test_file_convention(paths: Sequence[WorkItem], project: int) -> Fact | None:
    """Returns the pattern of test file names, in languages that allow several, and their directory, or None."""
    by_pattern: dict[str, list[WorkItem]] = defaultdict(list)
    for path in _drop_repeated(paths):
        names = (name for name, pattern in _TEST_FILE_PATTERNS.items() if pattern.search(path.text))
        if name := next(names, ""):
            by_pattern[name].append(path)
    if not by_pattern:
        return None
    name, fitting = _find_largest(by_pattern)
    by_folder: dict[str, list[WorkItem]] = defaultdict(list)
    for path in fitting:
        folder = next((part for part in PurePosixPath(path.text).parts[:-1] if part in _TEST_FOLDERS), "")
        by_folder[folder].append(path)
    folder, in_folder = _find_largest(by_folder)
    location = ""
    if len(in_folder) >= MIN_SHARE * len(fitting):
        fitting = in_folder
        location = f", below `{folder}/`" if folder else ", next to the code that they test"
    total = sum(map(len, by_pattern.values()))
    return _make_convention(f"tests:{name}", f"Test files are named `{name}`{location}", fitting, total, project)


def _find_largest(groups: Mapping[str, list[WorkItem]]) -> tuple[str, list[WorkItem]]:
    return min(groups.items(), key=lambda group: (-len(group[1]), group[0]))


def _make_convention(
    name: str, sentence: str, fitting: Sequence[WorkItem], total: int, project: int, *, min_names: int = MIN_NAMES
) -> Fact | None:
    """Returns a convention that `fitting` of `total` names follow; None if these are not nearly all."""
    if len(fitting) < max(min_names, MIN_SHARE * total):
        return None
    sources = [(item.session_id, item.uuid) for item in fitting]
    text = f"{sentence}: {len(fitting)} of {total}."
    return make_fact("convention", f"convention:{name}", text, project, seen=len(fitting), total=total, sources=sources)


def _drop_repeated(items: Sequence[WorkItem]) -> list[WorkItem]:
    """Returns the first item of each name."""
    first: dict[str, WorkItem] = {}
    for item in items:
        first.setdefault(item.text, item)
    return list(first.values())
