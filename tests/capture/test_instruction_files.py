"""Which files a session is given, in which order and with which text: as the client itself has recorded it.

tests/data/instructions/recorded.json and trees.json hold directories and what Claude Code 2.1.329 said it had
loaded there (`attachment: instructions`, `nested_memory`). tests/e2e/test_instructions.py asks the client anew.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from csmd.capture import claude_instructions
from csmd.capture.claude_instructions import Disk, Entry, Place, User

DATA = Path(__file__).resolve().parent.parent / "data" / "instructions"
RECORDED = json.loads((DATA / "recorded.json").read_text())
TREES = json.loads((DATA / "trees.json").read_text())


def memory_disk(files: dict[str, str], order: list[str]) -> Disk:
    """A disk without links, whose directories list their entries as they come in `order`."""
    rank = {path: number for number, path in enumerate(order)}

    def entries(folder: str) -> list[Entry]:
        below = [path for path in files if path.startswith(folder + "/")]
        below.sort(key=lambda path: rank.get(path, len(rank)))
        heads = dict.fromkeys(path[len(folder) + 1 :].split("/")[0] for path in below)
        return [Entry(head, f"{folder}/{head}" not in files) for head in heads]

    return Disk(
        read=lambda path: files[path].encode() if path in files else None, entries=entries, real=lambda path: path
    )


def listed(found: list[claude_instructions.Instruction], root: str) -> list[list[str]]:
    return [[one.path.removeprefix(root + "/"), one.kind, one.content] for one in found]


@pytest.mark.invariant(
    "The list of instructions is the host's own; what the assistant is told anyway is not told again, and what contradicts it is"
)
def test_for_the_recorded_case_the_list_is_the_clients_own() -> None:
    files = {f"/r/{name}": content for name, content in RECORDED["files"].items()}
    disk = memory_disk(files, [f"/r/{path}" for path, *_ in RECORDED["loaded"]])
    place = Place(start="/r/proj", user=User(home="/r/home", configs=("/r/home/.claude",), managed="/r/managed"))
    assert len(RECORDED["loaded"]) == 23
    assert listed(claude_instructions.load_instructions(place, disk), "/r") == RECORDED["loaded"]


def build(root: Path, tree: dict[str, Any]) -> claude_instructions.User:
    """The recorded directory on a real disk."""
    (root / "project" / ".git").mkdir(parents=True)
    (root / "project" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    for name, content in tree["files"].items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # Bytes that are no text are recorded one for one.
        path.write_bytes(content.encode("latin-1" if name in tree["bytes"] else "utf-8"))
    for name, target in tree["links"].items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(target.replace("{R}", str(root)))
    if tree["settings"]:
        (root / "home/.claude").mkdir(parents=True, exist_ok=True)
        (root / "home/.claude/settings.json").write_text(json.dumps(tree["settings"]).replace("{R}", str(root)))
    (root / tree["start"]).mkdir(parents=True, exist_ok=True)
    return user_of(root)


def user_of(root: Path) -> claude_instructions.User:
    return claude_instructions.User(home=f"{root}/home", configs=(f"{root}/home/.claude",), managed=f"{root}/managed")


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: tree["name"])
def test_a_tree_is_loaded_as_the_client_loads_it(tree: dict[str, Any], tmp_path: Path) -> None:
    root = tmp_path.resolve()
    user = build(root, tree)
    found = listed(
        claude_instructions.load_instructions(claude_instructions.find_place(str(root / tree["start"]), user)),
        str(root),
    )
    assert sorted(found) == sorted(tree["loaded"])
    if not any("rules" in path for path, *_ in tree["loaded"]):
        assert found == tree["loaded"]


def test_the_recorded_trees_are_many() -> None:
    assert len(TREES) >= 45
    assert sum(len(tree["loaded"]) for tree in TREES) > 140


def test_a_work_tree_inside_the_main_one_leaves_out_what_it_has_a_copy_of(tmp_path: Path) -> None:
    """Measured: of the main work tree around it only CLAUDE.local.md is loaded; the memory is the main one's."""
    root = tmp_path.resolve()
    main, tree = root / "main", root / "main/.claude/worktrees/w1"
    (main / ".git/worktrees/w1").mkdir(parents=True)
    (main / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (main / ".git/worktrees/w1/commondir").write_text("../..\n")
    tree.mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {main}/.git/worktrees/w1\n")
    for folder, said in ((root, "UP"), (main, "MAIN"), (tree, "MINE")):
        (folder / "CLAUDE.md").write_text(said)
        (folder / "CLAUDE.local.md").write_text(said + "-LOCAL")
    name = "".join(char if char.isascii() and char.isalnum() else "-" for char in str(main))
    memory = root / "home/.claude/projects" / name / "memory"
    memory.mkdir(parents=True)
    (memory / "MEMORY.md").write_text("M")
    found = [
        one.content
        for one in claude_instructions.load_instructions(claude_instructions.find_place(str(tree), user_of(root)))
    ]
    assert found == ["UP", "UP-LOCAL", "MAIN-LOCAL", "MINE", "MINE-LOCAL", "M"]


def test_what_is_no_readable_file_is_not_there_and_nobody_waits_for_it(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    project = root / "project"
    (project / ".claude/rules").mkdir(parents=True)
    os.mkfifo(project / "CLAUDE.md")
    (project / ".claude/CLAUDE.md").mkdir()
    (project / "CLAUDE.local.md").symlink_to("CLAUDE.local.md")
    os.mkfifo(project / ".claude/rules/pipe.md")
    (project / ".claude/rules/loop").symlink_to(".")
    (project / ".claude/rules/device.md").symlink_to("/dev/zero")
    (project / ".claude/rules/long.md").symlink_to("x" * 250 + "/" + "y" * 250)
    (project / ".claude/rules/huge.md").write_bytes(b"a" * (claude_instructions.MAX_BYTES + 1))
    (project / ".claude/rules/most.md").write_bytes(b"a" * claude_instructions.MAX_BYTES)
    (project / ".claude/rules/bytes.md").write_bytes(b"caf\xe9 \xff\x00 end")
    found: list[Any] = []
    reader = threading.Thread(
        target=lambda: found.extend(
            claude_instructions.load_instructions(claude_instructions.find_place(str(project), user_of(root)))
        )
    )
    reader.start()
    reader.join(60)
    assert not reader.is_alive(), "it waits for the other end of a pipe"
    assert sorted(Path(one.path).name for one in found) == ["bytes.md", "most.md"]
    assert next(one.content for one in found if one.path.endswith("bytes.md")) == "caf\ufffd \ufffd\x00 end"


def test_settings_that_cannot_be_read_or_are_odd_change_nothing(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "home/.claude").mkdir(parents=True)
    (root / "project").mkdir()
    (root / "project/CLAUDE.md").write_text("P")
    for text in (
        "{",
        "[]",
        '{"claudeMdExcludes": "x", "autoMemoryDirectory": 5}',
        '{"claudeMdExcludes": [1, "["]}',
        "\x00",
    ):
        (root / "home/.claude/settings.json").write_text(text)
        (root / "home/.claude.json").write_text(text)
        assert [
            one.content
            for one in claude_instructions.load_instructions(
                claude_instructions.find_place(str(root / "project"), user_of(root))
            )
        ] == ["P"]


def test_a_tree_without_end_is_read_to_a_limit() -> None:
    """Each rules directory lists one more, and each file imports the next."""
    read: list[str] = []

    def content(path: str) -> bytes:
        read.append(path)
        return f"{path}\n@{len(read)}.md @{len(read)}a.md".encode()

    def entries(folder: str) -> list[Entry]:
        return [Entry("d", True), Entry("e", True), Entry("a.md", False)]

    disk = Disk(read=content, entries=entries, real=lambda path: path)
    found = claude_instructions.load_instructions(Place(start="/p", user=User(home="/h", configs=("/c",))), disk)
    assert len(found) <= claude_instructions.MAX_FILES
    assert len(read) < 5 * claude_instructions.MAX_FILES


def test_the_context_names_each_file_as_the_host_does() -> None:
    disk = memory_disk({"/p/CLAUDE.md": "Use tabs.\n", "/c/CLAUDE.md": "Be brief."}, [])
    found = claude_instructions.load_instructions(Place(start="/p", user=User(home="/h", configs=("/c",))), disk)
    assert claude_instructions.render_instructions(found) == (
        "Contents of /c/CLAUDE.md (user's private global instructions for all projects):\n\nBe brief.\n\n"
        "Contents of /p/CLAUDE.md (project instructions, checked into the codebase):\n\nUse tabs."
    )


# --- the other form


def merge(files: dict[str, str]) -> tuple[list[tuple[str, str, str]], list[str]]:
    place = Place(start="/p", user=User(home="/h", configs=("/h/.claude",)))
    return claude_instructions.merge_files(place, memory_disk(files, []))


def test_four_scopes_are_merged_the_most_binding_first() -> None:
    found, problems = merge(
        {"/p/CLAUDE.md": "P", "/h/.claude/rules/b.md": "B", "/p/.claude/CLAUDE.md": "L", "/h/.claude/CLAUDE.md": "U",
         "/h/.claude/rules/a.md": "---\nx: y\n---\nA", "/h/.claude/rules/c.txt": "C"}
    )  # fmt: skip
    assert [(scope, body) for scope, _, body in found] == [
        ("managed", "A"), ("managed", "B"), ("user", "U"), ("project", "P"), ("local", "L"),
    ]  # fmt: skip
    assert problems == []


def test_an_include_takes_the_place_of_its_line() -> None:
    found, problems = merge(
        {"/p/CLAUDE.md": "one\n@include docs/a.md\nthree @include x.md\n@include ~/h.md", "/p/docs/a.md": "---\nq: r\n---\ntwo\n@include b.md",
         "/p/docs/b.md": "two and a half", "/h/h.md": "home"}
    )  # fmt: skip
    assert found == [("project", "/p/CLAUDE.md", "one\ntwo\ntwo and a half\nthree @include x.md\nhome")]
    assert problems == []


def test_what_is_not_included_is_told() -> None:
    chain = {f"/p/{n}.md": f"{n}\n@include {n + 1}.md" for n in range(20)}
    found, problems = merge(
        {**chain, "/p/CLAUDE.md": "@include 0.md\n@include missing.md\n@include long.md\n@include CLAUDE.md\n@include fits.md",
         "/p/long.md": "x" * (claude_instructions.MAX_INCLUDE_BYTES + 1), "/p/fits.md": "y" * claude_instructions.MAX_INCLUDE_BYTES}
    )  # fmt: skip
    body = found[0][2]
    assert [line for line in body.splitlines() if line.isdigit()] == [
        str(n) for n in range(claude_instructions.MAX_INCLUDE_DEPTH)
    ]
    assert "x" not in body and body.count("y") == claude_instructions.MAX_INCLUDE_BYTES
    for reason in ("more than 10 deep", "no such file", "the limit is 40960", "include itself"):
        assert any(reason in problem for problem in problems), (reason, problems)


def test_includes_that_multiply_end() -> None:
    files = {f"/p/{n}.md": f"@include {n + 1}.md\n" * 9 for n in range(12)} | {"/p/CLAUDE.md": "@include 0.md"}
    found, problems = merge(files)
    assert found == [] and any("too much" in problem for problem in problems)
