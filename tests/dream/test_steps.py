"""Dreams over a real store: what is carried out is what was planned, and a dream of what a dream has left does nothing."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from dream_fixtures import FACTS, SAID, act, dream, plan, save_memory, talk
from memory_factory import memory_of
from session_writer import Talk

from csmd.conversation import Project
from csmd.dream import consolidation, dream_undo
from csmd.dream import steps as stage
from csmd.dream.actions import Action, Fact, Snapshot
from csmd.knowledge import Memory
from csmd.memory import merging, remember, supersession, upkeep
from csmd.recall import results
from csmd.store import (
    belief_changes,
    candidates,
    dream_scopes,
    dreams,
    journal,
    memories,
    memory_deletion,
    memory_invariants,
    near_memories,
    projects,
    tombstones,
    vectors,
    workspaces,
)
from csmd.store.core import Store, run_to_end
from csmd.store.sqlite import Rows

NOW = "2026-03-01T10:00:00.000Z"
LATER = "2026-03-09T10:00:00.000Z"


def look_in(rows: Rows) -> dream_scopes.DreamScope:
    key = projects.seq_of(rows, Project(key="alpha", root="/p/alpha", name="alpha", kind="path"))
    return next(one for one in dream_scopes.list_scopes(rows) if one.seq == key)


def look(store: Store) -> Snapshot:
    return run_to_end(stage.read_snapshot(store.read, store.read(look_in), now=NOW, facts={}))


def say(store: Store, said: str, *, day: int, number: int = 0, **changes: object) -> str:
    return store.write(lambda rows: save_memory(rows, said, key=store.hash_key, day=day, number=number, **changes))  # type: ignore[arg-type]


def doubled(store: Store) -> tuple[str, str]:
    """Two memories that say the same: what is said again would confirm the first, so the words are changed afterwards."""
    one = say(store, SAID[0], day=1)
    return one, double(store, one, SAID[1], number=1)


def double(store: Store, one: str, said: str, *, number: int) -> str:
    other = say(store, f"Somebody told {one} something else", day=2, number=number)
    store.write(lambda rows: rows.run("update memories set text = :said where id = :id", said=said, id=other))
    return other


def dump(store: Store) -> dict[str, list[tuple[object, ...]]]:
    """Every row but of dreams' own tables and the indexes."""

    def tables(rows: Rows) -> dict[str, list[tuple[object, ...]]]:
        names = [
            str(name)
            for (name,) in rows.all("select name from sqlite_schema where type = 'table' order by name")
            if not str(name).startswith(("dream", "sqlite_")) and "_fts" not in str(name)
        ]
        return {name: sorted(rows.all(f"select * from {name}"), key=repr) for name in names}

    return store.read(tables)


@pytest.mark.invariant(
    "A plan depends on neither row keys, ids nor order of arrival; what is carried out is what it said"
)
@pytest.mark.parametrize("seed", range(4))
def test_what_is_carried_out_leaves_what_the_plan_said(store: Store, seed: int) -> None:
    talk(store, seed)
    act(store, [f"2026-02-{day:02}" for day in range(1, 29)])
    doubled(store)
    before = look(store)
    left = plan(before)[1]
    assert dict(left.memories) != dict(before.memories)
    assert dream(store, now=NOW) > 0
    after = look(store)
    assert dict(after.memories) == dict(left.memories)
    assert dict(after.superseded_at) == dict(left.superseded_at)
    assert store.read(lambda rows: memory_invariants.find_violations(rows, store.hash_key)) == {}


@pytest.mark.invariant(
    "Ten dreams over unchanged input change nothing after the first; 400 lose nothing that a user stated for good"
)
def test_ten_dreams_over_unchanged_input_change_nothing_after_the_first(store: Store) -> None:
    talk(store, 7)
    act(store, [f"2026-02-{day:02}" for day in range(1, 29)])
    doubled(store)
    facts = counted(store)
    assert dream(store, now=NOW, facts=facts) > 0
    first = dump(store)
    for number in range(9):
        assert dream(store, now=f"2026-03-1{number}T10:00:00.000Z", facts=facts) == 0
    assert dump(store) == first
    assert run_to_end(stage.plan_everywhere(store.read, now=NOW, facts=facts)).actions == ()


