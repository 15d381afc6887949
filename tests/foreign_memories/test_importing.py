"""Memories of other programs, from files that those programs made (tests/data/foreign), come in once and wait for a person."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import stat
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from planted import ALNUM, drawn

from csmd.conversation import Project
from csmd.errors import BadInput, TooLarge
from csmd.foreign_memories import describe_unknown, importing, recognise
from csmd.foreign_memories.foreign_memory import ForeignMemory, Skipped
from csmd.knowledge import Memory
from csmd.recall import visibility
from csmd.store import belief_changes, import_files, memories, projects
from csmd.store.core import Store

DATA = Path(__file__).resolve().parent.parent / "data" / "foreign"
NOW = "2026-07-01T10:00:00.000Z"
#: Program -> its file, and how many memories of each kind are in it.
FILES: dict[str, tuple[str, dict[str, int]]] = {
    "claude-mem": ("claude-mem.db.gz", {"decision": 1, "bugfix": 1, "discovery": 1, "change": 1, "summary": 1}),
    "MCP memory server": ("mcp-memory.jsonl", {"project": 2, "person": 1, "service": 1, "relation": 2}),
    "mem0": ("mem0.json", {"work": 1, "infrastructure": 1, "memory": 1}),
    "basic-memory": ("basic-memory", {"decision": 1, "preference": 1, "fact": 1, "relation": 2, "note": 3}),
    "Claude Code's memory": ("claude-notes", {"feedback": 2, "user": 1}),
}
NOTES = {
    "feedback_release.md": "---\nname: release\ndescription: how\ntype: feedback\n---\n\n# Releases\n\n- Tag only after the changelog names it.\n- Never push on a Friday,\n  the team is away.\n\n```sh\ngit tag v1\n```\n",
    "user_me.md": "---\nname: me\ndescription: who\nmetadata:\n  type: user\n---\nPrefers short answers without preamble.\n",
    "MEMORY.md": "- [release](feedback_release.md) — how releases go here\n",
}


@pytest.fixture
def store(tmp_path: Path) -> Any:
    (tmp_path / "home").mkdir()
    opened = Store(tmp_path / "home" / "csmd.db", now=NOW)
    yield opened
    opened.close()


def place(store: Store, root: str = "/code/harbour") -> int:
    """A project in which something was said."""

    def write(rows: Any) -> int:
        project = Project(key=root, root=root, name=Path(root).name, kind="path")
        return projects.ensure_with_directory(rows, project, now=NOW).seq

    return store.write(write)


def file_of(program: str, folder: Path) -> Path:
    """A copy of a program's file under a name that says nothing."""
    source, copy = DATA / FILES[program][0], folder / "what"
    if program == "Claude Code's memory":
        copy.mkdir()
        for name, text in NOTES.items():
            (copy / name).write_text(text)
    elif source.is_dir():
        shutil.copytree(source, copy)
    elif source.suffix == ".gz":
        copy.write_bytes(gzip.decompress(source.read_bytes()))
    else:
        shutil.copy(source, copy)
    return copy


def examined(store: Store, path: Path, project: int | None, here: int | None = None) -> importing.ForeignCounts:
    counts = importing.ForeignCounts()
    with import_files.open_import(path) as file:
        source = recognise(file)
        assert source is not None
        for _ in importing.examine(store, source, file, project=project, here=here, counts=counts):
            pass
    return counts


def imported(store: Store, path: Path, project: int | None, here: int | None = None) -> importing.ForeignCounts:
    counts = importing.ForeignCounts()
    with import_files.open_import(path) as file:
        source = recognise(file)
        assert source is not None
        for _ in importing.import_all(store, source, file, project=project, here=here, now=NOW, counts=counts):
            pass
    return counts


def all_of(store: Store) -> list[Memory]:
    return store.read(lambda rows: memories.where(rows, "m.seq > 0 order by m.seq"))


def contents(path: Path) -> dict[str, tuple[bytes, int]]:
    """The bytes and times of what lies at a path and beside it."""
    files = [file for file in (path, *path.rglob("*"), *path.parent.glob(f"{path.name}*")) if file.is_file()]
    return {str(file): (file.read_bytes(), file.stat().st_mtime_ns) for file in files}


