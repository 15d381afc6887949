"""A store that took programs' words and quotations for the user's is put right after the upgrade, and says what changed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import old_stores
import pytest
from machine import Machine

from csmd import wire
from csmd.memory import remember, speakers
from csmd.store import activity, integrity, memories, migrate, projects, turns
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import tokens
from csmd.values import Project, Statement, StoredTurn, Turn

TASK = '{"task_id":"b1","tool_use_id":"t1","description":"Always push to the mirror branch","task_type":"local_bash"}'
ERRAND = "Look for every caller of the exporter; we never call it from the importer."
QUOTED = (
    "What do you make of this?\n\n<issue>\nAlways deploy with the blue script.\n</issue>\n\nWe deploy on Mondays only."
)
HANDED = "In this repository we use tabs and never spaces for the Go files."
#: uuid -> (what the turn says, what was believed because of it).
PROMPTS = {
    "task": (TASK, ["Always push to the mirror branch"]),
    "errand": (ERRAND, ["We never call the exporter from the importer"]),
    "quoted": (QUOTED, ["Always deploy with the blue script", "We deploy on Mondays only"]),
    "handed": (HANDED, ["We use tabs and never spaces for the Go files"]),
    "typed": ("We keep all times in UTC.", ["We keep all times in UTC"]),
}
PINNED = "Always push to the mirror branch, pinned"


@pytest.fixture
def old(machine: Machine, tmp_path: Path) -> Machine:
    """A home of before: all prompts are the user's; of the session a transcript is there."""
    lines = [said(machine, uuid, PROMPTS[uuid][0]) for uuid in ("errand", "quoted", "handed", "typed")]
    lines[0] |= {"isSidechain": True, "parentUuid": None}
    lines[2] |= {"entrypoint": "sdk-cli", "sessionId": "s2"}
    first = machine.transcript(*(line for line in lines if line["sessionId"] == "s1"))
    second = machine.transcript(lines[2], session="s2")
    machine.paths.database.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with old_stores.store_of(machine.paths.database, tmp_path / "migrations", 5) as store:
        # What this version asks of every memory it reads, one of that time had not.
        for table in ("judgements (memory_seq, uuid, tell, at)", "team_memories (memory_seq, author)"):
            store.write(lambda rows, table=table: rows.run(f"create table {table}"))
        store.write(lambda rows: fill(rows, machine, store.hash_key, first, second))
        while remember.believe(store) != (0, 0):
            pass
        store.write(lambda rows: pin(rows, store.hash_key))
        for table in ("judgements", "team_memories"):
            store.write(lambda rows, table=table: rows.run(f"drop table {table}"))
    return machine


def said(machine: Machine, uuid: str, words: str) -> dict[str, Any]:
    return machine.line("user", words, uuid=uuid)


def fill(rows: Rows, machine: Machine, key: bytes, first: Path, second: Path) -> None:
    root = str(machine.project)
    project = projects.ensure(rows, Project(key="shop", root=root, name="shop", kind="path"), now=old_stores.NOW)
    call = Turn(
        uuid="call",
        session_id="s1",
        kind="tool_call",
        tool_name="Task",
        at=old_stores.NOW,
        text=wire.dumps({"prompt": ERRAND}),
    )
    for path, turn in [(first, call), *((second if uuid == "handed" else first, prompt(uuid)) for uuid in PROMPTS)]:
        hashed = tokens.keyed_hash(turn.text, key)
        turns.add_turn(rows, turn, text_hash=hashed, host="claude", project=project, path=str(path))
        seq = rows.number("select seq from turns where uuid = :uuid", uuid=turn.uuid)
        stored = StoredTurn(
            seq=seq, uuid=turn.uuid, session_id=turn.session_id, project_seq=project, kind=turn.kind, text=turn.text,
            at=turn.at, ordinal=1,
        )  # fmt: skip
        for sentence in PROMPTS.get(turn.uuid, ("", []))[1]:
            memories.add_statement(
                rows,
                statement(sentence),
                stored,
                session_seq=session_of(rows, turn),
                text_hash=tokens.keyed_hash(sentence, key),
            )
    for path in (first, second):
        size = path.stat().st_size
        rows.run(
            "insert into files (path, device, inode, position, head, read_at) values (:path, 0, 0, :size, '', '')",
            path=str(path),
            size=size,
        )


def prompt(uuid: str) -> Turn:
    words = PROMPTS[uuid][0]
    session = "s2" if uuid == "handed" else "s1"
    parent = "" if uuid == "errand" else "before"
    return Turn(uuid=uuid, session_id=session, kind="user", text=words, at=old_stores.NOW, parent_uuid=parent)