def test_the_dry_run_is_what_is_done_and_writes_nothing(store: Store) -> None:
    talk(store, 3)
    doubled(store)
    before = dump(store)
    found = run_to_end(stage.plan_everywhere(store.read, now=NOW, facts={}))
    assert dump(store) == before and found.actions and found.tallies
    dream(store, now=NOW)
    done = store.read(lambda rows: rows.all("select kind, reason from change_sets order by seq"))
    assert done == [(one.kind, one.reason) for one in found.actions]


def test_a_merge_is_journalled_and_what_was_merged_is_found_still(store: Store) -> None:
    one, other = doubled(store)
    assert dream(store, now=NOW) == 1
    assert (memory_of(store, other).tier, memory_of(store, other).superseded_by) == ("archive", one)
    changes = store.read(lambda rows: belief_changes.list_changes(rows, other))
    assert [(row.change, row.by) for row in changes] == [("merge", "dream")]
    items = store.read(lambda rows: rows.all("select item from changed_rows order by item"))
    assert {str(item) for (item,) in items} >= {one, other}
    assert one in found(store, SAID[1]), "a search shows what says the same once"


@pytest.mark.invariant("What was merged holds: it is found by its own words, and its turns count as what stays")
def test_what_was_merged_holds_and_is_found_by_words_that_only_it_has(store: Store) -> None:
    one = say(store, "Generated files sit in the directory build", day=1)
    other = double(store, one, "We decided that generated files live in the folder build", number=1)
    assert dream(store, now=NOW) == 1
    merged, stays = (other, one) if memory_of(store, other).tier == "archive" else (one, other)
    assert found(store, "which folder did we decide on")[0] == stays
    uuids = [source.uuid for source in memory_of(store, merged).provenance]
    assert {source.uuid for source in memory_of(store, stays).provenance} >= set(uuids)
    places = [memory_of(store, merged).project_seq]
    assert store.read(lambda rows: belief_changes.list_superseded_seqs(rows, places, limit=9)) == []


def test_what_moved_since_it_was_planned_is_planned_anew_and_what_was_forgotten_is_left(store: Store) -> None:
    _, other = doubled(store)
    (action,) = plan(look(store))[0].actions
    assert (action.kind, action.memory and action.memory.id) == ("merge", other)
    say(store, SAID[0], day=5)  # confirms the one that stays

    def carried(rows: Rows, found: Action) -> tuple[int, int]:
        begun = dreams.begin(rows, why="test", sessions=0, now=NOW)
        return stage.carry_out(rows, begun.seq, [found], now=NOW, key=store.hash_key)

    assert store.write(lambda rows: carried(rows, action)) == (0, 1)
    assert memory_of(store, other).tier != "archive"
    (again,) = plan(look(store))[0].actions
    store.write(lambda rows: tombstones.forget(rows, SAID[1], correction=False, by="user", key=store.hash_key, now=NOW))
    assert store.write(lambda rows: carried(rows, again)) == (0, 0)
    assert store.write(lambda rows: rows.value("select count(*) from change_sets")) == 0


def test_a_dream_that_is_stopped_leaves_what_is_done_and_the_next_one_does_the_rest(store: Store) -> None:
    for number, said in enumerate((SAID[0], SAID[9], SAID[11], SAID[15])):
        double(store, say(store, said, day=1, number=3 * number), f"{said.lower()}!", number=3 * number + 1)
    begun = store.write(lambda rows: dreams.begin(rows, why="test", sessions=0, now=NOW))
    steps = stage.carry_out_everywhere(store, begun, now=NOW, key=store.hash_key, facts={})
    while not (done := store.read(lambda rows: sum(journal.count_actions(rows, begun.seq).values()))):
        next(steps)
    steps.close()
    assert done == stage.WRITE_BATCH < 4, "a few actions to a write"
    assert dream(store, now=LATER) == 4 - done
    assert dream(store, now=LATER) == 0


@pytest.mark.invariant("What was taken back or undone is not dreamt again")
def test_what_somebody_took_back_is_not_done_again(store: Store) -> None:
    _, other = doubled(store)
    dream(store, now=NOW)
    store.write(lambda rows: merging.undo(rows, _of(rows, other), now=LATER, by_person=True))
    assert dream(store, now=LATER) == 0
    assert memory_of(store, other).tier != "archive"


