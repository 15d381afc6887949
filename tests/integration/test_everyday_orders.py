"""Everyday orders through the daemon: each is told the command, rule or ban that applies, and no talk at work."""

from __future__ import annotations

import pytest
from machine import Machine

RULES = {
    "run the tests": "tests run with `make check`, never plain pytest, because the fixtures need the broker",
    "deploy to staging": "we deploy to staging with ./ship staging, only after the smoke suite is green",
    "commit this": "commit messages start with the ticket id, always",
    "install lodash": "install packages with pnpm add -E, exact versions only",
    "release it": "a release is always tagged by `scripts/release.sh`, it bumps the chart as well",
    "start the dev server": "the dev server is started with `make up`, port 4010",
    "add the package zod": "we vendor npm packages with yarn, not npm",
    "commit and push": "don't push to main directly, open a merge request",
}
TALK = "Let me run the smoke suite and the tests first, then I will install and commit it."


@pytest.fixture(scope="module")
def told(shared_machine: Machine) -> Machine:
    """A machine whose user said each rule in a session of its own, where the assistant talked of its work."""
    for number, rule in enumerate(RULES.values()):
        session = f"s{number}"
        shared_machine.transcript(
            shared_machine.line("user", rule, session=session),
            shared_machine.line("assistant", TALK, session=session),
            session=session,
        )
    shared_machine.start()
    shared_machine.sync()
    return shared_machine


@pytest.mark.parametrize("order", RULES)
def test_an_order_of_every_day_is_told_the_rule_that_applies(told: Machine, order: str) -> None:
    made = told.call("csm_memory_recall", project=str(told.project), prompt=order)
    assert RULES[order] in made["text"] and "Let me" not in made["text"]
