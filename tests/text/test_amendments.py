"""What a later statement says otherwise about the subject of an earlier one, and what only looks like it."""

from __future__ import annotations

import pytest

from csmd.text import amendments
from csmd.text.similarity import compare

CRON = "The mail sender runs as a cron job on the web host"
UPLOADS = "uploads must stay below 5 MB because the proxy cuts them off"
CARTS = "we keep carts for 15 minutes during payment, not longer"
LOGS = "logs are kept for a week because the disk is small"
LABELS = "we render labels with wkhtmltopdf because the printer needs A6"
INDEXER = "the indexer is a thread inside apid"
#: The earlier statement, the later one.
AMENDED = [
    (CRON, "let's drop the cron sender, it gets its own container mailerd"),
    (CRON, "drop the cron sender. Nina rents a host for mail, so the sender becomes its own container"),
    ("Thumbnails are drawn by ImageMagick", "we're moving thumbnails to libvips"),
    (LABELS, "we're switching labels to weasyprint"),
    (UPLOADS, "uploads can be 40 MB now, the proxy is gone"),
    (CARTS, "we keep carts for 45 minutes from now on"),
    (LOGS, "logs can be kept for a month actually"),
    ("prices are shown with tax included", "prices are shown without tax"),
    ("with tax included", "without tax"),
    ("always show prices with tax included", "prices are shown without tax from now on"),
    ("the exporter writes CSV files for the bank", "forget the CSV files, the exporter writes camt.053"),
    ("invoices are numbered by year", "actually, number invoices by month"),
    (INDEXER, "the indexer becomes its own service indexd"),
    ("the indexer lives in the api container", "the indexer moves to its own container"),
    ("retry three times at most", "retry five times at most"),
    ("backups run every 6 hours", "backups run every 2 hours now"),
    ("we send at most 100 mails per minute", "we can send 500 mails per minute now"),
    ("the till runs as a lambda in eu-west", "the till moves to its own box"),
    ("the resize thread lives in the upload handler", "scrap the resize thread, resizing moves into a job"),
    ("we sync stock every 10 minutes", "we sync stock every minute now"),
    ("drop cached rows after a week", "cached rows can stay for a month actually"),
]
#: The same for what ends nothing.
LOOK_ALIKES = [
    (CRON, "let's drop the cron job for backups, a timer does it"),
    (CRON, "drop the cron job log, the log is too big"),
    ("Thumbnails are drawn by ImageMagick", "we're moving avatars to S3"),
    (LABELS, "we're moving the labels folder to assets"),
    (UPLOADS, "avatars can be 1 MB now"),
    (UPLOADS, "the proxy may use 40 MB now"),
    (UPLOADS, "actually uploads look fine now"),
    (UPLOADS, "can uploads be 40 MB now?"),
    (UPLOADS, "if uploads can be 40 MB now, the form needs a hint"),
    (CARTS, "we keep logs for 30 days from now on"),
    (LOGS, "backups can be kept for a month actually"),
    ("prices are shown with tax included", "invoices are shown without logo"),
    ("the exporter writes CSV files for the bank", "drop the CSV test file"),
    (INDEXER, "the indexer becomes slow after an hour"),
    (INDEXER, "the indexer now logs to stderr"),
    ("the api is the only service that writes", "the api becomes its own repository"),
    ("the till waits 30 seconds between reads", "the till waits 5 minutes after an error"),
    ("backups run every 6 hours", "backups take 2 hours now"),
    ("tokens are valid for an hour", "refresh tokens can be valid for 30 days now"),
    ("sessions expire after 20 minutes", "admin sessions expire after 5 minutes"),
    ("we sync stock every 10 minutes", "we sync prices every minute now"),
    ("the till runs as a lambda in eu-west", "the till goes to sleep at night"),
    ("the resize thread lives in the upload handler", "scrap the resize log, it is huge"),
    ("the mailer uses a pool of 5 connections", "the importer uses a pool of 9 connections"),
]
#: What says by itself that something is otherwise from now on, and what does not.
ANNOUNCED = {
    "logs can be kept for a month actually": True,
    "a page may show 200 rows from now on": True,
    "we're moving labels to weasyprint": True,
    "the indexer becomes its own service indexd": True,
    "forget the CSV files, move the sums to DuckDB": True,
    "we have 500 mails in the queue now": False,
    "it can wait 2 days now": False,
    "I can see 3 rows now": False,
    "we're moving the meeting to Friday": False,
    "this becomes part of the footer": False,
    "the list becomes a mess": False,
    "if we're moving labels to weasyprint": False,
}


@pytest.mark.parametrize(("older", "newer"), AMENDED)
def test_a_second_thought_about_the_same_subject_replaces_the_first(older: str, newer: str) -> None:
    assert amendments.amends(older, newer)
    assert compare(older, newer).replaces


@pytest.mark.parametrize(("older", "newer"), LOOK_ALIKES)
def test_another_subject_another_kind_of_number_and_a_step_end_nothing(older: str, newer: str) -> None:
    assert not amendments.amends(older, newer)
    assert not compare(older, newer).replaces


@pytest.mark.parametrize("text", ANNOUNCED)
def test_a_change_is_announced_by_what_something_may_be_or_becomes(text: str) -> None:
    assert amendments.announces(text) is ANNOUNCED[text]
