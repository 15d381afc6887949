"""What people see fits in 80 columns and holds what they look for; wide letters, long words and many rows included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from machine import Machine
from rich.cells import cell_len

from csmd import config
from csmd.cli import injections, memories, render
from csmd.text import ages

WIDTH = 80
LONG = "https://example.org/" + "a-very-long-path/" * 12
SAID = (
    "I prefer pathlib over os.path in every script of this repository, because joining strings has bitten us twice.",
    "no, that's wrong: the config key is database_url, not db_url",
    "我们总是用四个空格缩进,从不使用制表符,因为我们的编辑器和审查工具都是这样设置的,请在所有的文件里都遵守这个约定,谢谢你。 Always use four spaces.",
    f"Always read {LONG} before you touch the deployment.",
    "Let's go with Postgres for the job queue because we need LISTEN/NOTIFY.",
    "In general I prefer small commits with a reason in the message.",
)


@pytest.fixture(scope="module")
def real(shared_machine: Machine) -> Machine:
    """A small real store: what was said in two projects, one with a long path."""
    deep = shared_machine.project / ("deep-" * 12) / "repository"
    deep.mkdir(parents=True)
    for number, cwd in enumerate(("", str(deep))):
        lines = []
        for said in SAID:
            lines += [
                shared_machine.line("user", said, session=f"s{number}", cwd=cwd),
                shared_machine.line("assistant", "Done. " * 60 + "The tests pass.", session=f"s{number}", cwd=cwd),
            ]
        shared_machine.transcript(*lines, "{broken\n", session=f"s{number}")
    shared_machine.start()
    shared_machine.sync()
    shared_machine.event("SessionStart", "now", source="startup")
    return shared_machine


def fits(text: str) -> None:
    wide = [line for line in text.splitlines() if cell_len(line) > WIDTH]
    assert not wide, "\n".join(wide)
    assert "\x1b" not in text, "no colours where there is no terminal"


@pytest.mark.parametrize(
    "words",
    [
        ["status"], ["memories"], ["memories", "--all-projects"], ["search", "config key database_url"],
        ["search", "缩进", "--explain"], ["brief"],
        ["recall", "--prompt", "Which config key, database_url?"], ["sync", "--no-vectors"], ["search", "zzzzqqqq"],
        ["recall", "--prompt", "What is the capital of France?"], ["brief", "--project", "/"],
        ["install", "--no-start"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_every_view_fits_in_eighty_columns(real: Machine, words: list[str]) -> None:
    text = real.csmd(*words)
    assert text.strip()
    if words[0] != "install":  # the path of a settings file is not cut
        fits(text)
    print(text)


def test_one_memory_with_its_sources_fits(real: Machine) -> None:
    for memory in real.csmd("memories", "--json")["memories"][:2]:
        text = real.csmd("show", memory["id"])
        fits(text)
        assert memory["id"] in text and "states: user" in text


def test_memories_of_all_projects_stand_below_their_projects(real: Machine) -> None:
    rows = real.csmd("memories", "--all-projects", "--json")["memories"]
    lines = real.csmd("memories", "--all-projects", "--all").splitlines()
    heads = {
        place: lines.index(render.shorten(place, WIDTH, end=True) or "everywhere")
        for place in {row["project"] for row in rows}
    }
    assert len(heads) == 3
    for row in rows:
        (at,) = (number for number, line in enumerate(lines) if line.strip().startswith(row["id"]))
        assert max((head, place) for place, head in heads.items() if head < at)[1] == row["project"]


def test_a_narrow_terminal_is_respected_too(real: Machine) -> None:
    for words in (["status"], ["memories"]):
        done = real.run(*words, COLUMNS="60")
        assert done.returncode == 0
        assert all(cell_len(line) <= 60 for line in done.stdout.splitlines()), done.stdout


def test_status_says_what_matters_first(real: Machine) -> None:
    lines = real.csmd("status").splitlines()
    assert lines[0].startswith("Healthy: ")
    labels = [line.split()[0] for line in lines[1:] if line[:1].strip()]
    assert labels[:4] == ["daemon", "uses", "socket", "heard"]
    text = "\n".join(lines)
    assert (
        "session start" in " ".join(text.split())
        and "unreadable 2 lines" in text
        and "by words; csmd model fetch" in " ".join(text.split())
    )
    assert "…" in text and "repository" in text, "a long path keeps its end"


def test_a_brief_is_shown_with_all_its_words(real: Machine) -> None:
    exact = real.csmd("brief", "--json")["text"]
    shown = real.csmd("brief")
    words = exact.split()
    squeezed = "".join(shown.split())
    assert all(word in squeezed for word in words)


@pytest.mark.parametrize(
    ("found", "told", "command"),
    [
        ("related", "Related memory still active: m1: The queue runs on Redis", "Replace it: csmd supersede m1 m2"),
        ("doubtful", "May be replaced: m1: The queue runs on Redis", "Replace it: csmd supersede m1 m2"),
        ("replaced", "Replaced m1: The queue runs on Redis", "Undo: csmd supersede m1 --undo"),
    ],
)
def test_what_is_remembered_says_what_it_replaced_and_what_it_may_replace(
    found: str, told: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    value = {"new": True, "id": "m2", "text": "The queue is kept in Postgres", "project": "/p", "workspace": ""}
    value |= {"paused": False, "waits": False}
    near = {"id": "m1", "text": "The queue runs on Redis", "is": found, "rest": {"id": "m3", "text": "Tests use jest."}}
    render.show(memories.show_remembered({**value, "beside": [near]}, by_person=True, shown={}))
    said = capsys.readouterr().out
    assert told in said and command in said and "Still active from it: m3: Tests use jest." in said


@pytest.mark.parametrize(("amount", "left"), [(3, 0), (4, 0), (5, 2)])
def test_no_list_leaves_out_a_single_memory(amount: int, left: int, capsys: pytest.CaptureFixture[str]) -> None:
    row = {
        "id": "m1", "text": "x", "project": "/p", "gate": "epistemic", "pinned": False, "origin": "stated", "times": 1,
        "authority": "user", "confidence": 0.9, "confirmed_at": "2026-01-01", "attention": "HOT", "superseded_by": "",
        "category": "fact", "is_refuted": False, "is_edited": False,
    }  # fmt: skip
    render.show(memories.show_memories([row] * amount, per_gate=3))
    assert ("; 2 not shown (--all)" in (said := capsys.readouterr().out)) is bool(left)
    assert said.count("m1") == amount - left


def test_each_hint_of_what_was_told_beside_memories_stays_on_one_line() -> None:
    for state in injections.STATES:
        assert len(injections.describe_state(state, "0c5d5b1a-1f43-4a35-9a5e-1f8f7ed6b7a1")) <= WIDTH - 2


def test_a_search_names_each_hit_once_with_kind_date_and_score(real: Machine) -> None:
    found = real.csmd("search", "config key database_url", "--json")["hits"]
    shown = real.csmd("search", "config", "key", "database_url")
    for number, hit in enumerate(found, 1):
        row = next(line for line in shown.splitlines() if line.startswith(f"{number:>2}  "))
        kind = "memory" if hit["states"] else hit["kind"]
        assert kind in row and hit["states"] in row and hit["at"][:10] in row and f"{hit['score']:.2f}" in row


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (ages.age, 0.4, "0 s"), (ages.age, 59, "59 s"), (ages.age, 3_700, "1 h 1 min"), (ages.age, 90_061, "1 d 1 h"),
        (ages.age, 86_400, "1 d"), (ages.age, 86_401, "1 d 1 s"), (render.size, 999, "999 B"), (render.size, 1000, "1.0 KB"), (render.size, 25_400_000, "25.4 MB"),
        (render.size, 5e13, "50000.0 GB"), (ages.when, "", "never"), (ages.when, "1970-01-01T00:00:00.000Z", "never"),
    ],
)  # fmt: skip
def test_lengths_of_time_and_amounts_read_well(function: Callable[[Any], str], value: Any, text: str) -> None:
    assert function(value) == text


def test_a_path_is_shortened_at_its_beginning() -> None:
    assert render.shorten("/a/b/c", 10, end=True) == "/a/b/c"
    assert render.shorten("/a/long/path/to/x", 8, end=True) == "…th/to/x"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, None), ({"NO_COLOR": "1"}, False), ({"FORCE_COLOR": "1"}, True), ({"TERM": "dumb", "FORCE_COLOR": "1"}, False),
        ({"TERM": "xterm"}, None),
    ],
)  # fmt: skip
def test_what_the_user_says_of_colours_holds(said: dict[str, str], expected: bool | None) -> None:
    assert config.wants_colours(said) is expected


def test_a_style_is_written_and_taken_back() -> None:
    assert render.paint((("csmd  ", "dim"), ("broken", "bold red"), (" here", ""))) == (
        "\x1b[2mcsmd  \x1b[0m\x1b[31m\x1b[1mbroken\x1b[0m here"
    )