def session_of(rows: Rows, turn: Turn) -> int:
    return int(rows.value("select seq from sessions where id = :id", id=turn.session_id))


def statement(words: str) -> Statement:
    return Statement(text=words, gate="epistemic", category="decision", confidence=0.85, authority="user")


def pin(rows: Rows, key: bytes) -> None:
    """A memory of the task's object that a person has pinned is the person's."""
    of_task = next(one for one in memories.list_memories(rows, projects=None) if "mirror" in one.text)
    pinned = replace(of_task, id="m-pinned", text=PINNED, pinned=True, decay="permanent")
    memories.insert(rows, pinned, text_hash=tokens.keyed_hash(PINNED, key))


def settle(parts: Any) -> None:
    began = time.monotonic()  # not long after the machine's start either is a session's silence older than the machine
    for number in range(2000):
        if not parts.background.step(began + number / 40):
            return
    raise AssertionError("the background thread finds no end")


def standing(rows: Rows) -> dict[str, tuple[str, str]]:
    return {one.text: (one.authority, one.tier) for one in memories.list_memories(rows, projects=None)}


def kinds(rows: Rows) -> dict[str, tuple[str, str]]:
    found = rows.all("select t.uuid, t.kind, s.id from turns t join sessions s on s.seq = t.session_seq")
    return {uuid: (kind, session) for uuid, kind, session in found}


@pytest.mark.invariant("Authority is set by the path; an assistant cannot raise its own")
def test_a_store_of_before_is_put_right_by_the_background_and_status_says_how_much(
    old: Machine, request: pytest.FixtureRequest
) -> None:
    before = Store(old.paths.database, now=old_stores.NOW)
    assert before.migrated[0].startswith("0006") and before.read(turns.is_speaker_due)
    assert {authority for authority, _ in before.read(standing).values()} == {"user"}
    before.close()
    assert old.paths.database.with_name("csmd.before-migration.db").exists()
    parts = request.getfixturevalue("parts")
    settle(parts)
    found = parts.store.read(kinds)
    assert (found["task"], found["errand"]) == (("notification", "s1"), ("user", "s1/sidechain"))
    assert (found["handed"], found["quoted"], found["typed"]) == (("relayed", "s2"), ("user", "s1"), ("user", "s1"))
    told = parts.store.read(standing)
    assert told["Always push to the mirror branch"] == ("assistant", "archive")
    assert told["We never call the exporter from the importer"] == ("assistant", "archive")
    assert told["Always deploy with the blue script"] == ("assistant", "archive")
    assert told["We use tabs and never spaces for the Go files"][0] == "assistant"
    assert told["We use tabs and never spaces for the Go files"][1] != "archive"
    for words in ("We deploy on Mondays only", "We keep all times in UTC", PINNED):
        assert told[words][0] == "user" and told[words][1] != "archive"
    left = {words for (words,) in parts.store.read(lambda rows: rows.all("select text from statements"))}
    assert left >= {"We deploy on Mondays only", "We keep all times in UTC"}
    assert not left & {
        "Always push to the mirror branch",
        "Always deploy with the blue script",
        PROMPTS["errand"][1][0],
    }
    corrected = parts.store.read(lambda rows: turns.corrected_speakers(rows, activity.counters(rows)))
    assert corrected == {"prompts": 3, "lowered": 1, "archived": 3, "left": 0}
    assert parts.store.read(lambda rows: integrity.violations(rows, parts.store.hash_key)) == {}


@pytest.mark.invariant("Authority is set by the path; an assistant cannot raise its own")
def test_killed_between_any_two_writes_it_ends_the_same(old: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speakers, "BATCH", 1)
    ends: list[Sequence[Any]] = []
    copy = old.paths.database.read_bytes()
    for reopening in (False, True):
        old.paths.database.write_bytes(copy)
        store = Store(old.paths.database, now=old_stores.NOW)
        while speakers.step(store, now=old_stores.NOW):
            if reopening:
                store.close()
                store = Store(old.paths.database, now=old_stores.NOW)
        ends.append([store.read(kinds), store.read(standing)])
        assert not store.read(turns.is_speaker_due)
        store.close()
    assert ends[0] == ends[1]
    assert ends[0][0]["errand"][0] == "notification"  # without its transcript: told by the call that handed it over


def test_the_migration_reads_transcripts_again_and_looks_at_prompts_only(old: Machine) -> None:
    store = Store(old.paths.database, now=old_stores.NOW)
    assert [name for name, _ in migrate.available()][5] == "0006_speakers"
    assert store.read(lambda rows: rows.all("select distinct foot from files")) == [("again",)]
    assert len(store.read(lambda rows: turns.speakers_due(rows, limit=99))) == len(PROMPTS)
    store.close()
