"""Which sentences decide how things are to be from then on; each class of words is needed by one of them."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest

from csmd import data
from csmd.text import decisions, sentence
from csmd.text.sentence_words import split_words

#: A sentence -> whether it decides.
SAID: dict[str, bool] = {
    "set the ledger limit to 40 rows": True,
    "please cap ledgers at 40 kb": True,
    "let's lower the ledger limit to 1.5": True,
    "set the margin of the ledger to 40 pixels": False,
    "set the margin of the ledger to 40px": False,
    "bump the ledger version to 1.4": False,
    "bump the ledger to 1.4.2": False,
    "lower it to 40": False,
    "we'll keep ledgers as text": True,
    "we will always keep ledgers": True,
    "we won't be storing ledgers": True,
    "ledgers are going to be read by column": True,
    "clerks are going to sign by thumb": True,
    "clerks will sign by the door": False,
    "our keys will be ULIDs": True,
    "we won't support old ledgers": True,
    "we aren't going to use ledgers": True,
    "we'll keep it": False,
    "we'll keep the ledger open tomorrow": False,
    "we'll look at the ledger": False,
    "I'll keep ledgers": False,
    "there will be ledgers in rows": False,
    "it will be kept in memory": False,
    "can you ensure ledgers will be kept in memory": False,
    "let's pause, a ledger can go without any rows": False,
    "the ledger will be ready": False,
    "ledgers will be stored for a year": True,
    "the ledger limit will be 40 rows": True,
    "we renamed the ledger service to book": True,
    "rename the ledger service to book": False,
    "if we drop Redis we'll use Valkey": False,
    "I don't want ledgers in here": True,
    "I'd like all ledgers closed": True,
    "I want the ledger closed": False,
    "I want the ledger to be kept in memory": True,
    "I don't want to wait": False,
    "I don't want this ledger": False,
    "I don't want a ledger": False,
    "I don't want a ledger in this repo": True,
    "can you set the ledger limit to 40 rows": True,
    "no ledgers here": True,
    "no change here": False,
    "let's represent ledgers as rows": True,
    "let's go with rows for ledgers": True,
    "let's write a ledger": False,
    "let's keep ledgers": False,
    "Redis is out, Valkey is in": True,
    "the till listens on 8082 now": True,
    "the till fails on 8082 now": False,
    "we saw gaps, not lines": False,
    "replace tabs with spaces everywhere in till.css": False,
    "draw a ledger with at most 40 rows": True,
    "draw a ledger with 40 rows": False,
    "print at most 40 rows": False,
    "the ledger has at most 40 rows": False,
}

#: A sentence -> whether it says how something is, and why.
EXPLAINED: dict[str, bool] = {
    "the plotter takes only A3, so we print ledgers in two halves": True,
    "ledgers are split by month since the clerks print them": True,
    "the clerks have no network, that is why ledgers are copied at night": True,
    "the till is locked at night because the clerks leave early": True,
    "because the plotter takes only A3, we print ledgers in two halves": True,
    "ledgers are copied at night, as the clerks are offline": False,
    "I copied the ledger because the clerks were offline": False,
    "the ledger ran twice because the clerks clicked": False,
    "the ledger copied nothing because the clerks are offline": False,
    "the ledger is blank because the plotter has no paper": False,
    "the ledger still prints twice because the plotter has two trays": False,
    "the ledger is narrow, so make it wide": False,
    "no ledgers on paper, the clerks have wet hands": True,
    "no ledgers came, the clerks have wet hands": False,
    "the ledger is narrow, so please use A3 for it": False,
    "the till exists since 2017 in three towns": False,
    "the till is so loud in there": False,
    "print it twice because the clerks lose it": False,
    "the till holds 40 receipts because the drawer is small": True,
    "the till holds 40 receipts because the drawer was locked": False,
    "the till holds 40 receipts because two clerks are away": False,
    "the till is at 40 receipts because the drawer is small": False,
    "the drawer is 90 % full because the clerks keep receipts": False,
    "the limit is at 40 receipts because the drawer is small": True,
}

#: A proposal -> whether it is about how things are to be.
PROPOSED: dict[str, bool] = {
    "so one ledger per month?": True,
    "shall I send ledgers by mail, so that nobody waits?": True,
    "I'd store the ledger outside the till": True,
    "I would draw the ledger with Skia": True,
    "should we use Skia for labels?": True,
    "so the till prints on A6 paper?": True,
    "so ledgers are written as CSV?": True,
    "should we call the till `desk` everywhere?": True,
    "shall I run the till with a ledger?": False,
    "should I write the ledger in the other folder?": False,
    "shall I keep going with the ledger?": False,
    "so the till was on with the ledger?": False,
    "so you keep ledgers in a drawer?": False,
    "so one till per shop failed?": False,
    "shall I look at it with a ledger?": False,
    "shall I go on with it?": False,
}


def check(module: ModuleType, said: str) -> bool:
    return module.decides(said, sentence.parse(said).words)


@pytest.mark.parametrize("said", SAID)
def test_a_sentence_decides_or_does_not(said: str) -> None:
    assert check(decisions, said) is SAID[said]
    assert sentence.parse(said).settles is SAID[said]


@pytest.mark.parametrize("said", EXPLAINED)
def test_a_sentence_gives_the_cause_of_how_something_is_or_does_not(said: str) -> None:
    assert decisions.explains(sentence.parse(said).words) is EXPLAINED[said]


@pytest.mark.parametrize("said", PROPOSED)
def test_a_proposal_is_about_how_things_are_to_be_or_about_a_step(said: str) -> None:
    assert decisions.proposes_state(split_words(said)) is PROPOSED[said]


@pytest.mark.parametrize("word_class", sorted(data.word_table("decision_words.txt")))
def test_each_class_of_words_is_needed(word_class: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = data.word_table
    monkeypatch.setattr(
        data,
        "word_table",
        lambda name: whole(name) | ({word_class: frozenset()} if name == "decision_words.txt" else {}),
    )
    spec = importlib.util.find_spec("csmd.text.decisions")
    assert spec is not None and spec.loader is not None
    without = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(without)
    decides = any(check(without, said) is not SAID[said] for said in SAID)
    proposes = any(without.proposes_state(split_words(said)) is not PROPOSED[said] for said in PROPOSED)
    assert (
        decides
        or proposes
        or any(without.explains(sentence.parse(said).words) is not EXPLAINED[said] for said in EXPLAINED)
    )
