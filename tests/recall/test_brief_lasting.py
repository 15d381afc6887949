"""What was about to change, was doubted or done at once does not last on a page; all else does, and what a person wrote."""

from __future__ import annotations

from dataclasses import replace

import pytest
from recalled import memory

from csmd.dream import page_content
from csmd.model import Memory
from csmd.recall import brief

CASES = {
    "a state that somebody is about to leave": ("Right now the build fakes both binaries", "user", "about to change"),
    "one that starts with when": ("now when I rerun enable it writes the local settings", "user", "about to change"),
    "one that is asked to change": (
        "enable writes the local settings. I'd like to change this so it asks",
        "user",
        "about to change",
    ),
    "a doubt": ("we can drop the wrapper. But I'm not convinced it helps", "user", "doubted"),
    "a doubt in other words": ("I might be wrong, but read-only sessions make no commit", "user", "doubted"),
    "an assistant's report": ("I've set up a script that lets you switch between both", "assistant", "a report"),
    "an assistant's report with a word before it": ("Perfect! I have added the settings", "assistant", "a report"),
    "an assistant's list of edits": ("Changes made to `harness.sh`: ids are proper ones now", "assistant", "a report"),
    "an assistant's report of one edit": (
        "The test looked for go run. Updated it to look for the wrapper",
        "assistant",
        "a report",
    ),
    "what a plan sets out to change": ("The importer currently reads each file twice", "assistant", "about to change"),
    "a rule beside what is so now": (
        "Every table has an owner. The orders table is currently without one",
        "user",
        "about to change",
    ),
    "a report of a commit": ("Both files are now committed as 1f2e3d4, the hook passed", "assistant", "a report"),
    "a commit of another kind": ("A commit needs two reviews in this repository", "assistant", ""),
    "a state that always shows itself": ("the list currently always opens at the top", "user", "about to change"),
    "what others do": (
        "The most common third template across projects that have one is a form for documents",
        "assistant",
        "of other projects",
    ),
    "what all of ours do": (
        "All projects of the workspace share one linter, because the pipeline runs it",
        "assistant",
        "",
    ),
    "a rule": ("Tests live beside the code they try", "user", ""),
    "what is so now": ("the exporter currently writes one file a day", "user", "about to change"),
    "what there is now": ("The current table sorts rows by name", "user", "about to change"),
    "a current of another kind": ("Alternating current needs a transformer here", "user", ""),
    "an assistant's finding": ("Right now the cache is never emptied, because nobody calls flush", "assistant", ""),
    "a decision of several": ("let's completely remove the legacy importer", "user", ""),
}


def said(text: str, by: str) -> Memory:
    return replace(memory(text, authority=by), session_id="s1", origin="stated")


def check(name: str) -> None:
    text, by, why = CASES[name]
    assert brief.why_passing(said(text, by)) == why


@pytest.mark.invariant(
    "A session's start and a page leave out what was about to change, was doubted or done at once, what one session told twice, and neither a rule, nor a correction that nobody doubts, nor what a person pinned or wrote there"
)
@pytest.mark.parametrize("name", CASES)
def test_what_is_soon_over_says_why(name: str) -> None:
    check(name)


def test_an_order_for_the_moment_is_no_plan_that_is_open() -> None:
    order = said("It says work in progress; Let's replace that with Preview", "user")
    assert brief.why_passing(order) == ""
    assert brief.why_passing(replace(order, gate="promissory")) == "done at once"


@pytest.mark.invariant(
    "A session's start and a page leave out what was about to change, was doubted or done at once, what one session told twice, and neither a rule, nor a correction that nobody doubts, nor what a person pinned or wrote there"
)
def test_a_correction_or_a_rule_lasts_whatever_stands_beside_it() -> None:
    for body in (
        "no, can you change this: we use uv here",
        "Currently we support Python 3.11 only, so newer syntax must not be used",
        "At the moment of a crash the journal is flushed",
        "Ship 2.0 in May: please keep the old endpoint alive until then",
    ):
        for gate in ("correction", "promissory"):
            one = replace(said(body, "user"), gate=gate)
            assert brief.why_passing(one) == "" or (gate, body[:6]) == ("promissory", "no, ca")


def test_what_a_person_pinned_or_wrote_there_stays_and_all_else_of_it_is_counted_and_not_listed() -> None:
    one = replace(said(CASES["a doubt"][0], "user"), tier="durable")
    listed = {}
    for name, memory_ in {
        "said": one,
        "pinned": replace(one, pinned=True),
        "written": replace(one, session_id=""),
    }.items():
        (section,) = page_content.build_sections([memory_], page_content.find_heading, page_content.ORDER)
        listed[name] = (len(section.items), section.more)
    assert listed == {"said": (0, 1), "pinned": (1, 0), "written": (1, 0)}


@pytest.mark.parametrize(
    ("said", "decided"),
    [
        ("Sessions are kept in Redis for a day", True),
        ("Committed as 0a1b2c3, all hooks passed", False),
        ("The current menu has no icons", False),
        ("The export never runs at noon. The page currently shows no total", False),
        ("I'm not sure about this, but sessions go to Redis", True),
    ],
)
def test_neither_a_report_nor_what_was_about_to_change_counts_as_decided(said: str, decided: bool) -> None:
    assert brief.is_decision(said) is decided
