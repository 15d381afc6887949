"""A purge by a real daemon: what was planted on every way in is in no byte of the home, and does not come back."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import frontmatter
import pytest
from machine import Machine, eventually
from terminal import Terminal

from csmd.privacy.fingerprints import Needle
from csmd.store import sqlite
from csmd.store.byte_search import count_in_bytes

pytestmark = pytest.mark.e2e

MARK = "Zanzibar quokka 77"
SAID = f"I prefer pathlib for this, and the vault opens with {MARK} every single day of the week."
OTHER = "no, that's wrong: the config key is database_url, not db_url"


def left(machine: Machine, *said: str) -> dict[str, int]:
    """The files of the home that hold any of these, byte by byte; the database's own too, as the daemon has ended."""
    needles = [Needle(one) for one in said or (MARK,)]
    files = [path for path in machine.home.rglob("*") if path.is_file() and "models" not in path.parts]
    return {str(path.relative_to(machine.home)): count for path in files if (count := count_in_bytes(path, needles))}


def planted(machine: Machine) -> Path:
    """The mark on every way in: a hook, a transcript, a title, a path, the command line, an answer, a tool's output."""
    folder = machine.root / f"work on {MARK}" / "src"
    folder.mkdir(parents=True)
    path = machine.transcript(
        machine.line("user", SAID, session="s1-marked", uuid="u-said", cwd=str(folder)),
        machine.line("assistant", f"It is done: **{MARK.upper()}**.", session="s1-marked", uuid="u-answer"),
        {"type": "custom-title", "sessionId": "s1-marked", "customTitle": f"About {MARK}"},
        machine.line("user", OTHER, session="s1-marked", uuid="u-other"),
        machine.line("assistant", "Noted.", session="s1-marked"),
        {"type": "user", "uuid": "u-tool", "sessionId": "s1-marked", "cwd": str(folder), "timestamp": "2026-05-04T09:59:00.000Z",
         "message": {"role": "user", "content": [{"type": "tool_result", "content": json.dumps({"a": "Zanzibar\nquokka\n77"})}]}},
        session="s1-marked", folder=machine.assistant / "projects" / f"-{MARK.replace(' ', '-')}",
    )  # fmt: skip
    machine.transcript("no JSON at all {\n", session="s1-marked", folder=path.parent)
    machine.event("UserPromptSubmit", session="s1-marked", prompt=SAID, transcript_path=str(path), cwd=str(folder))
    machine.event("UserPromptSubmit", session="s2-hooked", prompt=f"only a hook said {MARK.title()} here")
    machine.call(
        "csm_memory_save", text=f"The vault opens with {MARK} on Mondays.", by_person=True, project=str(folder)
    )
    return path


def purge(machine: Machine, what: str, **more: Any) -> Any:
    return machine.work("csm_privacy_purge", what=what, by_person=True, **more)