@pytest.mark.parametrize("program", FILES)
def test_what_another_program_wrote_comes_in_once_and_nobody_is_told_it(
    store: Store, tmp_path: Path, program: str
) -> None:
    path, project = file_of(program, tmp_path), place(store)
    before = contents(path)
    with import_files.open_import(path) as file:
        found = recognise(file)
    assert found is not None and found.label == program
    seen = examined(store, path, project)
    total = sum(FILES[program][1].values())
    assert (dict(seen.kinds), seen.new, seen.known) == (FILES[program][1], total, 0)
    assert len(seen.samples) == (total if total <= importing.MAX_SHOWN else min(importing.MAX_SAMPLES, len(seen.kinds)))
    assert not all_of(store)  # looked through only

    first, second = imported(store, path, project), imported(store, path, project)
    assert (first.new, first.known, second.new, second.known) == (total, 0, 0, total)
    made = all_of(store)
    assert len(made) == total and {memory.authority for memory in made} == {"external"}
    assert not any(map(visibility.is_injectable, made))
    waiting = store.read(lambda rows: memories.list_review_seqs(rows, projects=None, below=0.0, since=NOW, limit=99))
    assert len(waiting) == total
    reasons = [
        change.reason
        for memory in made
        for change in store.read(lambda rows, ident=memory.id: belief_changes.list_changes(rows, ident))  # type: ignore[misc]
    ]
    assert len(reasons) == total and all(reason.startswith(f"imported from {program}: ") for reason in reasons)
    assert all(str(path) in reason for reason in reasons)
    assert contents(path) == before


def test_what_is_left_out_is_counted_with_its_reason(store: Store, tmp_path: Path) -> None:
    project = place(store)
    skipped = {}
    for program in ("claude-mem", "MCP memory server"):
        folder = tmp_path / program
        folder.mkdir()
        skipped[program] = dict(examined(store, file_of(program, folder), project).skipped)
    assert skipped == {"claude-mem": {"prompts: csmd reads them from the transcripts": 2}, "MCP memory server": {}}


def test_a_memory_belongs_to_the_project_that_its_file_names(store: Store, tmp_path: Path) -> None:
    path, harbour = file_of("claude-mem", tmp_path), place(store)
    seen = examined(store, path, None)
    assert (dict(seen.projects), dict(seen.unplaced)) == ({"harbour": 3}, {"orchard": 2})
    imported(store, path, None)
    assert [memory.project_seq for memory in all_of(store)] == [harbour] * 3
    orchard = place(store, "/elsewhere/orchard")
    again = imported(store, path, None)
    assert (again.new, again.known, again.unplaced) == (2, 3, Counter())
    assert Counter(memory.project_seq for memory in all_of(store)) == {harbour: 3, orchard: 2}


def test_memories_of_no_project_are_refused_until_one_is_named(store: Store, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"names no project|no project of these names") as refused:
        examined(store, file_of("mem0", tmp_path), None)
    assert "--project PATH" in refused.value.hint


def test_memories_that_name_no_project_come_to_the_one_they_are_imported_in_and_others_do_not(
    store: Store, tmp_path: Path
) -> None:
    orchard = place(store, "/elsewhere/orchard")
    seen = examined(store, file_of("mem0", tmp_path), None, here=orchard)
    assert (seen.new, seen.placed_here) == (3, 3)
    imported(store, file_of("mem0", tmp_path), None, here=orchard)
    assert {memory.project_seq for memory in all_of(store)} == {orchard}
    beside = place(store, "/elsewhere/quay")
    named = examined(store, file_of("claude-mem", tmp_path), None, here=beside)
    assert (named.placed_here, dict(named.unplaced)) == (0, {"harbour": 3})


def test_claude_codes_folder_names_its_project(store: Store, tmp_path: Path) -> None:
    project = place(store)
    folder = tmp_path / "-code-harbour" / "memory"
    folder.mkdir(parents=True)
    (folder / "tests.md").write_text("The test suite takes eleven minutes on the old laptop.\n")
    imported(store, folder, None)
    assert [memory.project_seq for memory in all_of(store)] == [project]


def test_a_secret_in_a_foreign_memory_is_taken_out_before_anything_is_stored(store: Store, tmp_path: Path) -> None:
    secret = "ghp_" + drawn(ALNUM, 36, "foreign")
    path = tmp_path / "graph"
    entity = {
        "type": "entity",
        "name": f"Deploy {secret}",
        "entityType": "service",
        "observations": [f"uses {secret} to push images"],
    }
    path.write_text(json.dumps(entity) + "\n")
    project = place(store)
    seen = examined(store, path, project)
    assert sum(seen.redactions.values()) >= 1 and secret not in json.dumps(seen.samples)
    imported(store, path, project)
    assert len(all_of(store)) == 1
    store.checkpoint(truncate=True)
    assert all(secret.encode() not in file.read_bytes() for file in (tmp_path / "home").iterdir() if file.is_file())


def test_what_was_forgotten_stays_out(store: Store, tmp_path: Path) -> None:
    path, project = file_of("mem0", tmp_path), place(store)
    imported(store, path, project)
    gone = all_of(store)[0]

    def drop(rows: Any) -> None:
        from csmd.memory import review_answers

        asked = review_answers.ReviewAnswer(verb="drop", uuid="a1", at="2026-07-02T10:00:00.000Z", key=store.hash_key)
        review_answers.answer_memory(rows, gone, asked)

    store.write(drop)
    again = imported(store, path, project)
    assert (again.new, again.known, again.forgotten) == (0, 2, 1)


