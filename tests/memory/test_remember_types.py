"""Each of the twelve types has a path that ends in it; what a row says decides, the first that fits."""

from __future__ import annotations

from typing import get_args

import pytest

from csmd.memory import remember
from csmd.model import CATEGORIES, MemoryType, Statement

#: (type, words, category, who said it, kind of the turn)
PATHS = [
    ("conversation", "The user asked for a smaller release.", "fact", "assistant", "summary"),
    ("workspace", "We will migrate to Postgres next sprint", "plan", "user", "user"),
    ("workspace", "Sarah leads the auth service", "person", "user", "user"),
    ("repo", "The API uses JWT with RS256 signing", "fact", "user", "user"),
    ("preference", "I prefer tabs", "preference", "user", "user"),
    ("lesson", "Renaming the column needs a new view first", "gotcha", "user", "user"),
    ("episodic", "Removed the `retry: 1` line since GoReleaser doesn't support it", "decision", "assistant", "assistant"),
    ("episodic", "I've also moved the parser into its own package", "fact", "assistant", "assistant"),
    ("procedural", "A release is: changelog, package.json, tag", "procedure", "user", "user"),
    ("procedural", "Tests stand beside the code", "convention", "user", "user"),
    ("concept", "We chose Postgres over SQLite for the queue", "decision", "user", "user"),
    ("code", "Handlers use the builder pattern", "pattern", "user", "user"),
    ("config", "It must run on Python 3.11", "constraint", "user", "user"),
    ("error", "`npm ci` fails with EUSAGE when the lock file is older", "gotcha", "assistant", "assistant"),
    ("error", "TypeError: undefined is not a function means the mock is missing", "gotcha", "user", "user"),
    ("self_continuity", "I can't run the e2e tests here: there is no browser", "fact", "assistant", "assistant"),
    # The same words of a user are about the user, or about what is to be done.
    ("repo", "I can't run the e2e tests here: there is no browser", "fact", "user", "user"),
    ("concept", "Removed endpoints stay documented for a year", "decision", "user", "user"),
]  # fmt: skip


@pytest.mark.parametrize("row", PATHS, ids=lambda row: f"{row[0]}: {row[1][:30]}")
def test_a_type_follows_from_how_a_memory_came_to_be_else_from_its_category(row: tuple) -> None:
    wanted, words, category, authority, kind = row
    said = Statement(
        text=words,
        gate=CATEGORIES[category].gate,
        category=category,
        confidence=0.8,
        authority=authority,
    )
    assert remember.type_of(said, kind=kind) == wanted


def test_every_type_has_a_path() -> None:
    assert {row[0] for row in PATHS} == set(get_args(MemoryType))
