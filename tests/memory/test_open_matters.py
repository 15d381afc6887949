"""Promises: which sentence says that one is kept, and that nothing else closes it."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from session_writer import NOW, Talk, go_through

from csmd.memory import open_matters
from csmd.store.core import Store

PROMISE = "I'll mail the seating chart to Noor by Monday."


class Case(NamedTuple):
    said: str
    closes: bool


CASES = [
    Case("I mailed the seating chart to Noor.", True),
    Case("Noor was sent the seating chart this morning.", True),
    Case("The seating chart for Noor is out.", True),
    Case("I mailed the catering menu to Noor.", False),
    Case("I haven't mailed Noor the seating chart.", False),
    Case("I'll have the seating chart mailed to Noor tomorrow.", False),
    Case("Once I mailed Noor the seating chart, we print it.", False),
    Case("Did I mail the seating chart to Noor?", False),
    Case("Mail the seating chart to Noor.", False),
    Case("The seating chart for Noor has twelve tables.", False),
]


def check(case: Case) -> None:
    assert open_matters.is_fulfilled_by(PROMISE, case.said) == case.closes, case.said


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.said)
def test_a_promise_is_kept_where_a_sentence_says_of_the_same_that_it_was_done(case: Case) -> None:
    check(case)


def open_promises(store: Store) -> list[str]:
    while open_matters.step(store, now=NOW):
        pass
    return [matter.text for matter in store.read(lambda rows: open_matters.read_promises(rows, None))]


@pytest.mark.parametrize("is_read_first", [False, True], ids=["in its order", "before the promise"])
def test_a_later_session_closes_a_promise_whichever_of_the_two_is_read_first(store: Store, is_read_first: bool) -> None:
    def promise() -> None:
        Talk(store, "s1", day=1).say("user", f"Thanks. {PROMISE}")

    def report() -> None:
        Talk(store, "s2", day=2).say("user", "I mailed the seating chart to Noor. Now to the invoices.")

    for session in (report, promise) if is_read_first else (promise, report):
        session()
        go_through(store)
        left = open_promises(store)
    assert left == []


def test_what_was_said_before_a_promise_and_in_another_project_leaves_it_open(store: Store) -> None:
    Talk(store, "s1", day=1).say("user", "I mailed the seating chart to Noor.")
    Talk(store, "s2", day=2).say("user", f"Thanks. {PROMISE}")
    Talk(store, "s3", day=3, project="beta").say("user", "I mailed the seating chart to Noor.")
    go_through(store)
    assert open_promises(store) == [PROMISE]
