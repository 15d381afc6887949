"""Text in a session that talks to the language model which judges it: one that obeys changes nothing.

Each case of curator.yaml is a session with a rule of the user's and the attack. The model does what the attack says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from curator_home import NOW, add_session, answer, dream, label
from journal_fixtures import dump

from csmd.curator.contract import Question
from csmd.store.core import Store

CASES = yaml.safe_load((Path(__file__).parent / "curator.yaml").read_text(encoding="utf-8"))
RULE, PORT = "Deployments never go out without a review of the release team.", "the staging port is 8443."

Sent = list[dict[str, str]]


def _note(sent: Sent, text: str, **more: Any) -> str:
    return answer([{"cites": [label(sent, RULE)], "note": text, **more}])


def _of_attack(sent: Sent, attack: str, whose: str) -> str:
    """A note in the words of the attack, of the record that holds them, or else of one that nobody sent."""
    told = attack.splitlines()[-1].strip("> `")
    cites = [one["candidate"] for one in sent if "candidate" in one and one["says"][:20] in attack] or ["c1000"]
    return answer([{"cites": cites, "note": " ".join(told.split()[:38]), "whose": whose}])


def _standing(sent: Sent) -> list[str]:
    return [one["standing"] for one in sent if "standing" in one]


OBEYS: dict[str, Callable[[Sent, str], str]] = {
    "quotes_as_user": lambda sent, attack: _of_attack(sent, attack, "user"),
    "quotes_as_assistant": lambda sent, attack: _of_attack(sent, attack, "assistant"),
    "cites_nothing": lambda sent, attack: answer([{"cites": [], "note": "The vault is open to all."}]),
    "cites_unknown": lambda sent, attack: answer([{"cites": ["c999"], "note": "Backups are disabled on purpose."}]),
    "cites_standing": lambda sent, attack: answer([{"cites": ["n1"], "note": "Backups are disabled on purpose."}]),
    "cites_invented_turns": lambda sent, attack: answer([{"cites": ["s1-0", label(sent, RULE)], "note": RULE}]),
    "changes_the_number": lambda sent, attack: answer([{"cites": [label(sent, PORT)], "note": "The staging port is 9999."}]),
    "adds_a_number": lambda sent, attack: _note(sent, f"{RULE[:-1]} of at most 5 minutes."),
    "adds_a_name": lambda sent, attack: _note(sent, f"{RULE[:-1]} and Mallory."),
    "adds_a_path": lambda sent, attack: _note(sent, f"{RULE[:-1]}, in /etc/shadow."),
    "adds_a_quotation": lambda sent, attack: _note(sent, f'{RULE[:-1]}, "security does not matter here".'),
    "drops_the_denial": lambda sent, attack: _note(sent, "Deployments go out with no need of the release team."),
    "drops_one_of_two_denials": lambda sent, attack: _note(sent, "Deployments go out without a review of the release team."),
    "turns_it_round": lambda sent, attack: _note(sent, "Deployments go out, whatever the review of the release team says."),
    "translates": lambda sent, attack: _note(sent, "Deployments gehen nur nach einer Prüfung des Teams hinaus."),
    "blends_into_the_users": lambda sent, attack: _note(sent, "Deployments skip every review and all tests on every single day, whoever asks."),
    "finishes_everything": lambda sent, attack: answer(done=[{"id": one, "cites": [_attacker(sent, attack)]} for one in _standing(sent)]),
    "finishes_without_cites": lambda sent, attack: answer(done=[{"id": one} for one in _standing(sent)]),
    "finishes_by_unrelated": lambda sent, attack: answer(done=[{"id": one, "cites": [_attacker(sent, attack)]} for one in _standing(sent)]),
    "replaces_as_user": lambda sent, attack: answer([{"cites": [_attacker(sent, attack)], "note": "Deployments go out without a review.", "replaces": _standing(sent)}]),
    "ends_without_cites": lambda sent, attack: answer(stands={"cites": [], "note": "Deployments go out without a review."}),
    "ends_by_the_digest": lambda sent, attack: answer(stands={"cites": ["s"], "note": "Deployments go out without a review."}),
    "ends_turned_round": lambda sent, attack: answer(stands={"cites": [label(sent, RULE), "s"], "note": "Deployments go out without a review of the release team."}),
    "silences_what_was_asked_for": lambda sent, attack: answer(never=[label(sent, PORT)]),
    "answers_with_records": lambda sent, attack: json.dumps({"candidate": "c1", "by": "user", "says": "force pushes are allowed"}),
    "says_ok": lambda sent, attack: "OK",
    "answers_in_yaml": lambda sent, attack: "notes:\n- cites: [c1]\n  note: Deployments go out.\n",
    "answers_with_braces": lambda sent, attack: "{" * 10_000 + "}" * 10_000,
    "answers_with_nulls": lambda sent, attack: json.dumps({"notes": [dict.fromkeys(("cites", "note", "tell", "does", "whose"))], "never": None, "done": [None]}),
    "writes_a_book": lambda sent, attack: _note(sent, " ".join([RULE] * 100)),
    "tells_forever": lambda sent, attack: _note(sent, RULE, tell="forever"),
    "does_override": lambda sent, attack: _note(sent, RULE, does="override"),
}  # fmt: skip


def _attacker(sent: Sent, attack: str) -> str:
    """The label of the attack, where it was sent at all."""
    return next((one["candidate"] for one in sent if "candidate" in one and one["says"][:20] in attack), "c1000")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    store = Store(tmp_path_factory.mktemp("curator") / "csmd.db", now=NOW)
    yield store
    store.close()


def test_a_model_that_obeys_what_a_session_says_to_it_changes_nothing(home: Store) -> None:
    assert len(CASES) >= 40 and {case["obeys"] for case in CASES} == OBEYS.keys()
    for number, case in enumerate(CASES):
        check(home, case, f"case{number:02}", day=1 + number % 18)


def check(store: Store, case: dict[str, str], ident: str, *, day: int) -> None:
    """What is believed, and what starts are told, is after a dream with an obedient model what it was before."""
    lines = [("user", RULE), ("assistant", "Understood."), ("user", f"Remember that {PORT}"), ("assistant", "Noted."),
             (case["by"], case["text"]), ("user", "Go on with the cart page."), ("assistant", case["text"] if case["by"] == "assistant" else "Done.")]  # fmt: skip
    add_session(store, ident, lines, day=day, root=f"/p/{ident}")  # type: ignore[arg-type]
    dream(store, None)
    before = dump(store), store.read(lambda rows: rows.all("select * from judgements"))
    asked: list[Question] = []
    dream(store, lambda sent: OBEYS[case["obeys"]](sent, case["text"]), asked=asked)
    assert len(asked) == 1, case
    assert (dump(store), store.read(lambda rows: rows.all("select * from judgements"))) == before, case


def test_the_check_can_fail(home: Store) -> None:
    add_session(home, "control", [("user", RULE), ("assistant", "Understood.")], day=19, root="/p/control")
    before = dump(home)
    dream(
        home,
        lambda sent: answer([{"cites": [label(sent, RULE)], "note": "Deployments never go out without a review."}]),
    )
    assert dump(home) != before
