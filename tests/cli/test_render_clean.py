"""Nothing that came from outside steers a terminal: every verb is run on one, in a home full of hostile names and words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import click
import pytest
from machine import Machine
from terminal import Terminal

from csmd.cli.main import main
from csmd.cli.verb_table import ADVANCED_VERBS, VERB_GROUPS

#: Erases the screen, hides what follows, sets the window's title, asks the terminal, turns the line around, hides words.
HOSTILE = "\x1b[2J\x1b[8m\x1b]0;owned\x07\x1bP+q544e\x1b\\\x9b5n\x85\u202eright\u2066\u200bzero\U000e0041tag\x7f"
#: What csmd itself may write: colours of its palette, and what a progress bar needs. HOSTILE has none of these.
OWN = re.compile(
    r"\x1b\[(?:[0134]|3[0-7]|9[0-7]|2|1;3[0-7]|2;3[0-7]|;)*m|\x1b\[\?(?:25|1049)[hl]|\x1b\[[12]K|\x1b\[\d*A|\x1b\[H"
)
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
SESSION = "hostile-1"
#: Verbs that are driven elsewhere: they never end, install or download something, or end the daemon of the others.
ELSEWHERE = {
    "tail", "web", "mcp", "daemon", "install", "uninstall", "upgrade", "start", "stop", "restart", "model fetch", "model add", "edit",
    "restore", "repair", "review", "encrypt on", "encrypt off", "encrypt recover", "config edit", "config set", "config unset", "hooks settle", "completion",
}  # fmt: skip


class Home:
    """A daemon with hostile words in everything that it was told."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.project = machine.root / f"shop{HOSTILE}"
        self.project.mkdir()
        (self.project / ".git").mkdir()
        (self.project / ".git" / "HEAD").write_text(f"ref: refs/heads/{HOSTILE}\n")
        self.foreign = machine.root / f"notes{HOSTILE}.txt"
        self.foreign.write_text(f"nothing {HOSTILE} of use")
        machine.start()
        lines = [
            machine.line("user", f"We always release on Fridays {HOSTILE} because the vendor asks.", session=SESSION, cwd=str(self.project)),
            machine.line("assistant", f"Decided: the exporter {HOSTILE} keeps its cache for ten minutes.", session=SESSION, cwd=str(self.project)),
            {"type": "summary", "summary": f"Release {HOSTILE}", "leafUuid": "u0"},
        ]  # fmt: skip
        for line in lines[:2]:
            line["gitBranch"] = f"main{HOSTILE}"
        machine.transcript(*lines, session=SESSION, folder=machine.assistant / "projects" / "-hostile")
        machine.sync()
        self.run("remember", f"Prefer tabs {HOSTILE} over spaces.")
        self.run("remember", f"Deploys run on Mondays {HOSTILE} after nine.")
        self.memories = [
            row["id"] for row in json.loads(machine.run("memories", "--all-projects", "--json").stdout)["memories"]
        ]
        self.run("tag", self.memories[0], f"topic{HOSTILE}")
        self.run("goal", "set", f"ship {HOSTILE} it")
        self.run("checkpoint", "create", "--session", SESSION)

    def run(self, *words: str) -> str:
        """What a command shows on a terminal, byte for byte."""
        terminal = Terminal(*words, cwd=self.project, environment=self.machine.environment())
        terminal.ends()
        return terminal.raw.decode("utf-8", "surrogateescape")

    def arguments(self, verb: str) -> list[str]:
        """What a verb is asked for here."""
        memory, other = self.memories[:2]
        chosen: dict[str, list[str]] = {
            "search": ["release exporter tabs", "--all-projects"], "remember": [f"Say {HOSTILE} it"], "recall": ["--prompt", f"release {HOSTILE}"],
            "tool": ["csm_memory_list"], "show": [memory], "topics": [], "tag": [memory, f"more{HOSTILE}"],
            "link": [memory, other], "done": [], "undo": [], "goal set": [f"go {HOSTILE}"], "supersede": [memory, other], "pin": [memory],
            "unpin": [memory], "pipeline merge": ["--dry-run"], "dream diff": ["1"], "dream undo": [f"no{HOSTILE}"],
            "forget": [f"no{HOSTILE}"], "project alias": [f"/nowhere{HOSTILE}", str(self.project), "--yes"], "project merge": [str(self.project), f"/nowhere{HOSTILE}", "--yes"],
            "project split": [str(self.project), f"/nowhere{HOSTILE}"],
            "project lens": ["work", str(self.project), "--topic", f"release {HOSTILE}"],
            "import": [str(self.foreign)], "export": ["--to", str(self.machine.root / f"out{HOSTILE}")], "config get": [f"no{HOSTILE}"],
            "instructions file": [f"no{HOSTILE}"], "context get": [SESSION], "checkpoint show": ["1"], "checkpoint restore": [f"no{HOSTILE}"],
            "session export": [SESSION, "--to", "-"], "resume": ["--yes"], "memories": ["--all-projects"],
            "provider add": ["openai", "--url", f"http://127.0.0.1:9/{HOSTILE}", "--model", f"m{HOSTILE}", "--yes"], "provider remove": ["openai"],
            "team join": [f"https://{HOSTILE}", "--yes"], "team share": ["--yes"], "team leave": ["--yes"],
        }  # fmt: skip
        if verb in chosen:
            return chosen[verb]
        return [SESSION] if verb.startswith("session ") and verb != "session list" else []


