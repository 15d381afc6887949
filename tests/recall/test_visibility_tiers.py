"""How long each tier is put forward: a memory of each, on days and in sessions that pass, at a start and on a match."""

from __future__ import annotations

import pytest

from csmd.capture import project_identity
from csmd.conversation import Project, Turn
from csmd.knowledge import Memory, Provenance
from csmd.memory import confidence
from csmd.recall import brief, prompt, results, visibility
from csmd.store import memories, projects, turns
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import tokens
from csmd.vocabulary import Decay, Gate, Tier

HERE = "/p/alpha"
SAID = "Deployments of the checkout service always wait for the smoke tests on staging"
PROMPT = "why do deployments of the checkout service still hang on staging since yesterday evening?"


def day(number: int) -> str:
    return f"2026-{number // 28 + 1:02}-{number % 28 + 1:02}"


def home(rows: Rows) -> int:
    place = project_identity.identify_directory(HERE)
    return projects.ensure(rows, Project(key=place.key, root=HERE, name=place.name, kind="path"), now=day(0))


def session(store: Store, ident: str, number: int) -> None:
    """A session of the project on a day."""
    turn = Turn(
        uuid=f"t-{ident}", session_id=ident, kind="user", text="hello", at=f"{day(number)}T10:00:00.000Z", cwd=HERE
    )
    store.write(
        lambda rows: turns.add_turn(
            rows, turn, text_hash=tokens.keyed_hash("hello", store.hash_key), host="claude", project=home(rows), path=""
        )
    )


def put(store: Store, tier: Tier, *, decay: Decay = "durable", gate: Gate = "epistemic", pinned: bool = False) -> None:
    """A memory of that tier that session s0 told on the first day, with the thresholds that belief gives it."""

    def write(rows: Rows) -> int:
        place = home(rows)
        at = f"{day(0)}T10:00:00.000Z"
        memory = Memory(
            id=f"m-{tier}", text=SAID, gate=gate, category="decision", type="concept", tier=tier, decay=decay,
            authority="user", origin="stated", confidence=0.8, scope="project", project_seq=place, session_id="s0",
            created_at=at, confirmed_at=at, hot_until=0, warm_until=0, archive_at=0, pinned=pinned,
            provenance=(Provenance(uuid="t-s0", session_id="s0", at=at),),
        )  # fmt: skip
        memory = confidence.set_thresholds(memory, today=projects.active_day(rows, place))
        return memories.insert(rows, memory, text_hash=tokens.keyed_hash(SAID, store.hash_key))

    store.write(write)


def told(store: Store, ident: str) -> str:
    """What a session is told: `start` in its brief, `match` with the prompt, `search` when it searches."""

    def look(rows: Rows) -> str:
        places = visibility.scopes(rows, HERE)
        start = brief.session_brief(rows, places=places, session_id=ident, max_tokens=900, key=store.hash_key)
        # Against the same scope as the prompt: what a fresh context holds is another rule.
        match = prompt.recall(
            rows,
            places=places,
            session_id=ident,
            prompt=PROMPT,
            floor=0.1,
            max_tokens=350,
            max_items=4,
            embed=None,
            key=b"k",
        )
        hits, _ = results.find(rows, "smoke tests on staging", projects=places, kind="memory", limit=5, embed=None)
        return " ".join(
            name for name, found in (("start", start.items), ("match", match.items), ("search", hits)) if found
        )

    return store.read(look)


#: Tier and decay -> what the next session is told, the one after it, and one on the 20th, 32nd, 60th, 150th active day.
GOLDEN = {
    ("session", "ephemeral"): ("start match search", "search", "search", "search", "search", "search"),
    ("session", "durable"): ("start match search", "search", "search", "search", "search", "search"),
    ("daily", "session"): (*["start match search"] * 2, *["start search"] * 4),
    ("daily", "durable"): (*["start match search"] * 5, "start search"),
    ("durable", "durable"): (*["start match search"] * 5, "start search"),
    ("durable", "permanent"): ("start match search",) * 6,
    ("archive", "durable"): ("search",) * 6,
    ("archive", "permanent"): ("search",) * 6,
}


@pytest.mark.invariant("Each tier is put forward as long as its table says")
@pytest.mark.parametrize(("tier", "decay"), GOLDEN)
def test_each_tier_is_put_forward_as_long_as_the_table_says(store: Store, tier: Tier, decay: Decay) -> None:
    session(store, "s0", 0)
    put(store, tier, decay=decay)
    found, last = [], 0
    # Each day the project is active on counts; a session of its own on each of these days asks.
    for number, at in enumerate((0, 1, 20, 32, 60, 150)):
        for between in range(last + 1, at):
            store.write(lambda rows, between=between: projects.record_active_day(rows, home(rows), day(between)))
        last = at
        found.append(told(store, f"n{number}"))
        session(store, f"n{number}", at)
    assert tuple(found) == GOLDEN[tier, decay]


def test_what_lasts_is_matched_beyond_the_days_of_its_tier(store: Store) -> None:
    session(store, "s0", 0)
    put(store, "daily", gate="correction")
    for between in range(1, 100):
        store.write(lambda rows, between=between: projects.record_active_day(rows, home(rows), day(between)))
    session(store, "n1", 100)
    assert told(store, "n2") == "start match search"


def test_what_is_pinned_is_told_whatever_its_tier_unless_it_is_archived(store: Store) -> None:
    session(store, "s0", 0)
    put(store, "daily", pinned=True)
    session(store, "n1", 90)
    assert told(store, "n2").startswith("start")


def test_its_own_session_is_told_again_what_it_said_before_its_context_was_compacted(store: Store) -> None:
    session(store, "s0", 0)
    put(store, "session")
    session(store, "n1", 1)
    assert told(store, "n1x") == "search"
    assert told(store, "s0") == "search", "it stands in its context"
    store.write(
        lambda rows: rows.run(
            "insert into events (id, host, name, session_id, stream, source, at) values "
            "('e', 'claude', 'session_start', 's0', 's0', 'compact', :at)",
            at=f"{day(1)}T12:00:00.000Z",
        )
    )
    assert told(store, "s0") == "start match search"
