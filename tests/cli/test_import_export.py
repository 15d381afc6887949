"""Memories of other programs are previewed, imported and answered as a whole, by a person or a script."""

from __future__ import annotations

from pathlib import Path

import pytest
from machine import Machine
from terminal import Terminal


@pytest.fixture
def graph(machine: Machine) -> Path:
    """A file of the MCP memory server, on a machine whose daemon runs."""
    machine.start()
    path = machine.root / "graph"
    path.write_bytes((Path(__file__).parent.parent / "data" / "foreign" / "mcp-memory.jsonl").read_bytes())
    return path


def test_a_person_is_shown_foreign_memories_before_they_come_in(machine: Machine, graph: Path) -> None:
    here = {"cwd": machine.project, "environment": machine.environment()}
    words = ["import", str(graph), "--project", str(machine.project), "--no-vectors"]
    for answer, imported in (("n\n", 0), ("y\n", 6)):
        terminal = Terminal(*words, **here)  # type: ignore[arg-type]
        shown = terminal.sees("Import 6 memories?")
        assert "MCP memory server" in shown and "project (2)" in shown and "GeoJSON" in shown
        terminal.press(answer)
        terminal.ends()
        assert len(machine.csmd("memories", "--all-projects", "--json")["memories"]) == imported
    assert "until you keep them in `csmd review`" in " ".join(terminal.said.split())
    listed = machine.csmd("memories", "--all-projects", "--json")["memories"]
    assert {row["authority"] for row in listed} == {"external"}
    shown = machine.run("show", listed[0]["id"]).stdout
    assert "imported from MCP memory server" in " ".join(shown.split()) and "in another program" in shown
    again = Terminal(*words, **here)  # type: ignore[arg-type]
    assert again.ends() == 0 and "0, 6 known" in " ".join(again.said.split())


def test_inside_a_project_memories_that_name_none_are_previewed_as_its_own(machine: Machine, graph: Path) -> None:
    machine.csmd("remember", "The ferry schedule is generated at build time.")
    words = ["import", str(graph), "--no-vectors"]
    assert machine.csmd(*words, "--dry-run", "--json")["here"] == str(machine.project)
    assert "--project PATH names another" in " ".join(machine.csmd(*words, "--dry-run").split())
    machine.csmd(*words, "--yes")
    assert {row["project"] for row in machine.csmd("memories", "--json")["memories"]} == {str(machine.project)}


def test_a_script_says_yes_or_looks_only(machine: Machine, graph: Path) -> None:
    words = ["import", str(graph), "--project", str(machine.project), "--no-vectors", "--json"]
    looked = machine.csmd(*words, "--dry-run")
    assert (looked["source"], looked["new"], looked["known"]) == ("MCP memory server", 6, 0)
    refused = machine.run(*words)
    assert refused.returncode == 1 and "--yes" in refused.stderr
    assert machine.csmd("memories", "--all-projects", "--json")["memories"] == []
    assert machine.csmd(*words, "--yes")["memories_new"] == 6
    found = machine.csmd("search", "shapefiles", "--all-projects", "--json")["hits"]
    assert [hit["authority"] for hit in found] == ["external"]


def test_all_that_waits_of_an_import_is_kept_or_dropped_at_once_and_taken_back(machine: Machine, graph: Path) -> None:
    machine.csmd("import", str(graph), "--project", str(machine.project), "--no-vectors", "--yes")
    machine.csmd("remember", "The ferry schedule is generated at build time.")

    def typed(*words: str, code: int = 0) -> str:
        terminal = Terminal(*words, cwd=machine.project, environment=machine.environment())
        assert terminal.ends() == code, terminal.said
        return terminal.said

    def waiting() -> tuple[int, list[int]]:
        value = machine.csmd("review", "--json")
        return value["total"], [one["waiting"] for one in value["imports"]]

    assert waiting() == (7, [6])
    (ident,) = [one["id"] for one in machine.csmd("review", "--json")["imports"]]
    assert f"csmd review {ident} --keep | --drop" in machine.csmd("review")
    assert "only a person" in machine.run("review", ident, "--drop", "--yes").stderr
    for name, answer, said in (
        (ident[:5], "--keep", "kept"),
        (str(graph), "--drop", "dropped"),
        ("MCP memory server", "--keep", "kept"),
    ):
        assert f"{said}: {ident}: 6 memories from MCP memory server" in typed("review", name, answer, "--yes")
        assert waiting() == (1, [])
        assert f"{ident} is no longer {said}" in typed("undo")
        assert waiting() == (7, [6])
    sitting = Terminal("review", cwd=machine.project, environment=machine.environment())
    sitting.sees("keep or drop all 6 from MCP memory server at once")
    for keys, seen in (
        ("ax", "No change."),
        ("ad", "dropped:"),
        ("u", "Undone:"),
        ("ay", "kept:"),
        ("q", "6 kept; 1 left"),
    ):
        sitting.press(keys)
        sitting.sees(seen)
    assert sitting.ends() == 0 and waiting() == (1, [])
    kept = [row for row in machine.csmd("memories", "--json")["memories"] if row["authority"] == "user"]
    assert len(kept) == 6
