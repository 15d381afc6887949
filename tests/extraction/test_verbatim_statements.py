"""What is kept as it stands: answers with their questions, and notes behind a `#`."""

from __future__ import annotations

from typing import Any

import pytest

from csmd.conversation import StoredTurn
from csmd.extraction import chooser, exchange_sources, verbatim_statements
from csmd.knowledge import Statement


def turn(text: str, **more: Any) -> StoredTurn:
    """The answer that stands in place of a tool's result, unless `more` says something else."""
    values = {"seq": 1, "uuid": "u1/1", "session_id": "s1", "project_seq": 1, "kind": "user", "ordinal": 3}
    return StoredTurn(**{**values, "text": text, "at": "2026-01-02T03:04:05.678Z", **more})  # type: ignore[arg-type]


def texts(statements: list[Statement]) -> list[str]:
    return [statement.text for statement in statements]


PICKS = {
    "an answer": ("> Which database?\nPostgreSQL", ["Which database? -> PostgreSQL"]),
    "several answers": (
        "> Which database?\nPostgreSQL\n\n> Do we cache the feed?\nno",
        ["Which database? -> PostgreSQL", "Do we cache the feed? -> no"],
    ),
    "a question of several lines": ("> Which of these\n> \n> is it?\nPostgreSQL", ["Which of these is it? -> PostgreSQL"]),
    "a question behind an assertion": (
        "> The old cache is slow. Should we drop the cache?\nYes", ["Should we drop the cache? -> Yes"],
    ),
    "no to an assertion": ("> We always deploy on Fridays. Is that right?\nNo", []),
    "an answer to what is no question": ("> There are two. Choose the database:\nMySQL", ["Choose the database: -> MySQL"]),
    "an answer of several lines": ("> Which?\nneither\n\nkeep both", ["Which? -> neither keep both"]),
    "an answer without a question": ("PostgreSQL", []),
    "a question without an answer": ("> Which database?\n", []),
}  # fmt: skip


@pytest.mark.parametrize("name", PICKS)
def test_an_answer_is_a_decision_told_with_its_question(name: str) -> None:
    said, expected = PICKS[name]
    found = verbatim_statements.find_verbatim(turn(said))
    assert texts(found) == expected
    assert {(one.authority, one.category) for one in found} <= {("user", "decision")}
    assert set(expected) <= set(chooser.find_wordings(said))


def test_an_answer_that_a_program_gives_is_not_the_users() -> None:
    (found,) = verbatim_statements.find_verbatim(turn("> Which?\nThe first", kind="relayed"))
    assert found.authority == "assistant"


def test_a_long_question_leaves_its_answer_room() -> None:
    (text,) = texts(verbatim_statements.find_verbatim(turn(f"> {'database ' * 1000}?\n{'feed ' * 1000}")))
    assert len(text) <= verbatim_statements.MAX_QUESTION_CHARACTERS + verbatim_statements.MAX_ANSWER_CHARACTERS + 4


def test_what_a_user_types_below_a_quotation_is_no_answer_to_a_question() -> None:
    assert verbatim_statements.find_verbatim(turn("> Which database?\nPostgreSQL", uuid="u1")) == []


@pytest.mark.parametrize(
    "said",
    ["no orm", "use tabs", "Use tabs", "Ids are strings", "always sign the ledger commits, never push them bare"],
)
def test_a_note_behind_a_hash_is_a_statement_however_short_it_is(said: str) -> None:
    (found,) = chooser.choose_from_turn(turn(f"# {said}", uuid="u1"))
    assert (found.text, found.authority, found.reasons) == (said, "user", ("remember",))


@pytest.mark.parametrize(
    "said",
    ["# Plan\n\nWe ship on Friday.", "#12 is open", "## Notes", "the # key", "# Known issues", "# API reference"],
)
def test_a_heading_and_a_number_are_no_notes(said: str) -> None:
    assert verbatim_statements.find_verbatim(turn(said, uuid="u1")) == []


def test_the_options_that_were_not_picked_are_no_statement() -> None:
    asked = turn(
        "I can use PostgreSQL for its JSONB, or MySQL for its replication.", kind="assistant", uuid="a1", ordinal=2
    )
    sources = [
        exchange_sources.Source(asked, "midway"),
        exchange_sources.Source(turn("> Which database?\nPostgreSQL"), "prompt"),
    ]
    by_user = [one.statement.text for one in chooser.choose(sources) if one.statement.authority == "user"]
    assert by_user == ["Which database? -> PostgreSQL"]