@pytest.mark.invariant("What was taken back or undone is not dreamt again")
def test_a_dream_that_was_undone_left_nothing_and_is_not_dreamt_again(store: Store, tmp_path: Path) -> None:
    talk(store, 3)
    act(store, [f"2026-02-{day:02}" for day in range(1, 29)])
    doubled(store)
    facts = counted(store)
    before = look(store)
    assert dream(store, now=NOW, facts=facts) > 3
    kinds = {str(kind) for (kind,) in store.read(lambda rows: rows.all("select kind from change_sets"))}
    assert {"merge", "archive", "raise"} <= kinds
    (ident,) = [one.id for one in store.read(lambda rows: dreams.list_dreams(rows, limit=5))]
    undone = run_to_end(dream_undo.undo_dreams(store, ident, home=tmp_path, now=LATER, key=store.hash_key))
    assert undone.skipped == ()
    assert {key: replace(one, version=0) for key, one in look(store).memories.items()} == {
        key: replace(one, version=0) for key, one in before.memories.items()
    }
    assert dream(store, now=LATER, facts=facts) == 0


def test_what_holds_everywhere_takes_in_a_projects_own_and_its_plan_is_the_same_dry(store: Store) -> None:
    everywhere = say(store, "I always prefer tabs over spaces", day=1, gate="behavioral", category="preference")
    assert memory_of(store, everywhere).scope == "user"
    for number, project in enumerate(("alpha", "beta")):
        other = say(store, f"Somebody told {project} of it", day=2, number=number, project=project)
        store.write(
            lambda rows, other=other: rows.run(  # type: ignore[misc]
                "update memories set text = 'I always prefer tabs over spaces!' where id = :id", id=other
            )
        )
    dry = run_to_end(stage.plan_everywhere(store.read, now=NOW, facts={})).actions
    assert [(one.kind, one.other and one.other.version) for one in dry] == [("merge", 1), ("merge", 2)]
    assert dream(store, now=NOW) == 2
    assert memory_of(store, everywhere).version == 3 and len(memory_of(store, everywhere).provenance) == 3
    assert memory_of(store, everywhere).confidence == dry[1].confidence


@pytest.mark.invariant(
    "What the user asked for in three projects holds everywhere, once and until it is undone; an exception stays one"
)
def test_what_was_asked_for_in_four_projects_is_one_memory_everywhere_until_it_is_undone(
    store: Store, tmp_path: Path
) -> None:
    said = ("Never deploy on Fridays", "Don't deploy on Fridays", "Never deploy on Fridays because nobody is on call")
    own = [
        say(store, said[number % 3], day=number + 1, project=project, gate="behavioral", category="preference")
        for number, project in enumerate(("alpha", "beta", "gamma", "delta"))
    ]
    assert {memory_of(store, ident).scope for ident in own} == {"project"}
    before = {ident: memory_of(store, ident) for ident in own}
    dry = run_to_end(stage.plan_everywhere(store.read, now=NOW, facts={})).actions
    assert [one.kind for one in dry] == ["lift"] + ["merge"] * 4
    assert dream(store, now=NOW) == 5
    assert [(one.kind, one.reason) for one in dry] == store.read(
        lambda rows: rows.all("select kind, reason from change_sets order by seq")
    )
    (everywhere,) = {memory_of(store, ident).superseded_by for ident in own}
    one = memory_of(store, everywhere)
    assert (one.text, one.scope, one.authority, len(one.provenance)) == (said[2], "user", "user", 4)
    assert one.confidence > before[own[2]].confidence
    assert found(store, said[1])[0] == everywhere, "by the words of what went into it, too"
    assert dream(store, now=LATER) == 0
    assert store.read(lambda rows: memory_invariants.find_violations(rows, store.hash_key)) == {}
    ident = store.read(lambda rows: dreams.list_dreams(rows, limit=5))[-1].id
    assert run_to_end(dream_undo.undo_dreams(store, ident, home=tmp_path, now=LATER, key=store.hash_key)).skipped == ()
    assert {key: replace(memory_of(store, key), version=0) for key in own} == {
        key: replace(one, version=0) for key, one in before.items()
    }
    assert store.read(lambda rows: memories.by_id(rows, everywhere)) is None
    assert dream(store, now=LATER) == 0, "it was taken back"
    outlive(store)
    assert dream(store, now="2027-03-09T10:00:00.000Z") == 0, "whether the journal still tells of it or not"
    gone = memory_of(store, own[0])
    store.write(lambda rows: remember.forget(rows, gone, key=store.hash_key, now=LATER, by_person=False))
    assert dream(store, now="2027-03-09T10:00:00.000Z") == 0, "nor of the three that are left"


