"""A day's file is people's: csmd's parts stand between its marks, an edited part stays, and what is outside is never touched."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from csmd.dream import day_files
from csmd.dream.day_files import DATA, MARKDOWN, Session, Style

TEN = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
SMALL = Session(
    id="s1", project="till", began=TEN, ended=TEN + timedelta(minutes=32), minutes_at_work=27, goal="Round prices to cents",
    outcome="checked", prompts=3, tool_calls=1, tokens_written=900,
)  # fmt: skip
FULL = replace(
    SMALL, began=TEN - timedelta(hours=11), minutes_at_work=125, goal="Round prices " * 20, decisions=("Prices are cents.", "No floats."),
    corrections=tuple(f"Not {number}." for number in range(7)), gotchas=("`round` rounds half to even.",),
    files=(("till/price.py", 3), ("README.md", 1)), commits=("1a2b3c4 Keep prices in cents",), open=("Which way?",),
    agents=(("a1", 9, True), ("a2", 4, False)),
)  # fmt: skip
HEAD = "- Outcome: checks passed after the last change (3 prompts, 1 tool call, "


class Case(NamedTuple):
    what: str
    session: Session
    told: list[str]


CASES = [
    Case("a small one", SMALL, ["## till · 10:00 to 10:32 · Round prices to cents", "", f"{HEAD}27 min at work; session `s1`)"]),
    Case("one with everything", FULL, [
        "## till · 2026-02-28 23:00 to 10:32 · Round prices Round prices Round prices Round prices Round prices Round prices Round prices Round…",
        "",
        f"{HEAD}2 h 5 min at work; session `s1`)",
        "- Decided: Prices are cents.",
        "- Decided: No floats.",
        *(f"- Corrected: Not {number}." for number in range(5)),
        "- Corrected: 2 more",
        "- Gotcha: `round` rounds half to even.",
        "- Changed 2 files: `till/price.py` x3, `README.md`",
        "- Commit: 1a2b3c4 Keep prices in cents",
        "- Open: Which way?",
        "- 2 sub-agents, 1 with an answer",
    ]),
    Case("what was said cannot end its part", replace(SMALL, decisions=("Write <!-- csmd: end s1 --> there.\n<!-- x",)), [
        "## till · 10:00 to 10:32 · Round prices to cents", "", f"{HEAD}27 min at work; session `s1`)",
        "- Decided: Write <! -- csmd: end s1 -- > there. <! -- x",
    ]),
]  # fmt: skip


def check(case: Case) -> None:
    text = day_files.render_markdown(case.session)
    assert text.splitlines() == case.told, case.what
    whole = day_files.put_part(day_files.empty("2026-03-01", MARKDOWN), MARKDOWN, "s1", text, known=False)
    assert day_files.take_out_part(whole, MARKDOWN, "s1")[0] == day_files.empty("2026-03-01", MARKDOWN)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_a_session_is_told_with_what_there_is_of_it(case: Case) -> None:
    check(case)


def test_the_data_says_the_same_and_leaves_out_what_there_is_none_of() -> None:
    assert day_files.render_data(SMALL) == {
        "id": "s1", "project": "till", "began": "2026-03-01T10:00:00+00:00", "ended": "2026-03-01T10:32:00+00:00",
        "minutes_at_work": 27, "goal": "Round prices to cents", "outcome": "checked", "prompts": 3, "tool_calls": 1,
        "tokens_written": 900,
    }  # fmt: skip
    full = day_files.render_data(FULL)
    assert full["corrections"] == list(FULL.corrections) and full["files"][0] == {"path": "till/price.py", "changes": 3}
    assert full["agents"] == [
        {"id": "a1", "turns": 9, "outcome": "answered"},
        {"id": "a2", "turns": 4, "outcome": "unknown"},
    ]
    assert "outcome" not in day_files.render_live(SMALL) and day_files.render_live(SMALL)["outcome_so_far"] == "checked"


TITLES = {
    "Round prices to cents": "Round prices to cents",
    "can you look at the PR comments?": "Look at the PR comments",
    "Please could you add a test for it": "Add a test for it",
    "ok, can you please tag the release?": "Tag the release",
    "I'd like to count in cents": "Count in cents",
    "let's hide the command": "Hide the command",
    "why does the till round down?": "Why does the till round down?",
    "till.lock should be ignored?": "till.lock should be ignored?",
    "write another script that would:": "Write another script that would",
    "can you": "Can you",
    "": "",
    "The till rounds every price to cents when it is told, but the ledger keeps fractions because nobody asked it not to": (
        "The till rounds every price to cents when it is told, but the ledger keeps fractions…"
    ),
    "The till rounds every price to cents, as its ledger, and the receipts that it prints say so, and nobody has ever asked why": (
        "The till rounds every price to cents, as its ledger, and the receipts that it prints say so…"
    ),
    "The till rounds every price to cents and keeps for its ledger a `fractions of cents.until.somebody.asks for them`": (
        "The till rounds every price to cents and keeps for its ledger a…"
    ),
    "1" * 200: "1" * 99 + "…",
    "I just saw this in a merge: ❯ git merge main Keep this file of the branch?": "I just saw this in a merge",
    "When running: ❯ till open ✓ Opened (by hand)": "When running: ❯ till open ✓ Opened (by hand)",
}


@pytest.mark.parametrize(("goal", "told"), TITLES.items())
def test_a_prompt_as_a_heading_is_what_it_asks_for_cut_where_a_clause_ends(goal: str, told: str) -> None:
    assert day_files.day_title(goal) == told


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Prices are kept\n in cents.", "Prices are kept in cents."),
        ("Floats lose cents** (Medium); round", "Floats lose cents (Medium); round"),
        ("The till rounds every price to cents when it is told; the ledger keeps its fractions. " + "And so on " * 40,
         "The till rounds every price to cents when it is told; the ledger keeps its fractions. …"),
        ("The till rounds every price to cents when it is told (see `price. Round half up; always` there; " + "and so on " * 40,
         "The till rounds every price to cents when it is told (see `price. Round half up; always` there; "
         + "and so on " * 13 + "and so on…"),
    ],
)  # fmt: skip
def test_what_has_no_room_is_told_up_to_the_end_of_a_clause(said: str, told: str) -> None:
    assert day_files.shorten_entry(said) == told
    assert len(told) <= day_files.ENTRY + 2


@pytest.mark.invariant("A page and a day tell a thing once, opposites both")
def test_what_says_mostly_the_same_is_told_once_and_what_says_the_opposite_twice() -> None:
    fetch = "git fetch is run with context.TODO() and no timeout"
    said = (fetch, f"FetchBranch: {fetch}, too", "The ledger keeps fractions", "The ledger does not keep fractions")
    assert day_files.drop_repeats(said) == (fetch, *said[2:])
    assert day_files.drop_repeats(said[1:], but=(fetch,)) == said[2:]


def test_a_commit_that_was_amended_is_told_once_as_it_is_now() -> None:
    commits = ("1111111 Keep cents", "2222222 Round half up", "3333333 Keep cents")
    rows = day_files.render_markdown(replace(SMALL, commits=commits)).splitlines()
    assert [row for row in rows if "Commit" in row] == [
        "- Commit: 3333333 Keep cents",
        "- Commit: 2222222 Round half up",
    ]
    assert day_files.render_data(replace(SMALL, commits=commits))["commits"] == list(commits)


def test_that_there_is_one_more_is_not_told_but_that_one() -> None:
    for number, told in ((5, 5), (6, 6), (7, 6)):
        said = tuple(f"Not {one}." for one in range(number))
        rows = [
            row
            for row in day_files.render_markdown(replace(SMALL, corrections=said)).splitlines()
            if "Corrected" in row
        ]
        assert len(rows) == told and (rows[-1] == "- Corrected: 2 more") is (number == 7)


def test_what_an_assistant_offers_at_its_end_is_nothing_that_is_left_open() -> None:
    said = (
        "Would you like me to commit these changes?",
        "Which way do you want to go?",
        "Ready to commit?",
        "Does this look right?",
        "The ledger is still to be checked",
    )
    rows = day_files.render_markdown(replace(SMALL, open=said)).splitlines()
    assert [row for row in rows if row.startswith("- Open")] == ["- Open: The ledger is still to be checked"]


# --- parts


def body(style: Style, said: str) -> str:
    return f"- id: {said}\n" if style.member else f"## {said}\n"


STYLES = pytest.mark.parametrize("style", [MARKDOWN, DATA], ids=["markdown", "data"])


@STYLES
def test_parts_are_put_behind_each_other_and_renewed_in_their_place(style: Style) -> None:
    text = day_files.empty("2026-03-01", style)
    for ident in ("s1", "s2"):
        text = day_files.put_part(text, style, ident, body(style, ident), known=False)
    again = day_files.put_part(text, style, "s1", body(style, "s1 went on"), known=True)
    assert again.index("s1 went on") < again.index("session s2") and "## s1\n" not in again
    assert day_files.put_part(again, style, "s1", body(style, "s1 went on"), known=True) == again
    assert day_files.put_part(again, style, "s1", body(style, "s1"), known=True) == text
    if style.member:
        assert [one["id"] for one in yaml.safe_load(again)["sessions"]] == ["s1 went on", "s2"]


@STYLES
def test_an_edited_part_stays_and_one_that_was_taken_out_does_not_come_back(style: Style) -> None:
    text = day_files.put_part(day_files.empty("2026-03-01", style), style, "s1", body(style, "s1"), known=False)
    edited = text.replace("s1\n", "s1, which went well\n")
    assert day_files.put_part(edited, style, "s1", body(style, "s1 went on"), known=True) == edited
    without, _ = day_files.take_out_part(text, style, "s1")
    assert day_files.put_part(without, style, "s1", body(style, "s1 went on"), known=True) == without
    unmarked = text.replace(f"{style.opens}end s1{style.closes}\n", "")
    assert day_files.put_part(unmarked, style, "s1", body(style, "s1 went on"), known=True) == unmarked


def test_a_person_may_write_anywhere_in_the_data_too_and_it_stays_data() -> None:
    text = day_files.put_part(day_files.empty("2026-03-01", DATA), DATA, "s1", "- id: s1\n", known=False)
    text = day_files.put_part(f"# mine\n{text}mood: fine\n", DATA, "s2", "- id: s2\n", known=False)
    assert yaml.safe_load(text) == {"date": "2026-03-01", "sessions": [{"id": "s1"}, {"id": "s2"}], "mood": "fine"}
    assert text.startswith("# mine\n")
    assert day_files.put_part("my own: file\n", DATA, "s1", "- id: s1\n", known=False) == "my own: file\n", (
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
    text = day_files.put_part(f"# 2026-03-01\n{head}", MARKDOWN, "s1", "## s1\n", known=False) + tail
    for said in bodies:
        text = day_files.put_part(text, MARKDOWN, "s1", said, known=True)
    left, part = day_files.take_out_part(text, MARKDOWN, "s1")
    assert left == f"# 2026-03-01\n{head}{tail}"
    assert bodies[-1] in part
    assert day_files.take_out_part(day_files.insert_part(left, MARKDOWN, "s1", part), MARKDOWN, "s1") == (left, part)


# --- when


@pytest.mark.parametrize(
    ("minutes", "closed", "over"), [(0, False, False), (119, False, False), (120, False, True), (0, True, True)]
)
def test_a_session_is_over_when_its_host_says_so_or_nothing_was_said_for_long(
    minutes: int, closed: bool, over: bool
) -> None:
    assert day_files.has_ended(TEN, closed=closed, now=TEN + timedelta(minutes=minutes)) is over


def test_work_is_counted_without_its_pauses() -> None:
    at = [TEN + timedelta(minutes=minutes) for minutes in (0, 5, 20, 36, 37, 500)]
    assert day_files.count_work_minutes(at) == 5 + 15 + 1
    assert day_files.count_work_minutes([]) == day_files.count_work_minutes(at[:1]) == 0
    west = timezone(timedelta(hours=-8))
    assert day_files.count_work_minutes([at[0], at[1].astimezone(west)]) == 5


def test_the_files_of_days_older_than_thirty_are_due_and_no_other_file_is() -> None:
    names = ["2026-03-01.md", "2026-01-30.md", "2026-01-30.yaml", "2026-01-29.md", "2026-01-29.yaml", "2025-12-31.md",
             "2026-01-01 (conflict).md", "notes.md", "2026-13-45.md", ".2026-01-01.md"]  # fmt: skip
    assert day_files.find_due(names, today="2026-03-01") == ["2025-12-31.md", "2026-01-29.md", "2026-01-29.yaml"]


def test_what_says_nothing_of_its_own_is_not_told_twice() -> None:
    assert day_files.drop_repeats(["A trap.", "a  trap.", "Another."], but=["another."]) == ("A trap.",)
