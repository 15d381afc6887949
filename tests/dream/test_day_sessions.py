"""What is read of a day: its own local day, without what lies elsewhere, was left out or forgotten."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import pytest
from session_writer import Talk, go_through

from csmd.dream import day_report, day_sessions
from csmd.extraction import digest
from csmd.memory import remember
from csmd.store import memories
from csmd.store.core import Store
from csmd.store.sqlite import Rows

LAST = "2026-03-09T13:00:00.000Z"
RULE = "No, the till must never round a price down."


def commit(talk: Talk, subject: str) -> None:
    talk.mend(f"/p/{talk.project}/{subject.split()[-1]}.py")
    talk.run(f'git commit -am "{subject}"', f"[main 1a2b3c4] {subject}")


def told(store: Store, day: int, *, hours: int = 0, left_out: str = "") -> list[str]:
    """The lines of a day of March, settled before."""
    go_through(store)
    while digest.step(store):
        pass

    def here(at: str) -> datetime:
        return datetime.fromisoformat(at).astimezone(timezone(timedelta(hours=hours)))

    def read(rows: Rows) -> list[str]:
        of_day = date(2026, 3, day)
        projects = day_sessions.read_day(
            rows, of_day, here, project_seqs=None, key=store.hash_key, is_excluded=lambda *places: left_out in places
        )
        return [line for line in day_report.render_day(of_day, projects).splitlines()[2:] if line]

    return store.read(read)


def two_days(store: Store) -> None:
    """A session that commits and decides on the first, and commits again and leaves something open on the second."""
    one = Talk(store, project="till", day=1)
    one.say("user", "keep the prices in cents")
    commit(one, "Keep prices in cents")
    one.say("assistant", "Prices are in cents now.")
    one.say("user", RULE)
    one.say("assistant", "Done.")
    one.day = 2
    one.say("user", "print the receipts upright")
    commit(one, "Print the receipts upright")
    one.say("assistant", "The receipts stand upright. The vouchers are still to be done.")


def test_of_a_session_over_midnight_each_day_has_its_own(store: Store) -> None:
    two_days(store)
    assert told(store, 1) == [
        "## till · 1 commit, 1 file",
        "- Committed: Keep prices in cents",
        "- Decided: the till must never round a price down.",
    ]
    assert told(store, 2)[1] == "- Committed: Print the receipts upright"
    assert told(store, 3) == [] and not any("Decided" in line for line in told(store, 2))


@pytest.mark.parametrize(("hours", "day"), [(14, 2), (-11, 28)])
def test_a_day_is_the_local_one(store: Store, hours: int, day: int) -> None:
    one = Talk(store, project="till", day=1)
    one.say("user", "keep the prices in cents")
    commit(one, "Keep prices in cents")
    there = told(store, 2, hours=hours)
    assert ("- Committed: Keep prices in cents" in there) is (day == 2)
    assert told(store, 1, hours=hours) == []


def test_what_is_left_out_and_what_was_forgotten_is_not_told(store: Store) -> None:
    two_days(store)
    assert told(store, 1, left_out="/p/till") == []

    def forget(rows: Rows) -> None:
        for known in memories.list_memories(rows, projects=None):
            remember.forget(rows, known, key=store.hash_key, now=LAST, by_person=True)

    store.write(forget)
    assert told(store, 1)[1:] == ["- Committed: Keep prices in cents"]


def test_projects_of_one_name_are_told_apart_by_the_directory_around_them(store: Store) -> None:
    for number, place in enumerate(("shop/till", "bank/till")):
        one = Talk(store, f"s{number}", project=place)
        one.say("user", "keep the prices in cents")
        commit(one, "Keep prices in cents")
    store.write(lambda rows: rows.run("update projects set name = 'till'"))
    assert [line for line in told(store, 1) if line.startswith("##")] == [
        "## bank/till · 1 commit, 1 file",
        "## shop/till · 1 commit, 1 file",
    ]
