"""Which value of a sentence a short answer corrects, and what the sentence claims then."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.text import corrections
from csmd.text.display import ARROW
from csmd.text.similarity import compare


class Case(NamedTuple):
    sentence: str
    answer: str
    claim: str


CASES = [
    Case("The market is open on Fridays", "no, Saturday", "The market is open on Saturdays"),
    Case("The fair is in April", "not April, May", ""),
    Case("The fair is in April", "not April, June", "The fair is in June"),
    Case("The till opens at 8:30", "no, 9:00", "The till opens at 9:00"),
    Case("The till keeps 40 receipts", "actually 50", "The till keeps 50 receipts"),
    Case("The till keeps 40 receipts", "nein, 50", "The till keeps 50 receipts"),
    Case("The till keeps 40 receipts", "50", ""),
    Case("The till keeps 40 receipts", "no, on Friday", ""),
    Case("The till keeps 40 receipts", "no, the plotter has 50", ""),
    Case("The till keeps 40 receipts for 30 days", "no, 50", ""),
    Case("The till runs 2.5.1", "no, 2.6", "The till runs 2.6"),
    Case("The till keeps 40 receipts", "no, not 50", ""),
    Case("The market is open on Fridays", "no, not on Monday", ""),
]


def check(case: Case) -> None:
    assert corrections.correct(case.sentence, case.answer) == case.claim


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.sentence}: {case.answer}")
def test_an_answer_that_refuses_a_value_gives_the_sentence_another_of_its_kind(case: Case) -> None:
    check(case)


@given(st.text(max_size=200), st.text(max_size=60))
def test_whatever_is_corrected_what_is_no_correction_is_claimed_as_it_is(sentence: str, answer: str) -> None:
    claim = corrections.read_claim(f"{sentence}{ARROW}{answer}")
    assert claim == f"{sentence}{ARROW}{answer}" or corrections.correct(sentence, answer)


def test_a_corrected_value_replaces_an_earlier_statement_of_it_and_is_replaced_by_a_later_one() -> None:
    correction = f"The market is open on Fridays{ARROW}no, Saturdays"
    assert compare("The market is open on Fridays.", correction).replaces
    later = compare(correction, "The market is open on Sundays.")
    assert later.replaces and later.parts == (correction,)
