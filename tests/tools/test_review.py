"""What the daemon answers about reviewing: versions, walls, redaction, and that only a person answers."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from machine import Machine, call_frames
from machine import ask as ask_daemon

from csmd.daemon.context import now_iso
from csmd.errors import BadInput, CsmdError
from csmd.memory import supersession
from csmd.store import memories
from csmd.store.core import Store
from csmd.store.sqlite import Rows

NOW = now_iso()


@pytest.fixture
def saved(parts: Any) -> str:
    """A memory that a model saved."""
    ident: str = parts.call(
        "csm_memory_save", text="The linter runs before the tests.", project=str(parts.machine.project)
    )["id"]
    return ident


def shown(parts: Any, ident: str) -> Any:
    return parts.call("csm_memory_show", id=ident)


def test_what_has_changed_since_it_was_shown_is_not_overwritten(parts: Any, saved: str) -> None:
    version = shown(parts, saved)["version"]
    parts.call("csm_review_answer", id=saved, verb="keep", version=version, by_person=True)
    for tool, more in (("csm_review_answer", {"verb": "drop"}), ("csm_memory_edit", {"text": "It runs after them."})):
        with pytest.raises(CsmdError, match="has changed since"):
            parts.call(tool, id=saved, version=version, by_person=True, **more)
    assert shown(parts, saved)["origin"] == "stated"


@pytest.mark.invariant(
    "Only a person answers in review; an answer taken back leaves everything as it was, or is refused"
)
def test_only_a_person_answers_edits_and_takes_back(parts: Any, saved: str) -> None:
    before = shown(parts, saved)
    for tool, more in (
        ("csm_review_answer", {"id": saved, "verb": "keep"}),
        ("csm_memory_edit", {"id": saved, "text": "It runs after them."}),
        ("csm_memory_pin", {"id": saved}),
        ("csm_memory_pin", {"id": saved, "undo": True}),
        ("csm_review_undo", {}),
    ):
        with pytest.raises(CsmdError, match="only a person"):
            parts.call(tool, **more)
    assert shown(parts, saved) == before


def test_a_pinned_memory_does_not_fade_until_it_is_unpinned_and_either_is_taken_back(parts: Any, saved: str) -> None:
    kept = ("pinned", "decay", "tier", "hot_until", "archive_at", "confidence")

    def now() -> dict[str, Any]:
        return {name: value for name, value in shown(parts, saved).items() if name in kept}

    def pin(*, undo: bool = False) -> bool:
        return bool(parts.call("csm_memory_pin", id=saved, undo=undo, by_person=True)["changed"])

    before = now()
    assert (before["pinned"], before["tier"], before["decay"]) == (False, "daily", "durable")
    assert not pin(undo=True), "what is not pinned cannot be unpinned"
    assert pin()
    pinned = now()
    assert (pinned["pinned"], pinned["tier"], pinned["decay"]) == (True, "durable", "permanent")
    assert pinned["confidence"] == before["confidence"]
    assert not pin(), "pinned twice is pinned"
    parts.call("csm_memory_save", text=shown(parts, saved)["text"], project=str(parts.machine.project), by_person=True)
    assert now()["confidence"] == before["confidence"], "what is pinned stays as sure as it is"
    assert pin(undo=True)
    assert (now()["pinned"], now()["decay"]) == (False, "durable")
    parts.call("csm_review_undo", by_person=True)
    assert now()["pinned"]


def test_a_pin_is_no_statement_and_leaves_the_time_when_a_memory_was_last_said(parts: Any, saved: str) -> None:
    said_at = shown(parts, saved)["confirmed_at"]
    for undo in (False, True):
        parts.call("csm_memory_pin", id=saved, undo=undo, by_person=True)
        assert shown(parts, saved)["confirmed_at"] == said_at


def test_a_wording_with_a_secret_and_one_that_says_nothing_are_refused(parts: Any, saved: str) -> None:
    secret = "ghp_" + "a1B2" * 9
    with pytest.raises(BadInput, match=r"secret \(github-token\)"):
        parts.call("csm_memory_edit", id=saved, text=f"The linter uses the token {secret}", by_person=True)
    made = parts.call("csm_memory_edit", id=saved, text="The linter takes its token from the vault", by_person=True)
    for text in ("the of it", "x" * 700):
        with pytest.raises(BadInput):
            parts.call("csm_memory_edit", id=made["made"], text=text, by_person=True)
    for text in ("", " \n", shown(parts, made["made"])["text"]):
        assert not parts.call("csm_memory_edit", id=made["made"], text=text, by_person=True)["changed"]


def test_behind_a_wall_nothing_is_listed_shown_or_answered(parts: Any, saved: str) -> None:
    place = str(parts.machine.project)
    parts.call("csm_project_lens", name="acme", places=place, wall=True, by_person=True)
    assert parts.call("csm_review_list")["items"] == []
    (item,) = parts.call("csm_review_list", asking=place)["items"]
    assert item["id"] == saved
    for tool, more in (("csm_memory_edit", {"text": "Else."}), ("csm_review_answer", {"verb": "keep"})):
        with pytest.raises(BadInput, match="there is no memory"):
            parts.call(tool, id=saved, by_person=True, **more)
    parts.call("csm_review_answer", id=saved, verb="keep", asking=place, by_person=True)
    with pytest.raises(CsmdError, match="nothing to undo"):
        parts.call("csm_review_undo", by_person=True)
    assert parts.call("csm_review_undo", asking=place, by_person=True)["undone"]


def test_what_was_dropped_is_found_by_no_way_until_it_is_taken_back(parts: Any, saved: str) -> None:
    parts.call("csm_review_answer", id=saved, verb="drop", by_person=True)
    assert parts.call("csm_memory_search", query="linter tests", kind="memory")["hits"] == []
    with pytest.raises(CsmdError, match="the user forgot"):
        parts.call("csm_memory_save", text="The linter runs before the tests.", project=str(parts.machine.project))
    parts.call("csm_review_undo", by_person=True)
    (hit,) = parts.call("csm_memory_search", query="linter tests", kind="memory")["hits"]
    assert hit["id"] == saved


def test_what_a_person_remembers_replaces_what_it_says_is_gone(parts: Any) -> None:
    place = str(parts.machine.project)

    def save(text: str, *, by_person: bool = True) -> Any:
        return parts.call("csm_memory_save", text=text, project=place, by_person=by_person)

    one, both = save("we use pnpm")["id"], save("pnpm is our package manager and the docs are on port 3000")["id"]
    narrow = save("we use pnpm in the web client")["id"]
    assert {row["is"] for row in save("use bun, not pnpm", by_person=False)["beside"]} <= {"doubtful", "related"}
    assert shown(parts, one)["superseded_by"] == ""
    made = save("we use bun, pnpm is gone")
    told = {row["id"]: (row["is"], row["rest"] and row["rest"]["text"]) for row in made["beside"]}
    assert told[one] == ("replaced", None)
    assert told[both] == ("replaced", "the docs are on port 3000")
    assert told[narrow] == ("doubtful", None)
    settled = parts.call("csm_memory_supersede", old=narrow, new=made["id"], by_person=True)
    assert (settled["superseded_by"], settled["rest"]) == (made["id"], None)
    pairs = [
        {memory["id"] for memory in item["memories"]} for item in parts.call("csm_review_list", asking=place)["items"]
    ]
    assert {narrow, made["id"]} not in pairs
    parts.call("csm_memory_supersede", old=both, undo=True, by_person=True)
    assert shown(parts, both)["superseded_by"] == ""


@pytest.mark.invariant("No tool answers what a person is asked")
@pytest.mark.parametrize(
    ("tool", "params"),
    [
        ("csm_memory_candidate_generate", {"dry_run": False}),
        ("csm_memory_archive", {"dry_run": False}),
        ("csm_memory_merge", {"dry_run": False}),
        ("csm_memory_merge", {"dry_run": False, "id": "OLD", "into": "NEW"}),
        ("csm_memory_merge", {"dry_run": False, "id": "NEW", "into": "OLD"}),
        ("csm_memory_supersede", {"old": "OLD", "new": "NEW"}),
        ("csm_memory_supersede", {"old": "NEW", "new": "OLD"}),
        ("csm_memory_delete", {"id": "OLD"}),
        ("csm_memory_delete", {"id": "NEW"}),
        ("csm_belief_promote", {"apply": True}),
        ("csm_review_answer", {"id": "QUESTION", "verb": "supersede"}),
        ("csm_review_answer", {"id": "OLD", "verb": "keep"}),
        ("csm_memory_pin", {"id": "OLD"}),
    ],
)
def test_whichever_tool_is_called_a_dreams_question_waits_for_a_person(
    machine: Machine, tool: str, params: dict[str, Any]
) -> None:
    child, place = machine.start(), str(machine.project)
    saved = {
        name: machine.call(
            "csm_memory_save", text=f"The order cache keeps its entries in {where} for an hour", project=place
        )
        for name, where in (("OLD", "Redis"), ("NEW", "Redis now"))
    }
    ids = {name: value["id"] for name, value in saved.items()}
    machine.stop(child)
    with closing(Store(machine.paths.database, now=NOW)) as store:

        def ask(rows: Rows) -> str:
            old, new = (memories.by_id(rows, ids[name]) for name in ("OLD", "NEW"))
            assert old is not None and new is not None
            memories.update_belief(rows, replace(old, archive_at=-1))  # it has faded, too
            return supersession.ask_which_holds(rows, old, new, reason="it may replace it", sure=0.6, at=NOW)

        ids["QUESTION"] = store.write(ask)
    child = machine.start()

    def asked() -> Any:
        shown = [machine.call("csm_memory_show", id=ids[name]) for name in ("OLD", "NEW")]
        (question,) = [row for row in machine.call("csm_review_list")["items"] if row["id"] == ids["QUESTION"]]
        return question["version"], [(row["superseded_by"], row["tier"], row["pinned"]) for row in shown]

    before = asked()
    given = {name: ids.get(value, value) if isinstance(value, str) else value for name, value in params.items()}
    ask_daemon(machine.socket, call_frames(tool, given))
    assert asked() == before
    machine.call("csm_review_answer", id=ids["QUESTION"], verb="keep", by_person=True)
    assert all(row["id"] != ids["QUESTION"] for row in machine.call("csm_review_list")["items"])
    machine.stop(child)


def test_memories_that_somebody_linked_as_contradicting_are_asked_about(parts: Any) -> None:
    project = str(parts.machine.project)
    one, other = (
        parts.call("csm_memory_save", text=text, project=project, by_person=True)["id"]
        for text in ("Releases leave on the fifth.", "The harbour is shut at the start of a month.")
    )
    assert parts.call("csm_review_list", project=project)["items"] == []
    parts.call("csm_memory_link", **{"from": one, "to": other}, relationship="contradicts")
    (item,) = parts.call("csm_review_list", project=project)["items"]
    assert (item["about"], [memory["id"] for memory in item["memories"]]) == ("change", [one, other])


def test_a_review_where_nothing_waits_says_what_waits_elsewhere(parts: Any, saved: str) -> None:
    here, there = str(parts.machine.project), str(parts.machine.root)
    assert parts.call("csm_review_list", project=here)["elsewhere"] == 0
    assert (
        parts.call("csm_review_list", project=there)["total"],
        parts.call("csm_review_list", project=there)["elsewhere"],
    ) == (0, 1)
