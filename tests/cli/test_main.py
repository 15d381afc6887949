"""The command as people and scripts meet it: exit codes, help, `--json` key by key (design section 8), cheap to start."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import click
import forked_process
import pytest
from machine import CORRECTION, LIMIT_S, Machine, eventually
from terminal import Terminal

import csmd
from csmd.cli.main import main
from csmd.cli.overview import read_topics
from csmd.cli.verb_table import MODULE_VERBS, visible_verbs
from csmd.tools.registry import TOOLS

HIT = {"id", "kind", "text", "score", "project", "session_id", "source_uuids", "at", "confidence", "gate", "authority", "author",
       "superseded_by", "superseded_at", "refuted", "edited", "scene", "states"}  # fmt: skip
MEMORY = {"id", "text", "gate", "type", "category", "tier", "decay", "authority", "confidence", "attention", "pinned",
          "source_uuids", "session_id", "sessions", "created_at", "confirmed_at", "superseded_by", "is_refuted", "is_edited",
          "project", "origin", "scene", "author"}  # fmt: skip
INJECTION = {"text", "tokens", "items", "degraded"}
IMPORT = {"files", "turns_new", "turns_known", "bad_lines", "redactions", "memories_new", "vectors", "took_s"}
HEAVY = {
    "fastembed",
    "numpy",
    "watchdog",
    "rich",
    "zmq",
    "apsw",
    "onnxruntime",
    "yaml",
    "sqlite3",
    "asyncio",
    "psycopg",
}


@pytest.fixture(scope="module")
def full(shared_machine: Machine) -> Machine:
    """A machine with a running daemon and an imported session."""
    shared_machine.conversation("first")
    shared_machine.start()
    shared_machine.sync()
    return shared_machine


def commands(group: click.Group, prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = [prefix]
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        found += commands(command, (*prefix, name)) if isinstance(command, click.Group) else [(*prefix, name)]
    return found


# --- help and start


@pytest.mark.parametrize("words", commands(main), ids=" ".join)
def test_every_command_says_what_it_does(words: tuple[str, ...]) -> None:
    command: click.Command = main
    context = click.Context(command, info_name="csmd", max_content_width=80, terminal_width=80)
    for word in words:
        assert isinstance(command, click.Group)
        command = command.get_command(context, word)
        assert command is not None
        context = click.Context(command, info_name=word, parent=context, max_content_width=80, terminal_width=80)
    text = command.get_help(context)
    first = (command.help or "").strip().splitlines()[0]
    assert first.endswith(".") and len(first) <= 120, first
    assert all(len(line) <= 80 for line in text.splitlines()), text
    assert "..." not in text.partition("Commands:")[2], text
    for parameter in command.params:
        assert isinstance(parameter, click.Argument) or parameter.help or parameter.name in ("limit", "kind"), parameter


def test_what_was_remembered_is_taken_back_and_what_was_forgotten_is_not(machine: Machine) -> None:
    machine.start()

    def typed(*words: str) -> str:
        terminal = Terminal(*words, cwd=machine.project, environment=machine.environment())
        terminal.ends()
        return " ".join(terminal.said.split())

    def kept() -> list[str]:
        return [row["text"] for row in machine.csmd("memories", "--json")["memories"] if not row["superseded_by"]]

    typed("remember", "The ledger lives in Riga.")
    typed("remember", "The ledger lives in Turku, not in Riga.")
    assert kept() == ["The ledger lives in Turku, not in Riga."]
    assert "is no longer remembered: The ledger lives in Turku" in typed("undo")
    assert kept() == ["The ledger lives in Riga."]
    typed("forget", machine.csmd("memories", "--json")["memories"][0]["id"], "--yes")
    assert "was forgotten for good" in typed("undo") and kept() == []


def test_a_command_that_asks_is_answered_by_y_and_yes() -> None:
    asking = set[tuple[str, ...]]()
    for words in commands(main):
        command: click.Command | None = main
        for word in words:
            command = command.get_command(click.Context(command), word) if isinstance(command, click.Group) else None
        if command is None or isinstance(command, click.Group) or command.callback is None:
            continue
        flags = [set(parameter.opts) & {"-y", "--yes"} for parameter in command.params]
        assert all(some in (set(), {"-y", "--yes"}) for some in flags), words
        if re.search(r"(?:confirm|require_yes|ask_yes_no)\(", inspect.getsource(inspect.unwrap(command.callback))):
            asking.add(words)
            assert {"-y", "--yes"} in flags or words == ("config", "edit"), words
    assert {("forget",), ("dream", "undo"), ("encrypt", "on"), ("uninstall",)} < asking


def test_the_table_of_verbs_is_what_their_modules_have_and_one_verb_brings_in_its_own_module_alone() -> None:
    folder = Path(csmd.__file__).parent / "cli"
    having = {path.stem for path in folder.glob("*.py") if re.search(r"^VERBS\b", path.read_text(), re.MULTILINE)}
    assert set(MODULE_VERBS) == having
    assert sorted(main.list_commands(click.Context(main))) == sorted(
        verb for verbs in MODULE_VERBS.values() for verb in verbs
    )
    assert len(visible_verbs()) <= 42, "what nobody types stays out of view"
    for subject, verbs in MODULE_VERBS.items():
        module = importlib.import_module(f"csmd.cli.{subject}")
        assert list(module.VERBS.commands) == verbs, subject
    program = (
        "import sys\nfrom csmd.cli.main import main\nmain(['brief', '--help'], standalone_mode=False)\n"
        "print(*sorted(m.removeprefix('csmd.cli.') for m in sys.modules if m.startswith('csmd.cli.')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(MODULE_VERBS) & set(done.stderr.split()) == {"main", "injections"}, done.stderr


def test_help_and_version_cost_no_heavy_import(machine: Machine) -> None:
    program = (
        "import sys\nfrom csmd.cli.main import entry\n"
        "try:\n    entry()\nfinally:\n    print(*sorted({m.partition('.')[0] for m in sys.modules}), file=sys.stderr)"
    )
    for words in (["--help"], ["--version"], ["search", "--help"], ["hooks", "print"]):
        done = subprocess.run(
            [sys.executable, "-c", program, *words],
            env=machine.environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout and not HEAVY & set(done.stderr.split()), (words, HEAVY & set(done.stderr.split()))


def test_a_module_that_is_started_is_not_looked_for_in_the_current_directory() -> None:
    started = 0
    for path in Path(csmd.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.List | ast.Tuple | ast.Call):
                continue
            found = node.args if isinstance(node, ast.Call) else node.elts
            words = [getattr(word, "value", None) for word in found]
            for at, word in enumerate(words):
                started += word == "-m"
                assert word != "-m" or "-P" in words[:at], f"{path}: -m without -P, line {node.lineno}"
    assert started >= 4, "a check that finds nothing is none"


@pytest.mark.parametrize("words", [["daemon"], ["start"], ["restart"], ["model", "fetch"]], ids=" ".join)
def test_no_code_of_the_current_directory_is_run(machine: Machine, words: list[str]) -> None:
    ran = machine.root / "ran"
    for name in ("yaml", "argparse", "csmd"):
        (machine.project / f"{name}.py").write_text(f"open({str(ran)!r}, 'a').write(__name__)\nraise SystemExit(9)\n")
    # The script as it is installed: `python -m csmd`, as the other tests start it, would itself look here.
    script = [sys.executable, "-P", "-m", "csmd"]
    if words == ["model", "fetch"]:
        machine.start()
        machine.paths.config_file.write_text("embed.model: nobody/can-fetch-this\n")
    child = subprocess.Popen(
        [*script, *words], cwd=machine.project, env=machine.environment(), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        if words == ["daemon"]:
            eventually(lambda: child.poll() is not None or machine.paths.endpoint.exists())
        else:
            child.wait(LIMIT_S)
        assert not ran.exists(), ran.read_text()
    finally:
        if child.poll() is None:
            child.terminate()
        child.wait(LIMIT_S)
    assert not ran.exists(), ran.read_text()


# --- what one needs


def test_csmd_alone_says_how_it_is_what_it_knows_here_and_what_to_type(machine: Machine, full: Machine) -> None:
    done = full.run()
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Healthy: ") and "memories from 1 session" in lines[1] and len(lines) <= 12
    assert set(re.findall(r"^  csmd ([a-z]+)", done.stdout, re.MULTILINE)) <= set(visible_verbs())
    done = machine.run()
    assert (done.returncode, done.stderr) == (0, "") and "csmd is not installed here" in done.stdout
    assert "try: csmd install" in done.stdout and not machine.home.exists()


def test_help_explains_topics_and_commands_and_names_only_what_there_is(machine: Machine) -> None:
    verbs = set(main.list_commands(click.Context(main)))
    for topic, (about, text) in read_topics().items():
        assert about in machine.run("help").stdout and about in machine.run("help", topic).stdout
        named = re.findall(r"`csmd ([a-z]+)", text)
        assert named and set(named) <= verbs, topic
    assert machine.run("help", "search").stdout == machine.run("search", "--help").stdout
    done = machine.run("help", "nothing")
    assert done.returncode == 1 and "`csmd help` lists the topics" in done.stderr


# --- exit codes


@pytest.mark.parametrize("words", [["config"], ["dream"], ["session"], ["model"], ["pipeline"]], ids=" ".join)
def test_a_group_alone_prints_its_help(machine: Machine, words: list[str]) -> None:
    done = machine.run(*words)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith(f"Usage: csmd {words[0]}")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        *((words, 3, "csmd is not installed here") for words in (["status"], ["memories"], ["brief"], ["search", "x"])),
        (["search", "x", "--json"], 3, "csmd install"),
        (["frobnicate"], 2, "No such command"),
        (["statsu"], 2, "Did you mean 'status'?"),
        (["search"], 2, "Missing argument"),
        (["search", "x", "--limit", "0"], 2, "--limit"),
        (["search", "x", "--kind", "all things"], 2, "--kind"),
        (["search", "x", "--kind"], 2, "It is one of: memory, turn, session, all."),
        (["export"], 2, "--to DIR"),
        (["export", "--markdown"], 3, "csmd install"),
        (["import", "/nonexistent"], 2, "does not exist"),
        (["tool", "csm_tools", "--param", "novalue"], 2, "KEY=VALUE"),
    ],
)
def test_without_a_daemon_or_with_wrong_words_the_code_and_stderr_say_so(
    machine: Machine, words: list[str], code: int, said: str
) -> None:
    done = machine.run(*words)
    assert (done.returncode, done.stdout) == (code, ""), done
    assert said in done.stderr and "Traceback" not in done.stderr
    assert not machine.home.exists(), "asking makes nothing"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "nope"], "there is no memory"),
        (["forget", "nope"], "there is no memory 'nope'"),
        (["tool", "csm_nothing"], "unknown tool"),
        (["tool", "csm_memory_serch"], "did you mean csm_memory_search"),
        (["tool", "digest_of"], "unknown tool 'digest_of'"),
        (["done", "7"], "there is no open item '7'"),
        (["undo"], "only a person at a terminal"),
        (["restore", "nope", "--yes"], "there is no backup 'nope'"),
        (["tool", "csm_memory_list", "--param", "colour=red"], "no parameter 'colour'"),
        (["tool", "csm_memory_list", "--param", "project=."], "absolute path"),
        (
            ["tool", "csm_memory_save", "--param", "text=We use tabs.", "--param", "by_person=true"],
            "by_person cannot be given",
        ),
        (["tool", "csm_memory_delete", "--param", "id=m", "--param", "by_person=true"], "by_person cannot be given"),
        (["model", "add", "."], "no model.onnx"),
        (["remember", "..."], "no words to remember"),
    ],
)
def test_what_cannot_be_done_is_told_with_what_to_do(full: Machine, words: list[str], said: str) -> None:
    done = full.run(*words)
    assert (done.returncode, done.stdout) == (1, ""), done
    assert done.stderr.startswith("csmd: ") and said in done.stderr and "\n  try: " in done.stderr, done.stderr


def test_a_damaged_configuration_is_told_and_keeps_nobody_from_stopping_or_leaving(machine: Machine) -> None:
    machine.start()
    machine.paths.config_file.write_text("brief.max_token: 5\n")
    done = machine.run("install", "--dry-run")
    assert (done.returncode, "did you mean 'brief.max_tokens'" in done.stderr) == (1, True), done
    assert machine.csmd("status", "--json")["version"]
    assert machine.csmd("stop", "--json") == {"stopped": True}
    done = machine.run("start")
    assert done.returncode == 1 and "unknown key 'brief.max_token'" in done.stderr, done
    machine.paths.config_file.write_text("brief:\n  max_tokens: [1\nrecall: 2\n")
    done = machine.run("install")
    what, remedy = done.stderr.splitlines()
    assert done.returncode == 1 and f"{machine.paths.config_file}: not YAML in line 3: " in what, done
    assert remedy.startswith("  try: correct ")
    assert machine.csmd("uninstall", "--json")["stopped"] is False


def program_of(machine: Machine, program: str, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """What a program prints that changes csmd before it is the command with these words."""
    return forked_process.run(
        "-c", program, *words, cwd=machine.project, env=machine.environment(**more), stdin=subprocess.DEVNULL,
        timeout=LIMIT_S,
    )  # fmt: skip


def test_a_bug_is_told_as_one_with_a_report_that_quotes_nobody(machine: Machine) -> None:
    program = (
        "from csmd.cli import main, verb\n"
        "def broken(*_, **__):\n    raise ZeroDivisionError('a secret text')\n"
        "verb.client.call = broken\nmain.entry()\n"
    )
    done = program_of(machine, program, "status")
    assert (done.returncode, done.stdout) == (70, "")
    report = machine.home / "log" / "crash.txt"
    assert str(report) in done.stderr and "Traceback" not in done.stderr
    assert "ZeroDivisionError" in report.read_text() and "secret" not in report.read_text() + done.stderr
    assert report.stat().st_mode & 0o777 == 0o600
    done = program_of(machine, program, "status", CSMD_HOME="/dev/null/x")
    assert done.returncode == 70 and "ZeroDivisionError" in done.stderr and "Traceback" not in done.stderr
    assert done.stderr.endswith("try: run `csmd report` and attach its file\n")
    nowhere = program.replace("main.entry()", "main.default_paths = verb.default_paths = broken; main.entry()")
    nowhere = nowhere.replace("ZeroDivisionError('a secret text')", "main.CsmdError('there is no such user')")
    nowhere = nowhere.replace("verb.client.call = broken", "main.main.main = lambda **_: 1 / 0")
    done = program_of(machine, nowhere, "status")
    assert done.returncode == 70 and "ZeroDivisionError" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", ["--help", "status", "completion bash"])
def test_a_full_disk_below_the_output_is_no_bug(full: Machine, words: str) -> None:
    line = f"{sys.executable} -m csmd {words} > /dev/full"
    done = subprocess.run(["bash", "-c", line], env=full.environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 1, done
    assert done.stderr.splitlines()[-2:] == [
        "csmd: the output: No space left on device", "  try: free some space, or make that path writable",
    ]  # fmt: skip


def test_an_interrupted_command_ends_with_130(machine: Machine) -> None:
    child = machine.start()
    child.send_signal(signal.SIGSTOP)
    asking = subprocess.Popen(
        [sys.executable, "-m", "csmd", "status"], env=machine.environment(), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    import psutil

    eventually(lambda: [c for c in psutil.Process(asking.pid).net_connections("unix") if c.fd > 2])
    asking.send_signal(signal.SIGINT)
    out, err = asking.communicate(timeout=LIMIT_S)
    child.send_signal(signal.SIGCONT)
    assert (asking.returncode, out, "Traceback" in err) == (130, "", False), err


def test_a_reader_that_leaves_early_is_no_error(full: Machine) -> None:
    for words in ("memories --all-projects", "status", "search config --json"):
        line = f"{sys.executable} -m csmd {words}; echo $? >&2"
        done = subprocess.run(
            ["bash", "-c", f"{{ {line}; }} | true"], cwd=full.project, env=full.environment(), capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.stderr == "0\n", (words, done.stderr)


# --- the contracts


def test_search_answers_as_the_contract_says(full: Machine) -> None:
    found = full.csmd("search", "database_url", "--json")
    assert set(found) == {"query", "took_ms", "by", "degraded", "close", "hits"}
    assert (found["query"], found["took_ms"] > 0, isinstance(found["degraded"], list)) == ("database_url", True, True)
    for kind in ("memory", "turn"):
        hits = full.csmd("search", "database_url", "--kind", kind, "--json")["hits"]
        assert {hit["kind"] for hit in hits} == {kind} and all(set(hit) == HIT for hit in hits)
    sources = [hit["source_uuids"][0] for hit in found["hits"] if hit["kind"] != "session"]
    assert sources and len(set(sources)) == len(sources), "a memory and the turn that states it are one answer"
    assert all(set(hit) == HIT for hit in found["hits"])
    assert [hit["score"] for hit in found["hits"]] == sorted((hit["score"] for hit in found["hits"]), reverse=True)
    for hit in found["hits"]:
        assert 1 <= len(hit["source_uuids"]) <= 4 and len(hit["text"]) <= 1200 and hit["session_id"] == "first"
        assert hit["at"].endswith("Z") and 0 <= hit["confidence"] <= 1 and hit["superseded_at"] == ""
    explained = full.csmd("search", "database_url", "--kind", "memory", "--limit", "1", "--explain", "--json")["hits"]
    assert len(explained) == 1 and set(explained[0]) == HIT | {"factors"}
    assert full.csmd("search", "database_url", "--project", "/usr", "--kind", "turn", "--json")["hits"] == []
    assert full.csmd("search", "database_url", "--all-projects", "--json")["hits"]


def test_memories_answers_as_the_contract_says(full: Machine) -> None:
    found = full.csmd("memories", "--json")
    assert set(found) == {"memories"} and len(found["memories"]) == 3
    for memory in found["memories"]:
        assert set(memory) == MEMORY | {"scope", "times"}
        assert memory["project"] == (str(full.project) if memory["scope"] == "project" else "")
        assert memory["sessions"] == ["first"] and memory["authority"] == "user" and memory["attention"] == "HOT"
    shown = full.csmd("show", found["memories"][0]["id"], "--json")
    assert {"origin", "version", "project", "sources", "links"} <= set(shown)


def test_brief_and_recall_answer_as_the_contract_says_and_leave_no_receipt(full: Machine) -> None:
    before = full.status()["counts"]
    place = ["--project", str(full.project)]
    brief = full.csmd("brief", *place, "--json")
    recall = full.csmd("recall", *place, "--prompt", "Which config key, database_url?", "--json")
    for value in (brief, recall):
        assert set(value) == INJECTION and value["text"] and value["tokens"] > 0
        assert all(set(item) == {"id", "score", "reason"} for item in value["items"])
        assert all(item["id"] in value["text"] for item in value["items"])
    assert full.csmd("brief", *place, "--json") == brief
    assert full.csmd("recall", *place, *"Which config key, database_url?".split(), "--json") == recall
    nothing = full.csmd("recall", *place, "--prompt", "What is the capital of France?", "--json")
    assert (nothing["text"], nothing["tokens"], nothing["items"]) == ("", 0, [])
    assert full.status()["counts"] == before


@pytest.mark.parametrize(
    ("name", "data", "looks"),
    [
        ("a.txt", b"hello", "has a format that csmd does not recognise"),
        ("b.json", b'{"a": 1}', "is JSON that csmd"),
        ("c.jsonl", b'{"a": 1}\n', "is JSON that csmd"),
        ("d.png", b"\0PNG", "has a format that csmd does not recognise"),
        ("e.jsonl", b"", "is empty"),
    ],
)
def test_an_import_of_what_csmd_does_not_know_says_so_and_fails(
    full: Machine, name: str, data: bytes, looks: str
) -> None:
    folder = full.root / "unknown" / name.partition(".")[0]
    folder.mkdir(parents=True)
    (folder / name).write_bytes(data)
    refused = full.run("import", str(folder / name))
    assert refused.returncode == 1 and looks in refused.stderr and "nothing was imported" in refused.stderr
    refused = full.run("import", str(folder))
    assert refused.returncode == 1 and "contains nothing that csmd can import" in " ".join(refused.stderr.split())
    full.transcript(full.line("user", "The bittern booms.", session="unk"), session=f"unk-{name}", folder=folder)
    taken = full.csmd("import", str(folder), "--no-vectors", "--json")
    left_out = [f"{folder / name}: not a transcript; skipped"] if name.endswith(".jsonl") else []
    assert (taken["files"], taken.get("problems", [])) == (1, left_out)


def test_options_of_one_name_mean_the_same_in_every_verb() -> None:
    """Which projects are looked in, and whether a list is whole."""
    about = defaultdict[str, set[str | None]](set)
    for words in commands(main):
        command: click.Command = main
        for word in words:
            assert isinstance(command, click.Group)
            command = command.get_command(click.Context(command), word) or command
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                about[option.opts[0]].add(option.name)
    assert {name: about[name] for name in ("--all", "--project", "--behind-walls")} == {
        "--all": {"everything"}, "--project": {"project"}, "--behind-walls": {"walls"},
    }  # fmt: skip
    assert about["--all-projects"] == {"all_projects", "everywhere"}


def test_import_and_sync_answer_as_the_contract_says(full: Machine) -> None:
    tree = full.root / "tree"
    path = full.transcript(full.line("user", "The heron stands still.", session="im"), session="im", folder=tree / "-p")
    first = full.csmd("import", str(tree), "--no-vectors", "--json")
    assert set(first) == IMPORT | {"degraded"}
    assert (first["files"], first["turns_new"], first["turns_known"], first["bad_lines"]) == (1, 1, 0, 0)
    again = full.csmd("import", os.path.relpath(path, full.project), "--no-vectors", "--json")
    assert (again["files"], again["turns_new"], again["memories_new"], again["vectors"]) == (1, 0, 0, 0)
    synced = full.csmd("sync", "--json")
    assert set(synced) == IMPORT | {"degraded"} and synced["turns_new"] == 0
    assert synced["degraded"] == [], "without a model csmd is whole: search is by words"


def test_status_answers_as_the_contract_says(full: Machine) -> None:
    found = full.csmd("status", "--json")
    assert {"at", "version", "proto", "home", "alarms", "paused", "service", "daemon", "worker", "socket", "model", "counts",
            "memories", "counters", "prompts", "corrected", "last_event", "last_read", "spool", "backfill", "jobs", "projects", "live", "told", "watching",
            "transcripts", "storage", "log", "degraded", "encrypted", "excluded", "service_note", "off_mark", "clients", "dream", "provider", "team", "pages", "hosts"} == set(found)  # fmt: skip
    assert {"pid", "uptime_s", "rss_mb", "cpu_s", "cpu_percent", "cpu_recent_percent"} == set(found["daemon"])
    assert (found["home"], found["spool"], found["jobs"]) == (str(full.home), {"files": 0, "oldest": ""}, [])
    assert found["watching"] == [str(full.assistant / "projects")]
    assert found["daemon"]["rss_mb"] < 80


def test_tool_list_answers_as_the_contract_says(full: Machine) -> None:
    found = full.csmd("tool", "list", "--json")
    assert set(found) == {"tools"}
    assert [set(row) for row in found["tools"]] == [{"name", "summary", "mutates", "parameters"}] * len(TOOLS)
    asked = full.csmd("tool", "csm_memory_search", "--param", "query=config = key", "--param", "limit=2", "--json")
    assert asked["query"] == "config = key" and len(asked["hits"]) <= 2


# --- errors and questions in a terminal of 80 columns


LONG_NAME = "/nowhere/" + "a-folder-with-a-long-name/" * 3 + "notes.json"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["import", LONG_NAME], 2),
        (["import", "{unknown}"], 1),
        (["import", "{cut}"], 1),
        (["memories", "--project", LONG_NAME], 1),
        (["memories", "--project", ".", "--all-projects"], 2),
        (["search", "heron", "--kind", "something that no search knows"], 2),
        (["show", "m0000000000000"], 1),
        (["session", "show", "a-session-that-nobody-has-ever-heard-of"], 1),
        (["config", "set", "recall.no_such_setting_at_all", "1"], 1),
        (["checkpoint", "show", "k000000"], 1),
        (["dream", "undo", "d000000"], 1),
        (["model", "add", LONG_NAME], 1),
        (["tool", "csm_no_such_tool_at_all_that_anybody_knows"], 1),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, list) else "",
)
def test_every_error_is_wrapped_at_eighty_columns(full: Machine, words: list[str], code: int) -> None:
    folder = full.root / "for-errors" / "in-a-folder-with-a-rather-long-name"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "unknown").write_text("hello")
    (folder / "cut").write_text('{"results": [{"memory": "The heron')
    typed = [word.format(unknown=folder / "unknown", cut=folder / "cut") for word in words]
    shown = on_a_terminal(full, *typed, code=code)
    assert shown.strip() and all(len(line) <= 80 for line in shown.splitlines()), shown


@pytest.mark.parametrize(("answer", "code"), [("\n", 1), ("n\n", 1), ("\x04", 130)], ids=["nothing", "no", "end"])
def test_whoever_does_not_say_yes_is_told_that_nothing_was_changed(full: Machine, answer: str, code: int) -> None:
    terminal = Terminal(
        "remember", "Where is the heron?", cwd=full.project, environment=full.environment()
    )  # fmt: skip
    terminal.sees("[y/N]")
    terminal.press(answer)
    terminal.sees("No change.")
    assert terminal.ends() == code
    assert all(row["text"] != "Where is the heron?" for row in full.csmd("memories", "--json")["memories"])


# --- who speaks


def on_a_terminal(machine: Machine, *words: str, code: int = 0) -> str:
    """What a command prints whose standard input and output are a terminal."""
    terminal = Terminal(*words, cwd=machine.project, environment=machine.environment())
    assert terminal.ends() == code, terminal.said
    return terminal.said


def test_what_is_typed_in_a_terminal_is_the_users_and_what_is_piped_is_not(machine: Machine) -> None:
    machine.start()
    typed = json.loads(on_a_terminal(machine, "remember", "We deploy on Mondays only.", "--json"))
    piped = machine.csmd("remember", "The cache lives in Redis.", "--json")
    assert (typed["authority"], piped["authority"], typed["new"], piped["new"]) == ("user", "assistant", True, True)
    assert machine.csmd("show", piped["id"], "--json")["origin"] == "model_saved"
    assert [item["id"] for item in machine.csmd("brief", "--json")["items"]] == [typed["id"]]
    assert machine.csmd("recall", "--prompt", "Where does the cache live, in Redis?", "--json")["text"] == ""
    assert "Mondays" in on_a_terminal(machine, "memories")


def test_what_an_assistant_saves_makes_nothing_surer(machine: Machine) -> None:
    machine.start()
    for text, first in (
        ("We deploy on Mondays only.", lambda *words: json.loads(on_a_terminal(machine, *words))),
        ("The cache lives in Redis.", machine.csmd),
    ):
        known = first("remember", text, "--json")
        before = machine.csmd("show", known["id"], "--json")
        for _ in range(4):
            again = machine.csmd("remember", text, "--pin", "--json")
            assert (again["id"], again["new"]) == (known["id"], False)
        assert machine.csmd("show", known["id"], "--json") == before
        assert machine.csmd("remember", text).startswith("known already as ")


def test_only_a_person_at_a_terminal_has_what_they_said_forgotten(machine: Machine) -> None:
    machine.start()
    mine = json.loads(on_a_terminal(machine, "remember", "We deploy on Mondays only.", "--json"))["id"]
    theirs = machine.csmd("remember", "The cache lives in Redis.", "--json")["id"]
    for words in (["forget", mine], ["tool", "csm_memory_delete", "--param", f"id={mine}"]):
        done = machine.run(*words)
        assert (done.returncode, done.stdout) == (1, ""), done
        assert "is the user's statement" in done.stderr and f"csmd forget {mine}" in done.stderr
    assert machine.csmd("forget", theirs).startswith("forgotten: ")
    assert "forgotten: We deploy on Mondays only." in on_a_terminal(machine, "forget", mine, "--yes")
    assert machine.csmd("memories", "--json")["memories"] == []


def test_a_terminal_as_input_alone_makes_no_person(machine: Machine) -> None:
    """Who has no terminal of their own can still be handed one's descriptor."""
    machine.start()
    ours, theirs = pty.openpty()
    try:
        done = machine.run("remember", "We deploy on Mondays only.", "--json", stdin=theirs)
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 0, done
    assert json.loads(done.stdout)["authority"] == "assistant"