@pytest.mark.invariant(
    "What the user asked for in three projects holds everywhere, once and until it is undone; an exception stays one"
)
@pytest.mark.parametrize(
    "since", ["it is said everywhere", "two of three are gone", "a wall was raised", "two are the assistant's"]
)
def test_what_is_to_hold_everywhere_and_is_other_by_then_is_planned_anew(store: Store, since: str) -> None:
    own = [
        say(store, "Never deploy on Fridays", day=day, project=name, gate="behavioral", category="preference")
        for day, name in enumerate(("alpha", "beta", "gamma"), start=1)
    ]
    (action,) = run_to_end(stage.plan_everywhere(store.read, now=NOW, facts={})).actions[:1]
    assert action.created is not None and action.memory is not None
    made, others = action.created, [ident for ident in own if ident != action.memory.id]
    place = memory_of(store, others[0]).project_seq

    def change(rows: Rows) -> None:
        if since == "it is said everywhere":
            memories.insert(rows, replace(made, provenance=made.provenance[:1]), text_hash="said meanwhile")
        elif since == "a wall was raised":
            workspaces.join(rows, workspaces.ensure(rows, "acme", now=NOW), place)
        for ident in others:
            if since == "two of three are gone":
                memory_deletion.delete_memory(rows, _of(rows, ident))
            elif since == "two are the assistant's":
                memories.update_belief(rows, replace(_of(rows, ident), authority="assistant"))

    def carried(rows: Rows) -> tuple[int, int]:
        begun = dreams.begin(rows, why="test", sessions=0, now=NOW)
        return stage.carry_out(rows, begun.seq, [action], now=NOW, key=store.hash_key)

    store.write(change)
    assert store.write(carried) == (0, 1)
    store.write(lambda rows: dreams.fail_interrupted(rows, now=NOW))
    dream(store, now=LATER)
    kinds = store.read(lambda rows: [str(kind) for (kind,) in rows.all("select kind from change_sets")])
    assert "lift" not in kinds


def outlive(store: Store) -> None:
    """Forgets what dreams did, as it is when their journal was kept long enough."""
    known = store.read(lambda rows: [one.seq for one in dreams.list_dreams(rows, limit=dreams.NO_LIMIT)])
    while store.write(lambda rows: dreams.delete_actions(rows, known, limit=50)):
        pass


@pytest.mark.invariant("What only a person can tell is asked once, with both lines, and waits until it is answered")
def test_what_only_a_person_can_tell_waits_in_the_review_until_it_is_answered(store: Store, tmp_path: Path) -> None:
    # A question is asked when the newer one is said; what was said before csmd asked so is left to a dream.
    old = say(store, "We use Postgres for the job queue", day=1, authority="assistant")
    new = say(store, "We decided against Postgres", day=5, authority="assistant")
    near = frozenset({tuple(sorted((old, new)))})
    store.write(lambda rows: rows.run("delete from candidates"))

    def ask(rows: Rows) -> int:
        seen = replace(
            run_to_end(stage.read_snapshot(lambda read: read(rows), look_in(rows), now=NOW, facts={})), near=near
        )  # type: ignore[arg-type]
        begun = dreams.begin(rows, why="test", sessions=0, now=NOW)
        done = stage.carry_out(rows, begun.seq, plan(seen)[0].actions, now=NOW, key=store.hash_key)[0]
        dreams.end(rows, begun.seq, state="done", now=NOW)
        return done

    assert store.write(ask) == 1
    (waiting,) = store.read(lambda rows: candidates.waiting(rows, projects=None, limit=9))
    assert (waiting.status, waiting.memory_ids) == ("needs_review", (old, new))
    assert waiting.text == '"We use Postgres for the job queue" or "We decided against Postgres"'
    act(store, ["2026-04-01"])
    while upkeep.step(store, now=LATER):
        pass
    assert [one.id for one in store.read(lambda rows: candidates.waiting(rows, projects=None, limit=9))] == [waiting.id]
    assert store.write(ask) == 0
    asked = store.read(lambda rows: dreams.list_dreams(rows, limit=5))[-1].id
    run_to_end(dream_undo.undo_dreams(store, asked, home=tmp_path, now=LATER, key=store.hash_key))
    assert store.read(lambda rows: candidates.waiting(rows, projects=None, limit=9)) == []
    outlive(store)
    assert store.write(ask) == 0, "nor again when it was undone, whether the journal still tells of it or not"


