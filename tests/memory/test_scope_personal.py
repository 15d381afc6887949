"""Who says who they are says it of every project; who says what they are in a project says it of that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from csmd.memory import remember as stage
from csmd.memory import scope
from csmd.model import Project, Provenance, Statement
from csmd.store import memories, projects
from csmd.store.core import Store
from csmd.store.sqlite import Rows

NOW = "2026-03-01T10:00:00.000Z"
OF_THE_USER = [
    "Hi, I'm Marta Silva, nice to meet you", "my name is Marta", "My name is Marta Silva.", "Call me Bo.",
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
@pytest.mark.parametrize("said", OF_THE_USER)
def test_what_somebody_says_of_themselves_is_of_no_project(said: str) -> None:
    assert scope.is_of_the_user(said, project_name="payments")


@pytest.mark.invariant("Who the user is holds in every project, what they are in a project in that")
@pytest.mark.parametrize("said", OF_A_PROJECT)
def test_what_is_said_of_a_project_or_of_others_stays_where_it_was_said(said: str) -> None:
    assert not scope.is_of_the_user(said, project_name="payments")


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
    for said in LONG:
        assert not scope.is_of_the_user(40 * said + " it fails", project_name="payments")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "csmd.db", now=NOW)
    yield opened
    opened.close()


def test_what_the_user_says_of_themselves_is_known_everywhere_and_an_assistants_word_of_it_is_not(store: Store) -> None:
    def remember(rows: Rows, text: str, authority: str, name: str = "payments") -> tuple[str, int]:
        project = projects.ensure(rows, Project(key=name, root=f"/p/{name}", name=name, kind="path"), now=NOW)
        said = Statement(
            text=text, gate="relational", category="person", confidence=0.85, authority=authority,  # type: ignore[arg-type]
        )  # fmt: skip
        source = Provenance(uuid=f"{text}{name}", session_id="s1", at=NOW)
        ident, _ = stage.remember(rows, said, source, project=project, origin="stated", key=store.hash_key)
        memory = memories.by_id(rows, ident)
        assert memory is not None
        return memory.scope, memory.project_seq

    def story(rows: Rows) -> None:
        assert remember(rows, "My timezone is Europe/Lisbon", "user") == ("user", 0)
        assert remember(rows, "I'm a backend developer", "assistant") == ("project", 1)
        assert remember(rows, "I'm the release manager here", "user") == ("project", 1)
        assert remember(rows, "My timezone is Europe/Lisbon", "user", "shop") == ("user", 0), "it confirms the one"

    store.write(story)
    assert len(store.read(lambda rows: memories.listing(rows, projects=[0]))) == 1
