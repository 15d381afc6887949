"""What a short answer takes of the message before it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.conversation import StoredTurn
from csmd.extraction import acceptance, chooser, exchange_sources

LIST = "There are three ways to keep the sessions.\n1. Signed cookies\n2. A table in Postgres\n3. Valkey with a day to live\nWhich one shall we take?"
INLINE = "Two ways for the ids. 1. ULIDs made by the application, sortable. 2. A bigserial column with a public slug."
EITHER = "Either we keep the photos on the volume, or we move them to object storage. What do you prefer?"
PROPOSED = "The import fails at night. I propose to read the files in batches of 500 rows. That is an hour of work."
BULLETS = "For the ledger I see two options:\n- **Rows**: one for each booking\n- **Columns**: one for each month\n\nI'd lean to rows. What do you think?"
NAMED = "Which queue do you want for the mails: Kafka, NATS or Postgres?"
HALVES = "I can either keep the sums in the table or compute them. The table is what we have. Which way?"
OPEN = "Polling stops after some tries. How many tries should a till get?"
WEIGHED = "The plotter is fast but needs A3, the printer is slow and takes any paper."
APART = "Paper bons need a second printer; cards would cost more but last longer."
COUNTED = "Question 2 of 3: How many tries should a till get?"
ROW = "Options: (a) drop the booking, (b) keep it and warn, (c) stop. With (a) nobody notices."
FINDINGS = "1. The counter leaks.\n2. The footer is off.\n\nBoth are small."
OFFERED = "The tests are green again. Shall I run them once more?"
SUMS = "How should sums be kept?\n\n1. as plain floats\n2. as a Decimal column\n3. in a Sum class\n\nWhich one do you want?"
INBOX = "The till only sends an id. Two ways to deal with it:\n\na) read it at once\nb) put it into an inbox\n\nI lean to (b). Which do you prefer?"
CAPS = "Two possibilities: waits that double, or a fixed wait of 20 s. Which do you prefer?"
DELETING = "The sums are in. Shall I delete the paper ledgers?"
CLOSING = "A shared ledger gets torn. So one ledger per clerk?"
GERMAN = "Der Export ist zu langsam. Ich schlage vor, die Summen nachts vorzurechnen."
CHINESE = "导出太慢。我建议每晚预先计算汇总。"
MARKET = "The market is open on Fridays. I count the coins."

#: The message before, the answer, and what of the message is taken ("" for nothing).
ROWS = [
    (LIST, "2", "A table in Postgres"),
    (LIST, "the second one", "A table in Postgres"),
    (LIST, "option 3 please", "Valkey with a day to live"),
    (LIST, "no, rather the first", "Signed cookies"),
    (LIST, "agreed, valkey it is", "Valkey with a day to live"),
    (LIST, "which of them is faster?", ""),
    (LIST, "none of them", ""),
    (INLINE, "1", "ULIDs made by the application"),
    (EITHER, "the latter", "we move them to object storage"),
    (EITHER, "the former", "we keep the photos on the volume"),
    (BULLETS, "columns", "I see two options: -> Columns: one for each month"),
    (BULLETS, "the first one sounds good", "I see two options: -> Rows: one for each booking"),
    (BULLETS, "agreed", "I see two options: -> Rows: one for each booking"),
    (NAMED, "nats it is", "Kafka, NATS or Postgres? -> nats it is"),
    (NAMED, "the last one", "Kafka, NATS or Postgres? -> Postgres"),
    (NAMED, "postgres, we know it", "-> postgres, we know it"),
    (NAMED, "none of them", ""),
    (HALVES, "leave it unchanged", "or compute them? -> leave it unchanged"),
    (HALVES, "compute", "or compute them? -> compute"),
    (OPEN, "5. nobody needs more", "How many tries should a till get? -> 5"),
    (OPEN, "I looked at it", ""),
    (OPEN, "no idea", ""),
    (OPEN, "2.5 at most", "How many tries should a till get? -> 2.5 at most"),
    (OPEN, "5 tries a till", "How many tries should a till get? -> 5 tries a till"),
    ("The till needs a port. Which port should it listen on?", "8080", "8080"),
    (LIST, "2, but without the index", "A table in Postgres"),
    ("Which box for the coins? Tin or Oak?", "tin it is", "Which box for the coins? Tin or Oak? -> tin it is"),
    (OPEN, "whatever", ""),
    (OPEN, "you decide", ""),
    (OPEN, "the tests fail", ""),
    (OPEN, "ERROR: no till", ""),
    (OPEN, "/compact", ""),
    (
        SUMS,
        "3, but the value inside as int pence",
        "How should sums be kept? -> in a Sum class, but the value inside as int pence",
    ),
    (SUMS, "2, but with four decimals", "How should sums be kept? -> as a Decimal column, but with four decimals"),
    (SUMS, "the third, rounded to pence", "-> in a Sum class, rounded to pence"),
    (SUMS, "option 2 with an index on the unit", "-> as a Decimal column, with an index on the unit"),
    (SUMS, "neither, use a table of units", "How should sums be kept? -> neither, use a table of units"),
    (
        INBOX,
        "b, and keep the rows for the clerks",
        "only sends an id. Two ways to deal with it: -> put it into an inbox, and keep",
    ),
    (INBOX, "b. And the till must answer in a second", "Two ways to deal with it: -> put it into an inbox"),
    (CAPS, "the first, capped at ten tries", "Which do you prefer? -> waits that double, capped at ten tries"),
    (CAPS, "the second, but 45 s", "-> a fixed wait of 20 s, but 45 s"),
    (SUMS, "2, but first show me the till", ""),
    (SUMS, "2 - too slow for the clerks", ""),
    (SUMS, "2, why that one", ""),
    (SUMS, "3, no wait", ""),
    (SUMS, "neither works", ""),
    (SUMS, "neither, let me think", ""),
    (SUMS, "3 of the tills fail, but the sums are right", ""),
    (CAPS, "the second, the one with the wait", "-> a fixed wait of 20 s"),
    (CAPS, "the first line is unclear, capped or not", ""),
    (INBOX, "b is slower, isn't it?", ""),
    (DELETING, "no, keep them until I've checked the sums", "Shall I delete the paper ledgers? -> no, keep them until"),
    (DELETING, "no, they must last ten years", "Shall I delete the paper ledgers? -> no, they must last"),
    (DELETING, "not yet, the clerks still read them", "-> not yet, the clerks still read them"),
    (DELETING, "leave them until the audit", "-> leave them until the audit"),
    (DELETING, "no, leave it", ""),
    (DELETING, "no, it is empty", ""),
    (DELETING, "no, keep going", ""),
    (DELETING, "not yet", ""),
    ("Done. Shall I push the ledger?", "no, keep it until I've looked at it", ""),
    ("The ledgers are in the drawer.", "no, keep them until the audit", ""),
    (CLOSING, "yes", "So one ledger per clerk? -> yes"),
    (CLOSING, "sounds good", "So one ledger per clerk? -> sounds good"),
    (CLOSING, "no", ""),
    ("So the ledger was blank by noon?", "yes", ""),
    ("Shall I send ledgers by mail, so that nobody waits?", "sounds good", "so that nobody waits? -> sounds good"),
    (LIST, "the first is out", ""),
    (LIST, "the first, or the second", ""),
    (LIST, "first 1, then 3", ""),
    (LIST, "maybe the second", ""),
    (LIST, "the second is wrong", ""),
    (LIST, "不要第二个", ""),
    (LIST, "never the third", ""),
    (LIST, "the second. sorry, the third", ""),
    (NAMED, "kafka, nats", ""),
    (OPEN, "10:32 jo: postgres", ""),
    (NAMED, "kafka is out", ""),
    (NAMED, "maybe kafka", ""),
    (EITHER, "object storage is expensive", ""),
    ("The till beeps on coins or on notes. I mended both.", "notes", ""),
    (WEIGHED, "printer.", ""),
    (APART, "cards. they last", "cards would cost more but last longer -> cards"),
    (APART, "paper it stays, cards get lost", "Paper bons need a second printer -> paper it stays"),
    (APART, "cards are out", ""),
    (APART, "no cards", ""),
    (APART, "cards?", ""),
    (APART, "the till beeps", ""),
    (COUNTED, "5", "How many tries should a till get? -> 5"),
    (ROW, "c, of course", "(c) stop: -> stop"),
    (FINDINGS, "2", "The footer is off"),
    (PROPOSED, "yes, do that", "batches of 500 rows"),
    (PROPOSED, "agreed, go ahead", "batches of 500 rows"),
    (PROPOSED, "👍", "batches of 500 rows"),
    (PROPOSED, "no, leave it", ""),
    (PROPOSED, "read them one by one instead", ""),
    (OFFERED, "yes", ""),
    (GERMAN, "ja, mach das", "die Summen nachts vorzurechnen"),
    (CHINESE, "好，就这么做", "每晚预先计算汇总"),
    ("Done.", "yes", ""),
    (LIST, "not valkey", ""),
    (LIST, "one second", ""),
    (PROPOSED, "hello", ""),
    (PROPOSED, "thanks", ""),
    (PROPOSED, "yes. but not that, one file a run", ""),
    (MARKET, "no, Saturdays", "The market is open on Fridays -> no, Saturdays"),
    (MARKET, "sorry, not Friday but Saturday", "The market is open on Fridays -> sorry, not Friday but Saturday"),
    (MARKET, "no, the clerks are away on Saturday", ""),
    (MARKET, "Saturday", ""),
    (MARKET, "no, Friday", ""),
    ("The till opens at 8:30 and the plotter at 9:30.", "no, 9:00", ""),
    ("The till keeps 40 receipts. The plotter has 3 trays.", "no, 50", ""),
    ("The till keeps 40 receipts.", "wrong, 50 receipts", "The till keeps 40 receipts -> wrong, 50 receipts"),
    ("The till keeps 40 receipts.", "no, 50 coins", ""),
    ("I moved the fair to Friday.", "no, Saturday", ""),
    ("So the fair is on Friday?", "no, Saturday", "So the fair is on Friday? -> no, Saturday"),
]


@pytest.mark.parametrize(("before", "answer", "taken"), ROWS)
def test_a_short_answer_takes_the_option_that_it_picks_or_the_proposal_that_it_agrees_to(
    before: str, answer: str, taken: str
) -> None:
    found = acceptance.split_answer(answer, before).text
    assert taken in found and bool(found) is bool(taken)


@pytest.mark.parametrize(
    ("before", "answer", "rest"),
    [
        (SUMS, "2. And the till must answer in a second", "And the till must answer in a second"),
        (SUMS, "3, but as int pence. never round", "never round"),
        (SUMS, "2", ""),
        (SUMS, "hello", "hello"),
    ],
)
def test_what_an_answer_says_besides_its_pick_is_read_without_the_mark(before: str, answer: str, rest: str) -> None:
    assert acceptance.split_answer(answer, before).rest == rest


@given(st.text(max_size=80), st.text(max_size=400))
def test_whatever_is_answered_takes_words_of_the_message_or_nothing(answer: str, before: str) -> None:
    taken = acceptance.split_answer(answer, before).text
    assert not taken or before


def turn(number: int, kind: str, text: str) -> StoredTurn:
    return StoredTurn(
        seq=number, uuid=f"u{number}", session_id="s", project_seq=1, kind=kind, text=text,  # type: ignore[arg-type]
        at="2026-03-01T10:00:00.000Z", ordinal=number,
    )  # fmt: skip


def stated(*said: tuple[str, str]) -> list[tuple[str, str]]:
    """(authority, text) of what is chosen of a conversation."""
    turns = [turn(number, kind, text) for number, (kind, text) in enumerate(said, 1)]
    found = chooser.choose(exchange_sources.find_sources(turns, settled=True))
    return [(one.statement.authority, one.statement.text) for one in found]


@pytest.mark.invariant("What is only proposed is nobody's statement; what the user takes of it is the user's decision")
def test_what_the_user_takes_is_a_decision_of_the_users_and_what_is_refused_is_none() -> None:
    agreed = stated(("user", "why is the import slow?"), ("assistant", PROPOSED), ("user", "yes, do that"))
    assert [by for by, text in agreed if "batches of 500 rows" in text] == ["user"]
    refused = stated(("user", "why is the import slow?"), ("assistant", PROPOSED), ("user", "no, leave it"))
    assert not [text for _, text in refused if "batches of 500 rows" in text]
    picked = stated(("user", "where do sessions go"), ("assistant", LIST), ("user", "2"))
    assert [text for by, text in picked if by == "user"] == [
        "There are three ways to keep the sessions: -> A table in Postgres"
    ]


@pytest.mark.parametrize(
    ("prompt", "reply", "taken"),
    [
        ("The market is open on Fridays.", "Noted.", True),
        ("The market is open on Fridays.", "I count the coins every Friday.", False),
        ("The market is open on Fridays, the fair on Sundays.", "Noted.", False),
    ],
)
def test_a_correction_of_a_value_may_correct_the_users_last_prompt(prompt: str, reply: str, taken: bool) -> None:
    found = stated(("user", prompt), ("assistant", reply), ("user", "no, Saturdays"))
    assert (("user", "The market is open on Fridays -> no, Saturdays") in found) is taken


@pytest.mark.invariant("Options that the user is asked to choose from are nobody's statement, whichever is picked")
def test_an_option_that_was_not_picked_is_nobodys_statement() -> None:
    message = (
        "The till needs a place for its sums.\n\n1. keep the sums in the ledger, because the clerks read it anyway\n"
        "2. keep the sums in a table of their own, because the ledger is slow to open\n\nWhich one do you prefer?"
    )
    found = stated(("user", "the till forgets its sums"), ("assistant", message), ("user", "2"))
    assert not [text for _, text in found if "in the ledger" in text]
    assert [by for by, text in found if "in a table of their own" in text] == ["user"]
