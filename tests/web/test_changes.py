"""What the viewer changes: asked first, done by the command line's tools as a person, taken back by one button."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from machine import Machine
from viewer_process import Answer, Opens, Viewer


@pytest.fixture
def viewer(opened: Opens, machine: Machine) -> Viewer:
    """A viewer of a machine with one session and what came of it."""
    machine.start()
    machine.conversation()
    machine.sync()
    return opened(machine)


def memory(machine: Machine, words: str) -> dict[str, Any]:
    """The one memory with these words."""
    (found,) = [row for row in machine.call("csm_memory_list")["memories"] if words in row["text"]]
    return dict(found)


def leads_to(viewer: Viewer, answer: Answer) -> Answer:
    """The page that a form leads to."""
    assert answer.status == 303, answer.words
    return viewer.get(answer.headers["location"].removeprefix(f"{viewer.base}/"))


def undo(viewer: Viewer, answer: Answer, back: str = "memory") -> Answer:
    """Presses Undo on the page that a form leads to."""
    (ident,) = parse_qs(urlsplit(answer.headers["location"]).query)["undo"]
    assert ident in leads_to(viewer, answer).text
    return leads_to(viewer, viewer.post("undo", {"answer": ident, "back": back}))


@pytest.mark.invariant("The viewer asks before it changes a memory, and does it as a person at the terminal")
def test_forgetting_asks_first_and_reaches_what_the_user_said(viewer: Viewer, machine: Machine) -> None:
    ident = memory(machine, "database_url")["id"]
    question = viewer.get(f"memory/{ident}/change?do=forget")
    assert "Forget this memory?" in question.words and "deleted for good" in question.words
    assert machine.call("csm_memory_show", id=ident)["id"] == ident, "a question changes nothing"
    done = leads_to(viewer, viewer.post(f"memory/{ident}/change", {"do": "forget"}))
    assert "Forgotten." in done.words and "database_url" not in done.words
    assert "there is no memory" in viewer.get(f"memory/{ident}").words.lower()


def test_pinning_and_unpinning_ask_and_are_taken_back(viewer: Viewer, machine: Machine) -> None:
    ident = memory(machine, "database_url")["id"]
    assert "Pin this memory?" in viewer.get(f"memory/{ident}/change?do=pin").words
    pinned = viewer.post(f"memory/{ident}/change", {"do": "pin"})
    assert "Pinned" in leads_to(viewer, pinned).words and memory(machine, "database_url")["pinned"]
    assert "Nothing had to be changed" in leads_to(viewer, viewer.post(f"memory/{ident}/change", {"do": "pin"})).words
    assert "Undone." in undo(viewer, pinned).words and not memory(machine, "database_url")["pinned"]


def test_a_new_wording_counts_as_the_users_and_is_taken_back(viewer: Viewer, machine: Machine) -> None:
    old = memory(machine, "database_url")
    shown = viewer.get(f"memory/{old['id']}/change?do=edit")
    assert old["text"] in shown.text and 'name="version"' in shown.text
    fields = {"do": "edit", "text": "the config key is named DATABASE_URL everywhere", "version": "1"}
    edited = viewer.post(f"memory/{old['id']}/change", fields)
    assert "Your wording replaced it." in leads_to(viewer, edited).words
    assert memory(machine, "DATABASE_URL")["authority"] == "user"
    assert machine.call("csm_memory_show", id=old["id"])["superseded_by"]
    undo(viewer, edited)
    assert not machine.call("csm_memory_show", id=old["id"])["superseded_by"]


def test_a_wording_for_a_memory_that_changed_meanwhile_is_refused(viewer: Viewer, machine: Machine) -> None:
    ident = memory(machine, "database_url")["id"]
    fields = {"do": "edit", "text": "the config key is named DATABASE_URL", "version": "77"}
    answer = viewer.post(f"memory/{ident}/change", fields)
    assert answer.status == 400 and "has changed since" in answer.words


def test_replacing_shows_both_memories_before_it_does_it(viewer: Viewer, machine: Machine) -> None:
    old, new = memory(machine, "pathlib"), memory(machine, "Postgres")
    choice = viewer.get(f"memory/{old['id']}/change?do=supersede&q=postgres+queue")
    assert f'value="{new["id"]}"' in choice.text and f'value="{old["id"]}"' not in choice.text
    question = viewer.get(f"memory/{old['id']}/change?do=supersede&new={new['id']}")
    assert "is replaced by" in question.words and "Postgres" in question.words
    assert not memory(machine, "pathlib")["superseded_by"]
    done = viewer.post(f"memory/{old['id']}/change", {"do": "supersede", "new": new["id"]})
    assert "Replaced." in leads_to(viewer, done).words and memory(machine, "pathlib")["superseded_by"] == new["id"]
    assert "active again?" in viewer.get(f"memory/{old['id']}/change?do=restore").words
    back = viewer.post(f"memory/{old['id']}/change", {"do": "restore"})
    assert "Active again." in leads_to(viewer, back).words and not memory(machine, "pathlib")["superseded_by"]


def test_the_review_is_answered_and_taken_back(viewer: Viewer, machine: Machine) -> None:
    machine.call(
        "csm_memory_save", text="The deploy waits for the release notes on Fridays.", project=str(machine.project)
    )
    machine.call(
        "csm_memory_save", text="The staging cluster is rebuilt every Monday night.", project=str(machine.project)
    )
    page = viewer.get("review")
    assert "2 questions" in page.words and "saved by a model" in page.words
    ident = memory(machine, "release notes")["id"]
    kept = viewer.post(f"review/{ident}", {"do": "keep", "at": "1"})
    after = leads_to(viewer, kept)
    assert "Kept." in after.words and "1 question" in after.words
    assert memory(machine, "release notes")["authority"] == "user"
    again = undo(viewer, kept, back="review")
    assert "Undone." in again.words and "2 questions" in again.words
    assert "Dropped." in leads_to(viewer, viewer.post(f"review/{ident}", {"do": "drop"})).words
    other = memory(machine, "staging")["id"]
    fields = {"do": "edit", "text": "The staging cluster is rebuilt on Tuesdays."}
    assert "Your wording" in leads_to(viewer, viewer.post(f"review/{other}", fields)).words
    assert "Nothing waits for your answer" in viewer.get("review").words


def test_a_dream_is_undone_after_a_question(viewer: Viewer, machine: Machine) -> None:
    ident = machine.work("csm_dream_run", force=True)["id"]
    page = machine.home / "memory" / "user.md"
    assert page.exists() and "Undo this dream?" in viewer.get(f"dream/{ident}/undo").words and page.exists()
    done = leads_to(viewer, viewer.post(f"dream/{ident}/undo", {}))
    assert "The dream was undone." in done.words and "undone" in done.words and not page.exists()


def test_an_unknown_change_is_refused(viewer: Viewer, machine: Machine) -> None:
    ident = memory(machine, "database_url")["id"]
    for answer in (
        viewer.get(f"memory/{ident}/change?do=explode"),
        viewer.post(f"memory/{ident}/change", {"do": "explode"}),
        viewer.post(f"memory/{ident}/change", {}),
        viewer.post(f"review/{ident}", {"do": "pin"}),
        viewer.post(f"memory/{ident}/change", {"do": "supersede"}),
        viewer.post("memory/m0/change", {"do": "forget"}),
        viewer.post("undo", {"answer": "nothing"}),
    ):
        assert answer.status == 400
    assert viewer.get("memory/m0/change").status == 400 and viewer.post("memories", {}).status == 405


def test_all_that_waits_of_an_import_is_answered_by_one_button_and_taken_back(viewer: Viewer, machine: Machine) -> None:
    facts = [{"type": "entity", "name": name, "entityType": "rule", "observations": [f"{name} is closed on the fifth."]}
             for name in ("The ledger", "The harbour office")]  # fmt: skip
    path = machine.root / "memory.jsonl"
    path.write_text("".join(f"{json.dumps(fact)}\n" for fact in facts))
    machine.csmd("import", str(path), "--project", str(machine.project), "--no-vectors", "--yes")
    page = viewer.get("review")
    assert "2 memories from MCP memory server" in page.words
    (ident,) = set(re.findall(r'action="review/import/(\w+)"', page.text))
    for verb, said in (("drop", "Dropped."), ("keep", "Kept.")):
        answer = viewer.post(f"review/import/{ident}", {"do": verb})
        assert said in leads_to(viewer, answer).words and "harbour office" not in viewer.get("review").words
        assert "harbour office" in undo(viewer, answer, back="review").words
    assert viewer.post(f"review/import/{ident}", {"do": "edit"}).status == 400
    assert viewer.post("review/import/inone", {"do": "keep"}).status == 400
