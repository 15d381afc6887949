"""What a session took, counted once; and what is taken back where a tool had written its transcript."""

from __future__ import annotations

from typing import Any

import pytest

from csmd.store import projects, receipts, sessions, tampered_transcripts, token_usage, turns
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.store.token_usage import MessageTokens, TokenSum


@pytest.mark.invariant("A session's tokens equal its transcript's, each message once")
def test_a_message_counts_once_with_what_its_last_line_says(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        for session, agent in (("s1", ""), ("s1", "a1"), ("fork", "")):
            turn = given.turn(f"{session}-{agent}", "x", session=session, agent_id=agent)
            turns.ensure_session(rows, turn, host="claude", project=0, path="")
        lines = [
            MessageTokens("s1", "m1", 1, 2, 3, 4),
            MessageTokens("s1", "m1", 1, 9, 3, 4),
            MessageTokens("s1/a1", "m2", 5, 5, 5, 5),
        ]
        for _ in range(2):  # read again, nothing is added
            token_usage.record_usage(rows, lines)
        token_usage.record_usage(
            rows,
            [
                MessageTokens("s1", "m3", 10, 10, 0, 0),
                MessageTokens("fork", "m1", 1, 9, 3, 4),
                MessageTokens("nobody", "m", 1, 1, 1, 1),
            ],
        )
        assert token_usage.sum_usage(rows, 1) == TokenSum(2, 11, 19, 3, 4)
        assert token_usage.sum_usage(rows, 2) == token_usage.sum_usage_of_agents(rows, "s1") == TokenSum(1, 5, 5, 5, 5)
        assert token_usage.sum_usage(rows, 3) == TokenSum(1, 1, 9, 3, 4), "a fork's transcript has it, too"
        assert token_usage.sum_usage_of_agents(rows, "fork") == TokenSum()

    store.write(story)


def test_what_csmd_put_before_a_session_is_counted_over_all_of_it(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        for number, tokens in enumerate((40, 2)):
            receipts.add_receipt(
                rows, receipt_id=f"r{number}", session_id="s1", event="prompt", project=0, at=given.at(number),
                tokens=tokens, text_hash="h", items=[],
            )  # fmt: skip
        assert token_usage.sum_tokens_injected(rows, "s1") == (2, 42) and token_usage.sum_tokens_injected(
            rows, "s2"
        ) == (0, 0)

    store.write(story)


def test_sessions_in_which_nobody_typed_are_told_from_those_in_which_a_person_did(store: Store, given: Any) -> None:
    def say(rows: Rows, session: str, second: float, kind: str) -> None:
        project = projects.ensure(rows, given.project(), now="")
        turn = given.turn(f"{session}-{second}", f"{session} at {second}", session=session, second=second, kind=kind)
        turns.add_turn(rows, turn, text_hash=turn.uuid, host="claude", project=project, path="")

    def story(rows: Rows) -> None:
        say(rows, "by hand", 0, "user")
        for number in range(3):
            say(rows, f"by program {number}", 10 + number, "relayed")
        say(rows, "without a prompt", 20, "assistant")
        assert sessions.count_typed(rows, latest=4) == (3, 0)
        assert sessions.count_typed(rows, latest=10) == (4, 1)
        say(rows, "by program 1", 30, "user")
        assert sessions.count_typed(rows, latest=4) == (3, 1)

    store.write(story)


# --- What was made of a transcript before it came to light that a tool had written it is taken back, and nothing else.


ONE = "/c/projects/-p/one.jsonl"


def stored(rows: Rows, given: Any, name: str, path: str, *, read_second: int) -> None:
    """A session with one statement, whose transcript was read at a time."""
    project = projects.ensure(rows, given.project(), now="")
    turn = given.turn(f"u-{name}", f"{name} uses tabs", session=name)
    turns.add_turn(rows, turn, text_hash=name, host="claude", project=project, path=path)
    rows.run(
        "insert into statements (turn_seq, session_seq, project_seq, text, text_hash, gate, category, confidence, "
        "authority, reasons, at) select t.seq, t.session_seq, t.project_seq, t.text, 'h', 'g', 'c', 1, 'user', '', t.at "
        "from turns t where t.uuid = :uuid",
        uuid=turn.uuid,
    )
    rows.run(
        "insert into files (path, device, inode, position, head, foot, mtime_ns, read_at) "
        "values (:path, 1, 1, 1, '', '', 1, :at)",
        path=path,
        at=given.at(read_second),
    )


def test_only_what_was_read_of_that_file_after_the_call_is_taken_back(store: Store, given: Any) -> None:
    asked: list[str] = []

    def hashed(name: str) -> str:
        asked.append(name)
        return f"hash of {name}"

    def story(rows: Rows) -> list[str]:
        stored(rows, given, "one", ONE, read_second=9)
        stored(rows, given, "same-name", "/d/projects/-q/one.jsonl", read_second=9)
        stored(rows, given, "read-before", "/e/projects/-q/one.jsonl", read_second=4)
        stored(rows, given, "longer-name", "/c/projects/-p/another-one.jsonl", read_second=9)
        stored(rows, given, "wildcards", "/c/projects/-p/onexjsonl", read_second=9)
        tampered_transcripts.record_tampered(rows, ["one.jsonl"], at=given.at(5), hashed=hashed)
        assert tampered_transcripts.is_tampered(rows, "hash of one.jsonl")
        return [
            str(name) for (name,) in rows.all(
                "select s.id from statements st join sessions s on s.seq = st.session_seq order by s.id"
            )
        ]  # fmt: skip

    assert store.write(story) == ["longer-name", "read-before", "wildcards"]
    assert asked == ["one.jsonl"], "what is hashed does not grow with the transcripts: the writer waits for it"
