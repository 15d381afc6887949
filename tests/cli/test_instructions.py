"""`csmd instructions show`, `csmd instructions memory` and `load`: the files as they stand, in 80 columns and as JSON."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from machine import Machine

from csmd.paths import folder_name


@pytest.fixture(scope="module")
def real(shared_machine: Machine) -> Machine:
    """A project with instructions and memory files; csmd knows nothing of it yet."""
    machine = shared_machine
    (machine.project / "CLAUDE.md").write_text(
        "---\na: b\n---\nUse tabs.\n<!-- not told -->\n@more.md\n@include more.md\n"
    )
    (machine.project / "more.md").write_text("More of it.\n")
    machine.assistant.mkdir()
    (machine.assistant / "CLAUDE.md").write_text("Be brief.\n")
    folder = machine.assistant / "projects" / folder_name(str(machine.project.resolve())) / "memory"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("".join(f"- [M{n}](m{n}.md)\n" for n in range(205)))
    (folder / "early.md").write_text("---\nname: early\ndescription: The early form.\ntype: user\n---\n\nThe fact.\n")
    (folder / "late.md").write_text(
        "---\nname: late\ndescription: " + "The later form. " * 9 + "\nmetadata:\n  type: project\n---\nx"
    )
    (folder / "odd.md").write_text("---\na: &x [*x]\n")
    for number, name in enumerate(("early.md", "late.md", "odd.md")):
        os.utime(folder / name, (1_750_000_000 + number, 1_750_000_000 + number))
    machine.start()
    return machine


def test_the_context_is_what_the_host_tells(real: Machine) -> None:
    found = real.csmd("instructions", "show", "--json")
    assert [(one["scope"], Path(one["path"]).name) for one in found["files"]] == [
        ("user", "CLAUDE.md"), ("project", "CLAUDE.md"), ("project", "more.md"), ("automem", "MEMORY.md"),
    ]  # fmt: skip
    assert "Use tabs." in found["text"] and "not told" not in found["text"] and "a: b" not in found["text"]
    assert "> WARNING: MEMORY.md is 205 lines (limit: 200)." in found["text"]
    assert found["text"].index("Be brief.") < found["text"].index("Use tabs.") < found["text"].index("More of it.")
    done = real.run("instructions", "show")
    assert done.returncode == 0 and done.stdout.strip() == found["text"]
    assert "4 files, about" in done.stderr and "MEMORY.md" in done.stderr


def test_the_other_form_puts_includes_in_their_place(real: Machine) -> None:
    found = real.csmd("instructions", "show", "--mode", "seed", "--json")
    assert [one["scope"] for one in found["files"]] == ["user", "project", "memory"]
    assert "Use tabs.\n<!-- not told -->\n@more.md\nMore of it." in found["text"]
    assert "- [M199](m199.md)" in found["text"] and "- [M200](m200.md)\n" not in found["text"]


def test_the_files_of_the_memory_are_listed_the_newest_first(real: Machine) -> None:
    found = real.csmd("instructions", "memory", "--json")
    assert [(one["filename"], one["type"]) for one in found["files"]] == [
        ("odd.md", ""), ("late.md", "project"), ("early.md", "user"),
    ]  # fmt: skip
    assert found["files"][0]["problems"] and not found["files"][2]["problems"]
    shown = real.csmd("instructions", "memory")
    assert "early.md  (user, " in shown and "  The early form." in shown and "  ! its head does not end" in shown


def test_one_file_is_shown_without_its_head_and_none_outside(real: Machine) -> None:
    assert real.csmd("instructions", "file", "early.md") == "The fact.\n"
    assert real.csmd("instructions", "file", "early.md", "--json")["text"] == "The fact."
    for name in ("../../../CLAUDE.md", "missing.md", str(real.project / "CLAUDE.md")):
        done = real.run("instructions", "file", name)
        assert (done.returncode, done.stdout) == (1, ""), name
        assert done.stderr.startswith("csmd: ") and "csmd instructions memory" in done.stderr


def test_a_place_without_any_says_so(real: Machine, tmp_path: Path) -> None:
    empty = real.root / "empty"
    empty.mkdir()
    found: Any = real.csmd("instructions", "memory", "--project", str(empty))
    assert "the assistant has no memory of its own here" in found
    done = real.run("instructions", "show", "--project", str(real.root / "missing"))
    assert done.returncode == 1 and "neither a directory" in done.stderr
    assert real.run("instructions", "show", "--mode", "other").returncode == 2
