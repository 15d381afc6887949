"""`csmd project` as people meet it: a list that fits the screen, changes by a terminal only, walls by where one stands."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import forked_process
from machine import LIMIT_S, Machine
from terminal import Terminal

from csmd.cli import projects


def typed(machine: Machine, *words: str, code: int = 0) -> str:
    """What a command prints that a person types in a terminal of 80 columns."""
    terminal = Terminal(*words, cwd=machine.project, environment=machine.environment(TERM="dumb"))
    assert terminal.ends() == code, terminal.said
    return terminal.said


def at(machine: Machine, place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What a program that is no person's is told when it stands in a directory."""
    return forked_process.run(
        "csmd", *words, cwd=place, env=machine.environment(), stdin=subprocess.DEVNULL, timeout=LIMIT_S * 3
    )


def test_projects_are_listed_changed_by_a_person_and_walled(machine: Machine) -> None:
    acme, bolt = machine.root / "clients" / "acme", machine.root / "clients" / "bolt"
    long = machine.root / ("a" * 60) / ("b" * 60)
    for place in (acme, bolt, long):
        place.mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=bolt, check=True)
    subprocess.run(["git", "remote", "add", "origin", "git@host.example:bolt/app.git"], cwd=bolt, check=True)
    for session, place in enumerate((acme, bolt, long, machine.root / "gone")):
        machine.transcript(
            machine.line(
                "user", f"I prefer short answers, always: {place.name}", session=f"s{session}", cwd=str(place)
            ),
            machine.line("assistant", "It is done.", session=f"s{session}", cwd=str(place)),
            session=f"s{session}",
        )
    machine.start()
    machine.sync()

    for words in (
        ("merge", "acme", "bolt"),
        ("alias", "/x", "bolt"),
        ("split", "bolt", "/x"),
        ("lens", "acme", "acme"),
    ):
        done = machine.run("project", *words)
        assert (done.returncode, done.stdout) == (1, "") and "in a terminal" in done.stderr
        tool = f"csm_project_{words[0]}"
        assert "by_person cannot be given" in machine.run("tool", tool, "--param", "by_person=true").stderr

    said = typed(machine, "project", "lens", "acme", str(acme), "--wall")
    assert said.startswith("lens acme: 1 project\n"), said
    assert (
        typed(machine, "project", "alias", "/Users/x/bolt", str(bolt), "--yes") == f"/Users/x/bolt belongs to {bolt}\n"
    )
    assert "would be moved" in typed(machine, "project", "merge", "gone", "bolt", "--dry-run")
    assert "'clients/none' is not a project" in typed(
        machine, "project", "merge", "gone", "clients/none", "--yes", code=1
    )
    assert typed(machine, "project", "merge", "gone", "clients/bolt", "--yes").startswith(
        "moved from gone to clients/bolt: 1 session, 2 turns"
    )
    text = machine.csmd("project", "list")
    for part in (
        "[acme]",
        "remote host.example/bolt/app",
        "also   /Users/x/bolt",
        "merged ~/gone",
        "workspace acme: 1 project",
    ):
        assert part in text, text
    assert all(len(line) <= 80 for line in text.splitlines()), text
    long.rmdir()
    assert "(gone)" in machine.csmd("project", "list")
    shown = machine.csmd("project", "list", "--json")
    assert {row["name"] for row in shown["projects"]} == {"acme", "bolt", "b" * 60}
    assert {"id", "name", "root", "kind", "remote", "workspace", "sessions", "turns", "memories", "last", "gone", "off", "aliases",
            "merged", "part_of"} == set(shown["projects"][0])  # fmt: skip

    # by where one stands: inside, outside, and with a parameter that claims another place
    query = ("search", "short answers", "--all-projects", "--json")
    assert "acme" in at(machine, acme, *query).stdout
    assert "acme" not in str(json.loads(at(machine, bolt, *query).stdout)["hits"])
    done = at(machine, bolt, "brief", "--project", str(acme))
    assert done.returncode == 1 and "in the workspace acme" in done.stderr
    claimed = ("tool", "csm_memory_search", "--param", "query=short answers", "--param", f"asking={acme}")
    assert "acme" not in str(json.loads(at(machine, bolt, *claimed).stdout)["hits"])
    assert "acme" in typed(machine, "search", "short answers", "--project", str(acme)), "a person goes where they name"
    assert typed(machine, "project", "split", "bolt", str(machine.root / "gone")).startswith("moved from bolt to ")
    assert typed(machine, "project", "alias", "/Users/x/bolt", "--remove").endswith("is a project of its own again\n")
    assert "lens acme: 0 projects" in typed(
        machine, "project", "lens", "acme", str(acme), "--wall", "--remove", "--yes"
    )
    assert machine.run("project", "alias", "/x").returncode == 2


