"""A memory leaves its project only when its words say so and nothing in them points at a place."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd import data
from csmd.conversation import Project
from csmd.extraction.classifier import classify
from csmd.knowledge import Provenance, Statement
from csmd.memory import remember as stage
from csmd.memory import scope
from csmd.store import memories, projects
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.vocabulary import Gate, Scope

EVALUATION = Path(os.environ.get("CSMD_EVAL") or Path(__file__).resolve().parents[3] / "shared" / "eval")


def where_it_holds(text: str, *, gate: Gate, project_name: str) -> Scope:
    classified = classify(text, speaker="user")
    return scope.scope_of(text, gate=gate, about_speaker=classified.about_speaker, project_name=project_name)


@pytest.mark.invariant("A project's memories stay in it, unless their words say that they hold everywhere")
@pytest.mark.parametrize(
    ("text", "gate", "where"),
    [
        ("I prefer functional patterns over classes", "behavioral", "user"),
        ("in every project write commit messages in the imperative", "behavioral", "user"),
        ("never force-push to main in any of my projects", "correction", "global"),
        ("from now on write commit messages in the imperative", "behavioral", "project"),
        ("always run the tests with make check before you commit, not pytest", "correction", "project"),
        ("I prefer pathlib over os.path in this code", "behavioral", "project"),
        ("always run `make lint` before committing", "behavioral", "project"),
        ("never touch api/generated.go", "correction", "project"),
        ("no, the config key is database_url, not db_url", "correction", "project"),
        ("let's completely remove the legacy importer", "correction", "project"),
        ("we always squash before merging", "behavioral", "project"),
        ("I like short functions", "epistemic", "project"),
        ("in Payments I prefer small tests", "behavioral", "project"),
        ("in the gull module we prefer small functions", "behavioral", "project"),
        ("in the gull module I prefer small functions", "behavioral", "project"),
        ("I prefer small functions in gull", "behavioral", "project"),
        ("for our gull I prefer tabs", "behavioral", "project"),
        ("I prefer short tests, Gull has long ones", "behavioral", "project"),
        ("I always deploy the gull and heron services on Monday", "behavioral", "project"),
        ("I prefer a class for each worker of payments", "behavioral", "project"),
        ("I never said to support solaris", "correction", "project"),
        ("you've changed quotes to ticks everywhere, undo", "correction", "project"),
        ("no, the limit is per user and not per team", "correction", "project"),
        ("I prefer tabs in Makefiles", "behavioral", "user"),
        ("I usually squash before merging", "behavioral", "user"),
        ("I'd rather see literal values in tests", "behavioral", "user"),
        ("I prefer early returns in Go", "correction", "global"),
    ],
)
def test_a_memory_leaves_its_project_only_when_its_words_say_so(text: str, gate: Gate, where: str) -> None:
    assert where_it_holds(text, gate=gate, project_name="payments") == where


#: What is said in a project "payments", and where it holds; by statements of each gate where "any" is one.
REACHES: list[tuple[str, Scope]] = [
    ("use two spaces everywhere, this is how we do it", "user"),
    ("Write test names as sentences everywhere.", "user"),
    ("In all my repos this file is generated, never edit it", "user"),
    ("for every project we keep it at one commit per pull request", "user"),
    ("across all of my projects the default branch is trunk", "user"),
    ("wherever I work, it is rebase and never merge", "user"),
    ("no matter which project this is, never add emojis", "user"),
    ("I always squash it before we merge", "user"),
    ("I always save files as utf-8", "user"),
    ("I always ssh into build-07 first", "project"),
    ("I usually review this by commit", "user"),
    ("no default exports, and this in every repo of mine", "user"),
    ("everywhere I work we rebase it first", "user"),
    ("Write American spelling everywhere", "user"),
    ("rename it everywhere", "project"),
    ("add a licence to all my repos", "project"),
    ("add a column for every project", "project"),
    ("I always get a blank page when this runs", "project"),
    ("you've changed quotes to ticks everywhere, undo", "project"),
    ("in all my repos `make lint` comes first", "project"),
    ("for every project Payments keeps a ledger", "project"),
    ("I always deploy src/api before this", "project"),
    ("wherever I work in the billing service, ask Marta first", "project"),
    ("I always use retry_count here", "project"),
    ("I always deploy the backend first", "project"),
    ("in every session it reads the plan first", "user"),
]
ANSWERS = [
    "answer me in German", "Please answer in Polish.", "replies in Spanish please", "always reply in French", "I want you to answer in Italian",
    "keep your answers short", "never put emojis in your replies", "I like short answers", "you may answer in Danish", "I prefer answers without bullet points",
    "be brief in your answers, this matters", "antworte mir bitte auf Deutsch", "responde siempre en español", "réponds en français", "отвечай по-русски", "请用中文回答", "日本語で回答してください",
    "앞으로 한국어로 답변해 주세요",
]  # fmt: skip
NO_ANSWERS = [
    "the API replies in Spanish", "we answer customers in German", "can you answer in German?", "answer in German this time",
    "error replies in Spanish are missing", "the answers table is in German", "always reply to the webhook within 5 s",
    "translate the page into German", "answers are cached for an hour", "translate the answers to German", "reply to this customer in French", "your API answers in German",
]  # fmt: skip


@pytest.mark.invariant("A project's memories stay in it, unless their words say that they hold everywhere")
@pytest.mark.parametrize(("text", "where"), REACHES)
def test_what_is_said_of_all_projects_leaves_its_project_whatever_pronoun_stands_beside(
    text: str, where: Scope
) -> None:
    assert where_it_holds(text, gate="behavioral", project_name="payments") == where


@pytest.mark.parametrize(
    ("text", "where"), [*((text, "user") for text in ANSWERS), *((text, "project") for text in NO_ANSWERS)]
)
def test_how_somebody_likes_to_be_answered_is_theirs_in_every_project(text: str, where: Scope) -> None:
    assert where_it_holds(text, gate="epistemic", project_name="payments") == where


CHECKOUTS = [
    ("in this worktree never run the migrations", "this worktree"),
    ("This branch stays on Node 18.", "this branch"),
    ("on release/2.4 only fixes are merged", "release/2.4"),
    ("on the branch feat/cart the old schema stays", "feat/cart"),
    ("in ../x-spike we use sqlite, never postgres", "../x-spike"),
    ("on every branch the tests run first", ""),
    ("never push to main", ""),
    ("the worker reads from in/out and feeds this branching code", ""),
]


@pytest.mark.parametrize(("text", "named"), CHECKOUTS)
def test_what_is_of_a_worktree_or_a_branch_names_it_and_stays_there(text: str, named: str) -> None:
    assert scope.named_checkout(text) == named
    assert (
        where_it_holds(f"I always do so, {text}", gate="behavioral", project_name="payments") == "project" or not named
    )


GENERAL = ["I prefer small functions", "in all my projects keep commits small", "I usually squash before merging"]


@pytest.mark.invariant("What names a place never leaves its project")
@given(
    st.sampled_from(GENERAL),
    st.sampled_from(
        ["in the {0} module", "for {0}", "inside our {0} service", "of the {0}", "in src/{0}", "with `{0}`", "on {0}"]
    ),
    st.from_regex(r"[a-z]{4,9}", fullmatch=True).filter(lambda name: name not in scope.GENERAL_NAMES),
    st.sampled_from(["behavioral", "correction"]),
)
def test_what_names_a_place_never_leaves_its_project(text: str, where: str, name: str, gate: Gate) -> None:
    assert where_it_holds(text, gate=gate, project_name="heron") != "project"
    assert where_it_holds(f"{text} {where.format(name)}", gate=gate, project_name="heron") == "project"


@given(
    st.sampled_from(GENERAL), st.sampled_from(["gull-api", "gull_api", "gull api", "GullApi", "Gull API", "gullapi"])
)
def test_what_names_its_project_stays_in_it_however_it_is_written(text: str, name: str) -> None:
    for project in ("gull-api", "gull_api", "GULL-API"):
        assert where_it_holds(f"{text} unlike {name}", gate="behavioral", project_name=project) == "project"


@given(st.text(max_size=200), st.sampled_from(["epistemic", "relational", "promissory"]))
def test_only_how_to_work_and_corrections_leave_a_project(text: str, gate: Gate) -> None:
    assert where_it_holds(f"I prefer {text} everywhere", gate=gate, project_name="heron") == "project"


@pytest.mark.invariant("What names a place never leaves its project")
@pytest.mark.skipif(
    not (EVALUATION / "memories.jsonl").is_file(), reason=f"no labelled set at {EVALUATION}; set CSMD_EVAL"
)
def test_of_the_labelled_corrections_none_leaves_its_project_as_said_or_as_labelled() -> None:
    """All 33 are about one repository, by a name or by what stands around them; read by hand, none holds everywhere."""
    rows = [json.loads(line) for line in (EVALUATION / "memories.jsonl").read_text().splitlines()]
    corrections = [text for row in rows if row["gate"] == "correction" for text in (row["quote"], row["memory"])]
    assert len(corrections) == 66
    assert {where_it_holds(text, gate="correction", project_name="cli") for text in corrections} == {"project"}


# --- Who says who they are says it of every project; who says what they are in a project says it of that.


NOW = "2026-03-01T10:00:00.000Z"
OF_THE_USER = [
    "my pronouns are they/them, keep that in mind", "I live in Porto, so it is late here", "Hi, I'm Marta Silva, nice to meet you", "my name is Marta", "My name is Marta Silva.", "Call me Bo.",
    "I'm in Lisbon, so CET", "my timezone is Europe/Berlin now", "My timezone is Europe/Lisbon again, I moved back.",
    "my job is a data engineer", "I'm now living in Porto", "My pronouns are she/her", "My working hours are 9 to 5",
    "I'm colour-blind, so don't rely on red/green in charts.",
    "I live in Porto", "I now live in Porto with two cats", "I'm from Chile", "I'm based in Berlin, so CET",
    "my timezone is Europe/Lisbon", "My timezone is Europe/Lisbon again", "I'm in UTC+1", "I'm on CET", "I work from 9 to 5 Berlin time", "my pronouns are they/them",
    "I use she/her", "I speak Portuguese and English", "My first language is German.",
    "English isn't my first language", "I'm a native Spanish speaker", "I'm a backend developer",
    "I'm a nurse, not a programmer: explain things simply", "I work as a data scientist",
    "I'm colorblind, so don't use red and green",
]  # fmt: skip
OF_A_PROJECT = [
    "I'm the release manager here", "I'm the maintainer of this repo", "I'm a developer of the billing service",
    "I'm in the docs folder", "I'm in Docker", "I'm on Python", "I live in fear of `make clean`", "We're in Lisbon",
    "I'm a bit lost", "am I in UTC?", "my timezone is what this service logs", "I'm a reviewer of the payments module",
    "the user lives in Lisbon", "I moved to Postgres", "call me when the tests pass", "I'm Payments' only developer",
    "in Payments my name is root", "the parser speaks Portuguese", "users live in Lisbon", "I use tabs/spaces mixed",
    "I'm in favor of Redis", "I work as a rule on the parser here", "My job is failing in CI", "I'm Blocked", "I'm in Slack",
    "my job is stuck in the queue on the runner", "My job is a code generator that fails", "my time zone handling code must use UTC",
    "I'm in Settings, the save button must stay disabled until the form is valid", "I'm in IT", "I'm on Feature/Login",
    "My pronouns field in the User model must be nullable", "My name is parsed as the first argument", "I'm on REST",
    "my working hours table has no index", "My second language file must be loaded last", "I'm a nurse, run the tests again",
]  # fmt: skip


@pytest.mark.invariant("Who the user is holds in every project, what they are in a project in that")
@pytest.mark.parametrize("text", OF_THE_USER)
def test_what_somebody_says_of_themselves_is_of_no_project(text: str) -> None:
    assert scope.describes_user(text, project_name="payments")


@pytest.mark.invariant("Who the user is holds in every project, what they are in a project in that")
@pytest.mark.parametrize("text", OF_A_PROJECT)
def test_what_is_said_of_a_project_or_of_others_stays_where_it_was_said(text: str) -> None:
    assert not scope.describes_user(text, project_name="payments")


FOR_EACH_CLASS = [
    *(text for text, _ in REACHES), *ANSWERS, *NO_ANSWERS, "I prefer small functions in the gull module", "I prefer tabs in Go",
    "I prefer a test for each gull service", "I prefer it when this is short", "I prefer Kotlin, gull package aside",
]  # fmt: skip


@pytest.mark.parametrize("name", sorted(data.word_table("scope_words.txt")))
def test_each_class_of_words_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def answers(module: Any) -> list[object]:
        classified = {text: classify(text, speaker="user") for text in FOR_EACH_CLASS}
        return [
            *(module.describes_user(text, project_name="payments") for text in (*OF_THE_USER, *OF_A_PROJECT)),
            *(module.named_checkout(text) for text, _ in CHECKOUTS),
            *(
                module.scope_of(
                    text, gate="behavioral", about_speaker=classified[text].about_speaker, project_name="payments"
                )
                for text in FOR_EACH_CLASS
            ),
        ]

    table = data.word_table("scope_words.txt")
    others = {**table, name: frozenset(["nothing_at_all"])}
    monkeypatch.setattr(data, "word_table", lambda file: others)
    spec = importlib.util.find_spec("csmd.memory.scope")
    assert spec and spec.loader
    without = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(without)
    assert answers(without) != answers(scope)


LONG = (
    "I am a " + "b-" * 8000,
    "I am a " * 2400,
    "a_" * 8000,
    "aB1" * 5000,
    "I work 9 " * 1800,
    "Marta-" * 2700,
    "-" * 16_000,
)


def test_how_long_a_text_is_looked_at_grows_with_its_length_alone() -> None:
    for text in LONG:
        assert not scope.describes_user(40 * text + " it fails", project_name="payments")


def test_what_the_user_says_of_themselves_is_known_everywhere_and_an_assistants_word_of_it_is_not(store: Store) -> None:
    def remember(rows: Rows, text: str, authority: str, name: str = "payments") -> tuple[str, int]:
        project = projects.ensure(rows, Project(key=name, root=f"/p/{name}", name=name, kind="path"), now=NOW)
        statement = Statement(
            text=text, gate="relational", category="person", confidence=0.85, authority=authority,  # type: ignore[arg-type]
        )  # fmt: skip
        source = Provenance(uuid=f"{text}{name}", session_id="s1", at=NOW)
        ident, _ = stage.remember(rows, statement, source, project=project, origin="stated", key=store.hash_key)
        memory = memories.by_id(rows, ident)
        assert memory is not None
        return memory.scope, memory.project_seq

    def story(rows: Rows) -> None:
        assert remember(rows, "My timezone is Europe/Lisbon", "user") == ("user", 0)
        assert remember(rows, "I'm a backend developer", "assistant") == ("project", 1)
        assert remember(rows, "I'm the release manager here", "user") == ("project", 1)
        assert remember(rows, "My timezone is Europe/Lisbon", "user", "shop") == ("user", 0), "it confirms the one"

    store.write(story)
    assert len(store.read(lambda rows: memories.list_memories(rows, projects=[0]))) == 1
