"""Packets are stored with what is known of their state, and with what is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from csmd.model import Packet, State
from csmd.store import candidates, migrate, projects, turns
from csmd.store.core import Store
from csmd.store.sqlite import Rows

KNOWN = State(frustration=0.3, energy=0.7, stance="objects", urgency=0.0)
UNKNOWN = State(frustration=None, energy=None, stance="unknown", urgency=None)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "csmd.db", now="2026-01-01T00:00:00.000Z")
    yield opened
    opened.close()


def put(rows: Rows, given: Any) -> None:
    project = projects.ensure(rows, given.project("shop"), now=given.now)
    turn = given.turn("u1", "Ship it.", session="s1", second=1)
    turns.add_turn(rows, turn, text_hash=given.hash("Ship it."), host="claude", project=project, path="/s1")
    made = [
        Packet(
            kind="order", subject=subject, outcome="asked", uuid="u1", session_id="s1", project_seq=project, ordinal=1,
            at=turn.at, words=2, state=state,
        )
        for subject, state in (("known", KNOWN), ("unknown", UNKNOWN))
    ]  # fmt: skip
    assert candidates.put_packets(rows, made) == 2


def states(rows: Rows) -> dict[str, State]:
    return {one.subject: one.state for one in candidates.latest_packets(rows, projects=None, limit=9)}


def test_a_state_comes_back_with_what_is_unknown(store: Store, given: Any) -> None:
    store.write(lambda rows: put(rows, given))
    assert store.read(states) == {"known": KNOWN, "unknown": UNKNOWN}


def test_states_that_an_older_version_guessed_are_unknown_after_the_upgrade(store: Store, given: Any) -> None:
    upgrade = next(Path(migrate.__file__).parent.glob("migrations/*_unknown_states.sql")).read_text()

    def write(rows: Rows) -> None:
        put(rows, given)
        rows.run(upgrade)

    store.write(write)
    assert set(store.read(states).values()) == {UNKNOWN}
