"""`csmd tail` shows what happens once, in order, as it is stored, to who may see it; a restart of the daemon costs nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from machine import PREFERENCE, Machine, ask, call_frames
from rich.cells import cell_len

from csmd import client
from csmd.cli import follow
from csmd.errors import DaemonUnreachable
from csmd.store import activity_feed

SECRET = "ghp_" + "a1B2" * 9


class Ended(Exception):
    """Nothing more is to come."""


def following(machine: Machine, *, quiet: int = 3, **where: Any) -> Iterator[dict[str, Any]]:
    """What the command follows, until nothing new came `quiet` times."""
    left = quiet

    def sleep(seconds: float) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Ended

    return follow.follow(lambda cursor: client.call(machine.paths, "csm_tail", {"cursor": cursor, **where}), sleep)


def told(items: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """Everything until the end."""
    found = []
    try:
        for item in items:
            found.append(item)  # noqa: PERF402 - what came before the end is kept
    except Ended:
        return found
    raise AssertionError("it ended by itself")


def words(items: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(item["kind"], item["what"]) for item in items]


def test_what_happens_is_told_once_in_order_and_redacted(machine: Machine) -> None:
    machine.start()
    first = machine.call("csm_tail", last=0)
    assert first["items"] == []
    machine.event("SessionStart", source="startup")
    machine.event("UserPromptSubmit", prompt=f"I prefer pathlib over os.path, and the token is {SECRET}.")
    machine.event("Stop", last_assistant_message="It is done.")
    news = machine.call("csm_tail", cursor=first["cursor"])
    machine.conversation("s2")
    machine.sync()
    later = machine.call("csm_tail", cursor=news["cursor"])
    cursor, found = later["cursor"], [*news["items"], *later["items"]]
    assert words(found)[:5] == [
        ("event", "session_start"), ("event", "prompt"), ("turn", "user"), ("event", "stop"), ("turn", "assistant"),
    ]  # fmt: skip
    assert {("statement", "behavioral"), ("memory", "behavioral"), ("memory", "correction")} <= set(words(found))
    assert SECRET not in json.dumps(found) and "[redacted:github-token]" in json.dumps(found)
    assert {item["name"] for item in found} <= {"project", ""}
    assert machine.call("csm_tail", cursor=cursor)["items"] == []


@pytest.mark.invariant("The tail tells each thing once, through restarts, and nothing from behind a wall")
def test_a_daemon_that_is_restarted_in_the_middle_costs_nothing(machine: Machine) -> None:
    child = machine.start()
    machine.event("UserPromptSubmit", prompt="one")
    waited = 0

    def sleep(seconds: float) -> None:
        nonlocal child, waited
        waited += 1
        if waited == 1:
            machine.event("UserPromptSubmit", prompt="two")
            machine.stop(child)
        elif waited == 3:
            child = machine.start()
            machine.event("UserPromptSubmit", prompt="three")
        elif waited > 5:
            raise Ended

    found = told(follow.follow(lambda cursor: client.call(machine.paths, "csm_tail", {"cursor": cursor}), sleep))
    assert [item["text"] for item in found if item["kind"] == "turn"] == ["one", "two", "three"]
    assert waited > 5


def test_without_a_daemon_it_does_not_wait_for_one(machine: Machine) -> None:
    with pytest.raises(DaemonUnreachable):
        next(following(machine))
    assert machine.run("tail").returncode == 3


@pytest.mark.invariant("The tail tells each thing once, through restarts, and nothing from behind a wall")
def test_behind_a_wall_only_who_stands_there_sees_and_a_project_shows_its_own(machine: Machine) -> None:
    machine.start()
    inside, outside = machine.root / "secret", machine.root / "open"
    for place, session in ((inside, "in"), (outside, "out")):
        place.mkdir()
        machine.event("UserPromptSubmit", session, prompt=f"said in {session}", cwd=str(place))
    assert len(told(following(machine))) == 4
    machine.call("csm_project_lens", name="w", places=str(inside), wall=True, by_person=True)

    def turns(**where: Any) -> set[str]:
        return {item["text"] for item in told(following(machine, **where)) if item["kind"] == "turn"}

    assert turns() == turns(asking=str(outside)) == {"said in out"}
    assert turns(asking=str(inside)) == {"said in in", "said in out"}
    assert turns(project=str(outside)) == {"said in out"}
    seen = told(following(machine, asking=str(outside)))
    assert {item["session"] for item in seen} == {"out"}, "not even that something happened"


def test_more_than_fits_into_one_answer_is_told_in_several_and_a_long_text_is_cut(machine: Machine) -> None:
    machine.start()
    start = machine.call("csm_tail", last=0)["cursor"]
    lines = [machine.line("user", f"line {number} " + "x" * 2000, session="long") for number in range(450)]
    machine.transcript(*lines, session="long")
    machine.sync()
    first = machine.call("csm_tail", cursor=start)
    assert first["more"] and len([item for item in first["items"] if item["kind"] == "turn"]) == 200
    cursor, seen = start, []
    while True:
        news = machine.call("csm_tail", cursor=cursor)
        cursor = news["cursor"]
        seen += [item["text"].split(" x")[0] for item in news["items"] if item["kind"] == "turn"]
        if not news["more"]:
            break
    assert seen == [f"line {number}" for number in range(450)]
    assert all(len(item["text"]) <= 1000 for item in first["items"])


def test_a_cursor_from_beyond_goes_on_and_one_that_is_none_is_refused(machine: Machine) -> None:
    machine.start()
    machine.event("UserPromptSubmit", prompt="one")
    beyond = ",".join(["999999"] * len(activity_feed.KINDS))
    found = machine.call("csm_tail", cursor=beyond)  # as after a restore
    assert found["items"] == []
    machine.event("UserPromptSubmit", prompt="two")
    assert [
        one["text"] for one in machine.call("csm_tail", cursor=found["cursor"])["items"] if one["kind"] == "turn"
    ] == ["two"]
    for cursor in ("x", "1", "1,2,3,4,-5", "1,2,3,4,99999999999999999999", "1,2,3,4,²"):
        status, body = ask(machine.socket, call_frames("csm_tail", {"cursor": cursor}))
        assert status == b"error" and b"is not a cursor" in body


def test_the_command_prints_a_line_for_each_thing_and_ends_with_control_c(machine: Machine) -> None:
    machine.conversation("s1")
    machine.start()
    machine.sync()
    plain = read_some(machine, ["tail", "-n", "4"], 4)
    assert all(cell_len(line) <= 80 for line in plain) and any("memory" in line for line in plain)
    found = [json.loads(line) for line in read_some(machine, ["tail", "--json", "-n", "200"], 12)]
    assert {"kind", "at", "project", "name", "session", "what", "text"} <= set(found[0])
    assert any(PREFERENCE in item["text"] for item in found)


def read_some(machine: Machine, arguments: list[str], count: int) -> list[str]:
    """The first lines of a command that goes on; ends it as a user does."""
    child = subprocess.Popen(
        [sys.executable, "-m", "csmd", *arguments], cwd=machine.project, env=machine.environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert child.stdout is not None and child.stderr is not None
    lines = [child.stdout.readline().rstrip("\n") for _ in range(count)]
    child.send_signal(signal.SIGINT)
    rest, complaints = child.communicate(timeout=30)
    assert (child.returncode, complaints) == (0, ""), (rest, complaints)
    return lines


ITEM = some.fixed_dictionaries(
    {
        "kind": some.sampled_from(activity_feed.KINDS), "at": some.text(max_size=30) | some.just("2026-05-04T12:00:00.000Z"),
        "name": some.text(max_size=40), "session": some.text(max_size=40), "what": some.text(max_size=30),
        "text": some.text(max_size=200), "tokens": some.integers(0, 10**12), "memories": some.integers(0, 10**12), "results": some.integers(0, 10**12),
    }
)  # fmt: skip


@pytest.mark.invariant(
    "No line of a screen is wider than the terminal, whatever it is told; every field of status is documented and no other"
)
@settings(max_examples=50, deadline=None)
@given(ITEM, some.integers(40, 130))
def test_no_line_is_wider_than_the_terminal_nor_moves_its_cursor(item: dict[str, Any], width: int) -> None:
    line = follow.tail_line(item, width)
    assert cell_len(line) <= width and line.isprintable(), repr(line)


@pytest.mark.parametrize(
    ("item", "line"),
    [
        ({"kind": "event", "what": "session_start", "text": "startup"}, "12:00:00  shop          session start  session 0b1c2d3e (startup)"),
        ({"kind": "turn", "what": "user", "text": "Which\nkey?"}, "12:00:00  shop          user           Which key?"),
        ({"kind": "memory", "what": "correction", "text": "Not so."}, "12:00:00  shop          memory         correction: Not so."),
        ({"kind": "injection", "what": "prompt", "text": "", "tokens": 56, "memories": 1},
         "12:00:00  shop          told           1 memory, 56 tokens (prompt)"),
        ({"kind": "act", "what": "merge", "text": "m1: Not so."}, "12:00:00  shop          done           merge: m1: Not so."),
        ({"kind": "search", "what": "search", "text": "", "results": 2}, "12:00:00  shop          searched       2 hits (search)"),
        ({"kind": "turn", "what": "user", "text": "x", "at": "2026-05-03T12:00:00.000Z"}, "26-05-03  shop          user           x"),
    ],
)  # fmt: skip
def test_a_line_reads_well(item: dict[str, Any], line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    base = {"at": "2026-05-04T12:00:00.000Z", "name": "shop", "session": "0b1c2d3e4f5a"}
    assert follow.tail_line({**base, **item}, 80, today="2026-05-04") == line
