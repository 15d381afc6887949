"""What a user says has changed for the project is kept, however short; what just happened at the desk is not."""

from __future__ import annotations

import pytest

from csmd.distill import extract
from csmd.model import StoredTurn

CHANGED = (
    "Invoices are now rendered by Typst instead of LaTeX",
    "our mail relay has moved to Postmark",
    "we don't use the Flash importer any more",
    "The firmware is now built with Zephyr",
    "We've ended support for iOS 15",
    "the nightly backups go to Backblaze now",
    "We no longer sign the installers by hand",
    "the pricing service was replaced by a spreadsheet import",
    "As of 4.0 the plugin API is asynchronous",
    "Translations now come from Weblate",
    "we now ship one binary per platform",
    "Sensor readings are now stored in Parquet",
    "support for the old barcode scanners was dropped",
    "PostgreSQL 16 is the minimum now",
    "the ledger switched from floats to integers of cents",
)
HAPPENED = (
    "the pipeline is now green",
    "I moved the constant into settings",
    "the spinner is now gone",
    "it is now much faster",
    "the second test is now skipped",
    "I no longer get the warning",
    "your branch is now up to date",
    "the import is now sorted",
    "all checks are now passing",
    "the diff is now smaller",
    "we now have a failing build",
    "that file is now open",
    "the cursor now jumps to the end",
    "I changed the comment to a docstring",
    "the server is now running on my machine",
)


def check(said: str, *, kept: bool) -> None:
    turn = StoredTurn(seq=1, uuid="u1", session_id="s", project_seq=1, kind="user", text=said, at="", ordinal=1)
    found = extract.statements(turn)
    assert [one.text for one in found] == ([said] if kept else [])
    assert all(one.gate == "epistemic" for one in found)


@pytest.mark.parametrize("said", CHANGED)
def test_what_is_otherwise_with_the_project_from_now_on_is_a_statement(said: str) -> None:
    check(said, kept=True)


@pytest.mark.parametrize("said", HAPPENED)
def test_what_just_happened_to_the_work_at_hand_is_none(said: str) -> None:
    check(said, kept=False)
