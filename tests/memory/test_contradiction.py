"""What a later statement is to an earlier one, what that does, and what it leaves alone."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csmd.errors import BadInput
from csmd.memory import contradiction, remember, supersession
from csmd.store import belief_changes, candidates, memories, projects
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.values import Memory, Project, Provenance, Statement

RULES = "Three rules: 1. commits are signed 2. tests run with pytest -q 3. branches are named feat/ticket"
PROSE = "We deploy with Ansible. Commits are squashed. Tests live next to the code."
ROWS = "use 2-space indentation; never commit to main; write the docs in British English"


def check(older: str, newer: str, *, wanted: str) -> None:
    """How the newer one stands to the older: "amends", "asks" (a person, perhaps) or ""."""
    amends, asks = contradiction.certain_replacement(older, newer), contradiction.possible_replacement(older, newer)
    assert ("amends" if amends else "asks" if asks else "") == wanted


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
    assert contradiction.is_partly(older, newer)
    assert contradiction.certain_replacement(older, newer) is None


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
    [(RULES, 3), (PROSE, 3), (ROWS, 3), ("Use uv, e.g. in CI.", 1), ("Ports: 8080. It was 80.", 1), ("", 0)],
)
def test_parts_splits_a_statement_into_the_expected_number_of_parts(said: str, number: int) -> None:
    assert len(contradiction.parts(said)) == number


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
    assert contradiction.text_without(said, contradiction.parts(said)[ended : ended + 1]) == left


# --- What a later statement is to an earlier one, and what that does: lowered, linked, undone, in whatever order heard.


NOW = "2026-03-01T10:00:00.000Z"
PAIRS = Path(__file__).parent.parent / "data" / "supersession"
PNPM = "Use pnpm in the web client, not npm"
NPM = "Use npm in the web client"


def share_right(name: str) -> float:
    """The share of written pairs that are told apart rightly: what amends, and what does not."""
    pairs = json.loads((PAIRS / f"{name}.json").read_text())
    right = [
        bool(contradiction.certain_replacement(pair["older"], pair["newer"])) == (pair["kind"] == "amends")
        for pair in pairs
    ]
    return sum(right) / len(right)


def test_labelled_pairs_of_replacements_and_elaborations_are_classified() -> None:
    assert share_right("pairs") >= 0.95
    assert share_right("held_back") >= 0.85
    assert share_right("changed") >= 0.85


def check_replaced(older: str, newer: str, *, wanted: str) -> None:
    amends, asks = contradiction.certain_replacement(older, newer), contradiction.possible_replacement(older, newer)
    assert ("certain" if amends else "doubtful" if asks else "") == wanted


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
    doubt = contradiction.possible_replacement(older, newer)
    assert (
        contradiction.certain_replacement(older, newer) is None
        and doubt is not None
        and doubt.confidence < contradiction.SURE
    )
    assert contradiction.possible_replacement("We use Postgres", newer) is None


@settings(max_examples=40)
@given(st.text(max_size=120), st.text(max_size=120))
def test_a_replacements_confidence_and_its_lowering_stay_within_bounds(older: str, newer: str) -> None:
    found = contradiction.certain_replacement(older, newer)
    assert found is None or (found.confidence <= 1.0 and contradiction.LEAST <= found.lowers <= contradiction.MOST)
    assert contradiction.certain_replacement(older, older) is None


def test_a_chain_of_renames_leads_to_the_present_name() -> None:
    said = ["We renamed `a.toml` to `b.toml`.", "`b.toml` was renamed to `c.toml`", "`old_run` is now `run`"]
    assert contradiction.rename_table(said) == {"a.toml": "c.toml", "b.toml": "c.toml", "old_run": "run"}
    assert contradiction.rename_table(["renamed `x.py` to `y.py`", "renamed `y.py` to `x.py`"]) == {"y.py": "x.py"}
    assert contradiction.with_new_names("see a.toml and data.toml", {"a.toml": "c.toml"}) == "see c.toml and data.toml"


# --- in the store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "csmd.db", now=NOW)
    yield opened
    opened.close()


def say(store: Store, text: str, day: int, *, name: str = "alpha", pinned: bool = False, **changes: object) -> str:
    values: dict[str, object] = {
        "text": text, "gate": "epistemic", "category": "decision", "confidence": 0.85, "authority": "user", **changes
    }  # fmt: skip

    def write(rows: Rows) -> str:
        project = projects.ensure(rows, Project(key=name, root=f"/p/{name}", name=name, kind="path"), now=NOW)
        at = f"2026-03-{day:02d}T10:00:00.000Z"
        source = Provenance(uuid=f"{day}:{text}", session_id=f"s{day}", at=at)
        said = Statement(**values)  # type: ignore[arg-type]
        return remember.remember(
            rows, said, source, project=project, origin="stated", key=store.hash_key, pinned=pinned
        )[0]

    return store.write(write)


def known(store: Store, ident: str) -> Memory:
    found = store.read(lambda rows: memories.by_id(rows, ident))
    assert found is not None
    return found


def undo(store: Store, ident: str) -> Memory:
    return store.write(
        lambda rows: supersession.undo(rows, memories.by_id(rows, ident), by=supersession.PERSON, now=NOW)  # type: ignore[arg-type]
    )


def links(store: Store, ident: str) -> list[tuple[str, str, str]]:
    return [
        (one.from_id, one.to_id, one.relationship) for one in store.read(lambda rows: memories.links_of(rows, ident))
    ]


def waiting(store: Store) -> list[tuple[str, ...]]:
    return [one.memory_ids for one in store.read(lambda rows: candidates.waiting(rows, projects=None))]


def test_a_later_statement_lowers_and_links_the_older_memory_with_a_reason(store: Store) -> None:
    old, new = say(store, NPM, 1), say(store, PNPM, 2)
    memory = known(store, old)
    assert memory.superseded_by == new
    assert 0.20 <= 0.85 - memory.confidence <= 0.50
    assert links(store, old) == [(old, new, "superseded_by")]
    (change,) = store.read(lambda rows: belief_changes.changes_of(rows, old))
    assert (change.change, change.by, change.at[:10], change.undone_at) == ("superseded", "rule", "2026-03-02", "")
    assert "says-instead" in change.reason
    assert known(store, new).confidence == pytest.approx(0.85)


def test_statements_read_newest_first_are_superseded_all_the_same(store: Store) -> None:
    new, old = say(store, PNPM, 2), say(store, NPM, 1)
    assert (known(store, old).superseded_by, known(store, new).superseded_by) == (new, "")


def test_a_superseded_statement_that_is_stated_again_is_active_again(store: Store) -> None:
    old, new = say(store, NPM, 1), say(store, PNPM, 2)
    say(store, NPM, 3)
    assert known(store, old).superseded_by == ""
    assert known(store, old).confidence == pytest.approx(0.90)
    assert known(store, new).superseded_by == old


def test_a_fact_about_the_user_stated_again_supersedes_the_interim_one_in_every_project(store: Store) -> None:
    between = say(store, "my timezone is Europe/Berlin", 1)
    again = say(store, "My timezone is Europe/Lisbon again", 2, name="beta")
    assert known(store, between).superseded_by == again


#: Statements of one past: amended, amended again, repeated, added to, by who may and by who may not.
PAST = [
    (NPM, 1, "user"),
    (PNPM, 2, "user"),
    (NPM, 4, "user"),
    ("Releases are cut on Fridays.", 1, "assistant"),
    ("Releases are cut on Tuesdays.", 3, "user"),
    ("Releases are cut on Mondays.", 5, "assistant"),
    ("The config file is called `app.toml`.", 1, "user"),
    ("`app.toml` was renamed to `settings.toml`.", 6, "user"),
    ("A release needs the changelog and a signed tag.", 6, "user"),
]


@pytest.mark.invariant(
    "What supersedes what does not depend on the order in which a past is heard; less authority overturns nothing"
)
@settings(max_examples=8, deadline=None)
@given(order=st.permutations(range(len(PAST))))
def test_supersessions_do_not_depend_on_the_order_in_which_statements_are_read(
    tmp_path_factory: pytest.TempPathFactory, order: list[int]
) -> None:
    def heard(indices: list[int]) -> list[tuple[object, ...]]:
        store = Store(tmp_path_factory.mktemp("past") / "csmd.db", now=NOW)
        for index in indices:
            text, day, authority = PAST[index]
            say(store, text, day, authority=authority)
        found = store.read(lambda rows: memories.list_memories(rows, projects=None))
        edges = sorted(edge for one in found for edge in links(store, one.id))
        queue = sorted(waiting(store))
        store.close()
        return [
            *sorted((one.text.strip("."), one.confidence, one.hot_until, one.warm_until, by_text(found, one)) for one in found),
            len(edges), len(queue),
        ]  # fmt: skip

    in_time = tmp_path_factory.getbasetemp() / "in-time"
    if not in_time.exists():
        in_time.write_text(repr(heard(list(range(len(PAST))))))
    assert repr(heard(order)) == in_time.read_text()


def by_text(found: list[Memory], memory: Memory) -> str:
    return next((one.text for one in found if one.id == memory.superseded_by), "")


@pytest.mark.invariant(
    "What supersedes what does not depend on the order in which a past is heard; less authority overturns nothing"
)
def test_a_statement_of_less_authority_supersedes_nothing_and_is_queued_for_review(store: Store) -> None:
    old = say(store, NPM, 1)
    new = say(store, PNPM, 2, authority="assistant")
    assert known(store, old).superseded_by == ""
    assert waiting(store) == [(old, new)]


def test_a_users_statement_supersedes_an_assistants(store: Store) -> None:
    old = say(store, "The deadlock is caused by the connection pool.", 1, authority="assistant")
    new = say(store, "The deadlock is not caused by the connection pool.", 2)
    assert known(store, old).superseded_by == new


def test_external_text_supersedes_nothing(store: Store) -> None:
    old = say(store, NPM, 1)
    assert say(store, PNPM, 2, authority="external") == ""
    assert (known(store, old).superseded_by, waiting(store)) == ("", [])


def test_a_pinned_memory_is_not_lowered_but_queued_for_review(store: Store) -> None:
    old, new = say(store, NPM, 1, pinned=True), say(store, PNPM, 2)
    assert (known(store, old).superseded_by, known(store, old).confidence) == ("", pytest.approx(0.85))
    assert waiting(store) == [(old, new)]


def test_a_statement_of_one_project_supersedes_none_of_another(store: Store) -> None:
    old = say(store, NPM, 1, name="alpha")
    say(store, PNPM, 2, name="beta")
    assert known(store, old).superseded_by == ""


@pytest.mark.invariant("A wrong supersession that a person undoes is given back exactly and not made again")
def test_an_undone_supersession_restores_the_memory_and_is_not_repeated(store: Store) -> None:
    old = say(store, NPM, 1)
    before = known(store, old)
    new = say(store, PNPM, 2)
    assert replace(undo(store, old), version=before.version) == before
    assert links(store, old) == []
    say(store, "Use pnpm in the web client, not npm!", 3)  # confirms the new one, and all is looked at again
    assert known(store, new).confidence > 0.85
    assert known(store, old).superseded_by == ""
    with pytest.raises(BadInput):
        undo(store, old)


def test_a_confirmation_made_in_between_survives_the_undo_of_a_supersession(store: Store) -> None:
    old, _ = say(store, NPM, 1), say(store, PNPM, 5)
    say(store, "use npm in the web client", 2)
    assert known(store, old).superseded_by
    assert undo(store, old).confidence == pytest.approx(0.90)


def test_a_supersession_made_by_a_person_is_not_reverted_by_rules(store: Store) -> None:
    old, new = say(store, "Ask before deleting files", 1), say(store, "Delete without asking in CI", 2)

    def supersede(rows: Rows) -> Memory:
        one, other = (memories.by_id(rows, ident) for ident in (old, new))
        return supersession.supersede(rows, one, other, by=supersession.PERSON, now=NOW)  # type: ignore[arg-type]

    assert store.write(supersede).superseded_by == new
    say(store, "ask before deleting files", 3)
    assert known(store, old).superseded_by == new
    assert undo(store, old).superseded_by == ""


def test_deleting_a_memory_reactivates_what_it_superseded(store: Store) -> None:
    old = say(store, NPM, 1)
    before = known(store, old)
    new = say(store, PNPM, 2)
    store.write(lambda rows: belief_changes.delete_memory(rows, memories.by_id(rows, new)))  # type: ignore[arg-type]
    assert replace(known(store, old), version=before.version) == before


def test_a_statement_under_an_old_name_is_superseded_by_one_under_the_new_name(store: Store) -> None:
    for order in itertools.permutations(range(3)):
        said = [
            ("`app.toml` listens on port 80", 1), ("`app.toml` was renamed to `settings.toml`", 2),
            ("`settings.toml` listens on port 90", 3),
        ]  # fmt: skip
        name = "".join(map(str, order))
        ids = {index: say(store, *said[index], name=name) for index in order}
        assert known(store, ids[0]).superseded_by == ids[2]


# --- what says several things

BOTH, BUN = "We use pnpm. Tests run with vitest.", "we use bun, pnpm is gone"


def rest(store: Store, ident: str) -> Memory | None:
    return store.read(lambda rows: supersession.rest_of(rows, ident))


def holding(store: Store) -> set[str]:
    found = store.read(lambda rows: memories.list_memories(rows, projects=None))
    return {one.text for one in found if not one.superseded_by}


@pytest.mark.invariant(
    "Only what certainly is the same subject is replaced unasked; of a memory that says several things only the part ends, and what is left is taken back with it"
)
def test_superseding_one_part_keeps_the_rest_in_its_own_words_with_the_same_sources(store: Store) -> None:
    old, new = say(store, BOTH, 1), say(store, BUN, 2)
    assert holding(store) == {"Tests run with vitest.", BUN}
    whole, left = known(store, old), rest(store, old)
    assert left is not None and whole.superseded_by == new
    assert (left.provenance, left.created_at, left.authority) == (whole.provenance, whole.created_at, "user")
    assert left.confidence == pytest.approx(0.85)


@pytest.mark.invariant(
    "Only what certainly is the same subject is replaced unasked; of a memory that says several things only the part ends, and what is left is taken back with it"
)
@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_superseding_one_part_does_not_depend_on_the_reading_order(store: Store, order: tuple[int, ...]) -> None:
    past = [(BOTH, 1), (BUN, 2), ("Tests run with jest.", 3)]
    for index in order:
        say(store, *past[index])
    assert holding(store) == {BUN, "Tests run with jest."}


@pytest.mark.invariant(
    "Only what certainly is the same subject is replaced unasked; of a memory that says several things only the part ends, and what is left is taken back with it"
)
def test_restoring_a_superseded_part_leaves_no_remainder_memory(store: Store) -> None:
    old = say(store, BOTH, 1)
    before = known(store, old)
    say(store, BUN, 2)
    assert replace(undo(store, old), version=before.version) == before
    assert holding(store) == {BOTH, BUN}
    assert links(store, old) == []


def test_stating_the_whole_again_restores_the_whole_memory(store: Store) -> None:
    old = say(store, BOTH, 1)
    say(store, BUN, 2)
    assert say(store, BOTH, 3) == old
    assert known(store, old).superseded_by == "" and rest(store, old) is None


def test_a_remainder_that_was_also_stated_alone_stays_a_memory(store: Store) -> None:
    old = say(store, BOTH, 1)
    say(store, BUN, 2)
    own = say(store, "tests run with vitest", 3)
    undo(store, old)
    assert known(store, own).text == "Tests run with vitest." and rest(store, old) is None


def test_a_forgotten_remainder_is_not_stored_again(store: Store) -> None:
    old = say(store, BOTH, 1)
    say(store, BUN, 2)
    left = rest(store, old)
    assert left is not None
    store.write(lambda rows: remember.forget(rows, left, key=store.hash_key, now=NOW, by_person=True))
    say(store, "we use bun, pnpm is gone!", 4)
    assert holding(store) == {BUN}


def test_deleting_the_memory_that_superseded_a_part_restores_the_whole(store: Store) -> None:
    old, new = say(store, BOTH, 1), say(store, BUN, 2)
    store.write(lambda rows: belief_changes.delete_memory(rows, memories.by_id(rows, new)))  # type: ignore[arg-type]
    assert holding(store) == {BOTH} and rest(store, old) is None


def test_a_replacement_by_a_person_ends_only_the_parts_that_the_newer_mentions(store: Store) -> None:
    old, new = say(store, BOTH, 1), say(store, "pnpm stays for the docs only", 2)

    def supersede(rows: Rows) -> Memory:
        one, other = (memories.by_id(rows, ident) for ident in (old, new))
        return supersession.supersede(rows, one, other, by="person", now=NOW, key=store.hash_key)  # type: ignore[arg-type]

    assert store.write(supersede).superseded_by == new
    assert "Tests run with vitest." in holding(store)


# --- doubt


NARROW = ("The cache listens on port 6379", "The cache listens on port 6380 in production")


@pytest.mark.invariant(
    "What may be replaced is asked of a person once; an assistant's word ends nothing that the user said"
)
def test_a_possible_replacement_ends_nothing_and_is_queued_for_review(store: Store) -> None:
    old, new = (say(store, text, day) for day, text in enumerate(NARROW, 1))
    assert known(store, old).superseded_by == ""
    assert waiting(store) == [(old, new)]


@pytest.mark.invariant(
    "What may be replaced is asked of a person once; an assistant's word ends nothing that the user said"
)
@pytest.mark.parametrize("origin", ["stated", "model_saved"])
def test_an_assistants_statement_ends_no_part_of_a_users(store: Store, origin: str) -> None:
    old = say(store, NPM, 1)

    def save(rows: Rows) -> str:
        said = Statement(
            text=PNPM,
            gate="epistemic",
            category="decision",
            confidence=0.8,
            authority="assistant",
            reasons=("remember",),
        )
        home, source = (
            known(store, old).project_seq,
            Provenance(uuid="u9", session_id="s9", at="2026-03-09T10:00:00.000Z"),
        )
        return remember.remember(rows, said, source, project=home, origin=origin, key=store.hash_key)[0]

    new = store.write(save)
    assert known(store, old).superseded_by == ""
    assert waiting(store) == [(old, new)]
