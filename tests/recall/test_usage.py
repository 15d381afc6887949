"""What counts as use of a told memory: its own words first said, or called, by the assistant; and nothing else."""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest

from csmd.recall import usage


class Case(NamedTuple):
    """A told text, what was said around it as (who, what), and by which kind of mark use is to be told."""

    told: str
    turns: list[tuple[usage.Voice, str]]
    by: usage.By


def call(**given: object) -> str:
    return json.dumps(given)


DEPLOY = "Deploys go through `bin/deploy.sh --blue`, never by hand."
RETRY = "Payments are retried three times with exponential backoff because the bank throttles us."
PNPM = "We use pnpm instead of npm."
CONFIG = "The timeout lives in src/shop/settings.py."

CASES: dict[str, Case] = {
    "the command is run": Case(
        DEPLOY, [("other", "ship it"), ("called", call(command="cd /srv && bin/deploy.sh --blue"))], "command"
    ),
    "the prompt had named the command": Case(
        DEPLOY, [("other", "run `bin/deploy.sh --blue` please"), ("called", call(command="bin/deploy.sh --blue"))], ""
    ),
    "the file is edited under its whole path": Case(
        CONFIG, [("other", "make it 30 s"), ("called", call(file_path="/home/me/w/src/shop/settings.py", new_string="x"))],
        "path",
    ),
    "the prompt had named the file": Case(
        CONFIG, [("other", "edit settings.py"), ("called", call(file_path="/w/src/shop/settings.py"))], ""
    ),
    "a listing had shown the file before": Case(
        CONFIG, [("other", "src/shop/app.py\nsrc/shop/settings.py"), ("called", call(file_path="src/shop/settings.py"))], ""
    ),
    "its name is no part of another": Case(
        CONFIG, [("called", call(file_path="src/shop/settings.py.bak")), ("called", call(file_path="lib/settings.pyx"))], ""
    ),
    "an identifier is said": Case(
        "Money is held in amount_minor.", [("said", "I will add the field `amount_minor` there.")], "name"
    ),
    "most of its own words stand in one sentence": Case(
        RETRY, [("other", "the charge failed"), ("said", "The bank throttles, so I keep the exponential backoff.")], "words"
    ),
    "its words are spread over a long answer": Case(
        RETRY, [("said", "The bank is closed.\nI went three times.\nGrowth is exponential.\nPayments are fine.")], ""
    ),
    "its words are the prompt's": Case(
        RETRY,
        [("other", "are payments retried with exponential backoff, three times, because the bank throttles?"),
         ("said", "Yes: payments are retried three times with exponential backoff because the bank throttles us.")],
        "",
    ),
    "one word of many is no use": Case(RETRY, [("said", "I opened the bank's page.")], ""),
    "the last word that is left of a long text is no use": Case(
        RETRY,
        [("other", "payments are retried with exponential backoff three times, the bank"), ("said", "It throttles.")], "",
    ),
    "one word is enough of a text of three": Case(
        "Tests run with tox.", [("other", "run the tests"), ("said", "I use tox for that.")], "words"
    ),
    "common words are no use": Case("Tests run before every commit.", [("said", "The tests run before the commit.")], ""),
    "one word is enough where it is called": Case(
        PNPM, [("other", "install the dependencies"), ("called", call(command="pnpm install"))], "words"
    ),
    "the names of a call's arguments are the tool's": Case(
        "The command and the description stand in the log.", [("called", call(command="ls", description="List"))], ""
    ),
    "a call that was cut is looked at all the same": Case(
        CONFIG, [("called", '{"file_path": "src/shop/settings.py", "content": "abc [csmd: 9 bytes left out]')], "path"
    ),
    "nothing is said": Case(PNPM, [], ""),
    "nothing can be known by nothing": Case("", [("said", "anything at all")], ""),
}  # fmt: skip
COMMON = {"tests", "run", "commit", "every"}


@pytest.mark.invariant("Use is told only by what the assistant brings first, and is no confirmation")
@pytest.mark.parametrize("name", CASES)
def test_use_is_told_by_what_the_assistant_brings_first(name: str) -> None:
    case = CASES[name]
    told = usage.follow_text(case.told)
    for voice, said in case.turns:
        usage.compare_turn([told], usage.make_piece(said, voice), COMMON.__contains__)
    assert told.by == case.by
    assert bool(case.by) == bool(told.brought)
