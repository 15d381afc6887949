"""The journal of dreams: what is kept of one, for how long, through kills, purges, uses and merges of projects."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from journal_fixtures import (
    LAST,
    LATER,
    NOW,
    SAID,
    believed,
    dream,
    dump,
    home,
    memory_of,
    save_memory,
    sound,
    undo,
)

from csmd.conversation import Project
from csmd.dream import dream_undo
from csmd.errors import CsmdError
from csmd.memory import remember, supersession
from csmd.privacy.fingerprints import PURGED
from csmd.store import (
    candidates,
    dreams,
    integrity,
    journal,
    memories,
    memory_deletion,
    memory_snapshots,
    project_merges,
    projects,
    purge,
    purge_files,
    stored_pages,
    tombstones,
)
from csmd.store.core import Store, run_to_end
from csmd.store.dreams import Dream
from csmd.store.sqlite import Rows
from csmd.tools.dreams import changes_json

PAGE = "memory/user.md"


def write_page(store: Store, dream_: Dream, text: str | None, path: str = PAGE) -> None:
    """What a dream does to a page: the file, its row and the journal."""
    file = store.path.parent / path
    was = file.read_text() if file.exists() else None
    file.parent.mkdir(exist_ok=True)
    if text is None:
        file.unlink()
    else:
        file.write_text(text)

    def write(rows: Rows) -> None:
        journal.record_file(rows, dream_.seq, reason="new memories", path=path, before=was, after=text, now=LATER)
        dreams.update_page_row(rows, path, text, now=LATER)

    store.write(write)


def kept_of(undone: dream_undo.Undone) -> dict[str, str]:
    return {one.item: one.why for one in undone.skipped}


# --- dreams


def test_only_a_dream_that_is_done_and_stands_counts_as_the_last(store: Store) -> None:
    def write(rows: Rows, state: dreams.State) -> Dream:
        begun = dreams.begin(rows, why="5 new sessions", sessions=5, now=NOW)
        dreams.end(rows, begun.seq, state=state, now=LATER)
        return begun

    done = store.write(lambda rows: write(rows, "done"))
    for state in ("failed", "cancelled"):
        store.write(lambda rows, state=state: write(rows, state))  # type: ignore[misc]
    last = store.read(dreams.find_latest)
    assert last is not None and (last.id, last.sessions, last.ended_at) == (done.id, 5, LATER)
    assert [one.state for one in store.read(lambda rows: dreams.list_dreams(rows, limit=2))] == ["cancelled", "failed"]
    idents = believed(store)
    newest = dream(store, [("archive", idents[2], idents[2])])
    undo(store, newest.id)
    last = store.read(dreams.find_latest)
    assert last is not None and last.id == done.id


def test_only_peoples_own_sessions_are_new_ones(store: Store) -> None:
    def write(rows: Rows) -> None:
        place = home(rows)
        for ident, parent, host, at, turns in [
            ("s1", "", "claude", NOW, 3), ("s2", "", "claude", LAST, 1), ("s3", "s2", "claude", LAST, 1),
            ("s4", "", "probe", LAST, 1), ("s5", "", "claude", LAST, 0),
        ]:  # fmt: skip
            rows.run(
                "insert into sessions (id, parent, host, project_seq, started_at, last_at, turns) "
                "values (:id, :parent, :host, :place, :now, :at, :turns)",
                id=ident, parent=parent, host=host, place=place, now=NOW, at=at, turns=turns,
            )  # fmt: skip

    store.write(write)
    assert store.read(lambda rows: dreams.count_sessions_since(rows, "")) == 2
    assert store.read(lambda rows: dreams.count_sessions_since(rows, LATER)) == 1


def test_an_action_that_changes_nothing_is_none_and_one_that_fails_leaves_nothing(store: Store) -> None:
    idents = believed(store)
    was = dump(store)
    done = dream(store, [("merge", idents[0], idents[0])])
    assert store.read(lambda rows: journal.count_actions(rows, done.seq)) == {}
    with pytest.raises(CsmdError, match="cannot be undone"):
        undo(store, done.id)

    def fails(rows: Rows) -> None:
        def act() -> None:
            memory_deletion.delete_memory(rows, memory_of(rows, idents[0]))
            raise CsmdError("in the middle")

        journal.record_action(
            rows, act, dream=done.seq, kind="archive", project=1, reason="", evidence=[], items=[idents[0]], now=NOW
        )

    with pytest.raises(CsmdError, match="in the middle"):
        store.write(fails)
    assert dump(store) == was


def test_the_journal_goes_when_it_is_old_and_the_last_dream_stays_known(store: Store) -> None:
    idents = believed(store)
    first, second = (dream(store, [("archive", idents[n], idents[n])], at=at) for n, at in ((2, NOW), (3, LATER)))

    def forget(*some: Dream, most: int = 50) -> list[int]:
        seqs = [one.seq for one in some]
        return list(iter(lambda: store.write(lambda rows: dreams.delete_actions(rows, seqs, limit=most)), 0))

    store.write(lambda rows: dreams.set_states(rows, [1], "undoing", now=LATER))
    assert forget(first) == [], "what is being undone needs its journal"
    store.write(lambda rows: dreams.set_states(rows, [1], "done", now=LATER))
    assert forget(first, most=1) == [1, 1]
    assert [one.id for one in store.read(lambda rows: dreams.list_dreams(rows, limit=9))] == [second.id]
    with pytest.raises(CsmdError, match="no dream"):
        undo(store, first.id)
    assert forget(second) == [1]
    last = store.read(dreams.find_latest)
    assert last is not None and last.id == second.id
    with pytest.raises(CsmdError, match="has expired"):
        undo(store, second.id)


def test_an_older_dream_is_undone_with_every_newer_one_and_the_preview_says_so(store: Store) -> None:
    idents = believed(store)
    was = dump(store)
    first = dream(store, [("merge", idents[0], idents[1])], at=LATER)
    second = dream(store, [("archive", idents[1], idents[1])], at=LAST)
    assert [one.id for one in store.read(lambda rows: dream_undo.plan_undo(rows, first.id))] == [second.id, first.id]
    undone = undo(store, first.id)
    assert [(one.id, one.state, one.undone_at) for one in undone.dreams] == [
        (second.id, "undone", LAST), (first.id, "undone", LAST),
    ]  # fmt: skip
    assert undone.skipped == () and set(idents[:2]) <= set(undone.items)
    assert dump(store) == was
    with pytest.raises(CsmdError, match="already undone"):
        undo(store, first.id)


def test_a_diff_tells_each_action_with_its_reason_and_both_sides(store: Store) -> None:
    idents = believed(store)
    done = dream(store, [("supersede", idents[0], idents[1])])
    write_page(store, done, "one\n")
    action, page = store.read(lambda rows: list(changes_json(rows, done.id)))
    told = (action["kind"], action["project"], action["reason"], action["evidence"])
    assert told == ("supersede", "alpha", "why", [idents[0]])
    old = next(one for one in action["touched"] if one["item"] == idents[0])
    before, after = old["before"], old["after"]
    assert (before["confidence"], before["superseded_by"], before["links"]) == (0.8, "", [])
    assert (after["superseded_by"], after["links"]) == (idents[1], [f"superseded_by {idents[1]}"])
    assert after["confidence"] < 0.8 and before["text"] == after["text"] == SAID[0]
    assert (page["files"][0]["path"], page["files"][0]["diff"].splitlines()[-1]) == (PAGE, "+one")
    assert store.read(lambda rows: journal.count_actions(rows, done.seq)) == {"page": 1, "supersede": 1}


# --- kills

CHILD = """
import sys
sys.path.insert(0, {tests!r})
import journal_fixtures
journal_fixtures.dream_slowly({path!r})
"""


@pytest.mark.invariant(
    "A dream killed after any batch leaves a sound store and can be undone; an undo that is killed is finished"
)
@pytest.mark.parametrize("batches", [1, 3])
def test_a_dream_that_is_killed_after_any_batch_has_failed_and_can_be_undone(tmp_path: Path, batches: int) -> None:
    path = tmp_path / "csmd.db"
    store = Store(path, now=NOW)
    believed(store)
    was = dump(store)
    store.close()
    script = CHILD.format(tests=str(Path(__file__).parent.parent), path=str(path))
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for _ in range(batches):
            assert child.stdout.readline() == b"batch\n"
        child.kill()
    store = Store(path, now=NOW)
    try:
        assert store.write(integrity.check_database) == []
        assert dump(store) != was
        assert sound(store) == {}
        assert store.write(lambda rows: dreams.fail_interrupted(rows, now=LAST)) == 1
        (broken,) = store.read(lambda rows: dreams.list_dreams(rows, limit=9))
        assert (broken.state, broken.error) == ("failed", dreams.KILLED_ERROR)
        assert store.read(dreams.find_latest) is None
        assert undo(store, broken.id).skipped == ()
        assert dump(store) == was
    finally:
        store.close()


@pytest.mark.invariant(
    "A dream killed after any batch leaves a sound store and can be undone; an undo that is killed is finished"
)
def test_undoing_that_is_killed_between_rows_and_files_is_finished_at_the_next_start(store: Store) -> None:
    idents = believed(store)
    was, done = dump(store), dream(store, [("merge", idents[0], idents[1])])
    write_page(store, done, "one\n")
    write_page(store, done, "two\n", "memory/topics.md")
    place = store.path.parent
    run_to_end(dream_undo.undo_rows(store, done.id, home=place, now=LAST, key=store.hash_key))
    (place / "memory/topics.md").unlink()  # this far it came
    assert run_to_end(dream_undo.finish_undo(store, home=place, now=LAST)) == 1
    assert not (place / PAGE).exists()
    assert dump(store) == was
    (one,) = store.read(lambda rows: dreams.list_dreams(rows, limit=9))
    assert one.state == "undone"
    assert run_to_end(dream_undo.finish_undo(store, home=place, now=LAST)) == 0


@pytest.mark.invariant("No write of a dream or its undo is long: few actions, few tags, one file")
def test_undoing_takes_few_actions_to_a_write_and_one_that_was_killed_goes_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dream_undo, "BATCH_ACTIONS", 1)
    idents = believed(store)
    was = dump(store)
    acts = [("merge", idents[0], idents[1]), ("archive", idents[2], idents[2]), ("strengthen", idents[3], idents[4])]
    first, second = dream(store, acts[:1], at=LATER), dream(store, acts[1:], at=LAST)
    write, left = store.write, [2]

    def killed(act: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return write(act)

    monkeypatch.setattr(store, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        undo(store, first.id)
    monkeypatch.setattr(store, "write", write)
    assert dump(store) != was and sound(store) == {}
    assert [one.state for one in store.read(lambda rows: dreams.list_dreams(rows, limit=9))] == ["done", "done"]
    undone = undo(store, first.id)
    assert [one.id for one in undone.dreams] == [second.id, first.id] and undone.skipped == ()
    assert dump(store) == was


# --- files


def test_the_line_of_what_was_forgotten_since_does_not_come_back_with_its_page(store: Store) -> None:
    idents = believed(store)
    done = dream(store, [])
    lines = [f"- one thing <!-- m:{idents[0]} -->\n", "- another <!-- m:m0123456789 -->\n"]
    write_page(store, done, "".join(lines))
    second = dream(store, [("archive", idents[3], idents[3])])
    write_page(store, second, lines[0])
    assert undo(store, second.id).skipped == ()
    assert (store.path.parent / PAGE).read_text() == lines[0]
    assert store.read(lambda rows: rows.value("select text from pages")) == lines[0]


def test_files_are_what_they_were_and_one_that_was_edited_since_stays(store: Store) -> None:
    place = store.path.parent
    idents = believed(store)
    first = dream(store, [("archive", idents[2], idents[2])], at=NOW)
    for path in (PAGE, "memory/projects.md", "memory/daily/2026-03-01.md"):
        (place / path).parent.mkdir(exist_ok=True)
        write_page(store, first, "one\n", path)
    was = dump(store)
    second = dream(store, [("archive", idents[3], idents[3])])
    write_page(store, second, "one\ntwo\n")
    write_page(store, second, "three\n")
    write_page(store, second, "new\n", "memory/new.md")
    write_page(store, second, None, "memory/projects.md")
    undone = undo(store, second.id)
    assert undone.files == ("memory/new.md", "memory/projects.md", PAGE)
    assert undone.skipped == ()
    assert ((place / PAGE).read_text(), (place / "memory/projects.md").read_text()) == ("one\n", "one\n")
    assert not (place / "memory/new.md").exists()
    assert (place / PAGE).stat().st_mode & 0o777 == 0o600
    assert dump(store) == was
    assert store.read(lambda rows: rows.all("select path from pages order by path")) == [("projects.md",), ("user.md",)]
    (place / PAGE).write_text("mine\n")
    assert kept_of(undo(store, first.id)) == {PAGE: "the file was edited since"}
    assert (place / PAGE).read_text() == "mine\n"
    assert not (place / "memory/projects.md").exists()


# --- what comes in between


def test_a_use_is_no_change_of_belief_and_is_not_lost(store: Store) -> None:
    idents = believed(store)
    store.write(lambda rows: remember.use(rows, memory_of(rows, idents[0]), at=LATER))
    was = store.read(lambda rows: memory_of(rows, idents[1]))
    done = dream(store, [("merge", idents[0], idents[1])])
    merged = store.read(lambda rows: memory_of(rows, idents[1]))
    assert merged.used_at == LATER, "it counts as used when the other one was"
    store.write(lambda rows: projects.record_active_day(rows, home(rows), LAST))
    store.write(lambda rows: remember.use(rows, merged, at=LAST))
    assert undo(store, done.id).skipped == ()
    used = store.read(lambda rows: memory_of(rows, idents[1]))
    assert (used.confidence, used.provenance, used.used_at) == (was.confidence, was.provenance, LAST)
    assert store.read(lambda rows: supersession.refresh_thresholds(rows, used)) == used, "its age begins with the use"
    assert sound(store) == {}


def test_a_memory_that_moved_with_its_project_is_what_it_was_where_it_is_now(store: Store) -> None:
    idents = believed(store)
    was = {row[0]: row for row in dump(store)[0]}
    done = dream(store, [("merge", idents[0], idents[1]), ("archive", idents[2], idents[2])])

    def merge(rows: Rows) -> int:
        into = projects.ensure(rows, Project(key="b", root="/p/b", name="beta", kind="path"), now=NOW)
        projects.record_active_day(rows, into, "2026-02-01")
        project_merges.merge_projects(rows, home(rows), into)
        return into

    into = store.write(merge)
    action, *_ = store.read(lambda rows: list(changes_json(rows, done.id)))
    assert action["project"] == "beta"
    assert undo(store, done.id).skipped == ()
    for ident, row in {row[0]: row for row in dump(store)[0]}.items():
        assert row[12] == into
        assert (row[5], row[10], row[21]) == (was[ident][5], was[ident][10], ""), ident
        assert row[18] == was[ident][18] + 1, "the other project has a day more before it"
    assert sound(store) == {}


def test_what_was_made_and_is_believed_by_others_since_stays_with_its_candidate(store: Store) -> None:
    idents = believed(store)
    done = dream(store, [("raise", idents[0], idents[1])])
    (action,) = store.read(lambda rows: journal.list_actions(rows, done.seq))
    made, belief = sorted(
        (row.item for row in store.read(lambda rows: [r.was for r in journal.changed_rows(rows, action)])), reverse=True
    )
    store.write(lambda rows: save_memory(rows, store.hash_key, memory_of(rows, made).text, "u99", at=LAST))
    kept = kept_of(undo(store, done.id))
    assert kept == {
        made: "a source of it was added or removed since", belief: f"{made}, which was made of it, stays",
    }  # fmt: skip
    promoted = store.read(lambda rows: candidates.by_id(rows, belief))
    assert promoted is not None and promoted.status == "promoted"


@pytest.mark.invariant("No undo brings back what was purged or dropped: a purge takes whole actions out of the journal")
def test_what_was_dropped_since_stays_dropped_and_nothing_like_it_comes_back(store: Store) -> None:
    idents = believed(store)
    done = dream(store, [("merge", idents[0], idents[1]), ("archive", idents[2], idents[2])])

    def drop(rows: Rows) -> None:
        memory_deletion.delete_memory(rows, memory_of(rows, idents[1]))
        tombstones.forget(rows, SAID[2], correction=False, by="user", key=store.hash_key, now=LAST)

    store.write(drop)
    kept = kept_of(undo(store, done.id))
    assert kept[idents[0]] == kept[idents[1]] == "it was forgotten or purged since"
    assert kept[idents[2]] == "its text was forgotten since"
    assert store.read(lambda rows: memories.by_id(rows, idents[0])) is None
    assert store.read(lambda rows: memory_of(rows, idents[2])).tier == "archive"


# --- purges


def journal_text(store: Store) -> str:
    def read(rows: Rows) -> str:
        found = rows.all("select * from changed_rows") + rows.all("select * from change_sets")
        return repr(found + rows.all("select * from changed_files"))

    return store.read(read)


def purge_session(rows: Rows, key: bytes, ident: str) -> None:
    rows.run(
        "insert into sessions (id, host, project_seq, started_at, last_at, turns) values (:id, 'claude', 1, :at, :at, 1)",
        id=ident,
        at=NOW,
    )
    tombstones.purge_names(rows, "session", [ident], key=key, now=LAST)
    purge.apply_tombstones(rows, key)


@pytest.mark.invariant("No undo brings back what was purged or dropped: a purge takes whole actions out of the journal")
def test_a_purged_text_takes_the_whole_of_each_action_away_that_could_bring_it_back(store: Store) -> None:
    idents = believed(store)
    done = dream(store, [("merge", idents[0], idents[1]), ("archive", idents[3], idents[3])])
    write_page(store, done, f"- {SAID[0]}\n")
    assert SAID[0] in journal_text(store)

    def write(rows: Rows) -> None:
        tombstones.purge_text(rows, SAID[0], key=store.hash_key, now=LAST)
        purge.apply_tombstones(rows, store.hash_key)

    store.write(write)
    assert SAID[0] not in journal_text(store) and SAID[1] not in journal_text(store)
    undone = undo(store, done.id)
    assert kept_of(undone) == {"": "a purge removed its result"}
    assert undone.items == (idents[3],)
    assert store.read(lambda rows: memory_of(rows, idents[3])).tier != "archive"
    assert store.read(lambda rows: memories.by_id(rows, idents[0])) is None
    first, *_ = store.read(lambda rows: list(changes_json(rows, done.id)))
    assert first["purged"]


def test_a_purged_session_takes_the_actions_and_files_along_that_told_of_it(store: Store) -> None:
    idents = believed(store)
    done = dream(store, [("merge", idents[0], idents[1]), ("archive", idents[3], idents[3])])
    write_page(store, done, f"- {SAID[0]}\n")

    store.write(lambda rows: purge_session(rows, store.hash_key, "u1"))
    assert SAID[0] not in journal_text(store) and SAID[3] in journal_text(store)
    assert undo(store, done.id).items == (idents[3],)
    assert store.read(lambda rows: list(changes_json(rows, done.id)))[0]["reason"] == PURGED


def test_a_candidates_words_are_kept_apart_from_its_state(store: Store) -> None:
    believed(store)
    found = store.read(lambda rows: candidates.waiting(rows, projects=None))
    images = store.read(lambda rows: memory_snapshots.take_snapshots(rows, [one.id for one in found]))
    for one, image in zip(found, images, strict=True):
        assert one.fingerprint in image.details.values() and one.fingerprint not in str(image.state)


def test_a_purged_project_takes_all_that_was_dreamt_of_it_along(store: Store) -> None:
    idents = believed(store)
    done = dream(store, [("merge", idents[0], idents[1]), ("archive", idents[3], idents[3])])

    def write(rows: Rows) -> None:
        tombstones.purge_names(rows, "project", ["alpha"], key=store.hash_key, now=LAST)
        purge.apply_tombstones(rows, store.hash_key)

    store.write(write)
    assert not any(said in journal_text(store) for said in SAID)
    assert set(kept_of(undo(store, done.id)).values()) == {"a purge removed its result"}
    assert store.read(lambda rows: rows.all("select id from memories")) == []


@pytest.mark.invariant("No undo brings back what was purged or dropped: a purge takes whole actions out of the journal")
def test_a_purge_takes_the_lines_of_memories_that_are_no_more_out_of_pages_and_their_files(store: Store) -> None:
    idents, place = believed(store), store.path.parent
    text = "\n".join(
        ["## Decisions", *(f"- {said} <!-- m:{ident} -->\n  - shows as: {ident}" for said, ident in zip(SAID, idents, strict=True)), "mine", ""]
    )  # fmt: skip
    write_page(store, dream(store, []), text)

    store.write(lambda rows: purge_session(rows, store.hash_key, "u1"))
    marks = store.read(lambda rows: tombstones.purged_marks(rows, store.hash_key))
    done = purge_files.purge(
        place, place / "log", marks, [], everything=False,
        purged=lambda kind, names: set(store.read(lambda rows: stored_pages.missing_memories(rows, names))) if kind == "memory" else set(),
    )  # fmt: skip
    left = (place / PAGE).read_text()
    assert done.rewritten == [str(place / PAGE)]
    assert left == text.replace(f"- {SAID[1]} <!-- m:{idents[1]} -->\n  - shows as: {idents[1]}\n", "")
    assert store.read(lambda rows: rows.value("select text from pages")) == left, "no page looks edited for it"