def test_a_person_who_keeps_an_imported_memory_makes_it_theirs(store: Store, tmp_path: Path) -> None:
    from csmd.memory import review_answers

    path, project = file_of("mem0", tmp_path), place(store)
    imported(store, path, project)
    first = all_of(store)[0]
    assert review_answers.explain_review(first).startswith("it was imported from another program")
    asked = review_answers.ReviewAnswer(verb="keep", uuid="a1", at="2026-07-02T10:00:00.000Z", key=store.hash_key)
    store.write(lambda rows: review_answers.answer_memory(rows, first, asked))
    kept = all_of(store)[0]
    assert (kept.authority, kept.origin) == ("user", "stated") and visibility.is_injectable(kept)
    assert imported(store, path, project).new == 0


# --- files that are refused


def cut(data: bytes) -> bytes:
    return data[: len(data) * 2 // 3]


DAMAGE: dict[str, tuple[str, Callable[[bytes], bytes], str]] = {
    "a database that was cut": ("claude-mem", cut, "was cut: it has"),
    "a database with a broken page": (
        "claude-mem", lambda data: data[:4096] + b"\xff" * (len(data) - 4096), "is damaged",
    ),
    "JSON that was cut": ("mem0", cut, "of mem0 and ends in the middle of line"),
    "a graph that was cut": ("MCP memory server", lambda data: data[:-40], "line 5 is not JSON"),
    "a graph with a foreign line": (
        "MCP memory server", lambda data: data + b'\n{"type":"user","message":{}}\n', "line 6 is neither",
    ),
}  # fmt: skip


@pytest.mark.parametrize("program", ["claude-mem", "mem0", "MCP memory server"])
def test_a_file_that_was_cut_anywhere_is_named_by_its_format_and_is_said_to_be_cut(
    program: str, tmp_path: Path
) -> None:
    path = file_of(program, tmp_path)
    whole = path.read_bytes()
    for length in {14, 16, 40, 99, 100, 101, 4096, len(whole) // 2, len(whole) - 40} & set(range(len(whole))):
        path.write_bytes(whole[:length])
        says = complaint(path)
        assert "cut" in says and ("SQLite" if program == "claude-mem" else str(path)) in says, (length, says)


def complaint(path: Path) -> str:
    """What is said of a file that cannot be imported."""
    try:
        with import_files.open_import(path) as file:
            source = recognise(file)
            if source is None:
                return f"{path} {describe_unknown(file)}"
            list(source.read(file))
    except BadInput as error:
        return error.what
    return ""


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_refused_and_changes_nothing(store: Store, tmp_path: Path, damage: str) -> None:
    program, spoil, what = DAMAGE[damage]
    path, project = file_of(program, tmp_path), place(store)
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(BadInput, match=what) as refused:
        examined(store, path, project)
    assert str(path) in refused.value.what and refused.value.hint
    assert not all_of(store)


def test_a_database_that_another_program_writes_is_refused(tmp_path: Path) -> None:
    path = file_of("claude-mem", tmp_path)
    Path(f"{path}-wal").write_bytes(b"pages")
    with pytest.raises(BadInput, match="is in use"), import_files.open_import(path):
        pass


def test_a_huge_file_is_refused_unread(store: Store, tmp_path: Path) -> None:
    path = file_of("claude-mem", tmp_path)
    os.truncate(path, import_files.MAX_BYTES + 1)
    with pytest.raises(TooLarge, match="at most 200 MB"), import_files.open_import(path):
        pass
    graph = file_of("MCP memory server", tmp_path)
    os.truncate(graph, import_files.MAX_BYTES + 1)
    with pytest.raises(TooLarge, match="at most 200 MB"):
        examined(store, graph, place(store))


@pytest.mark.parametrize(
    "text", ['{"type":"user","message":{"content":"hello"}}\n', '{"a": 1}', "[]", "plain words", "\x00\x01\x02"]
)
def test_what_no_reader_knows_is_nobodys(tmp_path: Path, text: str) -> None:
    path = tmp_path / "what"
    path.write_text(text)
    with import_files.open_import(path) as file:
        assert recognise(file) is None


def test_a_database_is_read_without_leaving_a_trace_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    path = file_of("claude-mem", folder)
    path.chmod(0o400)
    with import_files.open_import(path) as file:
        assert list(file.read_table("observations", ("project",)))
    assert [entry.name for entry in folder.iterdir()] == ["what"] and stat.S_IMODE(path.stat().st_mode) == 0o400


def test_a_reader_yields_one_value_for_every_entry(tmp_path: Path) -> None:
    for program in FILES:
        folder = tmp_path / program
        folder.mkdir()
        with import_files.open_import(file_of(program, folder)) as file:
            source = recognise(file)
            assert source is not None
            entries = list(source.read(file))
        assert all(isinstance(entry, ForeignMemory | Skipped) for entry in entries)
        names = [entry.source_id for entry in entries]
        assert len(names) == len(set(names))