def test_what_is_near_in_meaning_is_compared_and_what_was_overturned_gives_way(store: Store) -> None:
    old = say(store, SAID[13], day=1)
    new = double(store, old, SAID[14], number=1)  # said in other words when it was looked for
    far = say(store, SAID[9], day=3)
    assert dream(store, now=NOW) == 0, "three words in common are not enough"

    def embed(rows: Rows) -> None:
        model = vectors.ensure_model(rows, "m", 4, now=NOW)
        for ident, vector in ((old, b"\x7f\x7f\x00\x00"), (new, b"\x7f\x7e\x00\x01"), (far, b"\x81\x81\x00\x81")):
            memory = _of(rows, ident)
            vectors.add_vectors(
                rows, "memory", model, [(memory.seq, memory.project_seq, 0, 9, vector)], reached=memory.seq
            )

    store.write(embed)
    assert dream(store, now=NOW) == 1
    assert memory_of(store, old).superseded_by == new
    assert memory_of(store, old).confidence < 0.8
    assert store.read(lambda rows: memory_invariants.find_violations(rows, store.hash_key)) == {}


def test_the_pairs_that_are_near_are_those_that_comparing_all_vectors_finds(store: Store) -> None:
    chance, length, size = random.Random(5), 127 / 0.25, 384
    centres = [[chance.gauss(0, 1) for _ in range(size)] for _ in range(8)]
    stored: dict[int, list[int]] = {}
    for number in range(60):
        memory = memory_of(store, say(store, f"note {number} of the crawler", day=1, number=number))
        blend = 0.4 + 0.6 * chance.random()  # likenesses of two of a centre from 0.3 to 1
        raw = [blend * centre + (1 - blend) * chance.gauss(0, 1) for centre in centres[number % len(centres)]]
        norm = sum(value * value for value in raw) ** 0.5
        stored[memory.seq] = [max(-127, min(127, round(length * value / norm))) for value in raw]

    def embed(rows: Rows) -> None:
        model = vectors.ensure_model(rows, "m", size, now=NOW)
        for seq, vector in stored.items():
            part = seq, 0, 0, 9, bytes(value % 256 for value in vector)
            vectors.add_vectors(rows, "memory", model, [part], reached=seq)

    def like(one: list[int], other: list[int]) -> float:
        return 1 - sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) / (2 * length**2)

    store.write(embed)
    expected: set[tuple[int, int]] = set()
    for seq, vector in stored.items():
        likeness = sorted(((like(vector, other), at) for at, other in stored.items() if at != seq), reverse=True)
        near = [at for share, at in likeness if share >= near_memories.MIN_SIMILARITY][: near_memories.MAX_NEAREST]
        expected |= {(min(seq, at), max(seq, at)) for at in near}
    place = store.read(look_in)
    every = sorted(stored)
    found = run_to_end(stage.compare_vectors(store.read, every, every))
    assert (
        found == expected == store.read(lambda rows: near_memories.find_near_pairs(rows, place.seq, every))
        and len(found) > 20
    )
    assert run_to_end(stage.compare_vectors(store.read, every[:1], every)) <= found


