"""A memory leaves its project only when its words say so and nothing in them points at a place."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.extraction.classifier import classify
from csmd.memory import scope
from csmd.model import Gate, Scope

EVALUATION = Path(os.environ.get("CSMD_EVAL") or Path(__file__).resolve().parents[3] / "shared" / "eval")


def where_it_holds(said: str, *, gate: Gate, project_name: str) -> Scope:
    told = classify(said, speaker="user")
    return scope.scope_of(said, gate=gate, about_speaker=told.about_speaker, project_name=project_name)


@pytest.mark.invariant("A project's memories stay in it, unless their words say that they hold everywhere")
@pytest.mark.parametrize(
    ("said", "gate", "where"),
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
def test_a_memory_leaves_its_project_only_when_its_words_say_so(said: str, gate: Gate, where: str) -> None:
    assert where_it_holds(said, gate=gate, project_name="payments") == where


GENERAL = ["I prefer small functions", "in all my projects keep commits small", "I usually squash before merging"]


@pytest.mark.invariant("What names a place never leaves its project")
@given(
    st.sampled_from(GENERAL),
    st.sampled_from(
        ["in the {0} module", "for {0}", "inside our {0} service", "of the {0}", "in src/{0}", "with `{0}`", "on {0}"]
    ),
    st.from_regex(r"[a-z]{4,9}", fullmatch=True).filter(lambda name: name not in scope.EVERYWHERE),
    st.sampled_from(["behavioral", "correction"]),
)
def test_what_names_a_place_never_leaves_its_project(said: str, where: str, name: str, gate: Gate) -> None:
    assert where_it_holds(said, gate=gate, project_name="heron") != "project"
    assert where_it_holds(f"{said} {where.format(name)}", gate=gate, project_name="heron") == "project"


@given(
    st.sampled_from(GENERAL), st.sampled_from(["gull-api", "gull_api", "gull api", "GullApi", "Gull API", "gullapi"])
)
def test_what_names_its_project_stays_in_it_however_it_is_written(said: str, name: str) -> None:
    for project in ("gull-api", "gull_api", "GULL-API"):
        assert where_it_holds(f"{said} unlike {name}", gate="behavioral", project_name=project) == "project"


@given(st.text(max_size=200), st.sampled_from(["epistemic", "relational", "promissory"]))
def test_only_how_to_work_and_corrections_leave_a_project(said: str, gate: Gate) -> None:
    assert where_it_holds(f"I prefer {said} everywhere", gate=gate, project_name="heron") == "project"


@pytest.mark.invariant("What names a place never leaves its project")
@pytest.mark.skipif(
    not (EVALUATION / "memories.jsonl").is_file(), reason=f"no labelled set at {EVALUATION}; set CSMD_EVAL"
)
def test_of_the_labelled_corrections_none_leaves_its_project_as_said_or_as_labelled() -> None:
    """All 33 are about one repository, by a name or by what stands around them; read by hand, none holds everywhere."""
    rows = [json.loads(line) for line in (EVALUATION / "memories.jsonl").read_text().splitlines()]
    said = [text for row in rows if row["gate"] == "correction" for text in (row["quote"], row["memory"])]
    assert len(said) == 66
    assert {where_it_holds(text, gate="correction", project_name="cli") for text in said} == {"project"}
