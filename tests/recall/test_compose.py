"""What of a memory is told where nobody asked, and how much of it by how full the context is."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recall_fixtures import memory

from csmd.recall import compose
from csmd.text import display, sentence

#: (what was said, by whom, what is told of it)
CASES: dict[str, tuple[str, str, str]] = {
    "a statement": (
        "The queue lives in Postgres because we need LISTEN/NOTIFY.", "user",
        "The queue lives in Postgres because we need LISTEN/NOTIFY.",
    ),
    "a polite request": ("Can you look at the failing build on the main branch?", "user", ""),
    "a request without its mark": ("could you please rename the settings file to app.toml", "user", ""),
    "a request in the middle": ("based on scripts/run.sh can you do one more script that starts two workers", "user", ""),
    "a question": ("why couldn't we set the agent in session b?", "user", ""),
    "a question, then what is so": (
        "Why is that slow? The index on orders.created_at is missing in staging.", "user",
        "The index on orders.created_at is missing in staging.",
    ),
    "what leans on a question": ("Can't we just leave the labels? Like move each of the labels with its colour.", "user", ""),
    "an errand": ("add a tests so nobody breaks the parser next year again", "user", ""),
    "an errand that always holds": (
        "Add a changelog line before every release of the client.", "user",
        "Add a changelog line before every release of the client.",
    ),
    "a rule in the imperative": (
        "Use open/closed and not up/down for the valves.", "user", "Use open/closed and not up/down for the valves.",
    ),
    "a choice of several": ("let's use the new importer here", "user", "let's use the new importer here"),
    "a decision of several": (
        "let's completely remove the legacy importer", "user", "let's completely remove the legacy importer",
    ),
    "an errand of several": ("let's check the legacy importer", "user", ""),
    "a reviewer's advice behind a fact": (
        "FetchBranch runs git fetch with context.TODO() and no timeout. Consider using a timeout for it.", "user",
        "FetchBranch runs git fetch with context.TODO() and no timeout.",
    ),
    "an assistant's advice behind a fact": (
        "The token has no write access. Check the settings of the repository: read and write.", "assistant",
        "The token has no write access. Check the settings of the repository: read and write.",
    ),
    "an errand that leads into a fact": (
        "Push the branch and open the form: only the default branch's forms are shown by the site.", "assistant",
        "only the default branch's forms are shown by the site.",
    ),
    "an errand with a setting in it": ('Add a reader; then set "remote": "upstream" in the settings file of the fork', "user", ""),
    "an errand at one line of a file": (
        "Handle empty rows exceeding MaxRowCount in rows.go:31 - an empty row passes through", "user", "",
    ),
    "an assistant's question behind a fact": (
        "The token of the workflow has no write access. Would you like me to change that?", "assistant",
        "The token of the workflow has no write access.",
    ),
    "a question with a remark behind it": ("we could offer to resume anyway or cancel? (if so we need a parameter)", "user", ""),
    "two ways to go": ("Option 1: deprecate the function. Option 2: remove it from the package.", "assistant", ""),
    "what a program printed": ("UserPromptSubmit hook error ⎿ Failed with non-blocking status code", "user", ""),
    "an assistant's cause": (
        "The tests failed because start_test.go defined a helper that another file used.", "assistant",
        "The tests failed because start_test.go defined a helper that another file used.",
    ),
    "a label in front of its rule": (
        "Merge notes: short, no names of clerks, and always with the ledger", "user",
        "Merge notes: short, no names of clerks, and always with the ledger",
    ),
    "few words that were all": ("tabs, not spaces", "user", "tabs, not spaces"),
}  # fmt: skip


def check(name: str) -> None:
    said, by, told = CASES[name]
    assert compose.durable_text(memory(said, authority=by)) == told


@pytest.mark.invariant(
    "What does not fit in a brief goes in one order, corrections last; no question or errand is told unasked"
)
@pytest.mark.parametrize("name", CASES)
def test_what_tells_something_is_told(name: str) -> None:
    check(name)


@pytest.mark.parametrize(
    "said",
    [
        "Change windows are on Tuesdays, after ten",
        "Merge trains go through the release branch",
        "Push access is limited to the three leads",
        "Read access to billing needs an approval",
        "Test data belongs in fixtures/",
        "Update jobs should not overlap",
        "Write-heavy tables get their own disk",
        "Review apps expire after two days",
    ],
)
def test_a_noun_that_is_also_an_errands_verb_makes_no_errand(said: str) -> None:
    assert compose.durable_text(memory(said, authority="user")) == said


@pytest.mark.parametrize(
    "said", ["Put migrations under db/migrations", "Set empty lists to null", "Show prices in euros"]
)
def test_how_things_of_a_kind_are_done_is_a_rule_though_it_is_an_order(said: str) -> None:
    assert sentence.states_something(said)


@pytest.mark.parametrize(
    "said",
    [
        "Change the colors that are too dark",
        "Merge main into this branch, the tests are green",
        "Put the migrations under db/migrations",
        "Run tests again",
        "Show that prices are in euros",
        "Check tests are green",
        "Fix tests in the parser, they need the clock",
        "Update docs and changelog",
        "Write tests for users",
    ],
)
def test_an_errand_with_its_object_is_not_told(said: str) -> None:
    assert not sentence.states_something(said)


@pytest.mark.parametrize(
    "piece",
    ["set a", "push ", "write s ", "move for is ", "runs to ", "set s s s", "-.", "ok so ", "?( )", "? (", "a? (b) "],
)
def test_whether_a_long_sentence_tells_is_found_in_time_that_grows_with_it(piece: str) -> None:
    text_ = piece * (200_000 // len(piece))
    began = time.process_time()
    sentence.states_something(text_)
    assert time.process_time() - began < 2


def test_what_a_person_pinned_and_what_was_counted_is_told_as_it_is() -> None:
    asked = "Asks for tests after a change (“does it have tests?”): in 12 of 72 sessions."
    assert compose.durable_text(memory(asked, origin="inferred")) == asked
    assert (
        compose.durable_text(memory("Can you always answer in German?", pinned=True))
        == "Can you always answer in German?"
    )


@given(st.text("abcde .?!…`é", max_size=400), st.integers(1, 120))
def test_what_is_shortened_fits_and_ends_with_a_sentence_or_an_ellipsis(said: str, limit: int) -> None:
    said = display.squeeze(said)
    short = compose.shorten(said, limit)
    assert len(short) <= limit
    assert short == said or said.startswith(short.rstrip("…").rstrip())


def test_an_assistants_announcement_is_left_out_of_what_is_told() -> None:
    looking = "Let me run the checks first."
    found = "The importer parses each row twice."
    assert compose.drop_refused(f"{looking} {found}") == found
    assert compose.drop_refused(looking) == looking


# --- How full a context is decides how much is added to it; what the user allows is never passed.


WINDOW = 200_000
BRACKETS: dict[int, compose.Bracket] = {
    0: "FRESH", 59_999: "FRESH", 60_000: "MODERATE", 109_999: "MODERATE", 110_000: "DEPLETED", 149_999: "DEPLETED",
    150_000: "CRITICAL", 200_000: "CRITICAL", 260_000: "CRITICAL",
}  # fmt: skip


@pytest.mark.parametrize("used", BRACKETS)
def test_a_bracket_begins_where_the_table_says(used: int) -> None:
    assert compose.bracket_of(used, WINDOW) == BRACKETS[used]


@pytest.mark.invariant(
    "No bracket of context gives more than the user allows; the advisory neither orders nor claims without exception"
)
@given(st.integers(0, 2_000_000), st.integers(0, 1_000_000), st.integers(0, 9000))
def test_no_bracket_gives_more_than_the_user_allows(used: int, window: int, most: int) -> None:
    policy = compose.POLICY[compose.bracket_of(used, window)]
    assert 0 <= int(most * policy.recall) <= most
    assert 0 <= int(most * compose.policy_after_compaction(used, window).restored) <= most


def test_a_fuller_context_is_filled_less_and_given_back_more_after_its_compaction() -> None:
    policies = list(compose.POLICY.values())
    recalled = [one.recall for one in policies]
    restored = [one.restored for one in policies]
    assert recalled == sorted(recalled, reverse=True) and recalled[-1] < recalled[0]
    assert restored == sorted(restored) and restored[0] < restored[-1]


def test_where_nobody_knows_a_prompt_has_all_and_a_compaction_found_it_full() -> None:
    assert compose.bracket_of(0, 0) == "FRESH"
    assert compose.policy_after_compaction(0, WINDOW) == compose.POLICY["CRITICAL"]