def test_a_scope_in_which_nothing_changed_is_not_compared_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []

    find_related = consolidation.find_related

    def spy(snapshot: Snapshot) -> Any:
        compared.extend({snapshot.project_seq} & {alpha, beta})
        return (yield from find_related(snapshot))

    monkeypatch.setattr(consolidation, "find_related", spy)
    old, elsewhere = say(store, SAID[13], day=1), say(store, SAID[9], day=3, project="beta")
    alpha, beta = memory_of(store, old).project_seq, memory_of(store, elsewhere).project_seq
    assert dream(store, now=NOW) == 0
    assert sorted(compared) == sorted((alpha, beta))
    compared.clear()
    assert dream(store, now=NOW) == 0
    assert compared == []
    new = double(store, old, SAID[14], number=1)
    assert dream(store, now=NOW) == 0
    assert compared == [alpha]
    compared.clear()

    def embed(rows: Rows) -> None:
        model = vectors.ensure_model(rows, "m", 4, now=NOW)
        for ident, vector in ((old, b"\x7f\x7f\x00\x00"), (new, b"\x7f\x7e\x00\x01")):
            memory = _of(rows, ident)
            vectors.add_vectors(
                rows, "memory", model, [(memory.seq, memory.project_seq, 0, 9, vector)], reached=memory.seq
            )

    store.write(embed)
    assert dream(store, now=NOW) == 1, "vectors are something new, too"
    compared.clear()
    assert dream(store, now=NOW) == 0
    assert compared == [alpha], "what the dream itself changed is looked at once more"
    compared.clear()
    act(store, [f"2026-{month:02}-{day:02}" for month in range(2, 10) for day in range(1, 29)])
    assert dream(store, now=LATER) > 0, "what has aged goes to the archive"
    assert compared == []