def test_a_path_is_made_absolute_and_a_name_is_left(tmp_path: Path) -> None:
    assert projects._resolve_path("shop") == "shop" and projects._resolve_path("clients/shop") == "clients/shop"
    assert projects._resolve_path("tests/") == str(Path("tests").resolve())
    assert projects._resolve_path(str(tmp_path / "x" / "..")) == str(tmp_path.resolve())
    assert projects._resolve_path(".") == str(Path.cwd())
    assert projects._resolve_path("~").startswith("/")


def test_a_lens_is_set_and_listed_by_a_person_and_told_to_whoever_stands_in_it(machine: Machine) -> None:
    work, client = machine.root / "work", machine.root / ("c" * 70)
    for place in (work / "api", client):
        place.mkdir(parents=True)
        machine.transcript(
            machine.line(
                "user", f"Always drain the queue of {place.name[:9]} first.", session=place.name[:3], cwd=str(place)
            ),
            machine.line("assistant", "It is done.", session=place.name[:3], cwd=str(place)),
            session=place.name[:3],
        )
    machine.start()
    machine.sync()
    refused = at(machine, work, "project", "lens", "work", str(work))
    assert (refused.returncode, refused.stdout) == (1, "") and "in a terminal" in refused.stderr
    said = typed(machine, "project", "lens", "work", str(work), "--topic", "Billing", "--topic", "late invoices")
    assert said == "lens work: 2 projects\n  ranked ~/work\n  topics billing, late invoices\n", said
    assert "lens client: 1 project\n  wall   ~/ccc" in typed(
        machine, "project", "lens", "client", str(client), "--wall"
    )
    shown = at(machine, work / "api", "project", "list").stdout
    assert "lens work: 2 projects (here)\n" in shown and all(len(line) <= 80 for line in shown.splitlines())
    assert "Lens: work, topics billing, late invoices." in at(machine, work / "api", "brief").stdout
    hits = json.loads(at(machine, work / "api", "search", "drain the queue", "--all-projects", "--json").stdout)["hits"]
    assert {hit["project"] for hit in hits} == {str(work / "api")}
    assert typed(machine, "project", "lens", "client", str(client), "--wall", "--remove", "--yes").startswith(
        "lens client: "
    )
    assert typed(machine, "project", "lens", "work", "--remove") == "lens work: 0 projects\n"


def test_what_cannot_be_done_is_refused_before_a_person_is_asked(machine: Machine) -> None:
    machine.conversation()
    machine.start()
    machine.sync()
    here = machine.project.name
    for words, reason in (
        (("project", "merge", here, "nope"), "'nope' is not a project"),
        (("project", "alias", "/x", "nope"), "'nope' is not a project"),
        (("team", "share"), "this home has joined no team"),
        (("team", "leave"), "this home has joined no team"),
    ):
        said = typed(machine, *words, code=1)
        assert reason in said and "?" not in said.replace("'?'", ""), said
    for words in (("team", "share", "--yes"), ("team", "leave")):
        assert "this home has joined no team" in machine.run(*words).stderr
