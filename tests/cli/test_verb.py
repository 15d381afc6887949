"""What people type is taken for what they mean: projects by name, turns by id; what was done is said as it is."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys

import pytest
from machine import CORRECTION, PREFERENCE, Machine
from terminal import Terminal

from csmd.cli import verb


@pytest.fixture(scope="module")
def known(shared_machine: Machine) -> Machine:
    """A machine that knows a project which is there and one which is gone."""
    gone = shared_machine.root / "heronry"
    gone.mkdir()
    shared_machine.transcript(shared_machine.line("user", PREFERENCE))
    shared_machine.transcript(shared_machine.line("user", CORRECTION, session="s2", cwd=str(gone)), session="s2")
    shared_machine.start()
    shared_machine.sync()
    shutil.rmtree(gone)
    return shared_machine


def test_a_project_is_named_by_its_directory_or_its_name_also_when_it_is_gone(known: Machine) -> None:
    for named in ("heronry", str(known.root / "heronry"), str(known.root / "heronry" / "src"), "../heronry"):
        assert "database_url" in known.csmd("memories", "--project", named), named
    assert "pathlib" in known.csmd("memories", "--project", "project")


def test_a_project_is_named_by_its_title_and_its_short_id_wherever_one_stands(known: Machine) -> None:
    (gone,) = [row for row in known.csmd("project", "list", "--json")["projects"] if row["name"] == "heronry"]
    for named in (f"{known.root.name}/heronry", gone["id"], gone["id"][:4]):
        assert "database_url" in known.csmd("memories", "--project", named), named
        assert "database_url" in known.csmd("brief", "--project", named), named
    assert "nor a known project" in known.run("memories", "--project", gone["id"][:3]).stderr


@pytest.mark.parametrize(
    ("named", "hint"),
    [
        ("heronri", "did you mean heronry?"),
        ("../herony", "/heronry?"),
        ("/quite/elsewhere", "csmd project list"),
        ("workspace/cli", "csmd project list"),
        ("./foo", ""),
        ("foo", "csmd project list"),
        ("src/../lib", ""),
    ],
)
def test_a_project_that_is_none_is_told_and_not_taken_for_an_empty_one(known: Machine, named: str, hint: str) -> None:
    for words in (["memories"], ["remember", "We use tabs."]):
        refused = known.run(*words, "--project", named)
        assert (refused.returncode, refused.stdout) == (1, ""), words
        assert "neither a directory" in refused.stderr and hint in refused.stderr


def test_of_two_projects_of_one_name_a_title_means_one_and_the_name_neither() -> None:
    rooted = ["/w/devenv/cli", "/w/other/cli"]
    assert (
        verb._find_similar("devenv/clii", rooted) == rooted[0] and verb._find_similar("other/clii", rooted) == rooted[1]
    )
    assert verb._find_similar("devenv/src", rooted) == ""
    assert [verb._has_title(root, "devenv/cli") for root in rooted] == [True, False]
    assert not verb._has_title("/w/devenv/cli", "nv/cli") and not verb._has_title("/w/devenv/cli", "cli")


def test_a_turn_that_was_found_is_shown_by_its_id_and_leads_to_its_session(known: Machine) -> None:
    (hit,) = known.csmd("search", "pathlib", "--kind", "turn", "--json")["hits"]
    assert "session s1" in known.csmd("search", "pathlib", "--kind", "turn")
    shown = known.csmd("show", hit["id"][:4])
    assert PREFERENCE in " ".join(shown.split()) and "csmd session transcript s1" in shown
    value = known.csmd("show", hit["id"], "--json")
    assert (value["id"], value["session_id"], value["kind"]) == (hit["id"], "s1", "user")
    assert "no memory, turn" in known.run("show", "zzz").stderr
    assert "there is no memory" in known.run("show", "mfff").stderr


def test_what_is_too_long_for_a_memory_is_refused_and_not_cut(known: Machine) -> None:
    refused = known.run("remember", "We always " + "really " * 100 + "use tabs.")
    assert refused.returncode == 1 and "600 at most" in refused.stderr
    assert known.csmd("remember", "x" * 580 + " is the name.", "--json")["new"]


def test_what_is_remembered_says_where_it_holds(known: Machine) -> None:
    assert f"applies in {known.project}" in " ".join(known.csmd("remember", "The linter is ruff.").split())
    assert "applies everywhere" in known.csmd("remember", "I like short answers.", "--all-projects")


def test_one_project_and_all_of_them_cannot_be_asked_for_at_once(known: Machine) -> None:
    refused = known.run("memories", "--project", str(known.project), "--all-projects")
    assert refused.returncode == 2 and "do not go together" in refused.stderr


def test_a_sync_that_was_forestalled_says_so(known: Machine) -> None:
    assert "transcripts read: nothing new," in known.csmd("sync", "--no-vectors")


def test_a_session_whose_transcript_is_there_is_not_to_be_overwritten(known: Machine) -> None:
    told = known.run("session", "export", "s1").stderr
    assert "the assistant still has this session" in told and "claude --resume" in told and "put it" not in told
    known.call("csm_session_write_user", id="mine", text="Hello.", project=str(known.project))
    known.sync()
    shown = known.csmd("session", "show", "mine")
    assert "csmd itself" in shown and "claude" not in shown
    told = known.run("session", "export", "mine").stderr
    assert all(len(line) <= 80 for line in told.splitlines() if not line.startswith("  ")), told


def test_every_verb_says_why_no_daemon_runs(machine: Machine) -> None:
    machine.home.mkdir(mode=0o700)
    machine.paths.database.write_bytes(b"no database" * 500)
    assert machine.run("start").returncode == 1
    for words in (["memories"], ["backup", "list"], ["sync"]):
        done = machine.run(*words)
        assert done.returncode == 3 and "csmd repair" in done.stderr, words
    assert json.loads(machine.run("config", "list", "--json").stdout)


# --- what opens something is asked


OPENING = [
    ["restore", "latest"], ["resume"], ["config", "set", "privacy.exclude", "[]"], ["config", "unset", "privacy.exclude"],
    ["project", "alias", "/nowhere/a", "."], ["project", "merge", ".", "../other"],
    ["project", "lens", "w", ".", "--wall", "--remove"], ["forget", "--lift", "something"],
]  # fmt: skip
named = pytest.mark.parametrize("words", OPENING, ids=lambda words: " ".join(words[:2]))


@pytest.fixture
def paused(machine: Machine) -> Machine:
    machine.start()
    machine.conversation()
    machine.sync()
    other = machine.root / "other"
    other.mkdir()
    machine.call("csm_memory_save", text="Herons nest in the reeds.", project=str(other), by_person=True)
    machine.csmd("backup")
    machine.csmd("pause")
    return machine


@pytest.mark.invariant("What opens something that was closed, or raises authority, is asked of a person at a terminal")
@named
def test_what_opens_something_is_refused_without_a_terminal_and_asked_with_one(
    paused: Machine, words: list[str]
) -> None:
    refused = paused.run(*words)
    assert refused.returncode == 1 and "not a terminal; cannot ask" in refused.stderr, refused
    for mark in ({"CLAUDECODE": "1"}, {"GEMINI_CLI": "1"}):
        refused = paused.run(*words, "--yes", **mark)
        assert refused.returncode == 1 and "cannot use --yes" in refused.stderr, refused
    terminal = Terminal(*words, cwd=paused.project, environment=paused.environment())
    terminal.sees("[y/N]")
    terminal.press("n\n")
    assert terminal.ends() == 1
    assert paused.status()["paused"]


def test_yes_does_not_count_below_a_program_that_is_called_as_an_assistant(paused: Machine) -> None:
    program = paused.root / "claude"
    shutil.copy(shutil.which("sh") or "/bin/sh", program)
    command = shlex.join([sys.executable, "-m", "csmd", "resume", "--yes"])
    done = subprocess.run(
        [program, "-c", f"{command}; exit $?"], env=paused.environment(), cwd=paused.project, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and "(claude)" in done.stderr, done
    assert paused.run("resume", "--yes").returncode == 0


def test_status_says_who_paused_and_who_stopped(paused: Machine) -> None:
    assert " by a program" in paused.csmd("status")
    paused.csmd("stop")
    refused = paused.run("search", "anything")
    assert refused.returncode == 3 and "it was stopped on purpose by a program, 20" in refused.stderr
    assert paused.run("sync", CLAUDECODE="1").returncode == 3
