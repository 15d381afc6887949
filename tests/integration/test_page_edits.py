"""The daemon reads the pages back once somebody is through, says in status what it could not, and in a brief what it asks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from machine import DECISION

from csmd.daemon import page_reader
from csmd.daemon.context import Task, now_iso
from csmd.daemon.dreaming import STEPS
from csmd.daemon.page_reader import PageReader
from csmd.dream import page_edits, page_files
from csmd.recall import brief
from csmd.recall import visibility as recall
from csmd.store import dreams
from csmd.store.core import run_to_end

KEY = "the config key is database_url, not db_url"
NEW = "The gull service is deployed from the main branch only."
NEWER = "The gull service is watched from the harbour office."


def written(parts: Any) -> Path:
    """Pages of a conversation, as a dream writes them; the project's."""
    parts.machine.conversation()
    parts.background.step(0.0)
    parts.background.step(1.0)
    for _ in parts.background.stages.run_until_done():
        pass
    directory = parts.machine.paths.memory
    assert list(page_files.write_pages(parts.store, directory, dream_seq=0, now=now_iso(), facts=()))
    return next(path for path in (directory / "projects").glob("*.md"))


def memories(parts: Any) -> list[str]:
    return [memory["text"] for memory in parts.call("csm_memory_list")["memories"]]


def test_an_edit_is_read_when_it_has_settled_and_costs_nothing_before_and_after(parts: Any) -> None:
    page = written(parts)
    look = parts.background.pages
    assert look.step(100.0) is False and look.step(200.0) is False
    page.write_text(page.read_text() + f"\n## Facts\n\n- {NEW}\n")
    commits = parts.store.commits
    assert look.step(250.0) is False, "it looks once a minute"
    assert look.step(300.0) is False and parts.store.commits == commits, "it may be half saved"
    os.utime(page, ns=(1, 1))
    assert look.step(300.0 + page_reader.SETTLED_S) is False, "it has changed again"
    assert look.step(300.0 + 2 * page_reader.SETTLED_S) is True
    assert NEW in memories(parts)
    commits = parts.store.commits
    assert look.step(500.0) is False and parts.store.commits == commits


def test_status_and_brief_tell_what_is_asked_and_what_is_not_read(parts: Any) -> None:
    page = written(parts)
    name = f"projects/{page.name}"
    rows = [row for row in page.read_text().splitlines(keepends=True) if KEY not in row]
    page.write_text("".join(rows))
    (page.parent / f"{page.stem} (1).md").write_text("x")
    (page.parent.parent / "user.md").write_bytes(b"\xff\xfe")
    assert parts.background.pages.read() == 1
    text = parts.store.read(
        lambda rows: page_edits.report_pages(rows, parts.machine.paths.memory, key=parts.store.hash_key)
    )
    assert text == {
        "asked": [{"page": name, "lines": 1}], "restored": [], "copies": [f"projects/{page.stem} (1).md"], "edited": [],
        "unread": [{"page": "user.md", "why": "it is not UTF-8"}],
    }  # fmt: skip
    assert KEY in memories(parts), "nothing is dropped unasked"
    places = parts.store.read(lambda rows: recall.scopes(rows, str(parts.machine.project)))
    text = parts.store.read(
        lambda rows: brief.session_brief(
            rows, places=places, session_id="s2", max_tokens=1200, key=parts.store.hash_key
        )
    )
    assert f"- csmd review asks about 1 line that was removed from {name}\n" in text.text
    assert DECISION.removeprefix("Good. ") in text.text
    questions = parts.call("csm_review_list", project=str(parts.machine.project))["items"]
    assert [(question["title"], question["text"]) for question in questions] == [("removed from a page", KEY)]


@pytest.mark.invariant(
    "A page is nobody's word where its writer may not have been heard; forgetting makes no unread edit the user's"
)
def test_an_edit_while_a_session_was_at_work_that_is_left_out_waits_for_a_person(parts: Any) -> None:
    page = written(parts)
    silent = parts.machine.paths.home / "left-out.jsonl"
    silent.write_text("{}\n")
    parts.background.context.excluded_paths.add(silent)
    page.write_text(page.read_text() + f"\n## Facts\n\n- {NEW}\n")
    assert parts.background.pages.read() == 1
    assert NEW not in memories(parts), "what its tools wrote, nobody heard"


