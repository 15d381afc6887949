"""What counts as use of a told memory: its own words first said, or called, by the assistant; and nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from csmd.briefs import BriefItem
from csmd.conversation import Event, Project, Turn
from csmd.hook_events import EventName
from csmd.knowledge import Provenance, Statement
from csmd.memory import remember
from csmd.recall import usage
from csmd.store import events, memories, projects, receipts, turns
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import tokens
from csmd.vocabulary import TurnKind


class Case(NamedTuple):
    """A told text, what was said around it as (who, what), and by which kind of mark use is to be told."""

    told: str
    turns: list[tuple[usage.Voice, str]]
    by: usage.MarkKind


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
    told = usage.make_item(case.told)
    for voice, said in case.turns:
        usage.compare_turn([told], usage.parse_turn(said, voice), COMMON.__contains__)
    assert told.used_mark == case.by
    assert bool(case.by) == bool(told.matched_marks)


# --- Receipts judged over a real store: when their time is over, by what was said after them, once.


EARLY, LATE = "2026-02-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z"
PLACE = Project(key="alpha", root="/p/alpha", name="alpha", kind="path")


def at(minute: float) -> str:
    return f"2026-03-01T10:{int(minute):02d}:{minute % 1 * 60:06.3f}Z"


def say(store: Store, kind: TurnKind, said: str, minute: float, *, session: str = "s1") -> str:
    turn = Turn(uuid=f"{session}-{minute}", session_id=session, kind=kind, text=said, at=at(minute))

    def write(rows: Rows) -> None:
        place = projects.ensure(rows, PLACE, now=EARLY)
        hashed = tokens.keyed_hash(said, store.hash_key)
        turns.add_turn(rows, turn, text_hash=hashed, host="claude", project=place, path="")

    store.write(write)
    return turn.uuid


def hear(store: Store, name: EventName, minute: float, *, said: str = "", source: str = "") -> None:
    event = Event(id=f"e{minute}", host="claude", name=name, session_id="s1", at=at(minute), text=said, source=source)
    hashed = tokens.keyed_hash(said, store.hash_key) if said else ""
    store.write(lambda rows: events.record_event(rows, event, text_hash=hashed, payload_hash=event.id))


def save_memory(store: Store, said: str) -> str:
    statement = Statement(text=said, gate="epistemic", category="decision", confidence=0.9, authority="user")
    source = Provenance(uuid="u0", session_id="s0", at=EARLY)
    return store.write(
        lambda rows: remember.remember(
            rows,
            statement,
            source,
            project=projects.ensure(rows, PLACE, now=EARLY),
            origin="stated",
            key=store.hash_key,
        )[0]
    )


def tell(store: Store, minute: float, items: Sequence[str], *, event: str = "prompt") -> str:
    receipt = f"re{minute}"
    store.write(
        lambda rows: receipts.add_receipt(
            rows, receipt_id=receipt, session_id="s1", event=event, project=1, at=at(minute), tokens=50, text_hash="h",
            items=[BriefItem(id=item, score=0.5, reason="words") for item in items],
        )
    )  # fmt: skip
    return receipt


def judge(store: Store, *, answered: str = LATE, still: str = EARLY, over: str = EARLY) -> int:
    return usage.judge_due_receipts(store, answered=answered, idle=still, start_idle=over)


def verdicts(store: Store) -> dict[str, tuple[int | None, str]]:
    found = store.read(lambda rows: rows.all("select memory_id, used, used_by from injection_items"))
    return {ident: (used, by) for ident, used, by in found}


def prompted(store: Store, said: str, minute: float, items: Sequence[str]) -> None:
    hear(store, "prompt", minute, said=said)
    tell(store, minute, items)
    # The line is dated a moment after the hook's event.
    say(store, "user", said, minute + 0.01)


def test_what_a_prompt_was_told_is_judged_when_the_next_prompt_has_come(store: Store) -> None:
    pnpm, retry = save_memory(store, "We use pnpm."), save_memory(store, "Payments retry with exponential backoff.")
    prompted(store, "install the dependencies", 1, [pnpm, retry])
    say(store, "tool_call", '{"command": "pnpm install"}', 2)
    assert judge(store) == 0, "the assistant is still at it"
    prompted(store, "thanks, payments retry with exponential backoff, too?", 5, [])
    say(store, "assistant", "Yes, payments retry with exponential backoff.", 6)
    assert judge(store, answered=at(4)) == 0, "its lines may not have been read yet"
    assert judge(store) == 1 and judge(store) == 0
    assert verdicts(store) == {pnpm: (1, "words"), retry: (0, "")}
    told = store.read(lambda rows: receipts.sum_usage_since(rows, EARLY))
    assert (told.injections, told.tokens, told.items, told.judged, told.used) == (2, 100, 2, 2, 1)
    assert store.read(lambda rows: receipts.sum_usage_since(rows, LATE)).injections == 0
    assert store.read(lambda rows: receipts.sum_usage_since(rows, EARLY, projects=[7])).items == 0


@pytest.mark.invariant("Use is told only by what the assistant brings first, and is no confirmation")
def test_what_is_used_begins_its_age_again_and_is_no_surer(store: Store) -> None:
    pnpm, other = save_memory(store, "We use pnpm."), save_memory(store, "The bank throttles payments.")
    before = store.read(lambda rows: memories.by_id(rows, pnpm))
    prompted(store, "install", 1, [pnpm, other])
    say(store, "tool_call", '{"command": "pnpm install"}', 2)
    hear(store, "session_end", 3)
    assert judge(store) == 1
    after, unused = store.read(lambda rows: (memories.by_id(rows, pnpm), memories.by_id(rows, other)))
    assert before and after and unused
    assert (after.used_at, unused.used_at) == (at(2), "")
    assert (after.confidence, after.times) == (before.confidence, before.times)


def test_a_start_is_judged_by_the_whole_session_until_it_ends_or_begins_afresh(store: Store) -> None:
    pnpm, retry = save_memory(store, "We use pnpm."), save_memory(store, "Payments retry with exponential backoff.")
    hear(store, "session_start", 1, source="startup")
    tell(store, 1, [pnpm, retry], event="session_start")
    prompted(store, "hello", 2, [])
    say(store, "assistant", "Hello.", 3)
    prompted(store, "install the dependencies", 4, [])
    say(store, "tool_call", '{"command": "pnpm install"}', 5)
    assert judge(store) == 1, "the first prompt alone"
    assert verdicts(store) == {pnpm: (None, ""), retry: (None, "")}
    hear(store, "session_start", 7, source="compact")
    say(store, "summary", "so far", 7.5)
    say(store, "assistant", "Payments retry with exponential backoff.", 8)
    assert judge(store) == 2
    assert verdicts(store) == {pnpm: (1, "words"), retry: (0, "")}


def test_what_the_context_held_is_no_use_and_after_a_compaction_it_is(store: Store) -> None:
    pnpm = save_memory(store, "We use pnpm.")
    say(store, "assistant", "I run pnpm install.", 1)
    prompted(store, "go on", 2, [pnpm])
    say(store, "tool_call", '{"command": "pnpm install"}', 3)
    hear(store, "session_end", 4)
    assert judge(store) == 1 and verdicts(store) == {pnpm: (0, "")}
    say(store, "summary", "dependencies were installed", 5)
    hear(store, "session_start", 6, source="compact")
    tell(store, 6, [pnpm], event="session_start")
    say(store, "tool_call", '{"command": "pnpm test"}', 7)
    hear(store, "session_end", 8)
    assert judge(store) == 1
    assert store.read(lambda rows: receipts.sum_usage_since(rows, at(6))).used == 1


def test_what_is_quiet_long_enough_is_over_and_what_nobody_answered_is_not_judged(store: Store) -> None:
    pnpm = save_memory(store, "We use pnpm.")
    prompted(store, "install", 1, [pnpm])
    assert judge(store, still=at(1)) == 0
    assert judge(store, still=at(9)) == 1 and judge(store, still=at(9)) == 0
    assert verdicts(store) == {pnpm: (None, "")}
    tell(store, 20, [pnpm], event="session_start")
    assert judge(store, still=LATE) == 0
    assert judge(store, still=LATE, over=LATE) == 1


def test_a_turn_that_was_told_is_judged_and_what_is_neither_breaks_nothing(store: Store) -> None:
    turn = say(store, "assistant", "The importer needs DATABASE_URL.", 0, session="s0")
    prompted(store, "import it", 1, [turn, "c-0123", "gone"])
    say(store, "tool_call", '{"command": "DATABASE_URL=x make import"}', 2)
    hear(store, "session_end", 3)
    assert judge(store) == 1
    assert verdicts(store) == {turn: (1, "name"), "c-0123": (None, ""), "gone": (None, "")}


def test_a_receipt_of_an_unknown_session_waits_for_nobody(store: Store) -> None:
    pnpm = save_memory(store, "We use pnpm.")
    tell(store, 1, [pnpm])
    assert judge(store, over=at(1)) == 0
    assert judge(store, over=LATE) == 1 and judge(store, over=LATE) == 0
    assert verdicts(store) == {pnpm: (None, "")}
