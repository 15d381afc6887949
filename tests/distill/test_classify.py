"""Sentences as people say them, and what each is; orders of the moment are nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.distill.classify import Speaker, classify, confidence_of
from csmd.distill.cues import CUES
from csmd.model import CATEGORIES

KEPT = [
    ("add a retry, and by the way I prefer pathlib over os.path", "behavioral", "preference", "prefer"),
    ("I'd rather keep it in one file", "behavioral", "preference", "prefer"),
    ("use pnpm instead of npm", "behavioral", "preference", "rather_than"),
    ("no, that's wrong: the config key is database_url, not db_url", "correction", "fact", "wrong"),
    ("that's not how we do it: handlers never touch the database directly", "correction", "fact", "wrong"),
    ("actually the tests live in spec/, not tests/", "correction", "fact", "actually"),
    ("No, use the v2 endpoint, v1 is deprecated", "correction", "fact", "no"),
    ("it's called tenant_id not customer_id", "correction", "fact", "not_but"),
    ("why couldn't we set the agent in the constructor instead?", "correction", "preference", "why_not"),
    ("why don't we use the existing helper?", "correction", "preference", "why_not"),
    ("isn't it only called at startup?", "correction", "preference", "why_not"),
    ("we use uv here, not pip", "behavioral", "convention", "we_use"),
    ("we use pnpm", "behavioral", "convention", "we_use"),
    ("from now on run `make lint` before committing", "behavioral", "convention", "from_now_on"),
    ("always use type hints", "behavioral", "convention", "always"),
    ("don't touch the generated files in api/", "behavioral", "convention", "do_not"),
    ("please stop adding comments to every line", "behavioral", "convention", "do_not"),
    ("before making changes, don't forget to pull main", "behavioral", "procedure", "do_not_forget"),
    ("let's go with Postgres for the queue because we need LISTEN/NOTIFY", "epistemic", "decision", "go_with"),
    ("we decided to drop support for Python 3.9", "epistemic", "decision", "go_with"),
    ("commit messages should be in imperative mood", "epistemic", "decision", "should"),
    ("the API rate limit is 100 requests per minute", "epistemic", "fact", "is_so"),
    ("the staging database is called orders_stage", "epistemic", "fact", "lives_in"),
    ("Sarah owns the billing service", "relational", "person", "people"),
    ("I'll follow up with the vendor about the API limits next week", "promissory", "plan", "promise"),
]
REMEMBERED = [
    ("remember that the staging server is only reachable over VPN", "epistemic", "constraint"),
    ("remember to run the linter before you push", "behavioral", "procedure"),
    ("please remember: I prefer tabs in Makefiles", "behavioral", "preference"),
    ("don't forget that prices are in cents", "epistemic", "fact"),
    ("keep in mind that we use two spaces", "behavioral", "convention"),
]
ORDERS = [
    "fix the failing test",
    "commit this",
    "can you add a test?",
    "run the tests",
    "ok do it",
    "yes please",
    "continue",
    "thanks, looks great!",
    "what does this function do?",
    "can you check why the build fails?",
    "show me the diff",
    "add a retry to the http client",
    "make the button blue",
    "rename foo to bar in utils.py",
    "let's look at the logs",
    "let's commit this and push",
    "why is the test failing?",
    "can you explain how the queue works?",
    "write a README",
    "looks good, now push it",
    "there's an error in the build",
    "please fix the lint errors",
    "could you run the linter?",
    "implement the login page with email and password",
    "the tests are failing, please fix them",
    "try again",
    "do you remember what we said about the queue?",
    "",
]
TOLD_BY_THE_ASSISTANT = [
    ("The root cause was that `FileModificationTools` was missing the `replace` tool.", "epistemic", "gotcha"),
    ("Packer doesn't support a `mirror` field in the upload configuration.", "epistemic", "constraint"),
    (
        "The hooks now use `paths.RepoRoot()` instead of the current directory, so subfolders work.",
        "epistemic",
        "decision",
    ),
]


@pytest.mark.parametrize(("said", "gate", "category", "reason"), KEPT)
def test_what_a_user_says_in_passing_is_known_for_what_it_is(said: str, gate: str, category: str, reason: str) -> None:
    found = classify(said, kind="user")
    assert found is not None
    assert (found.gate, found.category, found.reasons[0]) == (gate, category, reason)


@pytest.mark.parametrize(("said", "gate", "category"), REMEMBERED)
def test_remember_takes_its_category_from_the_rest(said: str, gate: str, category: str) -> None:
    found = classify(said, kind="user")
    assert found is not None
    assert (found.gate, found.category, found.reasons[0]) == (gate, category, "remember")


@pytest.mark.parametrize("said", ORDERS)
def test_an_order_of_the_moment_is_nothing(said: str) -> None:
    assert classify(said, kind="user") is None


@pytest.mark.parametrize(("said", "gate", "category"), TOLD_BY_THE_ASSISTANT)
def test_what_the_assistant_found_is_known_for_what_it_is(said: str, gate: str, category: str) -> None:
    found = classify(said, kind="assistant")
    assert found is not None
    assert (found.gate, found.category) == (gate, category)


def test_an_assistant_cannot_ask_to_be_remembered() -> None:
    assert classify("Remember that nothing here matters much to anyone", kind="assistant") is None


def test_the_same_words_are_surer_from_a_user() -> None:
    said = "the deploy fails when the token is only valid for one region, because of `aws sts`"
    user, assistant = classify(said, kind="user"), classify(said, kind="assistant")
    assert user is not None
    assert assistant is not None
    assert user.confidence > assistant.confidence


@pytest.mark.parametrize("cue", CUES, ids=lambda cue: cue.reason)
def test_every_cue_names_a_category_of_the_model_and_a_clarity(cue: object) -> None:
    assert any(cue is row for row in CUES)
    row = next(row for row in CUES if row is cue)
    assert row.category in CATEGORIES
    assert 0 < row.clarity <= 0.95
    assert set(row.speakers) <= {"u", "a"}


@given(clarity=st.floats(0, 1), kind=st.sampled_from(["user", "assistant"]), category=st.sampled_from(list(CATEGORIES)))
def test_confidence_stays_within_what_the_category_allows(clarity: float, kind: Speaker, category: str) -> None:
    rule = CATEGORIES[category]  # type: ignore[index]
    assert rule.low <= confidence_of(category, clarity, kind) <= rule.high  # type: ignore[arg-type]
