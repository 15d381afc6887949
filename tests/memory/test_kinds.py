"""Each of the twelve types has a path that ends in it; what a row says decides, the first that fits."""

from __future__ import annotations

from typing import get_args

import pytest

from csmd.memory import kinds
from csmd.model import CATEGORIES, MemoryType, Statement

#: (type, words, category, who said it, kind of the turn, origin, reasons)
PATHS = [
    ("conversation", "The user asked for a smaller release.", "fact", "assistant", "summary", "stated", ()),
    ("workspace", "We will migrate to Postgres next sprint", "plan", "user", "user", "stated", ()),
    ("workspace", "Sarah leads the auth service", "person", "user", "user", "stated", ()),
    ("repo", "The API uses JWT with RS256 signing", "fact", "user", "user", "stated", ()),
    ("preference", "I prefer tabs", "preference", "user", "user", "stated", ()),
    ("lesson", "Renaming the column needs a new view first", "gotcha", "user", "user", "stated", ()),
    ("episodic", "Removed the `retry: 1` line since GoReleaser doesn't support it", "decision", "assistant", "assistant", "stated", ()),
    ("episodic", "I've also moved the parser into its own package", "fact", "assistant", "assistant", "stated", ()),
    ("episodic", "The session was about the login page", "fact", "assistant", "assistant", "stated", ("digest",)),
    ("procedural", "A release is: changelog, package.json, tag", "procedure", "user", "user", "stated", ()),
    ("procedural", "Tests stand beside the code", "convention", "user", "user", "stated", ()),
    ("concept", "We chose Postgres over SQLite for the queue", "decision", "user", "user", "stated", ()),
    ("code", "Handlers use the builder pattern", "pattern", "user", "user", "stated", ()),
    ("config", "It must run on Python 3.11", "constraint", "user", "user", "stated", ()),
    ("error", "`npm ci` fails with EUSAGE when the lock file is older", "gotcha", "assistant", "assistant", "stated", ()),
    ("error", "TypeError: undefined is not a function means the mock is missing", "gotcha", "user", "user", "stated", ()),
    ("self_continuity", "I can't run the e2e tests here: there is no browser", "fact", "assistant", "assistant", "stated", ()),
    ("self_continuity", "Estimates of refactorings come out too low", "fact", "assistant", "", kinds.SELF, ()),
    # The same words of a user are about the user, or about what is to be done.
    ("repo", "I can't run the e2e tests here: there is no browser", "fact", "user", "user", "stated", ()),
    ("concept", "Removed endpoints stay documented for a year", "decision", "user", "user", "stated", ()),
]  # fmt: skip


@pytest.mark.parametrize("row", PATHS, ids=lambda row: f"{row[0]}: {row[1][:30]}")
def test_a_type_follows_from_how_a_memory_came_to_be_else_from_its_category(row: tuple) -> None:
    wanted, words, category, authority, kind, origin, reasons = row
    said = Statement(
        text=words,
        gate=CATEGORIES[category].gate,
        category=category,
        confidence=0.8,
        authority=authority,
        reasons=reasons,
    )
    assert kinds.type_of(said, kind=kind, origin=origin) == wanted


def test_every_type_has_a_path() -> None:
    assert {row[0] for row in PATHS} == set(get_args(MemoryType))