@pytest.mark.invariant(
    "What was purged is in no column and no byte, and does not come back: by import, hook, command line or backup"
)
def test_a_purged_text_is_gone_from_every_byte_and_stays_out(machine: Machine, tiny_model: Path) -> None:
    child = machine.start()
    machine.work("csm_model_add", path=str(tiny_model))
    path = planted(machine)
    history = machine.assistant / "history.jsonl"
    history.write_text(json.dumps({"display": "x"}) + "\n" + json.dumps({"display": SAID}) + "\n")
    machine.work("csm_sync")
    before = machine.status()["counts"]
    assert before["vectors"] >= 5
    assert {"csmd.db", "csmd.db-wal"} & set(left(machine))
    dry = machine.work("csm_privacy_purge", what=MARK, dry_run=True)
    assert machine.status()["counts"] == before
    assert {"turns.text", "memories.text", "sessions.title", "sessions.cwd", "projects.root", "files.path"} <= set(
        dry["counts"]
    )
    done = purge(machine, f"  {MARK.lower()}\n")
    assert (done["what"], done["left"], done["counts"]) == ("text", [], dry["counts"])
    named = {found["path"]: found["lines"] for found in done["hosts"]}
    assert named == {str(path): [1, 2, 3, 6], str(history): [2]}
    assert path.read_text().count(MARK) >= 3  # the assistant's own files are as they were

    # Nothing brings it back: the host's transcript anew, a hook, the command line, a copy under another name.
    copy = machine.root / "copy" / "-p"
    copy.mkdir(parents=True)
    (copy / "s7.jsonl").write_text(path.read_text().replace("u-", "v-").replace("s1-marked", "s7"))
    machine.work("csm_import", path=str(copy))
    machine.event("UserPromptSubmit", session="s7", prompt=f"again: {MARK}")
    with path.open("a") as file:
        file.write(json.dumps(machine.line("user", f"Remember: {MARK} it is.", session="s1-marked")) + "\n")
    again = machine.work("csm_sync")
    assert again["memories_new"] == 0
    with pytest.raises(AssertionError, match="purged"):
        machine.call("csm_memory_save", text=f"It is {MARK}.", by_person=True)
    assert machine.work("csm_sync")["turns_new"] == 0  # known by its hidden name: not read again
    # What was said around it is there, and what has nothing to do with it.
    hits = machine.call("csm_memory_search", query="vault opens every single day")["hits"]
    assert any("[purged]" in hit["text"] and "vault opens" in hit["text"] for hit in hits)
    assert any("database_url" in row["text"] for row in machine.call("csm_memory_list")["memories"])
    assert machine.call("csm_store_check")["problems"] == []
    assert purge(machine, MARK)["left"] == []
    machine.stop(child)
    assert left(machine) == {}


@pytest.mark.invariant(
    "What was purged is in no column and no byte, and does not come back: by import, hook, command line or backup"
)
@pytest.mark.parametrize("what", ["turn", "session", "project", "memory"])
def test_what_was_purged_as_a_whole_stays_away_from_another_import(machine: Machine, what: str) -> None:
    child = machine.start()
    path = machine.transcript(
        machine.line("user", SAID, session="s1-marked", uuid="u-said"),
        machine.line("assistant", "Well, it is done.", session="s1-marked"),
    )
    machine.transcript(machine.line("user", OTHER, session="s2-other"), machine.line("assistant", "I have noted that.", session="s2-other"),
                       session="s2-other", folder=machine.assistant / "projects" / "-other")  # fmt: skip
    machine.event("UserPromptSubmit", session="s1-marked", prompt=SAID, transcript_path=str(path))
    machine.sync()
    listed = machine.call("csm_memory_list")["memories"]
    mine = next(row["id"] for row in listed if "pathlib" in row["text"])
    typed = {"turn": "u-said", "session": "s1-marked", "project": str(machine.project), "memory": mine}[what]
    done = purge(machine, typed)
    assert (done["what"], done["left"]) == (what, [])
    assert [found["path"] for found in done["hosts"]][:1] == [str(path.resolve())] or what == "project"
    copy = machine.root / "copy" / "-p"
    copy.mkdir(parents=True)
    (copy / path.name).write_bytes(path.read_bytes())
    machine.work("csm_import", path=str(copy), vectors=False)
    # Not word for word the event of before: what is reported twice within two seconds is dropped for that alone.
    machine.event(
        "UserPromptSubmit", session="s1-marked", prompt=SAID, transcript_path=str(path), permission_mode="plan"
    )
    machine.sync()
    kept = {row["id"] for row in machine.call("csm_memory_list")["memories"]}
    assert mine not in kept
    if what != "project":
        assert any("database_url" in row["text"] for row in machine.call("csm_memory_list")["memories"])
    # What is new is kept; of a session that was purged, or was one of a purged project's, nothing more.
    before = machine.status()["counts"]["turns"]
    machine.event("UserPromptSubmit", session="s1-marked", prompt="and one thing more")
    machine.event("UserPromptSubmit", session="s9-new", prompt="something new is said here")
    assert machine.status()["counts"]["turns"] - before == (1 if what in ("session", "project") else 2)
    machine.stop(child)
    assert left(machine, SAID if what != "memory" else SAID.rstrip(".")) == {}


