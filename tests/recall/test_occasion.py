"""A rule is told when an order does or makes what it is about, and not when the two only share a word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.recall import occasion
from csmd.recall.stage_heed import LEAST_ABOUT

WRITTEN = json.loads((Path(__file__).parent.parent / "data" / "orders.json").read_text())


def told(rule: str, order: str) -> bool:
    return occasion.bears(rule, occasion.occasions(order)) >= LEAST_ABOUT


@pytest.mark.parametrize(
    ("rule", "order", "is_told"),
    [
        ("commit messages are in imperative mood", "commit", True),
        ("commit messages are in imperative mood", "ok, fix it and commit", True),
        ("commit messages are in imperative mood", "improve the error message", False),
        ("run make lint before committing", "commit this please", True),
        ("releases: changelog first, then the tag", "can you make a release?", True),
        ("tests live beside the source file", "add a test for the parser", True),
        ("tests live beside the source file", "run the tests", False),
        ("the parser is generated", "add a test for the parser", False),
        ("feature flags are removed after two weeks", "put this behind a feature flag", True),
        ("dependencies are pinned exactly", "add lodash as a dependency", True),
        ("translations go into en.json first", "translate the labels", True),
        ("The manual-commit strategy has a check mark", "commit", False),
        ("`commit` is the name of the column", "commit", False),
        ("commit messages are in imperative mood", "", False),
    ],
)
def test_a_rule_bears_on_what_an_order_does_or_makes(rule: str, order: str, is_told: bool) -> None:
    assert told(rule, order) is is_told


@pytest.mark.parametrize(("half", "least"), [("tuned_on", 0.8), ("held_back", 0.7)])
def test_of_written_orders_most_are_told_their_rule_and_those_without_one_none(half: str, least: float) -> None:
    rules, none = WRITTEN[half]["rules"], WRITTEN[half]["none"]
    right = [told(one["rule"], order) for one in rules for order in one["orders"]]
    assert sum(right) >= least * len(right)
    assert [order for order in none if any(told(one["rule"], order) for one in rules)] == []


@given(st.text(max_size=200), st.text(max_size=200))
def test_a_share_of_an_orders_occasions_is_one(rule: str, order: str) -> None:
    assert 0.0 <= occasion.bears(rule, occasion.occasions(order)) <= 1.0


@pytest.mark.parametrize("gap", [" ", ".", "\n", "! ", ", ", " and"])
def test_a_long_prompt_is_read_as_fast_as_a_short_one(gap: str) -> None:
    assert occasion.occasions("add a test" + gap * 1_000_000 + "x")[:1] == ["test"]


@pytest.mark.parametrize("rule", ["b" * 1_000_000, "a_" * 500_000, "`" * 1_000_001, "when " * 200_000])
def test_a_long_rule_is_read_as_fast_as_a_short_one(rule: str) -> None:
    assert occasion.bears(rule, ["commit"]) == 0.0


@pytest.mark.parametrize("name", ["manual-commit", "pre_commit_", "__commit_all__", "git/commit", "`commit`"])
def test_what_stands_in_a_name_is_no_subject_of_a_rule(name: str) -> None:
    assert occasion.about(f"{name} stays") == occasion.about("stays")
