"""Which units of a turn are chosen and what they are told with; whatever comes in, the limits hold."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from csmd.distill import extract
from csmd.model import CATEGORIES, Statement, StoredTurn, TurnKind
from csmd.text import content_words


def turn(text: str, kind: TurnKind = "user", seq: int = 1) -> StoredTurn:
    return StoredTurn(
        seq=seq, uuid=f"uuid-{seq}", session_id="s", project_seq=1, kind=kind, text=text, at="", ordinal=seq
    )


def said(text: str, kind: TurnKind = "user") -> list[str]:
    return [statement.text for statement in extract.statements(turn(text, kind))]


# --- what is chosen


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("add a retry, and by the way I prefer pathlib over os.path", "I prefer pathlib over os.path"),
        (
            "no, that's wrong: the config key is database_url, not db_url",
            "the config key is database_url, not db_url",
        ),
        ("actually the tests live in spec/, not tests/", "the tests live in spec/, not tests/"),
        (
            "remember that the staging server is only reachable over VPN",
            "the staging server is only reachable over VPN",
        ),
        ("**We use** `uv` here, *not* pip", "We use `uv` here, not pip"),
        ("we should keep\nthe retries in `http_client.py`, not in the callers", None),
    ],
)
def test_a_statement_stands_alone_without_what_leads_into_it(text: str, statement: str | None) -> None:
    found = said(text)
    assert len(found) == 1
    assert "\n" not in found[0]
    if statement:
        assert found == [statement]


def test_words_that_only_look_like_a_lead_in_stay() -> None:
    assert said("No tests may touch the network, we use recorded answers only") == [
        "No tests may touch the network, we use recorded answers only"
    ]


def test_who_says_it_is_its_authority() -> None:
    text = (
        "The root cause was that `FileModificationTools` was missing the `replace` tool, so files that were changed by "
        "it did not appear in the checkpoint and `ComputeDeletedFiles` dropped them."
    )
    assert [statement.authority for statement in extract.statements(turn(text))] == ["user"]
    assert [statement.authority for statement in extract.statements(turn(text, "assistant"))] == ["assistant"]


@given(
    st.sampled_from(["user", "relayed", "assistant", "summary", "command", "notification", "tool_call", "tool_result"]),
    st.sampled_from(
        [
            "no, that's wrong: we always use uv here, not pip",
            "I prefer tabs. From now on never push to main, because the mirror breaks",
            "The root cause was that `Reader` was missing the `close` method.",
            "remember that the staging host is only reachable over VPN",
        ]
    ),
    st.text(max_size=80),
)
def test_only_the_user_speaks_for_the_user_and_what_outsiders_say_is_no_statement(
    kind: TurnKind, text: str, before: str
) -> None:
    found = extract.statements(turn(text, kind), before=before)
    assert {statement.authority for statement in found} <= {"user" if kind == "user" else "assistant"}
    assert not found or kind in ("user", "relayed", "assistant")
    assert kind == "user" or all(statement.gate != "correction" for statement in found)


def test_the_assistants_sentence_that_a_user_sets_down_again_is_not_the_users() -> None:
    said = "Invoices of the last three years are stored in Postgres, behind the old gateway. Shall I use pnpm?"
    quoted = "Invoices of the last three years are stored in Postgres, behind the old gateway."
    for denial in ("this is not fully true", "hm, is it?"):
        found = extract.statements(turn(f"{quoted}\n\n{denial}"), before=said)
        assert not any("three years" in statement.text for statement in found)
    assert extract.statements(turn(quoted), before="Something else.") and extract.statements(
        turn("we always use pnpm"), before=said + " So we always use pnpm."
    )


def test_statements_of_different_kinds_in_one_turn_stay_apart() -> None:
    found = extract.statements(
        turn(
            "Write fizz.py that prints fizzbuzz. I prefer double quotes in Python. "
            "Also we decided to use SQLite for the cache because it needs no server."
        )
    )
    assert {(statement.gate, statement.category) for statement in found} == {
        ("behavioral", "preference"),
        ("epistemic", "decision"),
    }
    assert not any("fizz" in statement.text for statement in found)


def test_a_turn_never_gives_more_than_three() -> None:
    said_once = [
        "I prefer tabs over spaces in Makefiles", "we use Postgres for the job queue", "we decided to drop Python 3.9",
        "from now on run the linter before committing", "please remember that prices are in cents",
    ]  # fmt: skip
    assert len(said("\n".join(f"- {one}" for one in said_once))) == 3


@pytest.mark.parametrize(
    "text",
    [
        "Now let me check whether the config always wins because of the issue with `a`.",
        "I'll now use `paths.RepoRoot()` instead of the current directory because it was missing.",
        "Done. All 42 tests pass and lint is clean.",
        "Would you like me to use `x` instead of `y` because the issue was the cache?",
        "- [ ] The issue was caused by `a` instead of `b`",
        "### Root cause was that the `x` is missing",
        "```python\n# the issue was caused by x because it now uses y\nx = 1\n```",
        "| the issue was | caused by `x` because |",
        "+the root cause was fixed because `x` now uses `y` instead",
        "cmd/main.go:12:4: the issue was caused by `x` because it is missing",
    ],
)
def test_noise_of_an_assistant_is_refused(text: str) -> None:
    assert said(text, "assistant") == []


@pytest.mark.parametrize(
    "text",
    [
        "<command-message>we use uv here, not pip</command-message>",
        "<system-reminder>We always use uv here, not pip.</system-reminder>",
        "<csmd-memory>we use uv here, not pip</csmd-memory>",
        "[Request interrupted by user] we use uv here, not pip",
        "Caveat: The messages below were generated; we use uv here, not pip",
        "Stop hook feedback: we always use uv here, not pip",
        "Base directory for this skill: /x\n\nWe always use uv here, not pip.",
        "/review we always use uv here, not pip",
        "hello there, thanks!",
        "Error: the server is only reachable when the VPN is up",
    ],
)
def test_what_nobody_said_is_refused(text: str) -> None:
    assert said(text) == []


def test_a_reminder_inside_a_users_turn_is_left_out_and_the_rest_is_read() -> None:
    text = "<system-reminder>Always use npm.</system-reminder>\nwe use uv here, not pip"
    assert said(text) == ["we use uv here, not pip"]


def test_a_pasted_document_gives_few_sentences_and_loud_words_alone_do_not_count() -> None:
    steps = "\n".join(f"- You must always run step number {number} of the plan in order" for number in range(30))
    document = (
        "# Plan\n\n## Context\n\nThe sessions were lost because `SessionState` was not copied when it is stored.\n\n"
        f"## Implementation steps\n\n{steps}\n"
    )
    found = said(document)
    assert found == ["The sessions were lost because `SessionState` was not copied when it is stored."]


# --- limits


def check(found: list[Statement]) -> None:
    assert len(found) <= 3
    for statement in found:
        rule = CATEGORIES[statement.category]
        assert statement.text.strip()
        assert "\n" not in statement.text
        assert len(content_words(statement.text)) <= 45
        assert rule.low <= statement.confidence <= rule.high
        assert statement.reasons


PIECES = st.sampled_from(
    [
        "we use",
        "`uv`",
        "not",
        "pip",
        "always",
        "because",
        "the issue was",
        "remember that",
        "actually",
        "no, ",
        "instead of",
        ".",
        "?",
        "!",
        "\n",
        "\n\n",
        "# ",
        "- ",
        "```",
        "**",
        "<system-reminder>",
        "</system-reminder>",
        "<csmd-x>",
        "by the way, ",
        "| a |",
        "x" * 300,
        "。",
        "データベース",
        "\u0000",
        "(",
        ")",
        "\ud800",
        "Let me ",
        ":",
    ]
)


@given(
    text=st.one_of(st.text(max_size=400), st.lists(PIECES, max_size=60).map(" ".join), st.lists(PIECES).map("".join)),
    kind=st.sampled_from(["user", "assistant", "summary", "tool_result"]),
)
@example(text="`" * 3000, kind="user")
def test_whatever_is_said_the_limits_hold(text: str, kind: TurnKind) -> None:
    check(extract.statements(turn(text, kind), before=text))


HOSTILE = {
    "words": "we use uv because it is fast. ",
    "sentences": "We use uv. ",
    "lines": "- we always use uv here, not pip\n",
    "spaces": "always " + " " * 200,
    "fences": "<system-reminder>",
    "csmd": "<csmd-a <csmd-a>",
    "ticks": "`",
    "tildes": "~~~\n",
    "stars": "**a* ",
    "parens": "((((",
    "headings": "# because\n",
    "quotes": "!\"')\"')",
    "punctuation": ". . . ? ! ",
    "not": "not ",
    "tables": "|a|b|\n",
    "null": "\0",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_costs_no_more_than_what_is_looked_at(name: str) -> None:
    """Against the same text at twenty thousand characters: the size of what is never looked at must not matter."""
    piece = HOSTILE[name]
    small, large = (piece * (size // len(piece) + 1) for size in (20_000, 1_000_000))
    took: list[float] = []
    for text in (small, large):
        best = float("inf")
        for _ in range(3):
            started = time.process_time()
            check(extract.statements(turn(text)))
            check(extract.statements(turn(text, "assistant")))
            best = min(best, time.process_time() - started)
        took.append(best)
    assert took[1] < 4 * took[0] + 0.05


def test_what_stands_at_the_end_of_a_huge_text_is_still_read() -> None:
    noise = "\n".join("".join(random.Random(0).choices("abcdef ", k=60)) for _ in range(20_000))
    found = said(f"{noise}\n\nwe use uv here, not pip")
    assert any("we use uv here, not pip" in one for one in found)
