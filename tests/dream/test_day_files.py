"""A day's file is people's: csmd's parts stand between its marks, an edited part stays, and what is outside is never touched."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from csmd.dream import day_files
from csmd.dream.day_files import DATA, MARKDOWN, Style
from csmd.dream.day_report import Session

TEN = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
SMALL = Session(
    id="s1", project="till", began=TEN, ended=TEN + timedelta(minutes=32), minutes_at_work=27, goal="Round prices to cents",
    outcome="checked", prompts=3, tool_calls=1, tokens_written=900, commits=("1a2b3c4 Keep prices in cents",),
)  # fmt: skip
FULL = replace(
    SMALL, began=TEN - timedelta(hours=11), minutes_at_work=125, decisions=("Prices are cents.",),
    gotchas=("`round` rounds half to even.",), files=(("till/price.py", 3), ("README.md", 1)), open=("Write to Ann.",),
    agents=(("a1", 9, True), ("a2", 4, False)),
)  # fmt: skip


class Case(NamedTuple):
    what: str
    session: Session
    told: list[str]


CASES = [
    Case("a small one", SMALL, [
        "## till · 10:00 to 10:32 · Round prices to cents", "", "- Committed: Keep prices in cents",
    ]),
    Case("one with everything, from the evening before", FULL, [
        "## till · 2026-02-28 23:00 to 10:32 · Round prices to cents",
        "",
        "- Committed: Keep prices in cents",
        "- Decided: Prices are cents.",
        "- Open: Write to Ann.",
    ]),
    Case("what was said cannot end its part", replace(SMALL, decisions=("Write <!-- csmd: end s1 --> there.\n<!-- x",)), [
        "## till · 10:00 to 10:32 · Round prices to cents", "", "- Committed: Keep prices in cents",
        "- Decided: Write <! -- csmd: end s1 -- > there. <! -- x",
    ]),
]  # fmt: skip


def check(case: Case) -> None:
    text = day_files.render_markdown(case.session)
    assert text.splitlines() == case.told, case.what
    whole = day_files.put_part(day_files.render_empty("2026-03-01", MARKDOWN), MARKDOWN, "s1", text, had_part=False)
    assert day_files.extract_part(whole, MARKDOWN, "s1")[0] == day_files.render_empty("2026-03-01", MARKDOWN)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_a_session_is_told_with_what_there_is_of_it(case: Case) -> None:
    check(case)


def test_the_data_says_the_same_and_leaves_out_what_there_is_none_of() -> None:
    assert day_files.render_data(SMALL) == {
        "id": "s1", "project": "till", "began": "2026-03-01T10:00:00+00:00", "ended": "2026-03-01T10:32:00+00:00",
        "minutes_at_work": 27, "goal": "Round prices to cents", "outcome": "checked", "prompts": 3, "tool_calls": 1,
        "tokens_written": 900, "commits": ["1a2b3c4 Keep prices in cents"],
    }  # fmt: skip
    full = day_files.render_data(FULL)
    assert full["gotchas"] == list(FULL.gotchas) and full["files"][0] == {"path": "till/price.py", "changes": 3}
    assert full["agents"] == [
        {"id": "a1", "turns": 9, "outcome": "answered"},
        {"id": "a2", "turns": 4, "outcome": "unknown"},
    ]
    assert "outcome" not in day_files.render_live(SMALL) and day_files.render_live(SMALL)["outcome_so_far"] == "checked"


# --- parts


def body(style: Style, said: str) -> str:
    return f"- id: {said}\n" if style.member else f"## {said}\n"


STYLES = pytest.mark.parametrize("style", [MARKDOWN, DATA], ids=["markdown", "data"])


@STYLES
def test_parts_are_put_behind_each_other_and_renewed_in_their_place(style: Style) -> None:
    text = day_files.render_empty("2026-03-01", style)
    for ident in ("s1", "s2"):
        text = day_files.put_part(text, style, ident, body(style, ident), had_part=False)
    again = day_files.put_part(text, style, "s1", body(style, "s1 went on"), had_part=True)
    assert again.index("s1 went on") < again.index("session s2") and "## s1\n" not in again
    assert day_files.put_part(again, style, "s1", body(style, "s1 went on"), had_part=True) == again
    assert day_files.put_part(again, style, "s1", body(style, "s1"), had_part=True) == text
    if style.member:
        assert [one["id"] for one in yaml.safe_load(again)["sessions"]] == ["s1 went on", "s2"]


@STYLES
def test_an_edited_part_stays_and_one_that_was_taken_out_does_not_come_back(style: Style) -> None:
    text = day_files.put_part(
        day_files.render_empty("2026-03-01", style), style, "s1", body(style, "s1"), had_part=False
    )
    edited = text.replace("s1\n", "s1, which went well\n")
    assert day_files.put_part(edited, style, "s1", body(style, "s1 went on"), had_part=True) == edited
    without, _ = day_files.extract_part(text, style, "s1")
    assert day_files.put_part(without, style, "s1", body(style, "s1 went on"), had_part=True) == without
    unmarked = text.replace(f"{style.opens}end s1{style.closes}\n", "")
    assert day_files.put_part(unmarked, style, "s1", body(style, "s1 went on"), had_part=True) == unmarked


def test_a_person_may_write_anywhere_in_the_data_too_and_it_stays_data() -> None:
    text = day_files.put_part(day_files.render_empty("2026-03-01", DATA), DATA, "s1", "- id: s1\n", had_part=False)
    text = day_files.put_part(f"# mine\n{text}mood: fine\n", DATA, "s2", "- id: s2\n", had_part=False)
    assert yaml.safe_load(text) == {"date": "2026-03-01", "sessions": [{"id": "s1"}, {"id": "s2"}], "mood": "fine"}
    assert text.startswith("# mine\n")
    assert day_files.put_part("my own: file\n", DATA, "s1", "- id: s1\n", had_part=False) == "my own: file\n", (
        "no list, no part"
    )


LINES = st.lists(
    st.sampled_from(["", "mine", "# mine", "<!-- mine -->", "- a", "<!-- csmd: end s9 -->", "é"]), max_size=6
)


@pytest.mark.invariant(
    "A session stands in the file of the local date of its last turn; what people wrote there stays byte for byte"
)
@settings(max_examples=50, deadline=None)
@given(before=LINES, after=LINES, bodies=st.lists(st.sampled_from(["## a\n", "## b\n\n- c\n"]), min_size=1, max_size=4))
def test_what_stands_outside_of_the_marks_stays_byte_for_byte(
    before: list[str], after: list[str], bodies: list[str]
) -> None:
    head, tail = "".join(f"{line}\n" for line in before), "".join(f"{line}\n" for line in after)
    text = day_files.put_part(f"# 2026-03-01\n{head}", MARKDOWN, "s1", "## s1\n", had_part=False) + tail
    for said in bodies:
        text = day_files.put_part(text, MARKDOWN, "s1", said, had_part=True)
    left, part = day_files.extract_part(text, MARKDOWN, "s1")
    assert left == f"# 2026-03-01\n{head}{tail}"
    assert bodies[-1] in part
    assert day_files.extract_part(day_files.insert_part(left, MARKDOWN, "s1", part), MARKDOWN, "s1") == (left, part)


# --- when


@pytest.mark.parametrize(
    ("minutes", "closed", "over"), [(0, False, False), (119, False, False), (120, False, True), (0, True, True)]
)
def test_a_session_is_over_when_its_host_says_so_or_nothing_was_said_for_long(
    minutes: int, closed: bool, over: bool
) -> None:
    assert day_files.has_ended(TEN, closed=closed, now=TEN + timedelta(minutes=minutes)) is over


def test_the_files_of_days_older_than_thirty_are_due_and_no_other_file_is() -> None:
    names = ["2026-03-01.md", "2026-01-30.md", "2026-01-30.yaml", "2026-01-29.md", "2026-01-29.yaml", "2025-12-31.md",
             "2026-01-01 (conflict).md", "notes.md", "2026-13-45.md", ".2026-01-01.md"]  # fmt: skip
    assert day_files.find_due(names, today="2026-03-01") == ["2025-12-31.md", "2026-01-29.md", "2026-01-29.yaml"]
