"""What becomes of a sentence: its gate, category, scope, decay and tier, from the one table tests/data/kept.txt."""

from __future__ import annotations

from pathlib import Path

import pytest

from csmd.conversation import Project
from csmd.extraction import classifier
from csmd.knowledge import Memory, Provenance, Statement
from csmd.memory import confidence, remember
from csmd.store import memories, projects
from csmd.store.core import Store
from csmd.store.sqlite import Rows

TABLE = Path(__file__).resolve().parent.parent / "data" / "kept.txt"
NAMES = ("gate", "category", "scope", "decay", "tier")
ROWS = [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


def keep(store: Store, text: str, *, session: str = "s1", confidence: float | None = None, day: int = 1) -> Memory:
    """The memory that a user's sentence becomes, or confirms."""
    classified = classifier.classify(text, speaker="user")
    sure = classified.confidence if confidence is None else confidence
    statement = Statement(
        text=text,
        gate=classified.gate,
        category=classified.category,
        confidence=sure,
        authority="user",
        reasons=classified.reasons,
    )
    at = f"2026-03-{day:02d}T10:00:00.000Z"

    def write(rows: Rows) -> Memory:
        project = projects.ensure(rows, Project(key="p", root="/p", name="payments", kind="path"), now=at)
        source = Provenance(uuid=f"{text}{session}", session_id=session, at=at)
        ident, _ = remember.remember(rows, statement, source, project=project, origin="stated", key=store.hash_key)
        memory = memories.by_id(rows, ident)
        assert memory is not None
        return memory

    return store.write(write)


def check(store: Store, row: list[str]) -> None:
    *wanted, text = row
    kept = keep(store, text)
    values = [getattr(kept, name) for name in NAMES]
    assert [value for value, wish in zip(values, wanted, strict=True) if wish != "-"] == [
        value for value in wanted if value != "-"
    ]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[-1])
def test_a_sentence_is_kept_as_the_table_says(store: Store, row: list[str]) -> None:
    check(store, row)


def test_what_is_said_in_a_second_session_and_is_sure_becomes_durable(store: Store) -> None:
    text = "The frontend is a Svelte application"
    assert keep(store, text, confidence=0.88).tier == "daily"
    assert keep(store, text, confidence=0.88).tier == "daily", "the same turn confirms nothing"
    assert keep(store, text, session="s2").tier == "durable"


def test_what_is_less_sure_than_nine_tenths_stays_daily_in_a_second_session(store: Store) -> None:
    text = "let's go with sqlite for the cache because it needs no server"
    keep(store, text, confidence=0.8)
    assert keep(store, text, session="s2").tier == "daily"


def test_what_is_for_a_day_is_cold_two_active_days_later(store: Store) -> None:
    kept = keep(store, "I'm debugging the payment timeout today")

    def today(rows: Rows) -> int:
        return projects.active_day(rows, kept.project_seq, on="2026-03-01")

    day = store.read(today)
    limits = {"hot_until": kept.hot_until, "warm_until": kept.warm_until}
    assert confidence.classify_attention(today=day, **limits) != "COLD"
    assert confidence.classify_attention(today=day + 2, **limits) == "COLD"
