"""The one door to memory: new, confirmed, forgotten; authority as the path gave it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from memory_factory import project_in
from session_writer import Talk, go_through

from csmd.briefs import BriefItem
from csmd.knowledge import Provenance, Statement
from csmd.memory import remember as stage
from csmd.store import memories, memory_invariants, project_merges, projects, receipts, recovery, tombstones, workspaces
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import similarity
from csmd.vocabulary import CATEGORIES, MemoryType

NOW = "2026-03-01T10:00:00.000Z"


def statement(text: str, **changes: object) -> Statement:
    values: dict[str, object] = {
        "text": text, "gate": "epistemic", "category": "decision", "confidence": 0.85, "authority": "user", **changes
    }  # fmt: skip
    return Statement(**values)  # type: ignore[arg-type]


def save_memory(
    store: Store, said: Statement, uuid: str, *, session: str = "s1", name: str = "alpha", at: str = NOW
) -> tuple[str, bool]:
    source = Provenance(uuid=uuid, session_id=session, at=at)
    return store.write(
        lambda rows: stage.remember(
            rows, said, source, project=project_in(rows, name), origin="stated", key=store.hash_key
        )
    )


def read(store: Store, ident: str):
    return store.read(lambda rows: memories.by_id(rows, ident))


#: What somebody says, says again in other words, and whether that confirms it instead of standing beside it.
RESTATED = [
    ("the billing service calls the user service", "the user service calls the billing service", False),
    ("Secrets are stored in Vault", "We store secrets in Vault", True),
    ("Never force-push to trunk", "Do not force-push to trunk", True),
    ("Use the pnpm lockfile for installs", "Always use the pnpm lockfile for installs", True),
    ("Indent with two spaces", "Indent with four spaces", False),
    ("Invoices are archived in Vault", "Invoices are archived in Glacier", False),
    ("Always lint before a push", "Never lint before a push", False),
    ("The parser tests run first", "The importer tests run first", False),
    ("Orders are exported as CSV", "Orders are exported as CSV only on staging", False),
]


@pytest.mark.parametrize(("text", "again", "is_same"), RESTATED)
def test_what_is_said_again_in_other_words_confirms_and_other_numbers_names_or_negation_do_not(
    store: Store, text: str, again: str, is_same: bool
) -> None:
    first, _ = save_memory(store, statement(text), "u1")
    second, is_new = save_memory(store, statement(again), "u2", session="s2")
    assert ((second == first), is_new) == (is_same, not is_same)


#: A user's statement, its gate, and whether it is stated for good.
FOR_GOOD = [
    ("always rotate the keys by hand", "behavioral", True),
    ("never edit the generated client", "behavioral", True),
    ("I prefer early returns", "behavioral", True),
    ("we chose Kafka over the Redis streams", "epistemic", True),
    ("remember that Ines signs off the invoices", "relational", True),
    ("no, the gateway listens on 8443", "correction", True),
    ("nein, das Konto heißt ops", "correction", True),
    ("that was repaired last week already", "correction", False),
    ("is the cache never cleared?", "correction", False),
    ("can you check every handler for that?", "behavioral", False),
    ("move the header into its own file", "correction", False),
    ("no, the upload still fails", "correction", False),
    ("12 tests passed", "correction", False),
    ("don't push yet", "correction", False),
    ("the invoices are exported as CSV", "behavioral", False),
    ("the invoices are exported as CSV", "epistemic", False),
]


@pytest.mark.parametrize(("text", "gate", "is_durable"), FOR_GOOD)
def test_what_is_durable_at_once_says_so_or_corrects_and_is_no_question_order_or_status(
    store: Store, text: str, gate: str, is_durable: bool
) -> None:
    category = "preference" if gate in ("behavioral", "correction") else "fact"
    ident, _ = save_memory(store, statement(text, gate=gate, category=category), "u1")
    assert (read(store, ident).tier == "durable") is is_durable


def test_the_same_statement_from_another_turn_confirms_instead_of_doubling(store: Store) -> None:
    ident, new = save_memory(store, statement("Use Postgres for the job queue because of LISTEN/NOTIFY"), "u1")
    again, second = save_memory(
        store, statement("use postgres for the job queue, because of LISTEN/NOTIFY."), "u2", session="s2"
    )
    memory = read(store, ident)
    assert (new, second, again) == (True, False, ident)
    assert memory.confidence == pytest.approx(0.90)
    assert [(p.uuid, p.role) for p in memory.provenance] == [("u1", "states"), ("u2", "confirms")]


def test_who_said_it_first_is_told_by_its_time_and_not_by_which_was_heard_first(tmp_path: Path) -> None:
    turns = [("u1", "s1", "2026-03-01"), ("u2", "s2", "2026-03-05"), ("u3", "s3", "2026-02-01")]
    idents = []
    for number, order in enumerate(itertools.permutations(turns)):
        store = Store(tmp_path / f"{number}.db", now=NOW)
        for uuid, session, day in order:
            ident, _ = save_memory(store, statement("Use tabs"), uuid, session=session, at=f"{day}T10:00:00.000Z")
        memory = read(store, ident)
        store.close()
        idents.append(replace(memory, version=0))
    assert all(memory == idents[0] for memory in idents)
    assert (idents[0].created_at[:10], idents[0].session_id, idents[0].confirmed_at[:10]) == (
        "2026-02-01",
        "s3",
        "2026-03-05",
    )
    assert [(p.uuid, p.role) for p in idents[0].provenance] == [
        ("u3", "states"),
        ("u1", "confirms"),
        ("u2", "confirms"),
    ]


@pytest.mark.invariant("Only another turn confirms; use is no confirmation; what was forgotten stays forgotten")
def test_the_same_turn_heard_twice_is_no_confirmation(store: Store) -> None:
    ident, _ = save_memory(store, statement("Use Postgres for the job queue"), "u1")
    save_memory(store, statement("Use Postgres for the job queue"), "u1")
    assert read(store, ident).confidence == pytest.approx(0.85)
    assert len(read(store, ident).provenance) == 1


@pytest.mark.invariant("Only another turn confirms; use is no confirmation; what was forgotten stays forgotten")
def test_an_assistant_that_repeats_what_it_was_told_confirms_nothing(store: Store) -> None:
    ident, _ = save_memory(store, statement("Use Postgres for the job queue"), "u1")
    store.write(
        lambda rows: receipts.add_receipt(
            rows, receipt_id="r1", session_id="s2", event="session_start", project=1, at=NOW, tokens=9, text_hash="",
            items=[BriefItem(id=ident, score=1.0, reason="")],
        )
    )  # fmt: skip
    save_memory(store, statement("Use Postgres for the job queue", authority="assistant"), "u2", session="s2")
    assert read(store, ident).confidence == pytest.approx(0.85)
    save_memory(store, statement("Use Postgres for the job queue", authority="assistant"), "u3", session="s3")
    assert read(store, ident).confidence == pytest.approx(0.90)


@pytest.mark.invariant("What only outsiders say is never stated and confirms nothing")
@pytest.mark.parametrize("known", [False, True])
def test_what_only_outsiders_say_is_never_stated_and_confirms_nothing(store: Store, known: bool) -> None:
    text = "The staging host is only reachable over VPN"
    ident, _ = save_memory(store, statement(text), "u1") if known else ("", False)
    assert save_memory(store, statement(text, authority="external"), "u2", session="s2") == ("", False)
    assert store.read(lambda rows: rows.value("select count(*) from memories")) == known
    if known:
        memory = read(store, ident)
        assert (memory.authority, memory.confidence, len(memory.provenance)) == ("user", 0.85, 1)


@pytest.mark.invariant("Authority is set by the path; an assistant cannot raise its own")
def test_authority_rises_only_by_the_turn_that_has_it(store: Store) -> None:
    ident, _ = save_memory(store, statement("The staging host is only reachable over VPN", authority="assistant"), "u1")
    save_memory(store, statement("The staging host is only reachable over VPN", authority="assistant"), "u2")
    assert read(store, ident).authority == "assistant"
    save_memory(store, statement("The staging host is only reachable over VPN"), "u3")
    assert read(store, ident).authority == "user"


def forget(store: Store, ident: str, *, by_person: bool = True, at: str = NOW) -> None:
    store.write(
        lambda rows: stage.forget(
            rows, memories.by_id(rows, ident), key=store.hash_key, now=at, by_person=by_person
        )
    )  # fmt: skip


@pytest.mark.invariant("Only another turn confirms; use is no confirmation; what was forgotten stays forgotten")
def test_what_the_user_made_csmd_forget_does_not_come_back(store: Store) -> None:
    secret = statement("The admin password rotates on Mondays")
    ident, _ = save_memory(store, secret, "u1")
    forget(store, ident)
    assert read(store, ident) is None
    assert save_memory(store, secret, "u2", session="s9") == ("", False)
    assert store.read(lambda rows: memories.list_memories(rows, projects=None)) == []


#: (what was forgotten, what is said later, whether it stays out): by the same rule by which one confirms the other.
FORGOTTEN = [
    ("The admin password rotates on Mondays", "the admin password rotates on mondays!", True),
    ("The admin password rotates on Mondays", "An admin password rotates on a Monday", True),
    ("Use the Postgres job queue for every worker", "use Postgres' job queue for every worker, please", True),
    ("We deploy the billing service Mondays after lunch", "Remember: deploy billing service Mondays after lunch", True),
    (
        "deploy the billing service each Monday in the cluster",
        "deploy billing service Mondays cluster, carefully",
        True,
    ),
    ("deploy the billing service carefully each Monday in the cluster", "deploy billing service Mondays cluster", True),
    ("telemetry is on by default in nightly builds", "telemetry is off by default in nightly builds", False),
    ("the job queue runs on Postgres in every environment", "the job queue runs on Redis in every environment", False),
    ("We use tabs in the Go files here", "We do not use tabs in the Go files here", False),
    ("run the migrations before deploying billing", "run the migrations after deploying billing", False),
    ("Use two spaces for indentation in YAML files", "Use four spaces for indentation in YAML files", False),
    ("The admin password rotates on Mondays", "The staging host is reachable over VPN only", False),
    ("use tabs", "use tabs in the makefiles of the billing service", False),
]


@pytest.mark.invariant(
    "What says the same as something forgotten stays out, and nothing else; an assistant's forgetting binds assistants only"
)
@pytest.mark.parametrize(("gone", "later", "stays_out"), FORGOTTEN)
def test_what_says_the_same_as_something_forgotten_stays_out_and_nothing_else(
    store: Store, gone: str, later: str, stays_out: bool
) -> None:
    ident, _ = save_memory(store, statement(gone), "u1")
    forget(store, ident)
    other, _ = save_memory(store, statement(later), "u2", session="s2")
    assert (other == "") == stays_out
    # The same rule confirms: what stays out would have been the same memory.
    assert similarity.repeats(gone, later) == stays_out


BEFORE, AFTER, LATER = (f"2026-{month}-01T10:00:00.000Z" for month in ("02", "04", "05"))
ROTATES = "The admin password rotates on Mondays"


def stays_out(store: Store, *, at: str, name: str = "alpha", authority: str = "user", text: str = ROTATES) -> bool:
    """Whether a statement is no memory after it was heard; it leaves no trace."""
    kept, _ = save_memory(store, statement(text, authority=authority), f"{at}{name}{authority}", name=name, at=at)
    return kept == ""


@pytest.mark.invariant(
    "What was forgotten in a project is kept out of it, as it was said by then; what was purged wherever and whenever it is said"
)
def test_what_is_forgotten_in_a_project_is_remembered_in_another_one(store: Store) -> None:
    here, _ = save_memory(store, statement(ROTATES), "u1")
    there, _ = save_memory(store, statement(ROTATES), "u2", name="beta")
    forget(store, here)
    assert read(store, here) is None and read(store, there) is not None
    assert stays_out(store, at=BEFORE) and not stays_out(store, at=BEFORE, name="beta")
    assert not stays_out(store, at=BEFORE, name="gamma")
    assert store.read(lambda rows: memory_invariants.find_violations(rows, store.hash_key)) == {}


@pytest.mark.invariant(
    "What was forgotten in a project is kept out of it, as it was said by then; what was purged wherever and whenever it is said"
)
def test_what_the_user_says_anew_after_forgetting_is_remembered_and_what_was_said_before_stays_out(
    store: Store,
) -> None:
    ident, _ = save_memory(store, statement(ROTATES), "u1")
    forget(store, ident)
    assert stays_out(store, at=NOW) and stays_out(store, at=BEFORE), "a turn that is read again says nothing new"
    assert stays_out(store, at=AFTER, authority="assistant"), "an assistant has it from before"
    assert not stays_out(store, at=AFTER), "in words of their own it is a new statement"
    again = store.read(lambda rows: memories.list_memories(rows, projects=None))
    assert [(memory.text, memory.created_at, memory.times) for memory in again] == [(ROTATES, AFTER, 1)]
    assert stays_out(store, at=BEFORE), "an import of the past confirms nothing"
    assert not stays_out(store, at=LATER, authority="assistant"), "what the user says anew an assistant may repeat"
    assert store.read(lambda rows: memory_invariants.find_violations(rows, store.hash_key)) == {}
    forget(store, again[0].id, at=LATER)
    assert stays_out(store, at=AFTER) and stays_out(store, at=LATER)
    assert not stays_out(store, at="2026-06-01T10:00:00.000Z")


def test_a_forgotten_preference_of_everywhere_is_kept_out_of_every_project(store: Store) -> None:
    preference = statement("I always prefer tabs in Go code", gate="behavioral", category="preference")
    ident, _ = save_memory(store, preference, "u1")
    assert read(store, ident).project_seq == 0
    copy, _ = save_memory(store, replace(preference, gate="epistemic"), "u2", name="beta")
    assert read(store, copy).project_seq > 0
    forget(store, ident)
    assert read(store, ident) is None and read(store, copy) is None
    for name in ("alpha", "beta", "gamma"):
        assert stays_out(store, at=BEFORE, name=name, text=preference.text)
    assert store.read(lambda rows: memory_invariants.find_violations(rows, store.hash_key)) == {}


def test_what_is_forgotten_stays_out_of_what_its_project_becomes_a_part_of(store: Store) -> None:
    ident, _ = save_memory(store, statement(ROTATES), "u1")
    save_memory(store, statement("Use Postgres for the job queue"), "u2", name="beta")
    forget(store, ident)
    store.write(lambda rows: project_merges.merge_projects(rows, 1, 2))
    assert stays_out(store, at=BEFORE, name="beta") and stays_out(store, at=BEFORE)


@pytest.mark.invariant(
    "What was forgotten in a project is kept out of it, as it was said by then; what was purged wherever and whenever it is said"
)
def test_what_a_purge_keeps_out_is_kept_out_wherever_and_whenever_it_is_said(store: Store) -> None:
    ident, _ = save_memory(store, statement(ROTATES), "u1")
    forget(store, ident)
    store.write(lambda rows: tombstones.forget(rows, ROTATES, correction=False, by="user", key=store.hash_key, now=NOW))
    assert all(stays_out(store, at=at, name=name) for at in (BEFORE, LATER) for name in ("alpha", "beta"))


def test_a_person_lifts_what_they_made_csmd_forget_in_other_words_too(store: Store) -> None:
    ident, _ = save_memory(store, statement("deploy the billing service each Monday in the cluster"), "u1")
    forget(store, ident)
    again = statement("deploy billing service Mondays cluster, carefully")
    store.write(lambda rows: stage.unforget(rows, again, project=1, key=store.hash_key))
    assert save_memory(store, again, "u2")[1]
    assert store.read(lambda rows: rows.value("select count(*) from tombstones")) == 0


@pytest.mark.invariant(
    "What says the same as something forgotten stays out, and nothing else; an assistant's forgetting binds assistants only"
)
def test_what_an_assistant_saved_and_forgot_keeps_no_user_from_saying_it(store: Store) -> None:
    text = "Use Postgres for the job queue of the billing workers"
    ident, _ = save_memory(store, statement(text, authority="assistant"), "u1")
    forget(store, ident, by_person=False)
    assert save_memory(store, statement(text, authority="assistant"), "u2") == ("", False)
    kept, new = save_memory(store, statement(f"{text}."), "u3")
    assert new and read(store, kept).authority == "user"
    forget(store, kept)
    assert save_memory(store, statement(text), "u4") == ("", False)


def test_projects_do_not_share_what_is_tied_to_one(store: Store) -> None:
    correction = statement("we use `uv` here, not pip", gate="correction", category="convention")
    first, _ = save_memory(store, correction, "u1", name="alpha")
    second, new = save_memory(store, correction, "u2", name="beta")
    assert new
    assert first != second


def test_a_general_preference_is_one_memory_in_every_project(store: Store) -> None:
    preference = statement("I prefer small commits", gate="behavioral", category="preference", confidence=0.9)
    first, _ = save_memory(store, preference, "u1", name="alpha")
    again, new = save_memory(store, preference, "u2", name="beta", session="s2")
    assert (again, new) == (first, False)
    assert (read(store, first).scope, read(store, first).project_seq) == ("user", 0)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("We use tabs for indentation in the Go files here", "We do not use tabs for indentation in the Go files here"),
        (
            "run the migrations before deploying the billing service",
            "run the migrations after deploying the billing service",
        ),
        ("telemetry is on by default in nightly builds", "telemetry is off by default in nightly builds"),
        ("the job queue runs on Postgres in every environment", "the job queue runs on Redis in every environment"),
    ],
)
def test_a_contradiction_is_a_memory_of_its_own_and_confirms_nothing(store: Store, first: str, second: str) -> None:
    ident, _ = save_memory(store, statement(first), "u1")
    other, new = save_memory(store, statement(second, gate="correction"), "u2", session="s2")
    assert new
    assert other != ident
    assert read(store, ident).confidence == pytest.approx(0.85)


def test_a_correction_does_not_confirm_what_it_was_said_against(store: Store) -> None:
    ident, _ = save_memory(store, statement("the config key is database_url in production"), "u1")
    other, new = save_memory(
        store, statement("the config key is database_url in production, remember", gate="correction"), "u2"
    )
    assert (new, other == ident) == (True, False)


def test_what_the_assistant_saves_by_itself_confirms_nothing(store: Store) -> None:
    ident, _ = save_memory(store, statement("Use Postgres for the job queue"), "u1")

    def save(rows: Rows) -> tuple[str, bool]:
        repeated = statement("Use Postgres for the job queue", authority="assistant")
        source = Provenance(uuid="cli:1", session_id="", at=NOW)
        return stage.remember(rows, repeated, source, project=1, origin="model_saved", key=store.hash_key)

    assert store.write(save) == (ident, False)
    assert read(store, ident).confidence == pytest.approx(0.85)
    assert len(read(store, ident).provenance) == 1


def days(store: Store, *listed: str) -> None:
    def write(rows: Rows) -> None:
        project = project_in(rows)
        for day in listed:
            projects.record_active_day(rows, project, f"{day}T12:00:00.000Z")

    store.write(write)


def ages(store: Store, ident: str) -> tuple[int, int]:
    """Active days left until the memory cools, and active days since it was confirmed."""
    memory = read(store, ident)
    today = store.read(lambda rows: projects.active_day(rows, memory.project_seq))
    then = store.read(lambda rows: projects.active_day(rows, memory.project_seq, on=memory.confirmed_at[:10]))
    return memory.hot_until - today, today - then


def test_an_import_of_older_history_ages_nothing(store: Store) -> None:
    days(store, "2026-03-01")
    ident, _ = save_memory(store, statement("Use Postgres for the job queue"), "u1")
    before = ages(store, ident)
    days(store, *(f"2026-01-{day:02d}" for day in range(1, 31)))
    assert ages(store, ident) == before


def test_days_after_a_memory_age_it_whenever_they_come_to_light(store: Store) -> None:
    days(store, "2026-03-01")
    ident, _ = save_memory(store, statement("Use Postgres for the job queue"), "u1")
    left, age = ages(store, ident)
    days(store, "2026-03-05", "2026-03-04", "2026-03-09")
    assert ages(store, ident) == (left - 3, age + 3)


def test_an_old_statement_that_comes_to_light_late_has_its_age(store: Store) -> None:
    days(store, *(f"2026-03-{day:02d}" for day in range(1, 32)))
    ident, _ = save_memory(store, statement("Use Postgres for the job queue"), "u1")
    assert ages(store, ident)[1] == 30


# --- what was forgotten stays forgotten, whatever is merged, split or walled since

SHORT = statement("I always prefer short functions without comments", gate="behavioral", category="preference")


def _ensured(rows: Rows, *names: str) -> list[int]:
    return [project_in(rows, name) for name in names]


def _behind_a_wall(rows: Rows, *names: str) -> None:
    wall = workspaces.ensure(rows, "acme", now=NOW)
    for seq in _ensured(rows, *names):
        workspaces.join(rows, wall, seq)


def test_what_is_forgotten_after_a_merge_stays_out_after_the_split(store: Store) -> None:
    ident, _ = save_memory(store, statement(ROTATES), "u1")
    store.write(lambda rows: project_merges.merge_projects(rows, *_ensured(rows, "alpha", "beta")))
    forget(store, ident)
    store.write(lambda rows: project_merges.split_projects(rows, *_ensured(rows, "beta")[:1], 1))
    assert stays_out(store, at=BEFORE) and stays_out(store, at=BEFORE, name="beta")
    assert stays_out(store, at=AFTER, authority="assistant") and not stays_out(store, at=BEFORE, name="gamma")


def test_what_is_forgotten_in_the_whole_stays_out_of_a_part_that_was_merged_elsewhere(store: Store) -> None:
    ident, _ = save_memory(store, statement(ROTATES), "u1")
    forget(store, ident)

    def part(rows: Rows) -> None:
        alpha, beta = _ensured(rows, "alpha", "beta")
        made = workspaces.add_part(rows, key="part", root="/p/alpha/sub", name="sub", whole=alpha, now=NOW)
        project_merges.split_projects(rows, alpha, made)
        project_merges.merge_projects(rows, made, beta)

    store.write(part)
    assert stays_out(store, at=BEFORE, name="beta")


def test_what_is_forgotten_in_a_part_stays_in_the_whole_where_that_says_it_itself(store: Store) -> None:
    whole, _ = save_memory(store, statement(ROTATES), "u1")

    def part(rows: Rows) -> None:
        made = workspaces.add_part(rows, key="part", root="/p/alpha/sub", name="sub", whole=1, now=NOW)
        project_merges.split_projects(rows, 1, made)

    store.write(part)
    source = Provenance(uuid="u2", session_id="s2", at=NOW)
    ident, new = store.write(
        lambda rows: stage.remember(
            rows, statement(ROTATES), source, project=2, origin="stated", key=store.hash_key, scope="project"
        )
    )
    assert new
    forget(store, ident)
    assert read(store, whole) is not None and not stays_out(store, at=BEFORE)
    assert store.read(lambda rows: memory_invariants.find_violations(rows, store.hash_key)) == {}


def test_what_is_forgotten_everywhere_stays_out_behind_a_wall_that_is_raised_later(store: Store) -> None:
    ident, _ = save_memory(store, SHORT, "u1")
    forget(store, ident)
    store.write(lambda rows: _behind_a_wall(rows, "alpha"))
    assert stays_out(store, at=BEFORE, text=SHORT.text) and save_memory(store, SHORT, "u2", at=BEFORE) == ("", False)


def test_what_is_forgotten_behind_a_wall_stays_out_of_what_leaves_it_and_nowhere_else(store: Store) -> None:
    save_memory(store, SHORT, "u1")
    outside, _ = save_memory(store, SHORT, "u2", name="gamma")
    store.write(lambda rows: _behind_a_wall(rows, "alpha"))
    ident, _ = save_memory(store, replace(SHORT, text="I always prefer long functions with comments"), "u3")
    forget(store, ident)
    store.write(lambda rows: _behind_a_wall(rows, "beta"))

    def leave(rows: Rows) -> None:
        for seq in _ensured(rows, "alpha", "beta"):
            workspaces.leave(rows, seq, key=store.hash_key)

    store.write(leave)
    gone = "I always prefer long functions with comments"
    assert all(stays_out(store, at=BEFORE, name=name, text=gone) for name in ("alpha", "beta"))
    assert not stays_out(store, at=BEFORE, name="gamma", text=gone) and read(store, outside) is not None


@pytest.mark.parametrize("change", ["merge", "wall"])
def test_a_state_from_before_a_merge_or_a_wall_is_brought_up_to_date_with_what_was_forgotten_since(
    tmp_path: Path, change: str
) -> None:
    stated = statement(ROTATES) if change == "merge" else SHORT
    turned, older = (Store(tmp_path / f"{name}.db", now=NOW) for name in ("now", "older"))
    key = turned.hash_key

    def tell(rows: Rows) -> str:
        alpha, _ = _ensured(rows, "alpha", "beta")
        session = rows.value(
            "insert into sessions (id, host, project_seq, started_at, last_at) values ('s1', 'claude', :p, :at, :at) returning seq",
            p=alpha, at=NOW,
        )  # fmt: skip
        rows.run(
            "insert into turns (uuid, session_seq, project_seq, kind, text, text_hash, at, source) "
            "values ('u1', :s, :p, 'user', :text, '', :at, 'tail')", s=session, p=alpha, text=stated.text, at=NOW,
        )  # fmt: skip
        source = Provenance(uuid="u1", session_id="s1", at=NOW)
        return stage.remember(rows, stated, source, project=alpha, origin="stated", key=key)[0]

    ident, _ = (each.write(tell) for each in (turned, older))
    if change == "merge":
        turned.write(lambda rows: project_merges.merge_projects(rows, 1, 2))
    else:
        turned.write(lambda rows: _behind_a_wall(rows, "alpha"))
    turned.write(lambda rows: stage.forget(rows, memories.by_id(rows, ident), key=key, now=AFTER, by_person=True))
    names = "kind, hash, part_of, words, anchor, anchor_at, authority, created_at, place, again_at"
    left = turned.read(lambda rows: rows.all(f"select {names} from tombstones"))
    kept = [dict(zip(names.split(", "), row, strict=True)) for row in left]
    assert older.write(lambda rows: recovery.merge_tombstones(rows, kept, key=key))
    assert read(older, ident) is None
    turned.close()
    older.close()


def test_what_was_forgotten_in_a_project_is_not_put_before_it_by_an_old_turn_that_is_to_hold_everywhere(
    store: Store,
) -> None:
    ident, _ = save_memory(store, statement(ROTATES), "u1")
    forget(store, ident)

    def everywhere(at: str) -> str:
        source = Provenance(uuid=f"u{at}", session_id="s2", at=at)
        return store.write(
            lambda rows: stage.remember(
                rows, statement(ROTATES), source, project=_ensured(rows, "beta")[0], origin="stated",
                key=store.hash_key, scope="user",
            )
        )[0]  # fmt: skip

    assert everywhere(BEFORE) == "" and everywhere(AFTER) != ""


def test_what_a_person_says_again_in_a_project_is_let_in_there_and_everywhere_only_if_it_is_to_hold_there(
    store: Store,
) -> None:
    ident, _ = save_memory(store, SHORT, "u1")
    forget(store, ident)

    def lift(said: Statement) -> None:
        store.write(lambda rows: stage.unforget(rows, said, project=_ensured(rows, "beta")[0], key=store.hash_key))

    lift(statement(f"{SHORT.text}", gate="epistemic"))
    assert stays_out(store, at=BEFORE, text=SHORT.text), "said for beta it is not let in for all"
    lift(SHORT)
    assert not stays_out(store, at=BEFORE, text=SHORT.text)


# --- Each of the twelve types has a path that ends in it; what a row says decides, the first that fits.


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
    passage = Statement(
        text=words,
        gate=CATEGORIES[category].gate,
        category=category,
        confidence=0.8,
        authority=authority,
    )
    assert stage.choose_type(passage, kind=kind) == wanted


def test_every_type_has_a_path() -> None:
    assert {row[0] for row in PATHS} == set(get_args(MemoryType))


@pytest.mark.parametrize(
    "proposal",
    [
        "I recommend Redis for the order cache, since it is already deployed.",
        "We should keep the order cache in Redis, because the latency is lowest there.",
        "Going forward the order cache lives in Redis, keyed by cart.",
        "From now on all exports are written as Parquet, never as CSV.",
    ],
)
@pytest.mark.parametrize("answer", ["No.", "no, don't do that", "No, keep it in Postgres instead"])
def test_an_assistants_proposal_that_the_next_prompt_turns_down_is_no_memory(
    store: Store, proposal: str, answer: str
) -> None:
    talk = Talk(store)
    talk.say("user", "how do we go on with the shop")
    talk.say("assistant", proposal)
    talk.say("user", answer)
    go_through(store)
    stored = store.read(lambda rows: memories.list_memories(rows, projects=None))
    assert [memory.text for memory in stored if memory.authority != "user"] == []


def test_what_an_assistant_saved_of_its_proposal_gives_way_to_the_prompt_that_turns_it_down(store: Store) -> None:
    save_memory(store, statement("Reviews go to Sarah"), "u0")
    proposal = statement("The order cache is kept in Redis", authority="assistant")
    saved, _ = store.write(
        lambda rows: stage.remember(
            rows, proposal, Provenance(uuid="a1", session_id="s1", at=NOW), project=1, origin="model_saved", key=store.hash_key
        )
    )  # fmt: skip
    answer = statement("The order cache is kept in Postgres, not in Redis")
    current, _ = save_memory(store, answer, "u1", at="2026-03-01T10:01:00.000Z")
    assert read(store, saved).superseded_by == current


def test_a_day_that_a_user_corrects_in_two_words_replaces_the_statement_with_the_other_day(store: Store) -> None:
    Talk(store, "s1", day=1).say("user", "We count the coins of the market on Fridays.")
    later = Talk(store, "s2", day=2)
    later.say("user", "When are the coins counted?")
    later.say("assistant", "We count the coins of the market on Fridays.")
    later.say("user", "no, Saturdays")
    go_through(store)
    stated = {
        memory.text: memory.superseded_by
        for memory in store.read(lambda rows: memories.list_memories(rows, projects=None))
    }
    corrected = "We count the coins of the market on Fridays -> no, Saturdays"
    assert set(stated) == {"We count the coins of the market on Fridays.", corrected}
    assert stated.pop(corrected) == "" and all(stated.values())
