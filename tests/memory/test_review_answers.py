"""A person's answers: what each does, that undo is exact, and that what was dropped does not come back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_factory import memory_in

from csmd.briefs import BriefItem
from csmd.conversation import Project
from csmd.errors import BadInput, CsmdError
from csmd.knowledge import Candidate, Evidence, Link, Memory, Provenance, Statement
from csmd.memory import remember, review_answers, supersession
from csmd.memory.undo import undo_answer
from csmd.store import (
    belief_changes,
    candidates,
    failures,
    journal,
    memories,
    memory_links,
    memory_snapshots,
    project_merges,
    projects,
    purge,
    receipts,
    tombstones,
)
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import tokens

NOW = "2026-03-01T10:00:00.000Z"
EARLIER = "2026-02-01T10:00:00.000Z"
LATER = "2026-03-02T10:00:00.000Z"
SAID = (
    "Use Postgres for the job queue because of LISTEN/NOTIFY",
    "The exporter writes its files below var/export",
    "Releases are tagged only after the changelog names them",
)
#: What is compared: everything that an answer may touch but row keys and the notes of what was done.
STATE = (
    f"select id, text, {', '.join(memory_snapshots.COLUMNS)}, twin_of > 0 from memories order by id",
    "select m.id, p.uuid, p.session_id, p.at, p.role from provenance p join memories m on m.seq = p.memory_seq order by 1, 2",
    (
        "select f.id, t.id, l.relationship, l.weight, l.created_at from links l join memories f on f.seq = l.from_seq "
        "join memories t on t.seq = l.to_seq order by 1, 2, 3"
    ),
    "select n.id, i.memory_id, i.score from injection_items i join injections n on n.seq = i.injection_seq order by 1, 2",
    "select id, status from candidates order by id",
    "select kind, hash, part_of, authority, created_at, again_at from tombstones order by 1, 2, 3",
    "select rowid from memories_fts where memories_fts match 'postgres' and rowid not in (select seq from memories)",
)


def project(rows: Rows) -> int:
    return projects.ensure(rows, Project(key="alpha", root="/p/alpha", name="alpha", kind="path"), now=NOW)


def remembered(store: Store, said: str, uuid: str, *, at: str = NOW, pinned: bool = False, **changes: Any) -> str:
    values: dict[str, Any] = {
        "text": said, "gate": "epistemic", "category": "decision", "confidence": 0.8, "authority": "assistant", **changes,
    }  # fmt: skip
    return store.write(
        lambda rows: remember.remember(
            rows, Statement(**values), Provenance(uuid=uuid, session_id="s1", at=at), project=project(rows),
            origin="stated", key=store.hash_key, pinned=pinned,
        )[0]
    )  # fmt: skip


def read(store: Store, ident: str) -> Memory:
    found = store.read(lambda rows: memories.by_id(rows, ident))
    assert found is not None, ident
    return found


def candidate(kind: str, *ids: str, said: str = "A release is made in three steps", **changes: Any) -> Candidate:
    values: dict[str, Any] = {
        "id": f"c{kind}", "kind": kind, "source": "scan", "project_seq": 1, "fingerprint": kind, "text": said,
        "reason": "seen 4 times", "confidence": 0.8, "created_at": NOW, "updated_at": NOW, "status": "needs_review",
        "memory_ids": ids, "evidence": (Evidence(uuid="u1", session_id="s1", at=NOW),), **changes,
    }  # fmt: skip
    return Candidate(**values)


def put(store: Store, one: Candidate) -> str:
    return store.write(lambda rows: candidates.put_candidate(rows, one))


def answer(
    store: Store, ident: str, verb: review_answers.Verb, *, said: str = "", other: str = "", at: str = LATER
) -> journal.ChangeSet:
    def write(rows: Rows) -> journal.ChangeSet:
        asked = review_answers.ReviewAnswer(
            verb=verb, uuid=f"cli:{ident}{verb}{at}", at=at, key=store.hash_key, text=said,
            other=memories.by_id(rows, other) if other else None,
        )  # fmt: skip
        if ident.startswith("c"):
            found = candidates.by_id(rows, ident)
            assert found is not None
            return review_answers.record_candidate_answer(rows, found, asked)
        memory = memories.by_id(rows, ident)
        assert memory is not None
        return review_answers.record_memory_answer(rows, memory, asked)

    return store.write(write)


def undo(store: Store, one: journal.ChangeSet) -> None:
    store.write(lambda rows: undo_answer(rows, one, now=LATER, key=store.hash_key))


def changes(store: Store, ident: str) -> list[belief_changes.Change]:
    return store.read(lambda rows: belief_changes.list_changes(rows, ident))


def state(store: Store) -> list[Any]:
    return [store.read(lambda rows, sql=sql: rows.all(sql)) for sql in STATE]  # type: ignore[misc]


@pytest.fixture
def known(store: Store) -> list[str]:
    """Three memories, the first told to a session and superseding the third, with a link between the others."""
    found = [remembered(store, said, f"u{number}") for number, said in enumerate(SAID)]

    def write(rows: Rows) -> None:
        third = memories.by_id(rows, found[2])
        assert third is not None
        memories.update_belief(rows, replace(third, superseded_by=found[0]))
        memory_links.add_link(
            rows, Link(from_id=found[0], to_id=found[1], relationship="elaborates", weight=0.5), now=NOW
        )
        receipts.add_receipt(
            rows, receipt_id="r1", session_id="s9", event="prompt", project=1, at=NOW, tokens=9, text_hash="",
            items=[BriefItem(id=found[0], score=0.7, reason="matches")],
        )  # fmt: skip

    store.write(write)
    return found


def test_what_is_kept_is_stated_by_the_user_and_surer(store: Store) -> None:
    ident = remembered(store, SAID[0], "u1", confidence=0.7)
    answer(store, ident, "keep")
    kept = read(store, ident)
    assert (kept.authority, kept.origin, kept.confidence) == ("user", "stated", pytest.approx(0.9))
    assert [source.role for source in kept.provenance] == ["states", "confirms"]


def test_a_wording_of_ones_own_takes_the_old_ones_place(store: Store) -> None:
    ident = remembered(store, SAID[0], "u1")
    for said in (f"{SAID[0]}, really", SAID[0].upper(), "The job queue is in Redis"):
        done = answer(store, ident, "edit", said=said)
        new, old = read(store, done.made), read(store, ident)
        assert (new.text, new.authority, new.origin, new.superseded_by) == (said, "user", "stated", "")
        assert (new.gate, new.category) == (old.gate, old.category)
        assert old.superseded_by == new.id and old.confidence < 0.8
        links = store.read(lambda rows, ident=ident: memory_links.list_links(rows, ident))  # type: ignore[misc]
        assert Link(from_id=ident, to_id=new.id, relationship="superseded_by") in links
        ident = new.id


def test_what_was_dropped_does_not_come_back(store: Store) -> None:
    ident = remembered(store, SAID[0], "u1")
    answer(store, ident, "drop")
    assert remembered(store, SAID[0], "u7") == remembered(store, f"{SAID[0]} today", "u8") == ""
    put(store, candidate("belief"))
    answer(store, "cbelief", "drop")
    assert put(store, candidate("belief", id="c2")) == ""


def test_text_that_was_forgotten_is_refused_with_the_reason_and_changes_nothing(store: Store) -> None:
    gone, ident = remembered(store, SAID[0], "u1"), remembered(store, SAID[1], "u2")
    answer(store, gone, "drop")
    before = state(store)
    with pytest.raises(CsmdError, match="was forgotten or purged"):
        answer(store, ident, "edit", said=SAID[0])
    assert state(store) == before


@pytest.mark.invariant(
    "Only a person answers in review; an answer taken back leaves everything as it was, or is refused"
)
@pytest.mark.parametrize(
    ("verb", "said"), [("keep", ""), ("edit", "Never mind: everything is in one file"), ("drop", ""), ("supersede", "")]
)
@pytest.mark.parametrize("kind", ["memory", "belief", "near_duplicate", "stale", "drift_warning"])
@pytest.mark.parametrize("has_later_images", [True, False], ids=["recorded now", "carried over"])
def test_undo_makes_everything_what_it_was(
    store: Store, known: list[str], kind: str, verb: review_answers.Verb, said: str, has_later_images: bool
) -> None:
    ident = known[0]
    if kind != "memory":
        put(store, candidate(kind, *known[:2]))
        ident = f"c{kind}"
    before = state(store)
    if kind == "drift_warning" and verb == "supersede":
        with pytest.raises(BadInput):
            answer(store, ident, verb)
        assert state(store) == before
        return
    done = answer(store, ident, verb, said=said, other=known[1] if kind != "belief" else "")
    assert state(store) != before
    if not has_later_images:  # as the migration to the journal leaves an answer
        version = "select '{\"version\": ' || coalesce(max(version), 0) || '}' from memories where id = item"
        store.write(
            lambda rows: rows.run(
                f"update changed_rows set text_after = '', more_after = '', state_after = ({version})"
            )
        )
    undo(store, done)
    assert state(store) == before
    if ident in known:
        assert any(
            change.change == "undo" for change in store.read(lambda rows: belief_changes.list_changes(rows, ident))
        )
    with pytest.raises(CsmdError, match="undone already"):
        again = store.read(lambda rows: journal.find_last_answer(rows, projects=None, item_id=done.id))
        assert again is not None
        undo(store, again)


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["keep", "edit", "drop", "supersede"])), max_size=5))
def test_answers_taken_back_one_by_one_leave_nothing(
    tmp_path_factory: Any, plan: list[tuple[int, review_answers.Verb]]
) -> None:
    store = Store(tmp_path_factory.mktemp("plan") / "csmd.db", now=NOW)
    try:
        found = [remembered(store, said, f"u{number}") for number, said in enumerate(SAID)]
        states, done = [state(store)], []
        for number, (which, verb) in enumerate(plan):
            try:
                done.append(
                    answer(
                        store,
                        found[which],
                        verb,
                        said=f"wording {number} of it",
                        other=found[which - 1],
                        at=f"2026-04-0{number + 1}",
                    )
                )
            except (CsmdError, AssertionError):  # superseded or dropped by an answer before, or in a ring
                assert state(store) == states[-1]
                continue
            states.append(state(store))
        while done:
            assert states.pop() == state(store)
            undo(store, done.pop())
        assert state(store) == states[0]
    finally:
        store.close()


@pytest.mark.parametrize("verb", ["keep", "edit"])
def test_undo_gives_back_what_the_answers_memory_lowered_and_what_it_put_before_a_person(
    store: Store, verb: review_answers.Verb
) -> None:
    lowered = remembered(store, "Use npm in the web client", "u1", at=EARLIER)
    pinned = remembered(store, "We use npm in the web client package", "u2", at=EARLIER, pinned=True)
    says = "Use pnpm in the web client, not npm"
    put(store, candidate("belief", said=says if verb == "keep" else "Something else altogether"))
    before, audit = state(store), changes(store, lowered)
    done = answer(store, "cbelief", verb, said=says)
    assert read(store, lowered).superseded_by == done.made
    assert any(pinned in one.memory_ids for one in store.read(lambda rows: candidates.waiting(rows, projects=None)))
    undo(store, done)
    assert state(store) == before
    assert store.read(lambda rows: belief_changes.latest_change(rows, lowered)) is None
    assert [one for one in changes(store, lowered) if not one.undone_at and one.change != "undo"] == audit
    assert remembered(store, says, "u9", at="2026-03-05T10:00:00.000Z", authority="user") != ""
    assert read(store, lowered).superseded_by, "the rule reads what it wrote"


def test_what_was_dropped_and_is_back_has_its_history_and_what_it_superseded_still_is(store: Store) -> None:
    old = remembered(store, "Use npm in the web client", "u1", at=EARLIER)
    new = remembered(store, "Use pnpm in the web client, not npm", "u2")
    put(store, candidate("stale", old, new))
    before, audit = state(store), changes(store, old)
    assert [one.change for one in audit] == ["superseded"]
    for ident in (old, new):
        done = answer(store, ident, "drop")
        undo(store, done)
        assert state(store) == before
        assert [one for one in changes(store, old) if one.change not in ("undo", "drop")] == audit
    store.write(lambda rows: supersession.undo(rows, read(store, old), by="person", now=LATER))
    assert (read(store, old).confidence, read(store, old).superseded_by) == (0.8, "")


def test_what_was_dropped_and_is_back_is_found_by_how_it_was_reported_and_has_what_speaks_against_it(
    store: Store,
) -> None:
    ident = remembered(store, SAID[0], "u1")

    def noted(rows: Rows) -> None:
        seq = memory_in(rows, ident).seq
        failures.add_symptom(rows, seq, uuid="u5", at=NOW, text="the cache is stale", fingerprint="f")
        failures.add_refutation(rows, seq, uuid="u6", at=NOW, reason="not it", lowered=0.2)

    def told(rows: Rows) -> list[Any]:
        seq = memory_in(rows, ident).seq
        return [
            failures.list_symptoms(rows, [seq])[seq],
            failures.list_refutations(rows, seq),
            failures.read_confidence_loss(rows, seq),
        ]

    store.write(noted)
    before = store.read(told)
    undo(store, answer(store, ident, "drop"))
    assert store.read(told) == before


def test_a_memory_that_is_superseded_anew_says_what_did_it_until_then(store: Store) -> None:
    old, first, second = (remembered(store, said, f"u{n}") for n, said in enumerate((*SAID[:2], "Eat at noon"), 1))
    for other in (first, second):
        answer(store, old, "supersede", other=other)
    assert read(store, old).superseded_by == second
    kept = [one for one in changes(store, old) if one.change == "superseded"]
    assert [bool(one.undone_at) for one in kept] == [True, False]
    assert first in kept[-1].reason


def test_an_answer_of_which_a_purge_took_a_part_is_not_undone_by_half(store: Store) -> None:
    store.write(project)
    put(store, candidate("belief"))
    done = answer(store, "cbelief", "keep")
    store.write(lambda rows: rows.run("delete from changed_rows"))
    with pytest.raises(CsmdError, match="purged or forgotten since"):
        undo(store, done)


def test_a_supersession_whose_figures_a_purge_took_is_lifted_with_what_is_left(store: Store) -> None:
    old, new = remembered(store, SAID[0], "u1"), remembered(store, SAID[1], "u2")
    answer(store, old, "supersede", other=new)
    store.write(lambda rows: rows.run("update belief_changes set before = '[purged]', after = '[purged]'"))
    was = read(store, old).confidence
    store.write(lambda rows: supersession.undo(rows, read(store, old), by="person", now=LATER))
    assert (read(store, old).confidence, read(store, old).superseded_by) == (was, "")
    assert store.read(lambda rows: memory_links.list_links(rows, old)) == []


def test_what_has_changed_since_is_not_undone(store: Store) -> None:
    ident = remembered(store, SAID[0], "u1")
    done = answer(store, ident, "keep")
    remembered(store, SAID[0], "u9")
    before = state(store)
    with pytest.raises(CsmdError, match="a source of it was added or removed since"):
        undo(store, done)
    assert state(store) == before


@pytest.mark.invariant(
    "What is forgotten in a project leaves its own pages, by whatever its lines are known, and no other one's; a drop that is taken back lifts itself only"
)
def test_a_drop_that_is_taken_back_leaves_what_was_forgotten_before_it(store: Store) -> None:
    def in_beta(rows: Rows, at: str) -> str:
        beta = projects.ensure(rows, Project(key="beta", root="/p/beta", name="beta", kind="path"), now=NOW)
        said = Statement(text=SAID[0], gate="epistemic", category="decision", confidence=0.8, authority="user")
        source = Provenance(uuid=f"b{at}", session_id="s2", at=at)
        return remember.remember(rows, said, source, project=beta, origin="stated", key=store.hash_key)[0]

    def kept_out(rows: Rows, at: str) -> bool:
        return tombstones.is_statement_forgotten(
            rows, SAID[0], correction=False, authority="user", project=1, at=at, key=store.hash_key
        )  # fmt: skip

    gone = remembered(store, SAID[0], "u1", at=EARLIER)
    store.write(lambda rows: remember.forget(rows, memory_in(rows, gone), key=store.hash_key, now=NOW, by_person=True))
    ident = store.write(lambda rows: in_beta(rows, NOW))
    store.write(lambda rows: project_merges.merge_projects(rows, 1, 2))
    before = state(store)
    done = answer(store, ident, "drop")
    assert store.read(lambda rows: kept_out(rows, LATER))
    undo(store, done)
    assert state(store) == before
    assert store.read(lambda rows: kept_out(rows, EARLIER)), "turns of then do not bring it back"
    assert not store.read(lambda rows: kept_out(rows, LATER)), "what was said after it stands"


def test_a_drop_that_is_taken_back_leaves_what_was_forgotten_elsewhere_at_the_same_time(store: Store) -> None:
    def in_beta(rows: Rows) -> str:
        beta = projects.ensure(rows, Project(key="beta", root="/p/beta", name="beta", kind="path"), now=NOW)
        said = Statement(text=SAID[0], gate="epistemic", category="decision", confidence=0.8, authority="user")
        source = Provenance(uuid="b1", session_id="s2", at=EARLIER)
        return remember.remember(rows, said, source, project=beta, origin="stated", key=store.hash_key)[0]

    def kept_out(rows: Rows) -> list[bool]:
        return [
            tombstones.is_statement_forgotten(
                rows, SAID[0], correction=False, authority="user", project=one, at=EARLIER, key=store.hash_key
            )
            for one in (1, 2)
        ]

    here, there = remembered(store, SAID[0], "u1", at=EARLIER), store.write(in_beta)
    done = answer(store, here, "drop")
    at = str(store.read(lambda rows: rows.value("select max(created_at) from tombstones")))
    store.write(lambda rows: remember.forget(rows, memory_in(rows, there), key=store.hash_key, now=at, by_person=True))
    assert store.read(kept_out) == [True, True]
    undo(store, done)
    assert store.read(kept_out) == [False, True]


def test_of_two_that_say_nearly_the_same_the_one_that_stays_is_not_kept_out(store: Store) -> None:
    first, second = remembered(store, SAID[0], "u1", authority="user"), remembered(store, SAID[1], "u2")
    store.write(
        lambda rows: rows.run(
            "update memories set text = :text, text_hash = :hash where id = :id", text=f"{SAID[0]} always",
            hash=tokens.keyed_hash(f"{SAID[0]} always", store.hash_key), id=second,
        )
    )  # fmt: skip
    put(store, candidate("near_duplicate", second, first))
    answer(store, "cnear_duplicate", "drop")
    assert store.read(lambda rows: memories.by_id(rows, second)) is None
    assert remembered(store, f"{SAID[0]} always", "u8") == first, "it confirms the one that stayed"


def test_a_purge_leaves_nothing_to_undo(store: Store) -> None:
    ident = remembered(store, SAID[0], "u1")
    done = answer(store, ident, "drop")

    def purging(rows: Rows) -> None:
        tombstones.purge_text(rows, "Redis", key=store.hash_key, now="2026-03-03")
        purge.apply_tombstones(rows, store.hash_key)

    store.write(purging)
    assert store.read(lambda rows: rows.value("select count(*) from changed_rows")) == 0
    with pytest.raises(CsmdError, match="purged or forgotten since"):
        undo(store, done)


def test_no_memory_is_put_in_the_place_of_one_that_took_its_own(store: Store) -> None:
    one, other = remembered(store, SAID[0], "u1"), remembered(store, SAID[1], "u2")
    answer(store, one, "supersede", other=other)
    for old, new in ((other, one), (one, one)):
        with pytest.raises(BadInput, match="cannot supersede"):
            answer(store, old, "supersede", other=new)


def test_every_column_of_a_memory_comes_back(store: Store) -> None:
    columns = {row[1] for row in store.read(lambda rows: rows.all("pragma table_info(memories)"))}
    assert columns - set(memory_snapshots.COLUMNS) == {"seq", "id", "text", "twin_of"}


NARROW = ("The cache listens on port 6379", "The cache listens on port 6380 in production")


@pytest.mark.invariant(
    "What may be replaced is asked of a person once; an assistant's word ends nothing that the user said"
)
@pytest.mark.parametrize(
    ("verb", "holding"),
    [
        ("keep", {*NARROW}),
        ("supersede", {NARROW[1]}),
        ("drop", {NARROW[0]}),
        ("edit", {"The cache listens on port 6380 everywhere"}),
    ],
)
def test_whether_the_newer_replaces_the_older_is_asked_once_answered_and_taken_back(
    store: Store, verb: review_answers.Verb, holding: set[str]
) -> None:
    def held() -> set[str]:
        found = store.read(lambda rows: memories.list_memories(rows, projects=None))
        return {one.text for one in found if not one.superseded_by}

    old, new = (
        remembered(store, said, f"u{at[:10]}", at=at, authority="user")
        for said, at in zip(NARROW, (EARLIER, NOW), strict=True)
    )
    (asked,) = store.read(lambda rows: candidates.waiting(rows, projects=None))
    assert asked.memory_ids == (old, new)
    before = state(store)
    done = answer(store, asked.id, verb, said="The cache listens on port 6380 everywhere" if verb == "edit" else "")
    assert held() == holding
    remembered(store, f"{NARROW[0]}!", "u8", at=LATER, authority="user") if verb == "keep" else None
    assert store.read(lambda rows: candidates.waiting(rows, projects=None)) == []
    if verb != "keep":
        undo(store, done)
        assert state(store) == before


def test_an_answer_is_taken_back_also_after_a_session_used_the_memory(store: Store) -> None:
    ident = remembered(store, SAID[0], "u1", confidence=0.7)
    done = answer(store, ident, "keep")
    store.write(lambda rows: remember.use(rows, memory_in(rows, ident), at="2026-03-05T10:00:00.000Z"))
    undo(store, done)
    memory = read(store, ident)
    assert (memory.authority, memory.confidence, memory.used_at[:10]) == ("assistant", 0.7, "2026-03-05")


def test_what_was_said_to_hold_with_another_may_be_superseded_by_it_once_that_is_taken_back(store: Store) -> None:
    old, new = (
        remembered(store, said, f"u{at[:10]}", at=at, authority="user")
        for said, at in zip(NARROW, (EARLIER, NOW), strict=True)
    )
    (question,) = store.read(lambda rows: candidates.waiting(rows, projects=None))
    done = answer(store, question.id, "keep")
    assert store.read(lambda rows: belief_changes.list_refused_successors(rows, old)) == {new}
    undo(store, done)
    assert store.read(lambda rows: belief_changes.list_refused_successors(rows, old)) == frozenset()