def test_a_scope_is_compared_again_where_vectors_came_while_it_was_compared(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, other = doubled(store)
    place = store.read(look_in)

    def moved_meanwhile(rows: Rows, **_: Any) -> tuple[int, int]:
        rows.run("update memories set text = :said where id = :id", said=SAID[9], id=other)
        model = vectors.ensure_model(rows, "m", 4, now=NOW)
        vectors.add_vectors(
            rows, "memory", model, [(_of(rows, other).seq, place.seq, 0, 9, b"\x7f\x7f\x00\x00")], reached=9
        )
        return 0, 1

    monkeypatch.setattr(stage, "carry_out", moved_meanwhile)
    assert dream(store, now=NOW) == 0
    assert store.read(lambda rows: dream_scopes.read_compared_digest(rows, place)) == ""
    assert dream(store, now=NOW) == 0
    assert store.read(lambda rows: dream_scopes.read_compared_digest(rows, place)) != ""


def test_a_scope_is_compared_again_by_other_rules(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    say(store, SAID[13], day=1)
    place = store.read(look_in)

    def dreamt() -> str:
        assert dream(store, now=NOW) == 0
        return store.read(lambda rows: dream_scopes.read_compared_digest(rows, place))

    before = dreamt()
    assert dreamt() == before
    assert len(stage.COMPARISON_RULES) == 64
    monkeypatch.setattr(stage, "COMPARISON_RULES", "those of a later csmd")
    assert dreamt() != before


@pytest.mark.parametrize(
    "act_on",
    [lambda rows: journal.purge_actions(rows, b"key", 0), vectors.reset_vectors],
    ids=["a purge", "vectors made anew"],
)
def test_a_scope_is_compared_again_after(store: Store, act_on: Callable[[Rows], object]) -> None:
    say(store, SAID[13], day=1)
    place = store.read(look_in)
    assert dream(store, now=NOW) == 0
    assert len(store.read(lambda rows: dream_scopes.read_compared_digest(rows, place))) == 64
    store.write(act_on)
    assert store.read(lambda rows: dream_scopes.read_compared_digest(rows, place)) == ""


def test_what_superseded_a_memory_and_goes_brings_it_back_out_of_the_archive(store: Store) -> None:
    old = say(store, SAID[13], day=1, authority="assistant")
    new = say(store, SAID[14], day=5)
    assert memory_of(store, old).superseded_by == new
    act(store, [f"2026-{month:02}-{day:02}" for month in (2, 3) for day in range(1, 29)])
    assert dream(store, now=NOW) == 1
    assert memory_of(store, old).tier == "archive"
    store.write(lambda rows: supersession.undo(rows, _of(rows, old), by="person", now=LATER))
    assert (memory_of(store, old).tier, memory_of(store, old).superseded_by) == ("daily", "")
    assert dream(store, now=LATER) == 0


def _of(rows: Rows, ident: str) -> Memory:
    found = memories.by_id(rows, ident)
    assert found is not None
    return found


def test_a_fact_becomes_a_candidate_and_a_memory_where_it_passes(store: Store) -> None:
    say(store, SAID[9], day=1)
    home = counted(store)
    (place,) = home
    assert dream(store, now=NOW, facts=home) == 2
    waiting = store.read(lambda rows: candidates.of_source(rows, "dream", project=place))
    assert {(one.fingerprint, one.status) for one in waiting} == {
        ("convention:commit", "promoted"),
        ("files:a.py", "open"),
    }
    (made,) = [one for one in waiting if one.status == "promoted"]
    memory = memory_of(store, made.memory_ids[0])
    assert (memory.text, memory.category, memory.origin) == (
        "Commit messages begin with a verb.",
        "convention",
        "inferred",
    )
    assert dream(store, now=LATER, facts=home) == 0
    assert store.read(lambda rows: memory_invariants.find_violations(rows, store.hash_key)) == {}


def counted(store: Store) -> dict[int, tuple[Fact, ...]]:
    """FACTS as they would be counted over the store: of turns that are there, each of a session of its own."""
    place = look(store).project_seq
    turns = tuple(Talk(store, f"f{number}").say("user", "go on") for number in range(3))
    return {place: tuple(replace(one, project_seq=place, evidence=turns[: len(one.evidence)]) for one in FACTS)}


USERS = {
    SAID[4]: "decision",
    SAID[9]: "fact",
    SAID[11]: "constraint",
    SAID[13]: "convention",
    SAID[15]: "preference",
    "The staging database is wiped every night": "gotcha",
}
#: The same told again in other words, or with more, in which people will look for it.
AGAIN = (
    "Tests run with make check because the plain runner skips the slow ones",
    "We decided to cut the release branch on Tuesdays",
    "On Tuesdays the release branch is cut",
    "We keep the order cache in Redis, keyed by cart",
    "Remember: the staging database is wiped every night, so that nobody keeps anything there",
)


@pytest.mark.invariant(
    "Ten dreams over unchanged input change nothing after the first; 400 lose nothing that a user stated for good"
)
def test_four_hundred_dreams_lose_nothing_that_a_user_stated_for_good(store: Store) -> None:
    told = {**USERS, **dict.fromkeys(AGAIN, "fact")}
    said = {say(store, text, day=day, category=category): text for day, (text, category) in enumerate(told.items())}
    say(store, "The importer will be rewritten next week", day=3, number=9, category="plan", authority="assistant")

    def dreamt(rows: Rows) -> None:  # one transaction: what is shown is what dreams do, not how long a disk takes
        home = look_in(rows)
        for day in range(400):
            today = (date(2026, 3, 1) + timedelta(days=day)).isoformat()
            if day % 10 == 0:
                projects.record_active_day(rows, home.seq, f"{today}T10:00:00.000Z")
            begun = dreams.begin(rows, why="test", sessions=0, now=f"{today}T03:00:00.000Z")
            seen = run_to_end(
                stage.read_snapshot(lambda read, rows=rows: read(rows), home, now=begun.begun_at, facts={})
            )  # type: ignore[misc]
            found, _ = plan(seen)
            stage.carry_out(rows, begun.seq, found.actions, now=begun.begun_at, key=store.hash_key)
            dreams.end(rows, begun.seq, state="done", now=begun.begun_at)

    store.write(dreamt)
    for ident, text in said.items():
        stands = store.read(lambda rows, ident=ident: belief_changes.find_surviving_memory(rows, _of(rows, ident)))  # type: ignore[misc]
        assert (stands.tier, stands.superseded_by, stands.authority) == ("durable", "", "user")
        assert stands.id in found(store, text)
    kinds = dict(store.read(lambda rows: rows.all("select kind, count(*) from change_sets group by kind")))
    # "We keep the order cache" was confirmed when it was said: kept has the stem of keep.
    assert kinds == {"archive": 1, "merge": 2}, "the assistant's plan, and what was told again"


def found(store: Store, question: str) -> list[str]:
    """The ids of what a search finds."""
    hits, _ = store.read(lambda rows: results.find(rows, question, projects=None, kind="memory", limit=10, embed=None))
    return [hit.id for hit in hits]
