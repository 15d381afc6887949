"""What an event's answer is made of, and how what was asked last in a large project is looked for before the next prompt."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from machine import ask, event_frames

from csmd.capture import project_identity
from csmd.conversation import Event, Turn
from csmd.daemon import injection
from csmd.errors import DeadlineExceeded
from csmd.hook_events import EVENTS
from csmd.store import projects, turns
from csmd.store.sqlite import Rows

NOW = "2026-03-01T10:00:00.000Z"
PROMPTS = ["why is the heron grey?", "who feeds the stork?", "when did the crane leave?"]


@pytest.fixture
def looked_for(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The prompts that were looked for, of a store that counts as large."""
    monkeypatch.setattr(injection, "MIN_TURNS", 1)
    asked: list[str] = []
    own = injection.prompt.find_relevant

    def bearing(rows: Rows, *, prompt: str, **rest: Any) -> Any:
        asked.append(prompt)
        return own(rows, prompt=prompt, **rest)

    monkeypatch.setattr(injection.prompt, "find_relevant", bearing)
    return asked


def say(parts: Any, prompts: list[str], *, cwd: str, session: str = "s1") -> None:
    place = project_of(parts, cwd)

    def write(rows: Rows) -> None:
        for number, said in enumerate(prompts):
            turn = Turn(
                uuid=f"{session}-{number}",
                session_id=session,
                kind="user",
                text=said,
                at=f"2026-03-01T10:{number:02d}:00.000Z",
                cwd=cwd,
            )
            turns.add_turn(rows, turn, text_hash=said, host="claude", project=place, path="")

    parts.store.write(write)


def project_of(parts: Any, cwd: str) -> int:
    found: int = parts.store.write(
        lambda rows: projects.ensure(rows, project_identity.identify_directory(cwd), now=NOW)
    )
    return found


def through(background: Any) -> None:
    while background.rehearsal.step(1000.0) or read(background):
        pass


def read(background: Any) -> bool:
    """Waits for the reader, where it is at work; whether it was."""
    was = background.rehearsal.is_reading
    background.context.store.read(lambda rows: None, lane="main")
    return bool(was)


@pytest.mark.invariant(
    "What cannot be read in time costs its part of an answer; a large store's next prompt is rehearsed, a prompt a step"
)
def test_at_the_start_the_prompts_of_the_latest_session_are_looked_for_and_not_soon_again(
    parts: Any, looked_for: list[str]
) -> None:
    say(parts, PROMPTS, cwd=str(parts.machine.project))
    through(parts.background)
    assert looked_for == PROMPTS[::-1], "the latest first"
    project = project_of(parts, str(parts.machine.project))
    parts.background.expect_prompt(project)
    through(parts.background)
    assert looked_for == PROMPTS[::-1]
    parts.background.expect_prompt(project)
    for number in (3, 4):  # the first asks for the prompts
        assert parts.background.rehearsal.step(1000.0 + injection.REHEARSE_AGAIN_S)
        read(parts.background)
        assert len(looked_for) == number, "a prompt a step"


@pytest.mark.invariant("The background thread waits for no rehearsal")
def test_the_background_waits_for_no_rehearsal(
    parts: Any, looked_for: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    say(parts, PROMPTS, cwd=str(parts.machine.project))
    may_end, poked = threading.Event(), threading.Event()
    monkeypatch.setattr(injection.prompt, "find_relevant", lambda *_, **__: may_end.wait(30))
    rehearsal = injection.Rehearsal(parts.store, poked.set)
    assert rehearsal.step(1000.0)
    parts.store.read(lambda rows: None, lane="main")
    poked.clear()
    assert rehearsal.step(1000.0) and rehearsal.is_reading
    assert not rehearsal.step(1000.0), "nothing is done until the reader is through"
    may_end.set()
    assert poked.wait(30), "and then the background thread is asked for a step"


@pytest.mark.invariant(
    "What cannot be read in time costs its part of an answer; a large store's next prompt is rehearsed, a prompt a step"
)
def test_a_session_that_starts_has_its_project_looked_through(parts: Any, looked_for: list[str]) -> None:
    server = parts.serve()
    say(parts, PROMPTS, cwd=str(parts.machine.project))
    say(parts, ["what is elsewhere?"], cwd=str(parts.machine.root / "elsewhere"), session="s2")
    started = {"session_id": "s3", "source": "startup", "cwd": str(parts.machine.project)}
    assert ask(server.path, event_frames("SessionStart", started))[0] == b"ok"
    through(parts.background)
    assert set(PROMPTS) <= set(looked_for)


def test_what_takes_too_long_is_left_and_the_next_is_looked_for(
    parts: Any, looked_for: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    say(parts, PROMPTS, cwd=str(parts.machine.project))

    def late(*_: object, **__: object) -> None:
        looked_for.append("late")
        raise DeadlineExceeded("a read was stopped at its deadline")

    monkeypatch.setattr(injection.prompt, "find_relevant", late)
    through(parts.background)
    assert looked_for == ["late"] * 3


def test_a_small_store_is_not_looked_through(
    parts: Any, looked_for: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(injection, "MIN_TURNS", 4)
    say(parts, PROMPTS, cwd=str(parts.machine.project))
    through(parts.background)
    assert not looked_for


def test_a_read_that_fails_is_told_once_and_rehearsal_goes_on(
    parts: Any, looked_for: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    say(parts, PROMPTS, cwd=str(parts.machine.project))
    own = injection._read_latest_prompts
    monkeypatch.setattr(injection, "_read_latest_prompts", lambda rows, project: 1 // 0)
    parts.background.rehearsal.step(1000.0)
    read(parts.background)
    with pytest.raises(ZeroDivisionError):
        parts.background.rehearsal.step(1000.0)
    monkeypatch.setattr(injection, "_read_latest_prompts", own)
    parts.background.expect_prompt(project_of(parts, str(parts.machine.project)))
    through(parts.background)
    assert looked_for == PROMPTS[::-1]


def test_nothing_is_guessed_for_an_event_that_tells_nothing(parts: Any) -> None:
    """A new event that injects has to say what it tells."""
    for name, rule in EVENTS.items():
        event = Event(id="e", host="claude", name=name, session_id="s1", at=NOW, cwd="/home/mira/shop")
        if rule.can_inject and name != "tool_failure":
            parts.store.read(lambda rows, event=event: compose(rows, parts, event))
        else:
            with pytest.raises(ValueError, match=f"nothing is composed for the event '{name}'"):
                parts.store.read(lambda rows, event=event: compose(rows, parts, event))


def compose(rows: Rows, parts: Any, event: Event) -> injection.Injection:
    return injection.compose_injection(rows, parts.background.context, event, 1.0)
