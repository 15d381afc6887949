"""Which prompt sets what a session is at: an order with something to do in it, and none that goes on, mends or asks."""

from __future__ import annotations

import pytest

from csmd.extraction.work import Entry
from csmd.recall import checkpoint

SETS = [
    "please fix the date parser, it loses the time zone", "can you add a retry to the exporter?",
    "now let's move the settings to YAML", "great. Now write the migration for the users table",
    "the login page shows a blank screen on Safari, find out why", "ok, next: port the importer to asyncio",
    "commit this, then implement the cache for the search results",
    "the import of large files crashes on Windows", "I want the report to show totals per month", "what is wrong here? fix the failing import of the parser",
    "also rewrite the documentation of the exporter with examples for every option it has",
]  # fmt: skip
DOES_NOT = [
    "yes", "go on", "ok, continue please", "commit", "commit it and push to the branch", "yes, commit and open a PR",
    "run the tests again", "looks good to me, merge it", "that works now, thanks", "thanks!", "do it",
    "no, use the other parser for the dates", "actually the port is 8081 and not 8080",
    "what port does the exporter listen on?", "why did you remove the retry? is it needed?",
    "also add a test", "and update the changelog", "you forgot the import in main.py", "wait, stop and revert that change",
    "try again", "1", "lgtm, create the pull request", "the staging server has the address 10.0.0.5",
    "I ran it on my machine and all tests pass",
]  # fmt: skip


@pytest.mark.invariant("What a session is at is the task that was set last; going on, asking and mending set none")
@pytest.mark.parametrize("said", SETS)
def test_what_gives_something_to_do_sets_a_task(said: str) -> None:
    assert checkpoint.sets_task(said)


@pytest.mark.invariant("What a session is at is the task that was set last; going on, asking and mending set none")
@pytest.mark.parametrize("said", DOES_NOT)
def test_what_goes_on_mends_adds_or_asks_sets_none(said: str) -> None:
    assert not checkpoint.sets_task(said)


def prompts(*said: str) -> list[Entry]:
    return [Entry(at, f"u{at}", "user", one, "", "", "", 0) for at, one in enumerate(said, 1)]


def test_the_task_that_was_set_last_comes_first_and_a_session_without_one_is_known_by_what_it_says() -> None:
    found = checkpoint.tasks(prompts(DOES_NOT[13], SETS[0], "go on", SETS[2], "commit"))
    assert [one.text for one in found] == [SETS[2], SETS[0]]
    assert [one.text for one in checkpoint.tasks(prompts("hi", DOES_NOT[13], "yes"))] == [DOES_NOT[13]]
    assert [one.text for one in checkpoint.tasks(prompts("hi", "yes"))] == ["hi"] and checkpoint.tasks([]) == []
