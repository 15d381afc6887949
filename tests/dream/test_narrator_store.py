"""Facts over a real store: two sessions make one, paths stay inside of the project, and reading them changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from talked import NOW, Talk, go_through

from csmd.dream import narrator
from csmd.dream.actions import CATEGORY, Fact
from csmd.extraction import digest, packets
from csmd.memory import habits as stage_habits
from csmd.store import purge, tombstones
from csmd.store.core import Store

FAILED = "Exit code 1\nE   price.py:9: NameError: name 'to_cents' is not defined"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "csmd.db", now=NOW)
    yield opened
    opened.close()


def work(store: Store, number: int, *, project: str = "till") -> None:
    """A session: a check fails, two files and one outside are edited, it passes, and that is committed."""
    one = Talk(store, f"s{number}", project=project, day=number)
    one.say("user", "please keep the prices of the till in cents")
    one.run("pytest -q", FAILED)
    for path in (
        f"/p/{project}/till/price.py",
        f"/p/{project}/locale/en.yaml",
        "/etc/till.conf",
        f"/p/{project}/x{number}.py",
    ):
        one.mend(path)
    one.run("pytest -q", "5 passed")
    one.run(
        f"git checkout -b ann/till-{number}-cents && git commit -am x",
        f"[ann/till-{number}-cents 1a2b3c{number}] fix(till): keep cents {number}",
    )
    one.say(
        "assistant",
        "The name was missing because `to_cents` moved to till/money.py; importing it from there mended it.",
    )


def told(store: Store) -> list[Fact]:
    go_through(store)
    while packets.step(store, now=NOW) or digest.step(store, now=NOW):
        pass
    (project,) = store.read(lambda rows: rows.one("select seq from projects where key = 'till'"))
    return store.read(lambda rows: narrator.count_facts(rows, project, now=NOW))


def test_what_several_sessions_show_is_told_of_their_project(store: Store) -> None:
    work(store, 1)
    assert told(store) == [], "nothing without two sessions"
    for number in (2, 3, 4):
        work(store, number)
    work(store, 5, project="other")
    found = told(store)
    assert [(one.kind, one.text) for one in found if one.kind != "fix"] == [
        ("command", "Tests run with `pytest`, 8 of 8 times."),
        ("procedure", "Before a commit comes `pytest`: 4 of 4 times."),
        ("files", "When `locale/en.yaml` changes, so does `till/price.py`: in 4 of 4 sessions."),
        ("convention", "Branches are named `ann/till-<number>-<what>`: 4 of 4."),
        ("convention", "Commit subjects begin with a type (`feat:`, `fix(scope):`, ...): 4 of 4."),
    ]
    (fix,) = [one for one in found if one.kind == "fix"]
    assert fix.text.startswith(
        "`pytest` failed with `E price.py: NameError: name 'to_cents' is not defined` (4 times in 4 sessions); "
    )
    assert "/etc" not in " ".join(one.text for one in found)
    sessions = store.read(
        lambda rows: dict(rows.all("select t.uuid, s.id from turns t join sessions s on s.seq = t.session_seq"))
    )
    for one in found:
        assert len({sessions[uuid] for uuid in one.evidence[:2]}) == 2, "the first two are of two sessions"
        assert "s5" not in {sessions[uuid] for uuid in one.evidence}
    assert told(store) == found, "and again the same"
    (other,) = store.read(lambda rows: rows.one("select seq from projects where key = 'other'"))
    assert store.read(lambda rows: narrator.count_facts(rows, other, now=NOW)) == []


@pytest.mark.invariant("A counted fact rests on two sessions and fades with what was purged")
def test_a_fact_fades_with_the_sessions_that_were_purged(store: Store) -> None:
    for number in (1, 2):
        work(store, number)
    assert {one.kind for one in told(store)} >= {"command", "fix"}

    def forget(rows):  # type: ignore[no-untyped-def]
        purge.begin(rows, now=NOW)
        tombstones.purge_names(rows, "session", ["s1"], key=store.hash_key, now=NOW)
        purge.honour(rows, store.hash_key)

    store.write(forget)
    assert told(store) == []


def test_a_habit_tells_what_becomes_a_memory_and_a_fact_what_was_counted(store: Store) -> None:
    """The same packets: of commands and procedures the habit is raised, of all others the fact."""
    for number in range(1, 5):
        work(store, number)
    found = told(store)
    stage_habits.step(store, now=NOW)
    habits = {str(name) for (name,) in store.read(lambda rows: rows.all("select fingerprint from candidates"))}
    assert {one for one in habits if not one.startswith("order:")} == {"commands", "procedure:commit"}
    raised = [one for one in found if one.kind in CATEGORY]
    assert raised and not habits & {one.fingerprint for one in raised}
