"""The living state: trimmed in its order, never an order, never without exception, each line with its reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from recall_fixtures import memory

from csmd.knowledge import Candidate, Packet, State
from csmd.memory.belief_subjects import Belief
from csmd.memory.work_outcomes import Capability
from csmd.recall import advisory, compose
from csmd.recall.advisory import Line
from csmd.recall.compose import Block, Note
from csmd.store.core import Store
from csmd.tools import receipts as receipt_tools
from csmd.vocabulary import CandidateKind

GOLDEN = Path(__file__).resolve().parent.parent / "data" / "advisory_trimming.json"
AT = "2026-03-01T10:00:00.000Z"


def candidate(said: str, number: int, kind: CandidateKind = "belief", **changes: object) -> Candidate:
    values: dict[str, object] = {
        "id": f"c{number}", "kind": kind, "source": "habits", "project_seq": 1, "fingerprint": str(number), "text": said,
        "reason": "", "confidence": 0.6, "created_at": AT, "updated_at": AT, "reinforcement": 2, **changes,
    }  # fmt: skip
    return Candidate(**values)  # type: ignore[arg-type]


def packet(session: str, outcome: str) -> Packet:
    return Packet(
        kind="tool", subject="tests", outcome=outcome, uuid=f"u{session}{outcome}", session_id=session, project_seq=1,
        ordinal=1, at=AT, words=3, state=State(frustration=0.4, energy=0.6, stance="unknown", urgency=0.1),
    )  # fmt: skip


def belief(said: str, number: int, sessions: int = 3) -> Belief:
    return Belief(kind="opinion", subject="", memory=memory(said, number), others=(), turns=4, sessions=sessions)


WAITING = [
    candidate("tests: 2 of the last 8 sessions ended well, 9 of 10 before 2026-02-01", 1, "drift_warning"),
    candidate("Before a commit come the linter and the tests: 2 of 2 times.", 2),
    candidate("The documentation follows a change: in 2 of 70 sessions.", 3, "preference"),
]
LINES = [
    *advisory.list_warnings(WAITING),
    *advisory.list_signals(WAITING),
    *advisory.list_experience(
        [packet("s2-later", "failed"), packet("s2-later", "ok"), packet("s1-early", "ok")], {"s1-early": "checked"}
    ),
    *advisory.list_capabilities(
        [Capability("tests", 0.9, 8, 9, 12, AT, AT, ()), Capability("lint", 0.5, 0, 0, 3, AT, AT, ())]
    ),
    *advisory.list_beliefs([belief("Postgres holds the job queue", 1), belief("One session only", 2, sessions=1)]),
]


def left(max_tokens: int) -> list[str]:
    return [f"{one.part} {one.id}" for one in advisory.judge_lines(LINES, max_tokens=max_tokens) if one.why == "told"]


def test_trimming_goes_as_it_was_agreed() -> None:
    steps: dict[str, list[str]] = {}
    for budget in range(320, 0, -5):
        there = left(budget)
        if not steps or there != list(steps.values())[-1]:
            steps[str(budget)] = there
    assert steps == json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_beliefs_go_first_then_capabilities_then_signals_warnings_last() -> None:
    gone: list[str] = []
    for budget in range(320, 0, -5):
        parts = {one.partition(" ")[0] for one in left(budget)}
        gone += [part for part in advisory.PARTS if part not in parts and part not in gone]
    assert gone == ["belief", "capability", "signal", "experience", "warning"]


@pytest.mark.invariant("The living state displaces nothing that people said, whatever the budget")
def test_it_takes_the_room_that_a_brief_leaves_and_says_nothing_again() -> None:
    said = [Note(id=f"m{number}", text=f"statement {number} of the user") for number in range(12)]
    said.append(Note(id=memory("Postgres holds the job queue", 1).id, text="Postgres holds the job queue"))
    lines = advisory.judge_lines(LINES, max_tokens=300)
    for most in range(40, 600, 20):
        alone = compose.fence("csmd-memory", "notes", [Block(heading="Said", notes=tuple(said))], max_tokens=most)
        both = advisory.append_advisory(alone, lines, max_tokens=most)
        assert both.text.startswith(alone.text) and both.tokens <= most
        assert both.items[: len(alone.items)] == alone.items
        ids = [item.id for item in both.items]
        assert len(ids) == len(set(ids))
    assert len(both.items) > len(alone.items)


@pytest.mark.invariant(
    "No bracket of context gives more than the user allows; the advisory neither orders nor claims without exception"
)
@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("Always run the linter before a commit.", "without exception"),
        ("The cache must be cleared, no matter what.", "without exception"),
        ("Can you add a test for that?", "orders or asks"),
        ("Remove the old parser from the tree.", "orders or asks"),
        ('Asks for tests ("can you add a test?"): in 3 of 9 sessions.', "told"),
        ("The cache is cleared at the end of a run.", "told"),
    ],
)
def test_what_orders_or_holds_without_exception_is_left_out_and_says_why(said: str, why: str) -> None:
    (line,) = advisory.judge_lines([*advisory.list_beliefs([belief(said, 1)])], max_tokens=300)
    assert line.why == why


def test_every_line_says_why_it_is_not_told() -> None:
    many = [Line(part="signal", id=f"c{n}", text=f"pattern {n} was seen") for n in range(20)]
    judged = advisory.judge_lines(many, max_tokens=300, in_context=frozenset({"c0"}))
    assert [one.why for one in judged] == ["told already", "told", "told", *["one of too many"] * 5]
    assert {one.why for one in advisory.judge_lines(many[1:3], max_tokens=10)} == {"over the budget"}


def test_each_block_and_the_whole_say_that_they_are_a_preview() -> None:
    blocks = advisory.make_blocks(advisory.judge_lines(LINES, max_tokens=400))
    assert blocks and all(advisory.LABEL in block.heading for block in blocks)
    made = advisory.render_advisory(blocks, max_tokens=400)
    assert advisory.LABEL in made.text.splitlines()[0] and made.text.endswith("</csmd-advisory>")


def test_what_is_no_memory_is_a_preview_in_a_receipt_and_not_something_forgotten(tmp_path: Path) -> None:
    store = Store(tmp_path / "csmd.db", now="2026-01-01T00:00:00.000Z")
    try:
        reason = f"{advisory.REASON_PREFIX}{advisory.PARTS['experience'].heading}"
        for ident in ("experience:s1", "capability:tests", "c0123456789"):
            found = store.read(lambda rows, ident=ident: receipt_tools.item_json(rows, ident, None, reason=reason))
            assert found == {"state": "preview", "text": ""}
            assert store.read(lambda rows, ident=ident: receipt_tools.item_json(rows, ident, None))["state"] == "gone"
    finally:
        store.close()