@pytest.mark.invariant(
    "Whoever syncs or asks for a dream has the pages read at once, and what a tool wrote is nobody's edit all the same"
)
def test_whoever_syncs_or_asks_for_a_dream_has_the_pages_read_at_once(parts: Any) -> None:
    page = written(parts)
    page.write_text(page.read_text() + f"\n## Facts\n\n- {NEW}\n")
    run_to_end(read_edits(parts, awaited=False))
    assert NEW not in memories(parts)
    run_to_end(read_edits(parts, awaited=True))
    assert NEW in memories(parts)
    page.write_text(page.read_text() + f"- {NEWER}\n")
    job = parts.background.context.submit(Task(id="j", kind="sync", with_vectors=False))
    while job.state not in ("done", "failed"):
        parts.background.step(0.0)
    assert NEWER in memories(parts), job.error


@pytest.mark.invariant(
    "Whoever syncs or asks for a dream has the pages read at once, and what a tool wrote is nobody's edit all the same"
)
def test_what_a_tool_has_just_written_is_nobodys_edit_however_soon_a_dream_is_asked_for(parts: Any) -> None:
    page = written(parts)
    call = parts.machine.line("assistant", "")
    call["message"]["content"] = [
        {"type": "tool_use", "id": "t1", "name": "Write", "input": {"file_path": str(page), "content": "x"}}
    ]
    parts.machine.transcript(call | {"timestamp": now_iso()})
    page.write_text(page.read_text() + f"\n## Facts\n\n- {NEW}\n")
    run_to_end(read_edits(parts, awaited=True))
    assert NEW not in memories(parts)


def read_edits(parts: Any, *, awaited: bool) -> Iterator[None]:
    dream = parts.store.write(lambda rows: dreams.begin(rows, why="asked for", sessions=0, now=now_iso()))
    own = parts.background.dreaming
    own.order("asked for", awaited=awaited)
    yield from STEPS["reading what people edited"](own, dream)
    own.close()


def test_a_dream_by_itself_and_an_import_read_nothing_that_has_just_been_written(
    parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = written(parts)
    page.write_text(page.read_text() + f"\n## Facts\n\n- {NEW}\n")
    assert parts.background.pages.read_settled() == 0 and NEW not in memories(parts), "a tool may just have done it"
    monkeypatch.setattr(page_reader, "SETTLED_S", 0.0)
    assert parts.background.pages.read_settled() == 1 and NEW in memories(parts)


def test_what_was_forgotten_when_the_daemon_was_killed_leaves_the_pages_after_the_next_start(parts: Any) -> None:
    page = written(parts)
    parts.store.write(lambda rows: rows.run("delete from memories where text = :text", text=KEY))
    assert KEY in page.read_text()
    assert PageReader(parts.background.context).step(0.0) is True
    assert KEY not in page.read_text()


def test_pages_are_planned_anew_for_what_changes_them_and_for_no_hook(
    parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(parts)
    store, planned = parts.store, page_files.plan_pages
    plans: list[int] = []
    monkeypatch.setattr(
        page_files, "plan_pages", lambda *arguments, **more: plans.append(1) or planned(*arguments, **more)
    )
    for path in parts.machine.paths.memory.rglob("*.md"):
        path.unlink()
    store.write(lambda rows: rows.run("delete from pages"))
    writing = page_files.write_pages(store, parts.machine.paths.memory, dream_seq=0, now=now_iso(), facts=())
    next(writing)
    store.write(lambda rows: rows.run("update sessions set settled_at = :at", at=now_iso()))
    next(writing)
    assert plans == [1]
    store.write(lambda rows: rows.run("update memories set version = version + 1"))
    assert len(list(writing)) > 0 and plans == [1, 1]
