"""What one statement is to another: the same, more, a replacement, or another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csmd.memory import confidence
from csmd.text import claims, clauses, similarity

PAIRS = Path(__file__).parent.parent / "data" / "supersession"
RULES = "Three rules: 1. commits are signed 2. tests run with pytest -q 3. branches are named feat/ticket"
PROSE = "We deploy with Ansible. Commits are squashed. Tests live next to the code."
ROWS = "use 2-space indentation; never commit to main; write the docs in British English"


def check(older: str, newer: str, *, wanted: str) -> None:
    """What the newer one is to the older: "amends", "asks" (a person, perhaps) or ""."""
    found = similarity.compare(older, newer)
    assert ("amends" if found.replaces else "asks" if found.is_doubtful else "") == wanted


@pytest.mark.invariant("Of several things that one memory says a later statement ends none by speaking of another")
@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (RULES, "commits no longer need to be signed"),
        (PROSE, "Commits are not squashed any more"),
        (PROSE, "we no longer deploy with Ansible"),
        (ROWS, "we no longer use 2-space indentation"),
        (ROWS, "docs no longer need to be in British English"),
    ],
)
def test_only_the_contradicted_part_of_a_statement_is_replaced(older: str, newer: str) -> None:
    assert 0 < len(clauses.mentioned_parts(older, newer)) < len(clauses.split_parts(older))
    assert not similarity.compare(older, newer).replaces


@pytest.mark.invariant("Of several things that one memory says a later statement ends none by speaking of another")
@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("We deploy with Ansible.", "we no longer deploy with Ansible"),
        ("We deploy with Ansible. It runs from the laptop of whoever is on call.", "we no longer deploy with Ansible"),
        ("Commits are signed, since the auditors want it.", "commits are not signed any more"),
    ],
)
def test_a_statement_of_one_part_is_replaced_as_a_whole(older: str, newer: str) -> None:
    check(older, newer, wanted="amends")


@pytest.mark.parametrize(
    ("said", "number"),
    [
        (RULES, 3),
        (PROSE, 3),
        (ROWS, 3),
        ("Use uv, e.g. in CI.", 1),
        ("Ports: 8080. It was 80.", 1),
        ("", 0),
        ("We render with Cairo because the printers are old and we want no driver.", 1),
    ],
)
def test_parts_splits_a_statement_into_the_expected_number_of_parts(said: str, number: int) -> None:
    assert len(clauses.split_parts(said)) == number


@pytest.mark.parametrize(
    ("said", "ended", "left"),
    [
        (RULES, 0, "Three rules: tests run with pytest -q; branches are named feat/ticket"),
        (PROSE, 1, "We deploy with Ansible. Tests live next to the code."),
        (ROWS, 2, "use 2-space indentation; never commit to main"),
        ("we use pnpm and tests run with vitest", 0, "tests run with vitest"),
        ("We use pnpm", 0, ""),
    ],
)
def test_text_without_keeps_the_wording_of_the_remaining_parts(said: str, ended: int, left: str) -> None:
    assert clauses.text_without(said, clauses.split_parts(said)[ended : ended + 1]) == left


def share_right(name: str) -> float:
    """The share of written pairs that are told apart rightly: what amends, and what does not."""
    pairs = json.loads((PAIRS / f"{name}.json").read_text())
    right = [similarity.compare(pair["older"], pair["newer"]).replaces == (pair["kind"] == "amends") for pair in pairs]
    return sum(right) / len(right)


def test_labelled_pairs_of_replacements_and_elaborations_are_classified() -> None:
    assert share_right("pairs") >= 0.95
    assert share_right("held_back") >= 0.85
    assert share_right("changed") >= 0.85


def check_replaced(older: str, newer: str, *, wanted: str) -> None:
    found = similarity.compare(older, newer)
    assert ("certain" if found.replaces else "doubtful" if found.is_doubtful else "") == wanted


#: (older, newer, whether it is replaced): "certain", "doubtful" (a person decides) or "" (both hold).
RELATIONS = [
    ("Use tabs in the Go files", "use tabs in the go files.", ""),
    ("Use tabs in the Go files", "The staging host is behind a VPN", ""),
    ("telemetry is on by default in nightly builds", "telemetry is off by default in nightly builds", "certain"),
    ("run the migrations before deploying billing", "run the migrations after deploying billing", "certain"),
    ("the job queue runs on Postgres everywhere", "the job queue runs on Redis everywhere", "certain"),
    ("We use tabs in the Go files here", "We do not use tabs in the Go files here", "certain"),
    ("Remove the `--fast` flag from build", "Add the `--fast` flag to build again", "certain"),
    ("Hide the start command", "why not remove the start command?", ""),
    ("Hooks retry on failure", "If hooks do not retry on failure, look at the log", ""),
    ("We use Postgres for the queue", "We moved the queue to Redis", "certain"),
    ("We use Postgres for the queue", "We should have moved the queue to Redis", ""),
    ("We use Redis for the job queue", "We no longer use Redis; the queue is now RabbitMQ", "certain"),
    ("We use Redis for the job queue", "The job queue is now RabbitMQ", "certain"),
    ("We use Redis for caching", "We no longer use Redis; the queue is now RabbitMQ", ""),
    ("We use mypy for the tests", "The tests are now green", ""),
    ("We deploy to Fly.io.", "We moved from Fly.io to Hetzner.", "certain"),
    ("We host on Heroku", "We migrated from Heroku to Render", "certain"),
    ("The status page is hosted on Fly.io.", "We moved from Fly.io to Hetzner.", ""),
    ("We deploy to Fly.io.", "We moved the docs from Fly.io to Hetzner.", ""),
    ("always use ruff, never black", "use black again, not ruff", "certain"),
    ("always use ruff, never black", "use black for the notebooks, not ruff", ""),
    ("my timezone is Europe/Berlin", "My timezone is Europe/Lisbon again", "certain"),
    ("We use Python 3.11 for the build", "The build is now in CI", ""),
    ("The queue runs on Postgres", "We moved the queue to a host of its own", ""),
    ("Validate the branch before the commit", "Do not commit but validate the branch", ""),
    ("The report covers session 2 of the shop", "The report covers both instead of just session 2", ""),
    ("The token has write access to the repository", "It runs, but it doesn't have write access", ""),
    ("The tracking ref is created on push", "Without this, the tracking ref wasn't created on push", ""),
    (
        "The wrapper checks `DEV` and runs the script",
        "AreHooksInstalled() doesn't check the wrapper script",
        "",
    ),
    ("The staging network is made by Terraform", "We dropped the staging network's VPN", ""),
    ("Deploy on Fridays", "Don't forget to deploy on Fridays", ""),
    ("I prefer tabs", "I prefer spaces over tabs now", "certain"),
    ("Use tabs for indentation", "I prefer spaces over tabs now", "certain"),
    ("Use tabs in the Makefiles", "I prefer spaces over tabs now", ""),
    ("I prefer spaces over tabs", "I prefer spaces over tabs now", ""),
    ("We use Postgres", "We decided against Postgres", "certain"),
    ("The cache is Redis", "We moved away from Redis", "certain"),
    ("We use Postgres for billing", "We decided against Postgres for the queue", ""),
    ("We use Postgres", "Should we have decided against Postgres?", ""),
    # What is given up for something else ends what is for it, where both name the matter.
    ("Invoices are drawn with Cairo.", "Cairo is out, Skia draws the invoices", "certain"),
    ("Invoices are drawn with Cairo.", "we're moving invoices from Cairo to Skia", "certain"),
    ("Invoices are drawn with Cairo.", "let's drop Cairo, the labels get Skia", "doubtful"),
    ("Invoices are drawn with Cairo.", "swap Pango for Skia in the invoices", ""),
    # A value that is set takes the place of the one before.
    ("set the render timeout to 15 seconds", "raise the render timeout to 40 seconds", "certain"),
    ("The render timeout is 15 seconds", "set the render timeout to 40 seconds", "certain"),
    ("set the upload timeout to 15 seconds", "set the render timeout to 40 seconds", ""),
]


@pytest.mark.invariant("A verb of change ends the same thing's older value; no aside, order or unseen subject does")
@pytest.mark.parametrize(("older", "newer", "wanted"), RELATIONS)
def test_a_later_statement_replaces_perhaps_replaces_or_leaves_an_earlier_one(
    older: str, newer: str, wanted: str
) -> None:
    check_replaced(older, newer, wanted=wanted)


#: As above, by rule.
REPLACED = [
    # Two statements that share only their reason are of two things.
    (
        "Keep IBANs as text because leading zeros got lost",
        "Keep postcodes as numbers because leading zeros got lost",
        "",
    ),
    ("Run auth behind the gateway since sessions leaked", "Run billing behind the mesh since auth leaked sessions", ""),
    (
        "Thumbnails are cached for 5 minutes, so the CDN is cheap",
        "Avatars are cached for 9 hours, so the CDN is cheap",
        "",
    ),
    (
        "The timeout is 30 seconds because the bank is slow",
        "The timeout is 45 seconds because the tills are slow",
        "certain",
    ),
    # Nor do those that name two ends, components or environments.
    ("The server listens on port 8080", "The client listens on port 9090", ""),
    ("Staging runs two replicas", "Production runs six replicas", ""),
    ("The reader retries 3 times", "The writer retries 5 times", ""),
    ("Retries are off in tests", "Retries are on in production", ""),
    ("The jobs run in staging", "The jobs run in production", ""),
    ("The admin UI uses Redux for its state", "The shop UI uses Zustand instead of Redux for its state", ""),
    ("The VPN is needed for staging", "The VPN is not needed for production", ""),
    # What names more of the subject may be an exception.
    ("The cache listens on port 6379", "The cache listens on port 6380 in production", "doubtful"),
    ("Deploys happen on Fridays", "Deploys of the docs happen on Mondays", "doubtful"),
    ("The cache listens on port 6379 in production", "The cache listens on port 6380 in production", "certain"),
    # A denial replaces just what it denies, and not where it says of which or when.
    ("Add a comment to each test", "Don't add a comment to each test that is trivial", ""),
    ("The VPN is needed for staging", "The VPN is not needed for staging any more", "certain"),
    # What is gone ends what says little besides it; of one use among others a person decides.
    ("we use pnpm", "we use bun, pnpm is gone", "certain"),
    ("pnpm is our package manager", "we use bun, pnpm is gone", "certain"),
    ("We use pnpm in the web client", "we use bun, pnpm is gone", "doubtful"),
    ("We use pnpm", "the pnpm lockfile is gone", ""),
    ("We use pnpm", "when pnpm is gone we can use bun", ""),
    # A filler hides nothing, nor does another sentence.
    ("The API listens on port 8080.", "btw the API listens on port 9191", "certain"),
    ("Tests run with jest.", "oh and tests run with vitest now btw", "certain"),
    ("We release on Tuesdays", "we release on Thursdays. the changelog is written by hand", "certain"),
    # Questions neither replace nor are replaced.
    ("Can the API listen on port 8080?", "The API listens on port 9191", ""),
]


@pytest.mark.invariant(
    "Only what certainly is the same subject is replaced unasked; of a memory that says several things only the part ends, and what is left is taken back with it"
)
@pytest.mark.parametrize(("older", "newer", "wanted"), REPLACED)
def test_a_replacement_needs_the_same_subject_and_certainty(older: str, newer: str, wanted: str) -> None:
    check_replaced(older, newer, wanted=wanted)


def test_a_possible_replacement_is_not_a_certain_one() -> None:
    """Decided against altogether, or for a use of which nothing was said: a person knows."""
    older, newer = "We use Postgres for the job queue", "We decided against Postgres"
    doubt = similarity.compare(older, newer)
    assert (doubt.relation, doubt.confidence) == ("may replace", similarity.DOUBTFUL_CONFIDENCE)
    assert similarity.compare("We use Postgres", newer).replaces


@settings(max_examples=40)
@given(st.text(max_size=120), st.text(max_size=120))
def test_a_replacements_confidence_and_its_lowering_stay_within_bounds(older: str, newer: str) -> None:
    found = similarity.compare(older, newer)
    assert not found.replaces or similarity.MIN_SURE <= found.confidence <= 1.0
    lowered = confidence.compute_loss(found.confidence)
    assert confidence.MIN_LOSS <= lowered <= confidence.MAX_LOSS
    assert not similarity.compare(older, older).contradicts


def test_a_chain_of_renames_leads_to_the_present_name() -> None:
    said = ["We renamed `a.toml` to `b.toml`.", "`b.toml` was renamed to `c.toml`", "`old_run` is now `run`"]
    assert claims.follow_renames(said) == {"a.toml": "c.toml", "b.toml": "c.toml", "old_run": "run"}
    assert claims.follow_renames(["renamed `x.py` to `y.py`", "renamed `y.py` to `x.py`"]) == {"y.py": "x.py"}
    assert claims.apply_renames("see a.toml and data.toml", {"a.toml": "c.toml"}) == "see c.toml and data.toml"


# --- whether one says all of the other

CACHE = "The order cache is kept in Redis"
#: One, other, whether one says all of the other, and the other all of the one.
CASES = (
    (CACHE, "the Order cache is kept in redis.", True, True),
    (CACHE, "Order caches are kept in Redis", True, True),
    ("We run the tests with `make check`", "Run tests with make check", True, True),
    ("Always run `make lint` before committing", "run make lint before commits", True, True),
    ("Note that the order cache is now kept in Redis", CACHE, True, True),
    (f"{CACHE}, keyed by cart", CACHE, True, False),
    (f"{CACHE} - keyed by cart and currency.", CACHE, True, False),
    # What follows limits what was said, or takes it back.
    (f"{CACHE}, except in tests", CACHE, False, False),
    (f"{CACHE}, but only for EU carts", CACHE, False, False),
    (f"{CACHE}, for EU carts", CACHE, False, False),
    (f"{CACHE}. That was wrong.", CACHE, False, False),
    (f"{CACHE}, if the flag is set", CACHE, False, False),
    ("Use tabs in Makefiles mostly, please", "Use tabs in Makefiles", False, False),
    ("The tests are not always green", "The tests are not green", False, False),
    ("The tests don't just run on CI", "The tests don't run on CI", False, False),
    (f"{CACHE} of the checkout page", CACHE, False, False),
    (f"In the shop, {CACHE}", CACHE, False, False),
    # A reason, the means, what is not so instead.
    ("Never deploy on Fridays because nobody is on call", "Don't deploy on Fridays", True, False),
    ("Never deploy just because the build is green", "Never deploy", False, False),
    ("Textures are compressed as BC7 by the importer", "Textures are compressed as BC7", True, False),
    ("Textures are compressed as soon as they change", "Textures are compressed", False, False),
    # What is denied beside it may limit it.
    ("The cache is kept in Redis, never from an interrupt", "The cache is kept in Redis", False, False),
    (f"{CACHE}, never in tests", CACHE, False, False),
    (f"{CACHE}, sometimes in Memcached", CACHE, False, False),
    # Who says it, whether it is ordered or done, what stands first.
    ("The user prefers tabs over spaces", "I prefer tabs over spaces", True, True),
    ("We decided to keep the order cache in Redis", CACHE, True, True),
    ("In every run the seed must be set to 42", "Set the seed to 42 in each run", True, True),
    ("The VPN must be up", "The VPN is up", False, False),
    ("We should use Kafka for events", "We use Kafka for events", False, False),
    ("We stored the keys in Vault", "We store the keys in Vault", False, False),
    ("The gateway is called by the worker", "The worker is called by the gateway", False, False),
    ("Copy the config, then restart the server", "Restart the server, then copy the config", False, False),
    ("The job runs every 5 minutes", "The job runs 5 minutes", False, False),
    ("Use Redis or Memcached for carts", "Use Redis and Memcached for carts", False, False),
    ("Never commit secrets to public repositories", "Never commit secrets", False, False),
    # A number, a name, a sign, a negation, the order.
    ("Retry three times after 30 s", "Retry three times after 300 s", False, False),
    ("Keep coverage above 80", "Keep coverage below 80", False, False),
    ("Python >= 3.10 is needed", "Python <= 3.10 is needed", False, False),
    ("Call git with --no-verify", "Call git with -no-verify", False, False),
    ("Write it in C", "Write it in C++", False, False),
    ("Tests may use the network", "Tests may not use the network", False, False),
    ("Tests should use the network", "Tests may use the network", False, False),
    ("Redis replaces Postgres for carts", "Postgres replaces Redis for carts", False, False),
    ("Push before the review", "Push after the review", False, False),
    ("It doesn't cache answers", "It does cache answers", False, False),
    ("The worker reads src/queue.py", "The worker reads src/queues/main.py", False, False),
    ("The worker used Kafka", "The worker will use Kafka", False, False),
    ("Is the order cache kept in Redis?", CACHE, False, False),
    ("", "", False, False),
)


@pytest.mark.invariant("A merge loses no detail")
@pytest.mark.parametrize(("one", "other", "there", "back"), CASES)
def test_a_text_entails_either_of_another_one_only_where_no_detail_is_lost(
    one: str, other: str, there: bool, back: bool
) -> None:
    assert (says_all_of(one, other), says_all_of(other, one)) == (there, back)


WORDS = st.lists(st.sampled_from("cache redis keyed 30 300 not only src/a.py above below tests".split()), max_size=8)


@given(WORDS, WORDS, st.sampled_from([" ", ", ", ". "]))
def test_what_entails_either_of_another_text_has_each_of_its_words_and_no_other_negation(
    one: list[str], other: list[str], between: str
) -> None:
    long, short = between.join(one), " ".join(other)
    if says_all_of(long, short):
        assert set(other) <= set(one)
        assert {"not", "only"} & set(one) == {"not", "only"} & set(other)


MERGING = Path(__file__).parents[1] / "data" / "merging"


@pytest.mark.invariant(
    "Of pairs written before the rules, half of them unseen, what says the same becomes one and what does not stays two"
)
@pytest.mark.parametrize("name", ["pairs", "held_back"])
def test_pairs_of_several_trades_become_one_or_stay_two_as_a_person_would_have_it(name: str) -> None:
    """Written before the rules; `held_back` was looked at by nobody who wrote them until they stood."""
    pairs = json.loads((MERGING / f"{name}.json").read_text())
    merged = [one for one in pairs if _entails_either(one["older"], one["newer"])]
    right = [one for one in merged if one["becomes"] == "one"]
    wrong = [(one["older"], one["newer"]) for one in merged if one["becomes"] == "two"]
    assert len(right) >= 0.97 * len(merged), wrong
    assert len(right) >= 0.7 * sum(one["becomes"] == "one" for one in pairs)


def says_all_of(one: str, other: str) -> bool:
    return similarity.compare(other, one).says_all


def _entails_either(one: str, other: str) -> bool:
    return says_all_of(one, other) or says_all_of(other, one)


# --- whether one repeats the other


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Use Postgres for the job queue because of LISTEN/NOTIFY", "use postgres for the job queue, because of LISTEN/NOTIFY.", True),
        ("we deploy with `make ship` from the release branch", "we always deploy with `make ship` from the release branch", True),
        ("Run the linters before pushing", "run the linter before pushing", True),
        ("We use tabs for indentation in the Go files here.", "No, we do not use tabs for indentation in the Go files here.", False),
        ("We don't use tabs for indentation", "We use tabs for indentation", False),
        ("We don\u2019t use tabs for indentation", "We do not use tabs for indentation", True),
        ("run the migrations before deploying the service", "run the migrations after deploying the service", False),
        ("telemetry is on by default in the nightly builds", "telemetry is off by default in the nightly builds", False),
        ("indent every block of this file with 2 spaces and no tabs", "indent every block of this file with 4 spaces and no tabs", False),
        ("ship the billing service to staging with make from the release branch", "ship the billing service to production with make from the release branch", False),
        ("the of", "the of", False),
    ],
)  # fmt: skip
def test_two_texts_say_the_same_only_when_nothing_is_replaced_or_turned_round(one: str, other: str, same: bool) -> None:
    assert similarity.repeats(one, other) is same
    assert similarity.repeats(other, one) is same


@pytest.mark.parametrize(
    ("older", "newer", "wanted"),
    [
        ("Every till has its own ledger", "Every till has its own plotter", ""),
        ("Every clerk keeps a key", "Every clerk keeps a stamp", ""),
        ("Each till has a ledger", "Each till has a plotter", ""),
        ("Every Monday the ledger is copied", "Every Friday the ledger is copied", "amends"),
        ("The ledger is copied every hour", "The ledger is copied every day", "amends"),
    ],
)
def test_a_rule_on_each_thing_of_a_kind_leaves_another_on_the_same_kind_and_a_time_replaces_a_time(
    older: str, newer: str, wanted: str
) -> None:
    check(older, newer, wanted=wanted)