def test_a_forgotten_memory_stays_away_from_another_import(machine: Machine) -> None:
    path = machine.conversation("first")
    machine.start()
    machine.csmd("sync", "--no-vectors")
    listed = machine.csmd("memories", "--json")["memories"]
    gone = next(row for row in listed if "database_url" in row["text"])
    assert "forgotten: " in on_a_terminal(machine, "forget", gone["id"], "--yes")
    copy = machine.root / "copy" / "-p"
    copy.mkdir(parents=True)
    (copy / path.name).write_bytes(path.read_bytes())
    machine.transcript(machine.line("user", CORRECTION, session="again"), session="again", folder=copy)
    machine.csmd("import", str(copy.parent), "--no-vectors")
    assert {row["id"] for row in machine.csmd("memories", "--json")["memories"]} == {row["id"] for row in listed} - {
        gone["id"]
    }
    assert "database_url" not in machine.csmd("brief")


@pytest.mark.parametrize(("works", "which"), [(True, ""), (True, "multilingual"), (False, "")])
def test_a_fetched_model_is_kept_once(machine: Machine, tiny_model: Path, works: bool, which: str) -> None:
    machine.start()
    left = machine.paths.models / ".fetched"
    if not works:
        left.mkdir(parents=True)
        (left / "model.onnx").write_bytes(b"of an earlier try")
    command = ["cp", "-r", str(tiny_model)] if works else ["false"]
    program = (
        "from csmd.cli import main, model\n"
        f"model._fetch_command = lambda folder, name: ['sh', '-c', 'printf %s \"$1\" >&2; shift; exec \"$@\"', 'sh', name, *{command!r}, str(folder)]\n"
        "main.entry()\n"
    )
    machine.paths.models.mkdir(mode=0o700, exist_ok=True)
    done = program_of(machine, program, "model", "fetch", *which.split(), "--json")
    assert ("paraphrase-multilingual-MiniLM-L12-v2" if which else "all-MiniLM-L6-v2") in done.stderr
    assert done.returncode == (0 if works else 1), done
    assert not left.exists()
    assert len(list(machine.paths.models.rglob("model.onnx"))) == works
    assert bool(machine.status()["model"]["name"]) == works