@pytest.mark.invariant("A killed purge is finished by the next start, or was not begun; only a person purges or lifts")
def test_a_purge_that_was_killed_is_finished_by_the_next_start(machine: Machine) -> None:
    child = machine.start()
    lines = [machine.line("user", f"{SAID} {number}", session="s1-marked") for number in range(400)]
    machine.transcript(*lines, session="s1-marked")
    machine.sync()
    job = machine.call("csm_privacy_purge", what=MARK, by_person=True)["job"]

    def reached() -> str:  # a quick purge may end between two looks
        report = machine.call("csm_job", id=job)
        states = (report["progress"].get("step"), report["state"])
        return next((state for state in states if state in ("purging", "done")), "")

    state = eventually(reached)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert left(machine) or state == "done"  # it was in the middle of it
    again = machine.start()
    eventually(lambda: not machine.status()["jobs"])
    assert machine.status()["degraded"] == [row for row in machine.status()["degraded"] if row.startswith("vectors")]
    machine.stop(again)
    assert left(machine) == {}


@pytest.mark.invariant("A killed purge is finished by the next start, or was not begun; only a person purges or lifts")
def test_a_purge_that_is_killed_anywhere_is_finished_or_was_not_begun(machine: Machine) -> None:
    """The long form: CSMD_PURGE_KILLS=100 python -m pytest tests/faults/test_purge.py -k anywhere."""
    rounds, chance = int(os.environ.get("CSMD_PURGE_KILLS", "1")), random.Random(7)
    marks = [f"Quokka{number} of Zanzibar{number}" for number in range(rounds)]
    child = machine.start()
    for mark in marks:
        machine.transcript(
            *(machine.line("user", f"I prefer {mark} over others {n}.", session="s1") for n in range(40))
        )
    machine.sync()
    for mark in marks:
        machine.call("csm_privacy_purge", what=mark, by_person=True)
        time.sleep(chance.uniform(0, 0.6))  # not waited for: wherever it is then
        child.kill()
        child.wait()
        child = machine.start()
        eventually(lambda: not machine.status()["jobs"])
        begun = not machine.work("csm_privacy_purge", what=mark, dry_run=True)["counts"]
        if not begun:  # not a word of it was touched
            assert machine.work("csm_privacy_purge", what=mark, by_person=True)["counts"]["turns.text"] == 40
    assert machine.call("csm_store_check")["problems"] == []
    machine.sync()
    machine.stop(child)
    assert left(machine, *marks) == {}


def test_a_hook_and_the_transcript_still_meet_in_one_turn_where_something_was_purged(machine: Machine) -> None:
    machine.start()
    purge(machine, MARK)
    path = machine.transcript(machine.line("user", "hello there", session="s4"), session="s4")
    machine.event("UserPromptSubmit", session="s4", prompt=SAID, transcript_path=str(path))
    machine.event("UserPromptSubmit", session="s4", prompt=SAID.replace("day", "night"), transcript_path=str(path))
    machine.transcript(machine.line("user", SAID, session="s4"), session="s4")
    machine.transcript(machine.line("user", SAID.replace("day", "night"), session="s4"), session="s4")
    machine.sync()
    found = machine.status()["counts"]
    assert (found["turns"], found["provisional"], found["hook_only"]) == (3, 0, 0)


