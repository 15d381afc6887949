"""Who goes first: a hook before the background, which has half of the time at least and whose writes are short."""

from __future__ import annotations

import threading
import time
from typing import Literal

import pytest

from csmd.daemon.server import Waiting, WaitingRoom
from csmd.store import core
from csmd.store.core import Precedence, fitting
from csmd.wire import Reply, Request


class Stood(threading.Event):
    """An event that keeps for how long it was waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[float] = []
        self.answered_meanwhile = False

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None, "for ever"
        self.asked.append(timeout)
        if self.answered_meanwhile:
            self.set()
        return super().wait(timeout)


@pytest.fixture
def stood(monkeypatch: pytest.MonkeyPatch) -> Stood:
    """How a new `Precedence` stands still."""
    found = Stood()
    monkeypatch.setattr(core.threading, "Event", lambda: found)
    return found


def busy(seconds: float) -> None:
    """Takes so much of the processor's time."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


@pytest.mark.invariant(
    "A write that looks long for each of its rows ends when its time is over; the rest is the next one's"
)
def test_a_write_takes_what_fits_one_at_least_and_leaves_the_rest_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "SHORT_S", 0.05)
    left, writes = list(range(7)), []
    while left:
        taken = []
        for one in fitting(left):
            taken.append(one)
            busy(0.06 if one == 3 else 0)
        writes.append(taken)
        left = left[len(taken) :]
    assert writes == [[0, 1, 2, 3], [4, 5, 6]]
    assert list(fitting([])) == []


def test_where_no_hook_is_answered_nothing_stands_still(stood: Stood) -> None:
    first = Precedence()
    busy(core.TURN_S)
    assert list(first.giving_way("abc")) == ["a", "b", "c"]
    assert stood.asked == []


@pytest.mark.invariant("The background stands still while a hook is answered, and has half of the time at least")
def test_the_background_stands_still_until_the_hook_has_its_answer(stood: Stood) -> None:
    first = Precedence()
    first.say(answering=True)
    stood.answered_meanwhile = True
    for _ in first.giving_way(range(5)):
        busy(core.TURN_S * 1.5)
    assert len(stood.asked) == 1


@pytest.mark.invariant("The background stands still while a hook is answered, and has half of the time at least")
def test_beside_hooks_that_never_end_the_background_has_half_of_the_time(stood: Stood) -> None:
    began = time.monotonic()
    first = Precedence()
    first.say(answering=True)
    for _ in first.giving_way(range(20)):
        busy(core.TURN_S * 1.5)
    first.give_way()
    assert stood.asked and max(stood.asked) <= core.PATIENCE_S
    assert 2 * sum(stood.asked) <= time.monotonic() - began


@pytest.mark.invariant("The background stands still while a hook is answered, and has half of the time at least")
def test_the_background_gives_way_from_the_first_hook_inside_to_the_last_and_to_no_call(stood: Stood) -> None:
    first = Precedence()
    room = WaitingRoom(lambda _, __: None, first)

    def inside(verb: Literal["event", "call"]) -> Waiting:
        one = Waiting(b"", Request(id="1", verb=verb, deadline_ms=1, host="claude", name="Stop", body=b""), 1.0)
        room.take_in(one)
        return one

    call = inside("call")
    assert stood.is_set()
    hooks = [inside("event"), inside("event")]
    assert not stood.is_set()
    room.answer(hooks[0], Reply(status="ok"))
    assert not stood.is_set()
    room.answer(hooks[1], Reply(status="ok"))
    assert stood.is_set()
    room.take_in(hooks[1])  # answered already
    assert stood.is_set()
    room.answer(call, Reply(status="ok"))
    inside("event")
    room.turn_away()
    assert stood.is_set()
