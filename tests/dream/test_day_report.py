"""What is reported of a day: the most important first, each thing once, in few lines."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from typing import NamedTuple

import pytest
from memory_factory import memory

from csmd.dream import day_report, day_sessions
from csmd.dream.day_report import ProjectDay, Session
from csmd.text.display import ARROW

TEN = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
DAY = date(2026, 3, 1)
ONE = Session(
    id="s1", project="till", began=TEN, ended=TEN + timedelta(minutes=30), minutes_at_work=27, goal="", outcome="committed",
    prompts=3, tool_calls=1, tokens_written=900,
)  # fmt: skip
LATER = replace(ONE, id="s2", ended=TEN + timedelta(hours=3))
CHANGED = replace(ONE, files=(("till/price.py", 3), ("README.md", 1)))


class Case(NamedTuple):
    what: str
    sessions: list[Session]
    told: list[str]


CASES = [
    Case("nothing came of it", [replace(ONE, goal="Why does the till round down?", open=("Shall I go on?",))], []),
    Case(
        "what others take over comes first",
        [
            replace(
                ONE, open=("The ledger is still to be checked.",), decisions=("Prices are always cents.",),
                commits=("1111111 Keep cents",), pulls=("#12 Prices in cents",),
            )
        ],
        [
            "- Opened: #12 Prices in cents", "- Committed: Keep cents", "- Decided: Prices are always cents.",
            "- Open: The ledger is still to be checked.",
        ],
    ),
    Case(
        "a commit that was amended is told once, and the chores behind the features",
        [
            replace(ONE, commits=("1111111 feat: Keep prices in cents", "2222222 docs: Explain cents")),
            replace(LATER, commits=("3333333 feat: Keep prices in cents", "4444444 chore: Name the release")),
        ],
        [
            "- Committed: feat: Keep prices in cents", "- Committed: chore: Name the release",
            "- Committed: docs: Explain cents",
        ],
    ),
    Case(
        "what was changed and not committed is told by its files, and not by what was asked for",
        [
            replace(CHANGED, goal="please round the prices to cents"),
            replace(LATER, files=tuple((f"till/{name}.py", 1) for name in "abcde")),
        ],
        ["- Uncommitted: `a.py`, `b.py`, `c.py`, `d.py`, `e.py` and 2 more"],
    ),
    Case(
        "what a later session committed was changed for it",
        [CHANGED, replace(LATER, files=CHANGED.files, commits=("1111111 Keep cents",))],
        ["- Committed: Keep cents"],
    ),
    Case(
        "nothing is open that was done or only asked, and a check that fails is",
        [
            replace(
                LATER, outcome="failing", failing=("make serve: port in use", "tests: 2 failed"),
                open=("Round the vouchers up", "Which way?", "asked and not answered: and now?"),
                commits=("1111111 Round the vouchers up",),
            )
        ],
        ["- Committed: Round the vouchers up", "- Open: failing tests: 2 failed"],
    ),
]  # fmt: skip


def check(case: Case) -> None:
    told = day_report.report_project("till", "", case.sessions)
    assert day_report.render_entries(told.entries) == case.told, case.what


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_of_the_sessions_of_a_project_each_thing_is_told_once(case: Case) -> None:
    check(case)


@pytest.mark.invariant("A page and a day tell a thing once, opposites both")
def test_decisions_that_say_the_same_are_told_once_and_opposites_both() -> None:
    sessions = [
        replace(ONE, decisions=("The ledger always keeps fractions.", "The receipts never show fractions of a cent.")),
        replace(LATER, decisions=("The ledger always keeps its fractions.", "The ledger never keeps fractions.")),
    ]
    told = day_report.render_entries(day_report.report_project("till", "", sessions).entries)
    assert told == [
        "- Decided: The ledger always keeps its fractions.", "- Decided: The ledger never keeps fractions.",
        "- Decided: The receipts never show fractions of a cent.",
    ]  # fmt: skip


SUBJECTS = ("Keep cents", "Print the receipts", "Name the drawers", "Count vouchers", "Lock the till", "Greet customers",
            "Weigh apples", "Dim the display")  # fmt: skip


def busy(project: str, wall: str = "") -> ProjectDay:
    commits = tuple(f"{number}111111 {subject}" for number, subject in enumerate(SUBJECTS))
    return day_report.report_project(project, wall, [replace(CHANGED, commits=commits, open=("Write to Ann soon.",))])


def test_one_more_is_told_itself_and_two_are_counted() -> None:
    told = busy("till")
    assert day_report.render_entries(told.entries)[6] == "- Committed: 2 more"
    assert len(day_report.render_entries(told.entries[1:])) == 8, "seven commits and what is open"


def test_a_day_is_a_heading_for_each_project_with_its_amounts_and_those_behind_a_wall_last() -> None:
    quiet = day_report.report_project("shop", "", [replace(ONE, commits=("1111111 Open the shop",))])
    empty = day_report.report_project("attic", "", [ONE])
    walled = day_report.report_project("vault", "Acme", [replace(CHANGED, open=("Write to Ann soon.",))])
    assert day_report.render_day(DAY, [walled, empty, quiet, busy("till")]).splitlines()[:6] == [
        "# Sunday, 2026-03-01", "", "## till · 8 commits, 2 files", "", "- Committed: Dim the display",
        "- Committed: Weigh apples",
    ]  # fmt: skip
    heads = [
        line for line in day_report.render_day(DAY, [walled, empty, quiet, busy("till")]).splitlines() if "## " in line
    ]
    assert heads == ["## till · 8 commits, 2 files", "## shop · 1 commit", "## vault (workspace Acme) · 2 files"]


@pytest.mark.parametrize("projects", [1, 2, 3, 4])
def test_a_day_stays_within_its_lines_however_much_was_done(projects: int) -> None:
    told = day_report.render_day(DAY, [busy(f"till-{number}") for number in range(projects)])
    assert len(told.splitlines()) <= day_report.MAX_DAY_LINES + 2


def test_an_entry_is_whole_sentences_and_of_an_answered_question_the_answer() -> None:
    long = "The till rounds every price to cents when it is told. " + "And so on " * 40
    assert day_report.shorten_entry("Prices are kept\n in cents.") == "Prices are kept in cents."
    assert len(day_report.shorten_entry(long)) <= day_report.MAX_ENTRY_CHARACTERS
    picked = day_report.shorten_entry(f"{long}?{ARROW}Round half up")
    assert picked.endswith(f"…{ARROW}Round half up") and len(picked) <= day_report.MAX_ENTRY_CHARACTERS


def test_work_is_counted_without_its_pauses() -> None:
    at = [TEN + timedelta(minutes=minutes) for minutes in (0, 5, 20, 36, 37, 500)]
    assert day_sessions.count_work_minutes(at) == 5 + 15 + 1
    assert day_sessions.count_work_minutes([]) == day_sessions.count_work_minutes(at[:1]) == 0
    west = timezone(timedelta(hours=-8))
    assert day_sessions.count_work_minutes([at[0], at[1].astimezone(west)]) == 5


def test_a_switch_that_the_user_states_was_decided_on_that_day() -> None:
    switch = "we switched invoices from Cairo to Skia, because Cairo has no maintainer"
    stated = [memory(f"m{at}", text, tier="daily") for at, text in enumerate([switch, "the totals are blue"])]
    assert day_report.choose_decisions(stated) == [switch]
