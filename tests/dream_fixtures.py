"""Memories of which a dream finds something to do, as values and in a store, and a dream from begin to end."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace

from hypothesis import strategies as st
from memory_factory import memory

from csmd.conversation import Project
from csmd.dream import steps
from csmd.dream.actions import DreamPlan, Fact, Snapshot
from csmd.dream.consolidation import plan_project
from csmd.knowledge import Memory, Provenance, Statement
from csmd.memory import remember
from csmd.store import dreams, projects
from csmd.store.core import Store, run_to_end
from csmd.store.sqlite import Rows

#: What says the same in other words, more of the same, something else, or the opposite.
SAID = (
    "The order cache is kept in Redis",
    "the order cache is kept in Redis.",
    "We keep the order cache in Redis",
    "Order caches are kept in Redis",
    "The order cache is kept in Redis, keyed by cart",
    "The order cache is kept in Redis, keyed by cart and currency",
    "The order cache is kept in Redis, except in tests",
    "The order cache is kept in Memcached instead of Redis",
    "The order cache is not kept in Redis",
    "Tests run with make check",
    "We run the tests with make check",
    "Retry failed uploads 3 times",
    "Retry failed uploads 5 times",
    "The release branch is cut on Tuesdays",
    "The release branch is cut on Thursdays",
    "Reviews go to Sarah before they go to the release branch",
)
DAYS = tuple(f"2026-01-{day:02}" for day in range(1, 29))


def plan(snapshot: Snapshot) -> tuple[DreamPlan, Snapshot]:
    """What a dream does in one project, and the snapshot that it leaves."""
    return run_to_end(plan_project(snapshot))


def at(day: int, second: int = 0) -> str:
    return f"{DAYS[day]}T10:00:{second:02}.000Z"


@st.composite
def memories(draw: st.DrawFn) -> list[Memory]:
    """Memories of one project and of what holds around it, some alive, some superseded, in any state of age."""
    found: list[Memory] = []
    said = draw(st.lists(st.sampled_from(SAID), unique=True, min_size=1, max_size=7))
    for number, text in enumerate(said):
        days = sorted(draw(st.lists(st.integers(0, 27), min_size=1, max_size=3, unique=True)))
        sources = tuple(
            Provenance(
                uuid=f"u{number}-{day}",
                session_id=f"s{day}",
                at=at(day, number),
                role="confirms" if place else "states",
            )
            for place, day in enumerate(days)
        )
        authority = draw(st.sampled_from(("user", "assistant")))
        pinned = draw(st.sampled_from((False, False, False, True)))
        tier = "durable" if pinned else draw(st.sampled_from(("daily", "durable", "session")))
        category = draw(st.sampled_from(("decision", "fact", "preference", "plan")))
        decay = "permanent" if pinned else draw(st.sampled_from(("durable", "session")))
        around = draw(st.sampled_from((1, 1, 1, 0)))
        one = memory(
            f"m{number}", text, authority=authority, category=category, tier=tier, decay=decay, pinned=pinned,
            confidence=draw(st.sampled_from((0.3, 0.8, 0.9, 0.95))), project_seq=around, scope="project" if around else "global",
            gate=draw(st.sampled_from(("epistemic", "epistemic", "correction"))), provenance=sources, created_at=sources[0].at,
            confirmed_at=sources[-1].at, session_id=sources[0].session_id,
            origin=draw(st.sampled_from(("stated", "stated", "model_saved", "inferred"))) if authority == "assistant" else "stated",
        )  # fmt: skip
        found.append(one)
    older = draw(st.integers(0, len(found)))
    if older < len(found) - 1:
        found[older] = replace(found[older], superseded_by=found[-1].id, project_seq=1, scope="project")
    return found


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """A project with memories, facts and what people have decided."""
    found = draw(memories())
    passed = draw(st.sampled_from((0, 5, 40, 120)))
    later = tuple(f"2027-{1 + day // 28:02}-{1 + day % 28:02}" for day in range(passed))
    empty = Snapshot(
        project_seq=1,
        everywhere=0,
        now="2027-12-01T00:00:00.000Z",
        memories={},
        days={0: DAYS + later, 1: DAYS + later},
    )
    held = {one.id: empty.aged(one) for one in found}
    ids = sorted(held)
    return replace(
        empty,
        memories=held,
        injected=frozenset(draw(st.lists(st.tuples(st.sampled_from([f"s{day}" for day in range(28)]), st.sampled_from(ids)), max_size=3))),
        near=frozenset((one, other) for one in ids for other in ids if one < other),
        unmerged=frozenset(draw(st.lists(st.tuples(st.sampled_from(ids), st.sampled_from(ids)), max_size=1))),
        brought_back=dict.fromkeys(draw(st.lists(st.sampled_from(ids), max_size=1)), "2027-06-01T00:00:00.000Z"),
        facts=tuple(draw(st.lists(st.sampled_from(FACTS), max_size=2, unique=True))),
    )  # fmt: skip


FACTS = (
    Fact(
        kind="convention", fingerprint="convention:commit", text="Commit messages begin with a verb: 9 of 10.",
        project_seq=1, seen=9, total=10, sessions=6, confidence=0.8, evidence=("f1", "f2"),
    ),
    Fact(
        kind="files", fingerprint="files:a.py", text="When `a.py` changes, so does `test_a.py`: in 3 of 4 sessions.",
        project_seq=1, seen=3, total=4, sessions=5, confidence=0.6, evidence=("f3", "f4", "f5"),
    ),
    Fact(
        kind="command", fingerprint="command:test", text="Tests run with `make`, 4 of 5 times.", project_seq=1, seen=4,
        total=5, sessions=3, confidence=0.7, evidence=("f6", "f7"),
    ),
)  # fmt: skip


# --- a store


def save_memory(
    rows: Rows, said: str, *, key: bytes, day: int, number: int, project: str = "alpha", **changes: object
) -> str:
    """Has a user ask to remember something on a day in a project; the memory's id."""
    now = at(day, number % 60)
    home = projects.ensure(rows, Project(key=project, root=f"/p/{project}", name=project, kind="path"), now=now)
    projects.record_active_day(rows, home, now)
    statement = {
        "gate": "epistemic",
        "category": "decision",
        "confidence": 0.8,
        "authority": "user",
        "reasons": ("remember",),
        **changes,
    }
    source = Provenance(uuid=f"cli:{project}-{day}-{number}", session_id=f"s{day}", at=now)
    return remember.remember(
        rows, Statement(text=said, **statement), source, project=home, origin="stated", key=key  # type: ignore[arg-type]
    )[0]  # fmt: skip