@pytest.mark.invariant("A killed purge is finished by the next start, or was not begun; only a person purges or lifts")
def test_only_a_person_purges_and_lifts(machine: Machine) -> None:
    machine.start()
    machine.call("csm_memory_save", text=f"The vault opens with {MARK} on Mondays.", by_person=True)
    for words in (["forget", "--purge", "--yes", MARK],
                  ["tool", "csm_privacy_purge", "--param", f"what={MARK}", "--param", "by_person=true"]):  # fmt: skip
        done = machine.run(*words)
        assert (done.returncode, done.stdout) == (1, ""), done
        assert "needs a person at a terminal" in done.stderr or "the terminal decides it" in done.stderr
    for tool in ("csm_privacy_purge", "csm_privacy_lift"):
        with pytest.raises(AssertionError, match="only a person at a terminal"):
            machine.call(tool, what=MARK)
    assert machine.work("csm_privacy_purge", what=MARK, dry_run=True)["counts"]["memories.text"] == 1
    assert MARK in machine.call("csm_memory_list")["memories"][0]["text"]


@pytest.mark.invariant("A scan never shows a secret")
def test_a_scan_finds_what_older_rules_let_through_and_never_shows_it(machine: Machine) -> None:
    child = machine.start()
    token = "ghp_" + "a1B2c3D4e5" * 4
    path = machine.transcript(machine.line("user", f"the token is {token} for the build of it all", uuid="u-t"),
                              machine.line("assistant", "Well."), folder=machine.assistant / "projects" / "-project")  # fmt: skip
    machine.sync()
    assert machine.work("csm_privacy_scan")["secrets"] == 0  # it was kept out when it came
    machine.stop(child)
    # As an older csmd, that did not know this kind, would have left it.
    with sqlite.open_rows(machine.paths.database, readonly=False) as rows:
        rows.run("update turns set text = :said where uuid = 'u-t'", said=f"the token is {token} twice {token}")
        rows.run("update sessions set title = :token", token=token)
    machine.paths.log_file.with_name("csmd.log.1").write_text(f"{token}\n")
    machine.paths.quarantine.mkdir(mode=0o700)
    with (large := machine.paths.quarantine / "large.json").open("wb") as file:
        file.truncate(8 << 30)  # not of csmd's making: read at once it would fill the memory
    child = machine.start()
    found = machine.work("csm_privacy_scan", transcripts=True)
    assert (found["secrets"], found["kinds"], found["fixed"]) == (4, {"github-token": 4}, 0)
    assert found["degraded"] == [f"{large} could not be read"]
    assert {(row.get("table"), row.get("id")) for row in found["found"]} == {
        ("turns", "u-t"),
        ("sessions", "s1"),
        (None, None),
    }
    assert {(row["preview"], row["length"]) for row in found["found"]} == {("ghp_…", 44)}
    assert len({row["hash"] for row in found["found"]}) == 1
    assert found["transcripts"] == [{"path": str(path), "secrets": 1, "kinds": {"github-token": 1}}]
    shown = machine.csmd("scan")
    assert token not in shown and "4 secrets: 4 github-token" in shown and max(map(len, shown.splitlines())) <= 100
    refused = machine.run("scan", "--fix")
    assert refused.returncode == 1 and "only a person" in refused.stderr
    assert machine.work("csm_privacy_scan", fix=True, by_person=True)["fixed"] == 3
    assert machine.work("csm_privacy_scan")["secrets"] == 0
    assert machine.call("csm_store_check")["problems"] == []
    machine.stop(child)
    large.unlink()
    assert left(machine, token) == {}


