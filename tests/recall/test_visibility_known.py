"""What CLAUDE.md says is not told again; what is more than that, or against it, is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.recall import visibility

CLAUDE_MD = """# Shop

Run `npm test` before every commit. Never push to main directly.

## Style
- Prefer pathlib over os.path in this code.
- Use four spaces for indentation, never tabs.
- The config key is `database_url`, not `db_url`.
* Keep functions short; write a docstring for each public function, in one sentence.
- We moved the job queue from Redis to Postgres because of LISTEN/NOTIFY.
- Write **all** dates as ISO-8601 in UTC.

Hard-wrapped lines are joined into paragraphs here, and the deployment of the staging
environment needs the VPN to be connected first.

```sh
make release VERSION=patch
```
"""

SAID = [
    "Prefer pathlib over os.path in this code.",
    "prefer pathlib over os.path in this code",
    "Use four spaces for indentation, never tabs",
    "the config key is database_url, not db_url",
    "Run npm test before every commit.",
    "Run npm test before each commit",
    "Write all dates as ISO-8601 in UTC",
    "The deployment of the staging environment needs the VPN to be connected first.",
    "We moved the job queue from Redis to Postgres",
    "Write a docstring for each public function.",
    "Run npm test before every commit. Never push to main directly.",
]
NOT_SAID = [
    # against it
    "Use two spaces for indentation, never tabs",
    "Use tabs for indentation, never four spaces",
    "The config key is `db_url`, not `database_url`.",
    "Prefer os.path over pathlib in this code.",
    "We moved the job queue from Postgres to Redis because of LISTEN/NOTIFY.",
    "Run npm test after every commit.",
    "Push to main directly.",
    "Do not write a docstring for each public function.",
    "No, that's wrong: don't prefer pathlib over os.path in this code.",
    "Run pnpm test before every commit.",
    # more than it
    "Prefer pathlib over os.path in this code, but the vendored scripts keep os.path because they run on Python 2.",
    "Run npm test before every commit. The integration tests need Docker.",
    # perhaps: where words turn a sentence round, their order counts, and what is not sure is told
    "Never push directly to main.",
    # too little of it to be sure
    "Prefer pathlib",
    "Use spaces",
    # something else
    "make release VERSION=patch",
    "The staging environment is in Frankfurt.",
    "",
    "the and of",
]


def check(statement: str, *, told: bool) -> None:
    assert visibility.known_sentences([CLAUDE_MD, "- [VPN](vpn.md) — how to connect"]).says(statement) == told, (
        statement
    )


@pytest.mark.parametrize("statement", SAID)
def test_what_stands_there_is_known(statement: str) -> None:
    check(statement, told=True)


@pytest.mark.parametrize("statement", NOT_SAID)
def test_what_does_not_stand_there_is_told(statement: str) -> None:
    check(statement, told=False)


@given(st.lists(st.text(max_size=200), max_size=4), st.text(max_size=200))
def test_any_text_can_be_asked_for_in_any_other(texts: list[str], statement: str) -> None:
    assert visibility.known_sentences(texts).says(statement) in (True, False)
    assert not visibility.known_sentences([]).says(statement)


def test_the_same_texts_are_taken_apart_once() -> None:
    assert visibility.known_sentences([CLAUDE_MD]) is visibility.known_sentences([CLAUDE_MD])