def talk(store: Store, seed: int, *, days: Sequence[int] = range(28), most: int = 3) -> None:
    """Has people and assistants say some of SAID in two projects over a month."""
    chance = random.Random(seed)

    def write(rows: Rows) -> None:
        for day in days:
            for number in range(chance.randrange(most + 1)):
                save_memory(
                    rows, chance.choice(SAID), key=store.hash_key, day=day, number=number,
                    project=chance.choice(("alpha", "beta")), authority=chance.choice(("user", "assistant")),
                    category=chance.choice(("decision", "plan", "preference")), confidence=chance.choice((0.7, 0.9)),
                )  # fmt: skip

    store.write(write)


def act(store: Store, days: Iterable[str], *, project: str = "alpha") -> None:
    """Has a project be active on further days."""

    def write(rows: Rows) -> None:
        home = projects.ensure(rows, Project(key=project, root=f"/p/{project}", name=project, kind="path"), now=at(0))
        for day in days:
            projects.record_active_day(rows, home, f"{day}T10:00:00.000Z")

    store.write(write)


def dream(store: Store, *, now: str, facts: steps.Facts | None = None) -> int:
    """A dream from begin to end; how many actions it did."""
    begun = store.write(lambda rows: dreams.begin(rows, why="test", sessions=0, now=now))
    done = run_to_end(steps.carry_out_everywhere(store, begun, now=now, key=store.hash_key, facts=facts or {}))
    store.write(lambda rows: dreams.end(rows, begun.seq, state="done", now=now))
    return done