@pytest.mark.parametrize("what", ["session", "project", "turn"])
def test_what_was_purged_as_a_whole_is_in_no_session_file_of_csmds_own(machine: Machine, what: str) -> None:
    """More messages than are searched for afterwards, so that finding none of those is not enough."""
    child = machine.start()
    place = str(machine.project)
    messages = [
        f"The zanzibar quokka number {number} is told in words that nobody else has said." for number in range(25)
    ]
    written = [machine.call("csm_session_write_user", id="mine-77", text=said, project=place) for said in messages]
    kept = machine.call("csm_session_write_user", id="other-77", text="Herons stay.", project=str(machine.root))
    machine.sync()
    typed = {"session": "mine-77", "project": place, "turn": written[3]["uuid"]}[what]
    done = purge(machine, typed)
    assert (done["what"], done["left"]) == (what, [])
    machine.sync()
    assert [one["uuid"] for one in machine.call("csm_session_load", id="other-77")["messages"]] == [kept["uuid"]]
    if what == "turn":
        said = [one["text"] for one in machine.call("csm_session_load", id="mine-77")["messages"]]
        assert said == [*messages[:3], "[purged]", *messages[4:]]
    machine.stop(child)
    assert (what == "turn") == Path(written[0]["path"]).parent.exists()
    assert left(machine, messages[3] if what == "turn" else "The zanzibar quokka number") == {}


@pytest.mark.invariant(
    "What was purged is in no column and no byte, and does not come back: by import, hook, command line or backup"
)
def test_a_purged_name_stands_in_no_file_name_either_and_nothing_brings_it_back(machine: Machine) -> None:
    child, word = machine.start(), "Nightjar"
    project, here = (
        machine.root / "nightjar-app",
        ("The Nightjar cluster has three nodes.", "We use tabs in this code."),
    )
    project.mkdir()
    there = ("Nightjar stores its events in Postgres.", "The Nightjar queue lives in Redis.")
    for number in range(3):
        for session, said, cwd in ((f"s{number}", there, project), (f"o{number}", here, machine.project)):
            lines = [machine.line("user", text, session=session, cwd=str(cwd)) for text in said]
            machine.transcript(*lines, session=session)
    machine.sync()
    for memory in machine.call("csm_memory_list")["memories"]:
        machine.csmd("tag", memory["id"], "nightjar rollouts")
    walled = Terminal(
        "project",
        "lens",
        "nightjar-client",
        str(project),
        "--wall",
        cwd=machine.project,
        environment=machine.environment(),
    )
    assert walled.ends() == 0
    machine.call("csm_session_write_user", id="nightjar-notes-1", text="hello there", project=str(project))
    dream = machine.work("csm_dream_run", force=True)["id"]
    machine.csmd("backup", "--to", str(machine.root / "before.db"))
    machine.csmd("export", "--to", str(machine.root / "out"), "--all-projects")

    def named() -> list[str]:
        return sorted(str(path) for path in machine.home.rglob("*") if word.lower() in path.name.lower())

    def check(what: str) -> None:
        assert (named(), left(machine, word)) == ([], {}), what
        pages = list(machine.paths.memory.rglob("*.md"))
        heads = [frontmatter.loads(page.read_text()).metadata for page in pages]
        assert all(isinstance(head.get("name", ""), str) for head in heads) and pages

    assert len(named()) > 4
    done = purge(machine, word)
    assert done["left"] == []
    check("purged")
    machine.csmd("dream", "undo", dream, "--yes")
    check("a dream undone")
    machine.csmd("import", str(machine.root / "out"))
    for ident, text, place in (("notes-2", "once more", project), ("notes-2", word, "/"), (word, "once more", "/")):
        params = [f"--param={name}={value}" for name, value in (("id", ident), ("text", text), ("project", place))]
        refused = machine.run("tool", "csm_session_write_user", *params)
        assert refused.returncode == 1 and "was purged" in refused.stderr
    machine.work("csm_dream_run", force=True)
    check("an export imported, a new session begun, another dream")
    machine.stop(child)
    restored = Terminal(
        "restore", str(machine.root / "before.db"), "--yes", cwd=machine.project, environment=machine.environment()
    )
    assert restored.ends() == 0, restored.said
    again = machine.instance()
    machine.work("csm_dream_run", force=True)
    assert again and machine.csmd("stop")
    for path in machine.home.glob("csmd.db.before-restore*"):
        path.unlink()
    check("a backup restored")
