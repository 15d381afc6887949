"""What is one statement in other words, and why two like statements are two: golden pairs, each row one reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.text import restatement

DATA = Path(__file__).parent.parent / "data"
LIKE = [json.loads(line) for line in (DATA / "restatements" / "pairs.jsonl").read_text().splitlines()]
SAME = "it says the same in other words"


def check(one: str, other: str, reason: str) -> None:
    """Whether two statements are one, and why, whichever is asked about first."""
    assert restatement.judge(one, other).reason == restatement.judge(other, one).reason == reason
    assert restatement.judge(one, other).is_same == (reason == SAME)


#: (one, other, why they are one or two).
GOLDEN = [
    ("Logs must not contain personal data.", "Personal data is not allowed in the logs.", SAME),
    ("Passwords are hashed with argon2.", "We hash passwords using argon2.", SAME),
    ("Use tabs for indentation in Go code.", "Go code has to be indented with tabs.", SAME),
    ("Feature branches are deleted after merge.", "Once merged, the feature branch gets removed.", SAME),
    ("Priya owns the billing module.", "The billing module belongs to Priya.", SAME),
    ("The worker tries a job three times.", "A job is tried 3 times by the worker.", SAME),
    ("We deploy from the release branch.", "Deployments are made from the release branch.", SAME),
    ("The API listens on port 5433.", "Port 6000 is what the API listens on.", "their numbers differ"),
    ("Retry 3 times after 5 seconds.", "Retry 5 times after 3 seconds.", "what does and what is done to change places"),
    ("Secrets are read from Vault.", "We read the secrets from Doppler.", "their names differ"),
    ('The button says "save it" in the dialog.', 'In the dialog the button says "run it".', "they quote other words"),
    ("Mock the database in tests.", "Don't mock the database in tests.", "one denies and the other does not"),
    ("We use a CDN for the images.", "For the images we might use a CDN.", "one is less certain"),
    ("We will move the queue to Kafka.", "The queue is moved to Kafka.", "one tells what is planned"),
    ("We used Kafka for the queue.", "For the queue we use Kafka.", "one tells of the past"),
    ("Admins approve accounts.", "Admins are allowed to approve accounts.", "one allows what the other does not speak of allowing"),
    ("Deploys are made from main.", "Only from main deploys are made.", "one leaves everything else out"),
    ("Prices are rounded up.", "We round the prices.", "one says which way"),
    ("Telemetry is enabled by default.", "By default telemetry is disabled.", "they have opposite words"),
    ("The browser uploads images to S3.", "Images of S3 are downloaded by the browser.", "they name two things of a kind"),
    ("Ask me before adding a dependency.", "Before adding a runtime dependency ask me.", "one says something that the other does not"),
    ("Customer data never leaves the EU.", "Never does employee data leave the EU.", "one says something that the other does not"),
    ("Logs are kept for a year.", "We keep audit logs for a year.", "one says something that the other does not"),
    ("The user asked for a dark theme.", "The user hated the dark theme.", "one says something that the other does not"),
    ("Orders fail on empty rows.", "Orders skip on empty rows.", "another word stands in the same place"),
    ("The billing service calls the user service.", "The user service calls the billing service.", "what does and what is done to change places"),
    ("Orders are copied from the shop to the warehouse.", "Orders are copied from the warehouse to the shop.", "where from and where to change places"),
    ("Should the tests run in parallel?", "The tests should run in parallel.", "one asks and the other states"),
    ("Les tests tournent en parallèle, toujours.", "Toujours en parallèle tournent les tests.", "they are in a language whose words are not known"),
    ("Lint it.", "Linting, please.", "they have too little in common"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other", "reason"), GOLDEN)
def test_two_statements_are_one_or_two_for_a_reason(one: str, other: str, reason: str) -> None:
    check(one, other, reason)


def test_every_reason_has_a_golden_pair() -> None:
    assert restatement.DIFFERENCES.keys() | {SAME} == {reason for *_, reason in GOLDEN}


@pytest.mark.invariant(
    "Of like statements that differ in a number, name, negation, subject or scope none is taken for another"
)
@pytest.mark.parametrize("pair", [pair for pair in LIKE if not pair["is_same"]], ids=lambda pair: pair["other"])
def test_no_look_alike_is_taken_for_a_restatement(pair: dict[str, str]) -> None:
    assert not restatement.judge(pair["one"], pair["other"]).is_same


def test_of_the_written_restatements_half_are_found() -> None:
    found = [restatement.judge(pair["one"], pair["other"]).is_same for pair in LIKE if pair["is_same"]]
    assert sum(found) >= len(found) / 2


@pytest.mark.parametrize("name", ["pairs", "held_back", "changed"])
def test_what_changes_or_elaborates_a_statement_is_no_restatement(name: str) -> None:
    for pair in json.loads((DATA / "supersession" / f"{name}.json").read_text()):
        assert not restatement.judge(pair["older"], pair["newer"]).is_same, pair


@given(st.text(max_size=60), st.text(max_size=60))
def test_whatever_is_said_the_order_of_two_statements_does_not_matter(one: str, other: str) -> None:
    assert restatement.judge(one, other).is_same == restatement.judge(other, one).is_same
