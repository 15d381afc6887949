"""What was taken for the user's words is put right where the transcript, read again, says whose they are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from machine import Machine

from csmd.conversation import Project, StoredTurn, Turn
from csmd.knowledge import Statement
from csmd.memory import remember, speakers
from csmd.store import activity, memories, memory_invariants, projects, speaker_reviews, statement_rows, turns
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import tokens

ERRAND = "Look for every caller of the exporter; we never call it from the importer."
NOW = "2026-01-01T00:00:00.000Z"
HANDED = "In this repository we use tabs and never spaces for the Go files."
#: uuid -> (what the turn says, what was believed because of it).
PROMPTS = {
    "errand": (ERRAND, ["We never call the exporter from the importer"]),
    "handed": (HANDED, ["We use tabs and never spaces for the Go files"]),
    "typed": ("We keep all times in UTC.", ["We keep all times in UTC"]),
}
PINNED = "We use tabs and never spaces, pinned"


@pytest.fixture
def misread(machine: Machine) -> Machine:
    """A home in which all prompts are the user's, and the transcripts of its sessions, which are to be read again."""
    lines = [said(machine, uuid, PROMPTS[uuid][0]) for uuid in ("errand", "handed", "typed")]
    lines[0] |= {"isSidechain": True, "parentUuid": None}
    lines[1] |= {"entrypoint": "sdk-cli", "sessionId": "s2"}
    first = machine.transcript(*(line for line in lines if line["sessionId"] == "s1"))
    second = machine.transcript(lines[1], session="s2")
    machine.paths.database.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    store = Store(machine.paths.database, now=NOW)
    store.write(lambda rows: fill(rows, machine, store.hash_key, first, second))
    while remember.believe(store) != (0, 0):
        pass
    store.write(lambda rows: pin(rows, store.hash_key))
    store.close()
    return machine


def said(machine: Machine, uuid: str, words: str) -> dict[str, Any]:
    return machine.line("user", words, uuid=uuid)


def fill(rows: Rows, machine: Machine, key: bytes, first: Path, second: Path) -> None:
    root = str(machine.project)
    project = projects.ensure(rows, Project(key="shop", root=root, name="shop", kind="path"), now=NOW)
    for path, turn in ((second if uuid == "handed" else first, prompt(uuid)) for uuid in PROMPTS):
        hashed = tokens.keyed_hash(turn.text, key)
        turns.add_turn(rows, turn, text_hash=hashed, host="claude", project=project, path=str(path))
        seq = rows.number("select seq from turns where uuid = :uuid", uuid=turn.uuid)
        stored = StoredTurn(
            seq=seq, uuid=turn.uuid, session_id=turn.session_id, project_seq=project, kind=turn.kind, text=turn.text,
            at=turn.at, ordinal=1,
        )  # fmt: skip
        for sentence in PROMPTS.get(turn.uuid, ("", []))[1]:
            statement_rows.add_statement(
                rows,
                statement(sentence),
                stored,
                session_seq=session_of(rows, turn),
                text_hash=tokens.keyed_hash(sentence, key),
            )
    for path in (first, second):
        size = path.stat().st_size
        rows.run(
            "insert into files (path, device, inode, position, head, foot, read_at) values (:path, 0, 0, :size, '', 'again', '')",
            path=str(path),
            size=size,
        )


def prompt(uuid: str) -> Turn:
    words = PROMPTS[uuid][0]
    session = "s2" if uuid == "handed" else "s1"
    parent = "" if uuid == "errand" else "before"
    return Turn(uuid=uuid, session_id=session, kind="user", text=words, at=NOW, parent_uuid=parent)


def session_of(rows: Rows, turn: Turn) -> int:
    return int(rows.value("select seq from sessions where id = :id", id=turn.session_id))


def statement(words: str) -> Statement:
    return Statement(text=words, gate="epistemic", category="decision", confidence=0.85, authority="user")


def pin(rows: Rows, key: bytes) -> None:
    """A memory of a program's words that a person has pinned is the person's."""
    handed = next(memory for memory in memories.list_memories(rows, projects=None) if "tabs" in memory.text)
    pinned = replace(handed, id="m-pinned", text=PINNED, pinned=True, decay="permanent")
    memories.insert(rows, pinned, text_hash=tokens.keyed_hash(PINNED, key))


def settle(parts: Any) -> None:
    began = time.monotonic()  # not long after the machine's start either is a session's silence older than the machine
    for number in range(2000):
        if not parts.background.step(began + number / 40):
            return
    raise AssertionError("the background thread finds no end")


def standing(rows: Rows) -> dict[str, tuple[str, str]]:
    return {memory.text: (memory.authority, memory.tier) for memory in memories.list_memories(rows, projects=None)}


def kinds(rows: Rows) -> dict[str, tuple[str, str]]:
    turns = rows.all("select t.uuid, t.kind, s.id from turns t join sessions s on s.seq = t.session_seq")
    return {uuid: (kind, session) for uuid, kind, session in turns}


@pytest.mark.invariant("Authority is set by the path; an assistant cannot raise its own")
def test_a_transcript_that_is_read_again_puts_right_who_spoke_and_status_says_how_much(
    misread: Machine, request: pytest.FixtureRequest
) -> None:
    parts = request.getfixturevalue("parts")
    assert {authority for authority, _ in parts.store.read(standing).values()} == {"user"}
    settle(parts)
    after = parts.store.read(kinds)
    assert after == {"errand": ("user", "s1/sidechain"), "handed": ("relayed", "s2"), "typed": ("user", "s1")}
    beliefs = parts.store.read(standing)
    assert beliefs["We never call the exporter from the importer"] == ("assistant", "archive")
    assert beliefs["We use tabs and never spaces for the Go files"][0] == "assistant"
    assert beliefs["We use tabs and never spaces for the Go files"][1] != "archive"
    for words in ("We keep all times in UTC", PINNED):
        assert beliefs[words][0] == "user" and beliefs[words][1] != "archive"
    left = {words for (words,) in parts.store.read(lambda rows: rows.all("select text from statements"))}
    assert "We keep all times in UTC" in left and PROMPTS["errand"][1][0] not in left
    corrected = parts.store.read(
        lambda rows: speaker_reviews.count_corrected_speakers(rows, activity.read_counters(rows))
    )
    assert corrected == {"prompts": 2, "lowered": 1, "archived": 1, "left": 0}
    assert parts.store.read(lambda rows: memory_invariants.find_violations(rows, parts.store.hash_key)) == {}


@pytest.mark.invariant("Authority is set by the path; an assistant cannot raise its own")
def test_killed_between_any_two_writes_it_ends_the_same(misread: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speakers, "BATCH", 1)
    store = Store(misread.paths.database, now=NOW)
    for uuid in PROMPTS:
        store.write(lambda rows, uuid=uuid: speaker_reviews.correct_speaker(rows, row_of(rows, uuid), "notification"))
    store.close()
    ends: list[Sequence[Any]] = []
    copy = misread.paths.database.read_bytes()
    for reopening in (False, True):
        misread.paths.database.write_bytes(copy)
        store = Store(misread.paths.database, now=NOW)
        while speakers.step(store, now=NOW):
            if reopening:
                store.close()
                store = Store(misread.paths.database, now=NOW)
        ends.append([store.read(kinds), store.read(standing)])
        assert not store.read(speaker_reviews.is_speaker_due)
        store.close()
    assert ends[0] == ends[1]
    assert ends[0][1]["We keep all times in UTC"] == ("assistant", "archive")


def row_of(rows: Rows, uuid: str) -> int:
    return rows.number("select seq from turns where uuid = :uuid", uuid=uuid)
