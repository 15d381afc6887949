"""Instruction files are read when a session starts and when they change, redacted, and never on the socket's thread."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from machine import PREFERENCE, Machine, eventually

from csmd.capture import instruction_files, project_identity
from csmd.daemon import reading
from csmd.daemon.transcript_watch import Watch
from csmd.recall import loaded_instructions
from csmd.recall import visibility as recall
from csmd.store import instruction_rows, projects

pytestmark = pytest.mark.filterwarnings("ignore:Callback with id:RuntimeWarning")

TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"


def texts(parts: Any, host: str = "claude") -> list[str]:
    def look(rows: Any) -> list[str]:
        seq = projects.seq_of(rows, project_identity.identify_directory(str(parts.machine.project)))
        return instruction_rows.list_instruction_texts(rows, [seq], host) if seq else []

    return parts.store.read(look)


def begin(parts: Any) -> None:
    """A project that csmd knows, in which a session is at work."""
    parts.machine.conversation()
    parts.background.step(0.0)
    parts.background.instructions.visit(str(parts.machine.project))


def test_where_a_session_is_at_work_the_instructions_are_read_redacted(parts: Any) -> None:
    machine: Machine = parts.machine
    (machine.project / "CLAUDE.md").write_text(
        f"Use tabs.\ntoken: {TOKEN}\n<csmd-brief>told before</csmd-brief>\n@more.md\n"
    )
    (machine.project / "more.md").write_text("More of it.\n<!-- csmd -->\n")
    begin(parts)
    parts.background.step(1.0)
    first, second = texts(parts)
    assert first.startswith("Use tabs.") and TOKEN not in first and "[redacted:" in first
    assert "told before" not in first, "csmd's own words are nobody's instructions"
    assert second == "More of it."
    before = parts.store.commits
    parts.background.instructions.visit(str(machine.project))
    assert parts.background.instructions.has_waiting() and parts.background.instructions.step() == 0
    assert parts.store.commits == before, "nothing changed, nothing is written"
    # A file that changes without anybody's hint is seen at the next visit, one that is new too.
    (machine.project / "more.md").write_text("Even more of it.\n")
    (machine.project / "CLAUDE.local.md").write_text("Mine.")
    parts.background.instructions.visit(str(machine.project))
    assert parts.background.instructions.step() == 2
    assert texts(parts)[1:] == ["Even more of it.", "Mine."]


def test_a_file_that_changes_or_goes_is_read_again(parts: Any) -> None:
    machine: Machine = parts.machine
    (machine.project / "CLAUDE.md").write_text("one @docs/a.md")
    (machine.project / "docs").mkdir()
    (machine.project / "docs/a.md").write_text("a1")
    begin(parts)
    parts.background.step(1.0)
    assert texts(parts) == ["one @docs/a.md", "a1"]
    (machine.project / "docs/a.md").write_text("a2")
    parts.background.hint(str(machine.project / "docs/a.md"))
    parts.background.step(2.0)
    assert texts(parts) == ["one @docs/a.md", "a2"]
    (machine.project / "CLAUDE.md").unlink()
    parts.background.hint(str(machine.project / "CLAUDE.md"))
    parts.background.step(3.0)
    assert texts(parts) == []


def test_of_many_directories_those_of_the_projects_at_work_last_are_watched(
    parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine: Machine = parts.machine
    for name in ("one", "two"):
        (machine.root / name).mkdir()
        (machine.root / name / "CLAUDE.md").write_text("Be brief.")
        parts.machine.transcript(
            machine.line("user", "Look.", session=name, cwd=str(machine.root / name)), session=name
        )
    reading.sweep_transcripts(parts.background.context, full=True)
    while reading.read_backlog(parts.background.context):
        pass
    instructed = parts.background.instructions
    for name in ("one", "two"):
        instructed.visit(str(machine.root / name))
        instructed.step()
    most = len(instructed.list_folders()) // 2
    monkeypatch.setattr("csmd.daemon.instruction_refresh.MAX_WATCHED", most)
    for name, other in (("one", "two"), ("two", "one")):
        instructed.visit(str(machine.root / name))
        instructed.step()
        watched = instructed.list_folders()
        assert len(watched) == most and machine.root / name in watched and machine.root / other not in watched


def test_files_that_are_no_instructions_are_no_news(parts: Any) -> None:
    begin(parts)
    parts.background.step(1.0)
    for name in ("history.jsonl", "settings.json", ".claude.json", "todos/x.md"):
        parts.background.instructions.touch(str(parts.machine.assistant / name))
    assert not parts.background.instructions.has_waiting()
    assert parts.machine.assistant in parts.background.instructions.list_folders()


def test_the_directories_of_instructions_are_watched_and_nothing_below_them(tmp_path: Path) -> None:
    hints: list[str] = []
    transcripts: list[str] = []
    watch = Watch(transcripts.append, hints.append)
    try:
        (tmp_path / "deep").mkdir()
        watch.follow([], alone=[tmp_path, tmp_path / "missing"])
        assert (watch.roots, watch.trouble) == ([], "")
        (tmp_path / "deep/CLAUDE.md").write_text("x")
        (tmp_path / "CLAUDE.md").write_text("x")
        eventually(lambda: str(tmp_path / "CLAUDE.md") in hints)
        hints.clear()
        (tmp_path / "CLAUDE.md").unlink()
        eventually(lambda: str(tmp_path / "CLAUDE.md") in hints)
        assert str(tmp_path / "deep/CLAUDE.md") not in hints
        (tmp_path / "history.jsonl").write_text("{}")
        eventually(lambda: str(tmp_path / "history.jsonl") in hints)
        assert transcripts == [], "what lies beside instructions is no transcript"
        watch.follow([], alone=[])
    finally:
        watch.close()


@pytest.mark.invariant("A slow disk or a dead mount holds up neither the socket nor the writer")
def test_a_disk_that_hangs_holds_up_neither_hooks_nor_writes(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(parts)
    goes_on, reached = threading.Event(), threading.Event()
    real = instruction_files.find_place

    def slow(*arguments: Any) -> Any:
        reached.set()
        assert goes_on.wait(60)
        return real(*arguments)

    monkeypatch.setattr(instruction_files, "find_place", slow)
    parts.serve()
    background = threading.Thread(target=lambda: parts.background.step(1.0))
    background.start()
    try:
        assert reached.wait(60), "the background thread is in the middle of it"
        from machine import ask, event_frames

        payload = {"session_id": "s9", "cwd": str(parts.machine.project), "prompt": "hello", "source": "startup"}
        for name in ("SessionStart", "UserPromptSubmit"):
            assert ask(parts.path, event_frames(name, {**payload, "hook_event_name": name}))[0] == b"ok"
        assert parts.store.write(lambda rows: 1) == 1
        assert background.is_alive()
    finally:
        goes_on.set()
        background.join()


@pytest.mark.invariant(
    "The list of instructions is the host's own; what the assistant is told anyway is not told again, and what contradicts it is"
)
def test_what_claude_md_says_is_not_told_again_and_what_contradicts_it_is(machine: Machine) -> None:
    """On a running daemon: a hook starts a session, the file changes, the next brief is without it."""
    machine.conversation()
    machine.start()
    machine.sync()
    memory = machine.project / "CLAUDE.md"

    def brief() -> str:
        return str(machine.call("csm_memory_context", project=str(machine.project))["text"])

    def recalled() -> str:
        prompt = "should this code use pathlib or os.path?"
        return str(machine.call("csm_memory_recall", project=str(machine.project), prompt=prompt)["text"])

    assert "pathlib over os.path" in brief() and "database_url, not db_url" in brief()
    assert "pathlib over os.path" in recalled()
    memory.write_text(f"# Rules\n- {PREFERENCE}\n- the config key is db_url, not database_url\n")
    machine.event("SessionStart", "s2", source="startup")
    eventually(lambda: "pathlib over os.path" not in brief())
    assert "database_url, not db_url" in brief(), "the file says the opposite"
    assert "pathlib over os.path" not in recalled()
    assert memory.read_text().startswith("# Rules"), "never written"


def test_the_assistants_own_memory_is_known_too(machine: Machine) -> None:
    from csmd.paths import folder_name

    machine.conversation()
    folder = machine.assistant / "projects" / folder_name(str(machine.project.resolve())) / "memory"
    folder.mkdir(parents=True)
    machine.start()
    machine.sync()
    machine.event("SessionStart", "s2", source="startup")
    (folder / "MEMORY.md").write_text(f"- [Paths](paths.md) — {PREFERENCE}\n")
    assert os.path.getsize(folder / "MEMORY.md")

    def brief() -> str:
        return str(machine.call("csm_memory_context", project=str(machine.project))["text"])

    begun = time.monotonic()
    eventually(lambda: "pathlib over os.path" not in brief())
    assert "database_url" in brief()
    assert time.monotonic() - begun < 60, "by the watch, not by a sweep"


def test_of_merged_directories_only_what_each_of_them_says_is_told_anyway(parts: Any) -> None:
    machine: Machine = parts.machine
    clone, into = machine.root / "clone", machine.root / "into"
    for folder, said in ((clone, "Always use the heron queue."), (into, "Always use the quokka queue.")):
        folder.mkdir()
        (folder / "CLAUDE.md").write_text(f"{said}\n\nNever push to the main branch.\n")
        machine.transcript(
            machine.line("user", "I said something.", session=folder.name, cwd=str(folder)),
            machine.line("assistant", "It is done.", session=folder.name, cwd=str(folder)),
            session=folder.name,
        )
    reading.sweep_transcripts(parts.background.context, full=True)
    while reading.read_backlog(parts.background.context):
        pass
    parts.call("csm_project_merge", source=str(clone), into=str(into), by_person=True)

    def told_anyway(folder: Path) -> list[bool]:
        parts.background.instructions.visit(str(folder))
        parts.background.instructions.step()

        def look(rows: Any) -> list[bool]:
            says = loaded_instructions.instructions_filter(rows, recall.scopes(rows, str(folder)), "")
            return [says(f"Always use the {bird} queue.") for bird in ("heron", "quokka")] + [
                says("Never push to the main branch.")
            ]

        return list(parts.store.read(look))

    assert told_anyway(into) == [False, True, True]
    # Whichever was looked at last: what one of them is not told must not be kept from it.
    assert [told_anyway(folder) for folder in (clone, into, clone)] == [[False, False, True]] * 3


def test_each_assistant_is_spared_what_its_own_files_say(parts: Any) -> None:
    machine: Machine = parts.machine
    folder, context = machine.root / ".codex", parts.background.context
    folder.mkdir()
    context.config = replace(context.config, host_dirs=(("codex", folder),))
    (folder / "AGENTS.md").write_text("Speak plainly.")
    (machine.project / "CLAUDE.md").write_text("Always use the heron queue.")
    (machine.project / "AGENTS.md").write_text("Never push to the main branch.")
    begin(parts)
    parts.background.step(1.0)
    assert texts(parts) == ["Always use the heron queue."]
    assert texts(parts, "codex") == ["Speak plainly.", "Never push to the main branch."]
    place = str(machine.project)

    def says(session: str, said: str) -> bool:
        return bool(
            parts.store.read(
                lambda rows: loaded_instructions.instructions_filter(rows, recall.scopes(rows, place), session)(said)
            )
        )

    assert says("codex:1", "Never push to the main branch.") and not says("1", "Never push to the main branch.")
    assert says("1", "Always use the heron queue.") and not says("codex:1", "Always use the heron queue.")

    (machine.project / "AGENTS.override.md").write_text("Push when the tests pass.")
    (machine.project / "CLAUDE.md").unlink()
    for name in ("AGENTS.override.md", "CLAUDE.md"):
        parts.background.hint(str(machine.project / name))
    parts.background.step(2.0)
    assert texts(parts, "codex") == ["Speak plainly.", "Push when the tests pass."], "the first that is there"
    assert texts(parts) == ["Never push to the main branch."], "where no CLAUDE.md is, Claude Code reads AGENTS.md"