def test_a_model_asked_for_by_name_is_used_until_another_one_is_added(machine: Machine, tiny_model: Path) -> None:
    multilingual = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
    child = machine.start()
    first = machine.csmd("model", "add", str(tiny_model), "--as", "multilingual", "--json")["model"]
    assert first.split("@")[0] == multilingual
    machine.stop(child)
    machine.start()
    assert machine.status()["model"]["name"] == first
    assert "paraphrase-multilingual-MiniLM-L12-v2" in machine.csmd("status")
    again = machine.csmd("model", "add", str(tiny_model), "--json")["model"]
    assert (
        again.split("@")[0] == machine.config().settings.embed_model == machine.status()["model"]["name"].split("@")[0]
    )


def test_a_model_is_added_and_what_is_known_gets_its_vectors(machine: Machine, tiny_model: Path) -> None:
    machine.conversation("first")
    machine.start()
    added: dict[str, Any] = machine.csmd("model", "add", str(tiny_model), "--json")
    assert set(added) == {"model", "dim", "tokens"} and added["dim"] == 64
    synced = machine.csmd("sync", "--json")
    status = machine.csmd("status", "--json")
    assert synced["degraded"] == [] and status["counts"]["vectors"] == 9 and status["model"]["waiting"] == 0
    assert status["model"]["name"] == added["model"]
    assert machine.csmd("search", "pathlib", "--json")["degraded"] == []


@pytest.mark.parametrize(
    ("word", "near"),
    [("memry", "memories"), ("delete", "forget"), ("list", "memories"), ("serch", "search"), ("privcy", "privacy")],
)
def test_help_for_an_unknown_word_names_the_nearest_command_or_topic(full: Machine, word: str, near: str) -> None:
    helped = full.run("help", word)
    assert helped.returncode == 1 and f"did you mean `csmd help {near}`?" in helped.stderr


def test_a_command_of_another_program_is_answered_with_csmds(full: Machine) -> None:
    assert "Did you mean 'forget'?" in full.run("delete", "m1").stderr


def test_an_error_names_its_program_once(full: Machine) -> None:
    refused = full.run("config", "set", "recall.flor", "1")
    assert refused.stderr.startswith("csmd: config: unknown key 'recall.flor'\n")
    assert "recall.floor must be a number" in full.run("config", "set", "recall.floor", "high").stderr


def test_a_model_that_cannot_be_added_is_refused_with_one_reason(full: Machine) -> None:
    refused = full.run("model", "add", str(full.root / "nowhere.whl"))
    assert refused.returncode == 1 and refused.stderr.count("csmd: ") == 1, refused.stderr
    assert "no model was added" not in refused.stderr