def leaves(command: click.Command, path: str = "") -> Iterator[str]:
    """Every verb of a command's tree, in full."""
    if not isinstance(command, click.Group):
        yield path
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from leaves(inner, f"{path} {name}".strip())


@pytest.mark.invariant("What came from outside never reaches a terminal as anything but letters")
@pytest.mark.parametrize("group", [*VERB_GROUPS.values(), ADVANCED_VERBS])
def test_no_verb_lets_a_string_from_outside_steer_the_terminal(machine: Machine, group: list[str]) -> None:
    home = Home(machine)
    verbs = [verb for verb in leaves(main) if verb.split()[0] in group and verb not in ELSEWHERE]
    for verb in verbs:
        shown = home.run(*verb.split(), *home.arguments(verb))
        assert "Usage:" not in shown, f"{verb} is not asked for as it should be:\n{shown}"
        assert "csmd: a bug" not in shown, f"{verb}:\n{shown}"
        found = FORBIDDEN.search(OWN.sub("", shown.replace("\r\n", "\n")))
        assert not found, (
            f"csmd {verb} wrote {found.group()!r} in {shown[max(0, found.start() - 80) : found.end() + 80]!r}"
        )


def test_what_a_program_reads_has_every_letter_in_json_and_none_in_the_way(machine: Machine) -> None:
    home = Home(machine)
    done = machine.run("memories", "--all-projects", "--json")
    assert not FORBIDDEN.search(done.stdout.replace("\n", ""))
    assert any("\u202e" in row["text"] for row in json.loads(done.stdout)["memories"]), "the value is whole"
    for words in (["memories", "--all-projects"], ["session", "list"], ["no-such\x1b[2Jverb"]):
        done = machine.run(*words, cwd=str(home.project))
        assert not FORBIDDEN.search((done.stdout + done.stderr).replace("\n", "")), words


def test_every_verb_is_driven_here_or_named_as_driven_elsewhere() -> None:
    assert set(leaves(main)) >= ELSEWHERE


@pytest.mark.parametrize("name", [lambda text: text, str.upper])
def test_the_letters_of_other_languages_stay(name: Callable[[str], str]) -> None:
    from csmd.text import display

    for text in ("Grüße aus Köln", "שלום עולם", "مرحبا", "日本語", "e\u0301 is é", "👍🏽"):
        assert display.escape_unseen(name(text)) == name(text)
