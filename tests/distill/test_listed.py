"""A statement of some items of a list is told with the others: before it all or none, behind it as many as fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.distill import listed, units
from csmd.distill.units import Unit
from csmd.text import content_words

LEAD = "The `Sender` retries when:\n"
ITEMS = "- the gateway closes the socket\n- the answer has no checksum\n- the clock jumped\n- the queue was compacted\n"


def check(text: str, *, first: int, last: int, wanted: str, lead: str = "") -> None:
    """What is told of the pieces from `first` to `last` of a text of the assistant's."""
    found = units.pieces(text, "assistant")
    (unit,) = [one for one in units.units(found) if (one.first, one.last) == (first, last)]
    _, told = listed.completed(found, unit, "assistant", lead=lead, told=unit.text)
    assert told == wanted


ALL = (
    "The `Sender` retries when: the gateway closes the socket; the answer has no checksum; the clock jumped;"
    " the queue was compacted"
)


@pytest.mark.parametrize(
    ("text", "first", "last", "lead", "wanted"),
    [
        pytest.param(LEAD + ITEMS, 0, 2, "", ALL, id="the items behind it"),
        pytest.param(LEAD + ITEMS, 3, 4, "The `Sender` retries when: ", ALL, id="those before it, behind their lead"),
        pytest.param(
            LEAD + ITEMS + "This is why the tests of the sender hang now and then.\nUnrelated prose follows here.",
            0, 2, "", f"{ALL}; This is why the tests of the sender hang now and then.", id="what the list comes to",
        ),
        pytest.param(
            LEAD + ITEMS + "This causes:\n- a second mail to the customer\n",
            0, 2, "", f"{ALL}; This causes: a second mail to the customer", id="a list that it leads to",
        ),
        pytest.param(LEAD + ITEMS + "This causes:\n", 0, 2, "", ALL, id="nothing that leads nowhere"),
        pytest.param(LEAD + ITEMS + "Another day the sender was green.", 0, 2, "", ALL, id="no other prose"),
        pytest.param(
            LEAD + ITEMS.replace("- the clock jumped", "- the clock jumped\n  - by an hour in the spring"),
            0, 2, "", ALL, id="nothing below an item",
        ),
        pytest.param(
            LEAD + ITEMS.replace("- the clock jumped", "- the clock jumped. It did so twice"),
            0, 2, "", ALL, id="of an item its first sentence",
        ),
        pytest.param(
            LEAD + ITEMS + "\n## Another part\n\n- the pool is too small for it\n", 0, 2, "", ALL, id="no other list",
        ),
        pytest.param(
            LEAD + "- the clock jumped\nThis means that nobody waits for the `Sender` by hand.",
            2, 2, "", "The `Sender` retries when: the clock jumped; This means that nobody waits for the `Sender` by hand.",
            id="the list that a sentence concludes",
        ),
        pytest.param(
            ITEMS + "Nobody waits for the `Sender` by hand here.",
            4, 4, "", "Nobody waits for the `Sender` by hand here.", id="no list that it does not conclude",
        ),
    ],
)  # fmt: skip
def test_a_list_is_told_whole(text: str, first: int, last: int, lead: str, wanted: str) -> None:
    check(text, first=first, last=last, lead=lead, wanted=wanted)


def test_what_does_not_fit_is_left_out_before_it_all_and_behind_it_the_last() -> None:
    long = "".join(
        f"- the {word} gateway of region {word}north closes socket {word}pool first\n" for word in "abcdefghijklmnopq"
    )
    found = units.pieces(LEAD + long, "assistant")
    unit = next(one for one in units.units(found) if (one.first, one.last) == (6, 7))
    whole, told = listed.completed(found, unit, "assistant", lead="", told=unit.text)
    assert told.startswith(unit.text.rstrip(".")) and whole.first == 6, "not all of those before it fit: none is told"
    assert 7 < whole.last < len(found) - 1, "of those behind it the next"


@given(
    lead=st.sampled_from(["", LEAD, "Some prose that stands here alone.\n"]),
    items=st.lists(
        st.sampled_from(
            ["the pool is `empty` at noon", "x", "it works. And more is said", "so it leads:", "we never ask"]
        ),
        max_size=12,
    ),
    indents=st.lists(st.sampled_from(["", "  ", "    "]), min_size=12, max_size=12),
    end=st.sampled_from(["", "So nobody is asked any more.\n", "This causes:\n- more of the same for all\n"]),
)
def test_whatever_the_list_the_statement_keeps_its_words_and_the_limits(
    lead: str, items: list[str], indents: list[str], end: str
) -> None:
    text = lead + "".join(f"{indent}- {item}\n" for indent, item in zip(indents, items, strict=False)) + end
    found = units.pieces(text, "assistant")
    for unit in units.units(found):
        whole, told = listed.completed(found, unit, "assistant", lead="", told=unit.text)
        assert unit.text.rstrip(".; ") in told
        assert len(content_words(told)) <= units.MAX_CONTENT_WORDS
        assert whole.first <= unit.first <= unit.last <= whole.last < len(found)
        assert whole.content >= unit.content


def test_a_unit_outside_of_lists_is_told_as_it_is() -> None:
    found = units.pieces(
        "The pool is made at import time. That is why tests hang.\n\n- an item of a list\n", "assistant"
    )
    unit = Unit(0, 1, found[0].text, found[0].content, found[0].words)
    assert listed.rest_of(found, unit, "assistant") == ([], [])


def test_rules_that_stand_in_one_list_stay_statements_of_their_own() -> None:
    items = "- The parser of `mail.py` is slow where a body holds many tables\n- we use Postgres for the job queue\n"
    found = units.pieces(items, "user")
    unit = next(one for one in units.units(found) if (one.first, one.last) == (0, 0))
    assert listed.completed(found, unit, "user", lead="", told=unit.text, apart=[False, True]) == (unit, unit.text)
    _, both = listed.completed(found, unit, "user", lead="", told=unit.text)
    assert both == f"{unit.text}; we use Postgres for the job queue"
