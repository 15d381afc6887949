"""What a session says of code is told as edited once an edit behind it took out what it names, or changed the place."""

from __future__ import annotations

import pytest

from csmd.distill import edited
from csmd.distill.edited import Claim, Edit

SAID = "`parse_date` drops the zone, since `naive()` is called before the offset is read"


def edit(old: str, new: str = "return aware(text)", *, path: str = "/p/src/dates.py", ordinal: int = 9) -> Edit:
    return Edit(uuid=f"e{ordinal}", at="", ordinal=ordinal, path=path, old=old, new=new)


def check(
    said: str, *edits: Edit, category: str = "gotcha", by_assistant: bool = False, turn: str = "", wanted: str
) -> None:
    """The uuid of the edit that changed what is spoken of, "" for none; said at ordinal 5."""
    found = (
        edited.edited([Claim(1, said, 5)], edits).get(1)
        if edited.is_claim(said, category, by_assistant=by_assistant, turn=turn)
        else None
    )
    assert (found.uuid if found else "") == wanted


@pytest.mark.parametrize(
    ("edits", "wanted"),
    [
        pytest.param([edit("x = naive(text)")], "e9", id="a name is taken out"),
        pytest.param([edit("def parse_date(text):\n    naive(text)", "def parse_date(text):\n    naive(text, zone)")], "e9",
                     id="a place with several of the names is changed"),
        pytest.param([edit("x = naive(text)"), edit("y = naive(text)", ordinal=12)], "e12", id="the last one"),
        pytest.param([edit("def parse_date(text):", "def parse_date(text: str):")], "", id="one name stays where it was"),
        pytest.param([edit("x = naive(text)", ordinal=4)], "", id="before it was said"),
        pytest.param([edit("x = naive(text)", path="/p/tests/test_dates.py")], "", id="in a test"),
        pytest.param([edit("x = naive(text)", path="/p/DatesTest.java")], "", id="in another language's test"),
        pytest.param([edit("x = naive(text)", path="/p/latest.go")], "e9", id="in a file that only sounds like one"),
        pytest.param([edit("x = other(text)")], "", id="something else"),
        pytest.param([], "", id="nothing was edited"),
    ],
)  # fmt: skip
def test_an_edit_of_what_is_named_is_told_and_no_other(edits: list[Edit], wanted: str) -> None:
    check(SAID, *edits, wanted=wanted)


@pytest.mark.parametrize(
    ("said", "category"),
    [
        (SAID, "decision"),
        ("Fixed `parse_date`: `naive()` is called behind it", "gotcha"),
        ("`parse_date` now reads the offset before `naive()`", "fact"),
        ("we should call `naive()` behind `parse_date`", "fact"),
        ("never call `naive()` in `parse_date`", "gotcha"),
        ("dates come without a zone from the gateway", "fact"),
    ],
)
def test_what_tells_of_a_change_wants_one_or_names_nothing_claims_nothing_of_code(said: str, category: str) -> None:
    check(said, edit("x = naive(parse_date)"), category=category, wanted="")


def test_an_assistants_decision_says_how_it_is_and_a_users_how_it_is_to_be() -> None:
    said = "`parse_date` calls `naive()` before the offset is read, which is not what we want"
    check(said, edit("x = naive(text)"), category="decision", by_assistant=True, wanted="e9")
    check(said, edit("x = naive(text)"), category="decision", wanted="")


def test_what_is_said_of_a_whole_file_is_told_when_anything_in_it_was_edited() -> None:
    said = "the document docs/dates.md describes an early design that was never built"
    check(said, edit("# Dates", "# Time", path="/p/docs/dates.md"), category="fact", wanted="e9")
    check(f"{said}: `Zone` is missing", edit("# Dates", path="/p/docs/dates.md"), category="fact", wanted="")


def test_a_reviewers_remark_that_is_handed_on_claims_something_whatever_it_advises() -> None:
    remark = (
        "`parse_date` drops the zone. Consider calling `naive()` behind the offset, since a date without a zone may be "
        "off by a day in the reports of other regions."
    )
    check("Consider calling `naive()` behind the offset", edit("x = naive(text)"), category="decision", wanted="")
    check(
        "Consider calling `naive()` behind the offset",
        edit("x = naive(text)"),
        category="decision",
        turn=remark,
        wanted="e9",
    )
