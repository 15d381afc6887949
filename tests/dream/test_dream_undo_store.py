"""Undo over a real store: everything is what it was, what changed since stays and says why, nothing that is gone comes back."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from journal_fixtures import (
    ACTS,
    LAST,
    LATER,
    NOW,
    SAID,
    believed,
    dream,
    dump,
    found_by_words,
    save_memory,
    sound,
    undo,
    without_version,
)

from csmd.errors import BadInput, CsmdError
from csmd.memory import merging, supersession
from csmd.store import memories, memory_deletion, memory_snapshots, tombstones
from csmd.store.core import Store
from csmd.store.sqlite import Rows


def confirm(rows: Rows, key: bytes, one: str) -> None:
    memory = memories.by_id(rows, one)
    if memory is not None:
        save_memory(rows, key, memory.text, f"since-{one}", at=LAST)


def pin(rows: Rows, key: bytes, one: str) -> None:
    memory = memories.by_id(rows, one)
    if memory is not None and memory.is_alive:
        memories.update_belief(
            rows, supersession.refresh_thresholds(rows, replace(memory, pinned=True, decay="permanent", tier="durable"))
        )


def forget(rows: Rows, key: bytes, one: str) -> None:
    memory = memories.by_id(rows, one)
    if memory is not None:
        memory_deletion.delete_memory(rows, memory)
        tombstones.forget(rows, memory.text, correction=False, by="user", key=key, now=LAST)


def take_back(rows: Rows, key: bytes, one: str) -> None:
    """A person takes a merge or an archiving back by hand."""
    memory = memories.by_id(rows, one)
    if memory is not None:
        with contextlib.suppress(BadInput):
            merging.undo(rows, memory, now=LAST, by_person=True)


SINCE = {"confirm": confirm, "pin": pin, "forget": forget, "take back": take_back}
some = st.integers(0, len(SAID) - 1)
doing = st.lists(st.tuples(st.sampled_from(sorted(ACTS)), some, some), min_size=1, max_size=7)
numbers = itertools.count()
quick = settings(
    max_examples=5, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip


@pytest.mark.invariant(
    "Undo of a dream makes everything what it was, and search finds what it found; what changed since stays and is told"
)
@quick
@given(first=doing, second=doing)
def test_undo_makes_everything_what_it_was(tmp_path: Path, first: Any, second: Any) -> None:
    store = Store(tmp_path / f"{next(numbers)}.db", now=NOW)
    try:
        idents = believed(store)
        states = [(dump(store), found_by_words(store))]
        done = []
        for at, acts in ((LATER, first), (LAST, second)):
            done.append(dream(store, [(kind, idents[a], idents[b]) for kind, a, b in acts], at=at))
            states.append((dump(store), found_by_words(store)))
        assert sound(store) == {}
        for one in reversed(done):
            was = states.pop()
            if was == states[-1]:
                continue
            undone = undo(store, one.id)
            assert undone.skipped == ()
            assert (dump(store), found_by_words(store)) == states[-1]
            assert sound(store) == {}
    finally:
        store.close()


@pytest.mark.invariant(
    "Undo of a dream makes everything what it was, and search finds what it found; what changed since stays and is told"
)
@quick
@given(acts=doing, since=st.lists(st.tuples(st.sampled_from(sorted(SINCE)), some), min_size=1, max_size=3))
def test_what_changed_since_keeps_its_newer_value_and_is_told(tmp_path: Path, acts: Any, since: Any) -> None:
    store = Store(tmp_path / f"{next(numbers)}.db", now=NOW)
    try:
        idents = believed(store)
        was = {row[0]: row for row in dump(store)[0]}
        done = dream(store, [(kind, idents[a], idents[b]) for kind, a, b in acts])
        for kind, number in since:
            store.write(lambda rows, kind=kind, one=idents[number]: SINCE[kind](rows, store.hash_key, one))  # type: ignore[misc]
        between = {row[0]: row for row in dump(store)[0]}
        try:
            undone = undo(store, done.id)
        except CsmdError:  # nothing was done
            return
        kept = {one.item for one in undone.skipped}
        is_now = {row[0]: row for row in dump(store)[0]}
        assert kept.isdisjoint(undone.items)
        for ident in {*is_now, *between}:
            if ident in kept:
                assert is_now.get(ident) == between.get(ident), "it keeps its newer value"
            elif ident in undone.items:
                assert without_version(is_now.get(ident)) == without_version(was.get(ident)), "it is what it was"
        assert sound(store) == {}
    finally:
        store.close()


def test_an_image_that_an_older_csmd_made_is_given_back_and_leaves_alone_what_that_did_not_know(tmp_path: Path) -> None:
    store = Store(tmp_path / "csmd.db", now=NOW)
    try:
        ident = believed(store)[4]
        was = store.read(lambda rows: memory_snapshots.take_snapshots(rows, [ident]))[0]
        more = {name: value for name, value in was.details.items() if name != "scenes"}
        old = was._replace(details=more)
        scene = store.read(lambda rows: rows.all("select * from scenes"))
        store.write(lambda rows: memory_snapshots.restore(rows, [(old, old)], at=LATER))
        assert scene and store.read(lambda rows: rows.all("select * from scenes")) == scene
        new = was._replace(details={**more, "scenes": []})
        store.write(lambda rows: memory_snapshots.restore(rows, [(new, was)], at=LATER))
        assert store.read(lambda rows: rows.all("select * from scenes")) == [], "what the act brought goes with it"
    finally:
        store.close()
