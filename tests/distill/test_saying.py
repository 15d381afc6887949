"""What a user plainly states is remembered; what he only orders, asks, reports or wavers about is not."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.distill import extract, saying, shape, units
from csmd.model import StoredTurn

BENCH = Path(__file__).resolve().parent.parent / "bench"
EVALUATION = Path(os.environ.get("CSMD_EVAL", BENCH.parent.parent.parent / "shared" / "eval"))

#: A prompt, and what it states with the gate of each.
STATES: list[tuple[str, list[tuple[str, str]]]] = [
    ("call me Bea, not Beatrice", [("call me Bea, not Beatrice", "relational")]),
    ("my name is Jonas", [("my name is Jonas", "relational")]),
    (
        "Dr. Aldana runs the clinic and approves travel budgets",
        [("Dr. Aldana runs the clinic and approves travel budgets", "relational")],
    ),
    (
        "version 7.4 of that parser drops comments, so we stay on 7.3",
        [("version 7.4 of that parser drops comments, so we stay on 7.3", "epistemic")],
    ),
    ("The API port is 9191 now", [("The API port is 9191 now", "epistemic")]),
    ("Backups run at 3 am", [("Backups run at 3 am", "epistemic")]),
    ("prices are stored in cents", [("prices are stored in cents", "epistemic")]),
    ("The deadline for the beta is 2026-12-15", [("The deadline for the beta is 2026-12-15", "promissory")]),
    ("the demo for investors is on March 3rd", [("the demo for investors is on March 3rd", "promissory")]),
    ("The v2 launch is planned for Q3", [("The v2 launch is planned for Q3", "promissory")]),
    ("I'll send the API keys on Friday", [("I'll send the API keys on Friday", "promissory")]),
    ("Answer briefly, no long explanations", [("Answer briefly, no long explanations", "behavioral")]),
    ("I don't want you to push to main. Open a PR instead.", [("I don't want you to push to main.", "behavioral")]),
    ("Use conventional commits", [("Use conventional commits", "behavioral")]),
    (
        "always show me the diff before you write files",
        [("always show me the diff before you write files", "behavioral")],
    ),
    ("no, the table is called accounts", [("the table is called accounts", "correction")]),
    ("Actually, our Node version is 20", [("our Node version is 20", "correction")]),
    # So short that few words tell of it.
    *(
        (said, [(said, "")])
        for said in (
            "Every release needs a tag.",
            "Each tenant has its own schema.",
            "All handlers must return JSON.",
            "Bundle size must stay below 200 kB.",
            "Default batch size is 50.",
            "Default page size is 50.",
            "Change requests need two approvals",
            "Push notifications go through FCM",
            "I like tabs.",
            "I'm Marta",
            "Our queue is RabbitMQ.",
            "We're on Django 5.1 here.",
            "The docs site is https://docs.acme.example",
            "I don't want you to rewrite history.",
            "This is a Rails 8 app with Hotwire and Postgres.",
            # A number that is set, a way, a day, a ban that is lifted, and who somebody is.
            "Lines are 80 columns.",
            "make it 90 columns now",
            "Set the line length to 80 columns.",
            "Limit functions to 40 lines",
            "The release slipped to December 17.",
            "The release is on December 10.",
            "Tests run with pytest -x.",
            "Errors are reported to Sentry.",
            "Images are stored in S3",
            "Logging goes through structlog.",
            "Emojis are fine in commit messages now.",
            "you can touch the legacy/ folder again",
            "I'm in Lisbon",
            "I live in Porto",
            "I'm a backend developer",
            "Hello, I'm a Rust developer",
            "Hi, I'm Marta.",
            "We have a demo by Feb 16",
            # "Always" and "never" that direct, or tell how it is.
            "I never use windows",
            "we never push to main",
            "we should never merge without a review",
            "you should always run the linter first",
            "you never commit without asking me",
            "The worker always restarts after a deploy",
            "I'm never available on Fridays",
            "never mind, use pnpm instead of npm in the web client",
        )
    ),
    ("And keep lines at 80 columns.", [("keep lines at 80 columns.", "")]),
    # Long doings and long absences hold.
    ("I'll ask legal about the licence next week", [("I'll ask legal about the licence next week", "promissory")]),
    ("Omar is out until January 8, Lena reviews for him", [("Omar is out until January 8, Lena reviews", "")]),
    ("no, the wrong table is locked first, not orders", [("the wrong table is locked first", "correction")]),
    # Beside what is ordered, asked or reported.
    (
        "please refactor the mailer. btw the smtp host changed to mail2.acme.example last week",
        [("the smtp host changed to mail2.acme.example last week", "")],
    ),
    ("I'm Tove, I do the design here. Could you change the font to Inter?", [("I'm Tove, I do the design here.", "")]),
    ("Can you write the release notes? The release is due on Friday. Keep them short.", [("due on Friday", "")]),
    (
        "Add pagination to the list. We use cursor pagination everywhere.",
        [("We use cursor pagination everywhere.", "")],
    ),
    ("Thanks! One more thing: all our API responses are snake_case.", [("all our API responses are snake_case.", "")]),
    # Orders, questions, reports and thoughts.
    *(
        (said, [])
        for said in (
            "Create a Flask app with two routes, one for login and one for logout",
            "write a function that parses ISO dates and returns None on failure",
            "The button should be blue and a bit larger",
            "set up a github action that runs the tests on push",
            "Implement a rate limiter middleware using a token bucket, 10 requests per second per IP.",
            "skip the slow tests this time",
            "don't worry about linting for now, just continue.",
            "use the id from the first row for now",
            "the page crashes when I click save",
            "it prints nothing when I run it with --verbose",
            "I just deployed it and it looks good",
            "I'll be back in ten minutes",
            "the deploy is still running",
            "who maintains the billing service",
            "which version of Java do we run in production",
            "would it be better to use a queue here",
            "the diff looks too big, can you split it",
            "maybe we should use redis for this",
            "I think the problem is in the parser but I'm not sure",
            "no strong opinion on the naming",
            "we haven't decided on a name for the product yet",
            'According to the blog post, "SQLite is enough for most sites"',
            'the comment says "never call this twice"',
            "My old company used Perforce",
            "I get this error: ModuleNotFoundError: No module named 'requests'",
            "psql: error: connection to server on socket failed",
            "Add pagination to the list. The page size is 20.",
            "The chart is broken. When I select March nothing is shown. Please fix it.",
            "Build a todo app. It has a list and an input field. Each entry has a checkbox. The user can delete entries.",
            "The deploy failed. It says the image was not found. I pushed the image an hour ago.",
            "all buttons need a border",
            "every test has failed",
            "I'm done",
            "The fix needs two hours",
            # "Always" and "never" that direct nobody.
            "never mind, it was a stale cache. continue",
            "never mind, let's go on",
            "never mind the style guide",
            "always nice to see green tests",
            "always the same story",
            "I'm always happy when CI is green",
            "you never listen",
            "that never works",
            "it's never been this slow",
            "I never got an answer to my question",
            "you always forget the semicolon",
            "we should never have merged that",
            "I always forget how rebase works",
            "I can never remember the flags of tar",
            # Neither a rule's number nor a lasting way.
            "make it 10 columns wide",
            "set the timeout to 30 seconds",
            "The button moved to March 3",
            "Tests run with errors",
            "Logging goes through twice",
            "you can continue again",
            "I'm a bit confused",
            "Hi, I'm back",
            "The staging key is [redacted:key] and the db password is [redacted:password], use them for the smoke test.",
            # Set right without a word for it, and what the next minutes bring.
            "no, this is the wrong table",
            "that is still not what I wanted",
            "I meant the second one",
            "you opened the wrong branch",
            "the sum should be 1200",
            "looks fine to me, let's take the second one",
            "I'm on a call till four, go on with the docs",
            "I'll grab a coffee, one moment",
            "I need to ask my manager quickly",
            "this is getting really frustrating, the linter is down again",
            "it took ages and my head hurts",
            "the customer is waiting for it, hurry up",
            "the smoke tests are failing again, great",
            "the password is [redacted:password], just for the login",
            "Here is the error. I think it is caused by the new driver. Can you check?",
        )
    ),
]


def stated(text: str) -> list[tuple[str, str]]:
    """What becomes a memory of a prompt, each with its gate."""
    turn = StoredTurn(seq=1, uuid="u1", session_id="s", project_seq=1, kind="user", text=text, at="", ordinal=1)
    return [(one.text, one.gate) for one in extract.statements(turn)]


def check(text: str, wanted: list[tuple[str, str]]) -> None:
    """Each wanted is stated, in one statement of its own, with its gate where one is given; nothing else is."""
    found = stated(text)
    assert len(found) == len(wanted), found
    for (said, gate), (part, of) in zip(found, wanted, strict=True):
        assert part in said
        assert of in ("", gate)


@pytest.mark.parametrize(("text", "wanted"), STATES, ids=lambda value: value[:40] if isinstance(value, str) else "")
def test_what_is_plainly_stated_is_remembered_and_what_passes_is_not(text: str, wanted: list[tuple[str, str]]) -> None:
    check(text, wanted)


def test_the_more_stands_around_a_sentence_the_surer_one_must_be_of_it() -> None:
    assert [place.bar for place in saying.PLACES] == sorted(place.bar for place in saying.PLACES)
    said = "The session cookie is set in auth.py."
    around = "The chart is drawn by hand. The list is short. The label is long. "
    assert stated(said)
    assert said not in [text for text, _ in stated(around + said)]


def test_a_row_that_ends_within_a_sentence_is_none() -> None:
    found = units.pieces("we should keep\nthe retries in `http_client.py`, not in the callers", "user")
    assert saying.sayings(found, [False, False]) == ["open", "open"]


def test_the_model_is_readable_small_and_knows_classes_and_no_words() -> None:
    held = json.loads(saying.WEIGHTS.read_text())
    assert saying.WEIGHTS.stat().st_size < 100_000
    assert saying.shipped().name == held["name"]
    classes = {*shape.CLASSES.values(), *"?!,;:()-.", "quoted", "later", "number", "code", "name", "not", "thing"}
    classes |= {"ing", "ed", "ly", "s"}
    told = {"words", "ends", "begins", "1", "2", "3", "1-2"}
    for name in set(held["weights"]) - {"any"}:
        head, colon, rest = name.partition(":")
        of = rest if colon and head in told and head not in ("words", "begins") else name
        assert name.startswith(("words:", "begins:")) or set(of.split()) <= classes, name


@pytest.mark.parametrize(
    "held", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "name": "x", "weights": {"a": 1}}', "\0"]
)
def test_without_a_model_every_sentence_is_left_to_the_tables(tmp_path: Path, held: str) -> None:
    path = tmp_path / "saying.json"
    assert saying.load(path) is saying.NONE
    path.write_text(held)
    assert saying.load(path) is saying.NONE
    found = units.pieces("Backups run at 3 am every day. Maybe we should use redis.", "user")
    assert saying.sayings(found, [False] * len(found), saying.NONE) == ["open", "passes"]


@given(st.text(max_size=300))
def test_whatever_is_said_it_is_told_how_it_is_put_within_bounds_and_the_same_again(text: str) -> None:
    put = shape.shape(text)
    assert len(put) <= 2 * shape.MAX_WORDS + 10
    assert put == shape.shape(text)
    assert 0 <= saying.shipped().of(put) <= 1
    found = units.pieces(text, "user")
    assert len(saying.sayings(found, [False] * len(found))) == len(found)


@pytest.mark.parametrize(
    "piece",
    [
        "no that's the wrong ",
        "i'll check ",
        "i never ",
        "never mind ",
        "always so such a ",
        "Ab are ",
        "keep the lines ",
        "is all ",
        "a ",
        "[redacted",
        "still ",
        "the x ",
    ],
)
def test_what_a_long_sentence_is_not_is_found_in_time_that_grows_with_it(piece: str) -> None:
    text = piece * (20_000 // len(piece))
    began = time.process_time()
    saying.otherwise(text)
    assert not any(row.search(text) for row in (saying.SET, *saying.STATED))
    assert time.process_time() - began < 1


@pytest.mark.parametrize("piece", ["a ", "the module ", "`", '"', "(", "x.", "--a", "is now ", "ⓐ", "it isn't, "])
def test_a_megabyte_is_told_by_its_beginning(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    assert shape.shape(text) == shape.shape(text[: shape.MAX_SENTENCE])


@pytest.mark.skipif(not (EVALUATION / "transcripts").is_dir(), reason=f"no labelled set at {EVALUATION}; set CSMD_EVAL")
def test_of_sentences_it_was_not_trained_on_most_that_hold_are_remembered_and_few_others() -> None:
    sys.path.insert(0, str(BENCH))
    import train_saying as bench

    rows = [row for row in bench.rows_of(EVALUATION) if row.source == "written" and not row.learned]
    found = bench.kept(rows, saying.shipped())
    share = {gate: found[gate] / sum(row.gate == gate for row in rows) for gate in {row.gate for row in rows}}
    assert share.pop("none") <= 0.06
    assert share.pop("correction") >= 0.65
    assert min(share.values()) >= 0.70
