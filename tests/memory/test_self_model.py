"""Digests, links and the self model over a real store: replay and order change nothing, purge and merge are followed."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest
from memory_factory import add_turn

from csmd.conversation import Event, Project, Turn
from csmd.errors import CsmdError
from csmd.extraction import digest, statements
from csmd.knowledge import Candidate
from csmd.memory import self_model
from csmd.store import (
    candidates,
    digests,
    events,
    project_merges,
    projects,
    purge,
    session_link_rows,
    sessions,
    tampered_transcripts,
    tombstones,
    work_outcome_rows,
)
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import tokens

NOW = "2026-04-01T10:00:00.000Z"
MARK = "Zanzibar quokka"


def session(
    number: int, *, passes: bool = True, goal: str = "please fix the bug in the zone parser", path: str = "zone.py"
) -> list[Turn]:
    """A session of a day of its own: a prompt, an edit, a test run, an answer."""
    ident, day = f"s{number:02d}", f"2026-03-{number:02d}"
    parts: list[tuple[str, str, str]] = [
        ("user", goal, ""),
        ("tool_call", json.dumps({"file_path": f"/p/alpha/{path}"}, separators=(",", ":")), "Edit"),
        ("tool_result", "The file has been updated", ""),
        ("tool_call", json.dumps({"command": "pytest -q"}, separators=(",", ":")), "Bash"),
        ("tool_result", "5 passed" if passes else "Exit code 1\nE   zone.py:9: NameError: tz_name is not defined", ""),
        ("assistant", "The parser in zone.py keeps the zone of every date now.", ""),
    ]
    return [
        Turn(
            uuid=f"{ident}-{at}", session_id=ident, kind=kind, text=body, at=f"{day}T10:{at:02d}:00.000Z",  # type: ignore[arg-type]
            cwd="/p/alpha", tool_name=tool, tool_id=f"{ident}-c{at - (kind == 'tool_result')}" if "tool" in kind else "",
            model="opus", version="2.1.0",
        )
        for at, (kind, body, tool) in enumerate(parts)
    ]  # fmt: skip


def capture(store: Store, session: list[Turn], project: str = "alpha") -> None:
    def write(rows: Rows) -> None:
        where = Project(key=project, root=f"/p/{project}", name=project, kind="path", place=f"/p/{project}")
        home = projects.ensure_with_directory(rows, where, now=NOW)
        for turn in session:
            add_turn(rows, turn, project=home.seq, directory=home.directory, path=f"/t/{turn.session_id}.jsonl")

    store.write(write)


def work_through(store: Store) -> int:
    """Distils, digests and compares all that is there; how many sessions were looked at."""
    for behind in statements.list_behind(store):
        statements.distill(store, behind, settled=True)
    steps = (lambda: digest.step(store) or self_model.step(store, now=NOW) for _ in itertools.count())
    return sum(itertools.takewhile(bool, (step() for step in steps)))


def snapshot(store: Store) -> dict[str, Any]:
    """Everything that was made, without row keys."""

    def look(rows: Rows) -> dict[str, Any]:
        rows_of = dict(rows.all("select id, seq from sessions"))
        return {
            ident: (
                [
                    (row.text, row.why, row.upto, digests.list_items(rows, row.seq))
                    for row in digests.of_session(rows, seq)
                ],
                [link[1:] for link in session_link_rows.list_links_of_session(rows, seq, projects=None)],
            )
            for ident, seq in sorted(rows_of.items())
        } | {
            "counted": work_outcome_rows.read_outcomes(rows, projects=None),
            "continuity": sessions.list_version_spans(rows, projects=None),
            "waiting": [(candidate.text, candidate.status, candidate.evidence) for candidate in waiting(rows)],
        }

    return store.read(look)


def waiting(rows: Rows) -> list[Candidate]:
    return [candidate for candidate in candidates.waiting(rows, projects=None) if candidate.source == "selfmodel"]


HISTORY = [session(number, passes=number <= 12 or number == 17) for number in range(1, 21)]


def test_a_session_gets_its_digest_links_and_endings_and_looking_again_changes_nothing(store: Store) -> None:
    capture(store, session(1, goal=f"please fix the bug in the {MARK} parser of the exporter"))
    capture(store, session(2, goal=f"the {MARK} parser of the exporter is still slow"))
    assert work_through(store) > 0
    model = snapshot(store)
    assert model["s02"][0][0][0].startswith(f"Goal: the {MARK} parser")
    (link,) = model["s02"][1]
    assert (link[0], link[1], link[2]) == ("s01", "s02", "same work")
    assert set(link[-1]) == {"s01-0", "s01-1", "s02-0", "s02-1"}
    assert model["continuity"][0] == ("model", "opus", "2026-03-01T10:00:00.000Z", "2026-03-02T10:05:00.000Z", 2)
    assert work_through(store) == 0
    capture(store, session(1, goal=f"please fix the bug in the {MARK} parser of the exporter"))
    assert work_through(store) == 0
    assert snapshot(store) == model


@pytest.mark.invariant(
    "Digests, links and the self model do not depend on the order of sessions; a warning is rare by chance and orders nothing"
)
def test_the_order_in_which_sessions_are_captured_and_looked_at_does_not_matter(tmp_path: Path) -> None:
    made = []
    for number in range(3):
        opened = Store(tmp_path / f"{number}.db", now=NOW)
        order = list(HISTORY)
        random.Random(number).shuffle(order)
        for at, turns in enumerate(order):
            capture(opened, turns)
            if number and at % (7 * number) == 0:
                work_through(opened)
        work_through(opened)
        made.append(snapshot(opened))
        opened.close()
    assert made[0] == made[1] == made[2]


def test_a_session_that_goes_on_is_digested_anew_and_one_that_ends_is_told_so(store: Store) -> None:
    turns = session(1)
    capture(store, turns[:3])
    work_through(store)
    assert [why for _, why, *_ in snapshot(store)["s01"][0]] == ["settled"]
    capture(store, turns)
    work_through(store)
    ((body, why, upto, _),) = snapshot(store)["s01"][0]
    assert ("checks passed" in body, why, upto) == (True, "settled", 6)
    event = Event(id="e1", host="claude", name="session_end", session_id="s01", at="2026-03-01T11:00:00.000Z")
    store.write(lambda rows: events.record_event(rows, event, text_hash="", payload_hash=""))
    work_through(store)
    assert [why for _, why, *_ in snapshot(store)["s01"][0]] == ["end"]


def test_work_that_ends_worse_is_a_warning_until_it_ends_well_again(store: Store) -> None:
    for turns in HISTORY:
        capture(store, turns)
    work_through(store)
    (warning,) = [candidate for candidate in store.read(waiting) if candidate.fingerprint == "drift:tests"]
    assert (warning.kind, warning.status) == ("drift_warning", "needs_review")
    assert warning.text == "tests: 1 of the last 8 sessions ended well, 12 of 12 before 2026-03-13"
    assert {source.session_id for source in warning.evidence} == {f"s{at}" for at in (13, 14, 15, 16, 18, 19, 20)}
    for number in range(21, 29):
        capture(store, session(number))
    work_through(store)
    assert store.read(waiting) == []


@pytest.mark.invariant("What was made of a purged session or turn goes with it")
def test_purging_a_session_takes_its_digest_links_and_evidence(store: Store) -> None:
    for turns in HISTORY[:14]:
        capture(store, turns)
    capture(store, session(15, goal=f"fix the bug in the {MARK} exporter offset", path="quokka.py", passes=False))
    capture(store, session(16, goal=f"the {MARK} exporter offset has a bug", path="quokka.py"))
    work_through(store)
    assert snapshot(store)["s16"][1]

    def forget(rows: Rows) -> None:
        purge.record_begin(rows, now=NOW)
        tombstones.purge_names(rows, "session", ["s15"], key=store.hash_key, now=NOW)

    store.write(forget)
    store.write(lambda rows: purge.apply_tombstones(rows, store.hash_key))
    work_through(store)
    model = snapshot(store)
    assert (model["s15"], model["s16"][1]) == (([], []), [])
    assert "s15" not in {row[3] for row in model["counted"]}
    assert all(source.session_id != "s15" for warning in store.read(waiting) for source in warning.evidence)


def test_a_text_that_is_purged_is_in_no_digest(store: Store) -> None:
    capture(store, session(1, goal=f"fix the bug that the {MARK} parser has"))
    work_through(store)
    assert MARK in snapshot(store)["s01"][0][0][0]
    store.write(lambda rows: tombstones.purge_text(rows, MARK, key=store.hash_key, now=NOW))
    store.write(lambda rows: purge.apply_tombstones(rows, store.hash_key))
    assert "quokka" not in str(snapshot(store)).lower()
    work_through(store)
    model = snapshot(store)
    assert "quokka" not in str(model).lower()
    assert model["s01"][0][0][0].startswith("Goal: ")


def test_links_follow_what_is_merged_and_split(store: Store) -> None:
    goal = "the exporter parser loses the zone offset"
    capture(store, session(1, goal=goal))
    capture(store, session(2, goal=goal), project="beta")
    work_through(store)
    assert snapshot(store)["s02"][1] == []
    alone = snapshot(store)
    seqs = dict(store.read(lambda rows: rows.all("select key, seq from projects")))
    alpha, other = int(seqs["alpha"]), int(seqs["beta"])
    store.write(lambda rows: project_merges.merge_projects(rows, other, alpha))
    work_through(store)
    assert [link[2] for link in snapshot(store)["s02"][1]] == ["same work"]
    store.write(lambda rows: project_merges.split_projects(rows, alpha, other))
    work_through(store)
    assert snapshot(store)["s02"][1] == []
    assert snapshot(store)["s01"] == alone["s01"]


def test_a_transcript_that_a_tool_wrote_gives_no_digest(store: Store) -> None:
    capture(store, session(1))
    store.write(
        lambda rows: tampered_transcripts.record_tampered(
            rows,
            ["s01.jsonl"],
            at="2026-02-01T00:00:00.000Z",
            hashed=lambda name: tokens.keyed_hash(name, store.hash_key),
        )
    )
    work_through(store)
    assert snapshot(store)["s01"] == ([], [])


def test_a_digest_can_be_made_before_a_session_is_settled(store: Store) -> None:
    capture(store, session(1))
    seq = store.read(lambda rows: sessions.by_id(rows, "s01")).seq  # type: ignore[union-attr]
    store.read(lambda rows: digest.digest_now(store, rows, seq))
    assert snapshot(store)["s01"][0]
    work_through(store)
    assert len(snapshot(store)["s01"][0]) == 1


def test_a_digest_asked_for_is_not_written_when_something_was_purged_meanwhile(store: Store) -> None:
    capture(store, session(1))
    seq = store.read(lambda rows: sessions.by_id(rows, "s01")).seq  # type: ignore[union-attr]

    def purged_meanwhile(rows: Rows) -> None:
        assert rows.value("select count(*) from turns")  # what is read from here on is as it is now
        store.write(lambda writing: tombstones.purge_text(writing, "some words", key=store.hash_key, now=NOW))
        digest.digest_now(store, rows, seq)

    with pytest.raises(CsmdError, match="purged meanwhile"):
        store.read(purged_meanwhile)
    assert snapshot(store)["s01"][0] == []
