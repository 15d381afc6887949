"""What a session says of code is told as edited once an edit behind it took out what it names, or changed the place."""

from __future__ import annotations

import pytest

from csmd.extraction import statement_context
from csmd.extraction.statement_context import Claim, Edit

SAID = "`parse_date` drops the zone, since `naive()` is called before the offset is read"


def edit(old: str, new: str = "return aware(text)", *, path: str = "/p/src/dates.py", ordinal: int = 9) -> Edit:
    return Edit(uuid=f"e{ordinal}", at="", ordinal=ordinal, path=path, old=old, new=new)


def check(
    said: str,
    *edits: Edit,
    category: str = "gotcha",
    by_assistant: bool = False,
    turn: str = "",
    answered: int = 0,
    wanted: str,
) -> None:
    """The uuid of the edit that changed what is spoken of, "" for none; said at ordinal 5, in answer up to `answered`."""
    found = (
        statement_context.edited(
            [Claim(1, said, 5, statement_context.remark(said, category, turn), answered)], edits
        ).get(1)
        if statement_context.is_claim(said, category, by_assistant=by_assistant, turn=turn)
        else None
    )
    assert (found.uuid if found else "") == wanted


@pytest.mark.invariant(
    "What is said of code that was edited later in its session is told with that, after what stands, and is no less believed"
)
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


@pytest.mark.invariant(
    "What is said of code that was edited later in its session is told with that, after what stands, and is no less believed"
)
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


REMARK = (
    "Date handling: `parse_date` in dates.py reads the text without its zone. Two readers in different regions may see "
    "different days. Consider passing the offset through `with_zone()` instead, as the other reports do."
)
PART = "Two readers in different regions may see different days."


@pytest.mark.invariant(
    "What is said of code that was edited later in its session is told with that, after what stands, and is no less believed"
)
@pytest.mark.parametrize(
    ("edits", "answered", "wanted"),
    [
        pytest.param([edit("def parse_date(text):", "def parse_date(text, zone):")], 0, "e9",
                     id="the remark's name in the remark's file"),
        pytest.param([edit("x = parse_date(text)", "x = with_zone(parse_date(text))", path="/p/src/report.py")], 0, "e9",
                     id="two of its names, one of them new"),
        pytest.param([edit("x = parse_date(text)", "x = parse_date(line)", path="/p/src/report.py")], 0, "",
                     id="one of its names, any time later"),
        pytest.param([edit("x = read(text)", "x = with_zone(text)", path="/p/src/report.py")], 20, "e9",
                     id="what it advises, in answer to it"),
        pytest.param([edit("", "def with_zone(text): ...", path="/p/src/zone.py")], 20, "e9",
                     id="a new file, in answer to it"),
        pytest.param([edit("x = read(text)", "x = with_zone(text)", path="/p/src/report.py")], 9, "",
                     id="what it advises, asked for by another prompt"),
        pytest.param([edit("x = other(text)")], 20, "", id="nothing of it, in its file, in answer to it"),
        pytest.param([edit("with_zone(parse_date(text))", path="/p/tests/test_dates.py")], 20, "", id="a test"),
        pytest.param([edit("with_zone(parse_date(text))", path="/p/docs/time.md")], 20, "", id="a document"),
        pytest.param([edit("with_zone(parse_date(text))", ordinal=4)], 20, "", id="before it was handed on"),
    ],
)  # fmt: skip
def test_a_sentence_of_a_remark_is_about_what_the_remark_names(edits: list[Edit], answered: int, wanted: str) -> None:
    for category in ("fact", "preference"):
        check(PART, *edits, category=category, turn=REMARK, answered=answered, wanted=wanted)
    check(PART, *edits, category="fact", answered=answered, wanted="")


def test_of_several_remarks_in_a_list_each_is_about_its_own_code() -> None:
    listed = (
        "- `parse_date` reads the text without its zone, which may be off by a day for readers in other regions\n"
        "- the greeting that `render_mail` builds lacks an escape, so a name with a bracket breaks the page"
    )
    said = "the text is read without its zone, which may be off by a day for readers in other regions"
    check(said, edit("x = parse_date(text)"), turn=listed, answered=20, wanted="e9")
    check(said, edit("x = render_mail(text)"), turn=listed, answered=20, wanted="")


def test_a_remark_that_tells_of_a_change_claims_nothing_and_neither_does_what_is_only_made_of_remarks() -> None:
    said = "Two readers in different regions now see different days."
    check(said, edit("with_zone(parse_date(text))"), turn=REMARK.replace(PART, said), answered=20, wanted="")
    check(
        f"{PART} {said}", edit("with_zone(parse_date(text))"), turn=REMARK.replace(PART, f"{PART} {said}"), wanted="e9"
    )
    habit = "Review feedback that is pasted word for word is to be addressed: in 9 of 73 sessions."
    check(habit, edit("with_zone(parse_date(text))"), category="preference", turn=REMARK, answered=20, wanted="")


def test_a_line_that_is_named_with_its_file_is_in_that_file() -> None:
    typed = edit("def parse_date(text):", "def parse_date(text: str):")
    check("`parse_date` in `dates.py:12-20` drops the zone", typed, wanted="e9")
    check("`parse_date` in `times.py:12-20` drops the zone", typed, wanted="")


def test_a_finding_is_told_with_its_edit_whoever_made_it_and_a_quoted_remark_is_one() -> None:
    found = (
        "When a date has no zone, parse_date reads it as local time, but to_utc() does not. Reports of two "
        "regions differ by a day. This causes totals to be counted twice in the monthly overview."
    )
    said = "Reports of two regions differ by a day."
    late = edit("x = parse_date(text)", "x = to_utc(parse_date(text), zone)", path="/p/src/report.py")
    check(said, late, category="fact", turn=found, wanted="e9")
    check(said, late, category="preference", turn=found, wanted="")
    check(said, late, category="fact", turn=f"I think so: {found}", wanted="")
    check(said, late, category="preference", turn=f'I got this for dates.py: "Consider this. {found}" Can you address it?', wanted="e9")  # fmt: skip
